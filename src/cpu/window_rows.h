#pragma once

#include <cstdint>

#include "ops/convolve.h"

namespace sardonyx {

/// The windows of a convolution over bytes, channels last, as rows of a matrix: the bytes of a
/// group's channels under each tap, tap after tap.
struct WindowRows {
  const ConvSizes& sizes;
  const std::uint8_t* pixels;  ///< [batch, spatial..., in_channels]
  std::uint8_t padding;        ///< what counts for positions outside

  /// Copies the windows of the output pixels [first, first + rows), `depth` channels from `channel`
  /// on, to rows that are `stride` bytes apart.
  /// Cost     the bytes it writes.
  void copy(std::int64_t first, std::int64_t rows, std::int64_t channel, std::int64_t depth,
            std::int64_t stride, std::uint8_t* to) const;
};

/// Whether each window is one pixel, the pixels in their order.
bool is_pointwise(const Window& window);

}  // namespace sardonyx
