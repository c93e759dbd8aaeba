#pragma once

#include <algorithm>
#include <cstdint>

namespace sardonyx::kernels {
// Unnamed, because files for different instruction sets include it.
namespace {

/// The taps first..last-1 of an axis that fall inside of it when the first tap is at `start`.
struct TapRange {
  std::int64_t first, last;
  std::int64_t count() const { return last - first; }
};
inline TapRange taps_inside(std::int64_t start, std::int64_t dilation, std::int64_t taps,
                            std::int64_t length) {
  const std::int64_t first = start < 0 ? (-start + dilation - 1) / dilation : 0;
  const std::int64_t last = start >= length ? 0 : (length - 1 - start) / dilation + 1;
  return {std::min(first, taps), std::max(std::min(last, taps), std::min(first, taps))};
}

}  // namespace
}  // namespace sardonyx::kernels
