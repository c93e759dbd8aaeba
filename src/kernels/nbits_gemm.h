#pragma once

#include <cstddef>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/float_format.h"
#include "kernels/igemm.h"

namespace sardonyx::kernels {

/// c = epilogue(a * b) with a B of 2, 4 or 8-bit integers in blocks along k, each with a scale and
/// a zero point: b[k][j] = (q[j][k] - zero[j][k / block]) * scale[j][k / block].
struct NbitsArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  int bits = 4;             // 2, 4 or 8
  std::int64_t block = 32;  // 16, 32, 64, 128 or 256; the last block of a column is whole
  const float* a = nullptr;
  std::int64_t a_stride = 0;
  const std::uint8_t* b = nullptr;  // [n][blocks][block * bits / 8], the low bits first
  const void* scales = nullptr;     // [n][blocks]
  FloatFormat scale_format = FloatFormat::F32;
  const std::uint8_t* zeros = nullptr;  // [n][ceil(blocks * bits / 8)], packed as b is; or
  const void* zero_floats = nullptr;    // [n][blocks] in scale_format; or neither: 2^(bits - 1)
  bool int8_activations = false;        // allowed to round A to int8 per block, as level 4 is
  float* c = nullptr;
  std::int64_t c_stride = 0;
  Epilogue epilogue;  // but accumulate, which is not looked at
};

/// Bytes of scratch, aligned to 64 bytes, for nbits_gemm().
std::size_t nbits_gemm_scratch_bytes(const NbitsArgs& args, Isa isa = active_isa());

/// The product, from B as the model stores it.
///
/// Shapes   any; k == 0 gives the epilogue of 0.
/// Numbers  few rows: float32 sums of a * q, or with int8_activations exact int32 sums per block.
///          Many rows: B in float32 and the float32 kernel.
/// Cost     few rows read B once; one thread; no allocation.
/// Errors   none.
/// Source   com.microsoft.MatMulNBits-1.
void nbits_gemm(const NbitsArgs& args, void* scratch, Isa isa = active_isa());

/// The part of a product with these rows and columns.
NbitsArgs nbits_gemm_part(const NbitsArgs& args, std::int64_t row, std::int64_t rows,
                          std::int64_t column, std::int64_t columns);

/// Rows [first, first + rows) of op(B) = [n, k] in float32, for Gather and the like:
/// y[row][k], row after row.
void nbits_dequantize(const NbitsArgs& args, std::int64_t first, std::int64_t rows, float* y,
                      std::int64_t y_stride, Isa isa = active_isa());

/// Few rows of A as the kernels want them; sums have `sum_stride` floats a row, zero past the end.
struct NbitsRows {
  float* a = nullptr;  // [rows][blocks * block], rearranged
  std::int8_t* a8 = nullptr;  // [rows][a8_stride]
  std::int64_t a8_stride = 0;
  float* a8_scales = nullptr;  // as sums
  float* sums = nullptr;       // of the elements of a block
  std::int64_t sum_stride = 0;
};

/// The kernels for one instruction set, which nbits_gemm() chooses from.
struct NbitsTable {
  Isa isa;
  std::int64_t least_block_bytes;  // of a block for `prepare` and `few`
  std::int64_t least_int8_block;   // elements of a block for the int8 pair; 0: there is none
  void (*prepare)(const NbitsArgs& args, const NbitsRows& rows);
  void (*few)(const NbitsArgs& args, const NbitsRows& rows);
  void (*prepare_int8)(const NbitsArgs& args, const NbitsRows& rows);
  void (*few_int8)(const NbitsArgs& args, const NbitsRows& rows);
  // y[j][k - first_k] for columns [column, column + columns); first_k is that of a block.
  void (*dequantize)(const NbitsArgs& args, std::int64_t column, std::int64_t columns,
                     std::int64_t first_k, std::int64_t depth, float* y, std::int64_t y_stride);
};
const NbitsTable& nbits_table(Isa isa = active_isa());

}  // namespace sardonyx::kernels
