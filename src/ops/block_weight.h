#pragma once

#include "ops/dense.h"

namespace sardonyx {

/// A weight [rows, depth] of 2, 4 or 8-bit codes, each block of `block` codes along the depth with
/// a scale and a zero point of its own; codes fill bytes from the low bits.
struct BlockWeight {
  int bits = 4;
  std::int64_t rows = 0;
  std::int64_t depth = 0;
  std::int64_t block = 32;
  const std::uint8_t* codes = nullptr;
  const float* scales = nullptr;
  /// Packed codes, each row padded to whole bytes; or floats; or both null: half the range.
  const std::uint8_t* packed_zeros = nullptr;
  const float* float_zeros = nullptr;
  /// The block of each position of the depth, when they are not in order.
  const std::int32_t* groups = nullptr;

  std::int64_t block_count() const { return (depth + block - 1) / block; }
  std::int64_t row_bytes() const { return block_count() * (block * bits / 8); }
  std::int64_t zero_row_bytes() const { return (block_count() * bits + 7) / 8; }

  /// Row `row` as floats: (code - zero point) * scale.
  void decode_row(std::int64_t row, float* out) const;
};

/// y [count, rows] += x [count, depth] times the transposed weight.
Status multiply_blocks(const BlockWeight& weight, const float* x, std::int64_t count, float* y);

}  // namespace sardonyx
