#pragma once

#include <cstdint>

#include "kernels/igemm.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Packing of panels as templates over a vector type V. Only kernel sources include this.
namespace sardonyx::kernels {

/// Copies rows whose columns are next to each other.
template <class V, FloatFormat kFormat>
void pack_rows(const IgemmSource& source, std::int64_t column, std::int64_t columns,
               std::int64_t width, float* packed) {
  for (std::int64_t tap = 0; tap < source.taps; ++tap) {
    for (std::int64_t k = 0; k < source.depth; ++k, packed += width) {
      const std::int64_t row = tap * source.tap_stride + k * source.depth_stride + column;
      for (std::int64_t j = 0; j < width; j += V::kLanes) {
        V::store(packed + j, columns - j >= V::kLanes
                                 ? V::template load_as<kFormat>(source.b, row + j)
                                 : V::template load_as_n<kFormat>(source.b, row + j, columns - j));
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

/// Columns whose terms are next to each other, in the panel's order or (OIHW weights) with the taps
/// innermost: term s of a column goes to row s, or to row (s % taps) * depth + s / taps.
template <class V, FloatFormat kFormat>
void pack_columns(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                  std::int64_t width, float* packed) {
  const bool permuted = source.taps > 1 && source.tap_stride == 1;
  const auto row = [&](std::int64_t s) {
    return packed + width * (permuted ? s % source.taps * source.depth + s / source.taps : s);
  };
  const std::int64_t terms = source.taps * source.depth;
  for (std::int64_t s0 = 0; s0 < terms; s0 += 8) {
    const std::int64_t rows = terms - s0 < 8 ? terms - s0 : 8;
    float* to[8];
    for (std::int64_t s = 0; s < rows; ++s) to[s] = row(s0 + s);
    for (std::int64_t j = 0; j < width; j += 8) {
      const std::int64_t from = (column + j) * source.column_stride + s0;
      if (rows == 8 && columns - j >= 8) {
        __m256 block[8];
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) {
          block[i] = load_eight<V, kFormat>(source.b, from + i * source.column_stride);
        }
        transpose_8x8<V>(block);
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) _mm256_storeu_ps(to[i] + j, block[i]);
        continue;
      }
      for (std::int64_t s = 0; s < rows; ++s) {
        for (std::int64_t i = 0; i < 8; ++i) {
          to[s][j + i] = i < columns - j ? load_one<V, kFormat>(
                                               source.b, from + i * source.column_stride + s)
                                         : 0;
        }
      }
    }
  }
}

#endif

template <class V, FloatFormat kFormat>
void pack_panel(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                float* packed) {
  const std::int64_t width = (columns + V::kLanes - 1) / V::kLanes * V::kLanes;
  if (source.column_stride == 1) {
    pack_rows<V, kFormat>(source, column, columns, width, packed);
    return;
  }
#if defined(__AVX2__)
  const bool in_order = source.depth_stride == 1 &&
                        (source.taps == 1 || source.tap_stride == source.depth);
  const bool taps_inside = source.tap_stride == 1 && source.depth_stride == source.taps;
  if (in_order || taps_inside) {
    pack_columns<V, kFormat>(source, column, columns, width, packed);
    return;
  }
#endif
  pack_strided<V, kFormat>(source, column, columns, width, packed);
}

template <class V>
void igemm_pack_panel(const IgemmSource& source, std::int64_t column, std::int64_t columns,
                      float* packed) {
  switch (source.format) {
    case FloatFormat::F32:
      return pack_panel<V, FloatFormat::F32>(source, column, columns, packed);
    case FloatFormat::F16:
      return pack_panel<V, FloatFormat::F16>(source, column, columns, packed);
    case FloatFormat::BF16:
      return pack_panel<V, FloatFormat::BF16>(source, column, columns, packed);
  }
}

}  // namespace sardonyx::kernels
