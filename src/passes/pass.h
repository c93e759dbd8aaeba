#pragma once

#include <cstddef>
#include <string_view>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// What is no weight worth keeping in its place.
inline constexpr std::size_t kTinyWeight_bytes = 128;

/// What the caller of a stage may choose.
struct PassOptions {
  /// 0: only what is needed to run; 1: folding and elimination; 2 and above: everything.
  int level = 99;
  /// Folding makes no constant larger than this that its inputs were not.
  std::size_t folded_bytes_max = std::size_t{64} << 20;
  /// Weights stay as the model has them: what would be computed from them at load is left as nodes
  /// (whose results are not small) or not done.
  bool keeps_weights = false;
  /// Names of passes to leave out, separated by ';'.
  std::string_view skipped;
};

/// The two stages: before placement, in standard operators only; and inside the CPU provider.
enum class PassStage : unsigned char { Common, Provider };

/// One rewrite of a graph (and its subgraphs, which it visits itself through for_each_graph).
/// Cost     near-linear in the number of nodes.
struct Pass {
  std::string_view name;
  /// The lowest level at which it runs.
  int level;
  Status (*run)(Graph& graph, const PassOptions& options);
};

}  // namespace sardonyx
