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

/// Rows [row, row + rows) of A, each padded to `stride` bytes.
void copy_rows(const Int8GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t stride,
               std::uint8_t* to) {
  for (std::int64_t i = 0; i < rows; ++i, to += stride) {
    const std::uint8_t* from = args.a + (row + i) * args.a_stride;
    for (std::int64_t k = 0; k < args.depth; k += kStepBytes) {
      const std::int64_t n = args.depth - k;
      const __mmask64 mask = n >= kStepBytes ? ~0ULL : (1ULL << n) - 1;
      _mm512_storeu_si512(to + k, _mm512_maskz_loadu_epi8(mask, from + k));
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

/// At most 32 rows of A, in tiles of 16 that may be read in full, under the panel of a column.
void run_tile(const Int8GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
              const std::uint8_t* a, std::int64_t a_stride) {
  alignas(64) std::int32_t sums[32 * 32];
  const std::int64_t quads = (args.depth + 3) / 4;
  const std::int64_t bytes = static_cast<std::int64_t>(sizeof(Int8PanelHeader)) + quads * 128;
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

/// The first rows whose tiles can be read where they are: tiles reach beyond the depth to whole
/// steps, and the last one beyond the rows.
std::int64_t rows_in_place(const Int8GemmArgs& args, std::int64_t row_bytes) {
  const std::int64_t readable = (args.rows - 1) * args.a_stride + args.depth + args.a_slack;
  const std::int64_t reach = 15 * args.a_stride + row_bytes;
  if (reach > readable) return 0;
  const std::int64_t rows = ((readable - reach) / (16 * args.a_stride) + 1) * 16;
  return rows < args.rows ? rows : args.rows;
}

}  // namespace

std::int64_t int8_amx_run(const Int8GemmArgs& args) {
  alignas(64) std::uint8_t buffer[kBufferBytes];
  const std::int64_t stride = (args.depth + kStepBytes - 1) / kStepBytes * kStepBytes;
  if (args.rows < 12 || args.columns == 0 || args.depth == 0 || !amx_int8_usable()) return 0;
  const std::int64_t in_place = rows_in_place(args, stride);
  // The rows after them by way of a copy, as far as there is room for tiles.
  const std::int64_t room = kBufferBytes / stride >= 32 ? 32 : kBufferBytes / stride / 16 * 16;
  const std::int64_t rest = args.rows - in_place;
  const std::int64_t copied = rest < room ? rest : room;
  if (in_place + copied == 0) return 0;
  copy_rows(args, in_place, copied, stride, buffer);
  const TileConfig config;
  load_config(config);
  // A panel stays in the first cache under a group of rows that stays in the second.
  const std::int64_t group = (1 + 256 * 1024 / (args.depth * 32)) * 32;
  for (std::int64_t first = 0; first == 0 || first < in_place; first += group) {
    const std::int64_t last = first + group < in_place ? first + group : in_place;
    for (std::int64_t column = 0; column < args.columns; column += 32) {
      for (std::int64_t row = first; row < last; row += 32) {
        const std::int64_t rows = last - row < 32 ? last - row : 32;
        run_tile(args, row, rows, column, args.a + row * args.a_stride, args.a_stride);
      }
      if (last == in_place && copied > 0) {
        run_tile(args, in_place, copied, column, buffer, stride);
      }
    }
  }
  release_tiles();
  return in_place + copied;
}

}  // namespace sardonyx::kernels::avx512
