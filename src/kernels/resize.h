#pragma once

#include <cstdint>

#include "base/cpu_features.h"

namespace sardonyx::kernels {

/// Resizing of one axis by a table: y[o][j][i] is the sum over t < taps of
/// weights[j * taps + t] * x[o][indices[j * taps + t]][i]. Any mode, axis after axis.
///
/// Errors   none: here and below the caller has checked that every index is inside.
struct ResizeAxisArgs {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t in = 1, out = 1, inner = 1;
  std::int64_t taps = 1;
  const std::int64_t* indices = nullptr;
  const float* weights = nullptr;
};

/// Resizing of height and width at once with two taps each, channels last. Channels-first planes
/// are images of one channel. Indices and weights as above, two for each output element.
struct ResizeLinearArgs {
  const float* x = nullptr;
  float* y = nullptr;
  std::int64_t channels = 1;
  std::int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  const std::int64_t* y_indices = nullptr;  // [out_h][2]
  const float* y_weights = nullptr;
  const std::int64_t* x_indices = nullptr;  // [out_w][2]
  const float* x_weights = nullptr;
};

struct ResizeTable {
  Isa isa;
  /// The rows [first, last) of outer * out.
  void (*axis_f32)(const ResizeAxisArgs& args, std::int64_t first, std::int64_t last);
  /// The output rows [first, last) of batch * out_h.
  void (*linear_f32)(const ResizeLinearArgs& args, std::int64_t first, std::int64_t last);
};
const ResizeTable& resize_table(Isa isa = active_isa());

/// Nearest neighbours in height and width for pixels of any size: channels last, pixel_bytes is
/// that of all channels; channels first, a plane is an image and pixel_bytes that of one element.
struct ResizeNearestArgs {
  const void* x = nullptr;
  void* y = nullptr;
  std::int64_t pixel_bytes = 0;
  std::int64_t in_h = 1, in_w = 1, out_h = 1, out_w = 1;
  const std::int64_t* y_indices = nullptr;  // [out_h]
  const std::int64_t* x_indices = nullptr;  // [out_w]
};

/// The output rows [first, last) of batch * out_h. A row that repeats the one before it in the same
/// call is copied as a whole.
void resize_nearest(const ResizeNearestArgs& args, std::int64_t first, std::int64_t last);

}  // namespace sardonyx::kernels
