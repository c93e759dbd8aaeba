#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sardonyx::kernels {

/// A permutation of axes, reduced to the few loops that move its bytes. A plain value: it can be
/// made once for a shape and used by many threads.
struct TransposePlan {
  /// Axes longer than 1 that the product of dims, an int64, has room for.
  static constexpr int kAxesMax = 63;

  enum class Kind : std::uint8_t {
    Nothing,  ///< no element
    Copy,     ///< the order does not change
    Rows,     ///< runs of `element_bytes` keep together
    Tiles,    ///< the innermost axes of input and output differ
  };

  Kind kind = Kind::Nothing;
  int outer_count = 0;
  /// Bytes that stay together: 1, 2, 4, 8 or 16 for Tiles.
  std::int64_t element_bytes = 0;
  /// Tiles: the input's innermost axis, and its stride in the output.
  std::int64_t rows = 0, y_row_bytes = 0;
  /// Tiles: the output's innermost axis, and its stride in the input.
  std::int64_t cols = 0, x_row_bytes = 0;
  /// What may be split over threads: any range of [0, units) can run alone.
  std::int64_t units = 0;
  /// About how many bytes one unit moves.
  std::int64_t unit_bytes = 0;
  std::array<std::int64_t, kAxesMax> outer_dims{}, outer_x_bytes{}, outer_y_bytes{};
};

/// The plan for y.dims[i] = x.dims[axes[i]].
///
/// Shapes   x_dims and axes have the same length; axes is a permutation of 0..length-1. Any rank,
///          any element size; a dim of 0 gives a plan with no units.
/// Errors   none: the caller has checked that axes is a permutation, that no dim is negative and
///          that the tensor's bytes fit an int64.
TransposePlan plan_transpose(std::span<const std::int64_t> x_dims, std::span<const int> axes,
                             std::int64_t element_bytes);

/// Moves the units [begin, end) of `plan` from x to y. x and y are dense and do not overlap.
///
/// Cost     near the speed of memory for Copy and Rows, and for Tiles of 4 bytes and more.
void transpose_units(const TransposePlan& plan, const void* x, void* y, std::int64_t begin,
                     std::int64_t end);

/// All units of a plan that is used once: y = x with its axes permuted.
void transpose(std::span<const std::int64_t> x_dims, std::span<const int> axes,
               std::int64_t element_bytes, const void* x, void* y);

/// y[c][r] = x[r][c] for one matrix; strides in bytes, elements of 1, 2, 4, 8 or 16 bytes.
void transpose_matrix(const void* x, std::int64_t x_stride, std::int64_t x_rows,
                      std::int64_t x_cols, std::int64_t element_bytes, void* y,
                      std::int64_t y_stride);

}  // namespace sardonyx::kernels
