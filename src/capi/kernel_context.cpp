// OrtKernelContext: what a kernel sees of one run.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/kernel_info.h"
#include "capi/places.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

Status check_index(size_t index, size_t count) {
  if (index < count) return {};
  return failure(Code::InvalidArgument, "index {} is outside the {} there are", index, count);
}

/// Memory of the processor, whatever name it goes by.
Status require_cpu(const OrtMemoryInfo* info) {
  SDX_TRY(require(info, "mem_info"));
  if (info->device_type == OrtMemoryInfoDeviceType_CPU) return {};
  return failure(Code::InvalidArgument,
                 "this kernel runs on the processor, which has no '{}' memory", info->name);
}

Status make_output(OrtKernelContext& context, size_t index, const int64_t* dims, size_t count) {
  OrtKernelContext::Output& output = context.outputs[index];
  SDX_ASSIGN(const Shape shape, to_shape(dims, count));
  if (output.dtype == DType::Undefined) {
    return failure(Code::InvalidArgument, "the element type of the output is not known");
  }
  if (const Tensor* made = output.value.datum.tensor();
      made != nullptr && made->shape() == shape && made->dtype() == output.dtype) {
    output.is_made = true;
    return {};
  }
  if (context.host != nullptr) {
    SDX_ASSIGN(Tensor tensor, context.host->make_output(index, output.dtype, shape));
    const OrtMemoryInfo& memory = memory_at(place_of(tensor));
    output.value = OrtValue{Datum(std::move(tensor)), memory};
  } else {
    SDX_ASSIGN(Tensor tensor, Tensor::allocate(output.dtype, shape));
    output.value = OrtValue{Datum(std::move(tensor)), cpu_memory_info()};
  }
  output.is_made = true;
  return {};
}

}  // namespace

OrtStatus* KernelContext_GetInputCount(const OrtKernelContext* context, size_t* out) noexcept {
  return guarded("KernelContext_GetInputCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    *out = context->inputs.size();
    return {};
  });
}

OrtStatus* KernelContext_GetOutputCount(const OrtKernelContext* context, size_t* out) noexcept {
  return guarded("KernelContext_GetOutputCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    *out = context->outputs.size();
    return {};
  });
}

OrtStatus* KernelContext_GetInput(const OrtKernelContext* context, size_t index,
                                  const OrtValue** out) noexcept {
  return guarded("KernelContext_GetInput", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    SDX_TRY(check_index(index, context->inputs.size()));
    const OrtValue& input = context->inputs[index];
    *out = input.datum.has_value() ? &input : nullptr;
    return {};
  });
}

OrtStatus* KernelContext_GetOutput(OrtKernelContext* context, size_t index,
                                   const int64_t* dim_values, size_t dim_count,
                                   OrtValue** out) noexcept {
  return guarded("KernelContext_GetOutput", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    SDX_TRY(check_index(index, context->outputs.size()));
    OrtKernelContext::Output& output = context->outputs[index];
    *out = nullptr;
    if (!output.is_there) return {};
    SDX_TRY(make_output(*context, index, dim_values, dim_count));
    *out = &output.value;
    return {};
  });
}

// Outputs are made when a kernel asks for them: none exists before.
OrtStatus* KernelContext_GetPreallocatedOutput(const OrtKernelContext* context, size_t output_index,
                                               OrtValue** output) noexcept {
  return guarded("KernelContext_GetPreallocatedOutput", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(output, "output"));
    SDX_TRY(check_index(output_index, context->outputs.size()));
    *output = nullptr;
    return {};
  });
}

// The processor has no streams.
OrtStatus* KernelContext_GetGPUComputeStream(const OrtKernelContext* context, void** out) noexcept {
  return guarded("KernelContext_GetGPUComputeStream", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(out, "out"));
    OrtSyncStream* stream = context->host != nullptr ? context->host->stream() : nullptr;
    *out = stream != nullptr ? SyncStream_GetHandle(stream) : nullptr;
    return {};
  });
}

OrtStatus* KernelContext_GetSyncStream(const OrtKernelContext* context,
                                       OrtSyncStream** out) noexcept {
  return guarded("KernelContext_GetSyncStream", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(out, "out"));
    *out = context->host != nullptr ? context->host->stream() : nullptr;
    return {};
  });
}

OrtStatus* KernelContext_GetResource(const OrtKernelContext* context, int resource_version,
                                     int resource_id, void** resource) noexcept {
  return guarded("KernelContext_GetResource", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(resource, "resource"));
    *resource = nullptr;
    return failure(Code::InvalidArgument,
                   "there is no resource {} (version {}): the kernel runs on the processor, "
                   "without a stream",
                   resource_id, resource_version);
  });
}

OrtStatus* KernelContext_GetLogger(const OrtKernelContext* context,
                                   const OrtLogger** logger) noexcept {
  return guarded("KernelContext_GetLogger", [&]() -> Status {
    SDX_TRY(require(logger, "logger"));
    SDX_TRY(require(context, "context"));
    *logger = &default_logger();
    return {};
  });
}

OrtStatus* KernelContext_GetAllocator(const OrtKernelContext* context,
                                      const OrtMemoryInfo* mem_info, OrtAllocator** out) noexcept {
  return guarded("KernelContext_GetAllocator", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(out, "out"));
    if (context->host != nullptr) {
      SDX_TRY(require(mem_info, "mem_info"));
      SDX_ASSIGN(*out, context->host->allocator(*mem_info));
      return {};
    }
    SDX_TRY(require_cpu(mem_info));
    *out = new_allocator(*default_allocator());
    return {};
  });
}

OrtStatus* KernelContext_GetScratchBuffer(const OrtKernelContext* context,
                                          const OrtMemoryInfo* mem_info, size_t count_or_bytes,
                                          void** out) noexcept {
  return guarded("KernelContext_GetScratchBuffer", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(out, "out"));
    if (context->host != nullptr) {
      SDX_TRY(require(mem_info, "mem_info"));
      SDX_ASSIGN(*out, context->host->scratch(*mem_info, count_or_bytes));
      return {};
    }
    SDX_TRY(require_cpu(mem_info));
    OrtAllocator* allocator = default_allocator();
    *out = allocator->Alloc(allocator, count_or_bytes);
    if (*out != nullptr) return {};
    return failure(Code::OutOfMemory, "no memory for {} bytes", count_or_bytes);
  });
}

OrtStatus* KernelContext_ParallelFor(const OrtKernelContext* context, OrtParallelForBody body,
                                     size_t total, size_t batch_count, void* usr_data) noexcept {
  return guarded("KernelContext_ParallelFor", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(reinterpret_cast<const void*>(body), "body"));
    if (context->state == nullptr) return failure(Code::Internal, "the kernel does not run");
    ThreadPool& pool = context->state->pool;
    const auto threads = static_cast<size_t>(pool.thread_count());
    const size_t batches = batch_count != 0 ? batch_count : threads * 4;
    const size_t grain = std::max<size_t>(1, total / batches + (total % batches != 0 ? 1 : 0));
    pool.parallel_for(static_cast<std::int64_t>(total), static_cast<std::int64_t>(grain),
                      [&](std::int64_t begin, std::int64_t end) {
                        for (std::int64_t i = begin; i < end; ++i) {
                          body(usr_data, static_cast<size_t>(i));
                        }
                      });
    return {};
  });
}

}  // namespace sardonyx::capi
