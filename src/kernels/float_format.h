#pragma once

#include <cstdint>

namespace sardonyx::kernels {

/// How floats are stored; kernels compute in float32.
enum class FloatFormat : std::uint8_t { F32, F16, BF16 };

constexpr std::int64_t format_bytes(FloatFormat format) {
  return format == FloatFormat::F32 ? 4 : 2;
}

}  // namespace sardonyx::kernels
