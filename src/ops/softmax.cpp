#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// x seen as [outer, length, inner], the middle being what is normalised.
struct Groups {
  std::int64_t outer;
  std::int64_t length;
  std::int64_t inner;
};

/// Before version 13 all axes from `axis` on are one.
Groups groups_of(const Shape& shape, int version, std::int64_t axis_attribute) {
  const int rank = shape.rank();
  if (rank == 0) return {1, 1, 1};
  const int axis = static_cast<int>(axis_attribute < 0 ? axis_attribute + rank : axis_attribute);
  const int end = version < 13 ? rank : axis + 1;
  return {shape.product(0, axis), shape.product(axis, end), shape.product(end, rank)};
}

std::int64_t axis_of(const Attributes& attributes, int version) {
  return attributes.get_int("axis", version < 13 ? 1 : -1);
}

Status infer_softmax(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  const int rank = shape->rank();
  const std::int64_t axis = axis_of(context.attributes(), context.version());
  // Flattening to a matrix leaves room for one axis more, and a scalar is one row.
  const std::int64_t end = context.version() < 13 ? rank + 1 : std::max(rank, 1);
  if (axis < -std::max(rank, 1) || axis >= end) {
    return context.error("axis {} is outside [{}, {}) of '{}'", axis, -rank, rank,
                         context.input_name(0));
  }
  context.set_shape(0, *shape);
  return {};
}

/// Normalises one row.
template <typename T>
void softmax_row(const T* x, T* y, std::int64_t length, bool is_log) {
  T largest = -std::numeric_limits<T>::infinity();
  for (std::int64_t i = 0; i < length; ++i) largest = std::max(largest, x[i]);
  double sum = 0;
  for (std::int64_t i = 0; i < length; ++i) {
    const T shifted = x[i] - largest;
    const T power = std::exp(shifted);
    y[i] = is_log ? shifted : power;
    sum += static_cast<double>(power);
  }
  if (is_log) {
    const auto shift = static_cast<T>(std::log(sum));
    for (std::int64_t i = 0; i < length; ++i) y[i] -= shift;
  } else {
    const auto scale = static_cast<T>(1 / sum);
    for (std::int64_t i = 0; i < length; ++i) y[i] *= scale;
  }
}

/// Normalises one [length, inner] block, column by column side by side.
template <typename T>
void softmax_block(const T* x, T* y, const Groups& groups, bool is_log, std::span<T> largest,
                   std::span<double> sums) {
  const auto columns = static_cast<std::size_t>(groups.inner);
  std::fill(largest.begin(), largest.end(), -std::numeric_limits<T>::infinity());
  std::fill(sums.begin(), sums.end(), 0.0);
  const T* row = x;
  for (std::int64_t i = 0; i < groups.length; ++i, row += columns) {
    for (std::size_t c = 0; c < columns; ++c) largest[c] = std::max(largest[c], row[c]);
  }
  row = x;
  T* out = y;
  for (std::int64_t i = 0; i < groups.length; ++i, row += columns, out += columns) {
    for (std::size_t c = 0; c < columns; ++c) {
      const T shifted = row[c] - largest[c];
      const T power = std::exp(shifted);
      out[c] = is_log ? shifted : power;
      sums[c] += static_cast<double>(power);
    }
  }
  for (double& sum : sums) sum = is_log ? std::log(sum) : 1 / sum;
  out = y;
  for (std::int64_t i = 0; i < groups.length; ++i, out += columns) {
    for (std::size_t c = 0; c < columns; ++c) {
      const auto scale = static_cast<T>(sums[c]);
      out[c] = is_log ? out[c] - scale : out[c] * scale;
    }
  }
}

/// One where the first largest element of a column is, else zero.
template <typename T>
void hardmax_block(const T* x, T* y, const Groups& groups) {
  for (std::int64_t c = 0; c < groups.inner; ++c) {
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < groups.length; ++i) {
      if (x[i * groups.inner + c] > x[best * groups.inner + c]) best = i;
    }
    for (std::int64_t i = 0; i < groups.length; ++i) y[i * groups.inner + c] = T(i == best);
  }
}

enum class Kind { Softmax, LogSoftmax, Hardmax };

template <typename T>
void normalise(Kind kind, const Tensor& x, Tensor& y, const Groups& groups) {
  const T* from = x.values<T>().data();
  T* to = y.mutable_values<T>().data();
  const std::int64_t block = groups.length * groups.inner;
  if (block == 0) return;
  std::vector<T> largest(static_cast<std::size_t>(groups.inner));
  std::vector<double> sums(largest.size());
  for (std::int64_t i = 0; i < groups.outer; ++i) {
    if (kind == Kind::Hardmax) {
      hardmax_block(from + i * block, to + i * block, groups);
    } else if (groups.inner == 1) {
      softmax_row(from + i * block, to + i * block, block, kind == Kind::LogSoftmax);
    } else {
      softmax_block<T>(from + i * block, to + i * block, groups, kind == Kind::LogSoftmax, largest,
                       sums);
    }
  }
}

template <Kind kind>
Status evaluate_softmax(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Groups groups =
      groups_of(x.shape(), context.version(), axis_of(context.attributes(), context.version()));
  if (x.dtype() == DType::Float32) {
    normalise<float>(kind, x, *y, groups);
  } else if (x.dtype() == DType::Float64) {
    normalise<double>(kind, x, *y, groups);
  } else {
    SDX_ASSIGN(Tensor wide, to_dtype(x, DType::Float32));
    normalise<float>(kind, wide, wide, groups);
    convert_elements(DType::Float32, wide.data(), y->dtype(), y->mutable_data(),
                     y->element_count());
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Hardmax", 1, {"T>T", kFloats}, "axis:i", infer_softmax, evaluate_softmax<Kind::Hardmax>},
    {"", "Hardmax", 11, {"T>T", kFloats}, "axis:i", infer_softmax, evaluate_softmax<Kind::Hardmax>},
    {"", "Hardmax", 13, {"T>T", kFloatsBf16}, "axis:i", infer_softmax,
     evaluate_softmax<Kind::Hardmax>},
    {"", "LogSoftmax", 1, {"T>T", kFloats}, "axis:i", infer_softmax,
     evaluate_softmax<Kind::LogSoftmax>},
    {"", "LogSoftmax", 11, {"T>T", kFloats}, "axis:i", infer_softmax,
     evaluate_softmax<Kind::LogSoftmax>},
    {"", "LogSoftmax", 13, {"T>T", kFloatsBf16}, "axis:i", infer_softmax,
     evaluate_softmax<Kind::LogSoftmax>},
    {"", "Softmax", 1, {"T>T", kFloats}, "axis:i", infer_softmax, evaluate_softmax<Kind::Softmax>},
    {"", "Softmax", 11, {"T>T", kFloats}, "axis:i", infer_softmax, evaluate_softmax<Kind::Softmax>},
    {"", "Softmax", 13, {"T>T", kFloatsBf16}, "axis:i", infer_softmax,
     evaluate_softmax<Kind::Softmax>},
};

}  // namespace

std::span<const OpSchema> softmax_schemas() { return kRows; }

}  // namespace sardonyx
