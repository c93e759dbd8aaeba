#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "placement/parts.h"

namespace sardonyx {

/// What rules know a node by beside its name.
struct PlacedNames {
  /// The first output's name.
  std::string output;
  /// Where its module stands, for models of exporters that number their nodes; else "".
  std::string module_path;
  std::string module_name;
};

/// A value that a node makes, for as long as a device has to keep it.
struct PlacedLife {
  std::uint32_t device = 0;
  /// Indices of the first and the last node between which it is kept.
  std::uint32_t first = 0;
  std::uint32_t last = 0;
  /// 0 when the size is not known.
  std::uint64_t bytes = 0;
};

/// A constant that several nodes use.
struct PlacedWeight {
  std::string name;
  std::uint64_t bytes = 0;
  /// Indices of the nodes.
  std::vector<std::uint32_t> nodes;
};

/// What a plan tells beside the placement. Nodes are counted as in Placement::nodes.
struct PlacementDetails {
  std::vector<PlacedNames> names;
  /// What nodes make, on their device and on those that get copies. Where a value is made in place
  /// of another one both are here, so that sums are a bound.
  std::vector<PlacedLife> lives;
  /// The largest first.
  std::vector<PlacedWeight> shared_weights;
};

/// Looks at the nodes of the parts one after the other.
/// Cost     linear in nodes and edges.
PlacementDetails details_of(const Graph& graph, const std::vector<PlannedPart>& parts);

}  // namespace sardonyx
