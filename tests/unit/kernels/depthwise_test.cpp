#include "kernels/depthwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

std::vector<float> random_floats(std::int64_t count, std::mt19937& random) {
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = uniform(random);
  return values;
}

float tap(const DepthwiseArgs& a, bool nhwc, std::int64_t n, std::int64_t iy, std::int64_t ix,
          std::int64_t c) {
  const DepthwiseShape& s = a.shape;
  if (iy < 0 || iy >= s.in_h || ix < 0 || ix >= s.in_w) return 0;
  return nhwc ? a.x[((n * s.in_h + iy) * s.in_w + ix) * a.x_stride + c]
              : a.x[((n * s.channels + c) * s.in_h + iy) * s.in_w + ix];
}

/// The greatest difference between y and a plain loop over `weights` [channels][kh][kw].
float worst(const DepthwiseArgs& a, const std::vector<float>& weights, bool nhwc) {
  const DepthwiseShape& s = a.shape;
  float error = 0;
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t oy = 0; oy < s.out_h; ++oy) {
      for (std::int64_t ox = 0; ox < s.out_w; ++ox) {
        for (std::int64_t c = 0; c < s.channels; ++c) {
          double sum = a.bias == nullptr ? 0 : a.bias[c];
          for (std::int64_t ky = 0; ky < s.kernel_h; ++ky) {
            for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) {
              const auto w = static_cast<std::size_t>((c * s.kernel_h + ky) * s.kernel_w + kx);
              sum += static_cast<double>(weights[w]) *
                     tap(a, nhwc, n, oy * s.stride_h - s.pad_top + ky * s.dilation_h,
                         ox * s.stride_w - s.pad_left + kx * s.dilation_w, c);
            }
          }
          const float want = apply(a.activation, static_cast<float>(sum));
          const float got = nhwc ? a.y[((n * s.out_h + oy) * s.out_w + ox) * a.y_stride + c]
                                 : a.y[((n * s.channels + c) * s.out_h + oy) * s.out_w + ox];
          error = std::max(error, std::fabs(want - got));
        }
      }
    }
  }
  return error;
}

std::int64_t pick(std::mt19937& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

DepthwiseShape random_shape(std::mt19937& random) {
  DepthwiseShape s;
  s.batch = pick(random, 1, 2);
  s.channels = pick(random, 1, 70);
  s.in_h = pick(random, 1, 12);
  s.in_w = pick(random, 1, 40);
  s.kernel_h = pick(random, 1, 7);
  s.kernel_w = pick(random, 1, 8);
  s.stride_h = pick(random, 1, 3);
  s.stride_w = pick(random, 1, 3);
  s.dilation_h = pick(random, 1, 2);
  s.dilation_w = random() % 3 == 0 ? 2 : 1;
  s.pad_top = pick(random, 0, 3);
  s.pad_left = pick(random, 0, 5);
  s.out_h = pick(random, 1, 8);
  s.out_w = pick(random, 0, s.in_w / s.stride_w + 4);
  return s;
}

}  // namespace

TEST_CASE("depthwise convolution equals a plain loop for random shapes, in both layouts") {
  const Activation activations[] = {{},
                                    {ActivationKind::Relu, 0, 0},
                                    {ActivationKind::Clip, 0, 6},
                                    {ActivationKind::HardSwish, 0, 0},
                                    {ActivationKind::Silu, 0, 0}};
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(5);
    for (int round = 0; round < 300; ++round) {
      DepthwiseArgs args;
      args.shape = random_shape(random);
      const DepthwiseShape& s = args.shape;
      const std::int64_t taps = s.kernel_h * s.kernel_w;
      const auto weights = random_floats(s.channels * taps, random);
      const auto bias = random_floats(s.channels, random);
      args.bias = round % 2 == 0 ? bias.data() : nullptr;
      args.activation = activations[random() % 5];
      const bool nhwc = round % 4 != 3;
      args.x_stride = s.channels + (nhwc ? pick(random, 0, 2) : 0);
      args.y_stride = s.channels + (nhwc ? pick(random, 0, 2) : 0);
      const auto x = random_floats(s.batch * s.in_h * s.in_w * args.x_stride, random);
      std::vector<float> y(static_cast<std::size_t>(s.batch * s.out_h * s.out_w * args.y_stride),
                           99);
      std::vector<float> packed(weights.size());
      pack_depthwise_weights(weights.data(), s.channels, taps, packed.data());
      args.x = x.data();
      args.y = y.data();
      args.weights = nhwc ? packed.data() : weights.data();
      const std::int64_t count = nhwc ? s.batch * s.out_h : s.batch * s.channels;
      const auto run = nhwc ? depthwise_table(isa).nhwc_rows : depthwise_table(isa).nchw_planes;
      run(args, 0, count / 2);
      run(args, count / 2, count);
      CHECK(worst(args, weights, nhwc) < 2e-5F);
      for (std::size_t i = 0; nhwc && i < y.size(); ++i) {
        if (static_cast<std::int64_t>(i) % args.y_stride >= s.channels) REQUIRE(y[i] == 99);
      }
    }
  }
}
