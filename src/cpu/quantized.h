#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/tensor.h"

namespace sardonyx {

inline bool is_8_bit(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

/// Element i of a tensor of 8-bit integers.
inline std::int32_t byte_at(const Tensor& tensor, std::int64_t i) {
  const auto bits = tensor.values<std::uint8_t>()[static_cast<std::size_t>(i)];
  return tensor.dtype() == DType::Int8 ? static_cast<std::int8_t>(bits) : bits;
}

}  // namespace sardonyx
