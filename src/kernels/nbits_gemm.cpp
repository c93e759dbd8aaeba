#include "kernels/nbits_gemm.h"

#include <algorithm>

#include "kernels/gemv.h"
#include "kernels/nbits_gemm_impl.h"
#include "kernels/simd_generic.h"

namespace sardonyx::kernels {

#if defined(__x86_64__)
namespace avx2 {
extern const NbitsTable kNbits;
}
namespace avx512 {
extern const NbitsTable kNbits;
}
#endif

namespace {

struct Simd {
  using F32 = generic::F32;
  using I32 = generic::I32;
};

using Floats = NbitsKernels<Simd>;

constexpr NbitsTable kGeneric = {Isa::Generic, 4,       0,       Floats::prepare,
                                 Floats::few,  nullptr, nullptr, Floats::dequantize};

constexpr std::int64_t kFewRows = 16;       // beyond, widening B costs less (measured)
constexpr std::int64_t kRowBlock = 192;     // rows whose pointers are on the stack
constexpr std::int64_t kColumnBlock = 128;  // columns that are packed at a time
constexpr std::int64_t kDepthPart = 512;    // terms that are packed at a time: whole blocks

std::int64_t round_up(std::int64_t count, std::int64_t unit) {
  return (count + unit - 1) / unit * unit;
}

bool use_int8(const NbitsArgs& args, Isa isa) {
  const std::int64_t least = nbits_table(isa).least_int8_block;
  return args.int8_activations && args.bits != 2 && least > 0 && args.block >= least;
}

// The best table whose vectors a block fills.
const NbitsTable& few_table(const NbitsArgs& args, Isa isa) {
  const std::int64_t bytes = args.block * args.bits / 8;
  if (bytes >= nbits_table(isa).least_block_bytes) return nbits_table(isa);
  if (isa == Isa::Avx512 && bytes >= nbits_table(Isa::Avx2).least_block_bytes) {
    return nbits_table(Isa::Avx2);
  }
  return kGeneric;
}

// Places the parts of the scratch for few rows; returns their bytes.
std::int64_t place_rows(const NbitsArgs& args, Isa isa, std::byte* scratch, NbitsRows& rows) {
  const std::int64_t blocks = (args.k + args.block - 1) / args.block;
  const std::int64_t padded = args.m * blocks * args.block;
  rows.sum_stride = round_up(blocks, 16);
  const std::int64_t sum_bytes = args.m * rows.sum_stride * 4;
  rows.sums = reinterpret_cast<float*>(scratch);
  if (use_int8(args, isa)) {
    rows.a8_scales = reinterpret_cast<float*>(scratch + sum_bytes);
    rows.a8 = reinterpret_cast<std::int8_t*>(scratch + 2 * sum_bytes);
    rows.a8_stride = round_up(blocks * args.block, 64);
    return 2 * sum_bytes + args.m * rows.a8_stride;
  }
  rows.a = reinterpret_cast<float*>(scratch + sum_bytes);
  return sum_bytes + round_up(padded * 4, 64);
}

void run_few(const NbitsArgs& args, std::byte* scratch, Isa isa) {
  NbitsRows rows;
  place_rows(args, isa, scratch, rows);
  if (use_int8(args, isa)) {
    nbits_table(isa).prepare_int8(args, rows);
    nbits_table(isa).few_int8(args, rows);
  } else {
    const NbitsTable& table = few_table(args, isa);
    table.prepare(args, rows);
    table.few(args, rows);
  }
  gemv_table(isa).finish(args.epilogue, args.m, args.n, args.c, args.c_stride);
}

// Steps [k, k + depth) of a block of columns: B is widened and packed, and used for all rows.
void run_part(const NbitsArgs& args, std::int64_t k, std::int64_t depth, float* widened,
              float* packed, Isa isa) {
  const IgemmTable& table = igemm_table(isa);
  for (std::int64_t panel = 0; panel < igemm_panels(table, args.n); ++panel) {
    const std::int64_t column = panel * table.tile_columns;
    const auto columns = std::min<std::int64_t>(table.tile_columns, args.n - column);
    nbits_table(isa).dequantize(args, column, columns, k, depth, widened, kDepthPart);
    igemm_pack(table, {widened, columns, 1, depth, kDepthPart, 1, 0}, 0, 1,
               packed + igemm_panel_offset(table, panel, depth));
  }
  for (std::int64_t row = 0; row < args.m; row += kRowBlock) {
    const float* rows[kRowBlock];
    IgemmArgs block;
    block.rows = std::min(kRowBlock, args.m - row);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      rows[i] = args.a + (row + i) * args.a_stride + k;
    }
    block.columns = args.n;
    block.depth = depth;
    block.a = rows;
    block.b = packed;
    block.b_depth = depth;
    block.c = args.c + row * args.c_stride;
    block.c_stride = args.c_stride;
    block.epilogue.accumulate = k > 0;
    if (k + depth >= args.k) {
      block.epilogue = args.epilogue;
      block.epilogue.accumulate = k > 0;
      if (block.epilogue.residual != nullptr) {
        block.epilogue.residual += row * block.epilogue.residual_stride;
      }
    }
    block.epilogue.alpha = args.epilogue.alpha;
    table.run(block);
  }
}

}  // namespace

const NbitsTable& nbits_table(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::Avx512) return avx512::kNbits;
  if (isa == Isa::Avx2) return avx2::kNbits;
#endif
  return kGeneric;
}

std::size_t nbits_gemm_scratch_bytes(const NbitsArgs& args, Isa isa) {
  if (args.m <= kFewRows) {
    NbitsRows rows;
    return static_cast<std::size_t>(place_rows(args, isa, nullptr, rows));
  }
  const std::int64_t columns = std::min(args.n, kColumnBlock);
  const IgemmTable& table = igemm_table(isa);
  return sizeof(float) * static_cast<std::size_t>(table.tile_columns * kDepthPart +
                                                  igemm_packed_floats(table, columns, kDepthPart));
}

void nbits_gemm(const NbitsArgs& args, void* scratch, Isa isa) {
  if (args.m <= kFewRows) return run_few(args, static_cast<std::byte*>(scratch), isa);
  auto* widened = static_cast<float*>(scratch);
  float* packed = widened + igemm_table(isa).tile_columns * kDepthPart;
  for (std::int64_t column = 0; column < args.n; column += kColumnBlock) {
    const std::int64_t columns = std::min(kColumnBlock, args.n - column);
    const NbitsArgs part = nbits_gemm_part(args, 0, args.m, column, columns);
    std::int64_t k = 0;
    do {
      const std::int64_t depth = std::min(kDepthPart, args.k - k);
      run_part(part, k, depth, widened, packed, isa);
      k += depth;
    } while (k < args.k);
  }
}

NbitsArgs nbits_gemm_part(const NbitsArgs& args, std::int64_t row, std::int64_t rows,
                          std::int64_t column, std::int64_t columns) {
  const std::int64_t blocks = (args.k + args.block - 1) / args.block;
  const auto skip = [&](const void* from, std::int64_t bytes) {
    return from == nullptr ? nullptr : static_cast<const char*>(from) + column * bytes;
  };
  NbitsArgs part = args;
  part.m = rows;
  part.n = columns;
  part.a += row * args.a_stride;
  part.b += column * blocks * args.block * args.bits / 8;
  part.scales = skip(args.scales, blocks * format_bytes(args.scale_format));
  part.zero_floats = skip(args.zero_floats, blocks * format_bytes(args.scale_format));
  if (args.zeros != nullptr) part.zeros += column * ((blocks * args.bits + 7) / 8);
  part.c += row * args.c_stride + column;
  Epilogue& e = part.epilogue;
  if (e.bias != nullptr) e.bias += column;
  if (e.residual != nullptr) e.residual += row * e.residual_stride + column;
  return part;
}

void nbits_dequantize(const NbitsArgs& args, std::int64_t first, std::int64_t rows, float* y,
                      std::int64_t y_stride, Isa isa) {
  nbits_table(isa).dequantize(args, first, rows, 0, args.k, y, y_stride);
}

}  // namespace sardonyx::kernels
