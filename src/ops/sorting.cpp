#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/dtype_switch.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// The value by which a type is ordered.
template <typename T>
auto key_of(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return to_float(value);
  } else {
    return value;
  }
}

/// Orders as numpy does: NaN is above everything and equal to itself. Negative, 0 or positive.
template <typename T>
int compare_keys(const T& a, const T& b) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool a_nan = std::isnan(a);
    const bool b_nan = std::isnan(b);
    if (a_nan || b_nan) return static_cast<int>(a_nan) - static_cast<int>(b_nan);
  }
  return a < b ? -1 : b < a ? 1 : 0;
}

using CompareFn = int (*)(const std::byte* data, std::int64_t a, std::int64_t b);

template <typename T>
int compare_elements(const std::byte* data, std::int64_t a, std::int64_t b) {
  const auto* values = reinterpret_cast<const T*>(data);
  return compare_keys(key_of(values[a]), key_of(values[b]));
}

template <typename T>
int compare_complex(const std::byte* data, std::int64_t a, std::int64_t b) {
  const int real = compare_elements<T>(data, 2 * a, 2 * b);
  return real != 0 ? real : compare_elements<T>(data, 2 * a + 1, 2 * b + 1);
}

int compare_strings(const std::byte* data, std::int64_t a, std::int64_t b) {
  const auto* values = reinterpret_cast<const std::string*>(data);
  return values[a].compare(values[b]);
}

CompareFn comparer(DType dtype) {
  CompareFn found = nullptr;
  const auto pick = [&]<typename T>() { found = compare_elements<T>; };
  if (switch_numeric(dtype, pick)) return found;
  switch (dtype) {
    case DType::Bool: return compare_elements<std::uint8_t>;
    case DType::String: return compare_strings;
    case DType::Complex64: return compare_complex<float>;
    case DType::Complex128: return compare_complex<double>;
    default: return nullptr;
  }
}

Status infer_unique(InferContext& context) {
  const bool has_axis = context.attributes().has("axis");
  for (std::size_t i = 1; i < 4; ++i) context.set_shape(i, {kUnknownDim});
  if (!has_axis) {
    context.set_shape(0, {kUnknownDim});
    return {};
  }
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const int axis, resolve_axis(context.attributes().get_int("axis", 0), input->rank()));
  Shape output = *input;
  output[axis] = kUnknownDim;
  context.set_shape(0, output);
  return {};
}

/// The slices of a tensor along one axis, numbered by their index on it.
struct Slices {
  const Tensor* tensor;
  CompareFn compare_element;
  std::int64_t outer;
  std::int64_t count;
  std::int64_t inner;

  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t o = 0; o < outer; ++o) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const int order = compare_element(tensor->data(), (o * count + a) * inner + i,
                                          (o * count + b) * inner + i);
        if (order != 0) return order;
      }
    }
    return 0;
  }
};

/// Groups of equal slices.
struct Groups {
  /// Per group: its first slice and how many it has.
  std::vector<std::int64_t> first;
  std::vector<std::int64_t> sizes;
  /// Per slice: its group.
  std::vector<std::int64_t> group_of;
};

Groups group_slices(const Slices& slices, bool is_sorted) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(slices.count));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return slices.compare(a, b) < 0; });
  Groups groups;
  groups.group_of.resize(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || slices.compare(order[i - 1], order[i]) != 0) {
      groups.first.push_back(order[i]);
      groups.sizes.push_back(0);
    }
    ++groups.sizes.back();
    groups.group_of[static_cast<std::size_t>(order[i])] =
        static_cast<std::int64_t>(groups.first.size()) - 1;
  }
  if (is_sorted) return groups;
  std::vector<std::int64_t> by_first(groups.first.size());
  std::iota(by_first.begin(), by_first.end(), 0);
  const auto first_of = [&](std::int64_t g) { return groups.first[static_cast<std::size_t>(g)]; };
  std::sort(by_first.begin(), by_first.end(),
            [&](std::int64_t a, std::int64_t b) { return first_of(a) < first_of(b); });
  Groups moved = groups;
  std::vector<std::int64_t> new_number(by_first.size());
  for (std::size_t i = 0; i < by_first.size(); ++i) {
    const auto old = static_cast<std::size_t>(by_first[i]);
    moved.first[i] = groups.first[old];
    moved.sizes[i] = groups.sizes[old];
    new_number[old] = static_cast<std::int64_t>(i);
  }
  for (std::int64_t& group : moved.group_of) group = new_number[static_cast<std::size_t>(group)];
  return moved;
}

Status write_ints(EvalContext& context, std::size_t output,
                  const std::vector<std::int64_t>& values) {
  SDX_ASSIGN(Tensor * y, context.allocate(output, Shape{static_cast<Dim>(values.size())}));
  if (y != nullptr) {
    std::copy(values.begin(), values.end(), y->mutable_values<std::int64_t>().begin());
  }
  return {};
}

/// The slices named by `first`, one after the other along the axis.
Status write_slices(EvalContext& context, const Slices& slices, Shape shape, int axis,
                    const std::vector<std::int64_t>& first) {
  shape[axis] = static_cast<Dim>(first.size());
  SDX_ASSIGN(Tensor * y, context.allocate(0, shape));
  if (y == nullptr) return {};
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < slices.outer; ++o) {
    for (const std::int64_t slice : first) {
      copy_elements(y->dtype(), y->mutable_data(), to, slices.tensor->data(),
                    (o * slices.count + slice) * slices.inner, slices.inner);
      to += slices.inner;
    }
  }
  return {};
}

Result<Groups> evaluate_groups(EvalContext& context, bool is_sorted) {
  const Tensor& x = context.tensor(0);
  Shape shape{x.element_count()};
  int axis = 0;
  if (context.attributes().has("axis")) {
    shape = x.shape();
    axis = *normalize_axis(context.attributes().get_int("axis", 0), x.rank());
  }
  const Slices slices{&x, comparer(x.dtype()), shape.product(0, axis), shape[axis],
                      shape.product(axis + 1, shape.rank())};
  if (slices.compare_element == nullptr) {
    return context.error("tensor({}) has no order", dtype_name(x.dtype()));
  }
  // Without elements the other axes may have any length.
  constexpr std::int64_t kEmptySlicesMax = std::int64_t{1} << 24;
  if (x.element_count() == 0 &&
      std::max({slices.outer, slices.count, slices.inner}) > kEmptySlicesMax) {
    return context.error("a tensor of shape {} has too many empty slices", x.shape().to_string());
  }
  Groups groups = group_slices(slices, is_sorted);
  SDX_TRY(write_slices(context, slices, shape, axis, groups.first));
  return groups;
}

Status evaluate_unique(EvalContext& context) {
  SDX_ASSIGN(const Groups groups,
             evaluate_groups(context, context.attributes().get_int("sorted", 1) != 0));
  SDX_TRY(write_ints(context, 1, groups.first));
  SDX_TRY(write_ints(context, 2, groups.group_of));
  return write_ints(context, 3, groups.sizes);
}

/// Values in order of their first occurrence, the group of each element, and the groups' sizes.
Status evaluate_unique_in_order(EvalContext& context) {
  SDX_ASSIGN(const Groups groups, evaluate_groups(context, false));
  SDX_TRY(write_ints(context, 1, groups.group_of));
  return write_ints(context, 2, groups.sizes);
}

/// k of TopK, or nothing when it is not known yet.
Result<std::optional<std::int64_t>> top_count(const InferContext& context) {
  std::optional<std::int64_t> count;
  if (context.version() < 10) {
    count = context.attributes().get_int("k", 0);
  } else if (const auto values = context.ints(1)) {
    if (values->size() != 1) {
      return context.error("K should have 1 element, found {}", values->size());
    }
    count = (*values)[0];
  }
  if (count && *count < 0) return context.error("K is {}, but should not be negative", *count);
  return count;
}

Status infer_top_k(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const int axis, resolve_axis(context.attributes().get_int("axis", -1), input->rank()));
  SDX_ASSIGN(const auto count, top_count(context));
  if (count && is_known((*input)[axis]) && *count > (*input)[axis]) {
    return context.error("K is {}, but axis {} has {} elements", *count, axis, (*input)[axis]);
  }
  Shape output = *input;
  output[axis] = count ? *count : kUnknownDim;
  context.set_shape(0, output);
  context.set_shape(1, output);
  return {};
}

/// Where the lines that TopK looks at lie.
struct Lines {
  std::int64_t outer;
  std::int64_t size;
  std::int64_t inner;
  std::int64_t count;
};

/// Puts the indices of the `count` first elements of a line in front, in order; equal elements
/// keep the order of their indices.
template <typename T>
void select_top(const T* line, const Lines& lines, bool is_largest,
                std::vector<std::int64_t>& order) {
  std::iota(order.begin(), order.end(), 0);
  const auto comes_first = [&](std::int64_t a, std::int64_t b) {
    const int compared = compare_keys(key_of(line[a * lines.inner]), key_of(line[b * lines.inner]));
    if (compared == 0) return a < b;
    return is_largest ? compared > 0 : compared < 0;
  };
  const auto middle = order.begin() + lines.count;
  if (lines.count < lines.size) std::nth_element(order.begin(), middle, order.end(), comes_first);
  std::sort(order.begin(), middle, comes_first);
}

template <typename T>
void top_k(const Tensor& x, const Lines& lines, bool is_largest, Tensor* values, Tensor* indices) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(lines.size));
  const auto* source = reinterpret_cast<const T*>(x.data());
  for (std::int64_t o = 0; o < lines.outer; ++o) {
    for (std::int64_t i = 0; i < lines.inner; ++i) {
      const T* line = source + o * lines.size * lines.inner + i;
      select_top(line, lines, is_largest, order);
      for (std::int64_t k = 0; k < lines.count; ++k) {
        const std::int64_t chosen = order[static_cast<std::size_t>(k)];
        const auto to = static_cast<std::size_t>((o * lines.count + k) * lines.inner + i);
        if (values != nullptr) values->mutable_values<T>()[to] = line[chosen * lines.inner];
        if (indices != nullptr) indices->mutable_values<std::int64_t>()[to] = chosen;
      }
    }
  }
}

Status evaluate_top_k(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const int axis = *normalize_axis(context.attributes().get_int("axis", -1), x.rank());
  const bool is_largest = context.attributes().get_int("largest", 1) != 0;
  const std::int64_t count =
      context.version() < 10 ? context.attributes().get_int("k", 0) : context.ints(1)[0];
  SDX_ASSIGN(Tensor * values, context.allocate(0));
  SDX_ASSIGN(Tensor * indices, context.allocate(1));
  if (count == 0 || x.element_count() == 0) return {};
  const Lines lines{x.shape().product(0, axis), x.dim(axis), x.shape().product(axis + 1, x.rank()),
                    count};
  const auto run = [&]<typename T>() { top_k<T>(x, lines, is_largest, values, indices); };
  if (!switch_numeric(x.dtype(), run)) {
    return context.error("tensor({}) has no order", dtype_name(x.dtype()));
  }
  return {};
}

Status infer_non_zero(InferContext& context) {
  const Shape* input = context.shape(0);
  context.set_shape(0, {input != nullptr ? input->rank() : kUnknownDim, kUnknownDim});
  return {};
}

/// Positions of the elements that are neither zero nor false nor "".
template <typename T>
void find_non_zero(const Tensor& x, std::vector<std::int64_t>& found) {
  const auto* values = reinterpret_cast<const T*>(x.data());
  const std::int64_t count = x.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (!values[i].empty()) found.push_back(i);
    } else {
      if (key_of(values[i]) != 0) found.push_back(i);
    }
  }
}

Status evaluate_non_zero(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  std::vector<std::int64_t> found;
  const auto run = [&]<typename T>() { find_non_zero<T>(x, found); };
  if (x.dtype() == DType::Bool) {
    find_non_zero<std::uint8_t>(x, found);
  } else if (x.dtype() == DType::String) {
    find_non_zero<std::string>(x, found);
  } else if (!switch_numeric(x.dtype(), run)) {
    return context.error("NonZero of tensor({}) is not possible", dtype_name(x.dtype()));
  }
  const auto count = static_cast<Dim>(found.size());
  SDX_ASSIGN(Tensor * y, context.allocate(0, Shape{x.rank(), count}));
  if (y == nullptr || x.rank() == 0) return {};
  const Shape strides = strides_of(x.shape());
  auto* to = y->mutable_values<std::int64_t>().data();
  for (int axis = 0; axis < x.rank(); ++axis) {
    for (const std::int64_t position : found) {
      *to++ = position / strides[axis] % x.dim(axis);
    }
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"",
     "Unique",
     11,
     {"T>Tiii"},
     "axis:i sorted:i",
     infer_unique,
     evaluate_unique,
     kDataDependentShape},
    {"",
     "Unique",
     28,
     {"T>Tiii"},
     "axis:i sorted:i",
     infer_unique,
     evaluate_unique,
     kDataDependentShape},
    {"", "TopK", 1, {"T>TI", kFloats}, "axis:i k:i!", infer_top_k, evaluate_top_k},
    {"", "TopK", 10, {"TI>TI", kFloats}, "axis:i", infer_top_k, evaluate_top_k},
    {"", "TopK", 11, {"TI>TI", kNumeric}, "axis:i largest:i sorted:i", infer_top_k, evaluate_top_k},
    {"",
     "TopK",
     24,
     {"TI>TI", kNumericBf16},
     "axis:i largest:i sorted:i",
     infer_top_k,
     evaluate_top_k},
    {"", "NonZero", 9, {"T>I"}, "", infer_non_zero, evaluate_non_zero, kDataDependentShape},
    {"", "NonZero", 13, {"T>I"}, "", infer_non_zero, evaluate_non_zero, kDataDependentShape},
    {"com.microsoft",
     "Unique",
     1,
     {"T>Tii"},
     "",
     infer_unique,
     evaluate_unique_in_order,
     kDataDependentShape},
};

}  // namespace

std::span<const OpSchema> sorting_schemas() { return kRows; }

}  // namespace sardonyx
