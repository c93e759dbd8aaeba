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
  const float* prefetch;  // what the next panel will need: 64 bytes for each step of the depth
};

/// The tile of kRows rows of kVectors vectors, which lie in panels of kInPanel vectors. Few rows
/// take many panels at once, as a sum waits for its last term.
template <class V, int kRows, int kVectors, int kInPanel = kVectors>
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
#pragma GCC unroll 8
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
#pragma GCC unroll 8
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
#pragma GCC unroll 8
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
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = V::set(0);
    }
    const float* b = tile.b;
    const float* prefetch = tile.prefetch;
    const std::int64_t panel = kInPanel * V::kLanes * args.b_depth;
    for (std::int64_t tap = 0; tap < args.taps; ++tap) {
      const float* rows[kRows];
      load_rows(args, tap, tile.row, rows);
      for (std::int64_t k = 0; k < args.depth; ++k, b += kInPanel * V::kLanes, prefetch += 16) {
        // Narrower vectors leave the load ports no time for it.
        if constexpr (V::kLanes >= 16) __builtin_prefetch(prefetch, 0, 2);
        Reg bs[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          bs[v] = V::load(b + v / kInPanel * panel + v % kInPanel * V::kLanes);
        }
#pragma GCC unroll 16
        for (int i = 0; i < kRows; ++i) {
          const Reg as = V::set(rows[i][k]);
#pragma GCC unroll 8
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
  if constexpr (kRows == 12) {
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>::kByRows[rows - 1];
  } else if constexpr (kRows == 6) {
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4, 5, 6>::kByRows[rows - 1];
  } else {
    static_assert(kRows == 4);
    return IgemmRowKernels<V, kVectors, 1, 2, 3, 4>::kByRows[rows - 1];
  }
}

template <class V, int kRows, int kVectors>
inline IgemmTileFunction igemm_kernel(std::int64_t rows, std::int64_t vectors) {
  static_assert(kVectors == 2);
  return vectors == 2 ? igemm_kernel<V, kRows, 2>(rows) : igemm_kernel<V, kRows, 1>(rows);
}

/// At most two rows; four panels at a time.
template <class V, int kRows>
void igemm_few_rows(const IgemmArgs& args) {
  constexpr int kVectors = kRows == 1 ? 8 : 4;
  constexpr std::int64_t kColumns = kVectors * V::kLanes;
  for (std::int64_t column = 0; column < args.columns;) {
    const std::int64_t left = args.columns - column;
    const bool wide = left >= kColumns;
    const std::int64_t columns = wide ? kColumns : (left < 2 * V::kLanes ? left : 2 * V::kLanes);
    const std::int64_t width = left > V::kLanes ? 2 * V::kLanes : V::kLanes;
    const float* b = args.b + column * args.b_depth + args.b_first * width;
    const IgemmTile tile = {0, column, columns, b, b};
    if (wide) {
      IgemmKernel<V, kRows, kVectors, 2>::run(args, tile);
    } else if (width > V::kLanes) {
      IgemmKernel<V, kRows, 2>::run(args, tile);
    } else {
      IgemmKernel<V, kRows, 1>::run(args, tile);
    }
    column += columns;
  }
}

/// One block of the depth: groups of rows that stay in the second cache, under every panel.
template <class V, int kRows, int kVectors>
void igemm_block(const IgemmArgs& args) {
  constexpr std::int64_t kColumns = kVectors * V::kLanes;
  constexpr std::int64_t kGroupFloats = 128 * 1024;
  if (args.rows == 1) return igemm_few_rows<V, 1>(args);
  if (args.rows == 2) return igemm_few_rows<V, 2>(args);
  // Rows are spread evenly over the tiles: 13 are 7 and 6, not 12 and 1, which would wait for sums.
  const std::int64_t tiles = (args.rows + kRows - 1) / kRows;
  const std::int64_t few = tiles == 0 ? 0 : args.rows / tiles;
  const std::int64_t more = args.rows - few * tiles;
  const std::int64_t steps = args.taps * args.depth;
  const std::int64_t group = 1 + kGroupFloats / (kRows * (1 + steps));
  for (std::int64_t first = 0; first < tiles; first += group) {
    const std::int64_t last = first + group < tiles ? first + group : tiles;
    for (std::int64_t column = 0; column < args.columns; column += kColumns) {
      const std::int64_t left = args.columns - column;
      const std::int64_t columns = left < kColumns ? left : kColumns;
      const std::int64_t vectors = (columns + V::kLanes - 1) / V::kLanes;
      const float* b = args.b + column * args.b_depth + args.b_first * vectors * V::kLanes;
      for (std::int64_t tile = first; tile < last; ++tile) {
        const std::int64_t rows = few + (tile < more ? 1 : 0);
        const std::int64_t row = tile * few + (tile < more ? tile : more);
        // The first tiles fetch the next panel while they compute.
        const bool fetch = (tile - first) * 16 < kColumns;
        const std::int64_t skip = kColumns * args.b_depth + (tile - first) * steps * 16;
        const float* ahead = b + (fetch ? skip : 0);
        igemm_kernel<V, kRows, kVectors>(rows, vectors)(args, {row, column, columns, b, ahead});
      }
    }
  }
}

/// The part [tap, tap + taps) x [k, k + depth) of the sum; bias and so on go with the last part.
template <class V, int kRows, int kVectors>
void igemm_part(const IgemmArgs& args, std::int64_t tap, std::int64_t taps, std::int64_t k,
                std::int64_t depth) {
  IgemmArgs part = args;
  const bool last = tap + taps >= args.taps && k + depth >= args.depth;
  part.taps = tap + taps < args.taps ? taps : args.taps - tap;
  part.depth = k + depth < args.depth ? depth : args.depth - k;
  part.a += tap * args.a_tap_stride;
  part.a_offset += k;
  part.b_first += tap * args.depth + k;
  if (tap > 0 || k > 0) part.epilogue.accumulate = true;
  if (!last) {
    part.epilogue.bias = nullptr;
    part.epilogue.residual = nullptr;
    part.epilogue.activation = {};
  }
  igemm_block<V, kRows, kVectors>(part);
}

/// Splits the sum into parts of about 512 terms, whose panels stay in the caches. How depends on
/// taps and depth alone, so that results do not depend on the split of rows and columns.
template <class V, int kRows, int kVectors>
void igemm_run(const IgemmArgs& args) {
  constexpr std::int64_t kTerms = 512;
  if (args.taps * args.depth < kTerms * 3 / 2) {
    igemm_block<V, kRows, kVectors>(args);
    return;
  }
  const std::int64_t tap_parts = (args.taps * args.depth + kTerms / 2) / kTerms;
  const std::int64_t taps = (args.taps + tap_parts - 1) / tap_parts;
  const std::int64_t depth_parts = taps > 1 ? 1 : (args.depth + kTerms / 2) / kTerms;
  const std::int64_t depth = depth_parts < 2 ? args.depth
                                             : (args.depth + depth_parts - 1) / depth_parts;
  for (std::int64_t tap = 0; tap < args.taps; tap += taps) {
    for (std::int64_t k = 0; k < args.depth; k += depth) {
      igemm_part<V, kRows, kVectors>(args, tap, taps, k, depth);
    }
  }
}

}  // namespace sardonyx::kernels
