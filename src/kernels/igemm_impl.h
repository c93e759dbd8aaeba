#pragma once

#include <cstdint>

#include "kernels/activation_simd.h"
#include "kernels/igemm.h"

// The igemm kernel as templates over a vector type V. Only kernel sources include this.
namespace sardonyx::kernels {

/// One tile: where it starts in A's pointers, in its panel and in C.
struct IgemmTile {
  std::int64_t row;
  std::int64_t column;
  std::int64_t columns;  // that exist, at most the tile's
  const float* b;
};

template <class V, int kRows, int kVectors>
struct IgemmKernel {
  using Reg = typename V::Reg;

  static void load_rows(const IgemmArgs& args, std::int64_t tap, std::int64_t row,
                        const float* (&rows)[kRows]) {
    const float* const* a = args.a + tap * args.a_tap_stride + row;
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      rows[i] = a[i] == args.a_zero ? a[i] : a[i] + args.a_offset;
    }
  }

  template <bool kFull>
  static Reg load(const float* p, std::int64_t columns) {
    return kFull ? V::load(p) : V::load_n(p, columns);
  }

  // acc += rows of floats; p is that of the tile's first row and column.
  template <bool kFull>
  static void add_rows(const float* p, std::int64_t stride, std::int64_t columns,
                       Reg (&acc)[kRows][kVectors]) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i, p += stride) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t column = v * V::kLanes;
        acc[i][v] = V::add(acc[i][v], load<kFull>(p + column, columns - column));
      }
    }
  }

  // A phase for all accumulators at a time: one branch a phase, and compact code.
  template <bool kFull>
  static void store(const IgemmArgs& args, const IgemmTile& tile, Reg (&acc)[kRows][kVectors]) {
    const Epilogue& e = args.epilogue;
    float* c = args.c + tile.row * args.c_stride + tile.column;
    if (e.alpha != 1) {
      const Reg alpha = V::set(e.alpha);
#pragma GCC unroll 16
      for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) acc[i][v] = V::mul(acc[i][v], alpha);
      }
    }
    if (e.accumulate) add_rows<kFull>(c, args.c_stride, tile.columns, acc);
    if (e.bias != nullptr) add_rows<kFull>(e.bias + tile.column, 0, tile.columns, acc);
    if (e.residual != nullptr) {
      add_rows<kFull>(e.residual + tile.row * e.residual_stride + tile.column, e.residual_stride,
                      tile.columns, acc);
    }
    const ClampRange range = clamp_range(e.activation);
    const Reg low = V::set(range.low);
    const Reg high = V::set(range.high);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        const std::int64_t column = v * V::kLanes;
        float* p = c + i * args.c_stride + column;
        const Reg x = V::min(high, V::max(low, acc[i][v]));
        kFull ? V::store(p, x) : V::store_n(p, x, tile.columns - column);
      }
    }
    if (!is_clamp(e.activation.kind)) {
      activate_block<V>(e.activation, c, args.c_stride, kRows, tile.columns);
    }
  }

  static void run(const IgemmArgs& args, const IgemmTile& tile) {
    Reg acc[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) acc[i][v] = V::set(0);
    }
    const float* b = tile.b;
    for (std::int64_t tap = 0; tap < args.taps; ++tap) {
      const float* rows[kRows];
      load_rows(args, tap, tile.row, rows);
      for (std::int64_t k = 0; k < args.depth; ++k, b += kVectors * V::kLanes) {
        Reg bs[kVectors];
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) bs[v] = V::load(b + v * V::kLanes);
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const Reg as = V::set(rows[i][k]);
#pragma GCC unroll 4
          for (int v = 0; v < kVectors; ++v) acc[i][v] = V::fma(as, bs[v], acc[i][v]);
        }
      }
    }
    if (tile.columns == kVectors * V::kLanes) {
      store<true>(args, tile, acc);
    } else {
      store<false>(args, tile, acc);
    }
  }
};

using IgemmTileFunction = void (*)(const IgemmArgs& args, const IgemmTile& tile);

/// The kernels for tiles of 1..kRows rows of kVectors vectors.
template <class V, int kVectors, int... kRow>
struct IgemmRowKernels {
  static constexpr IgemmTileFunction kByRows[] = {IgemmKernel<V, kRow, kVectors>::run...};
};

template <class V, int kRows, int kVectors>
inline IgemmTileFunction igemm_kernel(std::int64_t rows) {
  if constexpr (kRows == 8) {
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4, 5, 6, 7, 8>::kByRows[rows - 1];
  } else if constexpr (kRows == 6) {
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4, 5, 6>::kByRows[rows - 1];
  } else {
    static_assert(kRows == 4);
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4>::kByRows[rows - 1];
  }
}

template <class V, int kRows, int kVectors>
inline IgemmTileFunction igemm_kernel(std::int64_t rows, std::int64_t vectors) {
  if constexpr (kVectors >= 3) {
    if (vectors == 3) return igemm_kernel<V, kRows, 3>(rows);
  }
  return vectors == 2 ? igemm_kernel<V, kRows, 2>(rows) : igemm_kernel<V, kRows, 1>(rows);
}

template <class V, int kRows, int kVectors>
void igemm_run(const IgemmArgs& args) {
  constexpr std::int64_t kColumns = kVectors * V::kLanes;
  // Rows are spread evenly over the tiles: 9 are 5 and 4, not 8 and 1, which would wait for sums.
  const std::int64_t tiles = (args.rows + kRows - 1) / kRows;
  for (std::int64_t column = 0; column < args.columns; column += kColumns) {
    const std::int64_t left = args.columns - column;
    const std::int64_t columns = left < kColumns ? left : kColumns;
    const std::int64_t vectors = (columns + V::kLanes - 1) / V::kLanes;
    const float* b = args.b + column * args.b_depth + args.b_first * vectors * V::kLanes;
    for (std::int64_t tile = 0, row = 0; tile < tiles; ++tile) {
      const std::int64_t rows = args.rows / tiles + (tile < args.rows % tiles ? 1 : 0);
      igemm_kernel<V, kRows, kVectors>(rows, vectors)(args, {row, column, columns, b});
      row += rows;
    }
  }
}

}  // namespace sardonyx::kernels
