#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "placement/node_names.h"

namespace sardonyx {

/// A pattern that a rule can use, and how many nodes it takes.
struct SuggestedPattern {
  std::string pattern;
  std::uint64_t node_count = 0;
};

/// Layers that differ in a number only.
struct SuggestedLayers {
  /// "/model/layers.[0-15]/", for sardonyx.placement.
  std::string range;
  /// "/model/layers.0/", "/model/layers.1/", …: by number.
  std::vector<SuggestedPattern> layers;
  std::uint64_t node_count = 0;
};

/// Where the patterns come from.
enum class NameOrigin : std::uint8_t { NodeNames, ModulePaths, ValueNames, None };

struct Suggestions {
  NameOrigin origin = NameOrigin::None;
  /// Layers, those with the most nodes first.
  std::vector<SuggestedLayers> groups;
  /// Patterns for the parts around the layers.
  std::vector<SuggestedPattern> others;
  /// Nodes that no pattern of this list takes.
  std::uint64_t unnamed_count = 0;
};

/// Usable patterns for a model, from the names of its nodes: each with the separator after its
/// number, so that layers.1 does not take layers.10.
/// Cost     linear in the bytes of the names.
Suggestions suggest_patterns(std::span<const NodeNames> nodes);
Suggestions suggest_patterns(const Graph& graph);

}  // namespace sardonyx
