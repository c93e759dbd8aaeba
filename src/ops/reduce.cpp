#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// Which axes go, as a mask; nothing when they are not known yet.
struct Axes {
  std::uint32_t mask = 0;
  bool is_noop = false;
};

bool axes_are_input(std::string_view op_type, int version) {
  return version >= (op_type == "ReduceSum" ? 13 : 18);
}

/// From the list that is given (empty when there is none).
Result<Axes> axes_from(const Attributes& attributes, std::span<const std::int64_t> list,
                       int rank) {
  Axes axes;
  for (const std::int64_t item : list) {
    const auto axis = normalize_axis(item, rank);
    if (!axis) {
      return failure(Code::InvalidModel, "axis {} is outside [{}, {})", item, -rank, rank);
    }
    axes.mask |= 1U << *axis;
  }
  if (!list.empty()) return axes;
  axes.is_noop = attributes.get_int("noop_with_empty_axes", 0) != 0;
  if (!axes.is_noop) axes.mask = (1U << rank) - 1;
  return axes;
}

Shape reduced_shape(const Shape& shape, Axes axes, bool keeps) {
  Shape result;
  for (int i = 0; i < shape.rank(); ++i) {
    const bool is_reduced = (axes.mask >> i & 1U) != 0;
    if (!is_reduced) result.push_back(shape[i]);
    if (is_reduced && keeps) result.push_back(1);
  }
  return result;
}

Status infer_reduce(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  const bool keeps = context.attributes().get_int("keepdims", 1) != 0;
  const bool is_input = axes_are_input(context.node().op_type, context.version());
  std::vector<std::int64_t> list;
  if (is_input && context.has_input(1)) {
    auto known = context.ints(1);
    if (!known) {
      // An empty list, which would mean all or none, cannot be told from others yet.
      if (keeps) context.set_shape(0, Shape::filled(shape->rank(), kUnknownDim));
      return {};
    }
    list = std::move(*known);
  }
  SDX_ASSIGN(const Axes axes,
             axes_from(context.attributes(),
                       is_input ? std::span<const std::int64_t>(list)
                                : std::span<const std::int64_t>(
                                      context.attributes().get_ints("axes")),
                       shape->rank()));
  context.set_shape(0, reduced_shape(*shape, axes, keeps));
  return {};
}

/// The input's axes, neighbours of one kind merged: sizes, and whether each goes.
struct Layout {
  Shape dims;
  std::uint32_t mask = 0;
};

Layout merged(const Shape& shape, std::uint32_t mask) {
  Layout layout;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] == 1) continue;
    const bool is_reduced = (mask >> i & 1U) != 0;
    const int last = layout.dims.rank() - 1;
    if (last >= 0 && (layout.mask >> last & 1U) == static_cast<std::uint32_t>(is_reduced)) {
      layout.dims[last] *= shape[i];
    } else {
      if (is_reduced) layout.mask |= 1U << layout.dims.rank();
      layout.dims.push_back(shape[i]);
    }
  }
  return layout;
}

/// Calls body(input_offset, output_offset) for every row: the last merged axis of the input.
template <typename Body>
void for_each_row(const Layout& layout, Body&& body) {
  const int outer = std::max(layout.dims.rank() - 1, 0);
  const std::int64_t length = layout.dims.rank() == 0 ? 1 : layout.dims[outer];
  const bool last_goes = (layout.mask >> outer & 1U) != 0;
  Shape steps = Shape::filled(outer, 0);
  std::int64_t step = last_goes ? 1 : length;
  for (int i = outer - 1; i >= 0; --i) {
    if ((layout.mask >> i & 1U) != 0) continue;
    steps[i] = step;
    step *= layout.dims[i];
  }
  Shape index = Shape::filled(outer, 0);
  const std::int64_t rows = layout.dims.product(0, outer);
  std::int64_t to = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    body(row * length, to);
    for (int axis = outer - 1; axis >= 0; --axis) {
      to += steps[axis];
      if (++index[axis] < layout.dims[axis]) break;
      to -= steps[axis] * layout.dims[axis];
      index[axis] = 0;
    }
  }
}

/// How elements are gathered up. S is the type of the running value.
struct Sum {
  template <typename S>
  static constexpr S start() {
    return 0;
  }
  template <typename S>
  static S join(S total, S x) {
    return total + x;
  }
};

struct SumOfMagnitudes : Sum {
  template <typename S>
  static S join(S total, S x) {
    if constexpr (std::is_floating_point_v<S>) {
      return total + std::fabs(x);
    } else {
      return total + (static_cast<std::make_signed_t<S>>(x) < 0 ? 0 - x : x);
    }
  }
};

struct SumOfSquares : Sum {
  template <typename S>
  static S join(S total, S x) {
    return total + x * x;
  }
};

struct Product {
  template <typename S>
  static constexpr S start() {
    return 1;
  }
  template <typename S>
  static S join(S total, S x) {
    return total * x;
  }
};

template <typename S>
constexpr S lowest() {
  if constexpr (std::is_floating_point_v<S>) return -std::numeric_limits<S>::infinity();
  return std::numeric_limits<S>::lowest();
}

struct Largest {
  template <typename S>
  static constexpr S start() {
    return lowest<S>();
  }
  template <typename S>
  static S join(S total, S x) {
    if constexpr (std::is_floating_point_v<S>) {
      if (std::isnan(total)) return total;
    }
    return x <= total ? total : x;
  }
};

struct Smallest {
  template <typename S>
  static constexpr S start() {
    if constexpr (std::is_floating_point_v<S>) return std::numeric_limits<S>::infinity();
    return std::numeric_limits<S>::max();
  }
  template <typename S>
  static S join(S total, S x) {
    if constexpr (std::is_floating_point_v<S>) {
      if (std::isnan(total)) return total;
    }
    return x >= total ? total : x;
  }
};

template <typename F, typename T, typename S>
void gather(const Layout& layout, const Tensor& x, std::span<S> totals) {
  std::fill(totals.begin(), totals.end(), F::template start<S>());
  if (x.element_count() == 0) return;
  const T* from = reinterpret_cast<const T*>(x.data());
  const int rank = layout.dims.rank();
  const std::int64_t length = rank == 0 ? 1 : layout.dims[rank - 1];
  const bool last_goes = rank > 0 && (layout.mask >> (rank - 1) & 1U) != 0;
  for_each_row(layout, [&](std::int64_t row, std::int64_t to) {
    const T* elements = from + row;
    S* target = totals.data() + to;
    if (last_goes) {
      S total = *target;
      for (std::int64_t i = 0; i < length; ++i) total = F::join(total, static_cast<S>(elements[i]));
      *target = total;
    } else {
      for (std::int64_t i = 0; i < length; ++i) {
        target[i] = F::join(target[i], static_cast<S>(elements[i]));
      }
    }
  });
}

enum class Kind { Sum, Mean, L1, L2, LogSum, SumSquare, Prod };

/// What is left to do with a running value.
template <typename S>
S finished(Kind kind, S total, std::int64_t count) {
  if constexpr (std::is_floating_point_v<S>) {
    if (kind == Kind::Mean) return total / static_cast<S>(count);
    if (kind == Kind::L2) return std::sqrt(total);
    if (kind == Kind::LogSum) return std::log(total);
  }
  return total;
}

template <typename T, typename S>
void gather_kind(Kind kind, const Layout& layout, const Tensor& x, std::span<S> totals) {
  switch (kind) {
    case Kind::L1: return gather<SumOfMagnitudes, T, S>(layout, x, totals);
    case Kind::L2:
    case Kind::SumSquare: return gather<SumOfSquares, T, S>(layout, x, totals);
    case Kind::Prod: return gather<Product, T, S>(layout, x, totals);
    default: return gather<Sum, T, S>(layout, x, totals);
  }
}

/// Reduces elements of T (to which x is converted) with running values of S.
template <typename T, typename S>
Status reduce_as(EvalContext& context, Kind kind, const Layout& layout, DType as, DType running) {
  Tensor x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  if (x.dtype() != as) {
    SDX_ASSIGN(x, to_dtype(x, as));
  }
  SDX_ASSIGN(Tensor totals, Tensor::allocate(running, y->shape()));
  const std::span<S> values(reinterpret_cast<S*>(totals.mutable_data()),
                            static_cast<std::size_t>(totals.element_count()));
  gather_kind<T, S>(kind, layout, x, values);
  std::int64_t count = 1;
  for (int i = 0; i < layout.dims.rank(); ++i) {
    if ((layout.mask >> i & 1U) != 0) count *= layout.dims[i];
  }
  for (S& value : values) value = finished(kind, value, count);
  convert_elements(running, totals.data(), y->dtype(), y->mutable_data(), y->element_count());
  return {};
}

Result<Axes> axes_of(const EvalContext& context) {
  std::vector<std::int64_t> list;
  if (axes_are_input(context.node().op_type, context.version())) {
    list = context.ints(1);
  } else {
    list = context.attributes().get_ints("axes");
  }
  return axes_from(context.attributes(), list, context.tensor(0).rank());
}

template <Kind kind>
Status evaluate_reduce(EvalContext& context) {
  SDX_ASSIGN(const Axes axes, axes_of(context));
  const Tensor& x = context.tensor(0);
  const Layout layout = merged(x.shape(), axes.mask);
  const DType dtype = x.dtype();
  constexpr bool needs_real = kind == Kind::Mean || kind == Kind::L2 || kind == Kind::LogSum;
  if (contains(kInts, dtype) && !needs_real) {
    // Unsigned arithmetic wraps as signed would; the low bits are what is kept.
    const bool is_plain_sum = kind == Kind::L1 && contains(kUnsignedInts, dtype);
    return reduce_as<std::uint64_t, std::uint64_t>(context, is_plain_sum ? Kind::Sum : kind, layout,
                                                   DType::Int64, DType::Int64);
  }
  if (contains(kInts, dtype) || dtype == DType::Float64) {
    return reduce_as<double, double>(context, kind, layout, DType::Float64, DType::Float64);
  }
  return reduce_as<float, double>(context, kind, layout, DType::Float32, DType::Float64);
}

/// log(sum(exp(x))), which does not overflow because the largest element is taken out first.
Status evaluate_log_sum_exp(EvalContext& context) {
  SDX_ASSIGN(const Axes axes, axes_of(context));
  SDX_ASSIGN(Tensor x, to_dtype(context.tensor(0), DType::Float64));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Layout layout = merged(x.shape(), axes.mask);
  SDX_ASSIGN(Tensor largest, Tensor::allocate(DType::Float64, y->shape()));
  const auto peaks = largest.mutable_values<double>();
  gather<Largest, double, double>(layout, x, peaks);
  std::vector<double> sums(peaks.size(), 0.0);
  const double* from = x.values<double>().data();
  const int rank = layout.dims.rank();
  const std::int64_t length = rank == 0 ? 1 : layout.dims[rank - 1];
  const std::int64_t step = rank > 0 && (layout.mask >> (rank - 1) & 1U) != 0 ? 0 : 1;
  if (x.element_count() != 0) {
    for_each_row(layout, [&](std::int64_t row, std::int64_t to) {
      for (std::int64_t i = 0; i < length; ++i) {
        const auto at = static_cast<std::size_t>(to + i * step);
        const double shift = std::isfinite(peaks[at]) ? peaks[at] : 0;
        sums[at] += std::exp(from[row + i] - shift);
      }
    });
  }
  for (std::size_t i = 0; i < peaks.size(); ++i) {
    const double shift = std::isfinite(peaks[i]) ? peaks[i] : 0;
    write_real(y->dtype(), y->mutable_data(), static_cast<std::int64_t>(i),
               std::log(sums[i]) + shift);
  }
  return {};
}

template <typename F, typename T>
Status reduce_extreme(EvalContext& context, const Layout& layout, DType as) {
  Tensor x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  if (x.dtype() == as) {
    gather<F, T, T>(layout, x, {reinterpret_cast<T*>(y->mutable_data()),
                                static_cast<std::size_t>(y->element_count())});
    return {};
  }
  SDX_ASSIGN(x, to_dtype(x, as));
  SDX_ASSIGN(Tensor totals, Tensor::allocate(as, y->shape()));
  gather<F, T, T>(layout, x, {reinterpret_cast<T*>(totals.mutable_data()),
                              static_cast<std::size_t>(totals.element_count())});
  convert_elements(as, totals.data(), y->dtype(), y->mutable_data(), y->element_count());
  return {};
}

/// Of no elements at all: the type's own limit, which a narrow type would lose on its way.
Status fill_empty(EvalContext& context, bool is_max) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const DType dtype = y->dtype();
  const std::int64_t count = y->element_count();
  const bool is_signed = contains(kSignedInts, dtype);
  const int bits = dtype_bits(dtype);
  for (std::int64_t i = 0; i < count; ++i) {
    if (!contains(kInts, dtype)) {
      const double limit = dtype == DType::Bool ? 1 : std::numeric_limits<double>::infinity();
      const double low = dtype == DType::Bool ? 0 : -limit;
      write_real(dtype, y->mutable_data(), i, is_max ? low : limit);
      continue;
    }
    const auto sign = std::uint64_t{1} << (bits - 1);
    const std::uint64_t low = is_signed ? sign : 0;
    write_int(dtype, y->mutable_data(), i,
              static_cast<std::int64_t>(is_max ? low : ~low));
  }
  return {};
}

template <typename F>
Status evaluate_extreme(EvalContext& context) {
  SDX_ASSIGN(const Axes axes, axes_of(context));
  const Tensor& x = context.tensor(0);
  if (x.element_count() == 0) return fill_empty(context, std::is_same_v<F, Largest>);
  const Layout layout = merged(x.shape(), axes.mask);
  switch (x.dtype()) {
    case DType::Float64: return reduce_extreme<F, double>(context, layout, DType::Float64);
    case DType::UInt8:
    case DType::Bool: return reduce_extreme<F, std::uint8_t>(context, layout, x.dtype());
    case DType::Int8: return reduce_extreme<F, std::int8_t>(context, layout, DType::Int8);
    case DType::Int32: return reduce_extreme<F, std::int32_t>(context, layout, DType::Int32);
    case DType::UInt64: return reduce_extreme<F, std::uint64_t>(context, layout, DType::UInt64);
    case DType::Int64:
    case DType::UInt32: return reduce_extreme<F, std::int64_t>(context, layout, DType::Int64);
    default: return reduce_extreme<F, float>(context, layout, DType::Float32);
  }
}

constexpr OpSchema kRows[] = {
    {"", "ReduceL1", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L1>},
    {"", "ReduceL1", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L1>},
    {"", "ReduceL1", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L1>},
    {"", "ReduceL1", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce, evaluate_reduce<Kind::L1>},
    {"", "ReduceL2", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L2>},
    {"", "ReduceL2", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L2>},
    {"", "ReduceL2", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::L2>},
    {"", "ReduceL2", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce, evaluate_reduce<Kind::L2>},
    {"", "ReduceLogSum", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::LogSum>},
    {"", "ReduceLogSum", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::LogSum>},
    {"", "ReduceLogSum", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_reduce<Kind::LogSum>},
    {"", "ReduceLogSum", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_reduce<Kind::LogSum>},
    {"", "ReduceLogSum", 28, {"Ti>T", kFloatsBf16}, "keepdims:i noop_with_empty_axes:i",
     infer_reduce, evaluate_reduce<Kind::LogSum>},
    {"", "ReduceLogSumExp", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_log_sum_exp},
    {"", "ReduceLogSumExp", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_log_sum_exp},
    {"", "ReduceLogSumExp", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_log_sum_exp},
    {"", "ReduceLogSumExp", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_log_sum_exp},
    {"", "ReduceLogSumExp", 28, {"Ti>T", kFloatsBf16}, "keepdims:i noop_with_empty_axes:i",
     infer_reduce, evaluate_log_sum_exp},
    {"", "ReduceMax", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_extreme<Largest>},
    {"", "ReduceMax", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_extreme<Largest>},
    {"", "ReduceMax", 12, {"T>T", kFloats | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_extreme<Largest>},
    {"", "ReduceMax", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_extreme<Largest>},
    {"", "ReduceMax", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_extreme<Largest>},
    {"", "ReduceMax", 20, {"Ti>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64, DType::Bool)}, "keepdims:i noop_with_empty_axes:i",
     infer_reduce, evaluate_extreme<Largest>},
    {"", "ReduceMean", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Mean>},
    {"", "ReduceMean", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Mean>},
    {"", "ReduceMean", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Mean>},
    {"", "ReduceMean", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_reduce<Kind::Mean>},
    {"", "ReduceMin", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_extreme<Smallest>},
    {"", "ReduceMin", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_extreme<Smallest>},
    {"", "ReduceMin", 12, {"T>T", kFloats | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_extreme<Smallest>},
    {"", "ReduceMin", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_extreme<Smallest>},
    {"", "ReduceMin", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_extreme<Smallest>},
    {"", "ReduceMin", 20, {"Ti>T", kFloatsBf16 | set_of(DType::UInt8, DType::UInt32, DType::UInt64,
      DType::Int8, DType::Int32, DType::Int64, DType::Bool)}, "keepdims:i noop_with_empty_axes:i",
     infer_reduce, evaluate_extreme<Smallest>},
    {"", "ReduceProd", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Prod>},
    {"", "ReduceProd", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Prod>},
    {"", "ReduceProd", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Prod>},
    {"", "ReduceProd", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_reduce<Kind::Prod>},
    {"", "ReduceSum", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Sum>},
    {"", "ReduceSum", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::Sum>},
    {"", "ReduceSum", 13, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_reduce<Kind::Sum>},
    {"", "ReduceSumSquare", 1, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64, DType::Int32,
      DType::Int64)}, "axes:is keepdims:i", infer_reduce, evaluate_reduce<Kind::SumSquare>},
    {"", "ReduceSumSquare", 11, {"T>T", kFloats | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_reduce<Kind::SumSquare>},
    {"", "ReduceSumSquare", 13, {"T>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "axes:is keepdims:i", infer_reduce,
     evaluate_reduce<Kind::SumSquare>},
    {"", "ReduceSumSquare", 18, {"Ti>T", kFloatsBf16 | set_of(DType::UInt32, DType::UInt64,
      DType::Int32, DType::Int64)}, "keepdims:i noop_with_empty_axes:i", infer_reduce,
     evaluate_reduce<Kind::SumSquare>},
};

}  // namespace

std::span<const OpSchema> reduce_schemas() { return kRows; }

}  // namespace sardonyx
