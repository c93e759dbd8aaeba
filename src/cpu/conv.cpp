#include "kernels/conv.h"

#include <algorithm>
#include <optional>

#include "cpu/activation_of.h"
#include "cpu/conv_shape.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/registry.h"
#include "kernels/depthwise.h"
#include "kernels/winograd.h"
#include "ops/convolve.h"

namespace sardonyx {

namespace {

/// Whether the depthwise kernels serve it: one channel a group, at most two spatial axes, no sum.
bool is_depthwise(const ConvSizes& sizes, bool has_sum) {
  return sizes.groups > 1 && sizes.groups == sizes.in_channels &&
         sizes.out_channels == sizes.in_channels && sizes.window.rank <= 2 && !has_sum;
}

kernels::DepthwiseShape depthwise_shape(const kernels::ConvShape& shape) {
  kernels::DepthwiseShape result;
  result.batch = shape.batch;
  result.channels = shape.in_channels;
  result.in_h = shape.in[1];
  result.in_w = shape.in[2];
  result.out_h = shape.out[1];
  result.out_w = shape.out[2];
  result.kernel_h = shape.kernel[1];
  result.kernel_w = shape.kernel[2];
  result.stride_h = shape.stride[1];
  result.stride_w = shape.stride[2];
  result.dilation_h = shape.dilation[1];
  result.dilation_w = shape.dilation[2];
  result.pad_top = shape.pad[1];
  result.pad_left = shape.pad[2];
  return result;
}

const float* floats(const KernelContext& context, std::size_t i) {
  return context.has_input(i) ? context.input(i).values<float>().data() : nullptr;
}

/// Units per chunk so that each is worth a hand-over between threads.
std::int64_t grain_for(std::int64_t units, double flops) {
  constexpr double kChunk_flops = 2e5;
  if (units <= 0) return 1;
  const double per_unit = std::max(1.0, flops / static_cast<double>(units));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(kChunk_flops / per_unit));
}

double conv_flops(const kernels::ConvShape& s) {
  return 2.0 * static_cast<double>(s.batch * s.out_pixels() * s.out_channels) *
         static_cast<double>(s.taps() * s.group_in());
}

bool is_float_conv(const KernelRequest& request) {
  const Shape* weight = request.shape(1);
  return request.dtype(0) == DType::Float32 && request.dtype(1) == DType::Float32 &&
         weight != nullptr && weight->rank() >= 3 && weight->rank() <= 2 + kSpatialMax;
}

/// Convolution with channels last; weights packed when there is room for them.
class ConvNhwcKernel final : public NodeKernel {
 public:
  ConvNhwcKernel(const KernelRequest& request, kernels::Activation activation)
      : NodeKernel(request),
        activation_(activation),
        has_sum_(request.has_input(3)),
        thread_count_(request.thread_count()) {}

  Status pack(const KernelRequest& request) {
    const Tensor* weight = request.constant(1);
    if (weight == nullptr || !weight->shape().is_static()) return {};
    // The layout of packed weights does not depend on the image: a small one stands in for it.
    const auto image = stand_in(*weight);
    if (!image) return {};
    const auto fitted = conv_sizes(attributes(), *image, weight->shape());
    if (!fitted.ok()) return {};
    const ConvSizes& sizes = *fitted;
    const kernels::ConvShape shape = kernel_shape(sizes);
    const auto* source = weight->values<float>().data();
    SDX_TRY(pack_winograd(request, *weight));
    if (winograd_ != nullptr) return {};
    if (is_depthwise(sizes, request.has_input(3))) {
      const std::size_t bytes = weight->byte_size();
      const auto fill = [source, shape](std::byte* target) {
        kernels::pack_depthwise_weights(source, shape.in_channels, shape.taps(),
                                        reinterpret_cast<float*>(target));
      };
      packed_ = request.weights().pack(*weight, "packed:depthwise", bytes, fill);
      return {};
    }
    const kernels::ConvPlan plan = kernels::plan_conv(shape);
    const std::size_t bytes =
        static_cast<std::size_t>(kernels::conv_packed_floats(plan)) * sizeof(float);
    if (!request.weights().may_pack(bytes)) return {};
    const std::string layout = fmt::format("packed:conv:{}:{}x{}x{}", isa_name(plan.isa),
                                           shape.groups, shape.group_out(), shape.taps());
    packed_ = request.weights().pack(*weight, layout, bytes, [plan, source](std::byte* target) {
      kernels::pack_conv_weights(plan, source, 0, plan.panels, reinterpret_cast<float*>(target));
    });
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const auto sizes =
        conv_sizes(attributes(), channels_first_shape(*types[0]->shape), *types[1]->shape);
    if (!sizes.ok()) return 0;
    const kernels::ConvShape shape = kernel_shape(*sizes);
    if (winograd_ != nullptr) {
      return static_cast<std::size_t>(thread_count_) *
             winograd_scratch_bytes(kernels::plan_winograd(shape));
    }
    if (is_depthwise(*sizes, has_sum_)) {
      return packed_ != nullptr ? 0
                                : static_cast<std::size_t>(shape.in_channels * shape.taps()) * 4;
    }
    return static_cast<std::size_t>(thread_count_) *
           thread_scratch_bytes(kernels::plan_conv(shape));
  }

  bool reads(std::size_t input) const override {
    return input != 1 || (packed_ == nullptr && winograd_ == nullptr);
  }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    SDX_ASSIGN(const ConvSizes sizes,
               conv_sizes(attributes(), channels_first_shape(x.shape()), context.input(1).shape()));
    const kernels::ConvShape shape = kernel_shape(sizes);
    if (context.output(0).element_count() == 0) return {};
    if (is_depthwise(sizes, has_sum_)) {
      run_depthwise(context, shape);
      return {};
    }
    kernels::ConvArgs args;
    args.x = floats(context, 0);
    args.x_stride = shape.in_channels;
    args.packed =
        packed_ != nullptr ? reinterpret_cast<const float*>(packed_->bytes.get()) : nullptr;
    args.source = floats(context, 1);
    args.y = context.output(0).mutable_values<float>().data();
    args.y_stride = shape.out_channels;
    args.epilogue.bias = floats(context, 2);
    args.epilogue.residual = floats(context, 3);
    args.epilogue.residual_stride = shape.out_channels;
    args.epilogue.activation = activation_;
    if (winograd_ != nullptr) {
      run_winograd(context, kernels::plan_winograd(shape), args);
    } else {
      run_tiles(context, kernels::plan_conv(shape), args);
    }
    return {};
  }

 private:
  /// The shape of an image that the kernel fits into, or nothing when it is out of all proportion.
  std::optional<Shape> stand_in(const Tensor& weight) const {
    constexpr Dim kUsual = 64;
    constexpr Dim kAxis_max = 1 << 20;
    const auto& dilations = attributes().get_ints("dilations");
    Shape x{1, weight.dim(1) * attributes().get_int("group", 1)};
    Dim pixels = 1;
    for (int axis = 2; axis < weight.rank(); ++axis) {
      const auto i = static_cast<std::size_t>(axis - 2);
      const Dim dilation = i < dilations.size() ? dilations[i] : 1;
      if (dilation > kAxis_max || weight.dim(axis) > kAxis_max) return std::nullopt;
      x.push_back(std::max(kUsual, (weight.dim(axis) - 1) * dilation + 1));
      if (x[axis] > kAxis_max) return std::nullopt;
      pixels *= x[axis];
      if (pixels > kAxis_max) return std::nullopt;
    }
    return x;
  }

  /// Packs for Winograd where that is faster and takes a small part of the room that is left:
  /// its weights are four times as large as the model's.
  Status pack_winograd(const KernelRequest& request, const Tensor& weight) {
    constexpr std::size_t kShareOfRoom = 4;
    constexpr Dim kTypical = 64;
    const Shape* known = request.shape(0);
    if (known == nullptr || known->rank() != weight.rank()) return {};
    Shape x = channels_first_shape(*known);
    for (int i = 0; i < x.rank(); ++i) {
      if (x[i] < 0) x[i] = i == 0 ? 1 : kTypical;
    }
    const auto sizes = conv_sizes(attributes(), x, weight.shape());
    if (!sizes.ok()) return {};
    const kernels::ConvShape shape = kernel_shape(*sizes);
    if (!kernels::winograd_pays(shape)) return {};
    const kernels::WinogradPlan plan = kernels::plan_winograd(shape);
    const std::size_t bytes =
        static_cast<std::size_t>(kernels::winograd_packed_floats(plan)) * sizeof(float);
    if (!request.weights().may_pack_spare(kShareOfRoom * bytes)) return {};
    const std::string layout =
        fmt::format("packed:winograd:{}:{}", isa_name(plan.isa), shape.out_channels);
    const auto* source = weight.values<float>().data();
    const auto fill = [plan, source](std::byte* target) {
      kernels::pack_winograd_weights(plan, source, 0, plan.panels,
                                     reinterpret_cast<float*>(target));
    };
    winograd_ = request.weights().pack_spare(weight, layout, bytes, fill);
    return {};
  }

  static std::size_t winograd_scratch_bytes(const kernels::WinogradPlan& plan) {
    return static_cast<std::size_t>((plan.scratch_bytes + 63) / 64 * 64);
  }

  void run_winograd(KernelContext& context, const kernels::WinogradPlan& plan,
                    kernels::ConvArgs args) const {
    args.packed = reinterpret_cast<const float*>(winograd_->bytes.get());
    const auto scratch = [&] {
      return context.scratch +
             winograd_scratch_bytes(plan) * static_cast<std::size_t>(ThreadPool::thread_index());
    };
    if (plan.units < thread_count_ && plan.panels > 1) {
      // Each panel repeats the transform of the input, so no more parts than threads.
      const std::int64_t grain = (plan.panels + thread_count_ - 1) / thread_count_;
      context.pool().parallel_for(plan.panels, grain, [&](std::int64_t begin, std::int64_t end) {
        kernels::conv_winograd(plan, args, 0, plan.units, begin, end, scratch());
      });
      return;
    }
    context.pool().parallel_for(plan.units, 1, [&](std::int64_t begin, std::int64_t end) {
      kernels::conv_winograd(plan, args, begin, end, 0, plan.panels, scratch());
    });
  }

  std::size_t thread_scratch_bytes(const kernels::ConvPlan& plan) const {
    const std::int64_t bytes = packed_ != nullptr ? plan.scratch_bytes : plan.source_scratch_bytes;
    return static_cast<std::size_t>((bytes + 63) / 64 * 64);
  }

  void run_tiles(KernelContext& context, const kernels::ConvPlan& plan,
                 const kernels::ConvArgs& args) const {
    const std::size_t each = thread_scratch_bytes(plan);
    const auto scratch = [&] {
      return context.scratch + each * static_cast<std::size_t>(ThreadPool::thread_index());
    };
    const double flops = conv_flops(plan.shape);
    // Few tiles of many channels are split by panels, and weights that must be packed on the way
    // are better packed once a panel than once a tile.
    const bool by_panels = plan.tiles < 2 * thread_count_ || args.packed == nullptr;
    if (by_panels && plan.panels > 1) {
      context.pool().parallel_for(
          plan.panels, grain_for(plan.panels, flops), [&](std::int64_t begin, std::int64_t end) {
            kernels::conv_nhwc(plan, args, 0, plan.tiles, begin, end, scratch());
          });
      return;
    }
    context.pool().parallel_for(
        plan.tiles, grain_for(plan.tiles, flops), [&](std::int64_t begin, std::int64_t end) {
          kernels::conv_nhwc(plan, args, begin, end, 0, plan.panels, scratch());
        });
  }

  void run_depthwise(KernelContext& context, const kernels::ConvShape& shape) const {
    kernels::DepthwiseArgs args;
    args.shape = depthwise_shape(shape);
    args.x = floats(context, 0);
    if (packed_ != nullptr) {
      args.weights = reinterpret_cast<const float*>(packed_->bytes.get());
    } else {
      auto* scratch = reinterpret_cast<float*>(context.scratch);
      kernels::pack_depthwise_weights(floats(context, 1), shape.in_channels, shape.taps(), scratch);
      args.weights = scratch;
    }
    args.bias = floats(context, 2);
    args.y = context.output(0).mutable_values<float>().data();
    args.x_stride = args.y_stride = shape.in_channels;
    args.activation = activation_;
    // Rows are computed in pairs.
    constexpr std::int64_t kRows = 4;
    const std::int64_t rows = shape.batch * shape.out[1];
    const std::int64_t grain = (grain_for(rows, conv_flops(shape)) + kRows - 1) / kRows * kRows;
    context.pool().parallel_for(rows, grain, [&](std::int64_t begin, std::int64_t end) {
      kernels::depthwise_table().nhwc_rows(args, begin, end);
    });
  }

  kernels::Activation activation_;
  bool has_sum_;
  int thread_count_;
  std::shared_ptr<const PackedBlob> packed_;
  std::shared_ptr<const PackedBlob> winograd_;  // instead of packed_
};

Result<std::unique_ptr<Kernel>> create_nhwc(const KernelRequest& request) {
  const auto activation = activation_of(request.attributes());
  if (!is_float_conv(request) || !activation) return std::unique_ptr<Kernel>();
  auto kernel = std::make_unique<ConvNhwcKernel>(request, *activation);
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

/// Convolution with channels first: weights are read as they are in the model.
class ConvNchwKernel final : public NodeKernel {
 public:
  ConvNchwKernel(const KernelRequest& request, kernels::Activation activation)
      : NodeKernel(request),
        activation_(activation),
        has_sum_(request.has_input(3)),
        thread_count_(request.thread_count()) {}

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const auto sizes = conv_sizes(attributes(), *types[0]->shape, *types[1]->shape);
    if (!sizes.ok()) return 0;
    const kernels::ConvShape shape = kernel_shape(*sizes);
    if (is_depthwise(*sizes, has_sum_)) return 0;
    return static_cast<std::size_t>(thread_count_) * each_bytes(kernels::plan_conv_nchw(shape));
  }

  Status run(KernelContext& context) const override {
    SDX_ASSIGN(const ConvSizes sizes,
               conv_sizes(attributes(), context.input(0).shape(), context.input(1).shape()));
    const kernels::ConvShape shape = kernel_shape(sizes);
    if (context.output(0).element_count() == 0) return {};
    float* y = context.output(0).mutable_values<float>().data();
    if (is_depthwise(sizes, has_sum_)) {
      kernels::DepthwiseArgs args;
      args.shape = depthwise_shape(shape);
      args.x = floats(context, 0);
      args.weights = floats(context, 1);
      args.bias = floats(context, 2);
      args.y = y;
      args.activation = activation_;
      const std::int64_t planes = shape.batch * shape.in_channels;
      context.pool().parallel_for(planes, grain_for(planes, conv_flops(shape)),
                                  [&](std::int64_t begin, std::int64_t end) {
                                    kernels::depthwise_table().nchw_planes(args, begin, end);
                                  });
      return {};
    }
    const kernels::ConvNchwPlan plan = kernels::plan_conv_nchw(shape);
    kernels::ConvNchwArgs args;
    args.x = floats(context, 0);
    args.weights = floats(context, 1);
    args.bias = floats(context, 2);
    args.residual = floats(context, 3);
    args.y = y;
    args.activation = activation_;
    const std::size_t each = each_bytes(plan);
    context.pool().parallel_for(
        plan.tiles, grain_for(plan.tiles, conv_flops(shape)),
        [&](std::int64_t begin, std::int64_t end) {
          const auto index = static_cast<std::size_t>(ThreadPool::thread_index());
          kernels::conv_nchw(plan, args, begin, end, context.scratch + each * index);
        });
    return {};
  }

 private:
  static std::size_t each_bytes(const kernels::ConvNchwPlan& plan) {
    return static_cast<std::size_t>((plan.scratch_bytes + 63) / 64 * 64);
  }

  kernels::Activation activation_;
  bool has_sum_;
  int thread_count_;
};

Result<std::unique_ptr<Kernel>> create_nchw(const KernelRequest& request) {
  const auto activation = activation_of(request.attributes());
  if (!is_float_conv(request) || !activation) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<ConvNchwKernel>(request, *activation));
}

constexpr KernelRow kRows[] = {
    {"com.microsoft", "NhwcFusedConv", 1, create_nhwc},
    {"com.microsoft", "NhwcConv", 1, create_nhwc},
    {"", "Conv", 1, create_nchw},
    {"com.microsoft", "FusedConv", 1, create_nchw},
};

}  // namespace

std::span<const KernelRow> conv_kernels() { return kRows; }

}  // namespace sardonyx
