#include "kernels/resize.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "unit/kernels/conv_support.h"
#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

std::vector<std::int64_t> random_indices(std::int64_t count, std::int64_t in,
                                         std::mt19937& random) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  for (auto& index : indices) index = pick(random, 0, in - 1);
  return indices;
}

}  // namespace

TEST_CASE("an axis is resized by weighted sums of its elements") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(51);
    for (int round = 0; round < 100; ++round) {
      ResizeAxisArgs args;
      const std::int64_t outer = pick(random, 0, 3);
      args.in = pick(random, 1, 9);
      args.out = pick(random, 1, 12);
      args.inner = round % 3 == 0 ? 1 : pick(random, 1, 70);
      args.taps = pick(random, 1, 5);
      const auto x = random_floats(outer * args.in * args.inner, random);
      const auto indices = random_indices(args.out * args.taps, args.in, random);
      const auto weights = random_floats(args.out * args.taps, random);
      std::vector<float> y(static_cast<std::size_t>(outer * args.out * args.inner), NAN);
      args.x = x.data();
      args.y = y.data();
      args.indices = indices.data();
      args.weights = weights.data();
      const std::int64_t rows = outer * args.out;
      resize_table(isa).axis_f32(args, 0, rows / 2);
      resize_table(isa).axis_f32(args, rows / 2, rows);
      std::vector<float> want;
      for (std::int64_t i = 0; i < rows * args.inner; ++i) {
        const std::int64_t row = i / args.inner;
        double sum = 0;
        for (std::int64_t t = 0; t < args.taps; ++t) {
          const auto tap = static_cast<std::size_t>(row % args.out * args.taps + t);
          const std::int64_t from =
              (row / args.out * args.in + indices[tap]) * args.inner + i % args.inner;
          sum += static_cast<double>(weights[tap]) * x[static_cast<std::size_t>(from)];
        }
        want.push_back(static_cast<float>(sum));
      }
      CHECK(worst_difference(y, want) < 1e-5F);
    }
  }
}

TEST_CASE("two taps in height and width give the sum over four pixels") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(52);
    for (int round = 0; round < 100; ++round) {
      ResizeLinearArgs args;
      const std::int64_t batch = pick(random, 1, 2);
      args.channels = round % 3 == 0 ? 1 : pick(random, 1, 70);
      args.in_h = pick(random, 1, 5);
      args.in_w = pick(random, 1, 6);
      args.out_h = pick(random, 1, 7);
      args.out_w = pick(random, 0, 9);
      const auto x = random_floats(batch * args.in_h * args.in_w * args.channels, random);
      const auto rows = random_indices(2 * args.out_h, args.in_h, random);
      const auto columns = random_indices(2 * args.out_w, args.in_w, random);
      const auto row_weights = random_floats(2 * args.out_h, random);
      const auto column_weights = random_floats(2 * args.out_w, random);
      std::vector<float> y(
          static_cast<std::size_t>(batch * args.out_h * args.out_w * args.channels), NAN);
      args.x = x.data();
      args.y = y.data();
      args.y_indices = rows.data();
      args.y_weights = row_weights.data();
      args.x_indices = columns.data();
      args.x_weights = column_weights.data();
      resize_table(isa).linear_f32(args, 0, 1);
      resize_table(isa).linear_f32(args, 1, batch * args.out_h);
      std::vector<float> want;
      for (std::size_t i = 0; i < y.size(); ++i) {
        const auto pixel = static_cast<std::int64_t>(i) / args.channels;
        const std::int64_t row = pixel / args.out_w;
        double sum = 0;
        for (std::int64_t t = 0; t < 4; ++t) {
          const auto v = static_cast<std::size_t>(row % args.out_h * 2 + t / 2);
          const auto u = static_cast<std::size_t>(pixel % args.out_w * 2 + t % 2);
          const std::int64_t from =
              ((row / args.out_h * args.in_h + rows[v]) * args.in_w + columns[u]) *
                  args.channels + static_cast<std::int64_t>(i) % args.channels;
          sum += static_cast<double>(row_weights[v]) * column_weights[u] *
                 x[static_cast<std::size_t>(from)];
        }
        want.push_back(static_cast<float>(sum));
      }
      CHECK(worst_difference(y, want) < 1e-5F);
    }
  }
}

TEST_CASE("nearest neighbours are copied for pixels of any size") {
  std::mt19937 random(53);
  for (const std::int64_t bytes : {1, 2, 4, 8, 12, 64, 128, 100}) {
    ResizeNearestArgs args;
    args.pixel_bytes = bytes;
    args.in_h = 3;
    args.in_w = 4;
    args.out_h = 6;
    args.out_w = 7;
    const std::vector<std::int64_t> rows = {0, 0, 1, 1, 2, 0};
    const auto columns = random_indices(args.out_w, args.in_w, random);
    std::vector<std::uint8_t> x(static_cast<std::size_t>(2 * 12 * bytes));
    for (auto& byte : x) byte = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> y(static_cast<std::size_t>(2 * 42 * bytes));
    args.x = x.data();
    args.y = y.data();
    args.y_indices = rows.data();
    args.x_indices = columns.data();
    resize_nearest(args, 0, 5);
    resize_nearest(args, 5, 12);
    bool right = true;
    for (std::int64_t pixel = 0; pixel < 84; ++pixel) {
      const std::int64_t from =
          (pixel / 42 * 3 + rows[static_cast<std::size_t>(pixel / 7 % 6)]) * 4 +
          columns[static_cast<std::size_t>(pixel % 7)];
      right = right && std::memcmp(&y[static_cast<std::size_t>(pixel * bytes)],
                                   &x[static_cast<std::size_t>(from * bytes)],
                                   static_cast<std::size_t>(bytes)) == 0;
    }
    CHECK(right);
  }
}
