#include "kernels/gemm.h"

#include <algorithm>

namespace sardonyx::kernels {

namespace {

constexpr std::int64_t kRowBlock = 192;     // rows whose pointers are on the stack
constexpr std::int64_t kColumnBlock = 128;  // columns that are packed at a time
constexpr std::int64_t kPartTerms = 512;    // as igemm splits its sums

// Rows of a transposed A that are copied to the scratch at a time.
std::int64_t transposed_rows(const GemmArgs& args) {
  constexpr std::int64_t kFloats = 128 * 1024;
  return std::min({args.m, kRowBlock, std::max<std::int64_t>(12, kFloats / std::max<std::int64_t>(
                                                                                args.k, 1))});
}

std::int64_t depth_part(std::int64_t k) {
  const std::int64_t parts = std::max<std::int64_t>(1, (k + kPartTerms / 2) / kPartTerms);
  return (k + parts - 1) / parts;
}

std::int64_t round_up_floats(std::int64_t floats) { return (floats + 15) / 16 * 16; }

std::int64_t a_scratch_floats(const GemmArgs& args) {
  return args.a_transposed ? round_up_floats(transposed_rows(args) * args.k) : 0;
}

void transpose(const float* from, std::int64_t stride, std::int64_t rows, std::int64_t columns,
               float* to) {
  constexpr std::int64_t kBlock = 16;
  for (std::int64_t i = 0; i < rows; i += kBlock) {
    for (std::int64_t j = 0; j < columns; j += kBlock) {
      const std::int64_t last_i = std::min(rows, i + kBlock);
      const std::int64_t last_j = std::min(columns, j + kBlock);
      for (std::int64_t r = i; r < last_i; ++r) {
        for (std::int64_t c = j; c < last_j; ++c) to[c * rows + r] = from[r * stride + c];
      }
    }
  }
}

// Calls body(part) for blocks of rows whose A is not transposed.
template <class Body>
void for_row_blocks(const GemmArgs& args, float* a_scratch, Isa isa, Body&& body) {
  const std::int64_t step = args.a_transposed ? transposed_rows(args) : kRowBlock;
  for (std::int64_t row = 0; row < args.m; row += step) {
    const std::int64_t rows = std::min(step, args.m - row);
    GemmArgs part = gemm_part(args, row, rows, 0, args.n, isa);
    if (args.a_transposed) {
      transpose(part.a, args.a_stride, args.k, rows, a_scratch);
      part.a = a_scratch;
      part.a_stride = args.k;
      part.a_transposed = false;
    }
    body(part);
  }
}

// At most kRowBlock rows by a B of `b_depth` rows that starts at row b_first of the sum.
void run_packed(const GemmArgs& args, const float* packed, std::int64_t b_depth, Isa isa) {
  const float* rows[kRowBlock];
  for (std::int64_t row = 0; row < args.m; ++row) rows[row] = args.a + row * args.a_stride;
  IgemmArgs block;
  block.rows = args.m;
  block.columns = args.n;
  block.depth = args.k;
  block.a = rows;
  block.b = packed;
  block.b_depth = b_depth;
  block.c = args.c;
  block.c_stride = args.c_stride;
  block.epilogue = args.epilogue;
  igemm_table(isa).run(block);
}

// Steps [k, k + depth) of the sum: what follows the sum goes with the last of them.
GemmArgs depth_range(const GemmArgs& args, std::int64_t k, std::int64_t depth) {
  GemmArgs part = args;
  part.k = depth;
  part.a += k * (args.a_transposed ? args.a_stride : 1);
  if (k > 0) part.epilogue.accumulate = true;
  if (k + depth < args.k) {
    part.epilogue.bias = nullptr;
    part.epilogue.residual = nullptr;
    part.epilogue.activation = {};
  }
  return part;
}

// A block of columns: B is packed part by part of the depth, each used for all rows.
void run_columns(const GemmArgs& args, float* a_scratch, float* b_scratch, Isa isa) {
  const IgemmTable& table = igemm_table(isa);
  const std::int64_t step = depth_part(args.k);
  std::int64_t k = 0;
  do {
    const std::int64_t depth = std::min(step, args.k - k);
    IgemmSource source = gemm_pack_source(args);
    source.depth = depth;
    source.b = static_cast<const char*>(args.b) +
               k * source.depth_stride * format_bytes(source.format);
    igemm_pack(table, source, 0, igemm_panels(table, args.n), b_scratch);
    for_row_blocks(depth_range(args, k, depth), a_scratch, isa, [&](const GemmArgs& part) {
      run_packed(part, b_scratch, depth, isa);
    });
    k += depth;
  } while (k < args.k);
}

void run_small(const GemmArgs& args, float* a_scratch, Isa isa) {
  const GemvTable& table = gemv_table(isa);
  for_row_blocks(args, a_scratch, isa, [&](const GemmArgs& part) {
    const GemvArgs gemv = {part.m,        part.n,        part.k, part.a, part.a_stride, part.b,
                           part.b_stride, part.b_format, part.c, part.c_stride};
    (part.b_transposed ? table.columns : table.rows)(gemv);
    table.finish(part.epilogue, part.m, part.n, part.c, part.c_stride);
  });
}

}  // namespace

bool gemm_is_small(const GemmArgs& args, Isa isa) {
  // Where packing B costs as much as reading it for every few rows (measured).
  std::int64_t most = 4;
  if (isa == Isa::Avx2) most = 12;
  if (isa == Isa::Avx512) most = args.b_transposed ? 24 : 16;
  return args.packed_b == nullptr && !args.epilogue.accumulate && args.m <= most;
}

std::size_t gemm_scratch_bytes(const GemmArgs& args, Isa isa) {
  std::int64_t floats = a_scratch_floats(args);
  if (args.packed_b == nullptr && !gemm_is_small(args, isa)) {
    const std::int64_t columns = std::min(args.n, kColumnBlock);
    floats += igemm_packed_floats(igemm_table(isa), columns, depth_part(args.k));
  }
  return static_cast<std::size_t>(floats) * sizeof(float);
}

void gemm(const GemmArgs& args, void* scratch, Isa isa) {
  auto* a_scratch = static_cast<float*>(scratch);
  if (args.packed_b != nullptr) {
    for_row_blocks(args, a_scratch, isa, [&](const GemmArgs& part) {
      run_packed(part, part.packed_b, part.k, isa);
    });
    return;
  }
  if (gemm_is_small(args, isa)) return run_small(args, a_scratch, isa);
  float* b_scratch = a_scratch + a_scratch_floats(args);
  for (std::int64_t column = 0; column < args.n; column += kColumnBlock) {
    const std::int64_t columns = std::min(kColumnBlock, args.n - column);
    run_columns(gemm_part(args, 0, args.m, column, columns, isa), a_scratch, b_scratch, isa);
  }
}

GemmArgs gemm_part(const GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                   std::int64_t columns, Isa isa) {
  GemmArgs part = args;
  part.m = rows;
  part.n = columns;
  part.a += row * (args.a_transposed ? 1 : args.a_stride);
  if (args.packed_b != nullptr) {
    const IgemmTable& table = igemm_table(isa);
    part.packed_b += igemm_panel_offset(table, column / table.tile_columns, args.k);
  } else {
    const std::int64_t skip = column * (args.b_transposed ? args.b_stride : 1);
    part.b = static_cast<const char*>(args.b) + skip * format_bytes(args.b_format);
  }
  part.c += row * args.c_stride + column;
  Epilogue& e = part.epilogue;
  if (e.bias != nullptr) e.bias += column;
  if (e.residual != nullptr) e.residual += row * e.residual_stride + column;
  return part;
}

IgemmSource gemm_pack_source(const GemmArgs& args) {
  IgemmSource source;
  source.b = args.b;
  source.columns = args.n;
  source.depth = args.k;
  source.column_stride = args.b_transposed ? args.b_stride : 1;
  source.depth_stride = args.b_transposed ? 1 : args.b_stride;
  source.format = args.b_format;
  return source;
}

void gemm_f64(const GemmF64Args& args) {
  for (std::int64_t i = 0; i < args.m; ++i) {
    double* c = args.c + i * args.c_stride;
    if (!args.accumulate) std::fill(c, c + args.n, 0.0);
    if (args.b_column_stride != 1) {
      for (std::int64_t j = 0; j < args.n; ++j) {
        const double* a = args.a + i * args.a_row_stride;
        const double* b = args.b + j * args.b_column_stride;
        double sum = 0;
        for (std::int64_t k = 0; k < args.k; ++k) {
          sum += a[k * args.a_column_stride] * b[k * args.b_row_stride];
        }
        c[j] += args.alpha * sum;
      }
      continue;
    }
    for (std::int64_t k = 0; k < args.k; ++k) {
      const double a = args.alpha * args.a[i * args.a_row_stride + k * args.a_column_stride];
      const double* b = args.b + k * args.b_row_stride;
      for (std::int64_t j = 0; j < args.n; ++j) c[j] += a * b[j];
    }
  }
}

}  // namespace sardonyx::kernels
