#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/activation.h"

namespace sardonyx::kernels {

/// What an int8 product becomes. Pointers are those of the first row and column of the call.
///
/// sum = sum over k of (a - a_zero) * (b - b_zero) + bias, exact in int32 (wrapping); then
///   S32  sum
///   U8, S8  saturate(round_half_to_even(float(sum) * scale) + y_zero), within [low, high]
///   F32  activation(float(sum) * scale * row_scale + float_bias)
/// where scale is scale[column], or scale[0] for all columns.
enum class Int8Output : std::uint8_t { S32, U8, S8, F32 };
struct Int8Epilogue {
  Int8Output output = Int8Output::S32;
  std::int32_t a_zero = 0;
  const std::int32_t* a_zeros = nullptr;   // a zero point for each row, in place of a_zero
  const std::int32_t* b_zeros = nullptr;   // a zero point for each column; null: 0
  const std::int32_t* row_sums = nullptr;  // of a, where int8_needs_row_sums()
  const std::int32_t* bias = nullptr;
  const float* scale = nullptr;
  bool scale_per_column = false;
  std::int32_t y_zero = 0;
  std::int32_t low = -128;  // the range of y, which a Relu or Clip narrows
  std::int32_t high = 255;
  const float* row_scale = nullptr;
  const float* float_bias = nullptr;
  Activation activation;
};

/// One block of work. A is unsigned: signed values are shifted by 128, and so is their zero point
/// (int8_shift_sign).
struct Int8GemmArgs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  const std::uint8_t* a = nullptr;  // [rows, depth]
  std::int64_t a_stride = 0;
  std::int64_t a_slack = 0;      // bytes behind A that may be read too: they have no effect
  const std::byte* b = nullptr;  // packed panels of these columns
  void* c = nullptr;
  std::int64_t c_stride = 0;  // elements from row to row
  Int8Epilogue epilogue;
};

/// Where B comes from.
struct Int8Source {
  const void* b = nullptr;
  bool b_signed = true;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  std::int64_t column_stride = 1;
  std::int64_t depth_stride = 0;
};

/// Exact integer matrix products for GEMM and convolution, for one instruction set.
///
/// Shapes   any counts from 0 on.
/// Numbers  exact for all values of A and B, as long as the sum fits int32; it wraps otherwise.
///          AVX2 has an instruction that saturates: it is used for panels that cannot make it.
/// Cost     rows * columns * depth multiply-adds; no allocation; one thread.
/// Errors   none.
struct Int8GemmTable {
  Isa isa;
  int tile_rows;
  int tile_columns;  // columns of a panel: the grain to split columns at
  int lanes;         // the last panel is as wide as its columns, rounded up to this
  void (*run)(const Int8GemmArgs& args);
  // Fills in a panel's header once its elements are there.
  void (*seal)(std::byte* panel, std::int64_t width, std::int64_t steps);
  // sums[row] = sum over k of a.
  void (*row_sums)(const Int8GemmArgs& args, std::int32_t* sums);
};
const Int8GemmTable& int8_gemm_table(Isa isa = active_isa());

/// A panel: this header, then for each four steps of the depth (the last ones zero padded)
/// `width` columns of four int8 elements. Unsigned elements are shifted by -128.
struct alignas(16) Int8PanelHeader {
  std::int32_t column_sums[32] = {};
  std::int32_t b_shift = 0;    // 128 if the source is unsigned
  std::int32_t saturates = 0;  // whether two adjacent weights exceed 128 in magnitude
  std::int32_t unused[14] = {};
};
// A multiple of 64, so that the elements of the first panel start on a line of the cache.
static_assert(sizeof(Int8PanelHeader) == 192);

/// Bytes of packed B, and from its start to a panel.
std::int64_t int8_packed_bytes(const Int8GemmTable& table, std::int64_t columns,
                               std::int64_t depth);
std::int64_t int8_panel_offset(const Int8GemmTable& table, std::int64_t panel, std::int64_t depth);

/// Packs the panels [first, last) of B to `packed`, which is aligned to 64 bytes.
void int8_pack(const Int8GemmTable& table, const Int8Source& source, std::int64_t first,
               std::int64_t last, std::byte* packed);

/// Whether the epilogue needs row sums: some zero point of B is not 0 (signed) or 128 (unsigned).
bool int8_needs_row_sums(bool b_signed, const std::int32_t* b_zeros, std::int64_t columns);

/// Adds 128 to each byte: s8 to u8, or back. `to` may be `from`.
void int8_shift_sign(const void* from, void* to, std::int64_t count);

/// c = epilogue((a - a_zero) * (b - b_zero)) of dense matrices.
struct Int8MatrixArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const void* a = nullptr;  // [m, k]
  std::int64_t a_stride = 0;
  bool a_signed = false;
  const void* b = nullptr;  // [k, n], or [n, k] if transposed
  std::int64_t b_stride = 0;
  bool b_signed = true;
  bool b_transposed = false;
  const std::byte* packed_b = nullptr;  // used in place of b if there
  void* c = nullptr;
  std::int64_t c_stride = 0;
  // Zero points as the model gives them; row_sums is not looked at, they are computed if needed.
  Int8Epilogue epilogue;
};

/// Bytes of scratch, aligned to 64 bytes, for int8_gemm(): O(m + k) and, if A is signed, some rows
/// of it; with a source-layout B that of a few panels.
std::size_t int8_gemm_scratch_bytes(const Int8MatrixArgs& args, Isa isa = active_isa());
void int8_gemm(const Int8MatrixArgs& args, void* scratch, Isa isa = active_isa());

/// The part of a product with these rows and columns. With a packed B `column` is a multiple of
/// tile_columns.
Int8MatrixArgs int8_gemm_part(const Int8MatrixArgs& args, std::int64_t row, std::int64_t rows,
                              std::int64_t column, std::int64_t columns, Isa isa = active_isa());

}  // namespace sardonyx::kernels
