#include <algorithm>
#include <optional>
#include <vector>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/activations.h"
#include "ops/delegate.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/quantization.h"

namespace sardonyx {

namespace {

struct Add {
  template <typename T>
  static T apply(T a, T b) {
    return a + b;
  }
};

struct Mul {
  template <typename T>
  static T apply(T a, T b) {
    return a * b;
  }
};

/// Scales and zero points from input `first` on are single numbers: every input that is not listed
/// among the `data`.
Status check_scalars(const InferContext& context, std::initializer_list<std::size_t> data) {
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (std::find(data.begin(), data.end(), i) != data.end()) continue;
    const Shape* shape = context.shape(i);
    const auto count = shape != nullptr ? shape->element_count() : std::nullopt;
    if (count && *count != 1) {
      return context.error("'{}' should be a scalar, but has shape {}", context.input_name(i),
                           shape->to_string());
    }
  }
  return {};
}

/// Input i, with its scale and zero point in the two that follow, as float32.
Result<Tensor> real_input(const EvalContext& context, std::size_t i) {
  const Tensor& x = context.tensor(i);
  SDX_ASSIGN(Tensor real, Tensor::allocate(DType::Float32, x.shape()));
  SDX_TRY(dequantize(x, context.tensor(i + 1), context.tensor_or_null(i + 2), {}, real));
  return real;
}

/// Quantises to output 0 by the scale at input `scale` and the zero point after it.
Status write_quantized(EvalContext& context, const Tensor& real, std::size_t scale) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  return quantize(real, context.tensor(scale), context.tensor_or_null(scale + 1), {}, *y);
}

Status infer_binary_quantized(InferContext& context) {
  SDX_TRY(check_scalars(context, {0, 3}));
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(3);
  if (a == nullptr || b == nullptr) return {};
  const auto shape = broadcast(*a, *b);
  if (!shape) {
    return context.error("shapes {} of '{}' and {} of '{}' do not broadcast", a->to_string(),
                         context.input_name(0), b->to_string(), context.input_name(3));
  }
  context.set_shape(0, *shape);
  return {};
}

template <typename F>
Status evaluate_binary_quantized(EvalContext& context) {
  SDX_ASSIGN(const Tensor a, real_input(context, 0));
  SDX_ASSIGN(const Tensor b, real_input(context, 3));
  SDX_ASSIGN(Tensor c, Tensor::allocate(DType::Float32, *context.output_type(0).shape));
  broadcast_run(run_binary<F, float>, a, b, c);
  return write_quantized(context, c, 6);
}

Status infer_unary_quantized(InferContext& context) {
  SDX_TRY(check_scalars(context, {0}));
  return infer_same_shape(context);
}

Status evaluate_sigmoid(EvalContext& context) {
  SDX_ASSIGN(Tensor x, real_input(context, 0));
  for (float& value : x.mutable_values<float>()) value = sigmoid(value);
  return write_quantized(context, x, 3);
}

Status evaluate_leaky_relu(EvalContext& context) {
  const float alpha = context.attributes().get_float("alpha", 0.01F);
  SDX_ASSIGN(Tensor x, real_input(context, 0));
  for (float& value : x.mutable_values<float>()) value = value < 0 ? alpha * value : value;
  return write_quantized(context, x, 3);
}

Delegate softmax_of(const Attributes& attributes) {
  Delegate softmax{"Softmax", attributes.get_int("opset", 13), {}};
  softmax.attributes.set("axis", attributes.get_int("axis", -1));
  return softmax;
}

Status infer_softmax_quantized(InferContext& context) {
  SDX_TRY(infer_unary_quantized(context));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  return infer_delegate(softmax_of(context.attributes()), {Type::tensor(DType::Float32, *x)})
      .take_status();
}

Status evaluate_softmax_quantized(EvalContext& context) {
  SDX_ASSIGN(const Tensor x, real_input(context, 0));
  SDX_ASSIGN(const Tensor y, evaluate_delegate(softmax_of(context.attributes()), {x}));
  return write_quantized(context, y, 3);
}

/// The order of axes that brings channels from last to second, or back.
std::vector<std::int64_t> channel_order(int rank, bool to_first) {
  std::vector<std::int64_t> order = {0};
  if (to_first) order.push_back(rank - 1);
  for (int i = 1; i < rank - 1; ++i) order.push_back(to_first ? i : i + 1);
  if (!to_first) order.push_back(1);
  return order;
}

Delegate transpose_of(int rank, bool to_first) {
  Delegate transpose{"Transpose", 13, {}};
  transpose.attributes.set("perm", channel_order(rank, to_first));
  return transpose;
}

Delegate pool_of(const Node& node) {
  if (node.op_type == "QLinearGlobalAveragePool") return {"GlobalAveragePool", 1, {}};
  return {"AveragePool", 11,
          attributes_named(node.attributes, {"auto_pad", "ceil_mode", "count_include_pad",
                                             "kernel_shape", "pads", "strides"})};
}

Status infer_pool_quantized(InferContext& context) {
  SDX_TRY(check_scalars(context, {0}));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  Type type = Type::tensor(DType::Float32, *x);
  const bool is_last = context.attributes().get_int("channels_last", 0) != 0;
  if (x->rank() < 3) {
    return context.error("'{}' has shape {}, which has no spatial axis", context.input_name(0),
                         x->to_string());
  }
  if (is_last) {
    SDX_ASSIGN(type, infer_delegate(transpose_of(x->rank(), true), {type}));
  }
  SDX_ASSIGN(type, infer_delegate(pool_of(context.node()), {type}));
  if (is_last) {
    SDX_ASSIGN(type, infer_delegate(transpose_of(x->rank(), false), {type}));
  }
  if (type.shape) context.set_shape(0, *type.shape);
  return {};
}

Status evaluate_pool_quantized(EvalContext& context) {
  SDX_ASSIGN(Tensor x, real_input(context, 0));
  const bool is_last = context.attributes().get_int("channels_last", 0) != 0;
  if (is_last) {
    SDX_ASSIGN(x, evaluate_delegate(transpose_of(x.rank(), true), {x}));
  }
  SDX_ASSIGN(x, evaluate_delegate(pool_of(context.node()), {x}));
  if (is_last) {
    SDX_ASSIGN(x, evaluate_delegate(transpose_of(x.rank(), false), {x}));
  }
  return write_quantized(context, x, 3);
}

Delegate reduction_of(std::string op_type, const Attributes& attributes) {
  return {std::move(op_type), 11, attributes_named(attributes, {"axes", "keepdims"})};
}

Status infer_reduction(InferContext& context, std::string op_type) {
  SDX_TRY(check_scalars(context, {0}));
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  SDX_ASSIGN(const Type type,
             infer_delegate(reduction_of(std::move(op_type), context.attributes()),
                            {Type::tensor(DType::Float32, *x)}));
  if (type.shape) context.set_shape(0, *type.shape);
  return {};
}

Status infer_reduce_mean(InferContext& context) { return infer_reduction(context, "ReduceMean"); }

Status evaluate_reduce_mean(EvalContext& context) {
  SDX_ASSIGN(const Tensor x, real_input(context, 0));
  SDX_ASSIGN(const Tensor y,
             evaluate_delegate(reduction_of("ReduceMean", context.attributes()), {x}));
  return write_quantized(context, y, 3);
}

Status infer_reduce_sum_integer(InferContext& context) {
  context.set_dtype(0, context.dtype(0) == DType::UInt8 ? DType::UInt32 : DType::Int32);
  return infer_reduction(context, "ReduceSum");
}

Status evaluate_reduce_sum_integer(EvalContext& context) {
  SDX_ASSIGN(const Tensor x, to_dtype(context.tensor(0), context.output_type(0).dtype));
  SDX_ASSIGN(Tensor y, evaluate_delegate(reduction_of("ReduceSum", context.attributes()), {x}));
  context.set_output(0, std::move(y));
  return {};
}

Status infer_where_quantized(InferContext& context) {
  SDX_TRY(check_scalars(context, {0, 1, 4}));
  if (context.shape(0) == nullptr || context.shape(1) == nullptr || context.shape(4) == nullptr) {
    return {};
  }
  SDX_ASSIGN(const Type type,
             infer_delegate({"Where", 16, {}}, {Type::tensor(DType::Bool, *context.shape(0)),
                                                Type::tensor(DType::Float32, *context.shape(1)),
                                                Type::tensor(DType::Float32, *context.shape(4))}));
  if (type.shape) context.set_shape(0, *type.shape);
  return {};
}

Status evaluate_where_quantized(EvalContext& context) {
  SDX_ASSIGN(const Tensor x, real_input(context, 1));
  SDX_ASSIGN(const Tensor y, real_input(context, 4));
  SDX_ASSIGN(const Tensor z, evaluate_delegate({"Where", 16, {}}, {context.tensor(0), x, y}));
  return write_quantized(context, z, 7);
}

/// Whether input i is there and may be a tensor of such elements, as far as is known.
bool is_tensor_of(const InferContext& context, std::size_t i, DTypeSet allowed) {
  const Type& type = context.type(i);
  if (!context.has_input(i)) return false;
  if (type.kind == Type::Kind::Unknown) return true;
  return type.is_tensor() && (type.dtype == DType::Undefined || contains(allowed, type.dtype));
}

/// Inputs are the output's scale and zero point, then groups of tensor, scale and zero point.
Status infer_concat_quantized(InferContext& context) {
  if (context.input_count() < 5 || (context.input_count() - 2) % 3 != 0) {
    return context.error("{} inputs are not the output's two and three for each tensor",
                         context.input_count());
  }
  const std::int64_t attribute = context.attributes().get_int("axis", 0);
  std::optional<Shape> result;
  int axis = 0;
  for (std::size_t i = 2; i < context.input_count(); i += 3) {
    const bool fits = is_tensor_of(context, i, set_of(DType::UInt8, DType::Int8)) &&
                      is_tensor_of(context, i + 1, set_of(DType::Float32)) &&
                      (!context.has_input(i + 2) ||
                       is_tensor_of(context, i + 2, set_of(DType::UInt8, DType::Int8)));
    if (!fits) {
      return context.error("inputs {} and on should be 8-bit integers, a scale and a zero point",
                           i);
    }
    const Shape* shape = context.shape(i);
    if (shape == nullptr) return {};
    const auto normal = normalize_axis(attribute, shape->rank());
    if (!normal || (result && result->rank() != shape->rank())) {
      return context.error("axis {} does not fit '{}' of shape {}", attribute,
                           context.input_name(i), shape->to_string());
    }
    axis = *normal;
    if (!result) {
      result = *shape;
      continue;
    }
    for (int k = 0; k < shape->rank(); ++k) {
      Dim& dim = (*result)[k];
      if (k == axis) {
        const bool are_known = is_known(dim) && is_known((*shape)[k]);
        dim = are_known ? checked_add(dim, (*shape)[k]).value_or(kUnknownDim) : kUnknownDim;
      } else if (is_known(dim) && is_known((*shape)[k]) && dim != (*shape)[k]) {
        return context.error("'{}' of shape {} does not go on after {}", context.input_name(i),
                             shape->to_string(), result->to_string());
      } else if (!is_known(dim)) {
        dim = (*shape)[k];
      }
    }
  }
  context.set_shape(0, *result);
  return {};
}

Status evaluate_concat_quantized(EvalContext& context) {
  std::vector<Datum> parts;
  for (std::size_t i = 2; i < context.input_count(); i += 3) {
    SDX_ASSIGN(Tensor part, real_input(context, i));
    parts.emplace_back(std::move(part));
  }
  Delegate concat{"Concat", 13, attributes_named(context.attributes(), {"axis"})};
  SDX_ASSIGN(const std::vector<Datum> joined, evaluate_delegate(std::move(concat), parts));
  return write_quantized(context, *joined[0].tensor(), 0);
}

Status infer_mul_integer(InferContext& context) {
  SDX_TRY(check_scalars(context, {0, 2}));
  context.set_dtype(0, DType::Int32);
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(2);
  if (a == nullptr || b == nullptr) return {};
  const auto shape = broadcast(*a, *b);
  if (!shape) {
    return context.error("shapes {} and {} do not broadcast", a->to_string(), b->to_string());
  }
  context.set_shape(0, *shape);
  return {};
}

/// Input i less its zero point, as int32.
Result<Tensor> centred(const EvalContext& context, std::size_t i) {
  SDX_ASSIGN(Tensor x, to_dtype(context.tensor(i), DType::Int32));
  if (const Tensor* zero = context.tensor_or_null(i + 1)) {
    const auto shift = static_cast<std::int32_t>(read_int(zero->dtype(), zero->data(), 0));
    for (std::int32_t& value : x.mutable_values<std::int32_t>()) value -= shift;
  }
  return x;
}

Status evaluate_mul_integer(EvalContext& context) {
  SDX_ASSIGN(const Tensor a, centred(context, 0));
  SDX_ASSIGN(const Tensor b, centred(context, 2));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y != nullptr) broadcast_run(run_binary<Mul, std::int32_t>, a, b, *y);
  return {};
}

constexpr DTypeSet kBytes = set_of(DType::UInt8, DType::Int8);

constexpr OpSchema kRows[] = {
    {"com.microsoft", "MulInteger", 1, {"TtTt>U", kBytes, set_of(DType::Int32)}, "",
     infer_mul_integer, evaluate_mul_integer},
    {"com.microsoft", "QLinearAdd", 1, {"TFtTFtFt>T", kBytes}, "", infer_binary_quantized,
     evaluate_binary_quantized<Add>},
    {"com.microsoft", "QLinearAveragePool", 1, {"TFtFt>T", kBytes},
     "auto_pad:s ceil_mode:i channels_last:i count_include_pad:i kernel_shape:is! pads:is "
     "strides:is",
     infer_pool_quantized, evaluate_pool_quantized},
    {"com.microsoft", "QLinearConcat", 1, {"FTX*>T", kBytes}, "axis:i!", infer_concat_quantized,
     evaluate_concat_quantized},
    {"com.microsoft", "QLinearGlobalAveragePool", 1, {"TFTFT>T", kBytes}, "channels_last:i",
     infer_pool_quantized, evaluate_pool_quantized},
    {"com.microsoft", "QLinearLeakyRelu", 1, {"TFtFt>T", kBytes}, "alpha:f",
     infer_unary_quantized, evaluate_leaky_relu},
    {"com.microsoft", "QLinearMul", 1, {"TFtTFtFt>T", kBytes}, "", infer_binary_quantized,
     evaluate_binary_quantized<Mul>},
    {"com.microsoft", "QLinearReduceMean", 1, {"TFtFt>T", kBytes}, "axes:is! keepdims:i!",
     infer_reduce_mean, evaluate_reduce_mean},
    {"com.microsoft", "QLinearSigmoid", 1, {"TFtFt>T", kBytes}, "", infer_unary_quantized,
     evaluate_sigmoid},
    {"com.microsoft", "QLinearSoftmax", 1, {"TFtFT>T", kBytes}, "axis:i opset:i!",
     infer_softmax_quantized, evaluate_softmax_quantized},
    {"com.microsoft", "QLinearWhere", 1, {"BTFTTFTFT>T", kBytes}, "", infer_where_quantized,
     evaluate_where_quantized},
    {"com.microsoft", "ReduceSumInteger", 1,
     {"T>U", kBytes, set_of(DType::Int32, DType::UInt32)}, "axes:is! keepdims:i!",
     infer_reduce_sum_integer, evaluate_reduce_sum_integer},
};

}  // namespace

std::span<const OpSchema> qlinear_schemas() { return kRows; }

}  // namespace sardonyx
