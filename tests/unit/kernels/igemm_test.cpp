#include "kernels/igemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

constexpr ActivationKind kKinds[] = {
    ActivationKind::None,        ActivationKind::Relu,      ActivationKind::Clip,
    ActivationKind::LeakyRelu,   ActivationKind::HardSigmoid, ActivationKind::HardSwish,
    ActivationKind::Sigmoid,     ActivationKind::Silu,      ActivationKind::Tanh,
    ActivationKind::Gelu,        ActivationKind::GeluTanh};

// A product with `taps` pointers a row, some of them padding, against a plain loop.
struct Case {
  std::int64_t rows, columns, taps, depth;
  Activation activation;
  bool accumulate, bias, residual;
  float alpha;
};

void check_case(const IgemmTable& table, const Case& c, Random& random) {
  constexpr std::int64_t kOffset = 5;
  const auto a = random.floats((c.rows + c.taps) * (c.depth + 1) + kOffset + 1);
  const std::vector<float> zero(static_cast<std::size_t>(c.depth + 1));
  std::vector<const float*> pointers;
  for (std::int64_t tap = 0; tap < c.taps; ++tap) {
    for (std::int64_t row = 0; row < c.rows; ++row) {
      const bool padding = random.upto(4) == 0;
      pointers.push_back(padding ? zero.data() : a.data() + (row + tap) * c.depth);
    }
    pointers.push_back(nullptr);  // the gap that a_tap_stride skips
  }
  // [column][depth][tap], as weights of a convolution are.
  const auto b = random.floats(c.columns * c.depth * c.taps);
  const IgemmSource source{b.data(), c.columns, c.taps, c.depth, c.depth * c.taps, c.taps, 1};
  std::vector<float> packed(
      static_cast<std::size_t>(igemm_packed_floats(table, c.columns, c.taps * c.depth)), NAN);
  igemm_pack(table, source, 0, igemm_panels(table, c.columns), packed.data());

  const std::int64_t stride = c.columns + 3;
  const auto before = random.floats(c.rows * stride + 1);
  const auto bias = random.floats(c.columns);
  const auto residual = random.floats(c.rows * (c.columns + 1));
  auto y = before;
  IgemmArgs args;
  args.rows = c.rows, args.columns = c.columns, args.taps = c.taps, args.depth = c.depth;
  args.a = pointers.data(), args.a_tap_stride = c.rows + 1;
  args.a_offset = kOffset, args.a_zero = zero.data();
  args.b = packed.data(), args.b_depth = c.taps * c.depth;
  args.c = y.data(), args.c_stride = stride;
  args.epilogue = {c.alpha, c.accumulate, c.bias ? bias.data() : nullptr,
                   c.residual ? residual.data() : nullptr, c.columns + 1, c.activation};
  table.run(args);

  for (std::int64_t row = 0; row < c.rows; ++row) {
    for (std::int64_t j = 0; j < stride; ++j) {
      if (j >= c.columns) {
        REQUIRE(y[row * stride + j] == before[row * stride + j]);
        continue;
      }
      double sum = 0;
      double terms = 1;
      for (std::int64_t tap = 0; tap < c.taps; ++tap) {
        const float* p = pointers[tap * (c.rows + 1) + row];
        if (p != zero.data()) p += kOffset;
        for (std::int64_t k = 0; k < c.depth; ++k) {
          const double term = double(p[k]) * b[(j * c.depth + k) * c.taps + tap];
          sum += term;
          terms += std::abs(term);
        }
      }
      sum *= c.alpha;
      if (c.accumulate) sum += before[row * stride + j];
      if (c.bias) sum += bias[j];
      if (c.residual) sum += residual[row * (c.columns + 1) + j];
      const float expected = apply(c.activation, static_cast<float>(sum));
      const double error = std::abs(double(y[row * stride + j]) - expected);
      REQUIRE(error <= 2e-6 * (terms + std::abs(expected)));
    }
  }
}

}  // namespace

TEST_CASE("igemm equals a plain loop for random shapes, paddings and epilogues on every isa") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const IgemmTable& table = igemm_table(isa);
    REQUIRE(table.isa == isa);
    Random random;
    for (int i = 0; i < 300; ++i) {
      Case c;
      c.rows = random.upto(20), c.columns = random.upto(110);
      c.taps = random.upto(4), c.depth = random.upto(24);
      c.activation = {kKinds[random.upto(10)], -0.3F, 0.7F};
      c.accumulate = random.upto(1) == 1;
      c.bias = random.upto(1) == 1, c.residual = random.upto(1) == 1;
      c.alpha = random.upto(1) == 1 ? 1.0F : -0.75F;
      CAPTURE(i);
      CAPTURE(c.rows);
      CAPTURE(c.columns);
      CAPTURE(c.taps);
      CAPTURE(c.depth);
      CAPTURE(static_cast<int>(c.activation.kind));
      check_case(table, c, random);
    }
  }
}

TEST_CASE("igemm sums long products in parts, with bias and activation applied once") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    Random random;
    for (const auto& [taps, depth] : {std::pair{1, 767}, {1, 768}, {1, 1031}, {9, 128}, {9, 131},
                                     {2, 900}, {900, 1}, {25, 100}, {3, 511}}) {
      CAPTURE(taps);
      CAPTURE(depth);
      const Activation activation{ActivationKind::HardSigmoid, 0.01F, 0.5F};
      check_case(igemm_table(isa), {13, 35, taps, depth, activation, true, true, true, 0.5F},
                 random);
    }
  }
}

TEST_CASE("igemm gives the same bits however rows, columns and depth are split") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const IgemmTable& table = igemm_table(isa);
    Random random;
    const std::int64_t m = 37, n = 3 * table.tile_columns + 5, k = 70;
    const auto a = random.floats(m * k);
    const auto b = random.floats(k * n);
    std::vector<const float*> pointers;
    for (std::int64_t row = 0; row < m; ++row) pointers.push_back(a.data() + row * k);
    std::vector<float> packed(static_cast<std::size_t>(igemm_packed_floats(table, n, k)));
    igemm_pack(table, {b.data(), n, 1, k, 1, n, 0}, 0, igemm_panels(table, n), packed.data());
    std::vector<float> whole(m * n), parts(m * n);
    IgemmArgs args;
    args.rows = m, args.columns = n, args.depth = k, args.a = pointers.data();
    args.b = packed.data(), args.b_depth = k, args.c = whole.data(), args.c_stride = n;
    table.run(args);

    const std::int64_t row_cuts[] = {0, 1, 12, 29, m};
    for (int i = 0; i < 4; ++i) {
      for (std::int64_t panel = 0; panel < 4; ++panel) {
        const std::int64_t column = panel * table.tile_columns;
        args.rows = row_cuts[i + 1] - row_cuts[i];
        args.columns = std::min<std::int64_t>(table.tile_columns, n - column);
        args.a = pointers.data() + row_cuts[i];
        args.b = packed.data() + igemm_panel_offset(table, panel, k);
        args.c = parts.data() + row_cuts[i] * n + column;
        table.run(args);
      }
    }
    CHECK(whole == parts);

    // In two passes over the depth, the second adding to the first: equal to rounding.
    std::vector<const float*> shifted;
    for (const float* p : pointers) shifted.push_back(p + 30);
    args.rows = m, args.columns = n, args.b = packed.data(), args.c = parts.data();
    args.a = pointers.data(), args.depth = 30;
    table.run(args);
    args.a = shifted.data(), args.depth = k - 30, args.b_first = 30;
    args.epilogue.accumulate = true;
    table.run(args);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      REQUIRE(std::abs(whole[i] - parts[i]) < 1e-4F);
    }
  }
}

TEST_CASE("igemm's activations agree with the C library and keep a NaN") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const IgemmTable& table = igemm_table(isa);
    std::vector<float> x;
    for (float v = -110; v < 110; v += 0.03125F * 0.77F) x.push_back(v);
    for (float v = 1e-8F; v < 1; v *= 1.7F) x.push_back(v), x.push_back(-v);
    x.push_back(0), x.push_back(NAN);
    for (const float v : {1e4F, 1e20F, 3e38F, INFINITY}) x.push_back(v), x.push_back(-v);
    for (const ActivationKind kind : kKinds) {
      const Activation activation{kind, -0.3F, 0.7F};
      std::vector<float> y(x.size());
      IgemmArgs args;
      args.rows = 1, args.columns = static_cast<std::int64_t>(x.size());
      args.taps = 0, args.c = y.data(), args.epilogue.bias = x.data();
      args.epilogue.activation = activation;
      table.run(args);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double expected = apply(activation, x[i]);
        CAPTURE(static_cast<int>(kind));
      CAPTURE(x[i]);
      CAPTURE(y[i]);
      CAPTURE(expected);
        if (std::isnan(expected)) {
          REQUIRE(std::isnan(y[i]));
        } else if (std::isinf(expected)) {
          REQUIRE(y[i] == expected);
        } else {
          const bool tail = kind >= ActivationKind::Gelu && x[i] < -2;
          const bool hard =
              kind == ActivationKind::HardSigmoid || kind == ActivationKind::HardSwish;
          const double scale = std::abs(expected) + (hard ? std::abs(x[i]) : 0);
          REQUIRE(std::abs(y[i] - expected) <= (tail ? 1e-5 : 2e-6) * scale + 1e-30);
        }
      }
    }
  }
}
