#pragma once

#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/float_format.h"
#include "kernels/igemm.h"

namespace sardonyx::kernels {

/// A product of few rows with a B that is read once, where it is.
struct GemvArgs {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t depth = 0;
  const float* a = nullptr;  // [rows, depth]
  std::int64_t a_stride = 0;
  const void* b = nullptr;  // [depth, columns], or [columns, depth]
  std::int64_t b_stride = 0;
  FloatFormat format = FloatFormat::F32;
  float* c = nullptr;
  std::int64_t c_stride = 0;
};

/// c = a * b for few rows (up to about 24), bound by reading B.
///
/// Shapes   any; a depth of 0 gives 0.
/// Numbers  float32; the order of a sum depends on depth alone, so columns and rows may be split.
/// Cost     reads B once; no allocation; one thread.
/// Errors   none.
struct GemvTable {
  Isa isa;
  void (*rows)(const GemvArgs& args);     // B as [depth, columns]
  void (*columns)(const GemvArgs& args);  // B as [columns, depth]
  // c = activation(alpha * c + bias + residual); `accumulate` is not looked at.
  void (*finish)(const Epilogue& epilogue, std::int64_t rows, std::int64_t columns, float* c,
                 std::int64_t c_stride);
};
const GemvTable& gemv_table(Isa isa = active_isa());

}  // namespace sardonyx::kernels
