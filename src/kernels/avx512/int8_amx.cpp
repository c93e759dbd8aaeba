#include "kernels/avx512/int8_amx.h"

#include <immintrin.h>

#include "base/cpu_features.h"
#include "kernels/int8_gemm_impl.h"

#include "kernels/avx512/simd.h"

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

/// `rows` rows of packed A under every panel.
template <int kRows>
void run_panels(const Int8GemmArgs& args, std::int64_t row, std::int64_t rows,
                const std::uint8_t* a, std::int64_t a_stride) {
  alignas(64) std::int32_t sums[kRows * 16 * 32];
  const std::int64_t quads = args.taps * ((args.depth + 3) / 4);
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Int8PanelHeader)) + quads * 128;
  const std::byte* panel = args.b;
  for (std::int64_t column = 0; column < args.columns; column += 32, panel += bytes) {
    const std::int64_t left = args.columns - column;
    const std::byte* b = panel + sizeof(Int8PanelHeader);
    const Int8Tile tile = {row, column, left < 32 ? left : 32, panel, bytes};
    if (left > 16) {
      multiply<kRows, 2>(a, a_stride, b, quads, sums);
      Int8Finish<Simd>::run(args, tile, rows, 32, 32, sums);
    } else {
      multiply<kRows, 1>(a, a_stride, b, quads, sums);
      Int8Finish<Simd>::run(args, tile, rows, 16, 16, sums);
    }
  }
}

}  // namespace

bool int8_amx_run(const Int8GemmArgs& args) {
  const std::int64_t bytes = args.taps * ((args.depth + 3) / 4 * 4);
  const std::int64_t stride = (bytes + kStepBytes - 1) / kStepBytes * kStepBytes;
  if (args.rows < 12 || stride == 0 || stride * 16 > kBufferBytes) return false;
  if (!amx_int8_usable()) return false;
  alignas(64) std::uint8_t buffer[kBufferBytes];
  const TileConfig config;
  load_config(config);
  const std::int64_t most = stride * 32 > kBufferBytes ? 16 : 32;
  for (std::int64_t row = 0; row < args.rows; row += most) {
    const std::int64_t rows = args.rows - row < most ? args.rows - row : most;
    const std::int64_t tiles = rows > 16 ? 2 : 1;
    pack_rows(args, row, rows, tiles, stride, buffer);
    if (tiles == 2) {
      run_panels<2>(args, row, rows, buffer, stride);
    } else {
      run_panels<1>(args, row, rows, buffer, stride);
    }
  }
  release_tiles();
  return true;
}

}  // namespace sardonyx::kernels::avx512
