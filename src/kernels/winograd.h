#pragma once

#include <cstdint>

#include "kernels/conv.h"

namespace sardonyx::kernels {

/// A convolution with 3x3 taps at stride 1 by Winograd's F(4x4, 3x3): 36 products a block of 4x4
/// outputs instead of 144. Needs transformed weights, four times as large as the model's. A unit
/// is a group of blocks; units times panels of output channels are independent pieces (those of
/// one unit repeat the transform of its input). A plain value that depends on sizes only.
struct WinogradPlan {
  ConvShape shape;
  Isa isa = Isa::Generic;
  std::int64_t blocks_h = 0, blocks_w = 0;  // of an image
  std::int64_t blocks = 0;                  // of all images
  std::int64_t unit_blocks = 0;             // at most, of a unit
  std::int64_t units = 0;
  std::int64_t panels = 0;
  std::int64_t scratch_bytes = 0;  // aligned to 64 bytes
};

/// Whether the plan below exists: two axes at most, 3x3 taps, strides and dilations of 1, one
/// group.
bool winograd_fits(const ConvShape& shape);

/// Whether it is likely to be faster than conv_nhwc: enough blocks that the transformed weights are
/// read often enough, and enough channels that the transforms are cheap.
bool winograd_pays(const ConvShape& shape);

WinogradPlan plan_winograd(const ConvShape& shape, Isa isa = active_isa());

/// The units [unit_first, unit_last) times the panels [panel_first, panel_last) of the convolution
/// that conv_nhwc computes. args.packed is from pack_winograd_weights; the epilogue's alpha is 1,
/// it does not accumulate.
///
/// Numbers  errors about three times those of the direct sum (points 0, +-sqrt(1/2), +-sqrt(2)):
///          3e-5 for sums of 1,152 products of a normal and a tenth of a normal variable. A NaN or
///          an infinity in x makes all outputs of the blocks that read it NaN.
/// Cost     2.25 multiply-adds an output, channel and input channel, and both transforms.
/// Errors   none: shapes are checked by the caller. No overlap of x, y and the residual.
/// Source   ONNX Conv; Lavin and Gray, Fast algorithms for convolutional neural networks.
void conv_winograd(const WinogradPlan& plan, const ConvArgs& args, std::int64_t unit_first,
                   std::int64_t unit_last, std::int64_t panel_first, std::int64_t panel_last,
                   void* scratch);

/// Floats of transformed and packed weights.
std::int64_t winograd_packed_floats(const WinogradPlan& plan);

/// Transforms and packs the panels [first, last) of weights [out][in][9] to their places.
void pack_winograd_weights(const WinogradPlan& plan, const float* weights, std::int64_t first,
                           std::int64_t last, float* packed);

}  // namespace sardonyx::kernels
