#include <algorithm>
#include <cmath>

#include "ir/element.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/product.h"

namespace sardonyx {

namespace {

Status infer_matmul(InferContext& context) { return infer_product(context, 0, 1); }

Status evaluate_matmul(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  SDX_ASSIGN(const ProductShape shape, product_shape(a.shape(), b.shape()));
  return with_arithmetic(a.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto a_values, Elements<C>::of(a));
    SDX_ASSIGN(const auto b_values, Elements<C>::of(b));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    multiply_batches(shape, a_values.data(), b_values.data(), y.data());
    y.commit();
    return {};
  });
}

struct FusedFlags {
  bool swap_a, swap_b, batch_a, batch_b;
  explicit FusedFlags(const Attributes& attributes)
      : swap_a(attributes.get_int("transA", 0) != 0),
        swap_b(attributes.get_int("transB", 0) != 0),
        batch_a(attributes.get_int("transBatchA", 0) != 0),
        batch_b(attributes.get_int("transBatchB", 0) != 0) {}
};

Status infer_fused_matmul(InferContext& context) {
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return {};
  const FusedFlags flags(context.attributes());
  SDX_ASSIGN(const ProductShape shape,
             product_shape(product_operand(*a, flags.swap_a, flags.batch_a),
                           product_operand(*b, flags.swap_b, flags.batch_b)));
  context.set_shape(0, shape.result);
  return {};
}

/// Elements in the order of product_operand's shape.
template <typename C>
Result<Elements<C>> operand_elements(const Tensor& tensor, bool is_swapped, bool is_batch_moved) {
  const int rank = tensor.rank();
  if (rank < 2 || (!is_swapped && !(is_batch_moved && rank > 2))) return Elements<C>::of(tensor);
  Shape shape = tensor.shape();
  SDX_ASSIGN(auto values, Elements<C>::of(tensor));
  const std::int64_t count = tensor.element_count();
  if (is_batch_moved && rank > 2) {
    SDX_ASSIGN(Tensor moved, make_scratch<C>(count));
    const std::int64_t first = shape[0];
    const std::int64_t middle = shape.product(1, rank - 1);
    const std::int64_t last = shape[rank - 1];
    auto* to = reinterpret_cast<C*>(moved.mutable_data());
    for (std::int64_t m = 0; m < middle; ++m) {
      for (std::int64_t f = 0; f < first; ++f, to += last) {
        std::copy_n(values.data() + (f * middle + m) * last, last, to);
      }
    }
    SDX_ASSIGN(values, Elements<C>::of(moved));
    shape = product_operand(shape, false, true);
  }
  if (!is_swapped) return values;
  SDX_ASSIGN(Tensor swapped, make_scratch<C>(count));
  const std::int64_t rows = shape[rank - 2];
  const std::int64_t columns = shape[rank - 1];
  const std::int64_t batch = shape.product(0, rank - 2);
  auto* to = reinterpret_cast<C*>(swapped.mutable_data());
  for (std::int64_t i = 0; i < batch; ++i) {
    transpose_matrix(values.data() + i * rows * columns, rows, columns, to + i * rows * columns);
  }
  return Elements<C>::of(swapped);
}

Status evaluate_fused_matmul(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  const FusedFlags flags(context.attributes());
  SDX_ASSIGN(const ProductShape shape,
             product_shape(product_operand(a.shape(), flags.swap_a, flags.batch_a),
                           product_operand(b.shape(), flags.swap_b, flags.batch_b)));
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  return with_real(a.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto a_values, operand_elements<C>(a, flags.swap_a, flags.batch_a));
    SDX_ASSIGN(const auto b_values, operand_elements<C>(b, flags.swap_b, flags.batch_b));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    multiply_batches(shape, a_values.data(), b_values.data(), y.data());
    const std::int64_t count = y.element_count();
    for (std::int64_t i = 0; i < count; ++i) y[i] *= static_cast<C>(alpha);
    y.commit();
    return {};
  });
}

Status infer_gemm(InferContext& context) {
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(1);
  for (const Shape* shape : {a, b}) {
    if (shape != nullptr && shape->rank() != 2) {
      return context.error("Gemm takes matrices, but '{}' has shape {}",
                           context.input_name(shape == a ? 0 : 1), shape->to_string());
    }
  }
  if (a == nullptr || b == nullptr) return {};
  const FusedFlags flags(context.attributes());
  SDX_ASSIGN(const ProductShape shape, product_shape(product_operand(*a, flags.swap_a, false),
                                                     product_operand(*b, flags.swap_b, false)));
  if (const Shape* c = context.shape(2)) {
    const auto result = broadcast(shape.result, *c);
    bool fits = result && c->rank() <= 2;
    for (int i = 0; fits && i < c->rank(); ++i) {
      const Dim target = shape.result[2 - c->rank() + i];
      fits = (*c)[i] == 1 || !differ((*c)[i], target);
    }
    if (!fits) {
      return context.error("'{}' of shape {} does not broadcast to the product's shape {}",
                           context.input_name(2), c->to_string(), shape.result.to_string());
    }
  }
  context.set_shape(0, shape.result);
  return {};
}

template <typename C>
C scaled(C value, float factor) {
  if constexpr (std::is_integral_v<C>) {
    // Integers keep their exact product whenever the factor is a whole number.
    if (factor == std::trunc(factor) && std::abs(factor) < 1e9F) {
      return value * static_cast<C>(static_cast<std::int64_t>(factor));
    }
    const double real = static_cast<double>(static_cast<std::int64_t>(value)) * factor;
    return std::abs(real) < 0x1p63 ? static_cast<C>(static_cast<std::int64_t>(real)) : C{};
  } else {
    return value * static_cast<C>(factor);
  }
}

template <typename C>
void add_bias(const Tensor& bias, const C* c, float beta, std::int64_t rows, std::int64_t columns,
              C* y) {
  const int rank = bias.rank();
  const std::int64_t column_stride = rank >= 1 && bias.dim(rank - 1) != 1 ? 1 : 0;
  const std::int64_t row_stride = rank == 2 && bias.dim(0) != 1 ? bias.dim(1) : 0;
  for (std::int64_t i = 0; i < rows; ++i) {
    const C* row = c + i * row_stride;
    for (std::int64_t j = 0; j < columns; ++j) {
      y[i * columns + j] += scaled(row[j * column_stride], beta);
    }
  }
}

Status evaluate_gemm(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  const FusedFlags flags(context.attributes());
  SDX_ASSIGN(const ProductShape shape,
             product_shape(product_operand(a.shape(), flags.swap_a, false),
                           product_operand(b.shape(), flags.swap_b, false)));
  const float alpha = context.attributes().get_float("alpha", 1.0F);
  const float beta = context.attributes().get_float("beta", 1.0F);
  SDX_ASSIGN(const Activation activation, Activation::of_node(context.attributes()));
  return with_arithmetic(a.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto a_values, operand_elements<C>(a, flags.swap_a, false));
    SDX_ASSIGN(const auto b_values, operand_elements<C>(b, flags.swap_b, false));
    SDX_ASSIGN(const auto c_values, Elements<C>::of(context.tensor_or_null(2)));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    multiply_batches(shape, a_values.data(), b_values.data(), y.data());
    const std::int64_t count = y.element_count();
    if (alpha != 1.0F) {
      for (std::int64_t i = 0; i < count; ++i) y[i] = scaled(y[i], alpha);
    }
    if (c_values) {
      add_bias(context.tensor(2), c_values.data(), beta, shape.rows, shape.columns, y.data());
    }
    if constexpr (std::is_floating_point_v<C>) activation.apply(y.data(), count);
    y.commit();
    return {};
  });
}

Status infer_matmul_integer(InferContext& context) {
  context.set_dtype(0, DType::Int32);
  return infer_product(context, 0, 1);
}

Status evaluate_matmul_integer(EvalContext& context) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(1);
  SDX_ASSIGN(const ProductShape shape, product_shape(a.shape(), b.shape()));
  SDX_ASSIGN(const Tensor left, subtract_zero_point(a, context.tensor_or_null(2), row_axis(a)));
  SDX_ASSIGN(const Tensor right, subtract_zero_point(b, context.tensor_or_null(3), column_axis(b)));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  multiply_batches(shape, left.values<std::uint32_t>().data(), right.values<std::uint32_t>().data(),
                   reinterpret_cast<std::uint32_t*>(y->mutable_data()));
  return {};
}

Status infer_qlinear_matmul(InferContext& context) {
  if (context.type(7).is_tensor()) context.set_dtype(0, context.dtype(7));
  return infer_product(context, 0, 3);
}

/// a_scale b_scale / y_scale for every element of the product.
Result<Tensor> product_scales(EvalContext& context, const Shape& shape) {
  SDX_ASSIGN(Tensor scales, Tensor::allocate(DType::Float32, shape));
  auto values = scales.mutable_values<float>();
  std::fill(values.begin(), values.end(), 1.0F);
  const int rank = shape.rank();
  SDX_TRY(scale_by(values.data(), shape, context.tensor(1), rank - 2, false));
  SDX_TRY(scale_by(values.data(), shape, context.tensor(4), rank - 1, false));
  SDX_TRY(scale_by(values.data(), shape, context.tensor(6), rank - 2, true));
  return scales;
}

/// The product as float: exact integers, or float8 operands decoded.
Result<Tensor> quantized_product(EvalContext& context, const ProductShape& shape) {
  const Tensor& a = context.tensor(0);
  const Tensor& b = context.tensor(3);
  if (contains(kFloat8, a.dtype())) {
    SDX_ASSIGN(Tensor result, Tensor::allocate(DType::Float32, shape.result));
    SDX_ASSIGN(const auto left, Elements<float>::of(a));
    SDX_ASSIGN(const auto right, Elements<float>::of(b));
    multiply_batches(shape, left.data(), right.data(), result.mutable_values<float>().data());
    return result;
  }
  return integer_product(shape, a, context.tensor_or_null(2), b, context.tensor_or_null(5));
}

Status evaluate_qlinear_matmul(EvalContext& context) {
  SDX_ASSIGN(const ProductShape shape,
             product_shape(context.tensor(0).shape(), context.tensor(3).shape()));
  SDX_ASSIGN(const Tensor product, quantized_product(context, shape));
  SDX_ASSIGN(const Tensor scales, product_scales(context, shape.result));
  SDX_ASSIGN(const Tensor zero, subtract_zero_point(context.tensor(7), nullptr, 0));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Tensor& zero_point = context.tensor(7);
  const std::int64_t zero_count = zero_point.element_count();
  if (zero_count != 1 && zero_count != shape.rows) {
    return context.error("y_zero_point has {} elements, expected 1 or {}", zero_count, shape.rows);
  }
  const auto sums = product.values<float>();
  const auto factors = scales.values<float>();
  const auto zeros = zero.values<std::int32_t>();
  const auto columns = static_cast<std::size_t>(std::max<Dim>(shape.columns, 1));
  const auto rows = static_cast<std::size_t>(std::max<Dim>(shape.rows, 1));
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const float value = sums[i] * factors[i];
    if (contains(kFloat8, y->dtype())) {
      write_real(y->dtype(), y->mutable_data(), static_cast<std::int64_t>(i), value);
    } else {
      const std::int64_t zp = zeros[zero_count == 1 ? 0 : i / columns % rows];
      write_int(y->dtype(), y->mutable_data(), static_cast<std::int64_t>(i),
                requantize(y->dtype(), value, zp));
    }
  }
  return {};
}

Status infer_det(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  const int rank = shape->rank();
  if (rank < 2 || differ((*shape)[rank - 1], (*shape)[rank - 2])) {
    return context.error("Det takes square matrices, but '{}' has shape {}", context.input_name(0),
                         shape->to_string());
  }
  context.set_shape(0, slice_of(*shape, 0, rank - 2));
  return {};
}

/// By elimination with partial pivoting; destroys the matrix.
double determinant(double* m, std::int64_t n) {
  double result = 1.0;
  for (std::int64_t column = 0; column < n; ++column) {
    std::int64_t pivot = column;
    for (std::int64_t row = column + 1; row < n; ++row) {
      if (std::abs(m[row * n + column]) > std::abs(m[pivot * n + column])) pivot = row;
    }
    if (m[pivot * n + column] == 0.0) return 0.0;
    if (pivot != column) {
      std::swap_ranges(m + pivot * n, m + pivot * n + n, m + column * n);
      result = -result;
    }
    result *= m[column * n + column];
    for (std::int64_t row = column + 1; row < n; ++row) {
      const double factor = m[row * n + column] / m[column * n + column];
      for (std::int64_t k = column; k < n; ++k) m[row * n + k] -= factor * m[column * n + k];
    }
  }
  return result;
}

Status evaluate_det(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor matrix, to_dtype(x, DType::Float64));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t n = x.dim(x.rank() - 1);
  const std::int64_t count = y->element_count();
  auto* values = reinterpret_cast<double*>(matrix.mutable_data());
  for (std::int64_t i = 0; i < count; ++i) {
    write_real(y->dtype(), y->mutable_data(), i, determinant(values + i * n * n, n), false);
  }
  return {};
}

Status infer_inverse(InferContext& context) {
  SDX_TRY(infer_det(context));
  return infer_same_shape(context);
}

/// Turns [m | to] into [1 | inverse] by elimination with partial pivoting; a singular matrix gives
/// infinities or NaN.
void invert(double* m, std::int64_t n, double* to) {
  for (std::int64_t i = 0; i < n * n; ++i) to[i] = i % (n + 1) == 0 ? 1.0 : 0.0;
  for (std::int64_t column = 0; column < n; ++column) {
    std::int64_t pivot = column;
    for (std::int64_t row = column + 1; row < n; ++row) {
      if (std::abs(m[row * n + column]) > std::abs(m[pivot * n + column])) pivot = row;
    }
    if (pivot != column) {
      std::swap_ranges(m + pivot * n, m + pivot * n + n, m + column * n);
      std::swap_ranges(to + pivot * n, to + pivot * n + n, to + column * n);
    }
    const double scale = 1.0 / m[column * n + column];
    for (std::int64_t k = 0; k < n; ++k) {
      m[column * n + k] *= scale;
      to[column * n + k] *= scale;
    }
    for (std::int64_t row = 0; row < n; ++row) {
      const double factor = m[row * n + column];
      if (row == column || factor == 0.0) continue;
      for (std::int64_t k = 0; k < n; ++k) {
        m[row * n + k] -= factor * m[column * n + k];
        to[row * n + k] -= factor * to[column * n + k];
      }
    }
  }
}

Status evaluate_inverse(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor matrix, to_dtype(x, DType::Float64));
  SDX_ASSIGN(auto y, Staged<double>::open(context, 0));
  if (!y || y.element_count() == 0) return {};
  const std::int64_t size = x.dim(x.rank() - 1) * x.dim(x.rank() - 1);
  auto* values = reinterpret_cast<double*>(matrix.mutable_data());
  for (std::int64_t i = 0; i < y.element_count(); i += size) {
    invert(values + i, x.dim(x.rank() - 1), y.data() + i);
  }
  y.commit();
  return {};
}

constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);
constexpr DTypeSet kWide =
    kFloats | set_of(DType::Int32, DType::Int64, DType::UInt32, DType::UInt64);
constexpr DTypeSet kWideBf16 = kWide | set_of(DType::BFloat16);
constexpr DTypeSet kScales = set_of(DType::Float32, DType::Float16, DType::BFloat16);
constexpr const char* kGemmAttributes = "alpha:f beta:f transA:i transB:i";
constexpr const char* kFusedMatMulAttributes =
    "alpha:f transA:i transB:i transBatchA:i transBatchB:i";

constexpr OpSchema kRows[] = {
    {"", "MatMul", 1, {"TT>T", kFloats}, "", infer_matmul, evaluate_matmul},
    {"", "MatMul", 9, {"TT>T", kWide}, "", infer_matmul, evaluate_matmul},
    {"", "MatMul", 13, {"TT>T", kWideBf16}, "", infer_matmul, evaluate_matmul},
    {"",
     "Gemm",
     1,
     {"TTT>T", kFloats},
     "alpha:f beta:f broadcast:i transA:i transB:i",
     infer_gemm,
     evaluate_gemm},
    {"",
     "Gemm",
     6,
     {"TTT>T", kFloats},
     "alpha:f beta:f broadcast:i transA:i transB:i",
     infer_gemm,
     evaluate_gemm},
    {"", "Gemm", 7, {"TTT>T", kFloats}, kGemmAttributes, infer_gemm, evaluate_gemm},
    {"", "Gemm", 9, {"TTT>T", kWide}, kGemmAttributes, infer_gemm, evaluate_gemm},
    {"", "Gemm", 11, {"TTt>T", kWide}, kGemmAttributes, infer_gemm, evaluate_gemm},
    {"", "Gemm", 13, {"TTt>T", kWideBf16}, kGemmAttributes, infer_gemm, evaluate_gemm},
    {"",
     "MatMulInteger",
     10,
     {"TUtu>V", k8Bit, k8Bit, set_of(DType::Int32)},
     "",
     infer_matmul_integer,
     evaluate_matmul_integer},
    {"",
     "QLinearMatMul",
     10,
     {"TFTUFUFV>V", k8Bit, k8Bit, k8Bit},
     "",
     infer_qlinear_matmul,
     evaluate_qlinear_matmul},
    {"",
     "QLinearMatMul",
     21,
     {"TWTUWUWV>V", k8Bit | kFloat8, k8Bit | kFloat8, k8Bit | kFloat8, kScales},
     "",
     infer_qlinear_matmul,
     evaluate_qlinear_matmul},
    {"", "Det", 11, {"T>T", kFloats}, "", infer_det, evaluate_det},
    {"", "Det", 22, {"T>T", kFloatsBf16}, "", infer_det, evaluate_det},
    {"com.microsoft", "Inverse", 1, {"T>T", kFloats}, "", infer_inverse, evaluate_inverse},
    {"com.microsoft",
     "FusedMatMul",
     1,
     {"TT>T", kFloatsBf16},
     kFusedMatMulAttributes,
     infer_fused_matmul,
     evaluate_fused_matmul},
    {"com.microsoft",
     "TransposeMatMul",
     1,
     {"TT>T", kFloatsBf16},
     kFusedMatMulAttributes,
     infer_fused_matmul,
     evaluate_fused_matmul},
    {"com.microsoft",
     "FusedGemm",
     1,
     {"TTt>T", kWideBf16},
     "alpha:f beta:f transA:i transB:i activation:s activation_alpha:f activation_beta:f "
     "activation_gamma:f",
     infer_gemm,
     evaluate_gemm},
    {"com.microsoft",
     "MatMulInteger16",
     1,
     {"TU>V", set_of(DType::Int16), set_of(DType::Int16), set_of(DType::Int32)},
     "",
     infer_matmul_integer,
     evaluate_matmul_integer},
};

}  // namespace

std::span<const OpSchema> matmul_schemas() { return kRows; }

}  // namespace sardonyx
