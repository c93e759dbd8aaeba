#pragma once

#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/activation.h"

namespace sardonyx::kernels {

/// A depthwise convolution: one filter a channel. 1-D ones have in_h = kernel_h = out_h = 1.
/// Counts and strides are those of ONNX; bottom and right padding follow from out_h and out_w.
struct DepthwiseShape {
  std::int64_t batch = 1, channels = 0;
  std::int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  std::int64_t kernel_h = 1, kernel_w = 1;
  std::int64_t stride_h = 1, stride_w = 1;
  std::int64_t dilation_h = 1, dilation_w = 1;
  std::int64_t pad_top = 0, pad_left = 0;
};

struct DepthwiseArgs {
  DepthwiseShape shape;
  const float* x = nullptr;
  /// NHWC: [kernel_h * kernel_w][channels] from pack_depthwise_weights; NCHW: as in the model.
  const float* weights = nullptr;
  const float* bias = nullptr;  // [channels] or null
  float* y = nullptr;
  /// NHWC: floats from pixel to pixel, at least `channels`.
  std::int64_t x_stride = 0, y_stride = 0;
  Activation activation;
};

/// Depthwise convolution for one instruction set:
/// y[n][oy][ox][c] = activation(bias[c] + sum over ky, kx of
///     x[n][oy * stride - pad + ky * dilation][...][c] * weights[c][ky][kx]), 0 outside of x.
///
/// Shapes   any; out_h * stride etc. need not stay inside x. A batch, channels or output of 0
///          writes nothing.
/// Numbers  float32; one fused multiply-add a tap in the order of ky, kx after the bias.
/// Cost     width 3, 5 and 7 at stride 1 and 2 without dilation are register-blocked.
/// Errors   none: shapes are checked by the caller.
/// Source   ONNX Conv-1..22 with group = channels.
struct DepthwiseTable {
  Isa isa;
  /// The output rows [first, last) of the batch * out_h of an NHWC tensor.
  void (*nhwc_rows)(const DepthwiseArgs& args, std::int64_t first, std::int64_t last);
  /// The planes [first, last) of the batch * channels of an NCHW tensor.
  void (*nchw_planes)(const DepthwiseArgs& args, std::int64_t first, std::int64_t last);
};
const DepthwiseTable& depthwise_table(Isa isa = active_isa());

/// [channels][taps] to [taps][channels].
void pack_depthwise_weights(const float* weights, std::int64_t channels, std::int64_t taps,
                            float* packed);

}  // namespace sardonyx::kernels
