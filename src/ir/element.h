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

/// `count` elements from `start` as float or double (exact but for 64-bit integers, and for doubles
/// and 32-bit integers read as float, which round once). Meant for chunks: a loop over a whole
/// tensor costs no more than one over floats.
void load_reals(DType dtype, const std::byte* data, std::int64_t start, std::int64_t count,
                float* target);
void load_reals(DType dtype, const std::byte* data, std::int64_t start, std::int64_t count,
                double* target);
/// The way back, as write_real does it.
void store_reals(DType dtype, std::byte* data, std::int64_t start, std::int64_t count,
                 const float* source, bool saturate = true);
void store_reals(DType dtype, std::byte* data, std::int64_t start, std::int64_t count,
                 const double* source, bool saturate = true);

/// Converts `count` real elements as ONNX Cast does: rounding once, integers dropping high bits.
/// `from` and `to` must not overlap.
void convert_elements(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to,
                      std::int64_t count, bool saturate = true);

/// How a magnitude between two powers of two becomes one.
enum class PowerRounding : std::uint8_t { Up, Down, Nearest };
/// The float8e8m0 (a power of two, no sign) for a value. write_real rounds up.
std::uint8_t to_float8e8m0(float value, PowerRounding rounding, bool saturate);

/// Real elements of a tensor as a new Float64 (or Float32, Int64) tensor of the same shape.
Result<Tensor> to_dtype(const Tensor& tensor, DType dtype);

}  // namespace sardonyx
