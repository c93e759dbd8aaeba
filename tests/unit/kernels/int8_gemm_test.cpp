#include "kernels/int8_gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

using Bytes = std::vector<std::uint8_t>;

int value(std::uint8_t byte, bool is_signed) {
  return is_signed ? static_cast<std::int8_t>(byte) : byte;
}

// Extremes as often as not: they are what saturating instructions get wrong.
Bytes bytes(Random& random, std::int64_t count) {
  const bool full = random.upto(2) > 0;
  Bytes result(static_cast<std::size_t>(count));
  for (std::uint8_t& byte : result) {
    constexpr std::uint8_t kExtremes[] = {0, 255, 127, 128};
    byte = static_cast<std::uint8_t>(full && random.upto(1) == 0 ? kExtremes[random.upto(3)]
                                                                 : random.upto(full ? 255 : 60));
  }
  return result;
}

std::vector<std::int32_t> integers(Random& random, std::int64_t count, std::int64_t low,
                                   std::int64_t high) {
  std::vector<std::int32_t> result(static_cast<std::size_t>(count));
  for (std::int32_t& x : result) x = static_cast<std::int32_t>(low + random.upto(high - low));
  return result;
}

// 64-byte aligned memory, as packed panels need.
struct Aligned {
  std::vector<std::byte> storage;
  std::byte* data;
  explicit Aligned(std::int64_t count) : storage(static_cast<std::size_t>(count) + 64) {
    const auto address = reinterpret_cast<std::uintptr_t>(storage.data());
    data = storage.data() + (64 - address % 64) % 64;
  }
};

struct Matrices {
  Int8MatrixArgs args;
  Bytes a, b;
  std::vector<std::int32_t> a_zeros, b_zeros, bias;
  std::vector<float> scale, row_scale, float_bias;
};

Matrices make_matrices(Random& random, std::int64_t m, std::int64_t n, std::int64_t k) {
  Matrices p;
  Int8MatrixArgs& g = p.args;
  g.m = m, g.n = n, g.k = k;
  g.a_signed = random.upto(1) == 0, g.b_signed = random.upto(1) == 0;
  g.b_transposed = random.upto(1) == 0;
  g.a_stride = k + random.upto(3);
  g.b_stride = (g.b_transposed ? k : n) + random.upto(3);
  g.c_stride = n + random.upto(3);
  p.a = bytes(random, m * g.a_stride);
  p.b = bytes(random, (g.b_transposed ? n : k) * g.b_stride);
  const std::int64_t a_low = g.a_signed ? -128 : 0, b_low = g.b_signed ? -128 : 0;
  p.a_zeros = integers(random, m, a_low, a_low + 255);
  p.b_zeros = integers(random, n, b_low, b_low + 255);
  p.bias = integers(random, n, -100000, 100000);
  for (const float x : random.floats(n)) p.scale.push_back(std::abs(x) * 1e-3F);
  for (const float x : random.floats(m)) p.row_scale.push_back(std::abs(x));
  p.float_bias = random.floats(n);
  g.a = p.a.data(), g.b = p.b.data();
  Int8Epilogue& e = g.epilogue;
  e.output = static_cast<Int8Output>(random.upto(3));
  e.a_zero = static_cast<std::int32_t>(a_low + random.upto(255));
  if (random.upto(2) == 0) e.a_zeros = p.a_zeros.data();
  if (random.upto(1) == 0) e.b_zeros = p.b_zeros.data();
  if (random.upto(1) == 0) e.bias = p.bias.data();
  e.scale = p.scale.data();
  e.scale_per_column = n > 0 && random.upto(1) == 0;
  if (n == 0) p.scale.push_back(1), e.scale = p.scale.data();
  e.y_zero = static_cast<std::int32_t>(e.output == Int8Output::S8 ? random.upto(255) - 128
                                                                  : random.upto(255));
  if (random.upto(2) == 0) e.low = e.y_zero;
  if (random.upto(2) == 0) e.high = e.y_zero + 30;
  if (random.upto(1) == 0) e.row_scale = p.row_scale.data();
  if (random.upto(1) == 0) e.float_bias = p.float_bias.data();
  if (random.upto(1) == 0) e.activation = {ActivationKind::Relu, 0, 0};
  return p;
}

std::int64_t exact_sum(const Matrices& p, std::int64_t i, std::int64_t j) {
  const Int8MatrixArgs& g = p.args;
  const Int8Epilogue& e = g.epilogue;
  const std::int64_t a_zero = e.a_zeros != nullptr ? e.a_zeros[i] : e.a_zero;
  const std::int64_t b_zero = e.b_zeros != nullptr ? e.b_zeros[j] : 0;
  std::int64_t sum = e.bias != nullptr ? e.bias[j] : 0;
  for (std::int64_t k = 0; k < g.k; ++k) {
    const std::uint8_t b = p.b[g.b_transposed ? j * g.b_stride + k : k * g.b_stride + j];
    sum += (value(p.a[i * g.a_stride + k], g.a_signed) - a_zero) * (value(b, g.b_signed) - b_zero);
  }
  return sum;
}

// What the epilogue makes of a sum, as four bytes or one.
std::int32_t expected_bits(const Int8Epilogue& e, std::int64_t sum, std::int64_t i,
                           std::int64_t j) {
  if (e.output == Int8Output::S32) return static_cast<std::int32_t>(sum);
  const float scale = e.scale_per_column ? e.scale[j] : e.scale[0];
  float x = static_cast<float>(sum) * scale;
  if (e.output == Int8Output::F32) {
    if (e.row_scale != nullptr) x *= e.row_scale[i];
    if (e.float_bias != nullptr) x += e.float_bias[j];
    x = apply(e.activation, x);
    std::int32_t bits;
    std::memcpy(&bits, &x, 4);
    return bits;
  }
  const bool is_signed = e.output == Int8Output::S8;
  const double low = std::max<double>(e.low, is_signed ? -128 : 0);
  const double high = std::min<double>(e.high, is_signed ? 127 : 255);
  const double y = std::min(high, std::max(low, double(std::nearbyint(x)) + e.y_zero));
  return static_cast<std::int32_t>(y) & 0xff;
}

std::int32_t stored_bits(const Int8MatrixArgs& g, const std::vector<std::uint8_t>& c,
                         std::int64_t at) {
  if (g.epilogue.output == Int8Output::U8 || g.epilogue.output == Int8Output::S8) return c[at];
  std::int32_t bits;
  std::memcpy(&bits, c.data() + at * 4, 4);
  return bits;
}

Int8Source pack_source(const Int8MatrixArgs& g) {
  return {
      g.b, g.b_signed, g.n, g.k, g.b_transposed ? g.b_stride : 1, g.b_transposed ? 1 : g.b_stride};
}

}  // namespace

TEST_CASE("int8 products are exact for every pair of types, zero points and outputs") {
  for (const Isa isa : supported_isas()) {
    const Int8GemmTable& table = int8_gemm_table(isa);
    Random random;
    for (int round = 0; round < 400; ++round) {
      const std::int64_t m = random.upto(round % 3 == 0 ? 1 : 20), k = random.upto(70);
      const std::int64_t n = random.upto(round % 5 == 0 ? 300 : 70);
      Matrices p = make_matrices(random, m, n, k);
      Int8MatrixArgs& g = p.args;
      Aligned packed(int8_packed_bytes(table, n, k));
      if (round % 2 == 0) {
        const std::int64_t panels = (n + table.tile_columns - 1) / table.tile_columns;
        int8_pack(table, pack_source(g), 0, panels, packed.data);
        g.packed_b = packed.data;
      }
      std::vector<std::uint8_t> c(static_cast<std::size_t>(m * g.c_stride * 4), 0xcd);
      g.c = c.data();
      Aligned scratch(static_cast<std::int64_t>(int8_gemm_scratch_bytes(g, isa)));
      int8_gemm(g, scratch.data, isa);
      CAPTURE(isa_name(isa));
      CAPTURE(round);
      CAPTURE(static_cast<int>(g.epilogue.output));
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          const std::int32_t expected = expected_bits(g.epilogue, exact_sum(p, i, j), i, j);
          const std::int32_t stored = stored_bits(g, c, i * g.c_stride + j);
          if (g.epilogue.output != Int8Output::F32) {
            REQUIRE(stored == expected);
          } else {
            float x, y;
            std::memcpy(&x, &expected, 4), std::memcpy(&y, &stored, 4);
            REQUIRE(std::abs(x - y) <= 1e-6F * (1 + std::abs(x)));
          }
        }
        for (std::int64_t j = n; j < g.c_stride; ++j) {
          const bool one =
              g.epilogue.output == Int8Output::U8 || g.epilogue.output == Int8Output::S8;
          const std::int32_t untouched = one ? 0xcd : static_cast<std::int32_t>(0xcdcdcdcdU);
          REQUIRE(stored_bits(g, c, i * g.c_stride + j) == untouched);
        }
      }
    }
  }
}

TEST_CASE("64 products of 255 and 127 make 2,072,640, with 255 and -128 they make -2,088,960") {
  for (const Isa isa : supported_isas()) {
    for (const int weight : {127, -128}) {
      Bytes a(64, 255), b(64 * 40, static_cast<std::uint8_t>(weight));
      std::vector<std::int32_t> c(40);
      Int8MatrixArgs args;
      args.m = 1, args.n = 40, args.k = 64, args.a = a.data(), args.a_stride = 64;
      args.b = b.data(), args.b_stride = 40, args.c = c.data(), args.c_stride = 40;
      Aligned scratch(static_cast<std::int64_t>(int8_gemm_scratch_bytes(args, isa)));
      int8_gemm(args, scratch.data, isa);
      CAPTURE(isa_name(isa));
      for (const std::int32_t sum : c) CHECK(sum == (weight > 0 ? 2072640 : -2088960));
    }
  }
}

TEST_CASE("int8 products of whole tiles, and of some more rows and columns, are exact") {
  for (const Isa isa : supported_isas()) {
    Random random;
    for (const std::int64_t m : {12, 16, 31, 32, 33, 48, 77, 300}) {
      for (const std::int64_t k : {64, 128, 200, 1024}) {
        const std::int64_t n = 16 + random.upto(60);
        Matrices p = make_matrices(random, m, n, k);
        Int8MatrixArgs& g = p.args;
        g.epilogue.output = Int8Output::S32;
        g.a_signed = false;
        g.epilogue.a_zero = static_cast<std::int32_t>(random.upto(255));
        g.epilogue.a_zeros = nullptr;
        std::vector<std::int32_t> c(static_cast<std::size_t>(m * g.c_stride));
        g.c = c.data();
        Aligned scratch(static_cast<std::int64_t>(int8_gemm_scratch_bytes(g, isa)));
        int8_gemm(g, scratch.data, isa);
        CAPTURE(isa_name(isa));
        CAPTURE(m);
        CAPTURE(n);
        CAPTURE(k);
        bool equal = true;
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            equal = equal && c[i * g.c_stride + j] == exact_sum(p, i, j);
          }
        }
        REQUIRE(equal);
      }
    }
  }
}

TEST_CASE("bytes behind A that may be read have no effect on its products") {
  for (const Isa isa : supported_isas()) {
    const Int8GemmTable& table = int8_gemm_table(isa);
    Random random;
    for (int round = 0; round < 150; ++round) {
      const std::int64_t rows = random.upto(70), depth = 1 + random.upto(round % 3 == 0 ? 400 : 40);
      const std::int64_t columns = random.upto(80), stride = depth + random.upto(70);
      const std::int64_t slack = random.upto(20 * stride);
      const auto zero = static_cast<std::int32_t>(random.upto(255));
      const Bytes a = bytes(random, rows == 0 ? 0 : (rows - 1) * stride + depth + slack);
      const Bytes b = bytes(random, columns * depth);
      const auto b_zeros = integers(random, columns, -128, 127);
      const Int8Source source{b.data(), true, columns, depth, depth, 1};
      Aligned packed(int8_packed_bytes(table, columns, depth));
      int8_pack(table, source, 0, (columns + table.tile_columns - 1) / table.tile_columns,
                packed.data);
      std::vector<std::int32_t> c(static_cast<std::size_t>(rows * columns)), sums(rows);
      Int8GemmArgs args;
      args.rows = rows, args.columns = columns, args.depth = depth;
      args.a = a.data(), args.a_stride = stride, args.a_slack = slack, args.b = packed.data;
      args.c = c.data(), args.c_stride = columns;
      args.epilogue.a_zero = zero, args.epilogue.b_zeros = b_zeros.data();
      table.row_sums(args, sums.data());
      args.epilogue.row_sums = sums.data();
      table.run(args);
      CAPTURE(isa_name(isa));
      CAPTURE(round);
      bool equal = true;
      for (std::int64_t row = 0; row < rows; ++row) {
        for (std::int64_t j = 0; j < columns; ++j) {
          std::int64_t sum = 0;
          for (std::int64_t k = 0; k < depth; ++k) {
            sum += (a[row * stride + k] - zero) * (value(b[j * depth + k], true) - b_zeros[j]);
          }
          equal = equal && c[row * columns + j] == sum;
        }
      }
      CHECK(equal);
    }
  }
}
