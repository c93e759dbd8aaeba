#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "capi/graph_view.h"

/// What a provider is asked to fill in about a graph: which nodes it takes.
struct OrtEpGraphSupportInfo {
  struct Group {
    std::vector<sardonyx::NodeId> nodes;
    bool is_fused = false;
    /// The provider keeps the constants: they are no inputs of the fused node.
    bool drops_constants = false;
  };

  OrtEpGraphSupportInfo(const sardonyx::capi::GraphView& view, const OrtKernelRegistry* kernels)
      : graph(view), registry(kernels) {}

  const sardonyx::capi::GraphView& graph;
  /// Null for a provider that compiles.
  const OrtKernelRegistry* registry;
  std::vector<Group> groups;
  /// Nodes of all groups so far.
  std::unordered_set<sardonyx::NodeId> taken;
};
