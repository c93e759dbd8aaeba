#pragma once

#include <cstdint>

#include "kernels/nbits_gemm.h"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

// Block-quantized products as templates over S, which has the vector types F32 and I32 of an
// instruction set. Only kernel sources include this.
namespace sardonyx::kernels {

template <class S>
struct NbitsKernels {
  using F32 = typename S::F32;
  using I32 = typename S::I32;
  using Reg = typename F32::Reg;
  static constexpr int kLanes = F32::kLanes;
  static constexpr std::int64_t kStretch = 128;  // blocks whose scales are on the stack

  static std::int64_t blocks_of(const NbitsArgs& args) {
    return (args.k + args.block - 1) / args.block;
  }

  static Reg load_scales(FloatFormat format, const void* from, std::int64_t at, std::int64_t n) {
    switch (format) {
      case FloatFormat::F16: return F32::template load_as_n<FloatFormat::F16>(from, at, n);
      case FloatFormat::BF16: return F32::template load_as_n<FloatFormat::BF16>(from, at, n);
      default: return F32::template load_as_n<FloatFormat::F32>(from, at, n);
    }
  }

  /// Scales and zero points (minus `shift`) of `count` blocks of a column; zeros past the end.
  static void parameters(const NbitsArgs& args, std::int64_t column, std::int64_t first,
                         std::int64_t count, float shift, float* scales, float* zeros) {
    const std::int64_t blocks = blocks_of(args);
    const std::int64_t at = column * blocks + first;
    for (std::int64_t b = 0; b < count; b += kLanes) {
      F32::store(scales + b, load_scales(args.scale_format, args.scales, at + b, count - b));
    }
    if (args.zero_floats != nullptr) {
      for (std::int64_t b = 0; b < count; b += kLanes) {
        const Reg z = load_scales(args.scale_format, args.zero_floats, at + b, count - b);
        F32::store(zeros + b, F32::sub(z, F32::set(shift)));
      }
    } else if (args.zeros != nullptr) {
      const std::uint8_t* packed = args.zeros + column * ((blocks * args.bits + 7) / 8);
      const unsigned mask = (1U << args.bits) - 1U;
      for (std::int64_t b = 0; b < count; ++b) {
        const std::int64_t bit = (first + b) * args.bits;
        const unsigned zero = static_cast<unsigned>(packed[bit / 8]) >> (bit % 8) & mask;
        zeros[b] = static_cast<float>(zero) - shift;
      }
      for (std::int64_t b = count; b % kLanes != 0; ++b) zeros[b] = 0;
    } else {
      const float zero = static_cast<float>(1 << (args.bits - 1)) - shift;
      for (std::int64_t b = 0; b < count; b += kLanes) F32::store(zeros + b, F32::set(zero));
    }
  }

  /// A stretch of kLanes bytes holds kLanes * planes elements, of which element e is in byte
  /// e / planes: A is rearranged so that the elements of a plane are beside each other.
  static void prepare(const NbitsArgs& args, const NbitsRows& rows) {
    const std::int64_t planes = 8 / args.bits;
    const std::int64_t padded = blocks_of(args) * args.block;
    for (std::int64_t row = 0; row < args.m; ++row) {
      float* to = rows.a + row * padded;
      float* sums = rows.sums + row * rows.sum_stride;
      for (std::int64_t b = 0; b < rows.sum_stride; ++b) sums[b] = 0;
      for (std::int64_t e = 0; e < padded; ++e) {
        const float value = e < args.k ? args.a[row * args.a_stride + e] : 0;
        const std::int64_t stretch = e / (kLanes * planes) * (kLanes * planes);
        const std::int64_t inside = e - stretch;
        to[stretch + inside % planes * kLanes + inside / planes] = value;
        sums[e / args.block] += value;
      }
    }
  }

  /// The sums of a * q of one block, for kRows rows.
  template <int kBits, int kRows>
  static void block_sums(const std::uint8_t* q, std::int64_t bytes, const float* a,
                         std::int64_t a_stride, Reg (&sums)[kRows]) {
    constexpr int kPlanes = 8 / kBits;
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) sums[i] = F32::set(0);
    for (std::int64_t byte = 0; byte < bytes; byte += kLanes) {
      const auto packed = I32::template load_bytes<false>(q + byte, kLanes);
#pragma GCC unroll 4
      for (int plane = 0; plane < kPlanes; ++plane) {
        const Reg x = I32::to_float(
            kBits == 8 ? packed : I32::field(packed, plane * kBits, (1 << kBits) - 1));
        const float* from = a + (byte * kPlanes + plane * kLanes);
#pragma GCC unroll 4
        for (int i = 0; i < kRows; ++i) {
          sums[i] = F32::fma(x, F32::load(from + i * a_stride), sums[i]);
        }
      }
    }
  }

  template <int kBits, int kRows>
  static void few_rows(const NbitsArgs& args, const NbitsRows& rows, std::int64_t row) {
    const std::int64_t blocks = blocks_of(args);
    const std::int64_t padded = blocks * args.block;
    const std::int64_t bytes = args.block * kBits / 8;
    const float* a = rows.a + row * padded;
    const float* a_sums = rows.sums + row * rows.sum_stride;
    for (std::int64_t column = 0; column < args.n; ++column) {
      Reg sums[kRows], zero_sums[kRows], part[kRows];
      for (int i = 0; i < kRows; ++i) sums[i] = zero_sums[i] = F32::set(0);
      const std::uint8_t* q = args.b + column * blocks * bytes;
      for (std::int64_t first = 0; first < blocks; first += kStretch) {
        const std::int64_t count = blocks - first < kStretch ? blocks - first : kStretch;
        alignas(64) float scales[kStretch], zeros[kStretch];
        parameters(args, column, first, count, 0, scales, zeros);
        for (std::int64_t b = 0; b < count; b += kLanes) {
          const Reg z = F32::mul(F32::load(scales + b), F32::load(zeros + b));
          for (int i = 0; i < kRows; ++i) {
            const Reg s = F32::load(a_sums + i * rows.sum_stride + first + b);
            zero_sums[i] = F32::fma(z, s, zero_sums[i]);
          }
        }
        for (std::int64_t b = 0; b < count; ++b, q += bytes) {
          block_sums<kBits, kRows>(q, bytes, a + (first + b) * args.block, padded, part);
          const Reg scale = F32::set(scales[b]);
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i) sums[i] = F32::fma(part[i], scale, sums[i]);
        }
      }
      for (int i = 0; i < kRows; ++i) {
        args.c[(row + i) * args.c_stride + column] = F32::sum(F32::sub(sums[i], zero_sums[i]));
      }
    }
  }

  template <int kBits>
  static void few_of(const NbitsArgs& args, const NbitsRows& rows) {
    std::int64_t row = 0;
    for (; row + 4 <= args.m; row += 4) few_rows<kBits, 4>(args, rows, row);
    switch (args.m - row) {
      case 3: return few_rows<kBits, 3>(args, rows, row);
      case 2: return few_rows<kBits, 2>(args, rows, row);
      case 1: return few_rows<kBits, 1>(args, rows, row);
      default: return;
    }
  }

  static void few(const NbitsArgs& args, const NbitsRows& rows) {
    if (args.bits == 2) return few_of<2>(args, rows);
    if (args.bits == 4) return few_of<4>(args, rows);
    few_of<8>(args, rows);
  }

  /// The bytes [first, first + bytes) of a block as integers, one a byte.
  static void unpack(const std::uint8_t* q, std::int64_t bytes, int bits, std::uint8_t* to) {
    if (bits == 8) {
      for (std::int64_t i = 0; i < bytes; ++i) to[i] = q[i];
    } else if (bits == 4) {
      std::int64_t i = 0;
#if defined(__AVX2__)
      for (; i + 16 <= bytes; i += 16) {
        const __m128i both = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q + i));
        const __m128i low = _mm_and_si128(both, _mm_set1_epi8(15));
        const __m128i high = _mm_and_si128(_mm_srli_epi16(both, 4), _mm_set1_epi8(15));
        auto* out = reinterpret_cast<__m128i*>(to + 2 * i);
        _mm_storeu_si128(out, _mm_unpacklo_epi8(low, high));
        _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(low, high));
      }
#endif
      for (; i < bytes; ++i) {
        to[2 * i] = q[i] & 15U;
        to[2 * i + 1] = static_cast<std::uint8_t>(q[i] >> 4);
      }
    } else {
      for (std::int64_t i = 0; i < bytes; ++i) {
        for (int p = 0; p < 4; ++p) {
          to[4 * i + p] = static_cast<std::uint8_t>(q[i] >> (2 * p) & 3U);
        }
      }
    }
  }

  static void dequantize(const NbitsArgs& args, std::int64_t column, std::int64_t columns,
                         std::int64_t first_k, std::int64_t depth, float* y,
                         std::int64_t y_stride) {
    const std::int64_t blocks = blocks_of(args);
    const std::int64_t bytes = args.block * args.bits / 8;
    for (std::int64_t j = 0; j < columns; ++j, y += y_stride) {
      for (std::int64_t k = 0; k < depth;) {
        const std::int64_t first = (first_k + k) / args.block;
        const std::int64_t left = (depth - k + args.block - 1) / args.block;
        const std::int64_t count = left < kStretch ? left : kStretch;
        alignas(64) float scales[kStretch], zeros[kStretch];
        parameters(args, column + j, first, count, 0, scales, zeros);
        for (std::int64_t b = 0; b < count; ++b, k += args.block) {
          alignas(64) std::uint8_t q[256];
          unpack(args.b + ((column + j) * blocks + first + b) * bytes, bytes, args.bits, q);
          const Reg scale = F32::set(scales[b]);
          const Reg zero = F32::set(zeros[b]);
          const std::int64_t size = depth - k < args.block ? depth - k : args.block;
          std::int64_t e = 0;
          for (; e + kLanes <= size; e += kLanes) {
            const auto x = I32::to_float(I32::template load_bytes<false>(q + e, kLanes));
            F32::store(y + k + e, F32::mul(F32::sub(x, zero), scale));
          }
          if (e < size) {
            const auto x = I32::to_float(I32::template load_bytes<false>(q + e, kLanes));
            F32::store_n(y + k + e, F32::mul(F32::sub(x, zero), scale), size - e);
          }
        }
      }
    }
  }
};

#if defined(__AVX2__)

/// Integer sums per block, 32 elements at a time, for blocks of 32 elements or more of 4 or 8 bits.
/// P::dot adds products of four u8 by four s8 per lane; it may take q - P::kShift in place of q.
template <class S, class P>
struct NbitsInt8Kernels : NbitsKernels<S> {
  using Base = NbitsKernels<S>;
  using F32 = typename S::F32;
  using Base::kLanes;
  using Base::kStretch;

  /// A rounded to int8 by block. Of P::kChunk elements those of even index come first if they are
  /// 4 bits. Rows are padded to whole chunks.
  static void prepare(const NbitsArgs& args, const NbitsRows& rows) {
    constexpr std::int64_t kChunk = P::kChunk;
    const std::int64_t blocks = Base::blocks_of(args);
    for (std::int64_t row = 0; row < args.m; ++row) {
      const float* a = args.a + row * args.a_stride;
      std::int8_t* to = rows.a8 + row * rows.a8_stride;
      for (std::int64_t e = blocks * args.block; e < rows.a8_stride; ++e) to[e] = 0;
      for (std::int64_t b = 0; b < rows.sum_stride; ++b) {
        rows.sums[row * rows.sum_stride + b] = rows.a8_scales[row * rows.sum_stride + b] = 0;
      }
      for (std::int64_t b = 0; b < blocks; ++b) {
        const std::int64_t first = b * args.block;
        const std::int64_t left = args.k - first;
        const std::int64_t count = left < args.block ? left : args.block;
        float most = 0;
        for (std::int64_t e = 0; e < count; ++e) {
          const float magnitude = a[first + e] < 0 ? -a[first + e] : a[first + e];
          if (magnitude > most) most = magnitude;
        }
        const float inverse = most > 0 ? 127 / most : 0;
        std::int32_t sum = 0;
        for (std::int64_t e = 0; e < args.block; ++e) {
          const float value = e < count ? a[first + e] * inverse : 0;
          // What int8 cannot hold (a NaN, an infinity) becomes 0.
          const auto rounded = static_cast<std::int8_t>(_mm_cvtss_si32(_mm_set_ss(value)));
          std::int64_t at = first + e;
          if (args.bits == 4) {
            at = at / kChunk * kChunk + at % 2 * (kChunk / 2) + at % kChunk / 2;
          }
          to[at] = rounded;
          sum += rounded;
        }
        rows.a8_scales[row * rows.sum_stride + b] = most / 127;
        rows.sums[row * rows.sum_stride + b] = most / 127 * static_cast<float>(sum);
      }
    }
  }

  template <int kBits>
  static __m256i load_q(const std::uint8_t* q) {
    if constexpr (kBits == 8) {
      return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(q));
    } else {
      const __m128i packed = _mm_loadu_si128(reinterpret_cast<const __m128i*>(q));
      const __m256i both =
          _mm256_inserti128_si256(_mm256_castsi128_si256(packed), _mm_srli_epi16(packed, 4), 1);
      return _mm256_and_si256(both, _mm256_set1_epi8(15));
    }
  }

  /// Scales of a column by those of the rows; and what its zero points take from the sums.
  template <int kBits, int kRows>
  static void scale_products(const NbitsArgs& args, const NbitsRows& rows, std::int64_t row,
                             std::int64_t column, std::int64_t first, std::int64_t count,
                             float (&products)[kRows][kStretch],
                             typename F32::Reg (&zero_sums)[kRows]) {
    alignas(64) float scales[kStretch], zeros[kStretch];
    Base::parameters(args, column, first, count, kBits == 8 ? P::kShift : 0, scales, zeros);
    for (std::int64_t b = 0; b < count; b += kLanes) {
      const auto scale = F32::load(scales + b);
      const auto zero = F32::mul(scale, F32::load(zeros + b));
      for (int i = 0; i < kRows; ++i) {
        const std::int64_t at = (row + i) * rows.sum_stride + first + b;
        F32::store(products[i] + b, F32::mul(scale, F32::load(rows.a8_scales + at)));
        zero_sums[i] = F32::fma(zero, F32::load(rows.sums + at), zero_sums[i]);
      }
    }
  }

  template <int kBits, int kRows>
  static void few_rows(const NbitsArgs& args, const NbitsRows& rows, std::int64_t row) {
    constexpr std::int64_t kChunkBytes = 4 * kBits;
    const std::int64_t blocks = Base::blocks_of(args);
    const std::int64_t chunks = args.block / 32;
    const std::uint8_t* q = args.b;
    for (std::int64_t column = 0; column < args.n; ++column) {
      __m256 sums[kRows];
      typename F32::Reg zero_sums[kRows];
      for (int i = 0; i < kRows; ++i) sums[i] = _mm256_setzero_ps(), zero_sums[i] = F32::set(0);
      for (std::int64_t first = 0; first < blocks; first += kStretch) {
        const std::int64_t count = blocks - first < kStretch ? blocks - first : kStretch;
        alignas(64) float products[kRows][kStretch];
        scale_products<kBits, kRows>(args, rows, row, column, first, count, products, zero_sums);
        const std::int8_t* a = rows.a8 + row * rows.a8_stride + first * args.block;
        for (std::int64_t b = 0; b < count; ++b) {
          __m256i dots[kRows];
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i) dots[i] = _mm256_setzero_si256();
          for (std::int64_t chunk = 0; chunk < chunks; ++chunk, a += 32, q += kChunkBytes) {
            const __m256i qs = load_q<kBits>(q);
#pragma GCC unroll 4
            for (int i = 0; i < kRows; ++i) {
              const auto* from = reinterpret_cast<const __m256i*>(a + i * rows.a8_stride);
              dots[i] = P::template dot<kBits>(dots[i], qs, _mm256_loadu_si256(from));
            }
          }
#pragma GCC unroll 4
          for (int i = 0; i < kRows; ++i) {
            const __m256 product = _mm256_broadcast_ss(&products[i][b]);
            sums[i] = _mm256_fmadd_ps(_mm256_cvtepi32_ps(dots[i]), product, sums[i]);
          }
        }
      }
      for (int i = 0; i < kRows; ++i) {
        args.c[(row + i) * args.c_stride + column] = F32::sum(F32::sub(sums[i], zero_sums[i]));
      }
    }
  }
};

/// Kernels::few_rows<bits, count> for rows in groups of at most four.
template <class Kernels, int kBits>
void nbits_by_rows(const NbitsArgs& args, const NbitsRows& rows) {
  std::int64_t row = 0;
  for (; row + 4 <= args.m; row += 4) Kernels::template few_rows<kBits, 4>(args, rows, row);
  switch (args.m - row) {
    case 3: return Kernels::template few_rows<kBits, 3>(args, rows, row);
    case 2: return Kernels::template few_rows<kBits, 2>(args, rows, row);
    case 1: return Kernels::template few_rows<kBits, 1>(args, rows, row);
    default: return;
  }
}

template <class Kernels>
void nbits_few_int8(const NbitsArgs& args, const NbitsRows& rows) {
  args.bits == 4 ? nbits_by_rows<Kernels, 4>(args, rows) : nbits_by_rows<Kernels, 8>(args, rows);
}

#endif

}  // namespace sardonyx::kernels
