#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/float_format.h"

namespace sardonyx::kernels::avx2 {

/// Eight floats.
struct F32 {
  using Reg = __m256;
  using Mask = __m256;
  static constexpr int kLanes = 8;

  static Reg set(float x) { return _mm256_set1_ps(x); }
  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static void store(float* p, Reg r) { _mm256_storeu_ps(p, r); }
  static Reg load_n(const float* p, std::int64_t n) { return _mm256_maskload_ps(p, first(n)); }
  static void store_n(float* p, Reg r, std::int64_t n) { _mm256_maskstore_ps(p, first(n), r); }
  // Elements of b from `index` on as float32.
  template <FloatFormat kFormat>
  static Reg load_as(const void* b, std::int64_t index) {
    if constexpr (kFormat == FloatFormat::F32) {
      return load(static_cast<const float*>(b) + index);
    } else {
      const auto* bits = static_cast<const std::uint16_t*>(b) + index;
      return widen<kFormat>(_mm_loadu_si128(reinterpret_cast<const __m128i*>(bits)));
    }
  }
  // The same for the first n, the rest zero.
  template <FloatFormat kFormat>
  static Reg load_as_n(const void* b, std::int64_t index, std::int64_t n) {
    if constexpr (kFormat == FloatFormat::F32) {
      return load_n(static_cast<const float*>(b) + index, n);
    } else {
      const auto* bits = static_cast<const std::uint16_t*>(b) + index;
      alignas(16) std::uint16_t copy[8] = {};
      for (std::int64_t i = 0; i < 8 && i < n; ++i) copy[i] = bits[i];
      return widen<kFormat>(_mm_load_si128(reinterpret_cast<const __m128i*>(copy)));
    }
  }
  template <FloatFormat kFormat>
  static Reg widen(__m128i bits) {
    if constexpr (kFormat == FloatFormat::F16) return _mm256_cvtph_ps(bits);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static float sum(Reg a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  // b if either is a NaN.
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Mask less(Reg a, Reg b) { return _mm256_cmp_ps(a, b, _CMP_LT_OQ); }
  static Mask is_nan(Reg a) { return _mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
  static Reg select(Mask m, Reg yes, Reg no) { return _mm256_blendv_ps(no, yes, m); }
  static Reg abs(Reg a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0F), a); }
  static Reg with_sign_of(Reg magnitude, Reg sign) {
    return _mm256_or_ps(magnitude, _mm256_and_ps(_mm256_set1_ps(-0.0F), sign));
  }
  static Reg round(Reg a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // 2^a for an integer a in -126..127; infinity for 128.
  static Reg pow2(Reg a) {
    const __m256i n = _mm256_add_epi32(_mm256_cvtps_epi32(a), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(n, 23));
  }
  // A mask of the first n lanes.
  static __m256i first(std::int64_t n) {
    const int count = n < 0 ? 0 : (n > 8 ? 8 : static_cast<int>(n));
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

/// Eight int32, beside F32.
struct I32 {
  using Reg = __m256i;
  static constexpr int kLanes = 8;

  static Reg set(std::int32_t x) { return _mm256_set1_epi32(x); }
  static Reg load(const std::int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Reg load_n(const std::int32_t* p, std::int64_t n) {
    return _mm256_maskload_epi32(p, F32::first(n));
  }
  static void store(std::int32_t* p, Reg r) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), r);
  }
  static void store_n(std::int32_t* p, Reg r, std::int64_t n) {
    _mm256_maskstore_epi32(p, F32::first(n), r);
  }
  static Reg add(Reg a, Reg b) { return _mm256_add_epi32(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_epi32(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mullo_epi32(a, b); }
  static F32::Reg to_float(Reg a) { return _mm256_cvtepi32_ps(a); }
  static Reg round(F32::Reg a) { return _mm256_cvtps_epi32(a); }
  // The first n bytes at p, the rest zero.
  template <bool kSigned>
  static Reg load_bytes(const void* p, std::int64_t n) {
    __m128i bytes;
    if (n >= 8) {
      bytes = _mm_loadl_epi64(static_cast<const __m128i*>(p));
    } else {
      alignas(16) std::uint8_t copy[16] = {};
      for (std::int64_t i = 0; i < n; ++i) copy[i] = static_cast<const std::uint8_t*>(p)[i];
      bytes = _mm_load_si128(reinterpret_cast<const __m128i*>(copy));
    }
    return kSigned ? _mm256_cvtepi8_epi32(bytes) : _mm256_cvtepu8_epi32(bytes);
  }
  // Bits [shift, shift + bits) of elements that are not negative.
  static Reg field(Reg a, int shift, std::int32_t mask) {
    return _mm256_and_si256(_mm256_srli_epi32(a, shift), _mm256_set1_epi32(mask));
  }
  // The low bytes of the first n.
  static void store_bytes(void* p, Reg r, std::int64_t n) {
    const __m256i pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, 0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                                          -1, -1);
    const __m256i fours = _mm256_shuffle_epi8(r, pick);
    const __m128i bytes = _mm_unpacklo_epi32(_mm256_castsi256_si128(fours),
                                             _mm256_extracti128_si256(fours, 1));
    if (n >= 8) {
      _mm_storel_epi64(static_cast<__m128i*>(p), bytes);
      return;
    }
    alignas(16) std::uint8_t copy[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(copy), bytes);
    for (std::int64_t i = 0; i < n; ++i) static_cast<std::uint8_t*>(p)[i] = copy[i];
  }
};

}  // namespace sardonyx::kernels::avx2
