#include <immintrin.h>

#include "kernels/nbits_gemm_impl.h"

#include "kernels/avx512/simd.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Simd {
  using F32 = avx512::F32;
  using I32 = avx512::I32;
};

struct Multiply {
  static constexpr float kShift = 0;

  template <int kBits>
  static __m256i dot(__m256i sum, __m256i q, __m256i a) {
    return _mm256_dpbusd_epi32(sum, q, a);
  }
};

using Floats = NbitsKernels<Simd>;
using Ints = NbitsInt8Kernels<Simd, Multiply>;

}  // namespace

extern const NbitsTable kNbits;
const NbitsTable kNbits = {Isa::Avx512,   16,        32, Floats::prepare, Floats::few,
                           Ints::prepare, Ints::few, Floats::dequantize};

}  // namespace sardonyx::kernels::avx512
