#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "kernels/conv.h"

namespace sardonyx::kernels {

inline std::int64_t pick(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

inline std::vector<float> random_floats(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

/// Memory at a multiple of 64 bytes, as a plan's arena gives it.
class Scratch {
 public:
  explicit Scratch(std::int64_t bytes) : storage_(static_cast<std::size_t>(bytes) + 64, 0x7f) {}
  void* get() {
    const auto address = reinterpret_cast<std::uintptr_t>(storage_.data());
    return storage_.data() + (64 - address % 64);
  }

 private:
  std::vector<unsigned char> storage_;
};

/// A convolution by plain loops, channels first: y [batch][out_channels][pixels].
inline std::vector<float> plain_conv(const ConvShape& s, const std::vector<float>& x,
                                     const std::vector<float>& w, const float* bias) {
  std::vector<float> y;
  const auto at = [](std::int64_t i) { return static_cast<std::size_t>(i); };
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t c = 0; c < s.out_channels; ++c) {
      for (std::int64_t o = 0; o < s.out_pixels(); ++o) {
        const std::int64_t oz = o / s.out[2] / s.out[1];
        const std::int64_t oy = o / s.out[2] % s.out[1];
        const std::int64_t ox = o % s.out[2];
        double sum = bias == nullptr ? 0 : bias[c];
        for (std::int64_t t = 0; t < s.taps(); ++t) {
          const std::int64_t z = oz * s.stride[0] - s.pad[0] +
                                 t / s.kernel[2] / s.kernel[1] * s.dilation[0];
          const std::int64_t v = oy * s.stride[1] - s.pad[1] +
                                 t / s.kernel[2] % s.kernel[1] * s.dilation[1];
          const std::int64_t u = ox * s.stride[2] - s.pad[2] + t % s.kernel[2] * s.dilation[2];
          if (z < 0 || z >= s.in[0] || v < 0 || v >= s.in[1] || u < 0 || u >= s.in[2]) continue;
          for (std::int64_t i = 0; i < s.group_in(); ++i) {
            const std::int64_t channel = c / s.group_out() * s.group_in() + i;
            const std::int64_t from = (n * s.in_channels + channel) * s.in_pixels() +
                                      (z * s.in[1] + v) * s.in[2] + u;
            sum += static_cast<double>(x[at(from)]) *
                   w[at((c * s.group_in() + i) * s.taps() + t)];
          }
        }
        y.push_back(static_cast<float>(sum));
      }
    }
  }
  return y;
}

/// [batch][channels][pixels] to [batch][pixels][channels], `stride` floats from pixel to pixel.
inline std::vector<float> channels_last(const std::vector<float>& x, std::int64_t batch,
                                        std::int64_t channels, std::int64_t pixels,
                                        std::int64_t stride, float between = 0) {
  std::vector<float> y(static_cast<std::size_t>(batch * pixels * stride), between);
  for (std::int64_t i = 0; i < batch * channels * pixels; ++i) {
    const std::int64_t n = i / pixels / channels;
    y[static_cast<std::size_t>((n * pixels + i % pixels) * stride + i / pixels % channels)] =
        x[static_cast<std::size_t>(i)];
  }
  return y;
}

inline float worst_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return INFINITY;
  float worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const float difference = std::fabs(a[i] - b[i]);
    if (!(difference <= worst)) worst = difference;
  }
  return worst;
}

}  // namespace sardonyx::kernels
