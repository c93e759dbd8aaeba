#include "kernels/avx2/simd.h"
#include "kernels/int8_gemm_impl.h"

namespace sardonyx::kernels::avx2 {

namespace {

struct Simd {
  using F32 = avx2::F32;
  using I32 = avx2::I32;
};

struct Common {
  using Sum = __m256i;
  static constexpr int kLanes = 8;
  static Sum zero() { return _mm256_setzero_si256(); }
  static __m256i load(const std::byte* b) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(b));
  }
  static void store(std::int32_t* to, Sum sum) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), sum);
  }
};

// Adds two products in int16, which saturates if two adjacent weights exceed 128 in magnitude.
struct Pairs : Common {
  using A = __m256i;
  using B = __m256i;
  template <int kVectors>
  using Rows = Int8RowKernels<Pairs, kVectors, 1, 2, 3, 4, 5, 6>;

  static A load_a(std::uint32_t word) { return _mm256_set1_epi32(static_cast<int>(word)); }
  static B load_b(const std::byte* b) { return load(b); }
  static Sum dot(Sum sum, A a, B b) {
    const __m256i pairs = _mm256_maddubs_epi16(a, b);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
};

// Widens to int16 first: even and odd bytes apart, so that no element moves to another lane.
struct Wide : Common {
  struct A {
    __m256i even, odd;
  };
  using B = A;
  template <int kVectors>
  using Rows = Int8RowKernels<Wide, kVectors, 1, 2, 3, 4>;

  static A load_a(std::uint32_t word) {
    const __m256i bytes = _mm256_set1_epi32(static_cast<int>(word));
    return {_mm256_and_si256(bytes, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(bytes, 8)};
  }
  static B load_b(const std::byte* b) {
    const __m256i bytes = load(b);
    return {_mm256_srai_epi16(_mm256_slli_epi16(bytes, 8), 8), _mm256_srai_epi16(bytes, 8)};
  }
  static Sum dot(Sum sum, const A& a, const B& b) {
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(a.even, b.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(a.odd, b.odd));
  }
};

void seal(std::byte* panel, std::int64_t width, std::int64_t steps) {
  int8_column_sums<Wide>(panel, width, steps);
  const std::byte* b = panel + sizeof(Int8PanelHeader);
  __m256i most = _mm256_setzero_si256();
  for (std::int64_t i = 0; i < steps * width * 4; i += 32) {
    const __m256i magnitudes = _mm256_abs_epi8(Common::load(b + i));
    most = _mm256_max_epi16(most, _mm256_maddubs_epi16(magnitudes, _mm256_set1_epi8(1)));
  }
  const __m256i over = _mm256_cmpgt_epi16(most, _mm256_set1_epi16(128));
  auto* header = reinterpret_cast<Int8PanelHeader*>(panel);
  header->saturates = _mm256_movemask_epi8(over) != 0 ? 1 : 0;
}

std::int32_t sum_bytes(const std::uint8_t* a, std::int64_t count) {
  __m256i sum = _mm256_setzero_si256();
  std::int64_t k = 0;
  for (; k + 32 <= count; k += 32) {
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(a + k));
    sum = _mm256_add_epi64(sum, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
  }
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
  std::int64_t total = _mm_cvtsi128_si64(half) + _mm_extract_epi64(half, 1);
  for (; k < count; ++k) total += a[k];
  return static_cast<std::int32_t>(total);
}

void row_sums(const Int8GemmArgs& args, std::int32_t* sums) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    sums[row] = sum_bytes(args.a + row * args.a_stride, args.depth);
  }
}

}  // namespace

extern const Int8GemmTable kInt8Gemm;
const Int8GemmTable kInt8Gemm = {Isa::Avx2, 6, 16, 8, int8_run<Simd, Wide, Pairs>, seal, row_sums};

}  // namespace sardonyx::kernels::avx2
