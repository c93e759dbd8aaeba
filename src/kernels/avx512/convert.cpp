#include <immintrin.h>

#include "kernels/convert_impl.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Lanes {
  static constexpr std::int64_t kLanes = 16;

  static __m256i load(const std::uint16_t* x) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  }
  static void store(std::uint16_t* y, __m256i bits) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(y), bits);
  }

  static void widen_f16(const std::uint16_t* x, float* y) {
    _mm512_storeu_ps(y, _mm512_cvtph_ps(load(x)));
  }
  static void widen_bf16(const std::uint16_t* x, float* y) {
    const __m512i bits = _mm512_slli_epi32(_mm512_cvtepu16_epi32(load(x)), 16);
    _mm512_storeu_ps(y, _mm512_castsi512_ps(bits));
  }
  static void narrow_f16(const float* x, std::uint16_t* y) {
    store(y, _mm512_cvtps_ph(_mm512_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void narrow_bf16(const float* x, std::uint16_t* y) {
    const __m512 value = _mm512_loadu_ps(x);
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i sum = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), odd);
    const __mmask16 is_nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    const __m512i chosen =
        _mm512_mask_or_epi32(_mm512_srli_epi32(sum, 16), is_nan, upper, _mm512_set1_epi32(0x40));
    store(y, _mm512_cvtepi32_epi16(chosen));
  }
};

}  // namespace

extern const ConvertTable kConvert;
const ConvertTable kConvert = Converter<Lanes>::table(Isa::Avx512);

}  // namespace sardonyx::kernels::avx512
