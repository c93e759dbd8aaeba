#pragma once

#include <cstdint>

#include "base/cpu_features.h"

namespace sardonyx::kernels {

/// Conversions between float32 and the 16-bit floats, given by their bits.
///
/// Shapes   dense; any count. y may not overlap x.
/// Numbers  widening is exact; narrowing rounds to nearest even, overflow gives infinity. A NaN
///          stays a NaN, whose other bits are not told.
/// Cost     one pass; no allocation; one thread.
/// Errors   none.
struct ConvertTable {
  Isa isa;
  void (*widen_f16)(const std::uint16_t* x, std::int64_t count, float* y);
  void (*widen_bf16)(const std::uint16_t* x, std::int64_t count, float* y);
  void (*narrow_f16)(const float* x, std::int64_t count, std::uint16_t* y);
  void (*narrow_bf16)(const float* x, std::int64_t count, std::uint16_t* y);
};
const ConvertTable& convert_table(Isa isa = active_isa());

}  // namespace sardonyx::kernels
