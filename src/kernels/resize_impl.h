#pragma once

#include <cstdint>

#include "kernels/resize.h"

// Resizing as templates over a vector type V. Only kernel sources include this; the unnamed
// namespace keeps what each instruction set compiles apart.
namespace sardonyx::kernels {
namespace {

template <class V>
void resize_axis_rows(const ResizeAxisArgs& args, std::int64_t first, std::int64_t last) {
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t j = row % args.out;
    const float* x = args.x + row / args.out * args.in * args.inner;
    const std::int64_t* indices = args.indices + j * args.taps;
    const float* weights = args.weights + j * args.taps;
    float* y = args.y + row * args.inner;
    if (args.inner == 1) {
      float sum = 0;
      for (std::int64_t t = 0; t < args.taps; ++t) sum += weights[t] * x[indices[t]];
      *y = sum;
      continue;
    }
    for (std::int64_t i = 0; i < args.inner; i += V::kLanes) {
      auto sum = V::set(0);
      for (std::int64_t t = 0; t < args.taps; ++t) {
        const float* from = x + indices[t] * args.inner + i;
        sum = V::fma(V::load_n(from, args.inner - i), V::set(weights[t]), sum);
      }
      V::store_n(y + i, sum, args.inner - i);
    }
  }
}

/// One output row of one-channel pixels: the two input rows are blended where they are read.
inline void resize_linear_plane_row(const ResizeLinearArgs& args, const float* upper,
                                    const float* lower, const float* wy, float* y) {
  for (std::int64_t ox = 0; ox < args.out_w; ++ox) {
    const std::int64_t left = args.x_indices[2 * ox];
    const std::int64_t right = args.x_indices[2 * ox + 1];
    const float a = wy[0] * upper[left] + wy[1] * lower[left];
    const float b = wy[0] * upper[right] + wy[1] * lower[right];
    y[ox] = args.x_weights[2 * ox] * a + args.x_weights[2 * ox + 1] * b;
  }
}

template <class V>
void resize_linear_rows(const ResizeLinearArgs& args, std::int64_t first, std::int64_t last) {
  const std::int64_t channels = args.channels;
  for (std::int64_t row = first; row < last; ++row) {
    const std::int64_t oy = row % args.out_h;
    const std::int64_t line = args.in_w * channels;
    const float* image = args.x + row / args.out_h * args.in_h * line;
    const float* upper = image + args.y_indices[2 * oy] * line;
    const float* lower = image + args.y_indices[2 * oy + 1] * line;
    const float* wy = args.y_weights + 2 * oy;
    float* y = args.y + row * args.out_w * channels;
    if (channels == 1) {
      resize_linear_plane_row(args, upper, lower, wy, y);
      continue;
    }
    for (std::int64_t ox = 0; ox < args.out_w; ++ox, y += channels) {
      const std::int64_t left = args.x_indices[2 * ox] * channels;
      const std::int64_t right = args.x_indices[2 * ox + 1] * channels;
      const auto top = V::set(wy[0]);
      const auto bottom = V::set(wy[1]);
      const auto wl = V::set(args.x_weights[2 * ox]);
      const auto wr = V::set(args.x_weights[2 * ox + 1]);
      for (std::int64_t c = 0; c < channels; c += V::kLanes) {
        const std::int64_t n = channels - c;
        const auto a = V::fma(bottom, V::load_n(lower + left + c, n),
                              V::mul(top, V::load_n(upper + left + c, n)));
        const auto b = V::fma(bottom, V::load_n(lower + right + c, n),
                              V::mul(top, V::load_n(upper + right + c, n)));
        V::store_n(y + c, V::fma(wr, b, V::mul(wl, a)), n);
      }
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
