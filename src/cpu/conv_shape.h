#pragma once

#include "kernels/conv.h"
#include "ops/convolve.h"

namespace sardonyx {

/// The spatial axes that convolution kernels have.
inline constexpr int kSpatialMax = 3;

/// The kernels' sizes of a plain or transposed convolution; axes that a 1-D or 2-D convolution
/// lacks keep their defaults.
inline kernels::ConvShape kernel_shape(const ConvSizes& sizes) {
  kernels::ConvShape shape;
  shape.batch = sizes.batch;
  shape.in_channels = sizes.in_channels;
  shape.out_channels = sizes.out_channels;
  shape.groups = sizes.groups;
  for (int i = 0; i < sizes.window.rank; ++i) {
    const auto axis = static_cast<std::size_t>(kSpatialMax - sizes.window.rank + i);
    const WindowAxis& from = sizes.window[i];
    shape.in[axis] = from.input;
    shape.out[axis] = from.output;
    shape.kernel[axis] = from.kernel;
    shape.stride[axis] = from.stride;
    shape.dilation[axis] = from.dilation;
    shape.pad[axis] = from.pad_begin;
  }
  return shape;
}

}  // namespace sardonyx
