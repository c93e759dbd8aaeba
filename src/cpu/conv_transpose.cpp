#include "kernels/conv_transpose.h"

#include <algorithm>

#include "cpu/conv_shape.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/registry.h"
#include "cpu/scratch.h"
#include "kernels/transpose.h"
#include "ops/convolve.h"

namespace sardonyx {

namespace {

const float* floats(const KernelContext& context, std::size_t i) {
  return context.has_input(i) ? context.input(i).values<float>().data() : nullptr;
}

/// Transposed convolution. The product runs over channels-last tensors; with channels first both
/// ends are transposed in scratch.
class ConvTransposeKernel final : public NodeKernel {
 public:
  ConvTransposeKernel(const KernelRequest& request, bool is_channels_last)
      : NodeKernel(request),
        is_channels_last_(is_channels_last),
        thread_count_(request.thread_count()) {}

  Status pack(const KernelRequest& request) {
    const Tensor* weight = request.constant(1);
    if (weight == nullptr || weight->element_count() == 0) return {};
    // The layout of packed weights does not depend on the image: a small one stands in for it.
    Shape x = Shape::filled(weight->rank(), 16);
    x[1] = weight->dim(0);
    const auto sizes = conv_transpose_sizes(attributes(), x, weight->shape());
    if (!sizes.ok() || attributes().has("output_shape")) return {};
    const auto plan = kernels::plan_conv_transpose(kernel_shape(*sizes));
    const auto bytes =
        static_cast<std::size_t>(kernels::conv_transpose_packed_floats(plan)) * sizeof(float);
    if (!request.weights().may_pack(bytes)) return {};
    std::string layout = "packed:convtranspose:" + std::string(isa_name(plan.isa));
    for (const auto* list :
         {&plan.shape.kernel, &plan.shape.stride, &plan.shape.dilation, &plan.shape.pad}) {
      for (const std::int64_t number : *list) layout += "," + std::to_string(number);
    }
    layout += "," + std::to_string(plan.shape.groups);
    packed_floats_ = kernels::conv_transpose_packed_floats(plan);
    const auto* source = weight->values<float>().data();
    packed_ = request.weights().pack(*weight, layout, bytes, [plan, source](std::byte* target) {
      kernels::pack_conv_transpose_weights(plan, source, reinterpret_cast<float*>(target));
    });
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const auto sizes = sizes_of(*types[0]->shape, *types[1]->shape);
    if (!sizes.ok()) return 0;
    const auto plan = kernels::plan_conv_transpose(kernel_shape(*sizes));
    return x_bytes(*sizes) + y_bytes(*sizes) +
           static_cast<std::size_t>(thread_count_) * each_bytes(plan);
  }

  Status run(KernelContext& context) const override {
    SDX_ASSIGN(const ConvSizes sizes, sizes_of(context.input(0).shape(), context.input(1).shape()));
    if (context.output(0).element_count() == 0) return {};
    const auto plan = kernels::plan_conv_transpose(kernel_shape(sizes));
    kernels::ConvTransposeArgs args;
    args.x = floats(context, 0);
    args.x_stride = sizes.in_channels;
    const bool is_packed =
        packed_ != nullptr && kernels::conv_transpose_packed_floats(plan) == packed_floats_;
    args.packed = is_packed ? reinterpret_cast<const float*>(packed_->bytes.get()) : nullptr;
    args.source = floats(context, 1);
    args.bias = floats(context, 2);
    args.y = context.output(0).mutable_values<float>().data();
    args.y_stride = sizes.out_channels;
    if (!is_channels_last_) {
      auto* x = reinterpret_cast<float*>(context.scratch);
      move(sizes.batch, sizes.in_channels, sizes.window.input_size(), args.x, x);
      args.x = x;
      args.y = reinterpret_cast<float*>(context.scratch + x_bytes(sizes));
    }
    run_units(context, plan, args, context.scratch + x_bytes(sizes) + y_bytes(sizes));
    if (!is_channels_last_) {
      move(sizes.batch, sizes.window.output_size(), sizes.out_channels, args.y,
           context.output(0).mutable_values<float>().data());
    }
    return {};
  }

 private:
  Result<ConvSizes> sizes_of(const Shape& x, const Shape& weight) const {
    return conv_transpose_sizes(attributes(), is_channels_last_ ? channels_first_shape(x) : x,
                                weight);
  }
  std::size_t x_bytes(const ConvSizes& sizes) const {
    return is_channels_last_
               ? 0
               : aligned_bytes(sizes.batch * sizes.in_channels * sizes.window.input_size() * 4);
  }
  std::size_t y_bytes(const ConvSizes& sizes) const {
    return is_channels_last_
               ? 0
               : aligned_bytes(sizes.batch * sizes.out_channels * sizes.window.output_size() * 4);
  }
  static std::size_t each_bytes(const kernels::ConvTransposePlan& plan) {
    return aligned_bytes(std::max(plan.source_scratch_bytes, plan.scratch_bytes));
  }

  /// [batch][rows][columns] to [batch][columns][rows].
  static void move(std::int64_t batch, std::int64_t rows, std::int64_t columns, const float* from,
                   float* to) {
    for (std::int64_t n = 0; n < batch; ++n) {
      kernels::transpose_matrix(from + n * rows * columns, columns * 4, rows, columns, 4,
                                to + n * rows * columns, rows * 4);
    }
  }

  void run_units(KernelContext& context, const kernels::ConvTransposePlan& plan,
                 const kernels::ConvTransposeArgs& args, std::byte* scratch) const {
    const std::size_t each = each_bytes(plan);
    const kernels::ConvShape& shape = plan.shape;
    const double flops = 2.0 * static_cast<double>(shape.batch * shape.in_pixels() * shape.taps()) *
                         static_cast<double>(shape.in_channels * shape.group_out());
    // Weights that are packed on the way are packed once a panel: units of one panel stay together.
    const bool by_panels = args.packed == nullptr && plan.panels >= 2 * thread_count_;
    const std::int64_t units = by_panels ? plan.panels : plan.units;
    const double per_unit =
        std::max(1.0, flops / static_cast<double>(std::max<std::int64_t>(1, units)));
    const std::int64_t grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(2e5 / per_unit));
    context.pool().parallel_for(units, grain, [&](std::int64_t begin, std::int64_t end) {
      std::byte* own = scratch + each * static_cast<std::size_t>(ThreadPool::thread_index());
      if (by_panels) {
        kernels::conv_transpose_nhwc(plan, args, 0, plan.units, begin, end, own);
      } else {
        kernels::conv_transpose_nhwc(plan, args, begin, end, 0, plan.panels, own);
      }
    });
  }

  bool is_channels_last_;
  int thread_count_;
  std::int64_t packed_floats_ = 0;
  std::shared_ptr<const PackedBlob> packed_;
};

Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  const Shape* weight = request.shape(1);
  const Shape* x = request.shape(0);
  const bool fits = request.dtype(0) == DType::Float32 && request.dtype(1) == DType::Float32 &&
                    weight != nullptr && weight->rank() >= 3 && weight->rank() <= 2 + kSpatialMax &&
                    x != nullptr && x->rank() == weight->rank();
  if (!fits) return std::unique_ptr<Kernel>();
  auto kernel =
      std::make_unique<ConvTransposeKernel>(request, request.node().domain == "ai.sardonyx");
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

constexpr KernelRow kRows[] = {
    {"ai.sardonyx", "ConvTranspose", 1, create},
    {"", "ConvTranspose", 1, create},
};

}  // namespace

std::span<const KernelRow> conv_transpose_kernels() { return kRows; }

}  // namespace sardonyx
