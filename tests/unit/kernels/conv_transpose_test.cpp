#include "kernels/conv_transpose.h"

#include <doctest/doctest.h>

#include "unit/kernels/conv_support.h"
#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

ConvShape random_shape(std::mt19937& random) {
  ConvShape s;
  const std::int64_t rank = pick(random, 1, 3);
  s.batch = pick(random, 1, 2);
  s.groups = random() % 3 == 0 ? pick(random, 2, 3) : 1;
  s.in_channels = s.groups * pick(random, 1, 20);
  s.out_channels = s.groups * pick(random, 1, random() % 3 == 0 ? 60 : 9);
  for (std::int64_t i = 3 - rank; i < 3; ++i) {
    const auto a = static_cast<std::size_t>(i);
    s.in[a] = pick(random, 1, rank == 1 ? 120 : 7);
    s.kernel[a] = pick(random, 1, rank == 1 ? 12 : 4);
    s.stride[a] = pick(random, 1, rank == 1 ? 8 : 4);
    s.dilation[a] = pick(random, 1, 3);
    s.pad[a] = pick(random, 0, 3);
    const std::int64_t full = (s.in[a] - 1) * s.stride[a] + (s.kernel[a] - 1) * s.dilation[a] + 1;
    s.out[a] = std::max<std::int64_t>(1, full - s.pad[a] - pick(random, -2, 3));
  }
  return s;
}

/// By plain loops, channels first.
std::vector<float> plain(const ConvShape& s, const std::vector<float>& x,
                         const std::vector<float>& w, const std::vector<float>& bias) {
  std::vector<double> y(static_cast<std::size_t>(s.batch * s.out_channels * s.out_pixels()));
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = bias[i / static_cast<std::size_t>(s.out_pixels()) %
                static_cast<std::size_t>(s.out_channels)];
  }
  const auto place = [&](std::int64_t from, std::int64_t tap, std::size_t a) {
    return from * s.stride[a] - s.pad[a] + tap * s.dilation[a];
  };
  for (std::int64_t i = 0; i < s.batch * s.in_channels * s.in_pixels(); ++i) {
    const std::int64_t pixel = i % s.in_pixels();
    const std::int64_t channel = i / s.in_pixels() % s.in_channels;
    const std::int64_t n = i / s.in_pixels() / s.in_channels;
    for (std::int64_t t = 0; t < s.taps(); ++t) {
      const std::int64_t z = place(pixel / s.in[2] / s.in[1], t / s.kernel[2] / s.kernel[1], 0);
      const std::int64_t v = place(pixel / s.in[2] % s.in[1], t / s.kernel[2] % s.kernel[1], 1);
      const std::int64_t u = place(pixel % s.in[2], t % s.kernel[2], 2);
      if (z < 0 || z >= s.out[0] || v < 0 || v >= s.out[1] || u < 0 || u >= s.out[2]) continue;
      for (std::int64_t c = 0; c < s.group_out(); ++c) {
        const std::int64_t out = channel / s.group_in() * s.group_out() + c;
        const auto to = static_cast<std::size_t>((n * s.out_channels + out) * s.out_pixels() +
                                                 (z * s.out[1] + v) * s.out[2] + u);
        const auto weight = static_cast<std::size_t>((channel * s.group_out() + c) * s.taps() + t);
        y[to] += static_cast<double>(x[static_cast<std::size_t>(i)]) * w[weight];
      }
    }
  }
  return {y.begin(), y.end()};
}

}  // namespace

TEST_CASE("transposed convolution equals plain loops, from packed and from source weights") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(41);
    for (int round = 0; round < 120; ++round) {
      const ConvShape s = random_shape(random);
      const auto x = random_floats(s.batch * s.in_channels * s.in_pixels(), random);
      const auto w = random_floats(s.in_channels * s.group_out() * s.taps(), random);
      const auto bias = random_floats(s.out_channels, random);
      std::vector<float> right = plain(s, x, w, bias);
      for (float& value : right) value = std::max(value, 0.0F);
      const ConvTransposePlan plan = plan_conv_transpose(s, isa);
      ConvTransposeArgs args;
      args.x_stride = s.in_channels;
      args.y_stride = s.out_channels + pick(random, 0, 2);
      const auto x_last = channels_last(x, s.batch, s.in_channels, s.in_pixels(), args.x_stride);
      const auto want =
          channels_last(right, s.batch, s.out_channels, s.out_pixels(), args.y_stride, 66);
      std::vector<float> y(want.size(), 66);
      std::vector<float> packed(static_cast<std::size_t>(conv_transpose_packed_floats(plan)));
      pack_conv_transpose_weights(plan, w.data(), packed.data());
      args.x = x_last.data();
      args.y = y.data();
      args.bias = bias.data();
      args.activation.kind = ActivationKind::Relu;
      args.packed = packed.data();
      Scratch scratch(plan.source_scratch_bytes);
      conv_transpose_nhwc(plan, args, 0, plan.units / 2, 0, plan.panels, scratch.get());
      conv_transpose_nhwc(plan, args, plan.units / 2, plan.units, 0, plan.panels, scratch.get());
      CHECK(worst_difference(y, want) < 1e-4F);
      std::vector<float> again(want.size(), 66);
      args.y = again.data();
      args.packed = nullptr;
      args.source = w.data();
      conv_transpose_nhwc(plan, args, 0, plan.units, 0, plan.panels / 2, scratch.get());
      conv_transpose_nhwc(plan, args, 0, plan.units, plan.panels / 2, plan.panels, scratch.get());
      CHECK(again == y);
    }
  }
}

TEST_CASE("a stride as long as a long kernel makes each tap a phase, found at once") {
  const std::int64_t taps = 20000;
  ConvShape s;
  s.in_channels = s.out_channels = 1;
  s.in = {1, 1, 2};
  s.kernel = {1, 1, taps};
  s.stride = {1, 1, taps};
  s.dilation = {1, 1, 3};
  s.pad = {0, 0, 1};
  s.out = {1, 1, taps};
  std::mt19937 random(43);
  const auto x = random_floats(2, random);
  const auto w = random_floats(taps, random);
  const auto want = plain(s, x, w, {0.5F});
  const ConvTransposePlan plan = plan_conv_transpose(s);
  std::vector<float> y(want.size(), NAN);
  const float bias = 0.5F;
  ConvTransposeArgs args;
  args.x = x.data();
  args.source = w.data();
  args.y = y.data();
  args.bias = &bias;
  args.x_stride = args.y_stride = 1;
  Scratch scratch(plan.source_scratch_bytes);
  conv_transpose_nhwc(plan, args, 0, plan.units, 0, plan.panels, scratch.get());
  CHECK(worst_difference(y, want) < 1e-5F);
}
