#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/dtype.h"
#include "ir/tensor.h"

namespace sardonyx {

/// Element `index` of packed or plain memory of a real type (integers, bool, all floats) as double.
/// 64-bit integers beyond 2^53 lose their low bits: use read_int for those.
double read_real(DType dtype, const std::byte* data, std::int64_t index);

/// Stores a double: floats round to nearest even, 8-bit and smaller floats saturate when
/// `saturate` (else overflow gives infinity or NaN as ONNX Cast says); integers truncate towards
/// zero and wrap; bool is value != 0. Packed elements beside it stay as they are.
void write_real(DType dtype, std::byte* data, std::int64_t index, double value,
                bool saturate = true);

/// Element of an integer or bool type as int64 (uint64 wraps).
std::int64_t read_int(DType dtype, const std::byte* data, std::int64_t index);
/// Stores the low bits.
void write_int(DType dtype, std::byte* data, std::int64_t index, std::int64_t value);

/// Real elements of a tensor as a new Float64 (or Float32, Int64) tensor of the same shape.
Result<Tensor> to_dtype(const Tensor& tensor, DType dtype);

}  // namespace sardonyx
