#include <algorithm>
#include <array>
#include <cmath>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"
#include "ops/real_tensor.h"

namespace sardonyx {

namespace {

/// Spatial axes that GridSample works on at most.
constexpr int kMostAxes = 3;

enum class SampleMode { Nearest, Linear, Cubic };
enum class Padding { Zeros, Border, Reflection };

struct SampleRules {
  SampleMode mode = SampleMode::Linear;
  Padding padding = Padding::Zeros;
  bool aligns_corners = false;
};

Result<SampleRules> sample_rules(const Attributes& attributes) {
  SampleRules rules;
  const std::string mode = attributes.get_string("mode", "linear");
  if (mode == "nearest") {
    rules.mode = SampleMode::Nearest;
  } else if (mode == "cubic" || mode == "bicubic") {
    rules.mode = SampleMode::Cubic;
  } else if (mode != "linear" && mode != "bilinear") {
    return failure(Code::InvalidModel, "mode '{}' is none of linear, nearest, cubic", mode);
  }
  const std::string padding = attributes.get_string("padding_mode", "zeros");
  if (padding == "border") {
    rules.padding = Padding::Border;
  } else if (padding == "reflection") {
    rules.padding = Padding::Reflection;
  } else if (padding != "zeros") {
    return failure(Code::InvalidModel, "padding_mode '{}' is none of zeros, border, reflection",
                   padding);
  }
  rules.aligns_corners = attributes.get_int("align_corners", 0) != 0;
  return rules;
}

Status infer_grid_sample(InferContext& context) {
  SDX_TRY(sample_rules(context.attributes()).take_status());
  const Shape* x = context.shape(0);
  const Shape* grid = context.shape(1);
  if (x == nullptr || grid == nullptr) return {};
  const int axes = x->rank() - 2;
  const Dim coordinates = grid->rank() > 0 ? (*grid)[grid->rank() - 1] : 0;
  const bool has_rank = axes >= 1 && grid->rank() == x->rank();
  const bool is_agreed = has_rank && (!is_known((*x)[0]) || !is_known((*grid)[0]) ||
                                      (*x)[0] == (*grid)[0]);
  if (!is_agreed || (is_known(coordinates) && coordinates != axes)) {
    return context.error("a grid {} does not fit an input {}", grid->to_string(), x->to_string());
  }
  if (axes > kMostAxes) {
    return failure(Code::Unsupported, "GridSample over {} axes is not supported (at most {})",
                   axes, kMostAxes);
  }
  Shape output{(*grid)[0], (*x)[1]};
  for (int i = 1; i + 1 < grid->rank(); ++i) output.push_back((*grid)[i]);
  context.set_shape(0, output);
  return {};
}

/// Reflects at `low` and `high` until it is between them.
template <typename Real>
Real reflect(Real x, Real low, Real high) {
  const Real range = high - low;
  if (!(range > 0)) return low;
  const Real distance = x < low ? low - x : x - high;
  if (distance <= 0) return x;
  const Real turns = std::floor(distance / range);
  const Real rest = distance - turns * range;
  const bool is_even = std::fmod(turns, Real{2}) == 0;
  return (x < low) == is_even ? low + rest : high - rest;
}

/// Positions along one axis and their weights; -1 is a place outside that counts as zero.
template <typename Real>
struct AxisTaps {
  std::int64_t count = 0;
  std::array<std::int64_t, 4> position{};
  std::array<Real, 4> weight{};
};

template <typename Real>
struct Borders {
  Real low;
  Real high;
};

template <typename Real>
Borders<Real> borders_of(const SampleRules& rules, std::int64_t size) {
  const auto length = static_cast<Real>(size);
  if (rules.aligns_corners) return {Real{0}, length - 1};
  return {Real(-0.5), length - Real(0.5)};
}

template <typename Real>
std::int64_t place(const SampleRules& rules, Real position, std::int64_t size) {
  const auto last = static_cast<Real>(size - 1);
  switch (rules.padding) {
    case Padding::Zeros:
      return position >= 0 && position <= last ? static_cast<std::int64_t>(position) : -1;
    case Padding::Border: break;
    case Padding::Reflection: {
      const auto borders = borders_of<Real>(rules, size);
      if (position < borders.low || position > borders.high) {
        position = reflect(position, borders.low, borders.high);
      }
      break;
    }
  }
  return static_cast<std::int64_t>(std::clamp(position, Real{0}, last));
}

template <typename Real>
std::array<Real, 4> cubic_weights(Real t) {
  constexpr Real kA = Real(-0.75);
  const auto near = [](Real x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; };
  const auto far = [](Real x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; };
  return {far(t + 1), near(t), near(1 - t), far(2 - t)};
}

/// The taps for the normalised coordinate `given` on an axis of `size`.
template <typename Real>
AxisTaps<Real> taps_at(const SampleRules& rules, Real given, std::int64_t size) {
  const auto length = static_cast<Real>(size);
  Real x = rules.aligns_corners ? (given + 1) / 2 * (length - 1) : ((given + 1) * length - 1) / 2;
  // Nothing this far out differs, and it converts to an integer.
  constexpr Real kFar = Real(1 << 30);
  x = std::isnan(x) ? -kFar : std::clamp(x, -kFar, kFar);
  if (rules.mode == SampleMode::Nearest) x = std::nearbyint(x);
  const auto borders = borders_of<Real>(rules, size);
  if (x < borders.low || x > borders.high) {
    // The taps of a cubic are moved to the border one by one.
    const bool moves_point = rules.mode != SampleMode::Cubic;
    if (rules.padding == Padding::Border && moves_point) x = std::clamp(x, Real{0}, length - 1);
    if (rules.padding == Padding::Reflection) x = reflect(x, borders.low, borders.high);
  }
  AxisTaps<Real> taps;
  const Real base = std::floor(x);
  const Real t = x - base;
  switch (rules.mode) {
    case SampleMode::Nearest:
      taps.count = 1;
      taps.weight[0] = 1;
      taps.position[0] = place(rules, x, size);
      break;
    case SampleMode::Linear:
      taps.count = 2;
      taps.weight = {1 - t, t, 0, 0};
      for (int k = 0; k < 2; ++k) {
        taps.position[static_cast<std::size_t>(k)] =
            place(rules, base + static_cast<Real>(k), size);
      }
      break;
    case SampleMode::Cubic:
      taps.count = 4;
      taps.weight = cubic_weights(t);
      for (int k = 0; k < 4; ++k) {
        taps.position[static_cast<std::size_t>(k)] =
            place(rules, base + static_cast<Real>(k - 1), size);
      }
      break;
  }
  return taps;
}

/// Offsets inside a plane and the weights of what lies there.
template <typename Real>
struct PointTaps {
  std::vector<std::int64_t> offset;
  std::vector<Real> weight;
};

template <typename Real>
void combine_taps(std::span<const AxisTaps<Real>> axes, const Shape& strides,
                  PointTaps<Real>& point) {
  point.offset.assign(1, 0);
  point.weight.assign(1, Real{1});
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    PointTaps<Real> next;
    for (std::size_t i = 0; i < point.offset.size(); ++i) {
      for (std::int64_t k = 0; k < axes[axis].count; ++k) {
        const auto tap = static_cast<std::size_t>(k);
        if (axes[axis].position[tap] < 0) continue;
        next.offset.push_back(point.offset[i] +
                              axes[axis].position[tap] * strides[static_cast<int>(axis)]);
        next.weight.push_back(point.weight[i] * axes[axis].weight[tap]);
      }
    }
    point = std::move(next);
  }
}

template <typename Real>
void sample(const SampleRules& rules, const Tensor& x, const Tensor& grid, Tensor& y) {
  const int axes = x.rank() - 2;
  Shape sizes;
  for (int i = 0; i < axes; ++i) sizes.push_back(x.dim(i + 2));
  const Shape strides = strides_of(sizes);
  const std::int64_t plane = sizes.product(0, axes);
  const std::int64_t points = y.shape().product(2, y.rank());
  const auto* from = reinterpret_cast<const Real*>(x.data());
  const auto* coordinates = reinterpret_cast<const Real*>(grid.data());
  auto* to = reinterpret_cast<Real*>(y.mutable_data());
  PointTaps<Real> point;
  std::array<AxisTaps<Real>, kMostAxes> taps;
  for (std::int64_t n = 0; n < y.dim(0); ++n) {
    for (std::int64_t p = 0; p < points; ++p) {
      const Real* given = coordinates + (n * points + p) * axes;
      // The last coordinate belongs to the first axis.
      for (int i = 0; i < axes; ++i) {
        taps[static_cast<std::size_t>(i)] = taps_at(rules, given[axes - 1 - i], sizes[i]);
      }
      combine_taps<Real>({taps.data(), static_cast<std::size_t>(axes)}, strides, point);
      for (std::int64_t c = 0; c < y.dim(1); ++c) {
        const Real* source = from + (n * y.dim(1) + c) * plane;
        Real sum{0};
        for (std::size_t k = 0; k < point.offset.size(); ++k) {
          sum += point.weight[k] * source[point.offset[k]];
        }
        to[(n * y.dim(1) + c) * points + p] = sum;
      }
    }
  }
}

Status evaluate_grid_sample(EvalContext& context) {
  SDX_ASSIGN(const SampleRules rules, sample_rules(context.attributes()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  if (context.tensor(0).element_count() == 0) {
    return context.error("an empty input {} cannot be sampled",
                         context.tensor(0).shape().to_string());
  }
  SDX_ASSIGN(const Tensor x, as_real(context.tensor(0)));
  SDX_ASSIGN(const Tensor grid, to_dtype(context.tensor(1), x.dtype()));
  SDX_ASSIGN(Tensor real, Tensor::allocate(x.dtype(), y->shape()));
  if (x.dtype() == DType::Float64) {
    sample<double>(rules, x, grid, real);
  } else {
    sample<float>(rules, x, grid, real);
  }
  write_real_tensor(real, *y);
  return {};
}

Status infer_affine_grid(InferContext& context) {
  const Shape* theta = context.shape(0);
  const auto size = context.ints(1);
  if (!size) return {};
  const auto axes = static_cast<Dim>(size->size()) - 2;
  if (axes != 2 && axes != 3) {
    return context.error("size has {} elements, expected 4 or 5", size->size());
  }
  const auto agree = [](Dim a, Dim b) { return !is_known(a) || a == b; };
  if (theta != nullptr && (theta->rank() != 3 || !agree((*theta)[1], axes) ||
                           !agree((*theta)[2], axes + 1) || !agree((*theta)[0], (*size)[0]))) {
    return context.error("theta {} does not fit {} axes and a batch of {}", theta->to_string(),
                         axes, (*size)[0]);
  }
  Shape output{(*size)[0]};
  for (std::size_t i = 2; i < size->size(); ++i) output.push_back((*size)[i]);
  for (const Dim dim : output) {
    if (dim < 0) return context.error("size {} is negative", dim);
  }
  output.push_back(axes);
  context.set_shape(0, output);
  return {};
}

/// Position `i` of `count` between -1 and 1: at the ends, or in the middle of equal parts.
double grid_coordinate(std::int64_t i, std::int64_t count, bool aligns_corners) {
  const auto steps = static_cast<double>(count);
  if (!aligns_corners) return (2.0 * static_cast<double>(i) + 1.0) / steps - 1.0;
  return count > 1 ? 2.0 * static_cast<double>(i) / (steps - 1.0) - 1.0 : -1.0;
}

Status evaluate_affine_grid(EvalContext& context) {
  const bool aligns_corners = context.attributes().get_int("align_corners", 0) != 0;
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  SDX_ASSIGN(const Tensor theta, to_dtype(context.tensor(0), DType::Float64));
  SDX_ASSIGN(Tensor real, Tensor::allocate(DType::Float64, y->shape()));
  const int axes = y->rank() - 2;
  const std::int64_t points = y->shape().product(1, y->rank() - 1);
  Shape sizes;
  for (int i = 0; i < axes; ++i) sizes.push_back(y->dim(i + 1));
  double* to = real.mutable_values<double>().data();
  for (std::int64_t n = 0; n < y->dim(0); ++n) {
    const double* matrix = theta.values<double>().data() + n * axes * (axes + 1);
    for (std::int64_t p = 0; p < points; ++p) {
      std::array<double, 3> at{};
      std::int64_t rest = p;
      for (int i = axes - 1; i >= 0; --i) {
        // x belongs to the last axis.
        at[static_cast<std::size_t>(axes - 1 - i)] =
            grid_coordinate(rest % sizes[i], sizes[i], aligns_corners);
        rest /= sizes[i];
      }
      for (int row = 0; row < axes; ++row) {
        double value = matrix[row * (axes + 1) + axes];
        for (int k = 0; k < axes; ++k) {
          value += matrix[row * (axes + 1) + k] * at[static_cast<std::size_t>(k)];
        }
        *to++ = value;
      }
    }
  }
  write_real_tensor(real, *y);
  return {};
}

/// What Col2Im knows of each spatial axis.
struct ColumnAxis {
  std::int64_t image = 0;
  std::int64_t block = 0;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_before = 0;
  /// Number of block positions.
  std::int64_t columns = 0;
};

Status measure(ColumnAxis& axis, std::int64_t pad_after) {
  constexpr std::int64_t kMost = std::int64_t{1} << 31;
  for (const std::int64_t value : {axis.image, axis.block, axis.stride, axis.dilation}) {
    if (value < 1 || value > kMost) {
      return failure(Code::InvalidModel, "{} is no size, stride or dilation", value);
    }
  }
  if (axis.pad_before < 0 || axis.pad_before > kMost || pad_after < 0 || pad_after > kMost) {
    return failure(Code::InvalidModel, "pads {} and {} are out of range", axis.pad_before,
                   pad_after);
  }
  const std::int64_t room =
      axis.image + axis.pad_before + pad_after - axis.dilation * (axis.block - 1) - 1;
  axis.columns = room < 0 ? 0 : room / axis.stride + 1;
  return {};
}

Result<std::vector<ColumnAxis>> column_axes(const Attributes& attributes,
                                            std::span<const std::int64_t> image,
                                            std::span<const std::int64_t> block) {
  const std::size_t count = image.size();
  const auto& strides = attributes.get_ints("strides");
  const auto& dilations = attributes.get_ints("dilations");
  const auto& pads = attributes.get_ints("pads");
  const auto fits = [&](std::size_t found, std::size_t expected) {
    return found == 0 || found == expected;
  };
  if (count == 0 || count > 14 || block.size() != count || !fits(strides.size(), count) ||
      !fits(dilations.size(), count) || !fits(pads.size(), 2 * count)) {
    return failure(Code::InvalidModel,
                   "image_shape, block_shape, strides, dilations and pads have {}, {}, {}, {} and "
                   "{} elements",
                   count, block.size(), strides.size(), dilations.size(), pads.size());
  }
  std::vector<ColumnAxis> axes(count);
  for (std::size_t i = 0; i < count; ++i) {
    axes[i].image = image[i];
    axes[i].block = block[i];
    if (!strides.empty()) axes[i].stride = strides[i];
    if (!dilations.empty()) axes[i].dilation = dilations[i];
    if (!pads.empty()) axes[i].pad_before = pads[i];
    SDX_TRY(measure(axes[i], pads.empty() ? 0 : pads[count + i]));
  }
  return axes;
}

Status infer_col2im(InferContext& context) {
  const Shape* input = context.shape(0);
  const auto image = context.ints(1);
  const auto block = context.ints(2);
  if (!image || !block) return {};
  SDX_ASSIGN(const auto axes, column_axes(context.attributes(), *image, *block));
  std::int64_t block_size = 1;
  std::int64_t columns = 1;
  for (const ColumnAxis& axis : axes) {
    const auto size = checked_multiply(block_size, axis.block);
    const auto count = checked_multiply(columns, axis.columns);
    if (!size || !count) return context.error("the block or image shape is out of range");
    block_size = *size;
    columns = *count;
  }
  Dim channels = kUnknownDim;
  if (input != nullptr) {
    const bool fits = input->rank() == 3 &&
                      (!is_known((*input)[1]) || (*input)[1] % block_size == 0) &&
                      (!is_known((*input)[2]) || (*input)[2] == columns);
    if (!fits) {
      return context.error("expected an input [N, C * {}, {}], found {}", block_size, columns,
                           input->to_string());
    }
    if (is_known((*input)[1])) channels = (*input)[1] / block_size;
  }
  Shape output{input != nullptr ? (*input)[0] : kUnknownDim, channels};
  for (const std::int64_t size : *image) output.push_back(size);
  context.set_shape(0, output);
  return {};
}

/// Adds the column elements of one plane into the image.
template <typename Real>
void add_columns(const std::vector<ColumnAxis>& axes, const Real* columns, Real* image) {
  Shape blocks;
  Shape counts;
  Shape sizes;
  for (const ColumnAxis& axis : axes) {
    blocks.push_back(axis.block);
    counts.push_back(axis.columns);
    sizes.push_back(axis.image);
  }
  const Shape strides = strides_of(sizes);
  const Shape none = Shape::filled(blocks.rank(), 0);
  BoxWalker block(blocks, none, none);
  do {
    BoxWalker column(counts, none, none);
    do {
      std::int64_t offset = 0;
      bool is_inside = true;
      for (int i = 0; i < sizes.rank() && is_inside; ++i) {
        const ColumnAxis& axis = axes[static_cast<std::size_t>(i)];
        const std::int64_t at = column.position()[i] * axis.stride +
                                block.position()[i] * axis.dilation - axis.pad_before;
        is_inside = at >= 0 && at < axis.image;
        offset += at * strides[i];
      }
      if (is_inside) image[offset] += *columns;
      ++columns;
    } while (column.next());
  } while (block.next());
}

Status evaluate_col2im(EvalContext& context) {
  const auto image = context.ints(1);
  const auto block = context.ints(2);
  SDX_ASSIGN(const auto axes, column_axes(context.attributes(), image, block));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  SDX_ASSIGN(const Tensor x, as_real(context.tensor(0)));
  SDX_ASSIGN(Tensor real, Tensor::allocate(x.dtype(), y->shape()));
  fill_zero(real);
  const std::int64_t planes = y->dim(0) * y->dim(1);
  const std::int64_t size = y->element_count() / planes;
  const std::int64_t step = x.element_count() / planes;
  for (std::int64_t p = 0; p < planes && step > 0; ++p) {
    if (x.dtype() == DType::Float64) {
      add_columns(axes, x.values<double>().data() + p * step,
                  real.mutable_values<double>().data() + p * size);
    } else {
      add_columns(axes, x.values<float>().data() + p * step,
                  real.mutable_values<float>().data() + p * size);
    }
  }
  write_real_tensor(real, *y);
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "GridSample", 16, {"TU>T", kAll, kFloats}, "align_corners:i mode:s padding_mode:s",
     infer_grid_sample, evaluate_grid_sample},
    {"", "GridSample", 20, {"TU>T", kAll, kFloats}, "align_corners:i mode:s padding_mode:s",
     infer_grid_sample, evaluate_grid_sample},
    {"", "GridSample", 22, {"TU>T", kAll, kFloatsBf16}, "align_corners:i mode:s padding_mode:s",
     infer_grid_sample, evaluate_grid_sample},
    {"", "AffineGrid", 20, {"TI>T", kFloatsBf16}, "align_corners:i", infer_affine_grid,
     evaluate_affine_grid},
    {"", "Col2Im", 18, {"TII>T"}, "dilations:is pads:is strides:is", infer_col2im, evaluate_col2im},
    {"com.microsoft", "GridSample", 1, {"TU>T", kFloats, kFloats},
     "align_corners:i mode:s padding_mode:s", infer_grid_sample, evaluate_grid_sample},
};

}  // namespace

std::span<const OpSchema> sampling_schemas() { return kRows; }

}  // namespace sardonyx
