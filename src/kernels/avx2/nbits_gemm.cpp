#include <immintrin.h>

#include "kernels/nbits_gemm_impl.h"

#include "kernels/avx2/simd.h"

namespace sardonyx::kernels::avx2 {

namespace {

struct Simd {
  using F32 = avx2::F32;
  using I32 = avx2::I32;
};

struct Multiply {
  static constexpr float kShift = 128;
  static constexpr std::int64_t kChunk = 32;

  // Up to 15 by 127 twice fits int16. Bytes up to 255 do not: they are shifted to -128..127, and
  // their magnitudes, up to 128, multiply A with their signs.
  template <int kBits>
  static __m256i dot(__m256i sum, __m256i q, __m256i a) {
    __m256i pairs;
    if constexpr (kBits == 8) {
      const __m256i shifted = _mm256_xor_si256(q, _mm256_set1_epi8(-128));
      pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(shifted), _mm256_sign_epi8(a, shifted));
    } else {
      pairs = _mm256_maddubs_epi16(q, a);
    }
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

using Floats = NbitsKernels<Simd>;
using Ints = NbitsInt8Kernels<Simd, Multiply>;

}  // namespace

extern const NbitsTable kNbits;
const NbitsTable kNbits = {Isa::Avx2,     8,           32,
                           Floats::prepare, Floats::few, Ints::prepare,
                           nbits_few_int8<Ints>, Floats::dequantize};

}  // namespace sardonyx::kernels::avx2
