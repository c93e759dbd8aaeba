#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/float_format.h"

namespace sardonyx::kernels::avx512 {

/// Sixteen floats.
struct F32 {
  using Reg = __m512;
  using Mask = __mmask16;
  static constexpr int kLanes = 16;

  static Reg set(float x) { return _mm512_set1_ps(x); }
  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static void store(float* p, Reg r) { _mm512_storeu_ps(p, r); }
  static Reg load_n(const float* p, std::int64_t n) { return _mm512_maskz_loadu_ps(first(n), p); }
  static void store_n(float* p, Reg r, std::int64_t n) { _mm512_mask_storeu_ps(p, first(n), r); }
  // Elements of b from `index` on as float32.
  template <FloatFormat kFormat>
  static Reg load_as(const void* b, std::int64_t index) {
    if constexpr (kFormat == FloatFormat::F32) {
      return load(static_cast<const float*>(b) + index);
    } else {
      const auto* bits = static_cast<const std::uint16_t*>(b) + index;
      return widen<kFormat>(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(bits)));
    }
  }
  // The same for the first n, the rest zero.
  template <FloatFormat kFormat>
  static Reg load_as_n(const void* b, std::int64_t index, std::int64_t n) {
    if constexpr (kFormat == FloatFormat::F32) {
      return load_n(static_cast<const float*>(b) + index, n);
    } else {
      const auto* bits = static_cast<const std::uint16_t*>(b) + index;
      return widen<kFormat>(_mm256_maskz_loadu_epi16(first(n), bits));
    }
  }
  template <FloatFormat kFormat>
  static Reg widen(__m256i bits) {
    if constexpr (kFormat == FloatFormat::F16) return _mm512_cvtph_ps(bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static float sum(Reg a) { return _mm512_reduce_add_ps(a); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  // b if either is a NaN.
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Mask less(Reg a, Reg b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
  static Mask is_nan(Reg a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
  static Reg select(Mask m, Reg yes, Reg no) { return _mm512_mask_blend_ps(m, no, yes); }
  static Reg abs(Reg a) { return _mm512_andnot_ps(_mm512_set1_ps(-0.0F), a); }
  static Reg with_sign_of(Reg magnitude, Reg sign) {
    return _mm512_or_ps(magnitude, _mm512_and_ps(_mm512_set1_ps(-0.0F), sign));
  }
  static Reg round(Reg a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  // 2^a for an integer a in -126..127; infinity for 128.
  static Reg pow2(Reg a) {
    const __m512i n = _mm512_add_epi32(_mm512_cvtps_epi32(a), _mm512_set1_epi32(127));
    return _mm512_castsi512_ps(_mm512_slli_epi32(n, 23));
  }
  // A mask of the first n lanes.
  static __mmask16 first(std::int64_t n) {
    const int count = n < 0 ? 0 : (n > 16 ? 16 : static_cast<int>(n));
    return static_cast<__mmask16>((1U << count) - 1U);
  }
};

/// Sixteen int32, beside F32.
struct I32 {
  using Reg = __m512i;
  static constexpr int kLanes = 16;

  static Reg set(std::int32_t x) { return _mm512_set1_epi32(x); }
  static Reg load(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  static Reg load_n(const std::int32_t* p, std::int64_t n) {
    return _mm512_maskz_loadu_epi32(F32::first(n), p);
  }
  static void store(std::int32_t* p, Reg r) { _mm512_storeu_si512(p, r); }
  static void store_n(std::int32_t* p, Reg r, std::int64_t n) {
    _mm512_mask_storeu_epi32(p, F32::first(n), r);
  }
  static Reg add(Reg a, Reg b) { return _mm512_add_epi32(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_epi32(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mullo_epi32(a, b); }
  static F32::Reg to_float(Reg a) { return _mm512_cvtepi32_ps(a); }
  static Reg round(F32::Reg a) { return _mm512_cvtps_epi32(a); }
  // The first n bytes at p, the rest zero.
  template <bool kSigned>
  static Reg load_bytes(const void* p, std::int64_t n) {
    const __m128i bytes = _mm_maskz_loadu_epi8(F32::first(n), p);
    return kSigned ? _mm512_cvtepi8_epi32(bytes) : _mm512_cvtepu8_epi32(bytes);
  }
  // Bits [shift, shift + bits) of elements that are not negative.
  static Reg field(Reg a, int shift, std::int32_t mask) {
    return _mm512_and_si512(_mm512_srli_epi32(a, static_cast<unsigned>(shift)),
                            _mm512_set1_epi32(mask));
  }
  // The low bytes of the first n.
  static void store_bytes(void* p, Reg r, std::int64_t n) {
    const __m128i bytes = _mm512_cvtepi32_epi8(r);
    if (n >= 16) {
      _mm_storeu_si128(static_cast<__m128i*>(p), bytes);
    } else {
      _mm_mask_storeu_epi8(p, F32::first(n), bytes);
    }
  }
};

}  // namespace sardonyx::kernels::avx512
