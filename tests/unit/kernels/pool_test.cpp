#include "kernels/pool.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "unit/kernels/conv_support.h"
#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

PoolShape random_shape(std::mt19937& random) {
  PoolShape s;
  const std::int64_t rank = pick(random, 1, 3);
  s.batch = pick(random, 1, 2);
  s.channels = pick(random, 1, 90);
  for (std::int64_t i = 3 - rank; i < 3; ++i) {
    const auto a = static_cast<std::size_t>(i);
    s.in[a] = pick(random, 1, rank == 1 ? 60 : 12);
    s.kernel[a] = pick(random, 1, 5);
    s.stride[a] = pick(random, 1, 3);
    s.dilation[a] = random() % 3 == 0 ? 2 : 1;
    s.pad[a] = pick(random, 0, 3);
    s.pad_end[a] = pick(random, 0, 3);
    s.out[a] = pick(random, 1, s.in[a] / s.stride[a] + 2);
  }
  return s;
}

struct Plain {
  double sum = 0;
  float max = -INFINITY;
  std::int64_t counted = 0, padded = 0;
};

/// Everything about one window of plane `x`, by plain loops.
template <typename T>
Plain plain_window(const PoolShape& s, const T* x, std::int64_t o) {
  Plain plain;
  const std::int64_t at[] = {o / s.out[2] / s.out[1], o / s.out[2] % s.out[1], o % s.out[2]};
  for (std::int64_t t = 0; t < s.kernel[0] * s.kernel[1] * s.kernel[2]; ++t) {
    const std::int64_t k[] = {t / s.kernel[2] / s.kernel[1], t / s.kernel[2] % s.kernel[1],
                              t % s.kernel[2]};
    std::int64_t p[3];
    bool inside = true;
    bool padded = true;
    for (std::size_t a = 0; a < 3; ++a) {
      p[a] = at[a] * s.stride[a] - s.pad[a] + k[a] * s.dilation[a];
      inside = inside && p[a] >= 0 && p[a] < s.in[a];
      padded = padded && p[a] < s.in[a] + s.pad_end[a];
    }
    plain.padded += padded ? 1 : 0;
    if (!inside) continue;
    const auto value = static_cast<float>(x[(p[0] * s.in[1] + p[1]) * s.in[2] + p[2]]);
    ++plain.counted;
    plain.sum += value;
    if (std::isnan(value) || value > plain.max) plain.max = std::isnan(plain.max) ? NAN : value;
  }
  return plain;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

TEST_CASE("float pooling equals plain loops in both layouts, and NaN wins every maximum") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(31);
    for (int round = 0; round < 200; ++round) {
      PoolArgs args;
      args.shape = random_shape(random);
      const PoolShape& s = args.shape;
      auto first = random_floats(s.batch * s.channels * s.in_pixels(), random);
      std::vector<float> with_nan = first;
      for (int i = 0; i < 3; ++i) with_nan[random() % with_nan.size()] = NAN;
      args.x_stride = s.channels + pick(random, 0, 2);
      args.y_stride = s.channels + pick(random, 0, 2);
      args.count_padding = round % 2 == 0;
      const std::int64_t planes = s.batch * s.channels;
      const auto last = channels_last(first, s.batch, s.channels, s.in_pixels(), args.x_stride);
      const auto last_nan =
          channels_last(with_nan, s.batch, s.channels, s.in_pixels(), args.x_stride);
      std::vector<float> max_first(static_cast<std::size_t>(planes * s.out_pixels()));
      std::vector<float> average_first = max_first;
      std::vector<float> max_last(static_cast<std::size_t>(s.batch * s.out_pixels() *
                                                           args.y_stride), 55);
      std::vector<float> average_last = max_last;
      const PoolTable& table = pool_table(isa);
      const auto call = [&](const std::vector<float>& x, std::vector<float>& y) -> PoolArgs& {
        args.x = x.data();
        args.y = y.data();
        return args;
      };
      table.max_nchw_f32(call(with_nan, max_first), 0, planes);
      table.average_nchw_f32(call(first, average_first), 0, planes);
      table.max_nhwc_f32(call(last_nan, max_last), 0, s.out_rows(), 0, s.channels);
      const std::int64_t half = s.channels / 2;
      table.average_nhwc_f32(call(last, average_last), 0, s.out_rows(), 0, half);
      table.average_nhwc_f32(call(last, average_last), 0, s.out_rows(), half, s.channels);
      bool right = true;
      for (std::int64_t i = 0; i < planes * s.out_pixels(); ++i) {
        const std::int64_t plane = i / s.out_pixels();
        const std::int64_t o = i % s.out_pixels();
        const auto from = static_cast<std::size_t>(plane * s.in_pixels());
        const Plain max = plain_window(s, &with_nan[from], o);
        const Plain sum = plain_window(s, &first[from], o);
        const std::int64_t by = args.count_padding ? sum.padded : sum.counted;
        const auto average = static_cast<float>(by == 0 ? 0 : sum.sum / static_cast<double>(by));
        const auto at = static_cast<std::size_t>(i);
        const auto at_last = static_cast<std::size_t>(
            (plane / s.channels * s.out_pixels() + o) * args.y_stride + plane % s.channels);
        right = right && same(max_first[at], max.max) && same(max_last[at_last], max.max) &&
                std::fabs(average_first[at] - average) < 1e-5F &&
                std::fabs(average_last[at_last] - average) < 1e-5F;
      }
      CHECK(right);
    }
  }
}

TEST_CASE("byte maxima equal plain loops, signed and unsigned, in both layouts") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(32);
    for (int round = 0; round < 60; ++round) {
      PoolArgs args;
      args.shape = random_shape(random);
      const PoolShape& s = args.shape;
      const std::int64_t planes = s.batch * s.channels;
      std::vector<std::uint8_t> x(static_cast<std::size_t>(planes * s.in_pixels()));
      for (auto& value : x) value = static_cast<std::uint8_t>(random());
      std::vector<std::uint8_t> x_last(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const auto plane = static_cast<std::int64_t>(i) / s.in_pixels();
        x_last[static_cast<std::size_t>((plane / s.channels * s.in_pixels() +
                                         static_cast<std::int64_t>(i) % s.in_pixels()) *
                                            s.channels + plane % s.channels)] = x[i];
      }
      args.x_stride = args.y_stride = s.channels;
      std::vector<std::uint8_t> y(static_cast<std::size_t>(planes * s.out_pixels()));
      std::vector<std::uint8_t> y_last = y;
      const PoolTable& table = pool_table(isa);
      const bool is_signed = round % 2 == 0;
      args.x = x.data();
      args.y = y.data();
      (is_signed ? table.max_nchw_s8 : table.max_nchw_u8)(args, 0, planes);
      args.x = x_last.data();
      args.y = y_last.data();
      (is_signed ? table.max_nhwc_s8 : table.max_nhwc_u8)(args, 0, s.out_rows(), 0, s.channels);
      bool right = true;
      for (std::int64_t i = 0; i < planes * s.out_pixels(); ++i) {
        const std::int64_t plane = i / s.out_pixels();
        const std::int64_t o = i % s.out_pixels();
        const auto from = static_cast<std::size_t>(plane * s.in_pixels());
        const Plain want =
            is_signed ? plain_window(s, reinterpret_cast<const std::int8_t*>(&x[from]), o)
                      : plain_window(s, &x[from], o);
        const int empty = is_signed ? -128 : 0;
        const int value = want.counted == 0 ? empty : static_cast<int>(want.max);
        const auto at_last = static_cast<std::size_t>(
            (plane / s.channels * s.out_pixels() + o) * s.channels + plane % s.channels);
        right = right && y[static_cast<std::size_t>(i)] == static_cast<std::uint8_t>(value) &&
                y_last[at_last] == static_cast<std::uint8_t>(value);
      }
      CHECK(right);
    }
  }
}

TEST_CASE("max pooling tells where each maximum lies, in either order of counting") {
  PoolArgs args;
  args.shape.channels = 2;
  args.shape.in = {1, 2, 3};
  args.shape.out = {1, 1, 2};
  args.shape.kernel = {1, 2, 2};
  const std::vector<float> x = {1, 5, 2, 4, 5, 6, -1, -2, NAN, -3, NAN, -9};
  std::vector<float> y(4);
  std::vector<std::int64_t> indices(4);
  args.x = x.data();
  args.y = y.data();
  max_pool_nchw_f32_indices(args, false, indices.data(), 0, 2);
  CHECK(y[0] == 5);
  CHECK(y[1] == 6);
  CHECK(std::isnan(y[2]));
  CHECK(indices == std::vector<std::int64_t>{1, 5, 10, 8});
  max_pool_nchw_f32_indices(args, true, indices.data(), 0, 2);
  CHECK(indices == std::vector<std::int64_t>{2, 5, 9, 10});
}
