#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemv.h"
#include "kernels/igemm.h"

namespace sardonyx::kernels {

/// c = epilogue(a * b), with B as it lies in the model or packed by gemm_pack.
struct GemmArgs {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const float* a = nullptr;  // [m, k], or [k, m] if transposed
  std::int64_t a_stride = 0;
  bool a_transposed = false;
  const void* b = nullptr;  // [k, n], or [n, k] if transposed
  std::int64_t b_stride = 0;
  bool b_transposed = false;
  FloatFormat b_format = FloatFormat::F32;
  const float* packed_b = nullptr;  // used in place of b if there
  float* c = nullptr;               // [m, n]
  std::int64_t c_stride = 0;
  Epilogue epilogue;  // beta is for the caller: scale c and accumulate, or pass it as residual
};

/// Bytes of scratch, aligned to 64 bytes, that gemm() needs for these arguments: about a megabyte
/// at most, unless A is transposed and k above ten thousand.
std::size_t gemm_scratch_bytes(const GemmArgs& args, Isa isa = active_isa());

/// General matrix product in float32, B in float32, float16 or bfloat16.
///
/// Shapes   any, zero included: k == 0 gives the epilogue of 0. Strides are in elements.
/// Numbers  float32. The order of a sum depends on k, on the form of B and on whether m is small
///          (gemm_is_small): split rows of a product by sizes alone, or columns anyhow.
/// Cost     one thread, no allocation. A packed B is fastest; one that is not is packed in parts
///          to the scratch on each call, or for few rows read where it is, once.
/// Errors   none. `scratch` may be null if gemm_scratch_bytes() is 0.
void gemm(const GemmArgs& args, void* scratch, Isa isa = active_isa());

/// The part of a product with these rows and columns, for splitting it over threads. With a packed
/// B `column` is a multiple of igemm_table(isa).tile_columns.
GemmArgs gemm_part(const GemmArgs& args, std::int64_t row, std::int64_t rows, std::int64_t column,
                   std::int64_t columns, Isa isa = active_isa());

/// Whether so few rows are multiplied that B is read where it is.
bool gemm_is_small(const GemmArgs& args, Isa isa = active_isa());

/// What igemm_pack() takes to pack args.b: n, k, strides and format are looked at.
IgemmSource gemm_pack_source(const GemmArgs& args);

/// c = alpha * a * b + (accumulate ? c : 0) in float64; element (i, j) of each matrix is at
/// i * row_stride + j * column_stride. Plain loops: for models that compute in float64.
struct GemmF64Args {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  const double* a = nullptr;
  std::int64_t a_row_stride = 0;
  std::int64_t a_column_stride = 1;
  const double* b = nullptr;
  std::int64_t b_row_stride = 0;
  std::int64_t b_column_stride = 1;
  double* c = nullptr;
  std::int64_t c_stride = 0;
  double alpha = 1;
  bool accumulate = false;
};
void gemm_f64(const GemmF64Args& args);

}  // namespace sardonyx::kernels
