#include "kernels/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/small_floats.h"
#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

// B in a format, and the same values as floats.
struct Weights {
  std::vector<float> floats;
  std::vector<std::uint16_t> halves;
  const void* data(FloatFormat format) const {
    return format == FloatFormat::F32 ? static_cast<const void*>(floats.data()) : halves.data();
  }
};

Weights weights(Random& random, std::int64_t count, FloatFormat format) {
  Weights w{random.floats(count), {}};
  for (float& value : w.floats) {
    if (format == FloatFormat::F16) {
      w.halves.push_back(to_half(value).bits);
      value = to_float(Half{w.halves.back()});
    } else if (format == FloatFormat::BF16) {
      w.halves.push_back(to_bfloat16(value).bits);
      value = to_float(BFloat16{w.halves.back()});
    }
  }
  return w;
}

struct Product {
  GemmArgs args;
  std::vector<float> a, c, bias, residual, packed;
  Weights b;
};

Product make_product(Random& random, std::int64_t m, std::int64_t n, std::int64_t k, Isa isa,
                     bool packed) {
  Product p;
  GemmArgs& g = p.args;
  g.m = m, g.n = n, g.k = k;
  g.a_transposed = random.upto(2) == 0;
  g.b_transposed = random.upto(1) == 0;
  g.b_format = static_cast<FloatFormat>(random.upto(2));
  g.a_stride = (g.a_transposed ? m : k) + random.upto(3);
  g.b_stride = (g.b_transposed ? k : n) + random.upto(3);
  g.c_stride = n + random.upto(3);
  p.a = random.floats((g.a_transposed ? k : m) * g.a_stride);
  p.b = weights(random, (g.b_transposed ? n : k) * g.b_stride, g.b_format);
  p.c = random.floats(m * g.c_stride);
  p.bias = random.floats(n);
  p.residual = random.floats(m * n);
  g.a = p.a.data(), g.b = p.b.data(g.b_format), g.c = p.c.data();
  g.epilogue.accumulate = random.upto(3) == 0;
  g.epilogue.alpha = random.upto(1) == 0 ? 1.0F : 0.5F;
  if (random.upto(1) == 0) g.epilogue.bias = p.bias.data();
  if (random.upto(1) == 0) g.epilogue.residual = p.residual.data();
  g.epilogue.residual_stride = n;
  if (random.upto(1) == 0) g.epilogue.activation = {ActivationKind::LeakyRelu, 0.1F, 0};
  if (packed) {
    const IgemmTable& table = igemm_table(isa);
    p.packed.resize(static_cast<std::size_t>(igemm_packed_floats(table, n, k)) + 1);
    igemm_pack(table, gemm_pack_source(g), 0, igemm_panels(table, n), p.packed.data());
    g.packed_b = p.packed.data();
    g.b = nullptr;
  }
  return p;
}

// The greatest error relative to the sum of magnitudes.
double error_of(const Product& p, const std::vector<float>& y) {
  const GemmArgs& g = p.args;
  double worst = 0;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.n; ++j) {
      double sum = 0;
      double scale = 1;
      for (std::int64_t k = 0; k < g.k; ++k) {
        const float a = p.a[g.a_transposed ? k * g.a_stride + i : i * g.a_stride + k];
        const float b = p.b.floats[g.b_transposed ? j * g.b_stride + k : k * g.b_stride + j];
        sum += double(a) * b;
        scale += std::abs(double(a) * b);
      }
      sum *= g.epilogue.alpha;
      if (g.epilogue.accumulate) sum += p.c[i * g.c_stride + j];
      if (g.epilogue.bias != nullptr) sum += p.bias[j];
      if (g.epilogue.residual != nullptr) sum += p.residual[i * g.n + j];
      const double expected = apply(g.epilogue.activation, static_cast<float>(sum));
      worst = std::max(worst, std::abs(y[i * g.c_stride + j] - expected) / scale);
    }
  }
  return worst;
}

void run(GemmArgs args, std::vector<float>& y, Isa isa) {
  args.c = y.data();
  std::vector<float> scratch(gemm_scratch_bytes(args, isa) / sizeof(float));
  gemm(args, scratch.data(), isa);
}

}  // namespace

TEST_CASE("gemm equals a plain loop for random shapes, forms of A and B, and epilogues") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (int i = 0; i < 400; ++i) {
      const std::int64_t m = random.upto(i % 4 == 0 ? 40 : 10);
      const std::int64_t n = random.upto(i % 5 == 0 ? 300 : 70);
      const std::int64_t k = random.upto(i % 7 == 0 ? 900 : 50);
      const Product p = make_product(random, m, n, k, isa, random.upto(1) == 0);
      CAPTURE(isa_name(isa));
      CAPTURE(i);
      CAPTURE(m);
      CAPTURE(n);
      CAPTURE(k);
      std::vector<float> y = p.c;
      run(p.args, y, isa);
      REQUIRE(error_of(p, y) < 2e-6);
      for (std::int64_t row = 0; row < m; ++row) {
        for (std::int64_t j = n; j < p.args.c_stride; ++j) {
          REQUIRE(y[row * p.args.c_stride + j] == p.c[row * p.args.c_stride + j]);
        }
      }
    }
  }
}

TEST_CASE("gemm gives the same bits when its rows and columns are split") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (int i = 0; i < 30; ++i) {
      const std::int64_t m = 60 + random.upto(20), n = 200, k = 700 + random.upto(600);
      const Product p = make_product(random, m, n, k, isa, i % 2 == 0);
      CAPTURE(isa_name(isa));
      CAPTURE(i);
      std::vector<float> whole = p.c, parts = p.c;
      run(p.args, whole, isa);
      const std::int64_t cut = 64;
      for (const auto& [row, rows] : {std::pair<std::int64_t, std::int64_t>{0, 29}, {29, m - 29}}) {
        for (const auto& [column, columns] :
             {std::pair<std::int64_t, std::int64_t>{0, cut}, {cut, n - cut}}) {
          GemmArgs args = p.args;
          args.c = parts.data();
          args = gemm_part(args, row, rows, column, columns, isa);
          REQUIRE_FALSE(gemm_is_small(args, isa));
          std::vector<float> scratch(gemm_scratch_bytes(args, isa) / sizeof(float));
          gemm(args, scratch.data(), isa);
        }
      }
      CHECK(whole == parts);
    }
  }
}

TEST_CASE("gemm of no terms is the bias") {
  for (const Isa isa : supported_isas()) {
    for (const std::int64_t m : {1, 50}) {
      const std::vector<float> bias = {1, 2, 3};
      std::vector<float> c(3 * m, 9.0F);
      GemmArgs args;
      args.m = m, args.n = 3, args.c = c.data(), args.c_stride = 3;
      args.epilogue.bias = bias.data();
      std::vector<float> scratch(gemm_scratch_bytes(args, isa) / sizeof(float));
      gemm(args, scratch.data(), isa);
      for (std::int64_t i = 0; i < 3 * m; ++i) CHECK(c[i] == bias[i % 3]);
    }
  }
}

TEST_CASE("gemm_f64 equals a plain loop for every form") {
  Random random;
  for (int i = 0; i < 50; ++i) {
    const std::int64_t m = random.upto(9), n = random.upto(9), k = random.upto(9);
    const auto fa = random.floats(m * k), fb = random.floats(k * n), fc = random.floats(m * n);
    const std::vector<double> a(fa.begin(), fa.end()), b(fb.begin(), fb.end());
    std::vector<double> c(fc.begin(), fc.end());
    GemmF64Args args{m, n, k, a.data(), k, 1, b.data(), n, 1, c.data(), n, 0.5, i % 3 == 0};
    if (i % 2 == 0) args.a_row_stride = 1, args.a_column_stride = m;
    if (i % 5 < 2) args.b_row_stride = 1, args.b_column_stride = k;
    gemm_f64(args);
    for (std::int64_t r = 0; r < m; ++r) {
      for (std::int64_t j = 0; j < n; ++j) {
        double sum = args.accumulate ? fc[r * n + j] : 0;
        for (std::int64_t t = 0; t < k; ++t) {
          sum += 0.5 * a[r * args.a_row_stride + t * args.a_column_stride] *
                 b[t * args.b_row_stride + j * args.b_column_stride];
        }
        REQUIRE(c[r * n + j] == doctest::Approx(sum).epsilon(1e-12));
      }
    }
  }
}
