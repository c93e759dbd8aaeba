#include <immintrin.h>

#include "kernels/convert_impl.h"

namespace sardonyx::kernels::avx2 {

namespace {

struct Lanes {
  static constexpr std::int64_t kLanes = 8;

  static __m128i load(const std::uint16_t* x) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(x));
  }
  static void store(std::uint16_t* y, __m128i bits) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(y), bits);
  }

  static void widen_f16(const std::uint16_t* x, float* y) {
    _mm256_storeu_ps(y, _mm256_cvtph_ps(load(x)));
  }
  static void widen_bf16(const std::uint16_t* x, float* y) {
    const __m256i bits = _mm256_slli_epi32(_mm256_cvtepu16_epi32(load(x)), 16);
    _mm256_storeu_ps(y, _mm256_castsi256_ps(bits));
  }
  static void narrow_f16(const float* x, std::uint16_t* y) {
    store(y, _mm256_cvtps_ph(_mm256_loadu_ps(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
  static void narrow_bf16(const float* x, std::uint16_t* y) {
    const __m256 value = _mm256_loadu_ps(x);
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i sum = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7fff)), odd);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i chosen = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), quiet, is_nan);
    store(y, _mm_packus_epi32(_mm256_castsi256_si128(chosen), _mm256_extracti128_si256(chosen, 1)));
  }
};

}  // namespace

extern const ConvertTable kConvert;
const ConvertTable kConvert = Converter<Lanes>::table(Isa::Avx2);

}  // namespace sardonyx::kernels::avx2
