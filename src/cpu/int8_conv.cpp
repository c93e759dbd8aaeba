#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/quantized.h"
#include "cpu/registry.h"
#include "cpu/scratch.h"
#include "cpu/window_rows.h"
#include "kernels/int8_gemm.h"
#include "kernels/transpose.h"

namespace sardonyx {

namespace {

/// Where the parts of the scratch memory begin.
struct Scratch {
  std::size_t x = 0;
  std::size_t y = 0;
  std::size_t zeros = 0;
  std::size_t scales = 0;
  std::size_t threads = 0;
  std::size_t each = 0;
  std::size_t total = 0;
};

/// How the product is cut into blocks of rows (output pixels) and columns (output channels), which
/// threads share.
struct Blocks {
  std::int64_t rows = 0;
  std::int64_t row_count = 0;
  std::int64_t columns = 0;
  std::int64_t column_count = 0;
  /// Of a row of copied windows; 0 where windows are single pixels, used where they are.
  std::int64_t row_bytes = 0;
};

/// Weights of a convolution as the model has them: [groups * columns, depth, taps].
struct Int8ConvWeight {
  std::int64_t groups = 1;
  std::int64_t columns = 1;
  std::int64_t depth = 1;
  std::int64_t taps = 1;
  std::int64_t packed_group_bytes = 0;
  bool is_signed = true;
};

/// Panels of one group, in which taps move before the depth.
void pack_group(const Int8ConvWeight& shape, const std::byte* weight, std::byte* target) {
  const auto& table = kernels::int8_gemm_table();
  kernels::Int8Source source;
  source.b_signed = shape.is_signed;
  source.depth = shape.taps * shape.depth;
  source.column_stride = source.depth;
  source.depth_stride = 1;
  std::vector<std::byte> turned(static_cast<std::size_t>(
      shape.taps == 1 ? 0
                      : std::min<std::int64_t>(table.tile_columns, shape.columns) * source.depth));
  for (std::int64_t column = 0; column < shape.columns; column += table.tile_columns) {
    source.columns = std::min<std::int64_t>(table.tile_columns, shape.columns - column);
    const std::byte* from = weight + column * source.depth;
    for (std::int64_t i = 0; shape.taps > 1 && i < source.columns; ++i) {
      kernels::transpose_matrix(from + i * source.depth, shape.taps, shape.depth, shape.taps, 1,
                                turned.data() + i * source.depth, shape.depth);
    }
    source.b = shape.taps > 1 ? turned.data() : from;
    kernels::int8_pack(
        table, source, 0, 1,
        target + kernels::int8_panel_offset(table, column / table.tile_columns, source.depth));
  }
}

void pack_groups(const Int8ConvWeight& shape, const std::byte* weight, std::byte* target) {
  for (std::int64_t group = 0; group < shape.groups; ++group) {
    pack_group(shape, weight + group * shape.columns * shape.depth * shape.taps,
               target + group * shape.packed_group_bytes);
  }
}

/// Convolutions of 8-bit integers, exact: ConvInteger (int32 out) and QLinearConv (8 bits out), as
/// products of unsigned channels-last windows, copied to rows block by block.
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
    weight_.groups = attributes().get_int("group", 1);
    weight_.taps = weight.shape().product(2, weight.rank());
    weight_.depth = weight.dim(1);
    weight_.columns = weight.dim(0) / weight_.groups;
    weight_.packed_group_bytes =
        kernels::int8_packed_bytes(table, weight_.columns, weight_.taps * weight_.depth);
    weight_.is_signed = weight.dtype() == DType::Int8;
    const auto bytes = static_cast<std::size_t>(weight_.packed_group_bytes * weight_.groups);
    const std::string layout =
        fmt::format("packed:int8conv:{}:{}x{}x{}x{}:{}", isa_name(table.isa), weight_.groups,
                    weight_.columns, weight_.taps, weight_.depth, weight_.is_signed ? "s" : "u");
    const auto fill = [shape = weight_, source = weight.data()](std::byte* target) {
      pack_groups(shape, source, target);
    };
    packed_ = request.weights().pack(weight, layout, bytes, fill);
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    auto sizes = sizes_of(*types[0]->shape, *types[form_.weight]->shape);
    return sizes.ok() ? lay_out(*sizes).total : 0;
  }

  bool reads(std::size_t input) const override { return input != form_.weight; }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    Tensor& y = context.output(0);
    if (y.element_count() == 0) return {};
    SDX_ASSIGN(const ConvSizes sizes, sizes_of(x.shape(), context.input(form_.weight).shape()));
    const Scratch scratch = lay_out(sizes);
    const auto* pixels =
        reinterpret_cast<const std::uint8_t*>(prepare_input(context, x, sizes, scratch));
    const std::int64_t size = sizes.window.output_size();
    std::byte* result = is_channels_last_ ? y.mutable_data() : context.scratch + scratch.y;
    kernels::Int8GemmArgs args;
    args.depth = weight_.taps * weight_.depth;
    args.c_stride = sizes.out_channels;
    set_epilogue(context, sizes, scratch, args.epilogue);
    run_blocks(context, sizes, scratch, pixels, result, args);
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

  Blocks cut(const ConvSizes& sizes) const {
    constexpr std::int64_t kBlockBytes = 320 * 1024;
    constexpr std::int64_t kTileRows = 16;
    const auto round_up = [](std::int64_t count, std::int64_t unit) {
      return (count + unit - 1) / unit * unit;
    };
    const std::int64_t depth = weight_.taps * weight_.depth;
    const std::int64_t rows = sizes.batch * sizes.window.output_size();
    const std::int64_t most = std::clamp<std::int64_t>(kBlockBytes / depth / 32 * 32, 32, 256);
    Blocks blocks;
    blocks.row_bytes = is_pointwise(sizes.window) ? 0 : round_up(depth, 64);
    const std::int64_t least_count = (rows + most - 1) / most;
    blocks.rows = round_up((rows + least_count - 1) / least_count, kTileRows);
    blocks.row_count = (rows + blocks.rows - 1) / blocks.rows;
    // Few rows: threads share the columns too.
    const std::int64_t parts = weight_.groups > 1 || thread_count_ == 1
                                   ? 1
                                   : (4 * thread_count_ - 1) / blocks.row_count + 1;
    blocks.columns = round_up((weight_.columns + parts - 1) / parts, 64);
    blocks.column_count = (weight_.columns + blocks.columns - 1) / blocks.columns;
    return blocks;
  }

  Scratch lay_out(const ConvSizes& sizes) const {
    Scratch scratch;
    scratch.y =
        scratch.x + aligned_bytes(sizes.batch * sizes.window.input_size() * sizes.in_channels);
    const std::int64_t out_bytes = is_channels_last_ ? 0
                                                     : sizes.batch * sizes.window.output_size() *
                                                           sizes.out_channels * element_bytes();
    scratch.zeros = scratch.y + aligned_bytes(out_bytes);
    scratch.scales = scratch.zeros + aligned_bytes(sizes.out_channels * 4);
    scratch.threads = scratch.scales + aligned_bytes(sizes.out_channels * 4);
    const Blocks blocks = cut(sizes);
    scratch.each = aligned_bytes(blocks.rows * 4) + aligned_bytes(blocks.rows * blocks.row_bytes);
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
        context.has_input(form_.x_zero) ? byte_at(context.input(form_.x_zero), 0) : 0;
    if (x.dtype() == DType::Int8) zero += 128;
    epilogue.a_zero = zero;
    auto* zeros = reinterpret_cast<std::int32_t*>(context.scratch + scratch.zeros);
    bool any_zero = false;
    if (context.has_input(form_.weight_zero)) {
      const Tensor& given = context.input(form_.weight_zero);
      const bool is_one = given.element_count() == 1;
      for (std::int64_t i = 0; i < sizes.out_channels; ++i) {
        zeros[i] = byte_at(given, is_one ? 0 : i);
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
    epilogue.y_zero = byte_at(context.input(7), 0);
    epilogue.low = is_signed ? -128 : 0;
    epilogue.high = is_signed ? 127 : 255;
    if (has_relu_) epilogue.low = std::max(epilogue.low, epilogue.y_zero);
    if (context.has_input(8)) {
      epilogue.bias = context.input(8).values<std::int32_t>().data();
    }
  }

  void run_blocks(KernelContext& context, const ConvSizes& sizes, const Scratch& scratch,
                  const std::uint8_t* pixels, std::byte* result,
                  const kernels::Int8GemmArgs& whole) const {
    const Blocks blocks = cut(sizes);
    const std::int64_t rows = sizes.batch * sizes.window.output_size();
    const std::int64_t count = blocks.row_count * blocks.column_count;
    const double operations = 2.0 * static_cast<double>(rows * sizes.out_channels) *
                              static_cast<double>(weight_.taps * weight_.depth) /
                              static_cast<double>(count);
    const auto grain = std::max<std::int64_t>(1, static_cast<std::int64_t>(4e5 / operations));
    context.pool().parallel_for(count, grain, [&](std::int64_t begin, std::int64_t end) {
      std::byte* own = context.scratch + scratch.threads +
                       scratch.each * static_cast<std::size_t>(ThreadPool::thread_index());
      for (std::int64_t block = begin; block < end; ++block) {
        const std::int64_t first = block / blocks.column_count * blocks.rows;
        const std::int64_t column = block % blocks.column_count * blocks.columns;
        kernels::Int8GemmArgs args = whole;
        args.rows = std::min(blocks.rows, rows - first);
        args.columns = std::min(blocks.columns, weight_.columns - column);
        for (std::int64_t group = 0; group < weight_.groups; ++group) {
          set_rows(sizes, blocks, pixels, first, group, own, args);
          run_part(whole.epilogue, first, group, column, args, reinterpret_cast<std::int32_t*>(own),
                   result);
        }
      }
    });
  }

  /// The rows of A: pixels where they are, or copies of windows behind the row sums.
  void set_rows(const ConvSizes& sizes, const Blocks& blocks, const std::uint8_t* pixels,
                std::int64_t first, std::int64_t group, std::byte* own,
                kernels::Int8GemmArgs& args) const {
    if (blocks.row_bytes == 0) {
      const std::int64_t channels = sizes.in_channels;
      const std::int64_t left = sizes.batch * sizes.window.input_size() - first - args.rows;
      args.a = pixels + first * channels + group * weight_.depth;
      args.a_stride = channels;
      args.a_slack = (left + 1) * channels - (group + 1) * weight_.depth;
      return;
    }
    auto* copies = reinterpret_cast<std::uint8_t*>(own + aligned_bytes(blocks.rows * 4));
    const WindowRows windows{sizes, pixels, static_cast<std::uint8_t>(args.epilogue.a_zero)};
    windows.copy(first, args.rows, group * weight_.depth, weight_.depth, blocks.row_bytes, copies);
    args.a = copies;
    args.a_stride = blocks.row_bytes;
    args.a_slack = (blocks.rows - args.rows + 1) * blocks.row_bytes - args.depth;
  }

  /// The product of rows that are set with some columns of a group.
  void run_part(const kernels::Int8Epilogue& whole, std::int64_t first, std::int64_t group,
                std::int64_t column, kernels::Int8GemmArgs& args, std::int32_t* sums,
                std::byte* result) const {
    const auto& table = kernels::int8_gemm_table();
    const std::int64_t at = group * weight_.columns + column;
    args.b = packed_->bytes.get() + group * weight_.packed_group_bytes +
             kernels::int8_panel_offset(table, column / table.tile_columns, args.depth);
    args.c = result + (first * args.c_stride + at) * element_bytes();
    args.epilogue = whole;
    if (whole.b_zeros != nullptr) args.epilogue.b_zeros = whole.b_zeros + at;
    if (whole.bias != nullptr) args.epilogue.bias = whole.bias + at;
    if (whole.scale != nullptr) args.epilogue.scale = whole.scale + at;
    if (kernels::int8_needs_row_sums(weight_.is_signed, args.epilogue.b_zeros, args.columns)) {
      table.row_sums(args, sums);
      args.epilogue.row_sums = sums;
    }
    table.run(args);
  }

  Form form_;
  bool is_channels_last_;
  bool has_relu_;
  int thread_count_;
  Int8ConvWeight weight_;
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
