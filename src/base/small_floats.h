#pragma once

#include <bit>
#include <cstdint>

namespace sardonyx {

/// IEEE binary16 by its bits. Arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  friend bool operator==(Half, Half) = default;
};

/// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

namespace detail {

/// `condition ? a : b` without a branch, so that loops over conversions use vectors.
inline std::uint32_t choose(bool condition, std::uint32_t a, std::uint32_t b) {
  return b ^ ((a ^ b) & (0U - static_cast<std::uint32_t>(condition)));
}

}  // namespace detail

inline float to_float(BFloat16 value) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(value.bits) << 16);
}

/// Rounds to nearest even; a NaN stays a NaN.
inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
  const bool is_nan = (bits & 0x7fffffffU) > 0x7f800000U;
  return {static_cast<std::uint16_t>(detail::choose(is_nan, (bits >> 16) | 0x40U, rounded))};
}

inline float to_float(Half value) {
  const std::uint32_t sign = static_cast<std::uint32_t>(value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 0x1fU;
  const std::uint32_t mantissa = value.bits & 0x3ffU;
  const auto small = static_cast<float>(static_cast<std::int32_t>(mantissa)) * 0x1p-24F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(small);
  const std::uint32_t normal = ((exponent + 112U) << 23) | (mantissa << 13);
  const std::uint32_t special = 0x7f800000U | (mantissa << 13);
  const std::uint32_t finite = detail::choose(exponent == 0, subnormal, normal);
  return std::bit_cast<float>(sign | detail::choose(exponent == 0x1f, special, finite));
}

/// Rounds to nearest even; overflow gives infinity.
inline Half to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  // Adding 0.5 puts a subnormal's bits, rounded, at the bottom of the mantissa.
  const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(shifted) - 0x3f000000U;
  const std::uint32_t normal = (magnitude + 0xfffU + ((magnitude >> 13) & 1U) - 0x38000000U) >> 13;
  const std::uint32_t special = detail::choose(magnitude > 0x7f800000U, 0x7e00U, 0x7c00U);
  const std::uint32_t finite = detail::choose(magnitude < 0x38800000U, subnormal, normal);
  const std::uint32_t either = detail::choose(magnitude >= 0x477ff000U, special, finite);
  return {static_cast<std::uint16_t>(sign | either)};
}

}  // namespace sardonyx
