#include "kernels/quantize.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/quantized.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

constexpr std::int64_t kChunk = 1 << 14;

std::int32_t zero_of(const KernelContext& context, std::size_t i) {
  return context.has_input(i) ? byte_at(context.input(i), 0) : 0;
}

/// QuantizeLinear of floats to 8 bits with one scale.
class QuantizeKernel final : public NodeKernel {
 public:
  explicit QuantizeKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const float* x = context.input(0).values<float>().data();
    Tensor& y = context.output(0);
    const kernels::Quantization q{context.input(1).values<float>()[0], zero_of(context, 2)};
    const auto& table = kernels::quantize_table();
    context.pool().parallel_for(
        y.element_count(), kChunk, [&](std::int64_t begin, std::int64_t end) {
          if (y.dtype() == DType::UInt8) {
            table.quantize_u8(x + begin, end - begin, q,
                              y.mutable_values<std::uint8_t>().data() + begin);
          } else {
            table.quantize_s8(x + begin, end - begin, q,
                              y.mutable_values<std::int8_t>().data() + begin);
          }
        });
    return {};
  }
};

/// DequantizeLinear of 8 bits to floats with one scale.
class DequantizeKernel final : public NodeKernel {
 public:
  explicit DequantizeKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    float* y = context.output(0).mutable_values<float>().data();
    const kernels::Quantization q{context.input(1).values<float>()[0], zero_of(context, 2)};
    const auto& table = kernels::quantize_table();
    context.pool().parallel_for(
        x.element_count(), kChunk, [&](std::int64_t begin, std::int64_t end) {
          if (x.dtype() == DType::UInt8) {
            table.dequantize_u8(x.values<std::uint8_t>().data() + begin, end - begin, q, y + begin);
          } else {
            table.dequantize_s8(x.values<std::int8_t>().data() + begin, end - begin, q, y + begin);
          }
        });
    return {};
  }
};

bool has_one_scale(const KernelRequest& request) {
  const Shape* scale = request.shape(1);
  return request.dtype(1) == DType::Float32 && scale != nullptr && scale->element_count() == 1 &&
         request.attributes().get_int("block_size", 0) == 0;
}

DType output_dtype(const KernelRequest& request) {
  return request.graph().value(request.node().outputs[0]).type.dtype;
}

Result<std::unique_ptr<Kernel>> create_quantize(const KernelRequest& request) {
  const bool fits = request.dtype(0) == DType::Float32 && has_one_scale(request) &&
                    is_8_bit(output_dtype(request));
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<QuantizeKernel>(request));
}

Result<std::unique_ptr<Kernel>> create_dequantize(const KernelRequest& request) {
  const bool fits = is_8_bit(request.dtype(0)) && has_one_scale(request) &&
                    output_dtype(request) == DType::Float32;
  if (!fits) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<DequantizeKernel>(request));
}

/// DynamicQuantizeLinear.
class DynamicQuantizeKernel final : public NodeKernel {
 public:
  explicit DynamicQuantizeKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const float* from = x.values<float>().data();
    const std::int64_t count = x.element_count();
    const auto& table = kernels::quantize_table();
    const kernels::Quantization q = kernels::dynamic_quantization(range(context, from, count));
    if (context.has_output(0)) {
      std::uint8_t* to = context.output(0).mutable_values<std::uint8_t>().data();
      context.pool().parallel_for(count, kChunk, [&](std::int64_t begin, std::int64_t end) {
        table.quantize_u8(from + begin, end - begin, q, to + begin);
      });
    }
    if (context.has_output(1)) context.output(1).mutable_values<float>()[0] = q.scale;
    if (context.has_output(2)) {
      context.output(2).mutable_values<std::uint8_t>()[0] = static_cast<std::uint8_t>(q.zero);
    }
    return {};
  }

 private:
  /// Least and greatest do not depend on the order in which parts are merged.
  static kernels::MinMax range(KernelContext& context, const float* x, std::int64_t count) {
    constexpr std::size_t kThreads_max = 64;
    const auto& table = kernels::quantize_table();
    if (context.pool().thread_count() > static_cast<int>(kThreads_max) || count <= kChunk) {
      return table.range_with_zero(x, count);
    }
    std::array<kernels::MinMax, kThreads_max> parts{};
    context.pool().parallel_for(count, kChunk, [&](std::int64_t begin, std::int64_t end) {
      const kernels::MinMax part = table.range_with_zero(x + begin, end - begin);
      auto& own = parts[static_cast<std::size_t>(ThreadPool::thread_index())];
      own = {std::min(own.min, part.min), std::max(own.max, part.max)};
    });
    kernels::MinMax whole;
    for (const kernels::MinMax& part : parts) {
      whole = {std::min(whole.min, part.min), std::max(whole.max, part.max)};
    }
    return whole;
  }
};

Result<std::unique_ptr<Kernel>> create_dynamic(const KernelRequest& request) {
  if (request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<DynamicQuantizeKernel>(request));
}

/// QLinearAdd of tensors of one shape, with the Relu that passes put into it.
class QuantizedAddKernel final : public NodeKernel {
 public:
  explicit QuantizedAddKernel(const KernelRequest& request)
      : NodeKernel(request),
        has_relu_(request.attributes().get_string("activation", "") == "Relu") {}

  Status run(KernelContext& context) const override {
    const Tensor& a = context.input(0);
    const Tensor& b = context.input(3);
    Tensor& y = context.output(0);
    if (a.shape() != b.shape()) {
      return failure(Code::InvalidArgument, "QLinearAdd expects one shape, but found {} and {}",
                     a.shape().to_string(), b.shape().to_string());
    }
    kernels::QuantizedSum q{quantization(context, 1), quantization(context, 4),
                            quantization(context, 6)};
    if (has_relu_) q.low = q.y.zero;
    const auto& table = kernels::quantize_table();
    context.pool().parallel_for(
        y.element_count(), kChunk, [&](std::int64_t begin, std::int64_t end) {
          if (y.dtype() == DType::UInt8) {
            table.add_u8(a.values<std::uint8_t>().data() + begin,
                         b.values<std::uint8_t>().data() + begin, end - begin, q,
                         y.mutable_values<std::uint8_t>().data() + begin);
          } else {
            table.add_s8(a.values<std::int8_t>().data() + begin,
                         b.values<std::int8_t>().data() + begin, end - begin, q,
                         y.mutable_values<std::int8_t>().data() + begin);
          }
        });
    return {};
  }

 private:
  static kernels::Quantization quantization(const KernelContext& context, std::size_t scale) {
    return {context.input(scale).values<float>()[0], zero_of(context, scale + 1)};
  }

  bool has_relu_;
};

Result<std::unique_ptr<Kernel>> create_add(const KernelRequest& request) {
  const Shape* a = request.shape(0);
  const Shape* b = request.shape(3);
  if (a == nullptr || b == nullptr || !(*a == *b)) return std::unique_ptr<Kernel>();
  for (const std::size_t i : {1, 2, 4, 5, 6, 7}) {
    const Shape* shape = request.shape(i);
    if (request.has_input(i) && (shape == nullptr || shape->element_count() != 1)) {
      return std::unique_ptr<Kernel>();
    }
  }
  return std::unique_ptr<Kernel>(std::make_unique<QuantizedAddKernel>(request));
}

constexpr KernelRow kRows[] = {
    {"", "QuantizeLinear", 10, create_quantize},
    {"com.microsoft", "QuantizeLinear", 1, create_quantize},
    {"", "DequantizeLinear", 10, create_dequantize},
    {"com.microsoft", "DequantizeLinear", 1, create_dequantize},
    {"", "DynamicQuantizeLinear", 11, create_dynamic},
    {"com.microsoft", "QLinearAdd", 1, create_add},
    {"ai.sardonyx", "QLinearAdd", 1, create_add},
};

}  // namespace

std::span<const KernelRow> quantize_kernels() { return kRows; }

}  // namespace sardonyx
