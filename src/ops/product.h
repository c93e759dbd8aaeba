#pragma once

#include "ops/dense.h"
#include "ops/infer_context.h"

namespace sardonyx {

/// How numpy's matmul sees two shapes: batches that broadcast, and matrices.
struct ProductShape {
  Shape a_batch;
  Shape b_batch;
  Shape batch;
  Dim rows = 1;
  Dim depth = 1;
  Dim columns = 1;
  /// Of the result: without rows (columns) when the left (right) operand has rank 1.
  Shape result;
};

/// Errors   InvalidModel when the shapes do not fit; they may be partly unknown.
Result<ProductShape> product_shape(const Shape& a, const Shape& b);

/// The shape of an operand after the flags of FusedMatMul: `is_batch_moved` puts the first
/// dimension before the last one, `is_swapped` swaps the last two.
Shape product_operand(Shape shape, bool is_swapped, bool is_batch_moved);

/// y = a b over all batches; dense operands.
template <typename C>
void multiply_batches(const ProductShape& shape, const C* a, const C* b, C* y);

/// The InferFn of products of inputs `a` and `b` as they are.
Status infer_product(InferContext& context, std::size_t a, std::size_t b);

/// value - zero_point as uint32, whose low bits are right for int32 sums. `zero_point` may be null
/// (0), a scalar, one per index of `axis`, or broadcast to the shape.
/// Errors   Runtime when it has another shape.
Result<Tensor> subtract_zero_point(const Tensor& values, const Tensor* zero_point, int axis);

/// value *= scale (or /= when `divide`), where the scale is one, one per index of `axis`, or
/// broadcasts to the shape.
/// Errors   Runtime when it has another shape.
Status scale_by(float* values, const Shape& shape, const Tensor& scale, int axis, bool divide);

/// The axis along which a scale or zero point of rank 1 runs: rows of the left, columns of the
/// right operand.
inline int row_axis(const Tensor& a) { return a.rank() > 1 ? a.rank() - 2 : 0; }
inline int column_axis(const Tensor& b) { return b.rank() - 1; }

/// (a - a_zero_point) (b - b_zero_point) as float, whose sums are exact int32.
Result<Tensor> integer_product(const ProductShape& shape, const Tensor& a,
                               const Tensor* a_zero_point, const Tensor& b,
                               const Tensor* b_zero_point);

/// Reads one value, or one per index of an axis of that size, as float.
/// Errors   Runtime when there are neither 1 nor `size` values.
Result<std::vector<float>> per_axis_values(const Tensor& values, std::int64_t size,
                                           std::string_view what);

/// round(value) + zero_point, saturated to an 8-bit (or 16-bit) integer type.
std::int64_t requantize(DType dtype, float value, std::int64_t zero_point);

}  // namespace sardonyx
