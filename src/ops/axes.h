#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/text.h"
#include "ir/shape.h"

namespace sardonyx {

/// `axis` counted from the front.
/// Errors   InvalidModel when it is outside [-rank, rank).
inline Result<int> resolve_axis(std::int64_t axis, int rank) {
  if (const auto found = normalize_axis(axis, rank)) return *found;
  return failure(Code::InvalidModel, "axis {} is outside [{}, {})", axis, -rank, rank);
}

/// A set of axes of one shape.
class AxisSet {
 public:
  bool contains(int axis) const { return (bits_ >> axis & 1U) != 0; }
  void add(int axis) { bits_ |= 1U << axis; }

 private:
  std::uint32_t bits_ = 0;
};

/// The axes as a set.
/// Errors   InvalidModel when one is outside [-rank, rank) or named twice.
inline Result<AxisSet> resolve_axes(std::span<const std::int64_t> axes, int rank) {
  AxisSet set;
  for (const std::int64_t axis : axes) {
    SDX_ASSIGN(const int found, resolve_axis(axis, rank));
    if (set.contains(found)) {
      return failure(Code::InvalidModel, "axis {} is named twice", axis);
    }
    set.add(found);
  }
  return set;
}

}  // namespace sardonyx
