#pragma once

#include <cstdint>

#include "kernels/conv.h"

namespace sardonyx::kernels {

/// A transposed convolution over channels-last tensors. Outputs whose positions have the same
/// remainders by the strides (a phase) read the input as an ordinary convolution with some of the
/// taps; each phase is run as one. A unit is a tile of one phase; units times panels are
/// independent pieces. A plain value that depends on sizes only.
struct ConvTransposePlan {
  ConvShape shape;  // x has `in`, y has `out`; pad is what is cut off before y's first element
  Isa isa = Isa::Generic;
  ConvShape::Axes phases = {1, 1, 1};
  std::int64_t phase_units = 0;
  std::int64_t units = 0;
  std::int64_t panels = 0;  // of all groups
  /// Scratch, aligned to 64 bytes, for packed weights and for those of the model.
  std::int64_t scratch_bytes = 0;
  std::int64_t source_scratch_bytes = 0;
};
ConvTransposePlan plan_conv_transpose(const ConvShape& shape, Isa isa = active_isa());

struct ConvTransposeArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;  // floats from pixel to pixel; in_channels without shape.x_gaps
  /// From pack_conv_transpose_weights, or null for weights as in the model,
  /// [in][out / groups][taps].
  const float* packed = nullptr;
  const float* source = nullptr;
  float* y = nullptr;
  std::int64_t y_stride = 0;  // floats from pixel to pixel, at least out_channels
  const float* bias = nullptr;
  Activation activation;
};

/// The units [unit_first, unit_last) times the panels [panel_first, panel_last) of
/// y[n][i * stride - pad + k * dilation][c] += x[n][i][j] * w[j][c][k] over all i, k and the
/// channels j of the group, then bias and activation.
///
/// Shapes   any; `out` as the caller computed it from pads, output_padding or output_shape.
/// Numbers  each output is one sum, as igemm's; no intermediate result is stored.
/// Cost     igemm's; only the products that are needed. For kernel = stride each tap is a phase.
/// Errors   none: shapes are checked by the caller.
/// Source   ONNX ConvTranspose-1..22.
void conv_transpose_nhwc(const ConvTransposePlan& plan, const ConvTransposeArgs& args,
                         std::int64_t unit_first, std::int64_t unit_last,
                         std::int64_t panel_first, std::int64_t panel_last, void* scratch);

/// Floats of all packed panels of all phases.
std::int64_t conv_transpose_packed_floats(const ConvTransposePlan& plan);

/// Packs weights [in][out / groups][taps], phase by phase.
void pack_conv_transpose_weights(const ConvTransposePlan& plan, const float* weights,
                                 float* packed);

}  // namespace sardonyx::kernels
