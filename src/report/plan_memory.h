#pragma once

#include <cstdint>
#include <vector>

#include "placement/lifetimes.h"
#include "placement/placement.h"

namespace sardonyx {

/// What the values of a run take on one device, one node after the other.
struct DeviceMemory {
  double peak_bytes = 0;
  /// Index of the node at which it is that much.
  std::uint32_t peak_node = 0;
  /// Values whose size is not known before a run.
  std::uint64_t unsized_count = 0;
  /// The most within each step of the nodes.
  std::vector<double> points;
};

struct PlanMemory {
  /// By device.
  std::vector<DeviceMemory> devices;
  /// Nodes per point.
  std::uint32_t step = 1;
};

/// Adds up the lives of a placement's values. A bound: values made in place of others, and those
/// that a provider never makes because it fuses their nodes, count.
/// Cost     linear in nodes, for each device.
PlanMemory memory_over_time(const Placement& placement, const PlacementDetails& details,
                            std::uint32_t points_max);

}  // namespace sardonyx
