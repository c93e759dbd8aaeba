#include <algorithm>
#include <cmath>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

Status infer_arg(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  const std::int64_t attribute = context.attributes().get_int("axis", 0);
  const int rank = shape->rank();
  // A scalar counts as a vector of one element.
  const auto axis = normalize_axis(attribute, std::max(rank, 1));
  if (!axis) return context.error("axis {} is outside [{}, {})", attribute, -rank, rank);
  Shape result = *shape;
  if (rank > 0) {
    if (context.attributes().get_int("keepdims", 1) != 0) {
      result[*axis] = 1;
    } else {
      result.erase(*axis);
    }
  }
  context.set_shape(0, result);
  return {};
}

struct Options {
  bool is_max;
  bool takes_last;
};

/// Whether `x` takes the place of `best`; the first NaN stays.
template <typename T>
bool is_better(T x, T best, Options options) {
  if constexpr (std::is_floating_point_v<T>) {
    if (std::isnan(best)) return false;
    if (std::isnan(x)) return true;
  }
  if (x == best) return options.takes_last;
  return options.is_max ? x > best : x < best;
}

template <typename T>
void find(const Tensor& tensor, int axis, Options options, std::int64_t* found) {
  const int rank = tensor.rank();
  const std::int64_t outer = tensor.shape().product(0, axis);
  const std::int64_t length = rank == 0 ? 1 : tensor.dim(axis);
  const std::int64_t inner = tensor.shape().product(std::min(axis + 1, rank), rank);
  const T* x = reinterpret_cast<const T*>(tensor.data());
  std::vector<T> best(static_cast<std::size_t>(inner));
  for (std::int64_t o = 0; o < outer; ++o, found += inner) {
    for (std::int64_t i = 0; i < length; ++i, x += inner) {
      for (std::int64_t c = 0; c < inner; ++c) {
        T& kept = best[static_cast<std::size_t>(c)];
        if (i != 0 && !is_better(x[c], kept, options)) continue;
        kept = x[c];
        found[c] = i;
      }
    }
  }
}

template <bool is_max>
Status evaluate_arg(EvalContext& context) {
  Tensor x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  if (x.element_count() == 0) {
    return context.error("there is no largest or smallest of no elements (shape {})",
                         x.shape().to_string());
  }
  const Options options = {is_max, context.attributes().get_int("select_last_index", 0) != 0};
  const int axis = *normalize_axis(context.attributes().get_int("axis", 0), std::max(x.rank(), 1));
  std::int64_t* found = y->mutable_values<std::int64_t>().data();
  const DType dtype = x.dtype();
  if (dtype == DType::Float16 || dtype == DType::BFloat16) {
    SDX_ASSIGN(x, to_dtype(x, DType::Float32));
  } else if (contains(kInts, dtype) && dtype != DType::UInt64 && dtype != DType::Int64) {
    SDX_ASSIGN(x, to_dtype(x, DType::Int64));
  }
  switch (x.dtype()) {
    case DType::Float32: find<float>(x, axis, options, found); break;
    case DType::Float64: find<double>(x, axis, options, found); break;
    case DType::UInt64: find<std::uint64_t>(x, axis, options, found); break;
    default: find<std::int64_t>(x, axis, options, found); break;
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "ArgMax", 1, {"T>I", kNumeric}, "axis:i keepdims:i", infer_arg, evaluate_arg<true>},
    {"", "ArgMax", 11, {"T>I", kNumeric}, "axis:i keepdims:i", infer_arg, evaluate_arg<true>},
    {"", "ArgMax", 12, {"T>I", kNumeric}, "axis:i keepdims:i select_last_index:i", infer_arg,
     evaluate_arg<true>},
    {"", "ArgMax", 13, {"T>I", kNumericBf16}, "axis:i keepdims:i select_last_index:i", infer_arg,
     evaluate_arg<true>},
    {"", "ArgMin", 1, {"T>I", kNumeric}, "axis:i keepdims:i", infer_arg, evaluate_arg<false>},
    {"", "ArgMin", 11, {"T>I", kNumeric}, "axis:i keepdims:i", infer_arg, evaluate_arg<false>},
    {"", "ArgMin", 12, {"T>I", kNumeric}, "axis:i keepdims:i select_last_index:i", infer_arg,
     evaluate_arg<false>},
    {"", "ArgMin", 13, {"T>I", kNumericBf16}, "axis:i keepdims:i select_last_index:i", infer_arg,
     evaluate_arg<false>},
};

}  // namespace

std::span<const OpSchema> arg_reduce_schemas() { return kRows; }

}  // namespace sardonyx
