#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/activation.h"
#include "kernels/float_format.h"

namespace sardonyx::kernels {

/// What happens to a product before it is stored, in this order:
/// y = activation(alpha * product + (accumulate ? y : 0) + bias[column] + residual[row][column]).
/// Pointers are those of the first column (and row) of the call, or null. The residual may not
/// overlap y: long sums are stored in parts.
struct Epilogue {
  float alpha = 1;
  bool accumulate = false;
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::int64_t residual_stride = 0;  // floats from row to row; 0 repeats one row
  Activation activation;
};

/// One block of work for igemm. `a` holds taps x rows pointers, `depth` floats behind each.
struct IgemmArgs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t taps = 1;
  std::int64_t depth = 0;
  const float* const* a = nullptr;
  std::int64_t a_tap_stride = 0;  // pointers from one tap to the next
  std::int64_t a_offset = 0;      // floats added to every pointer but `a_zero`
  const float* a_zero = nullptr;  // the row of padding, which no offset moves
  const float* b = nullptr;       // panels of these columns; the first column starts a panel
  std::int64_t b_depth = 0;       // rows of a panel as packed: taps * depth if all are used
  std::int64_t b_first = 0;       // the first row of the panels to use
  float* c = nullptr;
  std::int64_t c_stride = 0;  // floats from row to row
  Epilogue epilogue;
};

/// Where B comes from: element (t, k, column) is at
/// b[t * tap_stride + k * depth_stride + column * column_stride].
/// A row-major [k, n] has depth_stride n and column_stride 1, a transposed [n, k] the converse;
/// OIHW weights of a convolution have column_stride I*H*W, depth_stride H*W and tap_stride 1.
/// Strides count elements.
struct IgemmSource {
  const void* b = nullptr;
  std::int64_t columns = 0;
  std::int64_t taps = 1;
  std::int64_t depth = 0;
  std::int64_t column_stride = 1;
  std::int64_t depth_stride = 0;
  std::int64_t tap_stride = 0;
  FloatFormat format = FloatFormat::F32;
};

/// The float32 matrix product behind GEMM and convolution, for one instruction set:
/// c[row][column] = sum over t, k of a[t][row][k] * b[t * depth + k][column], then the epilogue.
///
/// Shapes   any counts from 0 on; no taps or no depth give a product of 0.
/// Numbers  one fused multiply-add a term in the order of t, k (generic code rounds twice a term),
///          in parts of about 512 terms. A result does not depend on how rows and columns are
///          split into calls.
/// Cost     rows * columns * taps * depth multiply-adds; no allocation; one thread.
/// Errors   none.
struct IgemmTable {
  Isa isa;
  int tile_rows;     // rows of c in registers: the grain to split rows at
  int tile_columns;  // columns of a panel: the grain to split columns at
  int lanes;         // the last panel is as wide as its columns, rounded up to this
  void (*run)(const IgemmArgs& args);
  // Panels of the columns [column, column + columns), the first of which starts a panel.
  void (*pack)(const IgemmSource& source, std::int64_t column, std::int64_t columns,
               float* packed);
};
const IgemmTable& igemm_table(Isa isa = active_isa());

/// Panels of tile_columns that `columns` need.
std::int64_t igemm_panels(const IgemmTable& table, std::int64_t columns);

/// Floats from the start of packed B to a panel: panels are dense, one after the other.
std::int64_t igemm_panel_offset(const IgemmTable& table, std::int64_t panel, std::int64_t b_depth);

/// Floats of a packed B of b_depth = taps * depth rows: columns count rounded up to `lanes`.
std::int64_t igemm_packed_floats(const IgemmTable& table, std::int64_t columns,
                                 std::int64_t b_depth);

/// Packs the panels [first, last) of B, the first of them to `packed`: row after row of
/// tile_columns floats, columns past the end zero. `packed` is best aligned to 64 bytes.
void igemm_pack(const IgemmTable& table, const IgemmSource& source, std::int64_t first,
                std::int64_t last, float* packed);

}  // namespace sardonyx::kernels
