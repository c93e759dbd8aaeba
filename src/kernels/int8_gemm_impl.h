#pragma once

#include <cstdint>
#include <cstring>

#include "kernels/activation_simd.h"
#include "kernels/int8_gemm.h"

// The int8 kernel as templates. S has the vector types F32 and I32 of an instruction set; P is one
// way to multiply: load_a (4 bytes of a row), load_b (4 bytes of I32::kLanes columns) and dot.
// Only kernel sources include this.
namespace sardonyx::kernels {

struct Int8Tile {
  std::int64_t row;
  std::int64_t column;
  std::int64_t columns;
  const std::byte* panel;
  std::int64_t panel_bytes;
};

constexpr std::int64_t kInt8TileFloats = 12 * 64;

/// sums[kRows][kVectors * lanes] = products of a tile whose vectors lie in panels of kInPanel.
template <class P, int kRows, int kVectors, int kInPanel = kVectors>
struct Int8Kernel {
  static constexpr int kLanes = P::kLanes;

  template <class Load>
  static void step(const std::byte* b, std::int64_t panel, typename P::Sum (&acc)[kRows][kVectors],
                   Load&& load) {
    typename P::B bs[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      bs[v] = P::load_b(b + v / kInPanel * panel + v % kInPanel * kLanes * 4);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const typename P::A as = P::load_a(load(i));
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = P::dot(acc[i][v], as, bs[v]);
    }
  }

  static void run(const Int8GemmArgs& args, const Int8Tile& tile, std::int32_t* sums) {
    typename P::Sum acc[kRows][kVectors];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = P::zero();
    }
    const std::byte* b = tile.panel + sizeof(Int8PanelHeader);
    const std::int64_t quads = args.depth / 4;
    const std::uint8_t* rows[kRows];
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) rows[i] = args.a + (tile.row + i) * args.a_stride;
    for (std::int64_t k = 0; k < quads; ++k, b += kInPanel * kLanes * 4) {
      step(b, tile.panel_bytes, acc, [&](int i) {
        std::uint32_t word;
        __builtin_memcpy(&word, rows[i] + 4 * k, 4);
        return word;
      });
    }
    if (const auto rest = static_cast<unsigned>(args.depth % 4); rest != 0) {
      step(b, tile.panel_bytes, acc, [&](int i) {
        std::uint32_t word = 0;
        for (unsigned r = 0; r < rest; ++r) {
          word |= static_cast<std::uint32_t>(rows[i][4 * quads + r]) << (8 * r);
        }
        return word;
      });
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) P::store(sums + (i * kVectors + v) * kLanes, acc[i][v]);
    }
  }
};

/// The sums of a tile to C by the epilogue.
template <class S>
struct Int8Finish {
  using F32 = typename S::F32;
  using I32 = typename S::I32;
  using Ints = typename I32::Reg;

  // The exact sum, with zero points and bias, of `n` columns of a panel from `lane` on.
  static Ints exact(const Int8Epilogue& e, const Int8PanelHeader& header, Ints sum,
                    std::int64_t row, std::int64_t column, std::int64_t lane, std::int64_t n,
                    std::int64_t terms) {
    const std::int32_t a_zero = e.a_zeros == nullptr ? e.a_zero : e.a_zeros[row];
    if (a_zero != 0) {
      sum = I32::sub(sum, I32::mul(I32::set(a_zero), I32::load(header.column_sums + lane)));
    }
    if (e.row_sums != nullptr) {
      Ints b_zero = I32::set(-header.b_shift);
      if (e.b_zeros != nullptr) b_zero = I32::add(b_zero, I32::load_n(e.b_zeros + column, n));
      const auto factor = static_cast<std::uint32_t>(terms) * static_cast<std::uint32_t>(a_zero) -
                          static_cast<std::uint32_t>(e.row_sums[row]);
      sum = I32::add(sum, I32::mul(b_zero, I32::set(static_cast<std::int32_t>(factor))));
    }
    if (e.bias != nullptr) sum = I32::add(sum, I32::load_n(e.bias + column, n));
    return sum;
  }

  // What the sums of some columns of a panel are turned into C with.
  struct Columns {
    typename F32::Reg scale;
    typename F32::Reg low;
    typename F32::Reg high;
    typename F32::Reg bias;
    Ints zero;
    std::int64_t count;
  };

  static Columns columns_of(const Int8Epilogue& e, std::int64_t column, std::int64_t n) {
    Columns c;
    c.count = n;
    if (e.output == Int8Output::S32) return c;
    c.scale = e.scale_per_column ? F32::load_n(e.scale + column, n) : F32::set(*e.scale);
    c.bias = e.float_bias != nullptr ? F32::load_n(e.float_bias + column, n) : F32::set(0);
    const bool is_signed = e.output == Int8Output::S8;
    const std::int32_t least = is_signed ? -128 : 0;
    const std::int32_t most = is_signed ? 127 : 255;
    c.low = F32::set(static_cast<float>((e.low > least ? e.low : least) - e.y_zero));
    c.high = F32::set(static_cast<float>((e.high < most ? e.high : most) - e.y_zero));
    c.zero = I32::set(e.y_zero);
    return c;
  }

  template <Int8Output kOutput>
  static void store(const Int8GemmArgs& args, const Columns& c, Ints sum, std::int64_t row,
                    std::int64_t column) {
    const Int8Epilogue& e = args.epilogue;
    const std::int64_t at = row * args.c_stride + column;
    if constexpr (kOutput == Int8Output::S32) {
      I32::store_n(static_cast<std::int32_t*>(args.c) + at, sum, c.count);
      return;
    }
    typename F32::Reg x = F32::mul(I32::to_float(sum), c.scale);
    if constexpr (kOutput == Int8Output::F32) {
      if (e.row_scale != nullptr) x = F32::mul(x, F32::set(e.row_scale[row]));
      if (e.float_bias != nullptr) x = F32::add(x, c.bias);
      F32::store_n(static_cast<float*>(args.c) + at, x, c.count);
      return;
    }
    x = F32::min(c.high, F32::max(c.low, x));
    I32::store_bytes(static_cast<std::uint8_t*>(args.c) + at, I32::add(I32::round(x), c.zero),
                     c.count);
  }

  // All rows of a vector of columns. What does not depend on the row is computed once.
  template <Int8Output kOutput>
  static void run_column(const Int8GemmArgs& args, const Int8Tile& tile, std::int64_t rows,
                         std::int64_t width, std::int64_t lane, std::int64_t j,
                         const Int8PanelHeader& header, const std::int32_t* sums) {
    const Int8Epilogue& e = args.epilogue;
    const std::int64_t column = tile.column + j;
    const Columns c = columns_of(e, column, tile.columns - j);
    if (e.a_zeros == nullptr && e.row_sums == nullptr) {
      Ints offset = e.bias != nullptr ? I32::load_n(e.bias + column, c.count) : I32::set(0);
      offset = I32::sub(offset, I32::mul(I32::set(e.a_zero), I32::load(header.column_sums + lane)));
      for (std::int64_t i = 0; i < rows; ++i) {
        const Ints sum = I32::add(I32::load(sums + i * width + j), offset);
        store<kOutput>(args, c, sum, tile.row + i, column);
      }
      return;
    }
    for (std::int64_t i = 0; i < rows; ++i) {
      const Ints sum = exact(e, header, I32::load(sums + i * width + j), tile.row + i, column, lane,
                             c.count, args.depth);
      store<kOutput>(args, c, sum, tile.row + i, column);
    }
  }

  static void run(const Int8GemmArgs& args, const Int8Tile& tile, std::int64_t rows,
                  std::int64_t width, std::int64_t panel_width, const std::int32_t* sums) {
    const Int8Epilogue& e = args.epilogue;
    for (std::int64_t j = 0; j < tile.columns; j += I32::kLanes) {
      const auto& header = *reinterpret_cast<const Int8PanelHeader*>(
          tile.panel + j / panel_width * tile.panel_bytes);
      const std::int64_t lane = j % panel_width;
      switch (e.output) {
        case Int8Output::S32:
          run_column<Int8Output::S32>(args, tile, rows, width, lane, j, header, sums);
          break;
        case Int8Output::F32:
          run_column<Int8Output::F32>(args, tile, rows, width, lane, j, header, sums);
          break;
        default: run_column<Int8Output::U8>(args, tile, rows, width, lane, j, header, sums);
      }
    }
    if (e.output == Int8Output::F32 && e.activation.kind != ActivationKind::None) {
      activate_block<F32>(e.activation,
                          static_cast<float*>(args.c) + tile.row * args.c_stride + tile.column,
                          args.c_stride, rows, tile.columns);
    }
  }
};

template <class P, int kVectors, int... kRow>
struct Int8RowKernels {
  using Function = void (*)(const Int8GemmArgs&, const Int8Tile&, std::int32_t*);
  static constexpr std::int64_t kMost = sizeof...(kRow);
  static constexpr Function kByRows[] = {Int8Kernel<P, kRow, kVectors>::run...};
};

/// One panel under all rows.
template <class S, class P, int kVectors>
void int8_panel(const Int8GemmArgs& args, Int8Tile tile) {
  using Kernels = typename P::template Rows<kVectors>;
  alignas(64) std::int32_t sums[kInt8TileFloats];
  constexpr std::int64_t kWidth = kVectors * P::kLanes;
  const std::int64_t tiles = (args.rows + Kernels::kMost - 1) / Kernels::kMost;
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t rows = args.rows / tiles + (i < args.rows % tiles ? 1 : 0);
    Kernels::kByRows[rows - 1](args, tile, sums);
    Int8Finish<S>::run(args, tile, rows, kWidth, kWidth, sums);
    tile.row += rows;
  }
}

/// One row under four panels at a time, as a sum waits for its last term.
template <class S, class P>
void int8_four_panels(const Int8GemmArgs& args, const Int8Tile& tile) {
  alignas(64) std::int32_t sums[kInt8TileFloats];
  Int8Kernel<P, 1, 8, 2>::run(args, tile, sums);
  Int8Finish<S>::run(args, tile, 1, 8 * P::kLanes, 2 * P::kLanes, sums);
}

/// Safe multiplies any panel, Fast those that cannot saturate.
template <class S, class Safe, class Fast>
void int8_run(const Int8GemmArgs& args) {
  constexpr std::int64_t kLanes = S::I32::kLanes;
  constexpr std::int64_t kColumns = 2 * kLanes;
  const std::int64_t steps = (args.depth + 3) / 4;
  const std::int64_t bytes =
      static_cast<std::int64_t>(sizeof(Int8PanelHeader)) + steps * kColumns * 4;
  const std::byte* panel = args.b;
  std::int64_t column = 0;
  while (column < args.columns) {
    const std::int64_t left = args.columns - column;
    const auto saturates = [&](std::int64_t i) {
      return reinterpret_cast<const Int8PanelHeader*>(panel + i * bytes)->saturates != 0;
    };
    Int8Tile tile = {0, column, left < kColumns ? left : kColumns, panel, bytes};
    if (args.rows == 1 && left >= 4 * kColumns) {
      tile.columns = 4 * kColumns;
      const bool safe = saturates(0) || saturates(1) || saturates(2) || saturates(3);
      safe ? int8_four_panels<S, Safe>(args, tile) : int8_four_panels<S, Fast>(args, tile);
    } else if (left > kLanes) {
      saturates(0) ? int8_panel<S, Safe, 2>(args, tile) : int8_panel<S, Fast, 2>(args, tile);
    } else {
      saturates(0) ? int8_panel<S, Safe, 1>(args, tile) : int8_panel<S, Fast, 1>(args, tile);
    }
    panel += tile.columns / kColumns * bytes;
    column += tile.columns;
  }
}

/// The part of a product from a row on.
inline Int8GemmArgs int8_rows_from(const Int8GemmArgs& args, std::int64_t row) {
  Int8GemmArgs part = args;
  Int8Epilogue& e = part.epilogue;
  const bool is_wide = e.output == Int8Output::S32 || e.output == Int8Output::F32;
  part.rows -= row;
  part.a += row * args.a_stride;
  part.c = static_cast<std::byte*>(args.c) + row * args.c_stride * (is_wide ? 4 : 1);
  if (e.a_zeros != nullptr) e.a_zeros += row;
  if (e.row_sums != nullptr) e.row_sums += row;
  if (e.row_scale != nullptr) e.row_scale += row;
  return part;
}

/// Column sums by the product itself: ones times the panel.
template <class P, int kVectors>
void int8_sum_columns(const std::byte* b, std::int64_t steps, std::int32_t* sums) {
  const auto ones = P::load_a(0x01010101U);
  typename P::Sum acc[kVectors];
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) acc[v] = P::zero();
  for (std::int64_t k = 0; k < steps; ++k, b += kVectors * P::kLanes * 4) {
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      acc[v] = P::dot(acc[v], ones, P::load_b(b + v * P::kLanes * 4));
    }
  }
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) P::store(sums + v * P::kLanes, acc[v]);
}

/// Sets the column sums of a panel.
template <class P>
void int8_column_sums(std::byte* panel, std::int64_t width, std::int64_t steps) {
  auto* header = reinterpret_cast<Int8PanelHeader*>(panel);
  const std::byte* b = panel + sizeof(Int8PanelHeader);
  if (width > P::kLanes) {
    int8_sum_columns<P, 2>(b, steps, header->column_sums);
  } else {
    int8_sum_columns<P, 1>(b, steps, header->column_sums);
  }
}

}  // namespace sardonyx::kernels
