#pragma once

#include <cstdint>

#include "kernels/igemm.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Packing of panels as templates over a vector type V. Only kernel sources include this.
namespace sardonyx::kernels {

/// Copies rows whose columns are next to each other: a row of many panels at a time, and fetches
/// rows to come, whose pages the processor does not guess.
template <class V, FloatFormat kFormat>
void pack_rows(const IgemmSource& source, std::int64_t column, std::int64_t columns,
               float* packed) {
  constexpr std::int64_t kTile = 2 * V::kLanes;
  const std::int64_t terms = source.taps * source.depth;
  const std::int64_t ahead = 12 * source.depth_stride * format_bytes(kFormat);
  const std::int64_t full = columns / kTile * kTile;
  const std::int64_t width = columns - full > V::kLanes ? kTile : V::kLanes;
  const auto* bytes = static_cast<const char*>(source.b);
  for (std::int64_t tap = 0, term = 0; tap < source.taps; ++tap) {
    for (std::int64_t k = 0; k < source.depth; ++k, ++term) {
      const std::int64_t row = tap * source.tap_stride + k * source.depth_stride + column;
      float* to = packed + term * kTile;
      for (std::int64_t j = 0; j < full; j += kTile, to += terms * kTile) {
        __builtin_prefetch(bytes + (row + j) * format_bytes(kFormat) + ahead);
        V::store(to, V::template load_as<kFormat>(source.b, row + j));
        if constexpr (V::kLanes >= 16) {
          __builtin_prefetch(bytes + (row + j + V::kLanes) * format_bytes(kFormat) + ahead);
        }
        V::store(to + V::kLanes, V::template load_as<kFormat>(source.b, row + j + V::kLanes));
      }
      if (full == columns) continue;
      to = packed + full * terms + term * width;
      for (std::int64_t j = full; j < full + width; j += V::kLanes, to += V::kLanes) {
        V::store(to, V::template load_as_n<kFormat>(source.b, row + j, columns - j));
      }
    }
  }
}

template <class V, FloatFormat kFormat>
float load_one(const void* b, std::int64_t index) {
  if constexpr (kFormat == FloatFormat::F32) return static_cast<const float*>(b)[index];
  return V::sum(V::template load_as_n<kFormat>(b, index, 1));
}

/// Any strides: column by column within a block of rows that stays in the first cache.
template <class V, FloatFormat kFormat>
void pack_strided(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                  std::int64_t width, float* packed) {
  constexpr std::int64_t kBlock = 64;
  for (std::int64_t tap = 0; tap < source.taps; ++tap) {
    for (std::int64_t k0 = 0; k0 < source.depth; k0 += kBlock) {
      const std::int64_t rows = source.depth - k0 < kBlock ? source.depth - k0 : kBlock;
      for (std::int64_t j = 0; j < width; ++j) {
        std::int64_t from = tap * source.tap_stride + k0 * source.depth_stride +
                            (column + j) * source.column_stride;
        for (std::int64_t k = 0; k < rows; ++k, from += source.depth_stride) {
          packed[k * width + j] = j < columns ? load_one<V, kFormat>(source.b, from) : 0;
        }
      }
      packed += rows * width;
    }
  }
}

#if defined(__AVX2__)

/// Turns eight rows of eight floats into eight columns.
template <class V>
void transpose_8x8(__m256 (&r)[8]) {
  __m256 pairs[8];
#pragma GCC unroll 4
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  __m256 fours[8];
#pragma GCC unroll 2
  for (int i = 0; i < 8; i += 4) {
    fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}

template <class V, FloatFormat kFormat>
__m256 load_eight(const void* b, std::int64_t index) {
  if constexpr (kFormat == FloatFormat::F32) {
    return _mm256_loadu_ps(static_cast<const float*>(b) + index);
  } else {
    const auto* bits = static_cast<const std::uint16_t*>(b) + index;
    const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bits));
    if constexpr (kFormat == FloatFormat::F16) return _mm256_cvtph_ps(half);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
  }
}

/// Eight terms of eight columns, of which `rows` and `columns` exist; to[i] is where term i goes.
template <class V, FloatFormat kFormat>
void pack_8x8(const IgemmSource& source, std::int64_t from, std::int64_t columns,
              std::int64_t rows, float* const (&to)[8]) {
  if (rows == 8 && columns >= 8) {
    __m256 block[8];
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) {
      block[i] = load_eight<V, kFormat>(source.b, from + i * source.column_stride);
    }
    transpose_8x8<V>(block);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to[i], block[i]);
    return;
  }
  for (std::int64_t s = 0; s < rows; ++s) {
    for (std::int64_t i = 0; i < 8; ++i) {
      const std::int64_t index = from + i * source.column_stride + s;
      to[s][i] = i < columns ? load_one<V, kFormat>(source.b, index) : 0;
    }
  }
}

/// Columns whose terms are next to each other, in the panel's order or (OIHW weights) with the taps
/// innermost: term s of a column goes to row s, or to row (s % taps) * depth + s / taps.
/// Eight columns are read at a time, for a stretch that leaves what it writes in the first cache.
template <class V, FloatFormat kFormat>
void pack_columns(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                  std::int64_t width, float* packed) {
  constexpr std::int64_t kStretch = 128;
  const std::int64_t taps = source.tap_stride == 1 ? source.taps : 1;
  const std::int64_t tap_floats = width * source.depth;
  const std::int64_t terms = source.taps * source.depth;
  for (std::int64_t first = 0; first < terms; first += kStretch) {
    const std::int64_t last = first + kStretch < terms ? first + kStretch : terms;
    for (std::int64_t j = 0; j < width; j += 8) {
      std::int64_t tap = first % taps;
      float* row = packed + first / taps * width + j;  // of tap 0
      for (std::int64_t s = first; s < last; s += 8) {
        const std::int64_t rows = last - s < 8 ? last - s : 8;
        float* to[8];
        for (std::int64_t i = 0; i < rows; ++i) {
          to[i] = row + tap * tap_floats;
          if (++tap == taps) tap = 0, row += width;
        }
        const std::int64_t from = (column + j) * source.column_stride + s;
        pack_8x8<V, kFormat>(source, from, columns - j, rows, to);
      }
    }
  }
}

#endif

template <class V, FloatFormat kFormat>
void pack_panels(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                 float* packed) {
  constexpr std::int64_t kTile = 2 * V::kLanes;
  if (source.column_stride == 1) return pack_rows<V, kFormat>(source, column, columns, packed);
  [[maybe_unused]] const bool in_order = source.depth_stride == 1 &&
                        (source.taps == 1 || source.tap_stride == source.depth);
  [[maybe_unused]] const bool taps_inside =
      source.tap_stride == 1 && source.depth_stride == source.taps;
  for (std::int64_t j = 0; j < columns; j += kTile) {
    const std::int64_t left = columns - j < kTile ? columns - j : kTile;
    const std::int64_t width = left > V::kLanes ? kTile : V::kLanes;
#if defined(__AVX2__)
    if (in_order || taps_inside) {
      pack_columns<V, kFormat>(source, column + j, left, width, packed);
      packed += width * source.taps * source.depth;
      continue;
    }
#endif
    pack_strided<V, kFormat>(source, column + j, left, width, packed);
    packed += width * source.taps * source.depth;
  }
}

template <class V>
void igemm_pack_panels(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                      float* packed) {
  switch (source.format) {
    case FloatFormat::F32:
      return pack_panels<V, FloatFormat::F32>(source, column, columns, packed);
    case FloatFormat::F16:
      return pack_panels<V, FloatFormat::F16>(source, column, columns, packed);
    case FloatFormat::BF16:
      return pack_panels<V, FloatFormat::BF16>(source, column, columns, packed);
  }
}

}  // namespace sardonyx::kernels
