#pragma once

#include <array>
#include <cstdint>

#include "ops/infer_context.h"

namespace sardonyx {

/// The spatial axes that a convolution or a pool can have.
inline constexpr int kMaxSpatial = Shape::kMaxRank - 2;

/// How a window slides along one spatial axis: output position o covers the input positions
/// o * stride - pad_begin + k * dilation for k in [0, kernel).
struct WindowAxis {
  Dim input = kUnknownDim;
  Dim output = kUnknownDim;
  Dim kernel = kUnknownDim;
  std::int64_t stride = 1;
  std::int64_t dilation = 1;
  std::int64_t pad_begin = 0;
  std::int64_t pad_end = 0;

  /// Distance from the first to one past the last input position of a window.
  std::int64_t extent() const { return (kernel - 1) * dilation + 1; }
};

struct Window {
  int rank = 0;
  std::array<WindowAxis, kMaxSpatial> axes;

  WindowAxis& operator[](int i) { return axes[static_cast<std::size_t>(i)]; }
  const WindowAxis& operator[](int i) const { return axes[static_cast<std::size_t>(i)]; }
  std::int64_t input_size() const { return product(&WindowAxis::input); }
  std::int64_t output_size() const { return product(&WindowAxis::output); }
  std::int64_t kernel_size() const { return product(&WindowAxis::kernel); }

 private:
  std::int64_t product(Dim WindowAxis::* member) const {
    std::int64_t result = 1;
    for (int i = 0; i < rank; ++i) result *= (*this)[i].*member;
    return result;
  }
};

/// Strides, dilations and pads as attributes give them for `rank` spatial axes, the rest unknown.
/// Errors   InvalidModel when a list has another length or a value is out of range.
Result<Window> read_window(const Attributes& attributes, int rank);

/// Sets the kernel from `kernel_shape`, or from `weights` (the spatial part of the weight's shape;
/// may be null). Errors when both are there and differ.
Status set_kernel(Window& window, const Attributes& attributes, const Shape* weights);

/// Sets inputs, then outputs and the pads of auto_pad, of a window that slides over `input` (the
/// spatial part). Unknown inputs leave unknown outputs.
/// Errors   InvalidModel when a window does not fit, or auto_pad is not known.
Status slide(Window& window, const Attributes& attributes, const Shape& input, bool ceil_mode);

/// The same for a transposed convolution, whose output is the size that would slide to `input`;
/// reads output_shape and output_padding.
Status slide_back(Window& window, const Attributes& attributes, const Shape& input);

}  // namespace sardonyx
