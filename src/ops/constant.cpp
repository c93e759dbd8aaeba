#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

template <typename T>
Result<Datum> scalar(const T& value) {
  SDX_ASSIGN(Tensor tensor, make_tensor<T>(Shape{}, {value}));
  return Datum(std::move(tensor));
}

template <typename T>
Result<Datum> list(const std::vector<T>& values) {
  SDX_ASSIGN(Tensor tensor, make_tensor<T>(Shape{static_cast<Dim>(values.size())},
                                           std::span<const T>(values)));
  return Datum(std::move(tensor));
}

/// What one attribute of Constant stands for.
Result<Datum> value_of(const std::string& name, const Attribute& attribute) {
  if (const auto* tensor = std::get_if<Tensor>(&attribute)) return Datum(*tensor);
  if (const auto* sparse = std::get_if<std::shared_ptr<const SparseTensor>>(&attribute)) {
    return Datum(*sparse);
  }
  if (const auto* value = std::get_if<std::int64_t>(&attribute)) return scalar(*value);
  if (const auto* value = std::get_if<float>(&attribute)) return scalar(*value);
  if (const auto* value = std::get_if<std::string>(&attribute)) return scalar(*value);
  if (const auto* values = std::get_if<std::vector<std::int64_t>>(&attribute)) {
    return list(*values);
  }
  if (const auto* values = std::get_if<std::vector<float>>(&attribute)) return list(*values);
  if (const auto* values = std::get_if<std::vector<std::string>>(&attribute)) return list(*values);
  return failure(Code::InvalidModel, "attribute '{}' holds no constant", name);
}

Result<Datum> constant_of(const Attributes& attributes) {
  if (attributes.size() != 1) {
    return failure(Code::InvalidModel, "Constant needs exactly one attribute, but has {}",
                   attributes.size());
  }
  const auto& [name, attribute] = *attributes.begin();
  return value_of(name, attribute);
}

Status infer_constant(InferContext& context) {
  SDX_ASSIGN(const Datum datum, constant_of(context.attributes()));
  context.set_type(0, datum.type());
  return {};
}

Status evaluate_constant(EvalContext& context) {
  SDX_ASSIGN(Datum datum, constant_of(context.attributes()));
  context.set_output(0, std::move(datum));
  return {};
}

Status infer_constant_of_shape(InferContext& context) {
  const auto* value = context.attributes().get_if<Tensor>("value");
  if (value != nullptr && value->element_count() != 1) {
    return context.error("attribute 'value' should have one element, but has shape {}",
                         value->shape().to_string());
  }
  context.set_dtype(0, value != nullptr ? value->dtype() : DType::Float32);
  if (const auto dims = context.ints(0)) {
    if (!Shape::fits(dims->size())) {
      return context.error("a rank of {} is above {}", dims->size(), Shape::kMaxRank);
    }
    for (const std::int64_t dim : *dims) {
      if (dim < 0) return context.error("'{}' asks for a size of {}", context.input_name(0), dim);
    }
    context.set_shape(0, Shape(std::span<const Dim>(*dims)));
    return {};
  }
  const Shape* shape = context.shape(0);
  if (shape == nullptr || shape->rank() != 1 || !is_known((*shape)[0])) return {};
  if (!Shape::fits(static_cast<std::size_t>((*shape)[0]))) {
    return context.error("a rank of {} is above {}", (*shape)[0], Shape::kMaxRank);
  }
  context.set_shape(0, Shape::filled(static_cast<int>((*shape)[0]), kUnknownDim));
  return {};
}

/// Repeats the first `unit` bytes over all of them.
void fill_bytes(std::byte* data, std::size_t unit, std::size_t bytes) {
  for (std::size_t done = unit; done < bytes; done *= 2) {
    std::memcpy(data + done, data, std::min(done, bytes - done));
  }
}

Status evaluate_constant_of_shape(EvalContext& context) {
  const auto* value = context.attributes().get_if<Tensor>("value");
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  if (value == nullptr) {
    std::memset(y->mutable_data(), 0, y->byte_size());
  } else if (y->dtype() == DType::String) {
    const std::string& text = value->values<std::string>()[0];
    std::ranges::fill(y->mutable_values<std::string>(), text);
  } else if (const int bits = dtype_bits(y->dtype()); bits < 8) {
    const std::int64_t count = std::min<std::int64_t>(y->element_count(), 8 / bits);
    for (std::int64_t i = 0; i < count; ++i) {
      write_real(y->dtype(), y->mutable_data(), i, read_real(y->dtype(), value->data(), 0));
    }
    fill_bytes(y->mutable_data(), 1, y->byte_size());
  } else {
    const auto unit = static_cast<std::size_t>(bits / 8);
    std::memcpy(y->mutable_data(), value->data(), unit);
    fill_bytes(y->mutable_data(), unit, y->byte_size());
  }
  return {};
}

Status infer_eye_like(InferContext& context) {
  const std::int64_t number = context.attributes().get_int("dtype", 0);
  const auto wanted = dtype_from_onnx(number);
  if (!wanted || !contains(kNumericBf16 | set_of(DType::Bool, DType::Undefined), *wanted)) {
    return context.error("dtype is {}, which is no type of numbers", number);
  }
  context.set_dtype(0, number != 0 ? *wanted : context.dtype(0));
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  if (shape->rank() != 2) {
    return context.error("'{}' should have two axes, but has shape {}", context.input_name(0),
                         shape->to_string());
  }
  context.set_shape(0, *shape);
  return {};
}

Status evaluate_eye_like(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t diagonal = context.attributes().get_int("k", 0);
  std::memset(y->mutable_data(), 0, y->byte_size());
  const std::int64_t rows = y->dim(0);
  const std::int64_t columns = y->dim(1);
  if (diagonal <= -rows || diagonal >= columns) return {};
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t c = r + diagonal;
    if (c >= 0 && c < columns) write_real(y->dtype(), y->mutable_data(), r * columns + c, 1);
  }
  return {};
}

/// The three scalars of Range.
struct RangeBounds {
  double start, limit, delta;
};

/// How many steps of `delta` begin before `limit`; nothing when the step is zero or not a number.
std::optional<std::int64_t> range_count(const RangeBounds& bounds) {
  const double steps = std::ceil((bounds.limit - bounds.start) / bounds.delta);
  if (bounds.delta == 0 || !(steps < 0x1p62)) return std::nullopt;
  return steps > 0 ? static_cast<std::int64_t>(steps) : 0;
}

std::optional<std::int64_t> range_count(std::int64_t start, std::int64_t limit,
                                        std::int64_t delta) {
  if (delta == 0) return std::nullopt;
  if (delta > 0 ? start >= limit : start <= limit) return 0;
  // The distance and the step fit into unsigned numbers, whatever their signs.
  const auto from = static_cast<std::uint64_t>(start);
  const auto to = static_cast<std::uint64_t>(limit);
  const std::uint64_t distance = delta > 0 ? to - from : from - to;
  const std::uint64_t step = delta > 0 ? static_cast<std::uint64_t>(delta)
                                       : 0 - static_cast<std::uint64_t>(delta);
  return static_cast<std::int64_t>((distance - 1) / step + 1);
}

std::optional<std::int64_t> range_count(const Tensor& start, const Tensor& limit,
                                        const Tensor& delta) {
  const DType dtype = start.dtype();
  if (contains(kInts, dtype)) {
    return range_count(read_int(dtype, start.data(), 0), read_int(dtype, limit.data(), 0),
                       read_int(dtype, delta.data(), 0));
  }
  return range_count({read_real(dtype, start.data(), 0), read_real(dtype, limit.data(), 0),
                      read_real(dtype, delta.data(), 0)});
}

Status infer_range(InferContext& context) {
  for (std::size_t i = 0; i < 3; ++i) {
    const Shape* shape = context.shape(i);
    const auto count = shape != nullptr ? shape->element_count() : std::nullopt;
    if (count && *count != 1) {
      return context.error("'{}' should be a scalar, but has shape {}", context.input_name(i),
                           shape->to_string());
    }
  }
  context.set_shape(0, Shape{kUnknownDim});
  if (!context.data(0) || !context.data(1) || !context.data(2)) return {};
  const auto count = range_count(*context.data(0), *context.data(1), *context.data(2));
  if (!count || *count < 0) {
    return context.error("a range by steps of {} from {} to {} has no end",
                         read_real(context.dtype(2), context.data(2)->data(), 0),
                         read_real(context.dtype(0), context.data(0)->data(), 0),
                         read_real(context.dtype(1), context.data(1)->data(), 0));
  }
  context.set_shape(0, Shape{*count});
  return {};
}

Status evaluate_range(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const DType dtype = y->dtype();
  const std::int64_t count = y->element_count();
  if (contains(kInts, dtype)) {
    auto value = static_cast<std::uint64_t>(read_int(dtype, context.tensor(0).data(), 0));
    const auto delta = static_cast<std::uint64_t>(read_int(dtype, context.tensor(2).data(), 0));
    for (std::int64_t i = 0; i < count; ++i, value += delta) {
      write_int(dtype, y->mutable_data(), i, static_cast<std::int64_t>(value));
    }
    return {};
  }
  const double start = read_real(dtype, context.tensor(0).data(), 0);
  const double delta = read_real(dtype, context.tensor(2).data(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    write_real(dtype, y->mutable_data(), i, start + static_cast<double>(i) * delta);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Constant", 1, {">T", kFloats}, "value:t!", infer_constant, evaluate_constant},
    {"", "Constant", 9, {">T", kAllClassic}, "value:t!", infer_constant, evaluate_constant},
    {"", "Constant", 11, {">T", kAllClassic}, "sparse_value:p value:t", infer_constant,
     evaluate_constant},
    {"", "Constant", 12, {">T", kAllClassic},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 13, {">T", kAllClassic | set_of(DType::BFloat16)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 19, {">T", kAllClassic | kFloat8 | set_of(DType::BFloat16)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 21, {">T", kAllClassic | kFloat8 | set_of(DType::BFloat16, DType::UInt4,
      DType::Int4)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 23, {">T", kAllClassic | kFloat8 | set_of(DType::BFloat16, DType::UInt4,
      DType::Int4, DType::Float4E2M1)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 24, {">T", kAllClassic | kFloat8 | set_of(DType::BFloat16, DType::UInt4,
      DType::Int4, DType::Float4E2M1, DType::Float8E8M0)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "Constant", 25, {">T", kAllClassic | kSubByte | kFloat8 | set_of(DType::BFloat16,
      DType::Float8E8M0)},
     "sparse_value:p value:t value_float:f value_floats:fs value_int:i value_ints:is "
      "value_string:s value_strings:ss", infer_constant, evaluate_constant},
    {"", "ConstantOfShape", 9, {"I>T", kNumeric | set_of(DType::Bool)}, "value:t",
     infer_constant_of_shape, evaluate_constant_of_shape},
    {"", "ConstantOfShape", 20, {"I>T", kNumericBf16 | kFloat8 | set_of(DType::Bool)}, "value:t",
     infer_constant_of_shape, evaluate_constant_of_shape},
    {"", "ConstantOfShape", 21, {"I>T", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::UInt4,
      DType::Int4)}, "value:t", infer_constant_of_shape, evaluate_constant_of_shape},
    {"", "ConstantOfShape", 23, {"I>T", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::UInt4,
      DType::Int4, DType::Float4E2M1)}, "value:t", infer_constant_of_shape,
     evaluate_constant_of_shape},
    {"", "ConstantOfShape", 24, {"I>T", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::UInt4,
      DType::Int4, DType::Float4E2M1, DType::Float8E8M0)}, "value:t", infer_constant_of_shape,
     evaluate_constant_of_shape},
    {"", "ConstantOfShape", 25, {"I>T", kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool,
      DType::Float8E8M0)}, "value:t", infer_constant_of_shape, evaluate_constant_of_shape},
    {"", "EyeLike", 9, {"T>U", kNumeric | set_of(DType::Bool), kNumeric | set_of(DType::Bool)},
     "dtype:i k:i", infer_eye_like, evaluate_eye_like},
    {"", "EyeLike", 22, {"T>U", kNumericBf16 | set_of(DType::Bool), kNumericBf16 |
      set_of(DType::Bool)}, "dtype:i k:i", infer_eye_like, evaluate_eye_like},
    {"", "Range", 11, {"TTT>T", set_of(DType::Int16, DType::Int32, DType::Int64, DType::Float32,
      DType::Float64)}, "", infer_range, evaluate_range},
    {"", "Range", 27, {"TTT>T", kFloatsBf16 | set_of(DType::Int16, DType::Int32, DType::Int64)},
     "stash_type:i", infer_range, evaluate_range},
    {"com.microsoft", "Range", 1,
     {"TTT>T", kFloats | set_of(DType::Int16, DType::Int32, DType::Int64)}, "", infer_range,
     evaluate_range},
};

}  // namespace

std::span<const OpSchema> constant_schemas() { return kRows; }

}  // namespace sardonyx
