#pragma once

#include <cstdint>

#include "kernels/activation_simd.h"
#include "kernels/gemv.h"

// Kernels for few rows as templates over a vector type V. Only kernel sources include this.
namespace sardonyx::kernels {

/// c[kRows] (+)= a[kRows][depth] * b[depth][kVectors vectors]; the last vector has `tail` floats if
/// kTail.
template <class V, FloatFormat kFormat, int kRows, int kVectors, bool kTail>
void gemv_rows_tile(const GemvArgs& args, std::int64_t row, std::int64_t k, std::int64_t depth,
                    std::int64_t column, std::int64_t last) {
  using Reg = typename V::Reg;
  // Several rows keep the processor from running ahead by itself.
  constexpr std::int64_t kTile = kVectors * V::kLanes;
  const std::int64_t ahead = kRows > 1 && column + 3 * kTile <= last ? 2 * kTile : 0;
  const auto* bytes = static_cast<const char*>(args.b);
  const std::int64_t n = args.columns - column;
  const float* a = args.a + row * args.a_stride + k;
  float* c = args.c + row * args.c_stride + column;
  Reg acc[kRows][kVectors];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const float* from = c + i * args.c_stride + v * V::kLanes;
      acc[i][v] = k == 0 ? V::set(0) : (kTail ? V::load_n(from, n) : V::load(from));
    }
  }
  std::int64_t from = k * args.b_stride + column;
  for (std::int64_t step = 0; step < depth; ++step, from += args.b_stride) {
    Reg bs[kVectors];
#pragma GCC unroll 8
    for (int v = 0; kRows > 1 && v < kVectors; ++v) {
      __builtin_prefetch(bytes + (from + ahead + v * V::kLanes) * format_bytes(kFormat));
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      bs[v] = kTail ? V::template load_as_n<kFormat>(args.b, from, n)
                    : V::template load_as<kFormat>(args.b, from + v * V::kLanes);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const Reg as = V::set(a[i * args.a_stride + step]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) acc[i][v] = V::fma(as, bs[v], acc[i][v]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      float* to = c + i * args.c_stride + v * V::kLanes;
      kTail ? V::store_n(to, acc[i][v], n) : V::store(to, acc[i][v]);
    }
  }
}

/// Vectors of columns that fit the registers beside each other.
template <class V>
constexpr int gemv_vectors(int rows) {
  const int sums = (V::kLanes >= 16 ? 24 : 12) / rows;
  return sums >= 8 ? 8 : (sums >= 4 ? 4 : 2);
}

/// kRows rows, steps [k, k + depth) of the sum, columns [column, last).
template <class V, FloatFormat kFormat, int kRows>
void gemv_rows_strip(const GemvArgs& args, std::int64_t row, std::int64_t k, std::int64_t depth,
                     std::int64_t column, std::int64_t last) {
  constexpr int kVectors = gemv_vectors<V>(kRows);
  for (; column + kVectors * V::kLanes <= last; column += kVectors * V::kLanes) {
    gemv_rows_tile<V, kFormat, kRows, kVectors, false>(args, row, k, depth, column, last);
  }
  for (; column + V::kLanes <= last; column += V::kLanes) {
    gemv_rows_tile<V, kFormat, kRows, 1, false>(args, row, k, depth, column, last);
  }
  if (column < last) gemv_rows_tile<V, kFormat, kRows, 1, true>(args, row, k, depth, column, last);
}

template <class V, FloatFormat kFormat, int... kRow>
struct GemvStrips {
  static constexpr int kMost = sizeof...(kRow);
  static constexpr void (*kByRows[])(const GemvArgs&, std::int64_t, std::int64_t, std::int64_t,
                                     std::int64_t,
                                     std::int64_t) = {gemv_rows_strip<V, kFormat, kRow>...};

  static void run(const GemvArgs& args, std::int64_t k, std::int64_t depth, std::int64_t column,
                  std::int64_t last) {
    const std::int64_t groups = (args.rows + kMost - 1) / kMost;
    std::int64_t row = 0;
    for (std::int64_t group = 0; group < groups; ++group) {
      const std::int64_t rows = args.rows / groups + (group < args.rows % groups ? 1 : 0);
      kByRows[rows - 1](args, row, k, depth, column, last);
      row += rows;
    }
  }
};

/// Sums stay in the first cache while a few rows of B at a time stream by, each read in order.
template <class V, FloatFormat kFormat>
void gemv_rows_as(const GemvArgs& args) {
  constexpr std::int64_t kDepth = 8;
  std::int64_t width = 16384 / (args.rows > 0 ? args.rows : 1);
  width = width < 256 ? 256 : width / 128 * 128;
  for (std::int64_t column = 0; column < args.columns; column += width) {
    const std::int64_t last = column + width < args.columns ? column + width : args.columns;
    std::int64_t k = 0;
    do {
      const std::int64_t depth = args.depth - k < kDepth ? args.depth - k : kDepth;
      if constexpr (V::kLanes >= 16) {
        GemvStrips<V, kFormat, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>::run(args, k, depth, column,
                                                                           last);
      } else {
        GemvStrips<V, kFormat, 1, 2, 3, 4, 5, 6>::run(args, k, depth, column, last);
      }
      k += depth;
    } while (k < args.depth);
  }
}

/// kRows x kColumns dot products.
template <class V, FloatFormat kFormat, int kRows, int kColumns>
void gemv_columns_tile(const GemvArgs& args, std::int64_t row, std::int64_t column) {
  using Reg = typename V::Reg;
  Reg acc[kRows][kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) acc[i][j] = V::set(0);
  }
  const float* a = args.a + row * args.a_stride;
  const std::int64_t b = column * args.b_stride;
  std::int64_t k = 0;
  for (; k + V::kLanes <= args.depth; k += V::kLanes) {
    Reg as[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) as[i] = V::load(a + i * args.a_stride + k);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const Reg bs = V::template load_as<kFormat>(args.b, b + j * args.b_stride + k);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) acc[i][j] = V::fma(as[i], bs, acc[i][j]);
    }
  }
  if (const std::int64_t n = args.depth - k; n > 0) {
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const Reg bs = V::template load_as_n<kFormat>(args.b, b + j * args.b_stride + k, n);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        acc[i][j] = V::fma(V::load_n(a + i * args.a_stride + k, n), bs, acc[i][j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    float* c = args.c + (row + i) * args.c_stride + column;
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) c[j] = V::sum(acc[i][j]);
  }
}

template <class V, FloatFormat kFormat, int kColumns>
void gemv_columns_rows(const GemvArgs& args, std::int64_t column) {
  const std::int64_t groups = (args.rows + 3) / 4;
  std::int64_t row = 0;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::int64_t rows = args.rows / groups + (group < args.rows % groups ? 1 : 0);
    switch (rows) {
      case 1: gemv_columns_tile<V, kFormat, 1, kColumns>(args, row, column); break;
      case 2: gemv_columns_tile<V, kFormat, 2, kColumns>(args, row, column); break;
      case 3: gemv_columns_tile<V, kFormat, 3, kColumns>(args, row, column); break;
      default: gemv_columns_tile<V, kFormat, 4, kColumns>(args, row, column); break;
    }
    row += rows;
  }
}

template <class V, FloatFormat kFormat>
void gemv_columns_as(const GemvArgs& args) {
  // As many sums as registers hold, and enough to hide what an addition takes.
  constexpr int kColumns = V::kLanes >= 16 ? 4 : 2;
  std::int64_t column = 0;
  if (args.rows == 1) {
    for (; column + 8 <= args.columns; column += 8) {
      gemv_columns_tile<V, kFormat, 1, 8>(args, 0, column);
    }
  }
  for (; column + kColumns <= args.columns; column += kColumns) {
    gemv_columns_rows<V, kFormat, kColumns>(args, column);
  }
  for (; column < args.columns; ++column) gemv_columns_rows<V, kFormat, 1>(args, column);
}

template <class V>
void gemv_rows(const GemvArgs& args) {
  switch (args.format) {
    case FloatFormat::F32: return gemv_rows_as<V, FloatFormat::F32>(args);
    case FloatFormat::F16: return gemv_rows_as<V, FloatFormat::F16>(args);
    case FloatFormat::BF16: return gemv_rows_as<V, FloatFormat::BF16>(args);
  }
}

template <class V>
void gemv_columns(const GemvArgs& args) {
  switch (args.format) {
    case FloatFormat::F32: return gemv_columns_as<V, FloatFormat::F32>(args);
    case FloatFormat::F16: return gemv_columns_as<V, FloatFormat::F16>(args);
    case FloatFormat::BF16: return gemv_columns_as<V, FloatFormat::BF16>(args);
  }
}

template <class V>
void gemv_finish(const Epilogue& e, std::int64_t rows, std::int64_t columns, float* c,
                 std::int64_t c_stride) {
  const bool plain = e.alpha == 1 && e.bias == nullptr && e.residual == nullptr;
  for (std::int64_t row = 0; row < rows && !plain; ++row) {
    float* y = c + row * c_stride;
    const float* residual = e.residual == nullptr ? nullptr : e.residual + row * e.residual_stride;
    for (std::int64_t j = 0; j < columns; j += V::kLanes) {
      const std::int64_t n = columns - j;
      typename V::Reg x = V::mul(V::load_n(y + j, n), V::set(e.alpha));
      if (e.bias != nullptr) x = V::add(x, V::load_n(e.bias + j, n));
      if (residual != nullptr) x = V::add(x, V::load_n(residual + j, n));
      V::store_n(y + j, x, n);
    }
  }
  if (e.activation.kind != ActivationKind::None) {
    activate_block<V>(e.activation, c, c_stride, rows, columns);
  }
}

}  // namespace sardonyx::kernels
