#include "kernels/convert.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/small_floats.h"
#include "unit/kernels/gemm_support.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

bool is_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// Floats of all magnitudes, halfway cases between 16-bit floats among them.
std::vector<float> all_magnitudes() {
  std::vector<float> values;
  for (std::uint32_t top = 0; top < 0x10000; ++top) {
    for (const std::uint32_t low : {0x0U, 0x1U, 0x1000U, 0x7fffU, 0x8000U, 0x8001U, 0xf000U}) {
      values.push_back(std::bit_cast<float>((top << 16) | low));
    }
  }
  return values;
}

}  // namespace

TEST_CASE("every 16-bit float widens to its value") {
  std::vector<std::uint16_t> bits(0x10000);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<std::uint16_t>(i);
  std::vector<float> halves(bits.size()), brains(bits.size());
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const auto count = static_cast<std::int64_t>(bits.size());
    convert_table(isa).widen_f16(bits.data(), count, halves.data());
    convert_table(isa).widen_bf16(bits.data(), count, brains.data());
    for (std::size_t i = 0; i < bits.size(); ++i) {
      REQUIRE(is_same(halves[i], to_float(Half{bits[i]})));
      REQUIRE(is_same(brains[i], to_float(BFloat16{bits[i]})));
    }
  }
}

TEST_CASE("floats of all magnitudes narrow as the plain conversion rounds them") {
  const std::vector<float> x = all_magnitudes();
  std::vector<std::uint16_t> halves(x.size()), brains(x.size());
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    const auto count = static_cast<std::int64_t>(x.size());
    convert_table(isa).narrow_f16(x.data(), count, halves.data());
    convert_table(isa).narrow_bf16(x.data(), count, brains.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      REQUIRE(is_same(to_float(Half{halves[i]}), to_float(to_half(x[i]))));
      REQUIRE(is_same(to_float(BFloat16{brains[i]}), to_float(to_bfloat16(x[i]))));
    }
  }
}

TEST_CASE("conversions of any count write that many elements") {
  for (const Isa isa : supported_isas()) {
    CAPTURE(isa_name(isa));
    Random random;
    for (std::int64_t count = 0; count < 70; ++count) {
      const auto x = random.floats(count);
      std::vector<std::uint16_t> narrow(static_cast<std::size_t>(count) + 1, 77);
      std::vector<float> wide(static_cast<std::size_t>(count) + 1, 7.0F);
      convert_table(isa).narrow_f16(x.data(), count, narrow.data());
      convert_table(isa).widen_f16(narrow.data(), count, wide.data());
      for (std::int64_t i = 0; i < count; ++i) REQUIRE(wide[i] == to_float(to_half(x[i])));
      REQUIRE(narrow[count] == 77);
      REQUIRE(wide[count] == 7.0F);
    }
  }
}
