#include "ops/block_weight.h"

#include <algorithm>

namespace sardonyx {

namespace {

int code_at(const std::uint8_t* codes, std::int64_t index, int bits) {
  const std::int64_t bit = index * bits;
  return codes[bit / 8] >> (bit % 8) & ((1 << bits) - 1);
}

}  // namespace

void BlockWeight::decode_row(std::int64_t row, float* out) const {
  const std::int64_t blocks = block_count();
  const std::uint8_t* row_codes = codes + row * row_bytes();
  for (std::int64_t k = 0; k < depth; ++k) {
    const std::int64_t group = groups != nullptr ? groups[k] : k / block;
    float zero = static_cast<float>(1 << (bits - 1));
    if (packed_zeros != nullptr) {
      zero = static_cast<float>(code_at(packed_zeros + row * zero_row_bytes(), group, bits));
    } else if (float_zeros != nullptr) {
      zero = float_zeros[row * blocks + group];
    }
    const auto code = static_cast<float>(code_at(row_codes, k, bits));
    out[k] = (code - zero) * scales[row * blocks + group];
  }
}

Status multiply_blocks(const BlockWeight& weight, const float* x, std::int64_t count, float* y) {
  constexpr std::int64_t kRows = 64;
  const std::int64_t width = std::min(kRows, weight.rows);
  SDX_ASSIGN(Tensor decoded, make_scratch<float>(width * weight.depth));
  SDX_ASSIGN(Tensor panel, make_scratch<float>(width * weight.depth));
  auto* rows = decoded.mutable_values<float>().data();
  auto* columns = panel.mutable_values<float>().data();
  for (std::int64_t first = 0; first < weight.rows; first += kRows) {
    const std::int64_t n = std::min(kRows, weight.rows - first);
    for (std::int64_t i = 0; i < n; ++i) weight.decode_row(first + i, rows + i * weight.depth);
    transpose_matrix(rows, n, weight.depth, columns);
    multiply_add<float>({.rows = count,
                         .columns = n,
                         .depth = weight.depth,
                         .a = x,
                         .a_row = weight.depth,
                         .a_column = 1,
                         .b = columns,
                         .b_row = n,
                         .c = y + first,
                         .c_row = weight.rows});
  }
  return {};
}

}  // namespace sardonyx
