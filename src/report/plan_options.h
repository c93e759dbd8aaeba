#pragma once

#include <cstdint>
#include <string>

#include "placement/placement.h"
#include "report/plan_layers.h"

namespace sardonyx {

/// The option that asks for a placement.
struct PlanOption {
  /// A value of sardonyx.placement; "" when it would be too long.
  std::string text;
  /// Nodes that it would put elsewhere, for want of names of their own.
  std::uint64_t lost_count = 0;
};

/// Rules that put every node of the placement where it is: ranges of whole layers where they do,
/// names else, and the device with the most nodes for the rest.
/// Cost     near-linear in nodes.
PlanOption placement_option(const PlanView& view, const PlanLayers& layers);

}  // namespace sardonyx
