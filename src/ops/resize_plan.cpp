#include "ops/resize_plan.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

template <typename T, std::size_t kCount>
Status choose(const std::array<std::pair<std::string_view, T>, kCount>& names,
              std::string_view what, const std::string& given, T& chosen) {
  std::vector<std::string> known;
  for (const auto& [name, value] : names) {
    if (name == given) {
      chosen = value;
      return {};
    }
    known.emplace_back(name);
  }
  return failure(Code::InvalidModel, "{} '{}' is none of {}", what, given, join(known, ", "));
}

using Mode = ResizeRules::Mode;
using Coordinates = ResizeRules::Coordinates;
using Rounding = ResizeRules::Rounding;

constexpr std::array<std::pair<std::string_view, Mode>, 4> kModes = {{
    {"nearest", Mode::Nearest},
    {"linear", Mode::Linear},
    {"bilinear", Mode::Linear},
    {"cubic", Mode::Cubic},
}};

constexpr std::array<std::pair<std::string_view, Coordinates>, 7> kCoordinates = {{
    {"half_pixel", Coordinates::HalfPixel},
    {"pytorch_half_pixel", Coordinates::PytorchHalfPixel},
    {"align_corners", Coordinates::AlignCorners},
    {"asymmetric", Coordinates::Asymmetric},
    {"half_pixel_symmetric", Coordinates::HalfPixelSymmetric},
    {"tf_half_pixel_for_nn", Coordinates::HalfPixelForNearest},
    {"tf_crop_and_resize", Coordinates::CropAndResize},
}};

constexpr std::array<std::pair<std::string_view, Rounding>, 4> kRoundings = {{
    {"round_prefer_floor", Rounding::PreferFloor},
    {"round_prefer_ceil", Rounding::PreferCeiling},
    {"floor", Rounding::Floor},
    {"ceil", Rounding::Ceiling},
}};

}  // namespace

Result<ResizeRules> resize_rules(const Attributes& attributes, bool is_upsample, int version) {
  ResizeRules rules;
  SDX_TRY(choose(kModes, "mode", attributes.get_string("mode", "nearest"), rules.mode));
  if (is_upsample || version < 11) {
    rules.coordinates = Coordinates::Asymmetric;
    rules.rounding = Rounding::Legacy;
    return rules;
  }
  SDX_TRY(choose(kCoordinates, "coordinate_transformation_mode",
                 attributes.get_string("coordinate_transformation_mode", "half_pixel"),
                 rules.coordinates));
  SDX_TRY(choose(kRoundings, "nearest_mode",
                 attributes.get_string("nearest_mode", "round_prefer_floor"), rules.rounding));
  rules.cubic_a = attributes.get_float("cubic_coeff_a", -0.75F);
  rules.extrapolation = attributes.get_float("extrapolation_value", 0.0F);
  rules.excludes_outside = attributes.get_int("exclude_outside", 0) != 0;
  rules.antialiases = attributes.get_int("antialias", 0) != 0;
  return rules;
}

namespace {

/// The largest size that an output axis may get; far above what memory can hold.
constexpr float kMostOut = 0x1p53F;

Status apply_scale(ResizeAxis& axis, float scale) {
  if (!(scale > 0.0F) || !std::isfinite(scale)) {
    return failure(Code::InvalidModel, "a scale is {}, but should be above 0", scale);
  }
  axis.scale = scale;
  if (!is_known(axis.in)) {
    axis.out = scale == 1.0F ? axis.in : kUnknownDim;
    return {};
  }
  const float out = scale * static_cast<float>(axis.in);
  if (!(out < kMostOut)) {
    return failure(Code::InvalidModel, "{} times {} is out of range", axis.in, scale);
  }
  // A factor of one keeps sizes that float32 cannot hold.
  axis.out = scale == 1.0F ? axis.in : static_cast<Dim>(out);
  return {};
}

/// One common factor that keeps every axis within (or, not_smaller, around) its size.
Status keep_aspect_ratio(std::vector<ResizeAxis>& axes, std::span<const int> chosen,
                         const std::string& policy) {
  if (policy != "not_larger" && policy != "not_smaller") {
    return failure(Code::InvalidModel,
                   "keep_aspect_ratio_policy '{}' is none of stretch, not_larger, not_smaller",
                   policy);
  }
  float common = policy == "not_larger" ? HUGE_VALF : 0.0F;
  for (const int i : chosen) {
    const ResizeAxis& axis = axes[static_cast<std::size_t>(i)];
    if (!is_known(axis.in)) {
      for (const int k : chosen) axes[static_cast<std::size_t>(k)].out = kUnknownDim;
      return {};
    }
    const float ratio = axis.scale;
    common = policy == "not_larger" ? std::min(common, ratio) : std::max(common, ratio);
  }
  for (const int i : chosen) {
    ResizeAxis& axis = axes[static_cast<std::size_t>(i)];
    const float out = common * static_cast<float>(axis.in) + 0.5F;
    if (!(out < kMostOut)) {
      return failure(Code::InvalidModel, "{} times {} is out of range", axis.in, common);
    }
    axis.scale = common;
    axis.out = static_cast<Dim>(out);
  }
  return {};
}

Status apply_sizes(std::vector<ResizeAxis>& axes, std::span<const int> chosen, const Tensor& sizes,
                   const std::string& policy) {
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    ResizeAxis& axis = axes[static_cast<std::size_t>(chosen[k])];
    axis.out = read_int(sizes.dtype(), sizes.data(), static_cast<std::int64_t>(k));
    if (axis.out < 0) return failure(Code::InvalidModel, "size {} is negative", axis.out);
    if (is_known(axis.in) && axis.in > 0) {
      axis.scale = static_cast<float>(axis.out) / static_cast<float>(axis.in);
    }
  }
  return policy == "stretch" ? Status() : keep_aspect_ratio(axes, chosen, policy);
}

Result<std::vector<int>> chosen_axes(const Attributes& attributes, int rank) {
  std::vector<int> chosen;
  const auto& given = attributes.get_ints("axes");
  if (given.empty()) {
    for (int axis = 0; axis < rank; ++axis) chosen.push_back(axis);
    return chosen;
  }
  SDX_TRY(resolve_axes(given, rank).take_status());
  for (const std::int64_t axis : given) chosen.push_back(*normalize_axis(axis, rank));
  return chosen;
}

Status check_count(const char* what, std::int64_t found, std::size_t expected) {
  if (found == static_cast<std::int64_t>(expected)) return {};
  return failure(Code::InvalidModel, "{} has {} elements, expected {}", what, found, expected);
}

}  // namespace

Result<std::vector<ResizeAxis>> resize_axes(const Attributes& attributes, const Shape& input,
                                            const ResizeInputs& inputs,
                                            std::span<const float> scale_attribute) {
  std::vector<ResizeAxis> axes;
  for (const Dim dim : input) axes.push_back({dim, dim, 1.0F, 0.0F, 1.0F});
  SDX_ASSIGN(const std::vector<int> chosen, chosen_axes(attributes, input.rank()));
  if (inputs.roi != nullptr) {
    const Tensor& roi = *inputs.roi;
    const auto count = static_cast<std::int64_t>(chosen.size());
    SDX_TRY(check_count("roi", roi.element_count(), 2 * chosen.size()));
    for (std::int64_t k = 0; k < count; ++k) {
      auto& axis = axes[static_cast<std::size_t>(chosen[static_cast<std::size_t>(k)])];
      axis.roi_begin = static_cast<float>(read_real(roi.dtype(), roi.data(), k));
      axis.roi_end = static_cast<float>(read_real(roi.dtype(), roi.data(), count + k));
    }
  }
  if (inputs.sizes != nullptr && inputs.scales != nullptr) {
    return failure(Code::InvalidModel, "scales and sizes are both given");
  }
  if (inputs.sizes != nullptr) {
    SDX_TRY(check_count("sizes", inputs.sizes->element_count(), chosen.size()));
    SDX_TRY(apply_sizes(axes, chosen, *inputs.sizes,
                        attributes.get_string("keep_aspect_ratio_policy", "stretch")));
    return axes;
  }
  const auto scales = inputs.scales != nullptr ? inputs.scales->values<float>() : scale_attribute;
  SDX_TRY(check_count("scales", static_cast<std::int64_t>(scales.size()), chosen.size()));
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    SDX_TRY(apply_scale(axes[static_cast<std::size_t>(chosen[k])], scales[k]));
  }
  return axes;
}

namespace {

/// The input coordinate that output position `i` looks at.
float source_coordinate(Coordinates coordinates, const ResizeAxis& axis, std::int64_t i) {
  const auto x = static_cast<float>(i);
  const auto in = static_cast<float>(axis.in);
  const float out = axis.scale * in;
  switch (coordinates) {
    case Coordinates::HalfPixel: return (x + 0.5F) / axis.scale - 0.5F;
    case Coordinates::PytorchHalfPixel: return axis.out > 1 ? (x + 0.5F) / axis.scale - 0.5F : 0.0F;
    case Coordinates::AlignCorners:
      return out == 1.0F || axis.out == 1 ? 0.0F : x * (in - 1.0F) / (out - 1.0F);
    case Coordinates::Asymmetric: return x / axis.scale;
    case Coordinates::HalfPixelForNearest: return (x + 0.5F) / axis.scale;
    case Coordinates::HalfPixelSymmetric: {
      const float adjustment = static_cast<float>(axis.out) / out;
      return in / 2.0F * (1.0F - adjustment) + (x + 0.5F) / axis.scale - 0.5F;
    }
    case Coordinates::CropAndResize: {
      const float begin = axis.roi_begin * (in - 1.0F);
      const float length = (axis.roi_end - axis.roi_begin) * (in - 1.0F);
      if (axis.out <= 1) return begin + length / 2.0F;
      return begin + x * length / (static_cast<float>(axis.out) - 1.0F);
    }
  }
  return x;
}

/// Positions beyond this are clamped anyway; floats above it do not convert to integers.
constexpr float kFarAway = 0x1p60F;

std::int64_t to_position(float x) {
  return std::isnan(x) ? 0 : static_cast<std::int64_t>(std::clamp(x, -kFarAway, kFarAway));
}

std::int64_t round_position(Rounding rounding, float x, bool is_shrinking) {
  switch (rounding) {
    case Rounding::PreferFloor: return to_position(std::ceil(x - 0.5F));
    case Rounding::PreferCeiling: return to_position(std::round(x));
    case Rounding::Floor: return to_position(std::floor(x));
    case Rounding::Ceiling: return to_position(std::ceil(x));
    case Rounding::Legacy: return to_position(is_shrinking ? std::ceil(x) : std::trunc(x));
  }
  return 0;
}

/// The cubic convolution kernel at distance `x`.
float cubic_weight(float x, float a) {
  x = std::fabs(x);
  if (x <= 1.0F) return ((a + 2.0F) * x - (a + 3.0F)) * x * x + 1.0F;
  if (x < 2.0F) return ((a * x - 5.0F * a) * x + 8.0F * a) * x - 4.0F * a;
  return 0.0F;
}

/// Shape of the filter: positions from floor(x) + first on, seen at `stretch` of their distance.
struct Filter {
  std::int64_t first = 0;
  std::int64_t taps = 1;
  float stretch = 1.0F;
};

Filter filter_of(const ResizeRules& rules, const ResizeAxis& axis) {
  const float support = rules.mode == Mode::Cubic ? 2.0F : 1.0F;
  Filter filter;
  if (rules.antialiases && axis.scale < 1.0F) filter.stretch = axis.scale;
  filter.first = static_cast<std::int64_t>(std::floor(-support / filter.stretch)) + 1;
  filter.taps = 2 - 2 * filter.first;
  return filter;
}

/// Weights for one output position whose coordinate is x.
void fill_taps(const ResizeRules& rules, const ResizeAxis& axis, const Filter& filter, float x,
               std::int64_t* positions, float* weights) {
  const std::int64_t base = to_position(std::floor(x));
  const float ratio = x - std::floor(x);
  float total = 0.0F;
  for (std::int64_t k = 0; k < filter.taps; ++k) {
    const std::int64_t position = base + filter.first + k;
    const float distance = (static_cast<float>(filter.first + k) - ratio) * filter.stretch;
    float weight = rules.mode == Mode::Cubic ? cubic_weight(distance, rules.cubic_a)
                                             : std::max(0.0F, 1.0F - std::fabs(distance));
    if (rules.excludes_outside && (position < 0 || position >= axis.in)) weight = 0.0F;
    positions[k] = std::clamp<std::int64_t>(position, 0, axis.in - 1);
    weights[k] = weight;
    total += weight;
  }
  const bool is_scaled = rules.excludes_outside || filter.stretch != 1.0F;
  if (!is_scaled || total == 0.0F) return;
  for (std::int64_t k = 0; k < filter.taps; ++k) weights[k] /= total;
}

}  // namespace

Result<ResizeTaps> resize_taps(const ResizeRules& rules, const ResizeAxis& axis) {
  ResizeTaps table;
  if (axis.out == 0) return table;
  if (axis.in == 0) {
    return failure(Code::InvalidModel, "an empty axis cannot be resized to {}", axis.out);
  }
  const bool is_nearest = rules.mode == Mode::Nearest;
  const Filter filter = is_nearest ? Filter{} : filter_of(rules, axis);
  const auto entries = checked_multiply(axis.out, filter.taps);
  if (!entries) {
    return failure(Code::OutOfMemory, "an axis of {} positions with {} taps is too long", axis.out,
                   filter.taps);
  }
  table.taps = filter.taps;
  SDX_ASSIGN(table.positions_memory, Tensor::allocate(DType::Int64, {*entries}));
  SDX_ASSIGN(table.weights_memory, Tensor::allocate(DType::Float32, {*entries}));
  auto* const all_positions = table.positions_memory.mutable_values<std::int64_t>().data();
  auto* const all_weights = table.weights_memory.mutable_values<float>().data();
  std::fill_n(all_weights, *entries, 1.0F);
  const auto last = static_cast<float>(axis.in - 1);
  for (std::int64_t i = 0; i < axis.out; ++i) {
    const float x = source_coordinate(rules.coordinates, axis, i);
    if (rules.coordinates == Coordinates::CropAndResize && !(x >= 0.0F && x <= last)) {
      if (table.outside_memory.data() == nullptr) {
        SDX_ASSIGN(table.outside_memory, Tensor::allocate(DType::UInt8, {axis.out}));
        fill_zero(table.outside_memory);
      }
      table.outside_memory.mutable_values<std::uint8_t>()[static_cast<std::size_t>(i)] = 1;
    }
    std::int64_t* positions = all_positions + i * filter.taps;
    if (is_nearest) {
      positions[0] = std::clamp<std::int64_t>(round_position(rules.rounding, x, axis.scale < 1.0F),
                                              0, axis.in - 1);
    } else {
      fill_taps(rules, axis, filter, x, positions, all_weights + i * filter.taps);
    }
  }
  return table;
}

}  // namespace sardonyx
