#pragma once

#include <cstdint>

#include "base/cpu_features.h"

namespace sardonyx::kernels {

/// The least and the greatest of some floats, NaNs apart.
struct MinMax {
  float min = 0;
  float max = 0;
};

/// A scale and a zero point for a whole tensor.
struct Quantization {
  float scale = 1;
  std::int32_t zero = 0;
};

/// How two tensors of 8 bits become their sum, at least `low`.
struct QuantizedSum {
  Quantization a;
  Quantization b;
  Quantization y;
  std::int32_t low = -128;
};

/// Conversions between float32 and 8-bit integers with one scale and zero point.
///
/// Shapes   dense; any count. y may not overlap x.
/// Numbers  quantize: saturate(round_half_to_even(x / scale) + zero), a true division; a NaN
///          gives the least value. dequantize: (x - zero) * scale. add: the same, one after the
///          other, as bits.
/// Cost     one pass; no allocation; one thread.
/// Errors   none.
/// Source   ONNX QuantizeLinear-10, DequantizeLinear-10, DynamicQuantizeLinear-11.
struct QuantizeTable {
  Isa isa;
  void (*quantize_u8)(const float* x, std::int64_t count, Quantization q, std::uint8_t* y);
  void (*quantize_s8)(const float* x, std::int64_t count, Quantization q, std::int8_t* y);
  void (*dequantize_u8)(const std::uint8_t* x, std::int64_t count, Quantization q, float* y);
  void (*dequantize_s8)(const std::int8_t* x, std::int64_t count, Quantization q, float* y);
  // y = max(low, quantize(dequantize(a) + dequantize(b))); y may be a or b.
  void (*add_u8)(const std::uint8_t* a, const std::uint8_t* b, std::int64_t count,
                 const QuantizedSum& q, std::uint8_t* y);
  void (*add_s8)(const std::int8_t* a, const std::int8_t* b, std::int64_t count,
                 const QuantizedSum& q, std::int8_t* y);
  // The range of some floats and of zero; merge those of parts by their least and greatest.
  MinMax (*range_with_zero)(const float* x, std::int64_t count);
};
const QuantizeTable& quantize_table(Isa isa = active_isa());

/// The u8 quantization of a range that holds zero, as DynamicQuantizeLinear chooses it:
/// scale = (max - min) / 255 and zero = saturate(round_half_to_even(-min / scale)).
/// A range of nothing but zero has scale 1 and zero 0.
Quantization dynamic_quantization(MinMax range);

}  // namespace sardonyx::kernels
