#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "placement/lifetimes.h"
#include "placement/placement.h"
#include "placement/suggest.h"

namespace sardonyx {

/// Nodes that one pattern takes.
struct PlanLayer {
  /// "/model/layers.0/"; "" for the nodes that no pattern takes.
  std::string pattern;
  /// Number of its nodes by device.
  std::vector<std::uint64_t> nodes_by_device;
  std::uint64_t node_count = 0;
  std::uint64_t weight_bytes = 0;
  std::uint64_t output_bytes = 0;

  /// The device that has all of it, or -1.
  int only_device() const;
};

struct PlanLayers {
  /// Those that have nodes, in the order of their first ones.
  std::vector<PlanLayer> layers;
  /// By index of the node.
  std::vector<std::uint32_t> layer_of;
  /// What the patterns were taken from.
  NameOrigin origin = NameOrigin::None;
};

/// A placement with what is known beside it; sessions know nothing more.
struct PlanView {
  const Placement& placement;
  const PlacementDetails& details;

  /// All that rules know a node by; views into it.
  NodeNames names(std::size_t node) const;
};

/// Groups the nodes of a placement by the patterns that suggest_patterns() has for them.
/// Cost     near-linear in the bytes of the names.
PlanLayers find_layers(const PlanView& view);

/// "/model/layers." "12" "/": a pattern around its number; `digits` is empty when it has none.
struct NumberedPattern {
  std::string_view prefix;
  std::string_view digits;
  std::string_view separator;
};
NumberedPattern split_number(std::string_view pattern);

}  // namespace sardonyx
