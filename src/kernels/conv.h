#pragma once

#include <array>
#include <cstdint>

#include "base/cpu_features.h"
#include "kernels/igemm.h"

namespace sardonyx::kernels {

/// A convolution's sizes. Axes are depth, height, width; what a 2-D or 1-D one lacks keeps its
/// default. Padding behind the last element follows from `out`. Channel counts are those of all
/// groups together.
struct ConvShape {
  using Axes = std::array<std::int64_t, 3>;
  std::int64_t batch = 1, in_channels = 0, out_channels = 0, groups = 1;
  Axes in = {1, 1, 1};
  Axes out = {1, 1, 1};
  Axes kernel = {1, 1, 1};
  Axes stride = {1, 1, 1};
  Axes dilation = {1, 1, 1};
  Axes pad = {0, 0, 0};  // before the first element; negative: elements to skip
  /// Pixels of a channels-last x may be further apart than their channels.
  bool x_gaps = false;

  std::int64_t taps() const { return kernel[0] * kernel[1] * kernel[2]; }
  std::int64_t group_in() const { return in_channels / groups; }
  std::int64_t group_out() const { return out_channels / groups; }
  std::int64_t in_pixels() const { return in[0] * in[1] * in[2]; }
  std::int64_t out_pixels() const { return out[0] * out[1] * out[2]; }

  /// The same sums without taps when there is nothing to add or nowhere to put it: then weights
  /// are empty, and a model can name kernels of any size.
  ConvShape without_idle_taps() const {
    ConvShape shape = *this;
    if (in_channels == 0 || out_channels == 0) shape.kernel = {0, 0, 0};
    return shape;
  }
};

/// How a convolution over channels-last tensors is cut into independent pieces: a tile of output
/// pixels times a panel of output channels. A plain value that depends on sizes only.
struct ConvPlan {
  ConvShape shape;
  Isa isa = Isa::Generic;
  /// Tiles do not go past the end of an output row, because output rows do not follow each other.
  bool rows_apart = false;
  /// The taps of a kernel row are read as one, `merged` pixels next to each other.
  bool merged = false;
  std::int64_t tile_pixels = 0;  // at most, in a tile
  std::int64_t row_tiles = 0;    // of an output row, if rows are apart
  std::int64_t tiles = 0;
  std::int64_t group_panels = 0;
  std::int64_t panels = 0;  // of all groups
  /// Scratch of conv_nhwc, aligned to 64 bytes, for packed weights and for those of the model.
  std::int64_t scratch_bytes = 0;
  std::int64_t source_scratch_bytes = 0;
};
ConvPlan plan_conv(const ConvShape& shape, Isa isa = active_isa());

/// A plan whose output rows lie apart, as those of one phase of a transposed convolution do.
ConvPlan plan_conv_rows_apart(const ConvShape& shape, Isa isa = active_isa());

struct ConvArgs {
  const float* x = nullptr;
  std::int64_t x_stride = 0;  // floats from pixel to pixel; in_channels without x_gaps
  /// From pack_conv_weights, or null for weights as in the model, [out][in / groups][taps].
  const float* packed = nullptr;
  const float* source = nullptr;
  float* y = nullptr;
  std::int64_t y_stride = 0;  // floats from pixel to pixel, at least out_channels
  /// If rows are apart: floats from row to row, from plane to plane, from image to image.
  std::int64_t y_row_stride = 0, y_plane_stride = 0, y_image_stride = 0;
  /// Pointers to channel 0 of pixel 0. The residual has y's pixels and does not overlap y; it is
  /// not available if rows are apart.
  Epilogue epilogue;
};

/// The tiles [tile_first, tile_last) times the panels [panel_first, panel_last) of
/// y[n][o][c] = epilogue(sum over taps t and channels i of the group of
///     x[n][o * stride - pad + t * dilation][i] * w[c][i][t]), 0 outside of x.
///
/// Shapes   any; x and y are [batch][depth][height][width][channels], pixels may be further apart
///          than their channels.
/// Numbers  as igemm: sums in the order of taps, then channels; they do not depend on the split.
/// Cost     igemm's, without a copy of x but for kernel rows that cross a border.
/// Errors   none: shapes are checked by the caller. No overlap of x and y.
/// Source   ONNX Conv-1..22.
void conv_nhwc(const ConvPlan& plan, const ConvArgs& args, std::int64_t tile_first,
               std::int64_t tile_last, std::int64_t panel_first, std::int64_t panel_last,
               void* scratch);

/// The same for panels that lie elsewhere: `packed` holds the panels [panel_first, panel_last) of
/// one group, counted from the group's first.
void conv_nhwc_group(const ConvPlan& plan, const ConvArgs& args, std::int64_t tile_first,
                     std::int64_t tile_last, std::int64_t group, std::int64_t panel_first,
                     std::int64_t panel_last, const float* packed, void* scratch);

/// Floats of all packed panels.
std::int64_t conv_packed_floats(const ConvPlan& plan);

/// Packs the panels [first, last) of weights [out][in / groups][taps] to their places in `packed`,
/// which holds conv_packed_floats and is best aligned to 64 bytes.
void pack_conv_weights(const ConvPlan& plan, const float* weights, std::int64_t first,
                       std::int64_t last, float* packed);

/// How a convolution over channels-first tensors is cut: tiles of output pixels of one group and
/// image. Weights are read as they are in the model; x is gathered panel by panel into scratch.
struct ConvNchwPlan {
  ConvShape shape;
  Isa isa = Isa::Generic;
  std::int64_t tile_pixels = 0;
  std::int64_t image_tiles = 0;  // of one image and group
  std::int64_t tiles = 0;        // batch * groups * image_tiles
  std::int64_t scratch_bytes = 0;
};
ConvNchwPlan plan_conv_nchw(const ConvShape& shape, Isa isa = active_isa());

struct ConvNchwArgs {
  const float* x = nullptr;
  const float* weights = nullptr;  // [out][in / groups][taps]
  const float* bias = nullptr;      // [out] or null
  const float* residual = nullptr;  // like y, or null
  float* y = nullptr;
  Activation activation;
};

/// The tiles [first, last) of the same convolution over [batch][channels][depth][height][width].
///
/// Cost     igemm's plus the copy of each input element once a tap; best for few channels or long
///          rows (audio), where a change of layout would not pay.
void conv_nchw(const ConvNchwPlan& plan, const ConvNchwArgs& args, std::int64_t first,
               std::int64_t last, void* scratch);

}  // namespace sardonyx::kernels
