#include <algorithm>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

Status infer_cumulative(InferContext& context) {
  const Shape* axis = context.shape(1);
  const auto count = axis != nullptr ? axis->element_count() : std::nullopt;
  if (count && *count != 1) {
    return context.error("axis '{}' should be a scalar, but has shape {}", context.input_name(1),
                         axis->to_string());
  }
  return infer_same_shape(context);
}

struct Options {
  int axis;
  bool is_product;
  bool is_exclusive;
  bool is_reverse;
};

/// Replaces each element by the sum or product of those up to it.
template <typename T>
void accumulate(Tensor& tensor, const Options& options) {
  const int rank = tensor.rank();
  const std::int64_t outer = tensor.shape().product(0, options.axis);
  const std::int64_t length = tensor.dim(options.axis);
  const std::int64_t inner = tensor.shape().product(options.axis + 1, rank);
  T* block = reinterpret_cast<T*>(tensor.mutable_data());
  std::vector<T> running(static_cast<std::size_t>(inner));
  for (std::int64_t o = 0; o < outer; ++o, block += length * inner) {
    std::fill(running.begin(), running.end(), options.is_product ? T{1} : T{0});
    for (std::int64_t i = 0; i < length; ++i) {
      T* row = block + (options.is_reverse ? length - 1 - i : i) * inner;
      for (std::int64_t c = 0; c < inner; ++c) {
        T& total = running[static_cast<std::size_t>(c)];
        const T before = total;
        total = options.is_product ? total * row[c] : total + row[c];
        row[c] = options.is_exclusive ? before : total;
      }
    }
  }
}

template <bool is_product>
Status evaluate_cumulative(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const std::int64_t attribute = context.ints(1).at(0);
  const auto axis = normalize_axis(attribute, x.rank());
  if (!axis) {
    return context.error("axis {} is outside [{}, {})", attribute, -x.rank(), x.rank());
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Options options = {*axis, is_product, context.attributes().get_int("exclusive", 0) != 0,
                           context.attributes().get_int("reverse", 0) != 0};
  const bool is_integer = contains(kInts, x.dtype());
  // A copy of its own: elements are replaced in place.
  SDX_ASSIGN(Tensor wide, Tensor::allocate(is_integer ? DType::Int64 : DType::Float64, x.shape()));
  convert_elements(x.dtype(), x.data(), wide.dtype(), wide.mutable_data(), x.element_count());
  if (is_integer) {
    accumulate<std::uint64_t>(wide, options);
  } else {
    accumulate<double>(wide, options);
  }
  convert_elements(wide.dtype(), wide.data(), y->dtype(), y->mutable_data(), x.element_count());
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "CumProd", 26, {"TN>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "exclusive:i reverse:i", infer_cumulative, evaluate_cumulative<true>},
    {"", "CumSum", 11, {"TN>T", set_of(DType::UInt32, DType::UInt64, DType::Int32, DType::Int64,
      DType::Float32, DType::Float64)}, "exclusive:i reverse:i", infer_cumulative,
     evaluate_cumulative<false>},
    {"", "CumSum", 14, {"TN>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "exclusive:i reverse:i", infer_cumulative, evaluate_cumulative<false>},
};

}  // namespace

std::span<const OpSchema> cumulative_schemas() { return kRows; }

}  // namespace sardonyx
