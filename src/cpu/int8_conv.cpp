#include <algorithm>
#include <array>
#include <cstring>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/registry.h"
#include "kernels/int8_gemm.h"
#include "kernels/transpose.h"
#include "ops/convolve.h"

namespace sardonyx {

namespace {

bool is_8_bit(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

std::int32_t element(const Tensor& tensor, std::int64_t i) {
  const auto bits = tensor.values<std::uint8_t>()[static_cast<std::size_t>(i)];
  return tensor.dtype() == DType::Int8 ? static_cast<std::int8_t>(bits) : bits;
}

std::size_t aligned(std::int64_t bytes) { return (static_cast<std::size_t>(bytes) + 63) / 64 * 64; }

/// Where the parts of the scratch memory begin.
struct Scratch {
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t padding = 0;
  std::size_t zeros = 0;
  std::size_t scales = 0;
  std::size_t threads = 0;
  std::size_t each = 0;
  std::size_t total = 0;
};

/// Convolutions of 8-bit integers, exact: ConvInteger (int32 out) and QLinearConv (8 bits out), by
/// an indirect product over unsigned channels-last pixels.
class Int8ConvKernel final : public NodeKernel {
 public:
  /// Positions of the inputs.
  struct Form {
    std::size_t weight = 1;
    std::size_t x_zero = 2;
    std::size_t weight_zero = 3;
    bool is_quantized = false;
  };

  Int8ConvKernel(const KernelRequest& request, Form form)
      : NodeKernel(request),
        form_(form),
        is_channels_last_(request.attributes().get_int("channels_last", 0) != 0),
        has_relu_(request.attributes().get_string("activation", "") == "Relu"),
        thread_count_(request.thread_count()) {}

  Status pack(const KernelRequest& request) {
    const Tensor& weight = *request.constant(form_.weight);
    const auto& table = kernels::int8_gemm_table();
    groups_ = attributes().get_int("group", 1);
    taps_ = weight.shape().product(2, weight.rank());
    depth_ = weight.dim(1);
    columns_ = weight.dim(0) / groups_;
    group_bytes_ = kernels::int8_packed_bytes(table, columns_, taps_, depth_);
    weight_signed_ = weight.dtype() == DType::Int8;
    const auto bytes = static_cast<std::size_t>(group_bytes_ * groups_);
    const std::string layout = fmt::format("packed:int8conv:{}:{}x{}x{}x{}", isa_name(table.isa),
                                           groups_, columns_, depth_, taps_);
    SDX_ASSIGN(packed_, request.weights().pack(weight, layout, bytes, [&](std::byte* target) {
      kernels::Int8Source source;
      source.b_signed = weight_signed_;
      source.columns = columns_;
      source.taps = taps_;
      source.depth = depth_;
      source.column_stride = depth_ * taps_;
      source.depth_stride = taps_;
      source.tap_stride = 1;
      const std::int64_t panels = (columns_ + table.tile_columns - 1) / table.tile_columns;
      for (std::int64_t group = 0; group < groups_; ++group) {
        source.b = weight.data() + group * columns_ * depth_ * taps_;
        kernels::int8_pack(table, source, 0, panels, target + group * group_bytes_);
      }
    }));
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    auto sizes = sizes_of(*types[0]->shape, *types[form_.weight]->shape);
    return sizes.ok() ? lay_out(*sizes).total : 0;
  }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    SDX_ASSIGN(const ConvSizes sizes, sizes_of(x.shape(), context.input(form_.weight).shape()));
    const Scratch scratch = lay_out(sizes);
    const auto* pixels =
        reinterpret_cast<const std::uint8_t*>(prepare_input(context, x, sizes, scratch));
    kernels::Int8GemmArgs args;
    args.taps = taps_;
    args.depth = depth_;
    args.columns = columns_;
    args.a_padding = reinterpret_cast<const std::uint8_t*>(context.scratch + scratch.padding);
    const std::int64_t size = sizes.window.output_size();
    std::byte* result = is_channels_last_ ? y.mutable_data() : context.scratch + scratch.y;
    args.c_stride = sizes.out_channels;
    set_epilogue(context, sizes, scratch, args.epilogue);
    run_tiles(context, sizes, scratch, pixels, result, args);
    if (!is_channels_last_) {
      for (std::int64_t n = 0; n < sizes.batch; ++n) {
        const std::int64_t bytes = size * sizes.out_channels * element_bytes();
        kernels::transpose_matrix(result + n * bytes, sizes.out_channels * element_bytes(), size,
                                  sizes.out_channels, element_bytes(), y.mutable_data() + n * bytes,
                                  size * element_bytes());
      }
    }
    return {};
  }

 private:
  std::int64_t element_bytes() const { return form_.is_quantized ? 1 : 4; }

  Result<ConvSizes> sizes_of(const Shape& x, const Shape& weight) const {
    return conv_sizes(attributes(), is_channels_last_ ? channels_first_shape(x) : x, weight);
  }

  Scratch lay_out(const ConvSizes& sizes) const {
    const std::int64_t channels = sizes.in_channels;
    const std::int64_t tile = kernels::int8_gemm_table().tile_rows;
    Scratch scratch;
    scratch.y = scratch.x + aligned(sizes.batch * sizes.window.input_size() * channels);
    const std::int64_t out_bytes = is_channels_last_ ? 0
                                                     : sizes.batch * sizes.window.output_size() *
                                                           sizes.out_channels * element_bytes();
    scratch.padding = scratch.y + aligned(out_bytes);
    scratch.zeros = scratch.padding + aligned(channels + 64);
    scratch.scales = scratch.zeros + aligned(sizes.out_channels * 4);
    scratch.threads = scratch.scales + aligned(sizes.out_channels * 4);
    scratch.each = aligned(taps_ * tile * 8) + aligned(tile * 4);
    scratch.total = scratch.threads + scratch.each * static_cast<std::size_t>(thread_count_);
    return scratch;
  }

  /// Unsigned pixels with channels last: x itself when it is so already.
  const std::byte* prepare_input(KernelContext& context, const Tensor& x, const ConvSizes& sizes,
                                 const Scratch& scratch) const {
    const bool is_signed = x.dtype() == DType::Int8;
    const std::int64_t size = sizes.window.input_size();
    std::byte* to = context.scratch + scratch.x;
    if (is_channels_last_) {
      if (!is_signed) return x.data();
      kernels::int8_shift_sign(x.data(), to, x.element_count());
      return to;
    }
    for (std::int64_t n = 0; n < sizes.batch; ++n) {
      const std::int64_t bytes = size * sizes.in_channels;
      kernels::transpose_matrix(x.data() + n * bytes, size, sizes.in_channels, size, 1,
                                to + n * bytes, sizes.in_channels);
    }
    if (is_signed) kernels::int8_shift_sign(to, to, x.element_count());
    return to;
  }

  void set_epilogue(KernelContext& context, const ConvSizes& sizes, const Scratch& scratch,
                    kernels::Int8Epilogue& epilogue) const {
    const Tensor& x = context.input(0);
    std::int32_t zero =
        context.has_input(form_.x_zero) ? element(context.input(form_.x_zero), 0) : 0;
    if (x.dtype() == DType::Int8) zero += 128;
    epilogue.a_zero = zero;
    std::memset(context.scratch + scratch.padding, zero,
                static_cast<std::size_t>(sizes.in_channels) + 64);
    auto* zeros = reinterpret_cast<std::int32_t*>(context.scratch + scratch.zeros);
    bool any_zero = false;
    if (context.has_input(form_.weight_zero)) {
      const Tensor& given = context.input(form_.weight_zero);
      const bool is_one = given.element_count() == 1;
      for (std::int64_t i = 0; i < sizes.out_channels; ++i) {
        zeros[i] = element(given, is_one ? 0 : i);
        any_zero = any_zero || zeros[i] != 0;
      }
    }
    epilogue.b_zeros = any_zero ? zeros : nullptr;
    if (!form_.is_quantized) return;
    const float x_scale = context.input(1).values<float>()[0];
    const auto w_scale = context.input(4).values<float>();
    const float y_scale = context.input(6).values<float>()[0];
    auto* scales = reinterpret_cast<float*>(context.scratch + scratch.scales);
    for (std::int64_t i = 0; i < sizes.out_channels; ++i) {
      const float own = w_scale[w_scale.size() == 1 ? 0 : static_cast<std::size_t>(i)];
      scales[i] = x_scale * own / y_scale;
    }
    epilogue.scale = scales;
    epilogue.scale_per_column = true;
    const bool is_signed = context.output(0).dtype() == DType::Int8;
    epilogue.output = is_signed ? kernels::Int8Output::S8 : kernels::Int8Output::U8;
    epilogue.y_zero = element(context.input(7), 0);
    epilogue.low = is_signed ? -128 : 0;
    epilogue.high = is_signed ? 127 : 255;
    if (has_relu_) epilogue.low = std::max(epilogue.low, epilogue.y_zero);
    if (context.has_input(8)) {
      epilogue.bias = context.input(8).values<std::int32_t>().data();
    }
  }

  void run_tiles(KernelContext& context, const ConvSizes& sizes, const Scratch& scratch,
                 const std::uint8_t* pixels, std::byte* result,
                 const kernels::Int8GemmArgs& whole) const {
    const auto& table = kernels::int8_gemm_table();
    const std::int64_t rows = sizes.batch * sizes.window.output_size();
    const std::int64_t tiles = (rows + table.tile_rows - 1) / table.tile_rows;
    const double operations = 2.0 * static_cast<double>(table.tile_rows * sizes.out_channels) *
                              static_cast<double>(taps_ * depth_);
    const std::int64_t grain =
        std::max<std::int64_t>(1, static_cast<std::int64_t>(4e5 / operations));
    context.pool().parallel_for(tiles, grain, [&](std::int64_t begin, std::int64_t end) {
      std::byte* own = context.scratch + scratch.threads +
                       scratch.each * static_cast<std::size_t>(ThreadPool::thread_index());
      auto** pointers = reinterpret_cast<const std::uint8_t**>(own);
      auto* sums = reinterpret_cast<std::int32_t*>(own + aligned(taps_ * table.tile_rows * 8));
      for (std::int64_t tile = begin; tile < end; ++tile) {
        const std::int64_t first = tile * table.tile_rows;
        kernels::Int8GemmArgs args = whole;
        args.rows = std::min<std::int64_t>(table.tile_rows, rows - first);
        args.a = pointers;
        args.a_tap_stride = table.tile_rows;
        point(sizes, first, args.rows, pixels, args.a_padding, pointers, table.tile_rows);
        run_groups(sizes, first, args, sums, result);
      }
    });
  }

  void run_groups(const ConvSizes& sizes, std::int64_t first, kernels::Int8GemmArgs args,
                  std::int32_t* sums, std::byte* result) const {
    const auto& table = kernels::int8_gemm_table();
    const kernels::Int8Epilogue epilogue = args.epilogue;
    for (std::int64_t group = 0; group < groups_; ++group) {
      const std::int64_t column = group * columns_;
      args.a_offset = group * depth_;
      args.b = packed_->bytes.get() + group * group_bytes_;
      args.c = result + (first * sizes.out_channels + column) * element_bytes();
      args.epilogue = epilogue;
      if (epilogue.b_zeros != nullptr) args.epilogue.b_zeros = epilogue.b_zeros + column;
      if (epilogue.bias != nullptr) args.epilogue.bias = epilogue.bias + column;
      if (epilogue.scale != nullptr) args.epilogue.scale = epilogue.scale + column;
      if (kernels::int8_needs_row_sums(weight_signed_, args.epilogue.b_zeros, columns_)) {
        table.row_sums(args, sums);
        args.epilogue.row_sums = sums;
      }
      table.run(args);
    }
  }

  /// Pointers to the pixels under each tap of the output pixels [first, first + rows).
  void point(const ConvSizes& sizes, std::int64_t first, std::int64_t rows,
             const std::uint8_t* pixels, const std::uint8_t* padding, const std::uint8_t** pointers,
             std::int64_t stride) const {
    const Window& window = sizes.window;
    const std::int64_t out_size = window.output_size();
    const std::int64_t in_size = window.input_size();
    for (std::int64_t row = 0; row < rows; ++row) {
      const std::int64_t image = (first + row) / out_size;
      std::array<std::int64_t, kMaxSpatial> at{};
      std::int64_t rest = (first + row) % out_size;
      for (int i = window.rank - 1; i >= 0; --i) {
        at[static_cast<std::size_t>(i)] = rest % window[i].output;
        rest /= window[i].output;
      }
      for (std::int64_t tap = 0; tap < taps_; ++tap) {
        std::int64_t tap_rest = tap;
        std::int64_t offset = 0;
        std::int64_t scale = 1;
        bool inside = true;
        for (int i = window.rank - 1; i >= 0; --i) {
          const WindowAxis& axis = window[i];
          const std::int64_t k = tap_rest % axis.kernel;
          tap_rest /= axis.kernel;
          const std::int64_t position =
              at[static_cast<std::size_t>(i)] * axis.stride - axis.pad_begin + k * axis.dilation;
          inside = inside && position >= 0 && position < axis.input;
          offset += position * scale;
          scale *= axis.input;
        }
        pointers[tap * stride + row] =
            inside ? pixels + (image * in_size + offset) * sizes.in_channels : padding;
      }
    }
  }

  Form form_;
  bool is_channels_last_;
  bool has_relu_;
  int thread_count_;
  std::int64_t groups_ = 1;
  std::int64_t taps_ = 1;
  std::int64_t depth_ = 1;
  std::int64_t columns_ = 1;
  std::int64_t group_bytes_ = 0;
  bool weight_signed_ = true;
  std::shared_ptr<const PackedBlob> packed_;
};

bool has_one_element(const KernelRequest& request, std::size_t i) {
  if (!request.has_input(i)) return true;
  const Shape* shape = request.shape(i);
  return shape != nullptr && shape->element_count() == 1;
}

bool has_one_or(const KernelRequest& request, std::size_t i, Dim count) {
  if (has_one_element(request, i)) return true;
  const Shape* shape = request.shape(i);
  return shape != nullptr && shape->element_count() == count;
}

Result<std::unique_ptr<Kernel>> make(const KernelRequest& request, Int8ConvKernel::Form form) {
  const Tensor* weight = request.constant(form.weight);
  const Shape* x = request.shape(0);
  const bool fits = is_8_bit(request.dtype(0)) && weight != nullptr && is_8_bit(weight->dtype()) &&
                    weight->rank() >= 3 && weight->element_count() != 0 && x != nullptr &&
                    x->rank() == weight->rank() && has_one_element(request, form.x_zero) &&
                    has_one_or(request, form.weight_zero, weight->dim(0));
  if (!fits) return std::unique_ptr<Kernel>();
  const std::int64_t groups = request.attributes().get_int("group", 1);
  if (groups < 1 || weight->dim(0) % groups != 0) return std::unique_ptr<Kernel>();
  auto kernel = std::make_unique<Int8ConvKernel>(request, form);
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

Result<std::unique_ptr<Kernel>> create_integer(const KernelRequest& request) {
  return make(request, {});
}

Result<std::unique_ptr<Kernel>> create_quantized(const KernelRequest& request) {
  Int8ConvKernel::Form form;
  form.weight = 3;
  form.x_zero = 2;
  form.weight_zero = 5;
  form.is_quantized = true;
  const Tensor* weight = request.constant(3);
  const bool fits = weight != nullptr && has_one_element(request, 1) &&
                    has_one_or(request, 4, weight->dim(0)) && has_one_element(request, 6) &&
                    has_one_element(request, 7) && request.dtype(1) == DType::Float32;
  if (!fits) return std::unique_ptr<Kernel>();
  return make(request, form);
}

constexpr KernelRow kRows[] = {
    {"", "ConvInteger", 10, create_integer},
    {"", "QLinearConv", 10, create_quantized},
    {"com.microsoft", "QLinearConv", 1, create_quantized},
    {"ai.sardonyx", "QLinearConv", 1, create_quantized},
};

}  // namespace

std::span<const KernelRow> int8_conv_kernels() { return kRows; }

}  // namespace sardonyx
