#include "ops/convolve.h"

#include <algorithm>

#include "base/checked.h"

namespace sardonyx {

namespace {

Status check_ranks(const Shape& x, const Shape& weight) {
  if (x.rank() >= 2 && weight.rank() == x.rank()) return {};
  return failure(
      Code::InvalidModel,
      "an input of shape {} and a weight of shape {} should have the same rank, 3 or more",
      x.to_string(), weight.to_string());
}

Result<std::int64_t> read_groups(const Attributes& attributes, Dim grouped) {
  const std::int64_t groups = attributes.get_int("group", 1);
  if (groups < 1 || (is_known(grouped) && grouped % groups != 0)) {
    return failure(Code::InvalidModel, "{} channels do not split into {} groups", grouped, groups);
  }
  return groups;
}

/// Columns [begin, end) of the gathered windows of one group: row (channel, kernel position),
/// column output position.
template <typename C>
class WindowGather {
 public:
  WindowGather(const Window& window, std::int64_t channels)
      : window_(window),
        channels_(channels),
        in_size_(window.input_size()),
        kernel_size_(window.kernel_size()) {}

  void gather(const C* x, std::int64_t begin, std::int64_t end, C* columns) const {
    const std::int64_t width = end - begin;
    std::array<std::int64_t, kMaxSpatial> k{};
    for (std::int64_t position = 0; position < kernel_size_; ++position) {
      gather_position(x, k, begin, end, columns + position * width);
      for (int i = window_.rank - 1; i >= 0; --i) {
        auto& digit = k[static_cast<std::size_t>(i)];
        if (++digit < window_[i].kernel) break;
        digit = 0;
      }
    }
  }

 private:
  void gather_position(const C* x, const std::array<std::int64_t, kMaxSpatial>& k,
                       std::int64_t begin, std::int64_t end, C* columns) const {
    const WindowAxis& last = window_[window_.rank - 1];
    const std::int64_t width = end - begin;
    const std::int64_t shift =
        k[static_cast<std::size_t>(window_.rank - 1)] * last.dilation - last.pad_begin;
    // Output positions whose input lies inside the axis.
    const std::int64_t first = shift >= 0 ? 0 : (-shift + last.stride - 1) / last.stride;
    const std::int64_t limit =
        last.input - shift <= 0 ? 0 : (last.input - shift - 1) / last.stride + 1;
    for (std::int64_t p = begin; p < end;) {
      const std::int64_t row = p / last.output;
      const std::int64_t o = p % last.output;
      const std::int64_t o_end = std::min(last.output, o + end - p);
      const std::int64_t source = row_offset(row, k);
      const std::int64_t low = source < 0 ? o_end : std::clamp(first, o, o_end);
      const std::int64_t high = source < 0 ? o_end : std::clamp(limit, low, o_end);
      for (std::int64_t c = 0; c < channels_; ++c) {
        C* to = columns + c * kernel_size_ * width + (p - begin);
        const C* from = x + c * in_size_ + source + shift;
        std::fill(to, to + (low - o), C{});
        if (last.stride == 1) {
          std::copy(from + low, from + high, to + (low - o));
        } else {
          for (std::int64_t i = low; i < high; ++i) to[i - o] = from[i * last.stride];
        }
        std::fill(to + (high - o), to + (o_end - o), C{});
      }
      p += o_end - o;
    }
  }

  /// Where the input row of an output row starts, or -1 when it lies in the padding.
  std::int64_t row_offset(std::int64_t row, const std::array<std::int64_t, kMaxSpatial>& k) const {
    std::int64_t offset = 0;
    std::int64_t scale = window_[window_.rank - 1].input;
    for (int i = window_.rank - 2; i >= 0; --i) {
      const WindowAxis& axis = window_[i];
      const std::int64_t position = row % axis.output * axis.stride - axis.pad_begin +
                                    k[static_cast<std::size_t>(i)] * axis.dilation;
      if (position < 0 || position >= axis.input) return -1;
      offset += position * scale;
      scale *= axis.input;
      row /= axis.output;
    }
    return offset;
  }

  const Window& window_;
  std::int64_t channels_;
  std::int64_t in_size_;
  std::int64_t kernel_size_;
};

/// Whether each window is the one input position of the same number.
bool is_pointwise(const Window& window) {
  for (int i = 0; i < window.rank; ++i) {
    const WindowAxis& axis = window[i];
    const bool is_plain =
        axis.kernel == 1 && axis.stride == 1 && axis.pad_begin == 0 && axis.pad_end == 0;
    if (!is_plain) return false;
  }
  return true;
}

/// Adds rows (one per kernel position) of products onto the output plane of one channel.
template <typename C>
void scatter_windows(const Window& window, const C* columns, C* y) {
  const std::int64_t in_size = window.input_size();
  const std::int64_t kernel_size = window.kernel_size();
  const WindowAxis& last = window[window.rank - 1];
  std::array<std::int64_t, kMaxSpatial> k{};
  for (std::int64_t position = 0; position < kernel_size; ++position) {
    const C* from = columns + position * in_size;
    const std::int64_t shift =
        k[static_cast<std::size_t>(window.rank - 1)] * last.dilation - last.pad_begin;
    const std::int64_t low =
        std::min(last.input, shift >= 0 ? 0 : (-shift + last.stride - 1) / last.stride);
    const std::int64_t high =
        std::clamp(last.output - shift <= 0 ? 0 : (last.output - shift - 1) / last.stride + 1, low,
                   last.input);
    const std::int64_t row_count = last.input == 0 ? 0 : in_size / last.input;
    for (std::int64_t row = 0; row < row_count; ++row, from += last.input) {
      std::int64_t offset = 0;
      std::int64_t scale = last.output;
      std::int64_t rest = row;
      bool is_inside = true;
      for (int i = window.rank - 2; i >= 0 && is_inside; --i) {
        const WindowAxis& axis = window[i];
        const std::int64_t target = rest % axis.input * axis.stride - axis.pad_begin +
                                    k[static_cast<std::size_t>(i)] * axis.dilation;
        is_inside = target >= 0 && target < axis.output;
        offset += target * scale;
        scale *= axis.output;
        rest /= axis.input;
      }
      if (!is_inside) continue;
      for (std::int64_t i = low; i < high; ++i) y[offset + shift + i * last.stride] += from[i];
    }
    for (int i = window.rank - 1; i >= 0; --i) {
      auto& digit = k[static_cast<std::size_t>(i)];
      if (++digit < window[i].kernel) break;
      digit = 0;
    }
  }
}

/// A convolution without spatial axes has one position.
Window with_axis(Window window) {
  if (window.rank > 0) return window;
  window.rank = 1;
  window[0] = {.input = 1, .output = 1, .kernel = 1};
  return window;
}

}  // namespace

Result<ConvSizes> conv_sizes(const Attributes& attributes, const Shape& x, const Shape& weight) {
  SDX_TRY(check_ranks(x, weight));
  ConvSizes sizes;
  SDX_ASSIGN(sizes.groups, read_groups(attributes, weight[0]));
  sizes.batch = x[0];
  sizes.in_channels = x[1];
  sizes.out_channels = weight[0];
  if (is_known(x[1]) && is_known(weight[1]) &&
      (x[1] % sizes.groups != 0 || x[1] / sizes.groups != weight[1])) {
    return failure(Code::InvalidModel,
                   "{} input channels in {} groups do not fit a weight of shape {}", x[1],
                   sizes.groups, weight.to_string());
  }
  SDX_ASSIGN(sizes.window, read_window(attributes, x.rank() - 2));
  const Shape kernel = slice_of(weight, 2, weight.rank());
  SDX_TRY(set_kernel(sizes.window, attributes, &kernel));
  SDX_TRY(slide(sizes.window, attributes, slice_of(x, 2, x.rank()), false));
  return sizes;
}

Result<ConvSizes> conv_transpose_sizes(const Attributes& attributes, const Shape& x,
                                       const Shape& weight) {
  SDX_TRY(check_ranks(x, weight));
  ConvSizes sizes;
  SDX_ASSIGN(sizes.groups, read_groups(attributes, weight[0]));
  if (differ(x[1], weight[0])) {
    return failure(Code::InvalidModel, "{} input channels do not fit a weight of shape {}", x[1],
                   weight.to_string());
  }
  sizes.batch = x[0];
  sizes.in_channels = is_known(x[1]) ? x[1] : weight[0];
  sizes.out_channels = kUnknownDim;
  if (is_known(weight[1])) {
    if (weight[1] > 0 && sizes.groups > (std::int64_t{1} << 40) / weight[1]) {
      return failure(Code::InvalidModel, "{} groups of {} channels are too many", sizes.groups,
                     weight[1]);
    }
    sizes.out_channels = weight[1] * sizes.groups;
  }
  SDX_ASSIGN(sizes.window, read_window(attributes, x.rank() - 2));
  const Shape kernel = slice_of(weight, 2, weight.rank());
  SDX_TRY(set_kernel(sizes.window, attributes, &kernel));
  SDX_TRY(slide_back(sizes.window, attributes, slice_of(x, 2, x.rank())));
  return sizes;
}

Shape conv_output(const ConvSizes& sizes) {
  Shape shape{sizes.batch, sizes.out_channels};
  for (int i = 0; i < sizes.window.rank; ++i) shape.push_back(sizes.window[i].output);
  return shape;
}

template <typename C>
Status convolve(const ConvSizes& sizes, const C* x, const C* weight, C* y) {
  const Window window = with_axis(sizes.window);
  const std::int64_t in_channels = sizes.in_channels / sizes.groups;
  const std::int64_t out_channels = sizes.out_channels / sizes.groups;
  const std::int64_t in_size = window.input_size();
  const std::int64_t out_size = window.output_size();
  const std::int64_t depth = in_channels * window.kernel_size();
  if (out_size == 0 || depth == 0 || out_channels == 0) return {};
  const bool is_direct = is_pointwise(window);
  const std::int64_t room = std::max<std::int64_t>(64, (std::int64_t{1} << 17) / depth);
  const std::int64_t block = is_direct ? out_size : std::min(out_size, room);
  SDX_ASSIGN(Tensor scratch, make_scratch<C>(is_direct ? 0 : depth * block));
  auto* columns = reinterpret_cast<C*>(scratch.mutable_data());
  const WindowGather<C> gather(window, in_channels);
  for (std::int64_t i = 0; i < sizes.batch * sizes.groups; ++i) {
    const C* group_x = x + i * in_channels * in_size;
    C* group_y = y + i * out_channels * out_size;
    for (std::int64_t begin = 0; begin < out_size; begin += block) {
      const std::int64_t width = std::min(block, out_size - begin);
      if (!is_direct) gather.gather(group_x, begin, begin + width, columns);
      multiply_add<C>({.rows = out_channels,
                       .columns = width,
                       .depth = depth,
                       .a = weight + i % sizes.groups * out_channels * depth,
                       .a_row = depth,
                       .a_column = 1,
                       .b = is_direct ? group_x : columns,
                       .b_row = width,
                       .c = group_y + begin,
                       .c_row = out_size});
    }
  }
  return {};
}

template <typename C>
Status convolve_back(const ConvSizes& sizes, const C* x, const C* weight, C* y) {
  const Window window = with_axis(sizes.window);
  const std::int64_t in_channels = sizes.in_channels / sizes.groups;
  const std::int64_t out_channels = sizes.out_channels / sizes.groups;
  const std::int64_t in_size = window.input_size();
  const std::int64_t out_size = window.output_size();
  const std::int64_t kernel_size = window.kernel_size();
  if (in_size == 0 || out_size == 0) return {};
  const auto plane = checked_multiply(kernel_size, in_size);
  if (!plane) {
    return failure(Code::OutOfMemory, "{} kernel positions at {} inputs are too many", kernel_size,
                   in_size);
  }
  const std::int64_t room = std::max<std::int64_t>(1, (std::int64_t{1} << 17) / *plane);
  const std::int64_t block = std::min(out_channels, room);
  SDX_ASSIGN(Tensor scratch, make_scratch<C>(block * kernel_size * in_size));
  auto* columns = reinterpret_cast<C*>(scratch.mutable_data());
  for (std::int64_t i = 0; i < sizes.batch * sizes.groups; ++i) {
    const C* group_weight = weight + i % sizes.groups * in_channels * out_channels * kernel_size;
    C* group_y = y + i * out_channels * out_size;
    for (std::int64_t begin = 0; begin < out_channels; begin += block) {
      const std::int64_t count = std::min(block, out_channels - begin);
      std::fill_n(columns, count * kernel_size * in_size, C{});
      multiply_add<C>({.rows = count * kernel_size,
                       .columns = in_size,
                       .depth = in_channels,
                       .a = group_weight + begin * kernel_size,
                       .a_row = 1,
                       .a_column = out_channels * kernel_size,
                       .b = x + i * in_channels * in_size,
                       .b_row = in_size,
                       .c = columns,
                       .c_row = in_size});
      for (std::int64_t c = 0; c < count; ++c) {
        scatter_windows(window, columns + c * kernel_size * in_size,
                        group_y + (begin + c) * out_size);
      }
    }
  }
  return {};
}

template <typename C>
void fill_channels(const C* bias, std::int64_t batch, std::int64_t channels, std::int64_t size,
                   C* y) {
  for (std::int64_t i = 0; i < batch * channels; ++i) {
    std::fill_n(y + i * size, size, bias != nullptr ? bias[i % channels] : C{});
  }
}

template <typename C>
Result<Elements<C>> channels_first(const Elements<C>& x, const Shape& shape) {
  const std::int64_t channels = shape[shape.rank() - 1];
  const std::int64_t size = shape.product(1, shape.rank() - 1);
  SDX_ASSIGN(Tensor moved, make_scratch<C>(shape.product(0, shape.rank())));
  auto* to = reinterpret_cast<C*>(moved.mutable_data());
  for (std::int64_t i = 0; i < shape[0]; ++i) {
    transpose_matrix(x.data() + i * size * channels, size, channels, to + i * size * channels);
  }
  return Elements<C>::of(moved);
}

template <typename C>
void channels_last(const C* from, std::int64_t batch, std::int64_t channels, std::int64_t size,
                   C* to) {
  for (std::int64_t i = 0; i < batch; ++i) {
    transpose_matrix(from + i * size * channels, channels, size, to + i * size * channels);
  }
}

#define SDX_CONVOLVE(C)                                                                   \
  template Status convolve<C>(const ConvSizes&, const C*, const C*, C*);                  \
  template Status convolve_back<C>(const ConvSizes&, const C*, const C*, C*);             \
  template void fill_channels<C>(const C*, std::int64_t, std::int64_t, std::int64_t, C*); \
  template Result<Elements<C>> channels_first<C>(const Elements<C>&, const Shape&);       \
  template void channels_last<C>(const C*, std::int64_t, std::int64_t, std::int64_t, C*);
SDX_CONVOLVE(float)
SDX_CONVOLVE(double)
SDX_CONVOLVE(std::uint32_t)
#undef SDX_CONVOLVE

Shape channels_first_shape(const Shape& shape) {
  if (shape.rank() < 2) return shape;
  Shape result = shape;
  const Dim channels = shape[shape.rank() - 1];
  result.erase(shape.rank() - 1);
  result.insert(1, channels);
  return result;
}

Shape channels_last_shape(const Shape& shape) {
  if (shape.rank() < 2) return shape;
  Shape result = shape;
  const Dim channels = shape[1];
  result.erase(1);
  result.push_back(channels);
  return result;
}

}  // namespace sardonyx
