#pragma once

#include <cstdint>

#include "base/status.h"
#include "ir/tensor.h"

namespace sardonyx {

/// Where quantised elements find their scale: one for all, one per index of an axis, or one per
/// block along it. The tensor is seen as [outer, length, inner].
struct QuantGrid {
  std::int64_t outer = 1;
  std::int64_t length = 1;
  std::int64_t inner = 1;
  /// Elements along the axis that share a scale; 0 when one scale serves the whole tensor.
  std::int64_t block = 0;
  /// Whether scales repeat over `outer` and `inner` (per axis) or are all their own (blocked).
  bool is_per_axis = false;
};

/// The grid for x quantised with scales of that shape.
/// Errors   InvalidModel when the shapes (both static or partly known) do not fit each other.
Result<QuantGrid> quant_grid(const Shape& x, const Shape& scale, std::int64_t axis,
                             std::int64_t block_size);

/// Calls body(start, count, scale_start, scale_step) for runs of elements that cover the tensor in
/// order; element start + i has the scale scale_start + i * scale_step (a step is 0 or 1).
template <typename Body>
void for_each_scale_run(const QuantGrid& grid, Body&& body) {
  if (grid.block == 0) {
    body(std::int64_t{0}, grid.outer * grid.length * grid.inner, std::int64_t{0}, std::int64_t{0});
    return;
  }
  const std::int64_t blocks = grid.length / grid.block + (grid.length % grid.block != 0);
  for (std::int64_t o = 0; o < grid.outer; ++o) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = b * grid.block;
      const std::int64_t size =
          grid.block < grid.length - first ? grid.block : grid.length - first;
      const std::int64_t start = (o * grid.length + first) * grid.inner;
      if (grid.is_per_axis) {
        body(start, size * grid.inner, b, std::int64_t{0});
      } else if (grid.inner == 1) {
        body(start, size, o * blocks + b, std::int64_t{0});
      } else {
        for (std::int64_t i = 0; i < size; ++i) {
          body(start + i * grid.inner, grid.inner, (o * blocks + b) * grid.inner, std::int64_t{1});
        }
      }
    }
  }
}

/// Least and greatest value of an integer type of at most 32 bits.
struct IntRange {
  float low;
  float high;
};
IntRange int_range(DType dtype);

struct QuantizeOptions {
  std::int64_t axis = 1;
  std::int64_t block_size = 0;
  bool saturate = true;
  /// Float type in which x is divided by the scale.
  DType precision = DType::Float32;
};

/// y = saturate(round(x / scale) + zero_point); `zero_point` may be null.
/// Errors   as quant_grid.
Status quantize(const Tensor& x, const Tensor& scale, const Tensor* zero_point,
                const QuantizeOptions& options, Tensor& y);

/// y = (x - zero_point) * scale, computed in float.
Status dequantize(const Tensor& x, const Tensor& scale, const Tensor* zero_point,
                  const QuantizeOptions& options, Tensor& y);

}  // namespace sardonyx
