#include "base/small_floats.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

using namespace sardonyx;

namespace {

/// The value that the bits of a binary16 stand for, by its definition.
double half_value(std::uint32_t bits) {
  const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
  const int exponent = static_cast<int>(bits >> 10 & 0x1fU);
  const double mantissa = bits & 0x3ffU;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

/// The finite half nearest to a value between two neighbours, ties to even bits.
std::uint16_t round_between(double value, std::uint16_t low) {
  const double below = half_value(low);
  // The step above the largest finite value stands where the next one would.
  const double above = low == 0x7bff ? 65536 : half_value(low + 1U);
  const double to_below = value - below;
  const double to_above = above - value;
  if (to_below != to_above) return to_below < to_above ? low : static_cast<std::uint16_t>(low + 1);
  return static_cast<std::uint16_t>(low % 2 == 0 ? low : low + 1);
}

}  // namespace

TEST_CASE("every half has the float of its value, and comes back") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Half half{static_cast<std::uint16_t>(bits)};
    const float value = to_float(half);
    if (std::isnan(half_value(bits))) {
      CHECK(std::isnan(value));
      CHECK(std::isnan(to_float(to_half(value))));
    } else if (static_cast<double>(value) != half_value(bits) || !(to_half(value) == half) ||
               std::signbit(value) != ((bits & 0x8000U) != 0)) {
      FAIL("half with bits " << bits);
    }
  }
}

TEST_CASE("floats are rounded to the nearest half, ties to even") {
  for (std::uint16_t low = 0; low < 0x7c00; ++low) {
    const double below = half_value(low);
    const double above = low == 0x7bff ? 65536 : half_value(low + 1U);
    for (const double part : {0.25, 0.5, 0.75}) {
      const double value = below + (above - below) * part;
      const Half rounded = to_half(static_cast<float>(value));
      const std::uint16_t expected = round_between(value, low);
      const Half mirrored = to_half(static_cast<float>(-value));
      if (rounded.bits != expected || mirrored.bits != (expected | 0x8000U)) {
        FAIL("between half " << low << " and the next");
      }
    }
  }
  CHECK(to_half(1e30F).bits == 0x7c00);
  CHECK(to_half(-std::numeric_limits<float>::infinity()).bits == 0xfc00);
  CHECK(to_half(std::numeric_limits<float>::denorm_min()).bits == 0);
}

TEST_CASE("every bfloat16 comes back from float") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const BFloat16 small{static_cast<std::uint16_t>(bits)};
    const float value = to_float(small);
    if (std::isnan(value)) {
      CHECK(std::isnan(to_float(to_bfloat16(value))));
    } else if (!(to_bfloat16(value) == small)) {
      FAIL("bfloat16 with bits " << bits);
    }
  }
}

TEST_CASE("floats are rounded to the nearest bfloat16, ties to even") {
  CHECK(to_bfloat16(std::bit_cast<float>(0x3f808000U)).bits == 0x3f80);
  CHECK(to_bfloat16(std::bit_cast<float>(0x3f818000U)).bits == 0x3f82);
  CHECK(to_bfloat16(std::bit_cast<float>(0x3f808001U)).bits == 0x3f81);
  CHECK(to_bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);
  // A NaN whose upper bits alone would be an infinity.
  CHECK(std::isnan(to_float(to_bfloat16(std::bit_cast<float>(0x7f800001U)))));
  std::mt19937 random(5);
  for (int i = 0; i < 100000; ++i) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (!std::isfinite(value)) continue;
    const double rounded = to_float(to_bfloat16(value));
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
    const double below = std::bit_cast<float>(bits & 0xffff0000U);
    const double above = std::bit_cast<float>((bits & 0xffff0000U) + 0x10000U);
    const double error = std::abs(rounded - value);
    const double best = std::min(std::abs(below - value), std::abs(above - value));
    if (std::isfinite(above) && error > best) {
      FAIL("float with bits " << bits);
    }
  }
}
