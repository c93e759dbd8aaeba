#include <algorithm>
#include <cmath>

#include "ir/element.h"
#include "ops/convolve.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/product.h"

namespace sardonyx {

namespace {

Status check_bias(const InferContext& context, std::size_t input, Dim channels) {
  const Shape* bias = context.shape(input);
  if (bias == nullptr) return {};
  if (bias->rank() == 1 && !differ((*bias)[0], channels)) return {};
  return context.error("the bias '{}' has shape {}, expected [{}]", context.input_name(input),
                       bias->to_string(), channels);
}

/// Positions of the operands of one operator, and whether its activations end with the channels.
struct ConvLayout {
  std::size_t x = 0;
  std::size_t weight = 1;
  std::size_t bias = 2;
  bool is_channels_last = false;
};

Status infer_conv_as(InferContext& context, const ConvLayout& layout) {
  const Shape* x = context.shape(layout.x);
  const Shape* weight = context.shape(layout.weight);
  if (x == nullptr || weight == nullptr) return {};
  const Shape first = layout.is_channels_last ? channels_first_shape(*x) : *x;
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), first, *weight));
  SDX_TRY(check_bias(context, layout.bias, sizes.out_channels));
  const Shape output = conv_output(sizes);
  context.set_shape(0, layout.is_channels_last ? channels_last_shape(output) : output);
  return {};
}

Status infer_conv(InferContext& context) { return infer_conv_as(context, {}); }
Status infer_nhwc_conv(InferContext& context) {
  return infer_conv_as(context, {.is_channels_last = true});
}

template <typename C>
Status conv_real(EvalContext& context, bool is_channels_last) {
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  const Shape shape = is_channels_last ? channels_first_shape(x.shape()) : x.shape();
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), shape, weight.shape()));
  SDX_ASSIGN(const Activation activation, Activation::of_node(context.attributes()));
  SDX_ASSIGN(auto x_values, Elements<C>::of(x));
  if (is_channels_last) {
    SDX_ASSIGN(x_values, channels_first(x_values, x.shape()));
  }
  SDX_ASSIGN(const auto w_values, Elements<C>::of(weight));
  SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor_or_null(2)));
  SDX_ASSIGN(const auto sum, Elements<C>::of(context.tensor_or_null(3)));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  if (!y) return {};
  const std::int64_t count = y.element_count();
  const std::int64_t size = sizes.window.output_size();
  SDX_ASSIGN(Tensor scratch, make_scratch<C>(is_channels_last ? count : 0));
  C* target = is_channels_last ? reinterpret_cast<C*>(scratch.mutable_data()) : y.data();
  fill_channels(bias.data(), sizes.batch, sizes.out_channels, size, target);
  SDX_TRY(convolve(sizes, x_values.data(), w_values.data(), target));
  if (is_channels_last) channels_last(target, sizes.batch, sizes.out_channels, size, y.data());
  if (sum) {
    if (!(context.tensor(3).shape() == context.output_type(0).shape)) {
      return context.error("the sum input has shape {}, expected {}",
                           context.tensor(3).shape().to_string(),
                           context.output_type(0).shape->to_string());
    }
    for (std::int64_t i = 0; i < count; ++i) y[i] += sum[i];
  }
  activation.apply(y.data(), count);
  y.commit();
  return {};
}

template <bool is_channels_last>
Status evaluate_conv(EvalContext& context) {
  return with_real(context.tensor(0).dtype(),
                   [&]<typename C>() -> Status { return conv_real<C>(context, is_channels_last); });
}

Status infer_conv_transpose(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* weight = context.shape(1);
  if (x == nullptr || weight == nullptr) return {};
  SDX_ASSIGN(const ConvSizes sizes, conv_transpose_sizes(context.attributes(), *x, *weight));
  SDX_TRY(check_bias(context, 2, sizes.out_channels));
  context.set_shape(0, conv_output(sizes));
  return {};
}

Status evaluate_conv_transpose(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  SDX_ASSIGN(const ConvSizes sizes,
             conv_transpose_sizes(context.attributes(), x.shape(), weight.shape()));
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x_values, Elements<C>::of(x));
    SDX_ASSIGN(const auto w_values, Elements<C>::of(weight));
    SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor_or_null(2)));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    fill_channels(bias.data(), sizes.batch, sizes.out_channels, sizes.window.output_size(),
                  y.data());
    SDX_TRY(convolve_back(sizes, x_values.data(), w_values.data(), y.data()));
    y.commit();
    return {};
  });
}

Status infer_conv_integer(InferContext& context) {
  context.set_dtype(0, DType::Int32);
  return infer_conv_as(context, {.bias = 99});
}

/// Sums of (x - x_zero_point) (w - w_zero_point) as the bits of int32.
Status integer_sums(const ConvSizes& sizes, const Tensor& x, const Tensor* x_zero_point,
                    const Tensor& weight, const Tensor* w_zero_point, std::uint32_t* y) {
  if (x_zero_point != nullptr && x_zero_point->element_count() != 1) {
    return failure(Code::Runtime, "the zero point of the input has {} elements, expected 1",
                   x_zero_point->element_count());
  }
  SDX_ASSIGN(const Tensor left, subtract_zero_point(x, x_zero_point, 0));
  SDX_ASSIGN(const Tensor right, subtract_zero_point(weight, w_zero_point, 0));
  return convolve(sizes, left.values<std::uint32_t>().data(), right.values<std::uint32_t>().data(),
                  y);
}

Status evaluate_conv_integer(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(1);
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), x.shape(), weight.shape()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  auto* sums = reinterpret_cast<std::uint32_t*>(y->mutable_data());
  std::fill_n(sums, y->element_count(), 0U);
  return integer_sums(sizes, x, context.tensor_or_null(2), weight, context.tensor_or_null(3), sums);
}

bool is_nhwc(const Attributes& attributes) { return attributes.get_int("channels_last", 0) != 0; }

Status infer_qlinear_conv(InferContext& context) {
  if (context.type(7).is_tensor()) context.set_dtype(0, context.dtype(7));
  return infer_conv_as(context,
                       {.weight = 3, .bias = 8, .is_channels_last = is_nhwc(context.attributes())});
}

Status evaluate_qlinear_conv(EvalContext& context) {
  const bool is_last = is_nhwc(context.attributes());
  const Tensor& x = context.tensor(0);
  const Tensor& weight = context.tensor(3);
  const Shape shape = is_last ? channels_first_shape(x.shape()) : x.shape();
  SDX_ASSIGN(const ConvSizes sizes, conv_sizes(context.attributes(), shape, weight.shape()));
  SDX_ASSIGN(const auto x_scale, per_axis_values(context.tensor(1), 1, "x_scale"));
  SDX_ASSIGN(const auto w_scale, per_axis_values(context.tensor(4), sizes.out_channels, "w_scale"));
  SDX_ASSIGN(const auto y_scale, per_axis_values(context.tensor(6), 1, "y_scale"));
  SDX_ASSIGN(Tensor input, is_last ? Result<Tensor>(Tensor()) : Result<Tensor>(x));
  if (is_last) {
    SDX_ASSIGN(const auto values, Elements<std::uint32_t>::of(x));
    SDX_ASSIGN(const auto moved, channels_first(values, x.shape()));
    SDX_ASSIGN(input, Tensor::allocate(DType::UInt32, shape));
    std::copy_n(moved.data(), x.element_count(), input.mutable_values<std::uint32_t>().data());
  }
  SDX_ASSIGN(const auto bias, Elements<std::uint32_t>::of(context.tensor_or_null(8)));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t size = sizes.window.output_size();
  const std::int64_t channels = sizes.out_channels;
  SDX_ASSIGN(Tensor scratch, make_scratch<std::uint32_t>(y->element_count()));
  auto* sums = reinterpret_cast<std::uint32_t*>(scratch.mutable_data());
  fill_channels(bias.data(), sizes.batch, channels, size, sums);
  SDX_TRY(integer_sums(sizes, input, context.tensor_or_null(2), weight, context.tensor_or_null(5),
                       sums));
  const Tensor* zero = context.tensor_or_null(7);
  const std::int64_t zero_point =
      zero != nullptr && zero->element_count() > 0 ? read_int(zero->dtype(), zero->data(), 0) : 0;
  for (std::int64_t i = 0; i < y->element_count(); ++i) {
    const std::int64_t c = i / size % channels;
    const float scale = x_scale[0] * w_scale[static_cast<std::size_t>(c)] / y_scale[0];
    const auto sum = static_cast<float>(static_cast<std::int32_t>(sums[i]));
    const std::int64_t batch = i / size / channels;
    const std::int64_t target = is_last ? (batch * size + i % size) * channels + c : i;
    write_int(y->dtype(), y->mutable_data(), target,
              requantize(y->dtype(), sum * scale, zero_point));
  }
  return {};
}

/// Options of com.microsoft's operator that this build knows at their defaults only.
Status check_causal_options(const Attributes& attributes) {
  struct Option {
    std::string_view name;
    std::int64_t known;
  };
  constexpr Option kOptions[] = {{"ndim", 1},
                                 {"dilation", 1},
                                 {"channels_last", 0},
                                 {"state_channels_last", -1},
                                 {"state_window", 0},
                                 {"state_length", 0},
                                 {"state_update_capacity", 0},
                                 {"input_channel_offset", 0},
                                 {"input_channels", 0}};
  for (const Option& option : kOptions) {
    const std::int64_t value = attributes.get_int(option.name, option.known);
    if (value == option.known) continue;
    return failure(Code::Unsupported, "{} is {}; only {} is known", option.name, value,
                   option.known);
  }
  return {};
}

Status infer_causal_conv(InferContext& context) {
  SDX_TRY(check_causal_options(context.attributes()));
  const Shape* x = context.shape(0);
  const Shape* weight = context.shape(1);
  const std::string activation = context.attributes().get_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return context.error("activation is '{}', expected none, silu or swish", activation);
  }
  if (x == nullptr) return {};
  if (x->rank() != 3) {
    return context.error("'{}' has shape {}, expected [batch, channels, length]",
                         context.input_name(0), x->to_string());
  }
  context.set_shape(0, *x);
  Dim state = kUnknownDim;
  if (weight != nullptr) {
    if (weight->rank() != 3 || differ((*weight)[0], (*x)[1]) || differ((*weight)[1], 1) ||
        (*weight)[2] == 0) {
      return context.error("'{}' has shape {}, expected [{}, 1, kernel]", context.input_name(1),
                           weight->to_string(), (*x)[1]);
    }
    if (is_known((*weight)[2])) state = (*weight)[2] - 1;
  }
  SDX_TRY(check_bias(context, 2, (*x)[1]));
  const Shape present{(*x)[0], (*x)[1], state};
  if (const Shape* past = context.shape(3)) {
    bool fits = past->rank() == 3;
    for (int i = 0; fits && i < 3; ++i) fits = !differ((*past)[i], present[i]);
    if (!fits) {
      return context.error("'{}' has shape {}, expected {}", context.input_name(3),
                           past->to_string(), present.to_string());
    }
  }
  context.set_shape(1, present);
  return {};
}

template <typename C>
Status causal_conv(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const std::int64_t length = x.dim(2);
  const std::int64_t kernel = context.tensor(1).dim(2);
  const std::int64_t state = kernel - 1;
  SDX_ASSIGN(const auto input, Elements<C>::of(x));
  SDX_ASSIGN(const auto weight, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor_or_null(2)));
  SDX_ASSIGN(const auto past, Elements<C>::of(context.tensor_or_null(3)));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  SDX_ASSIGN(auto present, Staged<C>::open(context, 1));
  std::vector<C> row(static_cast<std::size_t>(state + length));
  for (std::int64_t i = 0; i < x.dim(0) * x.dim(1); ++i) {
    const std::int64_t c = i % x.dim(1);
    for (std::int64_t k = 0; k < state; ++k) {
      row[static_cast<std::size_t>(k)] = past ? past[i * state + k] : C{};
    }
    std::copy_n(input.data() + i * length, length, row.begin() + state);
    if (present) std::copy_n(row.end() - state, state, present.data() + i * state);
    if (!y) continue;
    C* to = y.data() + i * length;
    std::fill_n(to, length, bias ? bias[c] : C{});
    for (std::int64_t k = 0; k < kernel; ++k) {
      const C factor = weight[c * kernel + k];
      const C* from = row.data() + k;
      for (std::int64_t t = 0; t < length; ++t) to[t] += factor * from[t];
    }
  }
  const std::string name = context.attributes().get_string("activation", "none");
  if (y && name != "none") {
    SDX_ASSIGN(const Activation activation, Activation::of("silu", nullptr, nullptr));
    activation.apply(y.data(), y.element_count());
  }
  y.commit();
  present.commit();
  return {};
}

Status evaluate_causal_conv(EvalContext& context) {
  return with_real(context.tensor(0).dtype(),
                   [&]<typename C>() -> Status { return causal_conv<C>(context); });
}

constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);
constexpr DTypeSet kInt32 = set_of(DType::Int32);
constexpr DTypeSet kSmallFloats = set_of(DType::Float32, DType::Float16, DType::BFloat16);
constexpr const char* kConv = "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is";
constexpr const char* kConvTranspose =
    "auto_pad:s dilations:is group:i kernel_shape:is output_padding:is output_shape:is pads:is "
    "strides:is";
constexpr const char* kFusedConv =
    "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is activation:s "
    "activation_params:fs";

constexpr OpSchema kRows[] = {
    {"", "Conv", 1, {"TTt>T", kFloats}, kConv, infer_conv, evaluate_conv<false>},
    {"", "Conv", 11, {"TTt>T", kFloats}, kConv, infer_conv, evaluate_conv<false>},
    {"", "Conv", 22, {"TTt>T", kFloatsBf16}, kConv, infer_conv, evaluate_conv<false>},
    {"",
     "ConvTranspose",
     1,
     {"TTt>T", kFloats},
     kConvTranspose,
     infer_conv_transpose,
     evaluate_conv_transpose},
    {"",
     "ConvTranspose",
     11,
     {"TTt>T", kFloats},
     kConvTranspose,
     infer_conv_transpose,
     evaluate_conv_transpose},
    {"",
     "ConvTranspose",
     22,
     {"TTt>T", kFloatsBf16},
     kConvTranspose,
     infer_conv_transpose,
     evaluate_conv_transpose},
    {"",
     "ConvInteger",
     10,
     {"TUtu>V", k8Bit, k8Bit, kInt32},
     kConv,
     infer_conv_integer,
     evaluate_conv_integer},
    {"",
     "QLinearConv",
     10,
     {"TFTUFUFVw>V", k8Bit, k8Bit, k8Bit, kInt32},
     kConv,
     infer_qlinear_conv,
     evaluate_qlinear_conv},
    {"",
     "CausalConvWithState",
     27,
     {"TTtt>TT", kSmallFloats},
     "activation:s",
     infer_causal_conv,
     evaluate_causal_conv},
    {"com.microsoft",
     "CausalConvWithState",
     1,
     {"TTtt>TT", kSmallFloats},
     "activation:s channels_last:i dilation:i input_channel_offset:i input_channels:i ndim:i "
     "state_channels_last:i state_length:i state_update_capacity:i state_window:i",
     infer_causal_conv,
     evaluate_causal_conv},
    {"com.microsoft",
     "FusedConv",
     1,
     {"TTtt>T", kFloats},
     kFusedConv,
     infer_conv,
     evaluate_conv<false>},
    {"com.microsoft",
     "NhwcConv",
     1,
     {"TTt>T", kFloats},
     kConv,
     infer_nhwc_conv,
     evaluate_conv<true>},
    {"com.microsoft",
     "NhwcFusedConv",
     1,
     {"TTtt>T", kFloats},
     kFusedConv,
     infer_nhwc_conv,
     evaluate_conv<true>},
    {"com.microsoft",
     "QLinearConv",
     1,
     {"TFtUFuFvw>V", k8Bit, k8Bit, k8Bit, kInt32},
     "auto_pad:s dilations:is group:i kernel_shape:is pads:is strides:is channels_last:i",
     infer_qlinear_conv,
     evaluate_qlinear_conv},
};

}  // namespace

std::span<const OpSchema> conv_schemas() { return kRows; }

}  // namespace sardonyx
