#include "report/plan_memory.h"

#include <algorithm>

namespace sardonyx {

PlanMemory memory_over_time(const Placement& placement, const PlacementDetails& details,
                            std::uint32_t points_max) {
  const auto node_count = static_cast<std::uint32_t>(placement.nodes.size());
  PlanMemory memory;
  memory.devices.resize(placement.devices.size());
  memory.step = std::max<std::uint32_t>(1, (node_count + points_max - 1) / points_max);
  // Sizes come from the model and may add up to more than an integer holds.
  std::vector<double> change(std::size_t{node_count} + 1);
  for (std::uint32_t device = 0; device < memory.devices.size(); ++device) {
    DeviceMemory& row = memory.devices[device];
    std::fill(change.begin(), change.end(), 0.0);
    for (const PlacedLife& life : details.lives) {
      if (life.device != device) continue;
      if (life.bytes == 0) ++row.unsized_count;
      change[life.first] += static_cast<double>(life.bytes);
      change[std::size_t{life.last} + 1] -= static_cast<double>(life.bytes);
    }
    double now = 0;
    for (std::uint32_t i = 0; i < node_count; ++i) {
      now += change[i];
      if (i % memory.step == 0) row.points.push_back(0);
      row.points.back() = std::max(row.points.back(), now);
      if (now <= row.peak_bytes) continue;
      row.peak_bytes = now;
      row.peak_node = i;
    }
  }
  return memory;
}

}  // namespace sardonyx
