#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/element.h"
#include "ops/activations.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

bool is_integer(DType dtype) { return contains(kInts, dtype); }

Status evaluate_relu(EvalContext& context) {
  if (is_integer(context.tensor(0).dtype())) {
    return map_int(context, [](std::int64_t x) { return std::max<std::int64_t>(x, 0); });
  }
  // A NaN compares false and stays.
  return map_real(context, [](auto x) { return x < 0 ? decltype(x){0} : x; });
}

Status evaluate_celu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  return map_real(context, [alpha](auto x) {
    using T = decltype(x);
    return x < 0 ? static_cast<T>(alpha) * std::expm1(x / static_cast<T>(alpha)) : x;
  });
}

Status evaluate_elu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  return map_real(context, [alpha](auto x) {
    return x < 0 ? static_cast<decltype(x)>(alpha) * std::expm1(x) : x;
  });
}

Status evaluate_selu(EvalContext& context) {
  const bool is_first = context.version() == 1;
  const float alpha = context.attributes().get_float("alpha", is_first ? 1.6732F : 1.67326319F);
  const float gamma = context.attributes().get_float("gamma", is_first ? 1.0507F : 1.05070102F);
  return map_real(context, [alpha, gamma](auto x) {
    using T = decltype(x);
    return static_cast<T>(gamma) * (x > 0 ? x : static_cast<T>(alpha) * std::expm1(x));
  });
}

Status evaluate_gelu(EvalContext& context) {
  const std::string approximate = context.attributes().get_string("approximate", "none");
  if (approximate == "tanh") return map_real(context, [](auto x) { return gelu_tanh(x); });
  if (approximate == "none") return map_real(context, [](auto x) { return gelu(x); });
  return context.error("approximate should be 'none' or 'tanh', but is '{}'", approximate);
}

Status evaluate_hard_sigmoid(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 0.2F);
  const float beta = context.attributes().get_float("beta", 0.5F);
  return map_real(context, [alpha, beta](auto x) {
    using T = decltype(x);
    return clamp_real(static_cast<T>(alpha) * x + static_cast<T>(beta), T{0}, T{1});
  });
}

Status evaluate_hard_swish(EvalContext& context) {
  return map_real(context, [](auto x) {
    using T = decltype(x);
    return x * clamp_real(x / T{6} + T{0.5}, T{0}, T{1});
  });
}

Status evaluate_leaky_relu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 0.01F);
  return map_real(context,
                  [alpha](auto x) { return x < 0 ? static_cast<decltype(x)>(alpha) * x : x; });
}

Status evaluate_mish(EvalContext& context) {
  return map_real(context, [](auto x) { return x * std::tanh(softplus(x)); });
}

Status evaluate_shrink(EvalContext& context) {
  const float bias = context.attributes().get_float("bias", 0.0F);
  const float lambd = context.attributes().get_float("lambd", 0.5F);
  return map_real(context, [bias, lambd](auto x) {
    using T = decltype(x);
    if (x < -static_cast<T>(lambd)) return x + static_cast<T>(bias);
    if (x > static_cast<T>(lambd)) return x - static_cast<T>(bias);
    return std::isnan(x) ? x : T{0};
  });
}

Status evaluate_sigmoid(EvalContext& context) {
  return map_real(context, [](auto x) { return sigmoid(x); });
}

Status evaluate_softplus(EvalContext& context) {
  return map_real(context, [](auto x) { return softplus(x); });
}

Status evaluate_softsign(EvalContext& context) {
  return map_real(context, [](auto x) { return x / (1 + std::fabs(x)); });
}

Status evaluate_swish(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  return map_real(context, [alpha](auto x) {
    return x * sigmoid(static_cast<decltype(x)>(alpha) * x);
  });
}

Status evaluate_thresholded_relu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  return map_real(context, [alpha](auto x) {
    using T = decltype(x);
    return x > static_cast<T>(alpha) || std::isnan(x) ? x : T{0};
  });
}

Status infer_swiglu(InferContext& context) {
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return infer_same_shape(context);
  bool fits = a->rank() == b->rank();
  for (int i = 0; fits && i < a->rank(); ++i) {
    fits = !is_known((*a)[i]) || !is_known((*b)[i]) || (*a)[i] == (*b)[i];
  }
  if (!fits) {
    return context.error("shapes {} of '{}' and {} of '{}' should be equal", a->to_string(),
                         context.input_name(0), b->to_string(), context.input_name(1));
  }
  return infer_same_shape(context);
}

Status evaluate_swiglu(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  const double alpha = context.attributes().get_float("alpha", 1.0F);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = a.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const double gate = read_real(a.dtype(), a.data(), i);
    const double value = read_real(b.dtype(), b.data(), i);
    write_real(y->dtype(), y->mutable_data(), i, gate * sigmoid(alpha * gate) * value);
  }
  return {};
}

/// Bounds of Clip as one element of type T; what is left out does not bound.
template <typename T>
struct Bounds {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
};

template <typename T>
Bounds<T> bounds_from_inputs(const EvalContext& context) {
  Bounds<T> bounds;
  if constexpr (std::is_floating_point_v<T>) {
    bounds = {-std::numeric_limits<T>::infinity(), std::numeric_limits<T>::infinity()};
  }
  const auto read = [&](std::size_t i, T& bound) {
    const Tensor* tensor = context.tensor_or_null(i);
    if (tensor == nullptr) return;
    if constexpr (std::is_floating_point_v<T>) {
      bound = static_cast<T>(read_real(tensor->dtype(), tensor->data(), 0));
    } else {
      bound = static_cast<T>(read_int(tensor->dtype(), tensor->data(), 0));
    }
  };
  read(1, bounds.low);
  read(2, bounds.high);
  return bounds;
}

Status clip_to(EvalContext& context, double low, double high) {
  return map_real(context, [low, high](auto x) {
    using T = decltype(x);
    return clamp_real(x, static_cast<T>(low), static_cast<T>(high));
  });
}

Status infer_clip(InferContext& context) {
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    const Shape* shape = context.shape(i);
    if (shape == nullptr) continue;
    const auto count = shape->element_count();
    if (count && *count != 1) {
      return context.error("bound '{}' should be a scalar, but has shape {}",
                           context.input_name(i), shape->to_string());
    }
  }
  return infer_same_shape(context);
}

/// Versions 1 and 6, whose bounds are attributes.
Status evaluate_clip_attributes(EvalContext& context) {
  const float largest = std::numeric_limits<float>::max();
  const float none = context.version() == 1 ? std::numeric_limits<float>::infinity() : largest;
  return clip_to(context, context.attributes().get_float("min", -none),
                 context.attributes().get_float("max", none));
}

Status evaluate_clip(EvalContext& context) {
  const DType dtype = context.tensor(0).dtype();
  if (!is_integer(dtype)) {
    const auto bounds = bounds_from_inputs<double>(context);
    return clip_to(context, bounds.low, bounds.high);
  }
  if (dtype == DType::UInt64) {
    const auto bounds = bounds_from_inputs<std::uint64_t>(context);
    return map_int(context, [bounds](std::int64_t x) {
      const auto value = std::max(static_cast<std::uint64_t>(x), bounds.low);
      return static_cast<std::int64_t>(std::min(value, bounds.high));
    });
  }
  const auto bounds = bounds_from_inputs<std::int64_t>(context);
  return map_int(context, [bounds](std::int64_t x) {
    return std::min(std::max(x, bounds.low), bounds.high);
  });
}

constexpr OpSchema kRows[] = {
    {"", "Celu", 12, {"F>F"}, "alpha:f", infer_same_shape, evaluate_celu},
    {"", "Celu", 28, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape, evaluate_celu},
    {"", "Clip", 1, {"T>T", kFloats}, "consumed_inputs:is max:f min:f", infer_clip,
     evaluate_clip_attributes},
    {"", "Clip", 6, {"T>T", kFloats}, "max:f min:f", infer_clip, evaluate_clip_attributes},
    {"", "Clip", 11, {"Ttt>T", kFloats}, "", infer_clip, evaluate_clip},
    {"", "Clip", 12, {"Ttt>T", kNumeric}, "", infer_clip, evaluate_clip},
    {"", "Clip", 13, {"Ttt>T", kNumericBf16}, "", infer_clip, evaluate_clip},
    {"", "Elu", 1, {"T>T", kFloats}, "alpha:f consumed_inputs:is", infer_same_shape, evaluate_elu},
    {"", "Elu", 6, {"T>T", kFloats}, "alpha:f", infer_same_shape, evaluate_elu},
    {"", "Elu", 22, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape, evaluate_elu},
    {"", "Gelu", 20, {"T>T", kFloatsBf16}, "approximate:s", infer_same_shape, evaluate_gelu},
    {"", "HardSigmoid", 1, {"T>T", kFloats}, "alpha:f beta:f consumed_inputs:is", infer_same_shape,
     evaluate_hard_sigmoid},
    {"", "HardSigmoid", 6, {"T>T", kFloats}, "alpha:f beta:f", infer_same_shape,
     evaluate_hard_sigmoid},
    {"", "HardSigmoid", 22, {"T>T", kFloatsBf16}, "alpha:f beta:f", infer_same_shape,
     evaluate_hard_sigmoid},
    {"", "HardSwish", 14, {"T>T", kFloats}, "", infer_same_shape, evaluate_hard_swish},
    {"", "HardSwish", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_hard_swish},
    {"", "LeakyRelu", 1, {"T>T", kFloats}, "alpha:f consumed_inputs:is", infer_same_shape,
     evaluate_leaky_relu},
    {"", "LeakyRelu", 6, {"T>T", kFloats}, "alpha:f", infer_same_shape, evaluate_leaky_relu},
    {"", "LeakyRelu", 16, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape, evaluate_leaky_relu},
    {"", "Mish", 18, {"T>T", kFloats}, "", infer_same_shape, evaluate_mish},
    {"", "Mish", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_mish},
    {"", "Relu", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_relu},
    {"", "Relu", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_relu},
    {"", "Relu", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_relu},
    {"", "Relu", 14, {"T>T", kFloatsBf16 | kSignedInts}, "", infer_same_shape, evaluate_relu},
    {"", "Selu", 1, {"T>T", kFloats}, "alpha:f consumed_inputs:is gamma:f", infer_same_shape,
     evaluate_selu},
    {"", "Selu", 6, {"T>T", kFloats}, "alpha:f gamma:f", infer_same_shape, evaluate_selu},
    {"", "Selu", 22, {"T>T", kFloatsBf16}, "alpha:f gamma:f", infer_same_shape, evaluate_selu},
    {"", "Shrink", 9, {"T>T", kNumeric}, "bias:f lambd:f", infer_same_shape, evaluate_shrink},
    {"", "Sigmoid", 1, {"T>T", kFloats}, "consumed_inputs:is", infer_same_shape, evaluate_sigmoid},
    {"", "Sigmoid", 6, {"T>T", kFloats}, "", infer_same_shape, evaluate_sigmoid},
    {"", "Sigmoid", 13, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_sigmoid},
    {"", "Softplus", 1, {"T>T", kFloats}, "", infer_same_shape, evaluate_softplus},
    {"", "Softplus", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_softplus},
    {"", "Softsign", 1, {"T>T", kFloats}, "", infer_same_shape, evaluate_softsign},
    {"", "Softsign", 22, {"T>T", kFloatsBf16}, "", infer_same_shape, evaluate_softsign},
    {"", "SwiGLU", 28, {"TT>T", kFloatsBf16}, "alpha:f", infer_swiglu, evaluate_swiglu},
    {"", "Swish", 24, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape, evaluate_swish},
    {"", "ThresholdedRelu", 10, {"T>T", kFloats}, "alpha:f", infer_same_shape,
     evaluate_thresholded_relu},
    {"", "ThresholdedRelu", 22, {"T>T", kFloatsBf16}, "alpha:f", infer_same_shape,
     evaluate_thresholded_relu},
};

}  // namespace

std::span<const OpSchema> activation_schemas() { return kRows; }

}  // namespace sardonyx
