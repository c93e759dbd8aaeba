#pragma once

#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "ir/attribute.h"
#include "ir/shape.h"
#include "ir/tensor.h"

namespace sardonyx {

/// What Resize does, and with one meaning less each, what Upsample and older versions do.
struct ResizeRules {
  enum class Mode { Nearest, Linear, Cubic };
  enum class Coordinates {
    HalfPixel,
    PytorchHalfPixel,
    AlignCorners,
    Asymmetric,
    HalfPixelSymmetric,
    HalfPixelForNearest,
    CropAndResize,
  };
  /// Legacy is floor when growing and ceiling when shrinking, as before version 11.
  enum class Rounding { PreferFloor, PreferCeiling, Floor, Ceiling, Legacy };

  Mode mode = Mode::Nearest;
  Coordinates coordinates = Coordinates::HalfPixel;
  Rounding rounding = Rounding::PreferFloor;
  float cubic_a = -0.75F;
  float extrapolation = 0.0F;
  bool excludes_outside = false;
  bool antialiases = false;
};

/// The rules of a Resize of `version`, or of an Upsample.
/// Errors   InvalidModel for names that the standard does not have.
Result<ResizeRules> resize_rules(const Attributes& attributes, bool is_upsample, int version);

/// One axis: its sizes and the factor between them, which need not be their exact ratio.
struct ResizeAxis {
  Dim in = kUnknownDim;
  Dim out = kUnknownDim;
  float scale = 1.0F;
  float roi_begin = 0.0F;
  float roi_end = 1.0F;

  /// Every element stays where it is.
  bool is_identity(const ResizeRules& rules) const {
    const bool is_whole = roi_begin == 0.0F && roi_end == 1.0F;
    return in == out && scale == 1.0F &&
           (rules.coordinates != ResizeRules::Coordinates::CropAndResize || is_whole);
  }
};

/// Inputs of a Resize; null where they are left out or empty.
struct ResizeInputs {
  const Tensor* roi = nullptr;
  const Tensor* scales = nullptr;
  const Tensor* sizes = nullptr;
};

/// The axes of an input of shape `input`; sizes that depend on unknown dimensions stay unknown.
/// Errors   InvalidModel when numbers of elements or values do not fit.
Result<std::vector<ResizeAxis>> resize_axes(const Attributes& attributes, const Shape& input,
                                            const ResizeInputs& inputs,
                                            std::span<const float> scale_attribute);

/// For each output position of an axis: `taps` input positions and their weights, one after the
/// other. Positions are inside the axis. For Nearest there is one tap of weight 1.
struct ResizeTaps {
  std::int64_t taps = 1;
  /// As long as the model says: in memory that may be refused.
  Tensor positions_memory;
  Tensor weights_memory;
  Tensor outside_memory;

  std::span<const std::int64_t> positions() const {
    return positions_memory.values<std::int64_t>();
  }
  std::span<const float> weights() const { return weights_memory.values<float>(); }
  /// Whether the extrapolation value stands at an output position instead.
  bool is_outside(std::size_t i) const {
    return outside_memory.data() != nullptr && outside_memory.values<std::uint8_t>()[i] != 0;
  }
};

/// Numbers  float32 throughout, as the coordinates of other runtimes; weights sum to 1.
/// Errors   OutOfMemory; the axis must have known sizes and, unless `out` is 0, `in` above 0.
Result<ResizeTaps> resize_taps(const ResizeRules& rules, const ResizeAxis& axis);

}  // namespace sardonyx
