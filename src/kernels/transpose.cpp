#include "kernels/transpose.h"

#include <algorithm>
#include <cstring>

namespace sardonyx::kernels {

namespace {

constexpr std::int64_t kCopyUnitBytes = 1 << 16;
constexpr std::int64_t kTileRows = 128;
constexpr std::int64_t kTileCols = 64;

struct Axis {
  std::int64_t dim;
  std::int64_t x_bytes;
};

/// Sixteen bytes as lanes of T.
template <typename T>
struct Lanes {
  using Type __attribute__((vector_size(16))) = T;
  static constexpr int kCount = 16 / static_cast<int>(sizeof(T));
};

template <typename T, std::size_t... I>
typename Lanes<T>::Type interleave(typename Lanes<T>::Type a, typename Lanes<T>::Type b, int half,
                                   std::index_sequence<I...>) {
  constexpr int n = Lanes<T>::kCount;
  if (half == 0) {
    return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * n + I / 2)...);
  }
  return __builtin_shufflevector(a, b, static_cast<int>(I % 2 * n + I / 2 + n / 2)...);
}

/// A square of n x n elements of T, n filling 16 bytes. Interleaving row i with row i + n/2,
/// log2(n) times, transposes.
template <typename T>
inline void transpose_square(const std::byte* x, std::int64_t x_stride, std::byte* y,
                             std::int64_t y_stride) {
  using V = typename Lanes<T>::Type;
  constexpr int n = Lanes<T>::kCount;
  constexpr auto lanes = std::make_index_sequence<n>{};
  V a[n];
  V b[n];
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(&a[i], x + i * x_stride, 16);
#pragma GCC unroll 4
  for (int step = 1; step < n; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n / 2; ++i) {
      b[2 * i] = interleave<T>(a[i], a[i + n / 2], 0, lanes);
      b[2 * i + 1] = interleave<T>(a[i], a[i + n / 2], 1, lanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < n; ++i) a[i] = b[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < n; ++i) std::memcpy(y + i * y_stride, &a[i], 16);
}

/// y[r][c] = x[c][r], element by element.
template <typename T>
void transpose_edge(const std::byte* x, std::int64_t x_stride, std::byte* y, std::int64_t y_stride,
                    std::int64_t rows, std::int64_t cols) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::byte* source = x + r * static_cast<std::int64_t>(sizeof(T));
    std::byte* target = y + r * y_stride;
    for (std::int64_t c = 0; c < cols; ++c) {
      std::memcpy(target + c * static_cast<std::int64_t>(sizeof(T)), source + c * x_stride,
                  sizeof(T));
    }
  }
}

/// y[r][c] = x[c][r] for one tile.
template <typename T>
void transpose_tile(const std::byte* x, std::int64_t x_stride, std::byte* y, std::int64_t y_stride,
                    std::int64_t rows, std::int64_t cols) {
  constexpr std::int64_t n = Lanes<T>::kCount;
  constexpr std::int64_t bytes = sizeof(T);
  const std::int64_t whole_rows = rows / n * n;
  const std::int64_t whole_cols = cols / n * n;
  for (std::int64_t r = 0; r < whole_rows; r += n) {
    for (std::int64_t c = 0; c < whole_cols; c += n) {
      transpose_square<T>(x + c * x_stride + r * bytes, x_stride, y + r * y_stride + c * bytes,
                          y_stride);
    }
  }
  transpose_edge<T>(x + whole_cols * x_stride, x_stride, y + whole_cols * bytes, y_stride,
                    whole_rows, cols - whole_cols);
  transpose_edge<T>(x + whole_rows * bytes, x_stride, y + whole_rows * y_stride, y_stride,
                    rows - whole_rows, cols);
}

struct Bytes16 {
  std::uint64_t low, high;
};

void any_tile(std::int64_t element_bytes, const std::byte* x, std::int64_t x_stride, std::byte* y,
              std::int64_t y_stride, std::int64_t rows, std::int64_t cols) {
  switch (element_bytes) {
    case 1: return transpose_tile<std::uint8_t>(x, x_stride, y, y_stride, rows, cols);
    case 2: return transpose_tile<std::uint16_t>(x, x_stride, y, y_stride, rows, cols);
    case 4: return transpose_tile<std::uint32_t>(x, x_stride, y, y_stride, rows, cols);
    case 8: return transpose_tile<std::uint64_t>(x, x_stride, y, y_stride, rows, cols);
    default: return transpose_edge<Bytes16>(x, x_stride, y, y_stride, rows, cols);
  }
}

bool fits_a_tile(std::int64_t bytes) {
  return bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8 || bytes == 16;
}

/// The output's axes longer than 1, outermost first, neighbours that move together made one.
int merged_axes(std::span<const std::int64_t> x_dims, std::span<const int> axes,
                std::int64_t element_bytes, std::span<Axis> merged) {
  int count = 0;
  for (const int axis : axes) {
    const auto at = static_cast<std::size_t>(axis);
    if (x_dims[at] == 1) continue;
    std::int64_t x_bytes = element_bytes;
    for (std::size_t i = at + 1; i < x_dims.size(); ++i) x_bytes *= x_dims[i];
    Axis* last = count > 0 ? &merged[static_cast<std::size_t>(count - 1)] : nullptr;
    if (last != nullptr && last->x_bytes == x_bytes * x_dims[at]) {
      *last = {last->dim * x_dims[at], x_bytes};
    } else {
      merged[static_cast<std::size_t>(count++)] = {x_dims[at], x_bytes};
    }
  }
  return count;
}

/// Makes the axes but `tiled` and the last (or none, for -1) the outer loops; their output strides
/// follow from the dense output below them.
void add_outer_axes(TransposePlan& plan, std::span<const Axis> merged, int tiled, bool skip_last) {
  std::int64_t y_bytes = plan.element_bytes;
  const int count = static_cast<int>(merged.size());
  int kept = count - (skip_last ? 1 : 0) - (tiled >= 0 ? 1 : 0);
  plan.outer_count = kept;
  for (int i = count - 1; i >= 0; --i) {
    const Axis& axis = merged[static_cast<std::size_t>(i)];
    if (i == tiled) {
      plan.y_row_bytes = y_bytes;
    } else if (!(skip_last && i == count - 1)) {
      const auto slot = static_cast<std::size_t>(--kept);
      plan.outer_dims[slot] = axis.dim;
      plan.outer_x_bytes[slot] = axis.x_bytes;
      plan.outer_y_bytes[slot] = y_bytes;
    }
    y_bytes *= axis.dim;
  }
}

std::int64_t outer_positions(const TransposePlan& plan) {
  std::int64_t count = 1;
  for (int i = 0; i < plan.outer_count; ++i) count *= plan.outer_dims[static_cast<std::size_t>(i)];
  return count;
}

/// Where the outer loops stand.
struct Odometer {
  std::array<std::int64_t, TransposePlan::kAxesMax> index{};
  std::int64_t x_bytes = 0, y_bytes = 0;

  void set(const TransposePlan& plan, std::int64_t position) {
    for (int i = plan.outer_count - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      index[at] = position % plan.outer_dims[at];
      position /= plan.outer_dims[at];
      x_bytes += index[at] * plan.outer_x_bytes[at];
      y_bytes += index[at] * plan.outer_y_bytes[at];
    }
  }

  void advance(const TransposePlan& plan) {
    for (int i = plan.outer_count - 1; i >= 0; --i) {
      const auto at = static_cast<std::size_t>(i);
      x_bytes += plan.outer_x_bytes[at];
      y_bytes += plan.outer_y_bytes[at];
      if (++index[at] < plan.outer_dims[at]) return;
      x_bytes -= index[at] * plan.outer_x_bytes[at];
      y_bytes -= index[at] * plan.outer_y_bytes[at];
      index[at] = 0;
    }
  }
};

inline void copy_row(std::byte* y, const std::byte* x, std::int64_t bytes) {
  if (bytes < 16 || bytes > 512) {
    std::memcpy(y, x, static_cast<std::size_t>(bytes));
    return;
  }
  // Whole 16 byte pieces, the last one overlapping its neighbour: no call for a short row.
  std::int64_t i = 0;
  for (; i + 16 <= bytes; i += 16) std::memcpy(y + i, x + i, 16);
  std::memcpy(y + bytes - 16, x + bytes - 16, 16);
}

}  // namespace

TransposePlan plan_transpose(std::span<const std::int64_t> x_dims, std::span<const int> axes,
                             std::int64_t element_bytes) {
  TransposePlan plan;
  if (std::ranges::find(x_dims, 0) != x_dims.end()) return plan;
  std::array<Axis, TransposePlan::kAxesMax> storage;
  int count = merged_axes(x_dims, axes, element_bytes, storage);
  plan.element_bytes = element_bytes;
  if (count > 0 && storage[static_cast<std::size_t>(count - 1)].x_bytes == element_bytes) {
    plan.element_bytes *= storage[static_cast<std::size_t>(--count)].dim;
  }
  const std::span<const Axis> merged(storage.data(), static_cast<std::size_t>(count));
  if (count == 0) {
    plan.kind = TransposePlan::Kind::Copy;
    plan.unit_bytes = kCopyUnitBytes;
    plan.units = (plan.element_bytes + kCopyUnitBytes - 1) / kCopyUnitBytes;
    return plan;
  }
  int tiled = count - 2;
  while (tiled >= 0 && merged[static_cast<std::size_t>(tiled)].x_bytes != plan.element_bytes) {
    --tiled;
  }
  if (tiled < 0 || !fits_a_tile(plan.element_bytes)) {
    plan.kind = TransposePlan::Kind::Rows;
    add_outer_axes(plan, merged, -1, false);
    plan.units = outer_positions(plan);
    plan.unit_bytes = plan.element_bytes;
    return plan;
  }
  plan.kind = TransposePlan::Kind::Tiles;
  add_outer_axes(plan, merged, tiled, true);
  plan.rows = merged[static_cast<std::size_t>(tiled)].dim;
  plan.cols = merged.back().dim;
  plan.x_row_bytes = merged.back().x_bytes;
  plan.units = outer_positions(plan) * ((plan.rows + kTileRows - 1) / kTileRows) *
               ((plan.cols + kTileCols - 1) / kTileCols);
  plan.unit_bytes =
      std::min(plan.rows, kTileRows) * std::min(plan.cols, kTileCols) * plan.element_bytes;
  return plan;
}

namespace {

void copy_units(const TransposePlan& plan, const std::byte* x, std::byte* y, std::int64_t begin,
                std::int64_t end) {
  const std::int64_t first = begin * kCopyUnitBytes;
  const std::int64_t last = std::min(end * kCopyUnitBytes, plan.element_bytes);
  std::memcpy(y + first, x + first, static_cast<std::size_t>(last - first));
}

void row_units(const TransposePlan& plan, const std::byte* x, std::byte* y, std::int64_t begin,
               std::int64_t end) {
  Odometer at;
  at.set(plan, begin);
  const auto inner = static_cast<std::size_t>(plan.outer_count - 1);
  for (std::int64_t unit = begin; unit < end;) {
    const std::int64_t run = std::min(end - unit, plan.outer_dims[inner] - at.index[inner]);
    const std::byte* source = x + at.x_bytes;
    std::byte* target = y + at.y_bytes;
    for (std::int64_t i = 0; i < run; ++i) {
      copy_row(target, source, plan.element_bytes);
      source += plan.outer_x_bytes[inner];
      target += plan.outer_y_bytes[inner];
    }
    unit += run;
    at.index[inner] += run - 1;
    at.x_bytes += (run - 1) * plan.outer_x_bytes[inner];
    at.y_bytes += (run - 1) * plan.outer_y_bytes[inner];
    at.advance(plan);
  }
}

void tile_units(const TransposePlan& plan, const std::byte* x, std::byte* y, std::int64_t begin,
                std::int64_t end) {
  const std::int64_t row_tiles = (plan.rows + kTileRows - 1) / kTileRows;
  const std::int64_t col_tiles = (plan.cols + kTileCols - 1) / kTileCols;
  Odometer at;
  at.set(plan, begin / (row_tiles * col_tiles));
  std::int64_t tile = begin % (row_tiles * col_tiles);
  for (std::int64_t unit = begin; unit < end; ++unit) {
    const std::int64_t r = tile / col_tiles * kTileRows;
    const std::int64_t c = tile % col_tiles * kTileCols;
    any_tile(plan.element_bytes, x + at.x_bytes + c * plan.x_row_bytes + r * plan.element_bytes,
             plan.x_row_bytes, y + at.y_bytes + r * plan.y_row_bytes + c * plan.element_bytes,
             plan.y_row_bytes, std::min(kTileRows, plan.rows - r),
             std::min(kTileCols, plan.cols - c));
    if (++tile == row_tiles * col_tiles) {
      tile = 0;
      at.advance(plan);
    }
  }
}

}  // namespace

void transpose_units(const TransposePlan& plan, const void* x, void* y, std::int64_t begin,
                     std::int64_t end) {
  if (begin >= end) return;
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  switch (plan.kind) {
    case TransposePlan::Kind::Nothing: return;
    case TransposePlan::Kind::Copy: return copy_units(plan, from, to, begin, end);
    case TransposePlan::Kind::Rows: return row_units(plan, from, to, begin, end);
    case TransposePlan::Kind::Tiles: return tile_units(plan, from, to, begin, end);
  }
}

void transpose(std::span<const std::int64_t> x_dims, std::span<const int> axes,
               std::int64_t element_bytes, const void* x, void* y) {
  const TransposePlan plan = plan_transpose(x_dims, axes, element_bytes);
  transpose_units(plan, x, y, 0, plan.units);
}

void transpose_matrix(const void* x, std::int64_t x_stride, std::int64_t x_rows,
                      std::int64_t x_cols, std::int64_t element_bytes, void* y,
                      std::int64_t y_stride) {
  const auto* from = static_cast<const std::byte*>(x);
  auto* to = static_cast<std::byte*>(y);
  for (std::int64_t r = 0; r < x_cols; r += kTileRows) {
    for (std::int64_t c = 0; c < x_rows; c += kTileCols) {
      any_tile(element_bytes, from + c * x_stride + r * element_bytes, x_stride,
               to + r * y_stride + c * element_bytes, y_stride, std::min(kTileRows, x_cols - r),
               std::min(kTileCols, x_rows - c));
    }
  }
}

}  // namespace sardonyx::kernels
