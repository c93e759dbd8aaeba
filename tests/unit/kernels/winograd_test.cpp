#include "kernels/winograd.h"

#include <doctest/doctest.h>

#include "unit/kernels/conv_support.h"
#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

TEST_CASE("Winograd convolution equals plain loops for random shapes, whole and in pieces") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(71);
    for (int round = 0; round < 80; ++round) {
      ConvShape s;
      s.batch = pick(random, 1, 2);
      s.in_channels = pick(random, 1, 40);
      s.out_channels = pick(random, 1, random() % 3 == 0 ? 100 : 20);
      s.in = {1, pick(random, 1, 30), pick(random, 1, 30)};
      s.kernel = {1, 3, 3};
      s.pad = {0, pick(random, 0, 2), pick(random, 0, 2)};
      s.out = {1, pick(random, 1, s.in[1] + 3), pick(random, 1, s.in[2] + 3)};
      CHECK(winograd_fits(s));
      const WinogradPlan plan = plan_winograd(s, isa);
      const auto x = random_floats(s.batch * s.in_channels * s.in_pixels(), random);
      const auto w = random_floats(s.out_channels * s.in_channels * 9, random);
      const auto bias = random_floats(s.out_channels, random);
      auto right = plain_conv(s, x, w, bias.data());
      const auto added = random_floats(static_cast<std::int64_t>(right.size()), random);
      for (std::size_t i = 0; i < right.size(); ++i) {
        right[i] = std::max(0.0F, right[i] + added[i]);
      }
      ConvArgs args;
      args.x_stride = s.in_channels + pick(random, 0, 2);
      args.y_stride = s.out_channels + pick(random, 0, 2);
      const auto x_last = channels_last(x, s.batch, s.in_channels, s.in_pixels(), args.x_stride);
      const auto residual =
          channels_last(added, s.batch, s.out_channels, s.out_pixels(), s.out_channels);
      const auto want =
          channels_last(right, s.batch, s.out_channels, s.out_pixels(), args.y_stride, 44);
      std::vector<float> packed(static_cast<std::size_t>(winograd_packed_floats(plan)));
      pack_winograd_weights(plan, w.data(), 0, plan.panels / 2, packed.data());
      pack_winograd_weights(plan, w.data(), plan.panels / 2, plan.panels, packed.data());
      std::vector<float> y(want.size(), 44);
      args.x = x_last.data();
      args.packed = packed.data();
      args.y = y.data();
      args.epilogue.bias = bias.data();
      args.epilogue.residual = residual.data();
      args.epilogue.residual_stride = s.out_channels;
      args.epilogue.activation.kind = ActivationKind::Relu;
      Scratch scratch(plan.scratch_bytes);
      conv_winograd(plan, args, 0, plan.units, 0, plan.panels, scratch.get());
      CHECK(worst_difference(y, want) < 2e-4F);
      std::vector<float> pieces(want.size(), 44);
      args.y = pieces.data();
      for (std::int64_t p = 0; p < plan.panels; ++p) {
        conv_winograd(plan, args, 0, plan.units / 2, p, p + 1, scratch.get());
        conv_winograd(plan, args, plan.units / 2, plan.units, p, p + 1, scratch.get());
      }
      CHECK(pieces == y);
    }
  }
}

TEST_CASE("Winograd convolution of 128 channels is exact to a few parts in a million") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(72);
    std::normal_distribution<float> normal;
    ConvShape s;
    s.in_channels = s.out_channels = 128;
    s.in = s.out = {1, 12, 12};
    s.kernel = {1, 3, 3};
    s.pad = {0, 1, 1};
    std::vector<float> x(128 * 144);
    std::vector<float> w(128 * 128 * 9);
    for (float& value : x) value = normal(random);
    for (float& value : w) value = normal(random) / 10;
    const auto want = channels_last(plain_conv(s, x, w, nullptr), 1, 128, 144, 128);
    const WinogradPlan plan = plan_winograd(s, isa);
    std::vector<float> packed(static_cast<std::size_t>(winograd_packed_floats(plan)));
    pack_winograd_weights(plan, w.data(), 0, plan.panels, packed.data());
    const auto x_last = channels_last(x, 1, 128, 144, 128);
    std::vector<float> y(want.size());
    ConvArgs args;
    args.x = x_last.data();
    args.packed = packed.data();
    args.y = y.data();
    args.x_stride = args.y_stride = 128;
    Scratch scratch(plan.scratch_bytes);
    conv_winograd(plan, args, 0, plan.units, 0, plan.panels, scratch.get());
    CHECK(worst_difference(y, want) < 3e-5F);
  }
}

TEST_CASE("strides, dilations, groups and other kernels are not Winograd's") {
  ConvShape s;
  s.in_channels = s.out_channels = 4;
  s.in = s.out = {1, 8, 8};
  s.kernel = {1, 3, 3};
  CHECK(winograd_fits(s));
  ConvShape other = s;
  other.stride = {1, 2, 1};
  CHECK(!winograd_fits(other));
  other = s;
  other.dilation = {1, 1, 2};
  CHECK(!winograd_fits(other));
  other = s;
  other.groups = 2;
  CHECK(!winograd_fits(other));
  other = s;
  other.kernel = {1, 1, 3};
  CHECK(!winograd_fits(other));
  other = s;
  other.kernel = {3, 3, 3};
  CHECK(!winograd_fits(other));
}
