#include "kernels/avx512/int8_amx.h"
#include "kernels/avx512/simd.h"
#include "kernels/int8_gemm_impl.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Simd {
  using F32 = avx512::F32;
  using I32 = avx512::I32;
};

// One instruction multiplies four unsigned by four signed bytes and adds, exactly.
struct Vnni {
  using Sum = __m512i;
  using A = __m512i;
  using B = __m512i;
  static constexpr int kLanes = 16;
  template <int kVectors>
  using Rows = Int8RowKernels<Vnni, kVectors, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12>;

  static Sum zero() { return _mm512_setzero_si512(); }
  static A load_a(std::uint32_t word) { return _mm512_set1_epi32(static_cast<int>(word)); }
  static B load_b(const std::byte* b) { return _mm512_loadu_si512(b); }
  static Sum dot(Sum sum, A a, B b) { return _mm512_dpbusd_epi32(sum, a, b); }
  static void store(std::int32_t* to, Sum sum) { _mm512_storeu_si512(to, sum); }
};

void seal(std::byte* panel, std::int64_t width, std::int64_t steps) {
  int8_column_sums<Vnni>(panel, width, steps);
}

void row_sums(const Int8GemmArgs& args, std::int32_t* sums) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::uint8_t* a = args.a + row * args.a_stride;
    __m512i sum = _mm512_setzero_si512();
    for (std::int64_t k = 0; k < args.depth; k += 64) {
      const std::int64_t n = args.depth - k;
      const __mmask64 mask = n >= 64 ? ~0ULL : (1ULL << n) - 1;
      const __m512i bytes = _mm512_maskz_loadu_epi8(mask, a + k);
      sum = _mm512_dpbusd_epi32(sum, bytes, _mm512_set1_epi8(1));
    }
    sums[row] = _mm512_reduce_add_epi32(sum);
  }
}

void run(const Int8GemmArgs& args) {
  const std::int64_t done = int8_amx_run(args);
  if (done == 0) return int8_run<Simd, Vnni, Vnni>(args);
  if (done < args.rows) int8_run<Simd, Vnni, Vnni>(int8_rows_from(args, done));
}

}  // namespace

extern const Int8GemmTable kInt8Gemm;
const Int8GemmTable kInt8Gemm = {Isa::Avx512, 12, 32, 16, run, seal, row_sums};

}  // namespace sardonyx::kernels::avx512
