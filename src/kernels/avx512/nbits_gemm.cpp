#include <immintrin.h>

#include "kernels/avx512/simd.h"
#include "kernels/nbits_gemm_impl.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Simd {
  using F32 = avx512::F32;
  using I32 = avx512::I32;
};

struct Layout {
  static constexpr float kShift = 0;
  static constexpr std::int64_t kChunk = 64;
};

using Floats = NbitsKernels<Simd>;

/// Integer sums per block, 64 elements at a time: of two blocks if they have 32.
struct Ints : NbitsInt8Kernels<Simd, Layout> {
  using Base = NbitsInt8Kernels<Simd, Layout>;
  using Base::kStretch;

  template <int kBits>
  static __m512i load_q(const std::uint8_t* q, std::int64_t bytes) {
    if constexpr (kBits == 8) {
      const __mmask64 mask = bytes >= 64 ? ~0ULL : (1ULL << bytes) - 1;
      return _mm512_maskz_loadu_epi8(mask, q);
    } else {
      const __mmask32 mask = bytes >= 32 ? ~0U : (1U << bytes) - 1;
      const __m256i packed = _mm256_maskz_loadu_epi8(mask, q);
      const __m512i both =
          _mm512_inserti64x4(_mm512_castsi256_si512(packed), _mm256_srli_epi16(packed, 4), 1);
      return _mm512_and_si512(both, _mm512_set1_epi8(15));
    }
  }

  /// Where groups of four elements of two blocks of 4 bits go, so that the blocks take turns.
  static __m512i turns() {
    return _mm512_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15);
  }

  /// As the base does, but for the order of two blocks of 32 in 4 bits.
  static void prepare(const NbitsArgs& args, const NbitsRows& rows) {
    Base::prepare(args, rows);
    if (args.bits != 4 || args.block != 32) return;
    std::int8_t* a = rows.a8;
    for (std::int64_t chunk = 0; chunk < args.m * rows.a8_stride / 64; ++chunk, a += 64) {
      _mm512_storeu_si512(a, _mm512_permutexvar_epi32(turns(), _mm512_loadu_si512(a)));
    }
  }

  /// Two blocks of 32; of 4 bits in turns.
  template <int kBits>
  static __m512i load_pair(const std::uint8_t* q, std::int64_t bytes) {
    if constexpr (kBits == 8) {
      return load_q<8>(q, bytes);
    } else {
      const __mmask32 mask = bytes >= 32 ? ~0U : (1U << bytes) - 1;
      const __m256i packed = _mm256_permutevar8x32_epi32(_mm256_maskz_loadu_epi8(mask, q),
                                                         _mm512_castsi512_si256(turns()));
      const __m512i both =
          _mm512_inserti64x4(_mm512_castsi256_si512(packed), _mm256_srli_epi16(packed, 4), 1);
      return _mm512_and_si512(both, _mm512_set1_epi8(15));
    }
  }

  /// Blocks of 32: the scales of two go to the lanes of the block they belong to.
  template <int kBits, int kRows>
  static void pair(const std::uint8_t* q, std::int64_t bytes, const std::int8_t* a,
                   std::int64_t a_stride, std::int64_t b, const float (&products)[kRows][kStretch],
                   __m512 (&sums)[kRows]) {
    const __m512i halves = _mm512_setr_epi32(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1);
    const __m512i qs = load_pair<kBits>(q, bytes);
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) {
      const __m512i dots =
          _mm512_dpbusd_epi32(_mm512_setzero_si512(), qs, _mm512_loadu_si512(a + i * a_stride));
      double both;
      __builtin_memcpy(&both, &products[i][b], 8);
      __m512 scales = _mm512_castpd_ps(_mm512_set1_pd(both));
      if constexpr (kBits == 8) scales = _mm512_permutexvar_ps(halves, scales);
      sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots), scales, sums[i]);
    }
  }

  /// Two pairs at a time, as a sum waits for its last term.
  template <int kBits, int kRows>
  static void pairs(const std::uint8_t* q, const std::int8_t* a, std::int64_t a_stride,
                    std::int64_t count, const float (&products)[kRows][kStretch],
                    __m512 (&sums)[kRows]) {
    constexpr std::int64_t kBytes = 8 * kBits;
    __m512 others[kRows];
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) others[i] = _mm512_setzero_ps();
    std::int64_t b = 0;
    for (; b + 4 <= count; b += 4, q += 2 * kBytes, a += 128) {
      pair<kBits, kRows>(q, kBytes, a, a_stride, b, products, sums);
      pair<kBits, kRows>(q + kBytes, kBytes, a + 64, a_stride, b + 2, products, others);
    }
    for (; b < count; b += 2, q += kBytes, a += 64) {
      pair<kBits, kRows>(q, (count - b) * kBytes / 2, a, a_stride, b, products, sums);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] = _mm512_add_ps(sums[i], others[i]);
  }

  /// Blocks of 64 or more.
  template <int kBits, int kRows>
  static void singles(const std::uint8_t* q, const std::int8_t* a, std::int64_t a_stride,
                      std::int64_t count, std::int64_t chunks,
                      const float (&products)[kRows][kStretch], __m512 (&sums)[kRows]) {
    constexpr std::int64_t kBytes = 8 * kBits;
    for (std::int64_t b = 0; b < count; ++b) {
      __m512i dots[kRows];
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) dots[i] = _mm512_setzero_si512();
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk, q += kBytes, a += 64) {
        const __m512i qs = load_q<kBits>(q, kBytes);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          dots[i] = _mm512_dpbusd_epi32(dots[i], qs, _mm512_loadu_si512(a + i * a_stride));
        }
      }
#pragma GCC unroll 4
      for (int i = 0; i < kRows; ++i) {
        const __m512 scale = _mm512_set1_ps(products[i][b]);
        sums[i] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(dots[i]), scale, sums[i]);
      }
    }
  }

  template <int kBits, int kRows>
  static void few_rows(const NbitsArgs& args, const NbitsRows& rows, std::int64_t row) {
    const std::int64_t blocks = Base::blocks_of(args);
    const std::int64_t bytes = args.block * kBits / 8;
    for (std::int64_t column = 0; column < args.n; ++column) {
      __m512 sums[kRows], zero_sums[kRows];
      for (int i = 0; i < kRows; ++i) sums[i] = zero_sums[i] = _mm512_setzero_ps();
      for (std::int64_t first = 0; first < blocks; first += kStretch) {
        const std::int64_t count = blocks - first < kStretch ? blocks - first : kStretch;
        alignas(64) float products[kRows][kStretch];
        Base::scale_products<kBits, kRows>(args, rows, row, column, first, count, products,
                                           zero_sums);
        const std::int8_t* a = rows.a8 + row * rows.a8_stride + first * args.block;
        const std::uint8_t* q = args.b + (column * blocks + first) * bytes;
        if (args.block == 32) {
          pairs<kBits, kRows>(q, a, rows.a8_stride, count, products, sums);
        } else {
          singles<kBits, kRows>(q, a, rows.a8_stride, count, args.block / 64, products, sums);
        }
      }
      store_sums<kRows>(args, row, column, sums, zero_sums);
    }
  }

  /// The lanes of each row's sums added up: for all rows at once, as a step costs the same for
  /// four.
  template <int kRows>
  static void store_sums(const NbitsArgs& args, std::int64_t row, std::int64_t column,
                         const __m512 (&sums)[kRows], const __m512 (&zero_sums)[kRows]) {
    __m256 halves[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      if (i >= kRows) {
        halves[i] = halves[0];
        continue;
      }
      const __m512 sum = _mm512_sub_ps(sums[i], zero_sums[i]);
      halves[i] = _mm256_add_ps(_mm512_castps512_ps256(sum), _mm512_extractf32x8_ps(sum, 1));
    }
    const __m256 pairs = _mm256_hadd_ps(halves[0], halves[1]);
    const __m256 fours =
        _mm256_hadd_ps(pairs, kRows > 2 ? _mm256_hadd_ps(halves[2], halves[3]) : pairs);
    alignas(16) float totals[4];
    _mm_store_ps(totals,
                 _mm_add_ps(_mm256_castps256_ps128(fours), _mm256_extractf128_ps(fours, 1)));
    for (int i = 0; i < kRows; ++i) args.c[(row + i) * args.c_stride + column] = totals[i];
  }
};

}  // namespace

extern const NbitsTable kNbits;
const NbitsTable kNbits = {
    Isa::Avx512,       16, 32, Floats::prepare, Floats::few, Ints::prepare, nbits_few_int8<Ints>,
    Floats::dequantize};

}  // namespace sardonyx::kernels::avx512
