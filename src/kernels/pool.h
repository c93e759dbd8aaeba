#pragma once

#include <array>
#include <cstdint>

#include "base/cpu_features.h"

namespace sardonyx::kernels {

/// A pooling's sizes. Axes are depth, height, width; what a 2-D or 1-D one lacks keeps its default.
/// A global pooling has kernel = in and out = 1.
struct PoolShape {
  using Axes = std::array<std::int64_t, 3>;
  std::int64_t batch = 1, channels = 0;
  Axes in = {1, 1, 1};
  Axes out = {1, 1, 1};
  Axes kernel = {1, 1, 1};
  Axes stride = {1, 1, 1};
  Axes dilation = {1, 1, 1};
  Axes pad = {0, 0, 0};
  Axes pad_end = {0, 0, 0};  // matters for averages that count padding

  std::int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_pixels() const { return out[0] * out[1] * out[2]; }
  std::int64_t out_rows() const { return batch * out[0] * out[1]; }
};

struct PoolArgs {
  PoolShape shape;
  const void* x = nullptr;
  void* y = nullptr;
  /// Channels last: elements from pixel to pixel.
  std::int64_t x_stride = 0, y_stride = 0;
  /// Averages: divide by the window's taps inside of the padded input, not of the input.
  bool count_padding = false;
};

/// Max and average pooling for one instruction set.
///
/// Channels last: the output rows [first, last) of batch * depth * height, for the channels
/// [c_first, c_last). Channels first: the planes [first, last) of batch * channels.
///
/// Shapes   any; a window may lie outside of x in part or in whole.
/// Numbers  a maximum with a NaN in its window is NaN. A window without elements gives -infinity
///          (the least integer) as maximum, 0 as average. Averages are float32 sums, row of the
///          window by row, divided once.
/// Cost     one pass over the window a vector of outputs.
/// Errors   none: shapes are checked by the caller.
/// Source   ONNX MaxPool-1..22, AveragePool-1..22, GlobalMaxPool, GlobalAveragePool.
struct PoolTable {
  Isa isa;
  using Rows = void (*)(const PoolArgs& args, std::int64_t first, std::int64_t last,
                        std::int64_t c_first, std::int64_t c_last);
  using Planes = void (*)(const PoolArgs& args, std::int64_t first, std::int64_t last);
  Rows max_nhwc_f32, average_nhwc_f32, max_nhwc_u8, max_nhwc_s8;
  Planes max_nchw_f32, average_nchw_f32, max_nchw_u8, max_nchw_s8;
};
const PoolTable& pool_table(Isa isa = active_isa());

/// Max pooling of float planes with the place of each maximum: indices[i] is its position in the
/// whole of x, counted row by row or, for column_major, with the first spatial axis fastest.
/// The first of equal elements, or of NaNs, is taken; a window without elements gives -1.
void max_pool_nchw_f32_indices(const PoolArgs& args, bool column_major, std::int64_t* indices,
                               std::int64_t first, std::int64_t last);

}  // namespace sardonyx::kernels
