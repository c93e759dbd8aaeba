#include "kernels/conv.h"

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
  s.groups = random() % 3 == 0 ? pick(random, 2, 4) : 1;
  s.in_channels = s.groups * pick(random, 1, random() % 4 == 0 ? 80 : 9);
  s.out_channels = s.groups * pick(random, 1, random() % 4 == 0 ? 100 : 20);
  for (std::int64_t i = 3 - rank; i < 3; ++i) {
    const auto a = static_cast<std::size_t>(i);
    s.in[a] = pick(random, 1, rank == 1 ? 150 : 14);
    s.kernel[a] = pick(random, 1, rank == 3 ? 3 : 5);
    s.stride[a] = pick(random, 1, 3);
    s.dilation[a] = random() % 3 == 0 ? 2 : 1;
    s.pad[a] = pick(random, 0, 4);
    s.out[a] = pick(random, 1, s.in[a] / s.stride[a] + 3);
  }
  return s;
}

struct Case {
  ConvShape shape;
  std::vector<float> x, weights, bias, residual, right;
};
Case random_case(std::mt19937& random) {
  Case c;
  c.shape = random_shape(random);
  const ConvShape& s = c.shape;
  c.x = random_floats(s.batch * s.in_channels * s.in_pixels(), random);
  c.weights = random_floats(s.out_channels * s.group_in() * s.taps(), random);
  c.bias = random_floats(s.out_channels, random);
  c.right = plain_conv(s, c.x, c.weights, c.bias.data());
  c.residual = random_floats(static_cast<std::int64_t>(c.right.size()), random);
  for (std::size_t i = 0; i < c.right.size(); ++i) {
    c.right[i] = std::max(0.0F, c.right[i] + c.residual[i]);
  }
  return c;
}

}  // namespace

TEST_CASE("channels-last convolution equals plain loops, from packed and from source weights") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(21);
    for (int round = 0; round < 150; ++round) {
      Case c = random_case(random);
      c.shape.x_gaps = random() % 3 == 0;
      const ConvShape& s = c.shape;
      const ConvPlan plan = plan_conv(s, isa);
      ConvArgs args;
      args.x_stride = s.in_channels + (s.x_gaps ? 3 : 0);
      args.y_stride = s.out_channels + pick(random, 0, 3);
      const auto x = channels_last(c.x, s.batch, s.in_channels, s.in_pixels(), args.x_stride);
      const auto residual =
          channels_last(c.residual, s.batch, s.out_channels, s.out_pixels(), s.out_channels);
      const auto right =
          channels_last(c.right, s.batch, s.out_channels, s.out_pixels(), args.y_stride, 77);
      std::vector<float> y(right.size(), 77);
      std::vector<float> packed(static_cast<std::size_t>(conv_packed_floats(plan)));
      pack_conv_weights(plan, c.weights.data(), 0, plan.panels / 2, packed.data());
      pack_conv_weights(plan, c.weights.data(), plan.panels / 2, plan.panels, packed.data());
      args.x = x.data();
      args.y = y.data();
      args.epilogue.bias = c.bias.data();
      args.epilogue.residual = residual.data();
      args.epilogue.residual_stride = s.out_channels;
      args.epilogue.activation.kind = ActivationKind::Relu;
      args.packed = packed.data();
      Scratch scratch(plan.scratch_bytes);
      conv_nhwc(plan, args, 0, plan.tiles, 0, plan.panels, scratch.get());
      CHECK(worst_difference(y, right) < 1e-4F);
      std::vector<float> whole(right.size(), 77);
      whole.swap(y);
      args.y = y.data();
      args.packed = nullptr;
      args.source = c.weights.data();
      Scratch more(plan.source_scratch_bytes);
      for (std::int64_t p = 0; p < plan.panels; ++p) {
        conv_nhwc(plan, args, 0, plan.tiles / 2, p, p + 1, more.get());
        conv_nhwc(plan, args, plan.tiles / 2, plan.tiles, p, p + 1, more.get());
      }
      CHECK(y == whole);
    }
  }
}

TEST_CASE("a convolution whose output rows lie apart writes nothing between them") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(22);
    for (int round = 0; round < 60; ++round) {
      Case c = random_case(random);
      const ConvShape& s = c.shape;
      const auto right = plain_conv(s, c.x, c.weights, nullptr);
      const ConvPlan plan = plan_conv_rows_apart(s, isa);
      ConvArgs args;
      args.x_stride = s.in_channels;
      args.y_stride = 2 * s.out_channels;
      args.y_row_stride = 3 * s.out[2] * args.y_stride;
      args.y_plane_stride = s.out[1] * args.y_row_stride + 5;
      args.y_image_stride = s.out[0] * args.y_plane_stride + 1;
      const auto x = channels_last(c.x, s.batch, s.in_channels, s.in_pixels(), args.x_stride);
      std::vector<float> y(static_cast<std::size_t>(s.batch * args.y_image_stride), 77);
      std::vector<float> want = y;
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(right.size()); ++i) {
        const std::int64_t o = i % s.out_pixels();
        const std::int64_t row = o / s.out[2];
        const std::int64_t to = i / s.out_pixels() / s.out_channels * args.y_image_stride +
                                row / s.out[1] * args.y_plane_stride +
                                row % s.out[1] * args.y_row_stride + o % s.out[2] * args.y_stride +
                                i / s.out_pixels() % s.out_channels;
        want[static_cast<std::size_t>(to)] = right[static_cast<std::size_t>(i)];
      }
      args.x = x.data();
      args.y = y.data();
      args.source = c.weights.data();
      Scratch scratch(plan.source_scratch_bytes);
      conv_nhwc(plan, args, 0, plan.tiles, 0, plan.panels, scratch.get());
      CHECK(worst_difference(y, want) < 1e-4F);
    }
  }
}

TEST_CASE("channels-first convolution equals plain loops") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(23);
    for (int round = 0; round < 150; ++round) {
      const Case c = random_case(random);
      const ConvNchwPlan plan = plan_conv_nchw(c.shape, isa);
      std::vector<float> y(c.right.size(), NAN);
      ConvNchwArgs args;
      args.x = c.x.data();
      args.weights = c.weights.data();
      args.bias = c.bias.data();
      args.residual = c.residual.data();
      args.y = y.data();
      args.activation.kind = ActivationKind::Relu;
      Scratch scratch(plan.scratch_bytes);
      conv_nchw(plan, args, 0, plan.tiles / 3, scratch.get());
      conv_nchw(plan, args, plan.tiles / 3, plan.tiles, scratch.get());
      CHECK(worst_difference(y, c.right) < 1e-4F);
      args.bias = nullptr;
      args.residual = nullptr;
      args.activation = {};
      conv_nchw(plan, args, 0, plan.tiles, scratch.get());
      CHECK(worst_difference(y, plain_conv(c.shape, c.x, c.weights, nullptr)) < 1e-4F);
    }
  }
}

TEST_CASE("a convolution without images, pixels, inputs or outputs has nothing or zeros to write") {
  for (const Isa isa : supported_isas()) {
    ConvShape s;
    s.in_channels = 3;
    s.out_channels = 4;
    s.in = {1, 5, 5};
    s.kernel = {1, 3, 3};
    s.out = {1, 0, 3};
    CHECK(plan_conv(s, isa).tiles == 0);
    CHECK(plan_conv_nchw(s, isa).tiles == 0);
    s.out = {1, 3, 3};
    s.batch = 0;
    CHECK(plan_conv(s, isa).tiles == 0);
    s.batch = 1;
    s.in_channels = 0;
    const std::vector<float> bias = {1, 2, 3, 4};
    std::vector<float> y(36, NAN);
    ConvArgs args;
    args.y = y.data();
    args.y_stride = 4;
    args.epilogue.bias = bias.data();
    const ConvPlan plan = plan_conv(s, isa);
    Scratch scratch(plan.source_scratch_bytes);
    conv_nhwc(plan, args, 0, plan.tiles, 0, plan.panels, scratch.get());
    for (std::size_t i = 0; i < y.size(); ++i) CHECK(y[i] == bias[i % 4]);
  }
}

TEST_CASE("a kernel of any size without input channels adds nothing and takes no time") {
  for (const Isa isa : supported_isas()) {
    ConvShape s;
    s.in_channels = 0;
    s.out_channels = 2;
    s.kernel = {1, std::int64_t{1} << 40, std::int64_t{1} << 40};
    s.pad = {0, std::int64_t{1} << 39, std::int64_t{1} << 39};
    const std::vector<float> bias = {3, 4};
    std::vector<float> y(2, NAN);
    ConvArgs args;
    args.y = y.data();
    args.y_stride = 2;
    args.epilogue.bias = bias.data();
    const ConvPlan plan = plan_conv(s, isa);
    CHECK(plan.source_scratch_bytes < 4096);
    Scratch scratch(plan.source_scratch_bytes);
    conv_nhwc(plan, args, 0, plan.tiles, 0, plan.panels, scratch.get());
    CHECK(y == bias);
    ConvNchwArgs first;
    first.y = y.data();
    first.bias = bias.data();
    y = {NAN, NAN};
    const ConvNchwPlan nchw = plan_conv_nchw(s, isa);
    Scratch more(nchw.scratch_bytes);
    conv_nchw(nchw, first, 0, nchw.tiles, more.get());
    CHECK(y == bias);
  }
}
