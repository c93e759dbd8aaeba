#include "kernels/int8_gemm.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "kernels/int8_gemm_impl.h"
#include "kernels/simd_generic.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const Int8GemmTable kInt8Gemm;
}
namespace avx512 {
extern const Int8GemmTable kInt8Gemm;
}
#endif

namespace {

struct Simd {
  using F32 = generic::F32;
  using I32 = generic::I32;
};

struct Plain {
  using Ints = generic::I32::Reg;
  using Sum = Ints;
  struct A {
    Ints bytes[4];
  };
  using B = A;
  static constexpr int kLanes = 4;
  template <int kVectors>
  using Rows = Int8RowKernels<Plain, kVectors, 1, 2, 3, 4>;

  static Sum zero() { return Sum{}; }
  static A load_a(std::uint32_t word) {
    const auto byte = [&](int i) {
      return generic::I32::set(static_cast<std::int32_t>(word >> (8 * i) & 0xffU));
    };
    return {{byte(0), byte(1), byte(2), byte(3)}};
  }
  static B load_b(const std::byte* b) {
    Ints words;
    std::memcpy(&words, b, sizeof(words));
    return {{words << 24 >> 24, words << 16 >> 24, words << 8 >> 24, words >> 24}};
  }
  static Sum dot(Sum sum, const A& a, const B& b) {
    for (int i = 0; i < 4; ++i) {
      sum = generic::I32::add(sum, generic::I32::mul(a.bytes[i], b.bytes[i]));
    }
    return sum;
  }
  static void store(std::int32_t* to, Sum sum) { generic::I32::store(to, sum); }
};

void seal(std::byte* panel, std::int64_t width, std::int64_t steps) {
  int8_column_sums<Plain>(panel, width, steps);
}

void row_sums(const Int8GemmArgs& args, std::int32_t* sums) {
  for (std::int64_t row = 0; row < args.rows; ++row) {
    const std::uint8_t* a = args.a + row * args.a_stride;
    std::uint32_t sum = 0;
    for (std::int64_t k = 0; k < args.depth; ++k) sum += a[k];
    sums[row] = static_cast<std::int32_t>(sum);
  }
}

constexpr Int8GemmTable kGeneric = {Isa::Generic, 4,       8, 4, int8_run<Simd, Plain, Plain>,
                                    seal,         row_sums};

constexpr std::int64_t kHeaderBytes = sizeof(Int8PanelHeader);

std::int64_t quads_of(std::int64_t depth) { return (depth + 3) / 4; }

// Four rows next to each other in k, `columns` columns next to each other in memory.
void interleave_rows(const std::uint8_t* const (&rows)[4], std::int64_t columns, std::uint8_t flip,
                     std::uint8_t* to) {
  std::int64_t j = 0;
#if defined(__SSE2__)
  const __m128i flips = _mm_set1_epi8(static_cast<char>(flip));
  const auto load = [&](int i) {
    const auto* from = reinterpret_cast<const __m128i*>(rows[i] + j);
    return _mm_xor_si128(_mm_loadu_si128(from), flips);
  };
  for (; j + 16 <= columns; j += 16) {
    const __m128i r[4] = {load(0), load(1), load(2), load(3)};
    const __m128i pairs[4] = {_mm_unpacklo_epi8(r[0], r[1]), _mm_unpacklo_epi8(r[2], r[3]),
                              _mm_unpackhi_epi8(r[0], r[1]), _mm_unpackhi_epi8(r[2], r[3])};
    auto* out = reinterpret_cast<__m128i*>(to + 4 * j);
    _mm_storeu_si128(out, _mm_unpacklo_epi16(pairs[0], pairs[1]));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(pairs[0], pairs[1]));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(pairs[2], pairs[3]));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(pairs[2], pairs[3]));
  }
#endif
  for (; j < columns; ++j) {
    for (int i = 0; i < 4; ++i) to[4 * j + i] = rows[i][j] ^ flip;
  }
}

// Four columns, whose steps of the depth are next to each other in memory, for four quads.
void interleave_columns(const std::uint8_t* from, std::int64_t stride, std::uint32_t flips,
                        std::uint8_t* to, std::int64_t width_bytes) {
#if defined(__SSE2__)
  const __m128i flip = _mm_set1_epi32(static_cast<int>(flips));
  const auto load = [&](int i) {
    const auto* column = reinterpret_cast<const __m128i*>(from + i * stride);
    return _mm_xor_si128(_mm_loadu_si128(column), flip);
  };
  const __m128i c[4] = {load(0), load(1), load(2), load(3)};
  const __m128i low[2] = {_mm_unpacklo_epi32(c[0], c[1]), _mm_unpacklo_epi32(c[2], c[3])};
  const __m128i high[2] = {_mm_unpackhi_epi32(c[0], c[1]), _mm_unpackhi_epi32(c[2], c[3])};
  const auto store = [&](int quad, __m128i words) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + quad * width_bytes), words);
  };
  store(0, _mm_unpacklo_epi64(low[0], low[1]));
  store(1, _mm_unpackhi_epi64(low[0], low[1]));
  store(2, _mm_unpacklo_epi64(high[0], high[1]));
  store(3, _mm_unpackhi_epi64(high[0], high[1]));
#else
  for (int quad = 0; quad < 4; ++quad) {
    for (int i = 0; i < 4; ++i) {
      std::uint32_t word;
      std::memcpy(&word, from + i * stride + 4 * quad, 4);
      word ^= flips;
      std::memcpy(to + quad * width_bytes + 4 * i, &word, 4);
    }
  }
#endif
}

// Columns whose steps of the depth are next to each other in memory: the quads that are whole.
// Returns the steps done.
std::int64_t pack_by_columns(const Int8Source& source, const std::uint8_t* b, std::int64_t columns,
                             std::int64_t width, std::uint32_t flips, std::uint8_t* to) {
  const std::int64_t steps = source.depth / 4 * 4;
  std::int64_t fast = 0;
  for (; fast + 16 <= steps; fast += 16) {
    for (std::int64_t j = 0; j + 4 <= columns; j += 4) {
      interleave_columns(b + j * source.column_stride + fast, source.column_stride, flips,
                         to + fast * width + 4 * j, width * 4);
    }
  }
  for (std::int64_t j = 0; j < columns; ++j) {
    for (std::int64_t k = j < columns / 4 * 4 ? fast : 0; k < steps; k += 4) {
      std::uint32_t word;
      std::memcpy(&word, b + j * source.column_stride + k, 4);
      word ^= flips;
      std::memcpy(to + k * width + 4 * j, &word, 4);
    }
  }
  return steps;
}

void pack_panel(const Int8Source& source, std::int64_t column, std::int64_t columns,
                std::int64_t width, std::uint8_t* to) {
  const auto* b = static_cast<const std::uint8_t*>(source.b) + column * source.column_stride;
  const std::uint8_t flip = source.b_signed ? 0 : 0x80;
  if (columns < width) std::memset(to, 0, quads_of(source.depth) * width * 4);
  std::int64_t k = 0;
  if (source.depth_stride == 1) {
    k = pack_by_columns(source, b, columns, width, flip * 0x01010101U, to);
  } else if (source.column_stride == 1) {
    const std::int64_t step = source.depth_stride;
    for (; k + 4 <= source.depth; k += 4) {
      const std::uint8_t* from = b + k * step;
      // Rows to come: their pages are not what the processor guesses.
      for (int i = 16; i < 20; ++i) __builtin_prefetch(from + i * step);
      interleave_rows({from, from + step, from + 2 * step, from + 3 * step}, columns, flip,
                      to + k * width);
    }
  }
  for (; k < source.depth; k += 4) {
    const std::int64_t rows = std::min<std::int64_t>(4, source.depth - k);
    std::uint8_t* quad = to + k * width;
    if (rows < 4) std::memset(quad, 0, width * 4);
    for (std::int64_t j = 0; j < columns; ++j) {
      const std::uint8_t* element = b + j * source.column_stride + k * source.depth_stride;
      for (std::int64_t i = 0; i < rows; ++i) {
        quad[4 * j + i] = element[i * source.depth_stride] ^ flip;
      }
    }
  }
}

constexpr std::int64_t kRowBlock = 192;     // rows whose sums are on the stack
constexpr std::int64_t kColumnBlock = 128;  // columns that are packed at a time

// Rows of a signed A that are copied to the scratch at a time.
std::int64_t shifted_rows(const Int8MatrixArgs& args) {
  const std::int64_t rows = 256 * 1024 / std::max<std::int64_t>(args.k, 1);
  return std::min({args.m, kRowBlock, std::max<std::int64_t>(rows, 12)});
}

std::int64_t a_scratch_bytes(const Int8MatrixArgs& args) {
  return args.a_signed ? (shifted_rows(args) * args.k + 63) / 64 * 64 : 0;
}

// At most kRowBlock rows of an unsigned A by packed B.
void run_packed(const Int8MatrixArgs& args, const std::byte* packed, Isa isa) {
  const Int8GemmTable& table = int8_gemm_table(isa);
  std::int32_t sums[kRowBlock];
  Int8GemmArgs block;
  block.rows = args.m;
  block.columns = args.n;
  block.depth = args.k;
  block.a = static_cast<const std::uint8_t*>(args.a);
  block.a_stride = args.a_stride;
  block.b = packed;
  block.c = args.c;
  block.c_stride = args.c_stride;
  block.epilogue = args.epilogue;
  block.epilogue.row_sums = nullptr;
  if (int8_needs_row_sums(args.b_signed, args.epilogue.b_zeros, args.n)) {
    table.row_sums(block, sums);
    block.epilogue.row_sums = sums;
  }
  table.run(block);
}

void run_rows(const Int8MatrixArgs& args, const std::byte* packed, std::byte* a_scratch, Isa isa) {
  const std::int64_t step = args.a_signed ? shifted_rows(args) : kRowBlock;
  std::int32_t zeros[kRowBlock];
  for (std::int64_t row = 0; row < args.m; row += step) {
    Int8MatrixArgs part = int8_gemm_part(args, row, std::min(step, args.m - row), 0, args.n, isa);
    if (args.a_signed) {
      for (std::int64_t i = 0; i < part.m; ++i) {
        int8_shift_sign(static_cast<const std::byte*>(part.a) + i * args.a_stride,
                        a_scratch + i * args.k, args.k);
        if (part.epilogue.a_zeros != nullptr) zeros[i] = part.epilogue.a_zeros[i] + 128;
      }
      if (part.epilogue.a_zeros != nullptr) part.epilogue.a_zeros = zeros;
      part.epilogue.a_zero += 128;
      part.a = a_scratch;
      part.a_stride = args.k;
    }
    run_packed(part, packed, isa);
  }
}

Int8Source source_of(const Int8MatrixArgs& args) {
  Int8Source source;
  source.b = args.b;
  source.b_signed = args.b_signed;
  source.columns = args.n;
  source.depth = args.k;
  source.column_stride = args.b_transposed ? args.b_stride : 1;
  source.depth_stride = args.b_transposed ? 1 : args.b_stride;
  return source;
}

}  // namespace

const Int8GemmTable& int8_gemm_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kInt8Gemm;
  if (isa == Isa::Avx2) return avx2::kInt8Gemm;
#endif
  return kGeneric;
}

std::int64_t int8_panel_offset(const Int8GemmTable& table, std::int64_t panel, std::int64_t depth) {
  return panel * (kHeaderBytes + quads_of(depth) * table.tile_columns * 4);
}

std::int64_t int8_packed_bytes(const Int8GemmTable& table, std::int64_t columns,
                               std::int64_t depth) {
  const std::int64_t panels = (columns + table.tile_columns - 1) / table.tile_columns;
  const std::int64_t widths = (columns + table.lanes - 1) / table.lanes * table.lanes;
  return (panels * kHeaderBytes + quads_of(depth) * widths * 4 + 63) / 64 * 64;
}

void int8_pack(const Int8GemmTable& table, const Int8Source& source, std::int64_t first,
               std::int64_t last, std::byte* packed) {
  const std::int64_t steps = quads_of(source.depth);
  for (std::int64_t panel = first; panel < last; ++panel) {
    const std::int64_t column = panel * table.tile_columns;
    const auto columns = std::min<std::int64_t>(table.tile_columns, source.columns - column);
    const std::int64_t width = (columns + table.lanes - 1) / table.lanes * table.lanes;
    auto* header = new (packed) Int8PanelHeader();
    header->b_shift = source.b_signed ? 0 : 128;
    pack_panel(source, column, columns, width,
               reinterpret_cast<std::uint8_t*>(packed) + kHeaderBytes);
    table.seal(packed, width, steps);
    packed += kHeaderBytes + steps * width * 4;
  }
}

bool int8_needs_row_sums(bool b_signed, const std::int32_t* b_zeros, std::int64_t columns) {
  if (b_zeros == nullptr) return !b_signed;
  const std::int32_t neutral = b_signed ? 0 : 128;
  return std::any_of(b_zeros, b_zeros + columns, [&](std::int32_t z) { return z != neutral; });
}

void int8_shift_sign(const void* from, void* to, std::int64_t count) {
  const auto* source = static_cast<const std::uint8_t*>(from);
  auto* target = static_cast<std::uint8_t*>(to);
  // Sixteen at a time: the compiler leaves the plain loop at one.
  using Bytes [[gnu::vector_size(16)]] = std::uint8_t;
  std::int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    Bytes bytes;
    std::memcpy(&bytes, source + i, sizeof bytes);
    bytes ^= 0x80;
    std::memcpy(target + i, &bytes, sizeof bytes);
  }
  for (; i < count; ++i) target[i] = source[i] ^ 0x80;
}

std::size_t int8_gemm_scratch_bytes(const Int8MatrixArgs& args, Isa isa) {
  std::int64_t bytes = a_scratch_bytes(args);
  if (args.packed_b == nullptr) {
    bytes += int8_packed_bytes(int8_gemm_table(isa), std::min(args.n, kColumnBlock), args.k);
  }
  return static_cast<std::size_t>(bytes);
}

void int8_gemm(const Int8MatrixArgs& args, void* scratch, Isa isa) {
  auto* a_scratch = static_cast<std::byte*>(scratch);
  if (args.packed_b != nullptr) return run_rows(args, args.packed_b, a_scratch, isa);
  const Int8GemmTable& table = int8_gemm_table(isa);
  std::byte* b_scratch = a_scratch + a_scratch_bytes(args);
  for (std::int64_t column = 0; column < args.n; column += kColumnBlock) {
    const std::int64_t columns = std::min(kColumnBlock, args.n - column);
    const Int8MatrixArgs part = int8_gemm_part(args, 0, args.m, column, columns, isa);
    const std::int64_t panels = (columns + table.tile_columns - 1) / table.tile_columns;
    int8_pack(table, source_of(part), 0, panels, b_scratch);
    run_rows(part, b_scratch, a_scratch, isa);
  }
}

Int8MatrixArgs int8_gemm_part(const Int8MatrixArgs& args, std::int64_t row, std::int64_t rows,
                              std::int64_t column, std::int64_t columns, Isa isa) {
  Int8MatrixArgs part = args;
  part.m = rows;
  part.n = columns;
  part.a = static_cast<const std::byte*>(args.a) + row * args.a_stride;
  if (args.packed_b != nullptr) {
    const Int8GemmTable& table = int8_gemm_table(isa);
    part.packed_b += int8_panel_offset(table, column / table.tile_columns, args.k);
  } else {
    const std::int64_t skip = column * (args.b_transposed ? args.b_stride : 1);
    part.b = static_cast<const std::byte*>(args.b) + skip;
  }
  Int8Epilogue& e = part.epilogue;
  const bool wide = e.output == Int8Output::S32 || e.output == Int8Output::F32;
  part.c = static_cast<std::byte*>(args.c) + (row * args.c_stride + column) * (wide ? 4 : 1);
  if (e.a_zeros != nullptr) e.a_zeros += row;
  if (e.row_scale != nullptr) e.row_scale += row;
  if (e.b_zeros != nullptr) e.b_zeros += column;
  if (e.bias != nullptr) e.bias += column;
  if (e.scale != nullptr && e.scale_per_column) e.scale += column;
  if (e.float_bias != nullptr) e.float_bias += column;
  return part;
}

}  // namespace sardonyx::kernels
