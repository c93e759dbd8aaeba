#pragma once

#include <cstdint>

namespace sardonyx {

/// Rotates pairs of the first `dims` elements of a row by angles given as `dims / 2` cosines and
/// sines; pairs are neighbours when `is_interleaved`, else halves. The rest is copied. `to` must
/// not overlap `from`.
template <typename C>
void rotate_row(const C* from, std::int64_t size, std::int64_t dims, bool is_interleaved,
                const C* cosines, const C* sines, C* to) {
  const std::int64_t half = dims / 2;
  for (std::int64_t i = 0; i < half; ++i) {
    const std::int64_t a = is_interleaved ? 2 * i : i;
    const std::int64_t b = is_interleaved ? 2 * i + 1 : i + half;
    to[a] = from[a] * cosines[i] - from[b] * sines[i];
    to[b] = from[b] * cosines[i] + from[a] * sines[i];
  }
  for (std::int64_t i = dims; i < size; ++i) to[i] = from[i];
}

}  // namespace sardonyx
