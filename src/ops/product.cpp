#include "ops/product.h"

#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ir/element.h"

namespace sardonyx {

Result<ProductShape> product_shape(const Shape& a, const Shape& b) {
  if (a.rank() == 0 || b.rank() == 0) {
    return failure(Code::InvalidModel, "matrix product of shapes {} and {}: scalars have no rows",
                   a.to_string(), b.to_string());
  }
  ProductShape shape;
  shape.rows = a.rank() > 1 ? a[a.rank() - 2] : 1;
  shape.depth = a[a.rank() - 1];
  const Dim b_depth = b.rank() > 1 ? b[b.rank() - 2] : b[0];
  shape.columns = b.rank() > 1 ? b[b.rank() - 1] : 1;
  if (differ(shape.depth, b_depth)) {
    return failure(Code::InvalidModel,
                   "matrix product of shapes {} and {}: {} columns do not meet {} rows",
                   a.to_string(), b.to_string(), shape.depth, b_depth);
  }
  if (!is_known(shape.depth)) shape.depth = b_depth;
  shape.a_batch = slice_of(a, 0, std::max(a.rank() - 2, 0));
  shape.b_batch = slice_of(b, 0, std::max(b.rank() - 2, 0));
  const auto batch = broadcast(shape.a_batch, shape.b_batch);
  if (!batch) {
    return failure(Code::InvalidModel, "batch dimensions of shapes {} and {} do not broadcast",
                   a.to_string(), b.to_string());
  }
  shape.batch = *batch;
  shape.result = *batch;
  if (a.rank() > 1) shape.result.push_back(shape.rows);
  if (b.rank() > 1) shape.result.push_back(shape.columns);
  return shape;
}

Shape product_operand(Shape shape, bool is_swapped, bool is_batch_moved) {
  const int rank = shape.rank();
  if (is_batch_moved && rank > 2) {
    const Dim first = shape[0];
    shape.erase(0);
    shape.insert(rank - 2, first);
  }
  if (is_swapped && rank > 1) std::swap(shape[rank - 2], shape[rank - 1]);
  return shape;
}

template <typename C>
void multiply_batches(const ProductShape& shape, const C* a, const C* b, C* y) {
  const std::int64_t count = shape.batch.product(0, shape.batch.rank());
  const std::int64_t size = shape.rows * shape.columns;
  std::fill_n(y, count * size, C{});
  BatchWalk walk(shape.batch);
  walk.add(shape.a_batch, shape.rows * shape.depth);
  walk.add(shape.b_batch, shape.depth * shape.columns);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) {
    multiply_add<C>({.rows = shape.rows,
                     .columns = shape.columns,
                     .depth = shape.depth,
                     .a = a + walk.offset(0),
                     .a_row = shape.depth,
                     .a_column = 1,
                     .b = b + walk.offset(1),
                     .b_row = shape.columns,
                     .c = y + i * size,
                     .c_row = shape.columns});
  }
}

template void multiply_batches<float>(const ProductShape&, const float*, const float*, float*);
template void multiply_batches<double>(const ProductShape&, const double*, const double*, double*);
template void multiply_batches<std::uint32_t>(const ProductShape&, const std::uint32_t*,
                                              const std::uint32_t*, std::uint32_t*);
template void multiply_batches<std::uint64_t>(const ProductShape&, const std::uint64_t*,
                                              const std::uint64_t*, std::uint64_t*);

Status infer_product(InferContext& context, std::size_t a, std::size_t b) {
  const Shape* a_shape = context.shape(a);
  const Shape* b_shape = context.shape(b);
  if (a_shape == nullptr || b_shape == nullptr) return {};
  SDX_ASSIGN(const ProductShape shape, product_shape(*a_shape, *b_shape));
  context.set_shape(0, shape.result);
  return {};
}

namespace {

/// The shape that a zero point (or scale) has when its dimensions are lined up with those of the
/// values; nothing when it does not fit.
std::optional<Shape> aligned(const Shape& shape, const Shape& values, int axis) {
  Shape result = Shape::filled(values.rank(), 1);
  const std::int64_t count = shape.product(0, shape.rank());
  if (count == 1) return result;
  if (shape.rank() == 1) {
    if (axis >= values.rank() || shape[0] != values[axis]) return std::nullopt;
    result[axis] = shape[0];
    return result;
  }
  if (shape.rank() > values.rank()) return std::nullopt;
  for (int i = 0; i < shape.rank(); ++i) {
    const int j = values.rank() - shape.rank() + i;
    if (shape[i] != 1 && shape[i] != values[j]) return std::nullopt;
    result[j] = shape[i];
  }
  return result;
}

}  // namespace

Result<Tensor> subtract_zero_point(const Tensor& values, const Tensor* zero_point, int axis) {
  SDX_ASSIGN(const auto source, Elements<std::uint32_t>::of(values));
  SDX_ASSIGN(const auto zero, Elements<std::uint32_t>::of(zero_point));
  const std::int64_t count = values.element_count();
  SDX_ASSIGN(Tensor result, make_scratch<std::uint32_t>(count));
  auto* to = reinterpret_cast<std::uint32_t*>(result.mutable_data());
  const auto shape = zero_point != nullptr ? aligned(zero_point->shape(), values.shape(), axis)
                                           : Shape::filled(values.rank(), 1);
  if (!shape) {
    return failure(Code::Runtime, "a zero point of shape {} does not fit values of shape {}",
                   zero_point->shape().to_string(), values.shape().to_string());
  }
  BatchWalk walk(values.shape());
  walk.add(*shape, 1);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) {
    to[i] = source[i] - (zero ? zero[walk.offset(0)] : 0U);
  }
  return result;
}

Status scale_by(float* values, const Shape& shape, const Tensor& scale, int axis, bool divide) {
  SDX_ASSIGN(const auto factors, Elements<float>::of(scale));
  Shape aligned = Shape::filled(shape.rank(), 1);
  const std::int64_t count = shape.product(0, shape.rank());
  bool fits = scale.rank() <= shape.rank() || scale.element_count() == 1;
  if (scale.element_count() != 1 && scale.rank() == 1) {
    fits = axis >= 0 && axis < shape.rank() && scale.dim(0) == shape[axis];
    if (fits) aligned[axis] = scale.dim(0);
  } else if (scale.element_count() != 1 && fits) {
    for (int i = 0; i < scale.rank(); ++i) {
      const int j = shape.rank() - scale.rank() + i;
      fits = fits && (scale.dim(i) == 1 || scale.dim(i) == shape[j]);
      aligned[j] = scale.dim(i);
    }
  }
  if (!fits) {
    return failure(Code::Runtime, "a scale of shape {} does not fit a product of shape {}",
                   scale.shape().to_string(), shape.to_string());
  }
  BatchWalk walk(shape);
  walk.add(aligned, 1);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) {
    const float factor = factors[walk.offset(0)];
    values[i] = divide ? values[i] / factor : values[i] * factor;
  }
  return {};
}

Result<Tensor> integer_product(const ProductShape& shape, const Tensor& a,
                               const Tensor* a_zero_point, const Tensor& b,
                               const Tensor* b_zero_point) {
  SDX_ASSIGN(const Tensor left, subtract_zero_point(a, a_zero_point, row_axis(a)));
  SDX_ASSIGN(const Tensor right, subtract_zero_point(b, b_zero_point, column_axis(b)));
  SDX_ASSIGN(Tensor result, Tensor::allocate(DType::Float32, shape.result));
  SDX_ASSIGN(Tensor sums, Tensor::allocate(DType::UInt32, shape.result));
  const auto from = sums.mutable_values<std::uint32_t>();
  const auto to = result.mutable_values<float>();
  multiply_batches(shape, left.values<std::uint32_t>().data(), right.values<std::uint32_t>().data(),
                   from.data());
  for (std::size_t i = 0; i < to.size(); ++i) {
    to[i] = static_cast<float>(static_cast<std::int32_t>(from[i]));
  }
  return result;
}

Result<std::vector<float>> per_axis_values(const Tensor& values, std::int64_t size,
                                           std::string_view what) {
  const std::int64_t count = values.element_count();
  if (count != 1 && count != size) {
    return failure(Code::Runtime, "{} has {} elements, expected 1 or {}", what, count, size);
  }
  std::vector<float> result(static_cast<std::size_t>(size));
  for (std::int64_t i = 0; i < size; ++i) {
    result[static_cast<std::size_t>(i)] =
        static_cast<float>(read_real(values.dtype(), values.data(), count == 1 ? 0 : i));
  }
  return result;
}

std::int64_t requantize(DType dtype, float value, std::int64_t zero_point) {
  float low = 0.0F;
  float high = 255.0F;
  if (dtype == DType::Int8) low = -128.0F, high = 127.0F;
  if (dtype == DType::UInt16) high = 65535.0F;
  if (dtype == DType::Int16) low = -32768.0F, high = 32767.0F;
  const float rounded = std::nearbyint(value) + static_cast<float>(zero_point);
  // The comparisons send a NaN to the lowest value.
  if (!(rounded > low)) return static_cast<std::int64_t>(low);
  return static_cast<std::int64_t>(std::min(rounded, high));
}

}  // namespace sardonyx
