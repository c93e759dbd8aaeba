#include "kernels/nbits_gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/small_floats.h"
#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

struct Quantized {
  NbitsArgs args;
  std::vector<float> a, c, scales, bias;
  std::vector<std::uint16_t> half_scales;
  std::vector<std::uint8_t> b, zeros;
  std::vector<float> weights;  // [n][k], by the definition
};

Quantized make_quantized(Random& random, std::int64_t m, std::int64_t n, std::int64_t k, int bits,
                         std::int64_t block) {
  Quantized p;
  NbitsArgs& g = p.args;
  g.m = m, g.n = n, g.k = k, g.bits = bits, g.block = block;
  const std::int64_t blocks = (k + block - 1) / block;
  const std::int64_t zero_bytes = (blocks * bits + 7) / 8;
  g.a_stride = k + random.upto(3), g.c_stride = n + random.upto(3);
  p.a = random.floats(m * g.a_stride + 1);
  p.c = random.floats(m * g.c_stride + 1);
  p.bias = random.floats(n);
  p.b.resize(static_cast<std::size_t>(n * blocks * block * bits / 8));
  for (auto& byte : p.b) byte = static_cast<std::uint8_t>(random.upto(255));
  p.zeros.resize(static_cast<std::size_t>(n * zero_bytes));
  for (auto& byte : p.zeros) byte = static_cast<std::uint8_t>(random.upto(255));
  p.scales = random.floats(n * blocks);
  g.scale_format = random.upto(1) == 0 ? FloatFormat::F32 : FloatFormat::F16;
  for (float& scale : p.scales) {
    p.half_scales.push_back(to_half(scale).bits);
    if (g.scale_format == FloatFormat::F16) scale = to_float(to_half(scale));
  }
  g.scales = p.scales.data();
  if (g.scale_format == FloatFormat::F16) g.scales = p.half_scales.data();
  const std::int64_t form = random.upto(2);
  if (form == 1) g.zeros = p.zeros.data();
  if (form == 2) g.zero_floats = g.scales;  // any floats will do
  g.a = p.a.data(), g.b = p.b.data(), g.c = p.c.data();
  if (random.upto(1) == 0) g.epilogue.bias = p.bias.data();
  if (random.upto(1) == 0) g.epilogue.activation = {ActivationKind::LeakyRelu, 0.5F, 0};

  const auto field = [&](const std::vector<std::uint8_t>& from, std::int64_t base,
                         std::int64_t index) {
    const std::int64_t bit = index * bits;
    return static_cast<float>(from[base + bit / 8] >> (bit % 8) & ((1 << bits) - 1));
  };
  for (std::int64_t j = 0; j < n; ++j) {
    for (std::int64_t e = 0; e < k; ++e) {
      const std::int64_t at = j * blocks + e / block;
      float zero = static_cast<float>(1 << (bits - 1));
      if (form == 1) zero = field(p.zeros, j * zero_bytes, e / block);
      if (form == 2) zero = p.scales[at];
      const float q = field(p.b, j * blocks * block * bits / 8, e);
      p.weights.push_back((q - zero) * p.scales[at]);
    }
  }
  return p;
}

// The greatest error relative to the magnitudes in a sum.
double run_and_compare(const Quantized& p, Isa isa) {
  const NbitsArgs& g = p.args;
  std::vector<float> y = p.c;
  NbitsArgs args = g;
  args.c = y.data();
  std::vector<float> scratch(nbits_gemm_scratch_bytes(args, isa) / sizeof(float) + 1);
  nbits_gemm(args, scratch.data(), isa);
  double worst = 0;
  for (std::int64_t i = 0; i < g.m; ++i) {
    for (std::int64_t j = 0; j < g.c_stride; ++j) {
      if (j >= g.n) {
        REQUIRE(y[i * g.c_stride + j] == p.c[i * g.c_stride + j]);
        continue;
      }
      double sum = g.epilogue.bias != nullptr ? g.epilogue.bias[j] : 0;
      double scale = 1;
      for (std::int64_t k = 0; k < g.k; ++k) {
        const double term = double(g.a[i * g.a_stride + k]) * p.weights[j * g.k + k];
        sum += term;
        scale += std::abs(term);
      }
      const float expected = apply(g.epilogue.activation, static_cast<float>(sum));
      worst = std::max(worst, std::abs(double(y[i * g.c_stride + j]) - expected) / scale);
    }
  }
  return worst;
}

}  // namespace

TEST_CASE("block-quantized products equal those of the widened weights") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (int round = 0; round < 200; ++round) {
      const int bits = 2 << random.upto(2);
      const std::int64_t block = 16 << random.upto(4);
      const std::int64_t m = random.upto(round % 4 == 0 ? 50 : 17), n = random.upto(40);
      const std::int64_t k = random.upto(round % 6 == 0 ? 1500 : 300);
      const Quantized p = make_quantized(random, m, n, k, bits, block);
      CAPTURE(isa_name(isa));
      CAPTURE(round);
      CAPTURE(bits);
      CAPTURE(block);
      CAPTURE(m);
      CAPTURE(k);
      REQUIRE(run_and_compare(p, isa) < 3e-6);
    }
  }
}

TEST_CASE("rounding activations to int8 costs under a hundredth of the magnitudes") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (int round = 0; round < 100; ++round) {
      const int bits = 4 << random.upto(1);
      const std::int64_t block = 16 << random.upto(4);
      const std::int64_t k = 1 + random.upto(700);
      Quantized p = make_quantized(random, random.upto(8), random.upto(20), k, bits, block);
      p.args.int8_activations = true;
      CAPTURE(isa_name(isa));
      CAPTURE(bits);
      CAPTURE(block);
      CAPTURE(k);
      REQUIRE(run_and_compare(p, isa) < 1e-2);
    }
  }
}

TEST_CASE("int8 activations that int8 holds exactly give exact products of full-range weights") {
  for (const Isa isa : supported_isas()) {
    for (const int bits : {4, 8}) {
      const std::int64_t k = 256, n = 5, block = 64;
      std::vector<float> a(k), scales(n * k / block, 1.0F), c(n);
      for (std::int64_t i = 0; i < k; ++i) a[i] = i % 3 == 0 ? -127.0F : 127.0F;
      const std::vector<std::uint8_t> ones(static_cast<std::size_t>(n * k), 0xff);
      NbitsArgs args;
      args.m = 1, args.n = n, args.k = k, args.bits = bits, args.block = block;
      args.a = a.data(), args.a_stride = k, args.b = ones.data(), args.scales = scales.data();
      args.int8_activations = true, args.c = c.data(), args.c_stride = n;
      std::vector<float> scratch(nbits_gemm_scratch_bytes(args, isa) / sizeof(float) + 1);
      nbits_gemm(args, scratch.data(), isa);
      CAPTURE(isa_name(isa));
      // 170 of 127 and 86 of -127, by 15 - 8 or 255 - 128.
      for (const float y : c) CHECK(y == 84 * 127.0F * (bits == 4 ? 7 : 127));
    }
  }
}

TEST_CASE("parts of a block-quantized product have the bits of the whole") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (const std::int64_t m : {3, 40}) {
      const Quantized p = make_quantized(random, m, 70, 600, 4, 32);
      std::vector<float> whole = p.c, parts = p.c;
      std::vector<float> scratch(nbits_gemm_scratch_bytes(p.args, isa) / sizeof(float) + 1);
      NbitsArgs args = p.args;
      args.c = whole.data();
      nbits_gemm(args, scratch.data(), isa);
      args.c = parts.data();
      nbits_gemm(nbits_gemm_part(args, 0, m, 0, 33), scratch.data(), isa);
      nbits_gemm(nbits_gemm_part(args, 0, m, 33, 37), scratch.data(), isa);
      CHECK(whole == parts);
      std::vector<float> row(600);
      nbits_dequantize(p.args, 7, 1, row.data(), 600, isa);
      for (std::int64_t k = 0; k < 600; ++k) REQUIRE(row[k] == p.weights[7 * 600 + k]);
    }
  }
}
