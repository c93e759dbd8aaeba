#include <algorithm>
#include <cmath>

#include "ir/element.h"
#include "ops/families.h"
#include "ops/product.h"
#include "ops/recurrent.h"

namespace sardonyx {

namespace {

/// Floats as 8-bit numbers around a zero point, as DynamicQuantizeLinear makes them; kept as
/// number - zero point.
struct DynamicRow {
  float scale = 1.0F;
  std::vector<std::uint32_t> values;
};

DynamicRow quantize_dynamically(const float* x, std::int64_t count) {
  float low = 0.0F;
  float high = 0.0F;
  for (std::int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  DynamicRow row;
  row.scale = high > low ? (high - low) / 255.0F : 1.0F;
  // Infinities leave no number here; they count as no offset.
  const float offset = std::nearbyint(0.0F - low / row.scale);
  const auto zero = offset >= 0.0F ? static_cast<std::int64_t>(std::min(offset, 255.0F)) : 0;
  row.values.resize(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t value = requantize(DType::UInt8, x[i] / row.scale, zero) - zero;
    row.values[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(value);
  }
  return row;
}

/// y += bias, one per column.
Status add_columns(float* y, std::int64_t count, std::int64_t columns, const Tensor* bias) {
  if (bias == nullptr) return {};
  if (bias->element_count() != columns) {
    return failure(Code::Runtime, "the bias has {} elements, expected {}", bias->element_count(),
                   columns);
  }
  SDX_ASSIGN(const auto values, Elements<float>::of(*bias));
  for (std::int64_t i = 0; i < count; ++i) y[i] += values[i % columns];
  return {};
}

Status infer_dynamic_matmul(InferContext& context) { return infer_product(context, 0, 1); }

Status evaluate_dynamic_matmul(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  SDX_ASSIGN(const ProductShape shape, product_shape(a.shape(), b.shape()));
  const DynamicRow left = quantize_dynamically(a.values<float>().data(), a.element_count());
  SDX_ASSIGN(const Tensor right, subtract_zero_point(b, context.tensor_or_null(3), column_axis(b)));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = y->element_count();
  SDX_ASSIGN(Tensor sums, make_scratch<std::uint32_t>(count));
  auto* from = reinterpret_cast<std::uint32_t*>(sums.mutable_data());
  multiply_batches(shape, left.values.data(), right.values<std::uint32_t>().data(), from);
  float* to = y->mutable_values<float>().data();
  for (std::int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<float>(static_cast<std::int32_t>(from[i])) * left.scale;
  }
  SDX_TRY(scale_by(to, y->shape(), context.tensor(2), y->rank() - 1, false));
  return add_columns(to, count, shape.columns, context.tensor_or_null(4));
}

Status evaluate_integer_to_float(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  SDX_ASSIGN(const ProductShape shape, product_shape(a.shape(), b.shape()));
  SDX_ASSIGN(Tensor product,
             integer_product(shape, a, context.tensor_or_null(4), b, context.tensor_or_null(5)));
  const int rank = product.rank();
  float* values = product.mutable_values<float>().data();
  SDX_TRY(scale_by(values, product.shape(), context.tensor(2), rank - 2, false));
  SDX_TRY(scale_by(values, product.shape(), context.tensor(3), rank - 1, false));
  SDX_TRY(add_columns(values, product.element_count(), shape.columns, context.tensor_or_null(6)));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  if (!y) return {};
  std::copy_n(values, y.element_count(), y.data());
  y.commit();
  return {};
}

Status infer_qgemm(InferContext& context) {
  const bool is_quantized = context.has_input(7) && context.has_input(8);
  context.set_dtype(0, is_quantized ? context.dtype(8) : DType::Float32);
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(3);
  if (a == nullptr || b == nullptr) return {};
  if (a->rank() != 2 || b->rank() != 2) {
    return context.error("QGemm takes matrices, found shapes {} and {}", a->to_string(),
                         b->to_string());
  }
  const bool swap_a = context.attributes().get_int("transA", 0) != 0;
  const bool swap_b = context.attributes().get_int("transB", 0) != 0;
  SDX_ASSIGN(const ProductShape shape,
             product_shape(product_operand(*a, swap_a, false), product_operand(*b, swap_b, false)));
  context.set_shape(0, shape.result);
  return {};
}

/// A matrix, transposed if wanted, as uint32 minus its zero point.
Result<Tensor> gemm_operand(const Tensor& matrix, bool is_swapped, const Tensor* zero_point,
                            bool is_right) {
  const int axis = is_right != is_swapped ? 1 : 0;
  SDX_ASSIGN(Tensor values, subtract_zero_point(matrix, zero_point, axis));
  if (!is_swapped) return values;
  SDX_ASSIGN(Tensor swapped, make_scratch<std::uint32_t>(matrix.element_count()));
  transpose_matrix(values.values<std::uint32_t>().data(), matrix.dim(0), matrix.dim(1),
                   swapped.mutable_values<std::uint32_t>().data());
  return swapped;
}

/// sums += c, broadcast to the matrix.
Status add_integers(std::uint32_t* sums, const Shape& shape, const Tensor* c) {
  if (c == nullptr) return {};
  const auto fitting = broadcast(shape, c->shape());
  if (!fitting || !(*fitting == shape)) {
    return failure(Code::Runtime, "C of shape {} does not broadcast to {}", c->shape().to_string(),
                   shape.to_string());
  }
  SDX_ASSIGN(const auto values, Elements<std::uint32_t>::of(*c));
  BatchWalk walk(shape);
  walk.add(c->shape(), 1);
  const std::int64_t count = shape.product(0, shape.rank());
  for (std::int64_t i = 0; i < count; ++i, walk.next()) sums[i] += values[walk.offset(0)];
  return {};
}

Status evaluate_qgemm(EvalContext& context) {
  const bool swap_a = context.attributes().get_int("transA", 0) != 0;
  const bool swap_b = context.attributes().get_int("transB", 0) != 0;
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(3);
  SDX_ASSIGN(const ProductShape shape, product_shape(product_operand(a.shape(), swap_a, false),
                                                     product_operand(b.shape(), swap_b, false)));
  SDX_ASSIGN(const Tensor left, gemm_operand(a, swap_a, context.tensor_or_null(2), false));
  SDX_ASSIGN(const Tensor right, gemm_operand(b, swap_b, context.tensor_or_null(5), true));
  SDX_ASSIGN(const auto a_scale, per_axis_values(context.tensor(1), 1, "a_scale"));
  SDX_ASSIGN(const auto b_scale, per_axis_values(context.tensor(4), shape.columns, "b_scale"));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = y->element_count();
  SDX_ASSIGN(Tensor scratch, make_scratch<std::uint32_t>(count));
  auto* sums = scratch.mutable_values<std::uint32_t>().data();
  multiply_batches(shape, left.values<std::uint32_t>().data(), right.values<std::uint32_t>().data(),
                   sums);
  SDX_TRY(add_integers(sums, y->shape(), context.tensor_or_null(6)));
  const bool is_quantized = y->dtype() != DType::Float32;
  float divisor = 1.0F;
  std::int64_t zero_point = 0;
  if (is_quantized) {
    SDX_ASSIGN(const auto y_scale, per_axis_values(context.tensor(7), 1, "y_scale"));
    divisor = y_scale[0];
    const Tensor& zero = context.tensor(8);
    if (zero.element_count() > 0) zero_point = read_int(zero.dtype(), zero.data(), 0);
  }
  const float alpha = context.attributes().get_float("alpha", 1.0F) * a_scale[0];
  for (std::int64_t i = 0; i < count; ++i) {
    const float scale = alpha * b_scale[static_cast<std::size_t>(i % shape.columns)] / divisor;
    const float value = static_cast<float>(static_cast<std::int32_t>(sums[i])) * scale;
    if (is_quantized) {
      write_int(y->dtype(), y->mutable_data(), i, requantize(y->dtype(), value, zero_point));
    } else {
      y->mutable_values<float>()[static_cast<std::size_t>(i)] = value;
    }
  }
  return {};
}

/// Inputs of DynamicQuantizeLSTM after those of LSTM.
enum LstmInput : std::size_t { kWScale = 8, kWZeroPoint, kRScale, kRZeroPoint };

Status infer_dynamic_lstm(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* w = context.shape(1);
  const Shape* r = context.shape(2);
  SDX_ASSIGN(const RecurrentPlan plan, recurrent_plan(RecurrentKind::Lstm, context.attributes()));
  const Dim hidden = r != nullptr && r->rank() == 3 ? (*r)[1] : kUnknownDim;
  const Dim input = x != nullptr && x->rank() == 3 ? (*x)[2] : kUnknownDim;
  const Dim gates = is_known(hidden) ? 4 * hidden : kUnknownDim;
  for (const Shape* shape : {w, r}) {
    if (shape == nullptr) continue;
    const bool fits = shape->rank() == 3 && !differ((*shape)[0], plan.directions) &&
                      !differ((*shape)[2], gates) && (shape == r || !differ((*shape)[1], input));
    if (fits) continue;
    return context.error("'{}' has shape {}, expected [{}, {}, {}]",
                         context.input_name(shape == w ? 1 : 2), shape->to_string(),
                         plan.directions, shape == w ? input : hidden, gates);
  }
  for (const std::size_t i : {kWScale, kWZeroPoint, kRScale, kRZeroPoint}) {
    const Shape* shape = context.shape(i);
    if (shape == nullptr) continue;
    const bool fits = shape->rank() >= 1 && shape->rank() <= 2 &&
                      !differ((*shape)[0], plan.directions) &&
                      (shape->rank() == 1 || !differ((*shape)[1], gates));
    if (fits) continue;
    return context.error("'{}' has shape {}, expected [{}] or [{}, {}]", context.input_name(i),
                         shape->to_string(), plan.directions, plan.directions, gates);
  }
  return infer_recurrent(context, RecurrentKind::Lstm, hidden);
}

/// One 8-bit weight [depth, gates] of one direction with its scales.
struct IntegerWeight {
  std::vector<std::uint32_t> values;
  std::vector<float> scales;

  static IntegerWeight of(const Tensor& weight, const Tensor& scale, const Tensor& zero_point,
                          std::int64_t direction) {
    const std::int64_t gates = weight.dim(2);
    const std::int64_t count = weight.dim(1) * gates;
    IntegerWeight result;
    result.values.resize(static_cast<std::size_t>(count));
    result.scales.resize(static_cast<std::size_t>(gates));
    const auto at = [&](const Tensor& parameter, std::int64_t gate) {
      return parameter.rank() == 2 ? direction * gates + gate : direction;
    };
    for (std::int64_t g = 0; g < gates; ++g) {
      result.scales[static_cast<std::size_t>(g)] =
          scale.values<float>()[static_cast<std::size_t>(at(scale, g))];
    }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t zero =
          read_int(zero_point.dtype(), zero_point.data(), at(zero_point, i % gates));
      const std::int64_t value = read_int(weight.dtype(), weight.data(), direction * count + i);
      result.values[static_cast<std::size_t>(i)] = static_cast<std::uint32_t>(value - zero);
    }
    return result;
  }

  /// out = x times columns [begin, end), x quantized dynamically as a whole.
  void multiply(const float* x, std::int64_t rows, std::int64_t depth, std::int64_t begin,
                std::int64_t end, float* out) const {
    const auto gates = static_cast<std::int64_t>(scales.size());
    const DynamicRow left = quantize_dynamically(x, rows * depth);
    const std::int64_t width = end - begin;
    std::vector<std::uint32_t> sums(static_cast<std::size_t>(rows * width), 0U);
    multiply_add<std::uint32_t>({.rows = rows,
                                 .columns = width,
                                 .depth = depth,
                                 .a = left.values.data(),
                                 .a_row = depth,
                                 .a_column = 1,
                                 .b = values.data() + begin,
                                 .b_row = gates,
                                 .c = sums.data(),
                                 .c_row = width});
    for (std::int64_t i = 0; i < rows * width; ++i) {
      const float scale = left.scale * scales[static_cast<std::size_t>(begin + i % width)];
      out[i] =
          static_cast<float>(static_cast<std::int32_t>(sums[static_cast<std::size_t>(i)])) * scale;
    }
  }
};

class IntegerWeights final : public RecurrentWeights<float> {
 public:
  IntegerWeights(IntegerWeight input, IntegerWeight state, const RecurrentPlan& plan)
      : input_(std::move(input)), state_(std::move(state)), plan_(plan) {}

  Status multiply_input(const float* x, std::int64_t rows, float* out) override {
    input_.multiply(x, rows, plan_.input, 0, plan_.gates(), out);
    return {};
  }
  Status multiply_state(const float* h, std::int64_t rows, std::int64_t begin, std::int64_t end,
                        float* out) override {
    state_.multiply(h, rows, plan_.hidden, begin, end, out);
    return {};
  }

 private:
  IntegerWeight input_;
  IntegerWeight state_;
  const RecurrentPlan& plan_;
};

const float* floats_of(const Tensor* tensor) {
  return tensor != nullptr ? tensor->values<float>().data() : nullptr;
}

Status evaluate_dynamic_lstm(EvalContext& context) {
  SDX_ASSIGN(RecurrentPlan plan, recurrent_plan(RecurrentKind::Lstm, context.attributes()));
  const Shape& shape = context.tensor(0).shape();
  plan.steps = shape[0];
  plan.batch = shape[1];
  plan.input = shape[2];
  plan.hidden = context.tensor(2).dim(1);
  SDX_ASSIGN(auto lengths, sequence_lengths(context, plan));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  SDX_ASSIGN(auto y_h, Staged<float>::open(context, 1));
  SDX_ASSIGN(auto y_c, Staged<float>::open(context, 2));
  const RecurrentInputs<float> inputs{.x = floats_of(&context.tensor(0)),
                                      .bias = floats_of(context.tensor_or_null(3)),
                                      .initial_h = floats_of(context.tensor_or_null(5)),
                                      .initial_c = floats_of(context.tensor_or_null(6)),
                                      .peephole = floats_of(context.tensor_or_null(7)),
                                      .lengths = std::move(lengths)};
  const RecurrentOutputs<float> outputs{y.data(), y_h.data(), y_c.data()};
  for (std::int64_t d = 0; d < plan.directions; ++d) {
    IntegerWeights weights(IntegerWeight::of(context.tensor(1), context.tensor(kWScale),
                                             context.tensor(kWZeroPoint), d),
                           IntegerWeight::of(context.tensor(2), context.tensor(kRScale),
                                             context.tensor(kRZeroPoint), d),
                           plan);
    SDX_TRY(run_direction<float>(plan, d, weights, inputs, outputs));
  }
  return {};
}

constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);
constexpr DTypeSet kInt32 = set_of(DType::Int32);
constexpr DTypeSet kScale = set_of(DType::Float32, DType::Float16);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "DynamicQuantizeMatMul",
     1,
     {"FTFtf>F", k8Bit},
     "",
     infer_dynamic_matmul,
     evaluate_dynamic_matmul},
    {"com.microsoft",
     "MatMulIntegerToFloat",
     1,
     {"TUVVtuv>V", k8Bit, k8Bit, kScale},
     "",
     infer_dynamic_matmul,
     evaluate_integer_to_float},
    {"com.microsoft",
     "QGemm",
     1,
     {"TFTUFUvfw>X", k8Bit, k8Bit, kInt32, k8Bit},
     "alpha:f transA:i transB:i",
     infer_qgemm,
     evaluate_qgemm},
    {"com.microsoft",
     "DynamicQuantizeLSTM",
     1,
     {"FTTfufffFTFT>fff", k8Bit, kInt32},
     "activation_alpha:fs activation_beta:fs activations:ss clip:f direction:s hidden_size:i "
     "input_forget:i",
     infer_dynamic_lstm,
     evaluate_dynamic_lstm},
};

}  // namespace

std::span<const OpSchema> quantized_matmul_schemas() { return kRows; }

}  // namespace sardonyx
