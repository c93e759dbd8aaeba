#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "ep/run_state.h"
#include "ir/datum.h"
#include "ir/graph.h"
#include "placement/statistics.h"
#include "session/session.h"

namespace sardonyx {

/// What the instructions of one run took, by node.
class RunMemory final : public MemoryRecorder {
 public:
  struct Sizes {
    std::uint64_t input_bytes = 0;
    std::uint64_t output_bytes = 0;
    std::uint64_t scratch_bytes = 0;
  };

  /// `known` are the names of the model's nodes.
  explicit RunMemory(const std::unordered_set<std::string>& known) : known_(known) {}

  void record(std::string_view node_name, std::string_view description, std::size_t input_bytes,
              std::size_t output_bytes, std::size_t scratch_bytes) override;
  /// Null for a node that did not run by itself.
  const Sizes* find(const std::string& name) const;

 private:
  const std::unordered_set<std::string>& known_;
  std::unordered_map<std::string, Sizes> sizes_;
  std::string last_known_;
};

/// Collects what the nodes of a session's model need and keeps the statistics file of the option
/// session.collect_node_memory_stats_to_file.
///
/// There is a row for every node of the graph that placement sees (after the common passes) and of
/// its subgraphs, however a provider fuses them: inputs, initializers and outputs are those of the
/// node itself, with the sizes of the run's shapes. Scratch is that of the kernel that carries the
/// node's name; what a provider's passes add (transposes between layouts) counts as scratch of the
/// node before it. Sizes that shapes do not tell are those that the run met.
class MemoryCollector {
 public:
  /// Null when the options do not ask.
  /// Errors   InvalidArgument, naming the folder, when the file cannot be written.
  static Result<std::unique_ptr<MemoryCollector>> make(const SessionOptions& options,
                                                       const Model& model);

  RunMemory start() const { return RunMemory(names_); }
  /// Adds what a run on these inputs, in the order of the graph's, took; writes the file if any
  /// number rose.
  Status finish(std::span<const Datum> inputs, const RunMemory& run);

 private:
  MemoryCollector(std::string path, const Graph& graph);
  Status add_sizes(const Graph& graph, const RunMemory& run, bool& has_risen);

  std::string path_;
  std::unordered_set<std::string> names_;
  std::mutex mutex_;
  Graph graph_;
  /// The graph with the sizes of one set of input types, and that set.
  Graph sized_;
  std::string shapes_;
  NodeStatistics statistics_;
  bool is_written_ = false;
};

}  // namespace sardonyx
