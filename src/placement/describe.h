#pragma once

#include <string>
#include <vector>

#include "ir/graph.h"
#include "placement/parts.h"
#include "placement/placement.h"
#include "placement/rule_matcher.h"

namespace sardonyx {

/// "cpu", "gpu:1": the short name of a device, as rules can name it; the provider's name where the
/// short one would mean another's.
std::string device_name(const PlacedDevice& device);

/// What is known when every node has its provider.
struct PlacementFacts {
  const Graph& graph;
  const std::vector<PlannedPart>& parts;
  /// By NodeId.
  const std::vector<PlacementReason>& reasons;
  /// By NodeId; shorter when nodes were made after rules were matched, empty without rules.
  const std::vector<NodeMatch>& matches;
  /// Null without rules.
  const RuleMatcher* matcher;
  /// By NodeId, "" where there is none: what budgets say of nodes that had to go elsewhere. Empty
  /// without budgets.
  const std::vector<std::string>& over_budget;
};

/// Adds nodes, copies and rules to a placement that has its devices, and counts what each device
/// has.
/// Cost     linear in nodes and edges.
void describe_placement(const PlacementFacts& facts, Placement& placement);

}  // namespace sardonyx
