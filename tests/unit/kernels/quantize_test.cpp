#include "kernels/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

std::int32_t quantized(float x, Quantization q, double low, double high) {
  const double y = std::nearbyint(double(x / q.scale)) + q.zero;
  return static_cast<std::int32_t>(std::min(high, std::max(low, y)));
}

}  // namespace

TEST_CASE("quantize rounds halves to even, saturates and takes a NaN for the least") {
  const std::vector<float> x = {0.5F,   1.5F, 2.5F,   -0.5F,    1e30F,
                                -1e30F, NAN,  126.9F, INFINITY, -INFINITY};
  const std::vector<std::int8_t> expected = {0, 2, 2, 0, 127, -128, -128, 127, 127, -128};
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    std::vector<std::int8_t> y(x.size());
    quantize_table(isa).quantize_s8(x.data(), static_cast<std::int64_t>(x.size()), {1, 0},
                                    y.data());
    CHECK(y == expected);
  }
}

TEST_CASE("quantize and dequantize equal a plain loop for any count, scale and zero point") {
  for (const Isa isa : supported_isas()) {
    const QuantizeTable& table = quantize_table(isa);
    Random random;
    for (int round = 0; round < 100; ++round) {
      const std::int64_t count = random.upto(70);
      const auto x = random.floats(count);
      const Quantization u{0.003F * static_cast<float>(1 + random.upto(9)),
                           static_cast<std::int32_t>(random.upto(255))};
      const Quantization s{u.scale, u.zero - 128};
      std::vector<std::uint8_t> yu(count + 1, 77);
      std::vector<std::int8_t> ys(count + 1, 77);
      table.quantize_u8(x.data(), count, u, yu.data());
      table.quantize_s8(x.data(), count, s, ys.data());
      std::vector<float> zu(count + 1, 7.0F), zs(count + 1, 7.0F);
      table.dequantize_u8(yu.data(), count, u, zu.data());
      table.dequantize_s8(ys.data(), count, s, zs.data());
      CAPTURE(isa_name(isa));
      CAPTURE(count);
      for (std::int64_t i = 0; i < count; ++i) {
        REQUIRE(yu[i] == quantized(x[i], u, 0, 255));
        REQUIRE(ys[i] == quantized(x[i], s, -128, 127));
        REQUIRE(zu[i] == static_cast<float>(yu[i] - u.zero) * u.scale);
        REQUIRE(zs[i] == static_cast<float>(ys[i] - s.zero) * s.scale);
      }
      REQUIRE(yu[count] == 77);
      REQUIRE(ys[count] == 77);
      REQUIRE(zu[count] == 7.0F);
      REQUIRE(zs[count] == 7.0F);
    }
  }
}

TEST_CASE("a sum of 8-bit tensors has the bits of dequantizing, adding and quantizing") {
  for (const Isa isa : supported_isas()) {
    const QuantizeTable& table = quantize_table(isa);
    Random random;
    for (int round = 0; round < 200; ++round) {
      const std::int64_t count = random.upto(70);
      std::vector<std::uint8_t> a(count), b(count), y(count + 1, 77);
      for (std::uint8_t& byte : a) byte = static_cast<std::uint8_t>(random.upto(255));
      for (std::uint8_t& byte : b) byte = static_cast<std::uint8_t>(random.upto(255));
      const bool is_signed = round % 2 == 0;
      const int least = is_signed ? -128 : 0;
      const auto make = [&] {
        const float scale = 0.001F + 0.0001F * static_cast<float>(random.upto(900));
        return Quantization{scale, static_cast<std::int32_t>(least + random.upto(255))};
      };
      QuantizedSum q{make(), make(), make()};
      if (round % 3 == 0) q.low = q.y.zero;
      const auto* as = reinterpret_cast<const std::int8_t*>(a.data());
      const auto* bs = reinterpret_cast<const std::int8_t*>(b.data());
      if (is_signed) {
        table.add_s8(as, bs, count, q, reinterpret_cast<std::int8_t*>(y.data()));
      } else {
        table.add_u8(a.data(), b.data(), count, q, y.data());
      }
      CAPTURE(isa_name(isa));
      CAPTURE(round);
      for (std::int64_t i = 0; i < count; ++i) {
        const int x0 = is_signed ? as[i] : a[i], x1 = is_signed ? bs[i] : b[i];
        const volatile float left = static_cast<float>(x0 - q.a.zero) * q.a.scale;
        const volatile float right = static_cast<float>(x1 - q.b.zero) * q.b.scale;
        const int sum = quantized(left + right, q.y, least, least + 255);
        const int expected = std::max(q.low, sum);
        REQUIRE((is_signed ? static_cast<std::int8_t>(y[i]) : y[i]) == expected);
      }
      REQUIRE(y[count] == 77);
    }
  }
}

TEST_CASE("dynamic quantization follows the example of DynamicQuantizeLinear") {
  const std::vector<float> x = {0, 2, -3, -2.5F, 1.34F, 0.5F};
  const std::vector<std::uint8_t> expected = {153, 255, 0, 26, 221, 179};
  for (const Isa isa : supported_isas()) {
    const QuantizeTable& table = quantize_table(isa);
    const MinMax range = table.range_with_zero(x.data(), 6);
    CHECK(range.min == -3);
    CHECK(range.max == 2);
    const Quantization q = dynamic_quantization(range);
    CHECK(q.scale == doctest::Approx(0.0196078438F));
    CHECK(q.zero == 153);
    std::vector<std::uint8_t> y(6);
    table.quantize_u8(x.data(), 6, q, y.data());
    CHECK(y == expected);
  }
}

TEST_CASE("a range holds zero, ignores NaNs and finds extremes wherever they are") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const QuantizeTable& table = quantize_table(isa);
    for (int at = 0; at < 150; ++at) {
      std::vector<float> x(150, 1.0F);
      x[at] = -9;
      x[149 - at] = at % 2 == 0 ? 9.0F : NAN;
      const MinMax range = table.range_with_zero(x.data(), 150);
      if (at != 149 - at) REQUIRE(range.min == -9);
      REQUIRE(range.max == (at % 2 == 0 ? 9 : 1));
    }
    CHECK(table.range_with_zero(nullptr, 0).max == 0);
    CHECK(dynamic_quantization({0, 0}).scale == 1);
  }
}
