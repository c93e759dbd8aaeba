#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// What a node needs when it runs, in bytes.
struct NodeMemory {
  /// Inputs that others make or the caller feeds.
  std::uint64_t input_bytes = 0;
  /// Constants.
  std::uint64_t initializer_bytes = 0;
  std::uint64_t output_bytes = 0;
  /// Work space while it runs.
  std::uint64_t scratch_bytes = 0;

  std::uint64_t total_bytes() const;
  friend bool operator==(const NodeMemory&, const NodeMemory&) = default;
};

/// Adds sizes; a sum that does not fit is the largest number.
NodeMemory operator+(const NodeMemory& a, const NodeMemory& b);

/// What a statistics file calls a node: its name (or operator, if it has none), '_' and a number
/// made of the names of its inputs and outputs, as ONNX Runtime makes it.
std::string statistics_key(const Graph& graph, const Node& node);

/// The rows of a statistics file: per key the most that any run needed.
///
/// File     lines of text, "key,inputs,initializers,outputs,scratch" in bytes; lines that begin
///          with '#' and empty ones are passed over. Keys may hold commas: the four numbers are
///          counted from the end of the line. Line ends in names are written as spaces.
/// Source   the format of ONNX Runtime's session.collect_node_memory_stats_to_file.
class NodeStatistics {
 public:
  struct Row {
    std::string key;
    NodeMemory memory;
  };

  /// `name` is how messages call the text.
  /// Errors   InvalidArgument with the line.
  static Result<NodeStatistics> parse(std::string_view text, const std::string& name);
  /// Errors   NoSuchFile, and those of parse().
  static Result<NodeStatistics> read(const std::string& path);

  /// Adds a row, or raises the numbers of the one that is there; whether anything changed.
  bool add(const std::string& key, const NodeMemory& memory);
  /// The file appears whole or not at all; one that is there is replaced.
  Status write(const std::string& path) const;

  const std::vector<Row>& rows() const { return rows_; }

 private:
  std::vector<Row> rows_;
  std::unordered_map<std::string, std::size_t> index_;
};

/// Where a statistics file lies: a relative path belongs to the model's folder, or, for a model
/// that was given as bytes (`model_path` = ""), to the current one.
std::string statistics_path(const std::string& path, const std::string& model_path);

/// Errors   InvalidArgument, naming the path and its folder, when no file can be written there.
Status check_statistics_path(const std::string& path);

/// Statistics by node of a graph.
struct MatchedStatistics {
  /// By NodeId; what its subgraphs' nodes need is part of a node's.
  std::vector<std::optional<NodeMemory>> nodes;
  /// How many nodes of the graph, and of those in subgraphs, have a row.
  std::size_t matched_count = 0;
  /// Nodes without row, as messages describe them, and keys that belong to no node.
  std::vector<std::string> missing;
  std::vector<std::string> unused;
};

/// Finds the rows of a graph's nodes: by the whole key, else by the name alone when only one row
/// and one node have it (other passes have rewritten what stands around the node since).
MatchedStatistics match_statistics(const Graph& graph, const NodeStatistics& statistics);

/// "3 of 5 nodes have no row in 'stats.csv': node 'a' (Add), ...; 2 of its rows belong to no node:
/// ..."; "" when nothing is missing or left over.
std::string describe_mismatch(const MatchedStatistics& matched, const std::string& path);

}  // namespace sardonyx
