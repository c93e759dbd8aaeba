#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ops/convolve.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

enum Input : std::size_t { kX, kWeight, kOffset, kBias, kMask };

Status check_planes(const InferContext& context, std::size_t input, const Shape& output,
                    std::int64_t planes) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr) return {};
  bool fits = shape->rank() == 4 && !differ((*shape)[0], output[0]) && !differ((*shape)[1], planes);
  for (int i = 2; fits && i < 4; ++i) fits = !differ((*shape)[i], output[i]);
  if (fits) return {};
  return context.error("'{}' has shape {}, expected [{}, {}, {}, {}]", context.input_name(input),
                       shape->to_string(), output[0], planes, output[2], output[3]);
}

Status infer_deform_conv(InferContext& context) {
  const Shape* x = context.shape(kX);
  const Shape* weight = context.shape(kWeight);
  if (x == nullptr || weight == nullptr) return {};
  if (x->rank() != 4) {
    return failure(Code::Unsupported, "DeformConv of shape {}; two spatial axes are known",
                   x->to_string());
  }
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), *x, *weight));
  const std::int64_t groups = context.attributes().get_int("offset_group", 1);
  if (groups < 1 || groups > (1 << 20) || (is_known((*x)[1]) && (*x)[1] % groups != 0)) {
    return context.error("{} channels do not split into {} offset groups", (*x)[1], groups);
  }
  const Shape output = conv_output(sizes);
  if (is_known(sizes.window[0].kernel) && is_known(sizes.window[1].kernel)) {
    const std::int64_t planes = groups * sizes.window.kernel_size();
    SDX_TRY(check_planes(context, kOffset, output, 2 * planes));
    SDX_TRY(check_planes(context, kMask, output, planes));
  }
  if (const Shape* bias = context.shape(kBias)) {
    if (bias->rank() != 1 || differ((*bias)[0], sizes.out_channels)) {
      return context.error("the bias '{}' has shape {}, expected [{}]", context.input_name(kBias),
                           bias->to_string(), sizes.out_channels);
    }
  }
  context.set_shape(0, output);
  return {};
}

/// Bilinear sample of a plane that is zero outside.
template <typename C>
C sample(const C* plane, std::int64_t height, std::int64_t width, double row, double column) {
  const bool is_near = row > -1.0 && column > -1.0 && row < static_cast<double>(height) &&
                       column < static_cast<double>(width);
  if (!is_near) return C{};
  const double top = std::floor(row);
  const double left = std::floor(column);
  const C down = static_cast<C>(row - top);
  const C right = static_cast<C>(column - left);
  const auto i = static_cast<std::int64_t>(top);
  const auto j = static_cast<std::int64_t>(left);
  const auto at = [&](std::int64_t r, std::int64_t c) {
    return r >= 0 && r < height && c >= 0 && c < width ? plane[r * width + c] : C{};
  };
  return (C{1} - down) * ((C{1} - right) * at(i, j) + right * at(i, j + 1)) +
         down * ((C{1} - right) * at(i + 1, j) + right * at(i + 1, j + 1));
}

/// The columns of one image and group: row (channel, kernel position), column output position.
template <typename C>
class DeformedGather {
 public:
  DeformedGather(const ConvSizes& sizes, std::int64_t offset_groups, const C* offset, const C* mask)
      : sizes_(sizes), offset_groups_(offset_groups), offset_(offset), mask_(mask) {}

  void gather(const C* x, std::int64_t batch, std::int64_t channel, C* columns) const {
    const WindowAxis& h = sizes_.window[0];
    const WindowAxis& w = sizes_.window[1];
    const std::int64_t out_size = sizes_.window.output_size();
    const std::int64_t kernel_size = sizes_.window.kernel_size();
    const std::int64_t group = channel / (sizes_.in_channels / offset_groups_);
    const std::int64_t first = (batch * offset_groups_ + group) * kernel_size;
    const C* plane = x + (batch * sizes_.in_channels + channel) * sizes_.window.input_size();
    for (std::int64_t k = 0; k < kernel_size; ++k) {
      const C* down = offset_ + (first + k) * 2 * out_size;
      const C* right = down + out_size;
      const std::int64_t kh = k / w.kernel * h.dilation - h.pad_begin;
      const std::int64_t kw = k % w.kernel * w.dilation - w.pad_begin;
      for (std::int64_t p = 0; p < out_size; ++p) {
        const auto row = static_cast<double>(p / w.output * h.stride + kh);
        const auto column = static_cast<double>(p % w.output * w.stride + kw);
        C value = sample(plane, h.input, w.input, row + static_cast<double>(down[p]),
                         column + static_cast<double>(right[p]));
        if (mask_ != nullptr) value *= mask_[(first + k) * out_size + p];
        columns[k * out_size + p] = value;
      }
    }
  }

 private:
  const ConvSizes& sizes_;
  std::int64_t offset_groups_;
  const C* offset_;
  const C* mask_;
};

template <typename C>
Status deform_conv(EvalContext& context) {
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), context.tensor(kX).shape(),
                                               context.tensor(kWeight).shape()));
  SDX_ASSIGN(const auto x, Elements<C>::of(context.tensor(kX)));
  SDX_ASSIGN(const auto weight, Elements<C>::of(context.tensor(kWeight)));
  SDX_ASSIGN(const auto offset, Elements<C>::of(context.tensor(kOffset)));
  SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor_or_null(kBias)));
  SDX_ASSIGN(const auto mask, Elements<C>::of(context.tensor_or_null(kMask)));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  if (!y || y.element_count() == 0) return {};
  const std::int64_t out_size = sizes.window.output_size();
  const std::int64_t kernel_size = sizes.window.kernel_size();
  const std::int64_t in_channels = sizes.in_channels / sizes.groups;
  const std::int64_t out_channels = sizes.out_channels / sizes.groups;
  const std::int64_t depth = in_channels * kernel_size;
  const auto scratch_size = checked_multiply(depth, out_size);
  if (!scratch_size) return failure(Code::OutOfMemory, "{} windows are too many", out_size);
  SDX_ASSIGN(Tensor scratch, make_scratch<C>(*scratch_size));
  auto* columns = reinterpret_cast<C*>(scratch.mutable_data());
  fill_channels(bias.data(), sizes.batch, sizes.out_channels, out_size, y.data());
  const DeformedGather<C> gather(sizes, context.attributes().get_int("offset_group", 1),
                                 offset.data(), mask.data());
  for (std::int64_t i = 0; i < sizes.batch * sizes.groups; ++i) {
    const std::int64_t group = i % sizes.groups;
    for (std::int64_t c = 0; c < in_channels; ++c) {
      gather.gather(x.data(), i / sizes.groups, group * in_channels + c,
                    columns + c * kernel_size * out_size);
    }
    multiply_add<C>({.rows = out_channels,
                     .columns = out_size,
                     .depth = depth,
                     .a = weight.data() + group * out_channels * depth,
                     .a_row = depth,
                     .a_column = 1,
                     .b = columns,
                     .b_row = out_size,
                     .c = y.data() + i * out_channels * out_size,
                     .c_row = out_size});
  }
  y.commit();
  return {};
}

Status evaluate_deform_conv(EvalContext& context) {
  return with_real(context.tensor(kX).dtype(),
                   [&]<typename C>() -> Status { return deform_conv<C>(context); });
}

constexpr const char* kAttributes =
    "dilations:is group:i kernel_shape:is offset_group:i pads:is strides:is";

constexpr OpSchema kRows[] = {
    {"",
     "DeformConv",
     19,
     {"TTTtt>T", kFloats},
     kAttributes,
     infer_deform_conv,
     evaluate_deform_conv},
    {"",
     "DeformConv",
     22,
     {"TTTtt>T", kFloatsBf16},
     kAttributes,
     infer_deform_conv,
     evaluate_deform_conv},
};

}  // namespace

std::span<const OpSchema> deform_conv_schemas() { return kRows; }

}  // namespace sardonyx
