#include <algorithm>
#include <cmath>
#include <limits>

#include "base/checked.h"
#include "ops/dense.h"
#include "ops/families.h"
#include "ops/window.h"

namespace sardonyx {

namespace {

Result<Window> pool_window(const Attributes& attributes, const Shape& x) {
  SDX_ASSIGN(Window window, read_window(attributes, x.rank() - 2));
  const auto& kernel = attributes.get_ints("kernel_shape");
  if (kernel.size() != static_cast<std::size_t>(window.rank)) {
    return failure(Code::InvalidModel,
                   "kernel_shape has {} values, but an input of shape {} has {} "
                   "spatial axes",
                   kernel.size(), x.to_string(), window.rank);
  }
  SDX_TRY(set_kernel(window, attributes, nullptr));
  SDX_TRY(
      slide(window, attributes, slice_of(x, 2, x.rank()), attributes.get_int("ceil_mode", 0) != 0));
  return window;
}

Status check_pool_rank(const InferContext& context, const Shape& x) {
  if (x.rank() >= 2) return {};
  return context.error("'{}' has shape {}, expected [batch, channels, ...]", context.input_name(0),
                       x.to_string());
}

Status infer_pool(InferContext& context) {
  context.set_dtype(1, DType::Int64);
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  SDX_TRY(check_pool_rank(context, *x));
  SDX_ASSIGN(const Window window, pool_window(context.attributes(), *x));
  Shape shape = slice_of(*x, 0, 2);
  for (int i = 0; i < window.rank; ++i) shape.push_back(window[i].output);
  context.set_shape(0, shape);
  context.set_shape(1, shape);
  return {};
}

Status infer_global_pool(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  SDX_TRY(check_pool_rank(context, *x));
  for (int i = 2; i < x->rank(); ++i) {
    // Beside an empty axis the others may have any length.
    if ((*x)[i] == 0)
      return context.error("axis {} of shape {} has nothing to pool", i, x->to_string());
  }
  Shape shape = slice_of(*x, 0, 2);
  for (int i = 2; i < x->rank(); ++i) shape.push_back(1);
  context.set_shape(0, shape);
  return {};
}

/// Taps of a window along one axis that lie inside the input: k in [first, last).
struct Taps {
  std::int64_t first;
  std::int64_t last;
};
Taps taps_of(const WindowAxis& axis, std::int64_t output) {
  const std::int64_t start = output * axis.stride - axis.pad_begin;
  const std::int64_t first = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
  const std::int64_t room = axis.input - start;
  const std::int64_t last = room <= 0 ? 0 : (room - 1) / axis.dilation + 1;
  return {std::min(first, axis.kernel),
          std::clamp(last, std::min(first, axis.kernel), axis.kernel)};
}

/// Combines the taps of one axis of a tensor [outer, axis, inner]: combine(to, from, inner) is
/// called for each tap after init(to, inner). Windows are products of intervals, so that pooling
/// runs axis by axis.
template <typename T, typename Init, typename Combine>
void pool_axis(const T* from, std::int64_t outer, const WindowAxis& axis, std::int64_t inner, T* to,
               Init&& init, Combine&& combine) {
  for (std::int64_t i = 0; i < outer; ++i, from += axis.input * inner) {
    for (std::int64_t o = 0; o < axis.output; ++o, to += inner) {
      const Taps taps = taps_of(axis, o);
      const std::int64_t start = o * axis.stride - axis.pad_begin;
      init(to, inner);
      for (std::int64_t k = taps.first; k < taps.last; ++k) {
        combine(to, from + (start + k * axis.dilation) * inner, inner);
      }
    }
  }
}

/// Uninitialised memory for a plain struct.
template <typename T>
Result<Tensor> make_plain(std::int64_t count) {
  const auto bytes = checked_multiply(count, sizeof(T));
  if (!bytes) return failure(Code::OutOfMemory, "{} intermediate elements are too many", count);
  return Tensor::allocate(DType::UInt8, Shape{*bytes});
}

/// Pools all axes, last axis first; the result holds T.
template <typename T, typename Init, typename Combine>
Result<Tensor> pool_all(const T* x, std::int64_t planes, const Window& window, Init init,
                        Combine combine) {
  Tensor current = Tensor::view(DType::UInt8, Shape{}, static_cast<const void*>(x));
  std::int64_t inner = 1;
  for (int i = window.rank - 1; i >= 0; --i) {
    std::int64_t outer = planes;
    for (int k = 0; k < i; ++k) outer *= window[k].input;
    const auto size = checked_multiply(outer * inner, window[i].output);
    SDX_ASSIGN(Tensor next, make_plain<T>(size.value_or(std::numeric_limits<Dim>::max())));
    pool_axis(reinterpret_cast<const T*>(current.data()), outer, window[i], inner,
              reinterpret_cast<T*>(next.mutable_data()), init, combine);
    current = std::move(next);
    inner *= window[i].output;
  }
  return current;
}

/// The divisor of each output position along one axis.
std::vector<std::int64_t> tap_counts(const WindowAxis& axis, bool count_padding) {
  std::vector<std::int64_t> counts;
  for (std::int64_t o = 0; o < axis.output; ++o) {
    WindowAxis bounds = axis;
    if (count_padding) {
      bounds.input += axis.pad_begin + axis.pad_end;
      bounds.pad_begin = 0;
    }
    const Taps taps = taps_of(bounds, o);
    counts.push_back(taps.last - taps.first);
  }
  return counts;
}

template <typename C>
void divide_by_counts(C* values, std::int64_t planes, const Window& window, bool count_padding) {
  const std::int64_t size = window.output_size();
  std::vector<C> divisor(static_cast<std::size_t>(size), C{1});
  std::int64_t inner = size;
  for (int i = 0; i < window.rank; ++i) {
    const auto counts = tap_counts(window[i], count_padding);
    inner /= window[i].output;
    for (std::int64_t p = 0; p < size; ++p) {
      divisor[static_cast<std::size_t>(p)] *=
          static_cast<C>(counts[static_cast<std::size_t>(p / inner % window[i].output)]);
    }
  }
  for (std::int64_t i = 0; i < planes; ++i) {
    for (std::int64_t p = 0; p < size; ++p)
      values[i * size + p] /= divisor[static_cast<std::size_t>(p)];
  }
}

template <typename C>
void clear_all(C* to, std::int64_t count) {
  std::fill_n(to, count, C{});
}
template <typename C>
void add_all(C* to, const C* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

Status evaluate_average_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const Window window, pool_window(context.attributes(), x.shape()));
  const bool count_padding = context.attributes().get_int("count_include_pad", 0) != 0;
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto values, Elements<C>::of(x));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y || y.element_count() == 0) return {};
    const std::int64_t planes = x.dim(0) * x.dim(1);
    SDX_ASSIGN(const Tensor sums,
               pool_all(values.data(), planes, window, clear_all<C>, add_all<C>));
    std::copy_n(reinterpret_cast<const C*>(sums.data()), y.element_count(), y.data());
    divide_by_counts(y.data(), planes, window, count_padding);
    y.commit();
    return {};
  });
}

/// The norm's exponent: an int, but a float in the first versions.
double norm_exponent(const Attributes& attributes) {
  if (const float* p = attributes.get_if<float>("p")) return static_cast<double>(*p);
  return static_cast<double>(attributes.get_int("p", 2));
}

template <typename C>
C power_of(C value, C p) {
  value = std::abs(value);
  if (p == C{1}) return value;
  return p == C{2} ? value * value : std::pow(value, p);
}
template <typename C>
C root_of(C value, C p) {
  if (p == C{1}) return value;
  return p == C{2} ? std::sqrt(value) : std::pow(value, C{1} / p);
}

Status evaluate_lp_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const Window window, pool_window(context.attributes(), x.shape()));
  const double exponent = norm_exponent(context.attributes());
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    const C p = static_cast<C>(exponent);
    SDX_ASSIGN(const auto values, Elements<C>::of(x));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y || y.element_count() == 0) return {};
    SDX_ASSIGN(Tensor scratch, make_scratch<C>(x.element_count()));
    C* powers = reinterpret_cast<C*>(scratch.mutable_data());
    std::transform(values.data(), values.data() + x.element_count(), powers,
                   [&](C value) { return power_of(value, p); });
    SDX_ASSIGN(const Tensor sums,
               pool_all<C>(powers, x.dim(0) * x.dim(1), window, clear_all<C>, add_all<C>));
    const auto* total = reinterpret_cast<const C*>(sums.data());
    std::transform(total, total + y.element_count(), y.data(),
                   [&](C value) { return root_of(value, p); });
    y.commit();
    return {};
  });
}

/// A value and where it stands in its plane.
template <typename C>
struct Peak {
  C value;
  std::int64_t position;
};

/// Whether `candidate` takes the place of `best`: a NaN wins over numbers.
template <typename C>
bool is_above(C candidate, C best) {
  if constexpr (std::is_floating_point_v<C>) {
    return candidate > best || (std::isnan(candidate) && !std::isnan(best));
  } else {
    return candidate > best;
  }
}

template <typename C>
constexpr C lowest_of() {
  if constexpr (std::numeric_limits<C>::has_infinity) return -std::numeric_limits<C>::infinity();
  return std::numeric_limits<C>::lowest();
}

/// Positions in the order of storage_order 1: the first spatial axis runs fastest.
std::int64_t column_major(std::int64_t position, const Window& window) {
  std::int64_t result = 0;
  std::int64_t rest = window.input_size();
  if (rest == 0) return 0;
  std::int64_t scale = 1;
  for (int i = 0; i < window.rank; ++i) {
    rest /= window[i].input;
    result += position / rest % window[i].input * scale;
    scale *= window[i].input;
  }
  return result;
}

template <typename C>
Status max_with_indices(EvalContext& context, const C* x, std::int64_t planes, const Window& window,
                        C* y) {
  SDX_ASSIGN(Tensor * indices, context.allocate(1));
  if (indices->element_count() == 0) return {};
  const std::int64_t in_size = window.input_size();
  const std::int64_t out_size = window.output_size();
  const bool is_column_major = context.attributes().get_int("storage_order", 0) != 0;
  SDX_ASSIGN(Tensor scratch, make_plain<Peak<C>>(in_size));
  auto* plane = reinterpret_cast<Peak<C>*>(scratch.mutable_data());
  for (std::int64_t i = 0; i < planes; ++i) {
    for (std::int64_t p = 0; p < in_size; ++p) {
      plane[p] = {x[i * in_size + p], p};
    }
    SDX_ASSIGN(
        const Tensor pooled,
        pool_all<Peak<C>>(
            plane, 1, window,
            [](Peak<C>* to, std::int64_t n) { std::fill_n(to, n, Peak<C>{lowest_of<C>(), -1}); },
            [](Peak<C>* to, const Peak<C>* from, std::int64_t n) {
              for (std::int64_t k = 0; k < n; ++k) {
                const bool is_first = to[k].position < 0 && from[k].position >= 0;
                if (is_first || is_above(from[k].value, to[k].value)) to[k] = from[k];
              }
            }));
    for (std::int64_t p = 0; p < out_size; ++p) {
      const Peak<C>& peak = reinterpret_cast<const Peak<C>*>(pooled.data())[p];
      y[i * out_size + p] = peak.value;
      const std::int64_t position = std::max<std::int64_t>(peak.position, 0);
      reinterpret_cast<std::int64_t*>(indices->mutable_data())[i * out_size + p] =
          i * in_size + (is_column_major ? column_major(position, window) : position);
    }
  }
  return {};
}

template <typename C>
Status max_pool(EvalContext& context, const C* x, std::int64_t planes, const Window& window, C* y) {
  if (context.has_output(1)) return max_with_indices(context, x, planes, window, y);
  if (planes * window.output_size() == 0) return {};
  SDX_ASSIGN(
      const Tensor pooled,
      pool_all(
          x, planes, window, [](C* to, std::int64_t n) { std::fill_n(to, n, lowest_of<C>()); },
          [](C* to, const C* from, std::int64_t n) {
            for (std::int64_t k = 0; k < n; ++k) {
              if (is_above(from[k], to[k])) to[k] = from[k];
            }
          }));
  std::copy_n(reinterpret_cast<const C*>(pooled.data()), planes * window.output_size(), y);
  return {};
}

Status evaluate_max_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const Window window, pool_window(context.attributes(), x.shape()));
  const std::int64_t planes = x.dim(0) * x.dim(1);
  if (x.dtype() == DType::Int8 || x.dtype() == DType::UInt8) {
    SDX_ASSIGN(Tensor * y, context.allocate(0));
    if (y == nullptr) return {};
    if (x.dtype() == DType::Int8) {
      return max_pool(context, x.values<std::int8_t>().data(), planes, window,
                      y->mutable_values<std::int8_t>().data());
    }
    return max_pool(context, x.values<std::uint8_t>().data(), planes, window,
                    y->mutable_values<std::uint8_t>().data());
  }
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto values, Elements<C>::of(x));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    SDX_TRY(max_pool(context, values.data(), planes, window, y.data()));
    y.commit();
    return {};
  });
}

enum class Global : std::uint8_t { Average, Max, Lp };

template <typename C>
C reduce_plane(Global kind, const C* x, std::int64_t size, C p) {
  if (kind == Global::Max) {
    C best = lowest_of<C>();
    for (std::int64_t i = 0; i < size; ++i) {
      if (is_above(x[i], best)) best = x[i];
    }
    return best;
  }
  double sum = 0.0;
  if (kind == Global::Average) {
    for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(x[i]);
    return static_cast<C>(sum / static_cast<double>(size));
  }
  for (std::int64_t i = 0; i < size; ++i) sum += static_cast<double>(power_of(x[i], p));
  return static_cast<C>(root_of(sum, static_cast<double>(p)));
}

template <Global kind>
Status evaluate_global_pool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const double exponent = norm_exponent(context.attributes());
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto values, Elements<C>::of(x));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    const std::int64_t size = x.shape().product(2, x.rank());
    for (std::int64_t i = 0; i < x.dim(0) * x.dim(1); ++i) {
      y[i] = reduce_plane(kind, values.data() + i * size, size, static_cast<C>(exponent));
    }
    y.commit();
    return {};
  });
}

/// The shape that the attributes alone describe.
Result<Shape> unpooled_shape(const Attributes& attributes, const Shape& x) {
  SDX_ASSIGN(Window window, read_window(attributes, x.rank() - 2));
  SDX_TRY(set_kernel(window, attributes, nullptr));
  Shape shape = slice_of(x, 0, 2);
  for (int i = 0; i < window.rank; ++i) {
    const WindowAxis& axis = window[i];
    const Dim input = x[i + 2];
    const bool is_ready = is_known(input) && is_known(axis.kernel) && input < (Dim{1} << 30);
    const Dim size = is_ready
                         ? (input - 1) * axis.stride + axis.kernel - axis.pad_begin - axis.pad_end
                         : kUnknownDim;
    if (is_ready && size < 0) {
      return failure(Code::InvalidModel, "pads {} and {} exceed axis {}", axis.pad_begin,
                     axis.pad_end, i);
    }
    shape.push_back(size);
  }
  return shape;
}

Status infer_max_unpool(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  SDX_TRY(check_pool_rank(context, *x));
  const Shape* indices = context.shape(1);
  if (indices != nullptr && indices->rank() != x->rank()) {
    return context.error("'{}' has shape {}, expected {} as '{}'", context.input_name(1),
                         indices->to_string(), x->to_string(), context.input_name(0));
  }
  if (context.has_input(2)) {
    const Shape* wanted = context.shape(2);
    if (wanted != nullptr && (wanted->rank() != 1 || differ((*wanted)[0], x->rank()))) {
      return context.error("'{}' has shape {}, expected [{}]", context.input_name(2),
                           wanted->to_string(), x->rank());
    }
    const auto dims = context.ints(2);
    if (!dims) {
      context.set_shape(0, Shape::filled(x->rank(), kUnknownDim));
      return {};
    }
    Shape shape;
    for (const std::int64_t dim : *dims) {
      if (dim < 0 || dims->size() != static_cast<std::size_t>(x->rank())) {
        return context.error("output_shape should be {} sizes, found {} with {}", x->rank(),
                             dims->size(), dim);
      }
      shape.push_back(dim);
    }
    context.set_shape(0, shape);
    return {};
  }
  SDX_ASSIGN(const Shape shape, unpooled_shape(context.attributes(), *x));
  context.set_shape(0, shape);
  return {};
}

/// The position in `to` of the element at `index` of `from`, which lies in its corner.
std::int64_t moved_index(std::int64_t index, const Shape& from, const Shape& to) {
  std::int64_t result = 0;
  std::int64_t scale = 1;
  for (int axis = from.rank() - 1; axis >= 0; --axis) {
    result += index % from[axis] * scale;
    index /= from[axis];
    scale *= to[axis];
  }
  return result;
}

/// The shape that the indices count in: the one that the attributes describe, when it fits into a
/// wanted larger one.
Result<Shape> indexed_shape(const EvalContext& context, const Shape& output) {
  if (!context.has_input(2)) return output;
  SDX_ASSIGN(const Shape described,
             unpooled_shape(context.attributes(), context.tensor(0).shape()));
  for (int axis = 0; axis < output.rank(); ++axis) {
    if (described[axis] < 1 || described[axis] > output[axis]) return output;
  }
  return described;
}

Status evaluate_max_unpool(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  if (!(indices.shape() == x.shape())) {
    return context.error("the indices have shape {}, expected {}", indices.shape().to_string(),
                         x.shape().to_string());
  }
  return with_real(x.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto values, Elements<C>::of(x));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    const Shape& output = *context.output_type(0).shape;
    SDX_ASSIGN(const Shape indexed, indexed_shape(context, output));
    const std::int64_t count = indexed.product(0, indexed.rank());
    std::fill_n(y.data(), y.element_count(), C{});
    const auto targets = indices.values<std::int64_t>();
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] < 0 || targets[i] >= count) {
        return context.error("index {} at position {} is outside [0, {})", targets[i], i, count);
      }
      y[moved_index(targets[i], indexed, output)] = values[static_cast<std::int64_t>(i)];
    }
    y.commit();
    return {};
  });
}

constexpr DTypeSet k8Bit = set_of(DType::Int8, DType::UInt8);
constexpr const char* kMax1 = "auto_pad:s kernel_shape:is! pads:is strides:is";
constexpr const char* kMax8 = "auto_pad:s kernel_shape:is! pads:is storage_order:i strides:is";
constexpr const char* kMax10 =
    "auto_pad:s ceil_mode:i dilations:is kernel_shape:is! pads:is storage_order:i strides:is";
constexpr const char* kAverage7 =
    "auto_pad:s count_include_pad:i kernel_shape:is! pads:is strides:is";
constexpr const char* kAverage10 =
    "auto_pad:s ceil_mode:i count_include_pad:i kernel_shape:is! pads:is strides:is";
constexpr const char* kAverage19 =
    "auto_pad:s ceil_mode:i count_include_pad:i dilations:is kernel_shape:is! pads:is strides:is";
constexpr const char* kLp1 = "auto_pad:s kernel_shape:is p:f pads:is strides:is";
constexpr const char* kLp2 = "auto_pad:s kernel_shape:is! p:i pads:is strides:is";
constexpr const char* kLp18 =
    "auto_pad:s ceil_mode:i dilations:is kernel_shape:is! p:i pads:is strides:is";
constexpr const char* kUnpool = "kernel_shape:is! pads:is strides:is";
constexpr DTypeSet kInt64 = set_of(DType::Int64);

constexpr OpSchema kRows[] = {
    {"", "MaxPool", 1, {"T>T", kFloats}, kMax1, infer_pool, evaluate_max_pool},
    {"", "MaxPool", 8, {"T>Tu", kFloats, kInt64}, kMax8, infer_pool, evaluate_max_pool},
    {"", "MaxPool", 10, {"T>Tu", kFloats, kInt64}, kMax10, infer_pool, evaluate_max_pool},
    {"", "MaxPool", 11, {"T>Tu", kFloats, kInt64}, kMax10, infer_pool, evaluate_max_pool},
    {"", "MaxPool", 12, {"T>Tu", kFloats | k8Bit, kInt64}, kMax10, infer_pool, evaluate_max_pool},
    {"",
     "MaxPool",
     22,
     {"T>Tu", kFloatsBf16 | k8Bit, kInt64},
     kMax10,
     infer_pool,
     evaluate_max_pool},
    {"", "AveragePool", 1, {"T>T", kFloats}, kMax1, infer_pool, evaluate_average_pool},
    {"", "AveragePool", 7, {"T>T", kFloats}, kAverage7, infer_pool, evaluate_average_pool},
    {"", "AveragePool", 10, {"T>T", kFloats}, kAverage10, infer_pool, evaluate_average_pool},
    {"", "AveragePool", 11, {"T>T", kFloats}, kAverage10, infer_pool, evaluate_average_pool},
    {"", "AveragePool", 19, {"T>T", kFloats}, kAverage19, infer_pool, evaluate_average_pool},
    {"", "AveragePool", 22, {"T>T", kFloatsBf16}, kAverage19, infer_pool, evaluate_average_pool},
    {"", "LpPool", 1, {"T>T", kFloats}, kLp1, infer_pool, evaluate_lp_pool},
    {"", "LpPool", 2, {"T>T", kFloats}, kLp2, infer_pool, evaluate_lp_pool},
    {"", "LpPool", 11, {"T>T", kFloats}, kLp2, infer_pool, evaluate_lp_pool},
    {"", "LpPool", 18, {"T>T", kFloats}, kLp18, infer_pool, evaluate_lp_pool},
    {"", "LpPool", 22, {"T>T", kFloatsBf16}, kLp18, infer_pool, evaluate_lp_pool},
    {"",
     "GlobalAveragePool",
     1,
     {"T>T", kFloats},
     "",
     infer_global_pool,
     evaluate_global_pool<Global::Average>},
    {"",
     "GlobalAveragePool",
     22,
     {"T>T", kFloatsBf16},
     "",
     infer_global_pool,
     evaluate_global_pool<Global::Average>},
    {"",
     "GlobalMaxPool",
     1,
     {"T>T", kFloats},
     "",
     infer_global_pool,
     evaluate_global_pool<Global::Max>},
    {"",
     "GlobalMaxPool",
     22,
     {"T>T", kFloatsBf16},
     "",
     infer_global_pool,
     evaluate_global_pool<Global::Max>},
    {"",
     "GlobalLpPool",
     1,
     {"T>T", kFloats},
     "p:f",
     infer_global_pool,
     evaluate_global_pool<Global::Lp>},
    {"",
     "GlobalLpPool",
     2,
     {"T>T", kFloats},
     "p:i",
     infer_global_pool,
     evaluate_global_pool<Global::Lp>},
    {"",
     "GlobalLpPool",
     22,
     {"T>T", kFloatsBf16},
     "p:i",
     infer_global_pool,
     evaluate_global_pool<Global::Lp>},
    {"", "MaxUnpool", 9, {"TIi>T", kFloats}, kUnpool, infer_max_unpool, evaluate_max_unpool},
    {"", "MaxUnpool", 11, {"TIi>T", kFloats}, kUnpool, infer_max_unpool, evaluate_max_unpool},
    {"", "MaxUnpool", 22, {"TIi>T", kFloatsBf16}, kUnpool, infer_max_unpool, evaluate_max_unpool},
};

}  // namespace

std::span<const OpSchema> pool_schemas() { return kRows; }

}  // namespace sardonyx
