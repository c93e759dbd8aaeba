#include "kernels/avx512/int8_amx.h"

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/avx512/simd.h"
#include "kernels/int8_gemm_impl.h"

namespace sardonyx::kernels::avx512 {

namespace {

struct Simd {
  using F32 = avx512::F32;
  using I32 = avx512::I32;
};

constexpr std::int64_t kBufferBytes = 72 * 1024;  // of A, on the stack
constexpr std::int64_t kStepBytes = 64;           // of a row of A in a tile

// Eight tiles of 16 rows of 64 bytes: sums 0-3, A 4-5, B 6-7.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  std::uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

void load_config(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" ::"m"(config)); }
void release_tiles() { __asm__ volatile("tilerelease" ::: "memory"); }
// The tile instructions' statements do not say that they touch memory.
void memory_barrier() { __asm__ volatile("" ::: "memory"); }

/// Rows of A, tap after tap, each padded to four bytes and the whole to 64; missing rows are zero.
void pack_rows(const Int8GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t tiles,
               std::int64_t stride, std::uint8_t* to) {
  const std::int64_t padded = (args.depth + 3) / 4 * 4;
  for (std::int64_t i = 0; i < tiles * 16; ++i, to += stride) {
    if (i >= rows) {
      __builtin_memset(to, 0, stride);
      continue;
    }
    for (std::int64_t k = args.taps * padded; k < stride; ++k) to[k] = 0;
    for (std::int64_t tap = 0; tap < args.taps; ++tap) {
      const std::uint8_t* from = args.a[tap * args.a_tap_stride + row + i];
      if (from != args.a_padding) from += args.a_offset;
      std::uint8_t* out = to + tap * padded;
      for (std::int64_t k = 0; k < args.depth; k += 64) {
        const std::int64_t n = args.depth - k;
        const __mmask64 mask = n >= 64 ? ~0ULL : (1ULL << n) - 1;
        _mm512_mask_storeu_epi8(out + k, mask, _mm512_maskz_loadu_epi8(mask, from + k));
      }
      for (std::int64_t k = args.depth; k < padded; ++k) out[k] = 0;
    }
  }
  memory_barrier();
}

/// The sums of kRows x kColumns tiles to `sums`, [kRows * 16][kColumns * 16].
template <int kRows, int kColumns>
void multiply(const std::uint8_t* a, std::int64_t a_stride, const std::byte* b, std::int64_t quads,
              std::int32_t* sums) {
  constexpr std::int64_t kRowBytes = kColumns * 64;
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  const auto step = [&](const std::uint8_t* from, const std::byte* panel) {
    _tile_loadd(4, from, a_stride);
    if constexpr (kRows == 2) _tile_loadd(5, from + 16 * a_stride, a_stride);
    _tile_loadd(6, panel, kRowBytes);
    _tile_dpbusd(0, 4, 6);
    if constexpr (kRows == 2) _tile_dpbusd(2, 5, 6);
    if constexpr (kColumns == 2) {
      _tile_loadd(7, panel + 64, kRowBytes);
      _tile_dpbusd(1, 4, 7);
      if constexpr (kRows == 2) _tile_dpbusd(3, 5, 7);
    }
  };
  const std::int64_t steps = quads / 16;
  for (std::int64_t i = 0; i < steps; ++i) step(a + i * 64, b + i * 16 * kRowBytes);
  if (const std::int64_t rest = quads % 16; rest > 0) {
    // A tile has sixteen rows, but the panel ends: the missing ones are zero.
    alignas(64) std::byte last[16 * kRowBytes] = {};
    __builtin_memcpy(last, b + steps * 16 * kRowBytes, rest * kRowBytes);
    memory_barrier();
    step(a + steps * 64, last);
  }
  _tile_stored(0, sums, kRowBytes);
  if constexpr (kColumns == 2) _tile_stored(1, sums + 16, kRowBytes);
  if constexpr (kRows == 2) {
    _tile_stored(2, sums + 16 * kColumns * 16, kRowBytes);
    if constexpr (kColumns == 2) _tile_stored(3, sums + 16 * kColumns * 16 + 16, kRowBytes);
  }
  memory_barrier();
}

std::int64_t panel_bytes(const Int8GemmArgs& args) {
  const std::int64_t quads = args.taps * ((args.depth + 3) / 4);
  return static_cast<std::int64_t>(sizeof(Int8PanelHeader)) + quads * 128;
}

/// At most 32 rows of A, in tiles of 16 that are there in full, under the panel of a column.
void run_tile(const Int8GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
              const std::uint8_t* a, std::int64_t a_stride) {
  alignas(64) std::int32_t sums[32 * 32];
  const std::int64_t quads = args.taps * ((args.depth + 3) / 4);
  const std::int64_t bytes = panel_bytes(args);
  const std::byte* panel = args.b + column / 32 * bytes;
  const std::byte* b = panel + sizeof(Int8PanelHeader);
  const std::int64_t left = args.columns - column;
  const std::int64_t width = left > 16 ? 32 : 16;
  if (left > 16) {
    rows > 16 ? multiply<2, 2>(a, a_stride, b, quads, sums)
              : multiply<1, 2>(a, a_stride, b, quads, sums);
  } else {
    rows > 16 ? multiply<2, 1>(a, a_stride, b, quads, sums)
              : multiply<1, 1>(a, a_stride, b, quads, sums);
  }
  const Int8Tile tile = {row, column, left < width ? left : width, panel, bytes};
  Int8Finish<Simd>::run(args, tile, rows, width, width, sums);
}

/// Rows [row, args.rows) by way of a copy of up to 32 of them.
void run_copied(const Int8GemmArgs& args, std::int64_t row, std::int64_t stride) {
  alignas(64) std::uint8_t buffer[kBufferBytes];
  const std::int64_t most = stride * 32 > kBufferBytes ? 16 : 32;
  for (; row < args.rows; row += most) {
    const std::int64_t rows = args.rows - row < most ? args.rows - row : most;
    pack_rows(args, row, rows, rows > 16 ? 2 : 1, stride, buffer);
    for (std::int64_t column = 0; column < args.columns; column += 32) {
      run_tile(args, row, rows, column, buffer, stride);
    }
  }
}

/// Whole tiles of a dense A, read where they are: a panel stays in the first cache under a group of
/// rows that stays in the second.
void run_dense(const Int8GemmArgs& args, std::int64_t rows, std::int64_t a_stride) {
  const std::int64_t group = (1 + 256 * 1024 / (args.depth * 32)) * 32;
  for (std::int64_t first = 0; first < rows; first += group) {
    const std::int64_t last = first + group < rows ? first + group : rows;
    for (std::int64_t column = 0; column < args.columns; column += 32) {
      for (std::int64_t row = first; row < last; row += 32) {
        run_tile(args, row, last - row < 32 ? 16 : 32, column, args.a[row] + args.a_offset,
                 a_stride);
      }
    }
  }
}

/// The distance of rows that lie evenly in memory and fill whole tiles; 0 if they do not.
std::int64_t dense_stride(const Int8GemmArgs& args) {
  if (args.taps != 1 || args.depth % kStepBytes != 0) return 0;
  const std::int64_t stride = args.a[1] - args.a[0];
  for (std::int64_t row = 0; row < args.rows; ++row) {
    if (args.a[row] == args.a_padding || args.a[row] - args.a[0] != row * stride) return 0;
  }
  return stride;
}

}  // namespace

bool int8_amx_run(const Int8GemmArgs& args) {
  const std::int64_t bytes = args.taps * ((args.depth + 3) / 4 * 4);
  const std::int64_t stride = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  if (args.rows < 12 || args.columns == 0) return false;
  if (stride == 0 || stride * 16 > kBufferBytes) return false;
  if (!amx_int8_usable()) return false;
  const TileConfig config;
  load_config(config);
  std::int64_t row = 0;
  if (const std::int64_t a_stride = dense_stride(args); a_stride > 0) {
    row = args.rows / 16 * 16;
    run_dense(args, row, a_stride);
  }
  run_copied(args, row, stride);
  release_tiles();
  return true;
}

}  // namespace sardonyx::kernels::avx512
