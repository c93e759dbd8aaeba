#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ep/device_description.h"
#include "ep/run_state.h"
#include "ir/datum.h"
#include "ir/graph.h"

namespace sardonyx {

/// Memory that a compiled part holds, for reports.
struct CompiledMemory {
  /// Weights in a layout other than the source's.
  std::size_t packed_bytes = 0;
  /// Constants that folding made.
  std::size_t folded_bytes = 0;
  std::size_t arena_bytes = 0;
};

/// Memory that a part will take, told before it is compiled.
struct PartEstimate {
  /// Weights that runs read where the source has them.
  std::size_t source_bytes = 0;
  /// Weights in a layout other than the source's.
  std::size_t packed_bytes = 0;
  /// Constants that folding makes.
  std::size_t folded_bytes = 0;
  /// The most that activations and scratch of one run take at once.
  std::size_t arena_bytes = 0;
  /// Programs and tables.
  std::size_t other_bytes = 0;
  /// Nodes whose sizes only a run tells, as messages describe them: they are not counted.
  std::vector<std::string> unbounded;

  std::size_t total_bytes() const {
    return source_bytes + packed_bytes + folded_bytes + arena_bytes + other_bytes;
  }
};

/// The node that stands for a part in a compiled model, as a provider makes it itself.
struct ContextNode {
  std::string name;
  std::string domain;
  std::string op_type;
  Attributes attributes;
  /// Names of values of the part's graph.
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
};

/// Which weights a compiled model leaves where their source has them.
enum class Weightless : std::uint8_t { None, ExternalOnly, All };

/// How a session asks for it.
struct WeightlessRequest {
  Weightless mode = Weightless::None;
  /// The configuration entry that decided, for messages; "" when none asks.
  std::string_view entry;
  /// A boolean asks for as much as a provider can do: less than `mode` will do, but not nothing.
  bool takes_less = false;
  /// An entry of old, which providers that cannot do it may pass over.
  bool is_optional = false;
};

/// A part of a graph made ready to run. Runs from several threads at once.
class Compiled {
 public:
  virtual ~Compiled() = default;

  /// Inputs and outputs in the order of the part's graph. An output that holds a tensor of the
  /// right type and shape is written into; others are filled. An input without value takes its
  /// default.
  virtual Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) = 0;

  /// The types of the outputs of a run on these inputs, as far as they can be told without it;
  /// others stay as they come in. For callers that make the memory of outputs.
  virtual Status output_types(std::span<const Datum> /*inputs*/, std::span<Type> /*outputs*/,
                              RunState& /*run*/) {
    return {};
  }

  virtual CompiledMemory memory() const { return {}; }
  /// Numbers of inputs and outputs, for parts that are loaded and not compiled from a graph.
  virtual std::pair<std::size_t, std::size_t> end_counts() const { return {0, 0}; }
  /// Gives memory back that only speeds up the next run.
  virtual void shrink() {}
  /// The graph that really runs, after the provider's own passes; null when there is none to show.
  virtual const Graph* optimized_graph() const { return nullptr; }
  /// What stands for the part in a compiled model, when the session's entries ask for one
  /// (ep.context_enable); null when the provider makes none.
  virtual const ContextNode* context_node() const { return nullptr; }
};

/// Whether devices that were chosen together for one provider stay one: rules and budgets may tell
/// them apart.
enum class DeviceSplit : std::uint8_t { None, ByType, Each };

/// What the caller of compile() wants.
struct CompileOptions {
  /// Threads that will run the part.
  int thread_count = 1;
  /// Threads to share the work of compiling with; null: the caller does it alone.
  ThreadPool* pool = nullptr;
  /// Provider and session options by key.
  std::vector<std::pair<std::string, std::string>> entries;
  /// Loading stops when it becomes true; may be null.
  const std::atomic<bool>* cancel = nullptr;
  /// What the part may keep of its weights.
  Weightless weightless = Weightless::None;
  /// Who asked for it.
  WeightlessRequest weightless_request;
  /// Bytes of the model that a weightless compiled one belongs to, when the caller gave them; they
  /// stay as long as the session.
  std::span<const std::byte> weightless_source;
  /// What becomes of a provider for several devices.
  DeviceSplit device_split = DeviceSplit::None;
  /// The model that the graph is a part of: its path, opsets and metadata. Null for a graph alone.
  const Model* model = nullptr;

  std::string_view entry(std::string_view key, std::string_view fallback) const {
    for (const auto& [name, value] : entries) {
      if (name == key) return value;
    }
    return fallback;
  }
};

/// How well what a provider compiled fits the provider that is to run it now.
enum class Compatibility : std::uint8_t {
  NotApplicable,
  Optimal,
  PreferRecompilation,
  Unsupported,
};

/// Nodes that a provider offers to run.
struct NodeGroup {
  std::vector<NodeId> nodes;
  /// All of them become one part; otherwise they may be split and joined with others.
  bool is_fused = false;
};

/// Someone who can execute parts of graphs on a device.
class Provider {
 public:
  virtual ~Provider() = default;

  /// "CPUExecutionProvider".
  virtual std::string_view name() const = 0;
  /// The devices that it works on; none when it does not tell.
  virtual std::vector<DeviceDescription> devices() const { return {}; }
  /// Whether this provider can execute the node; null-terminated reason in `why_not` otherwise.
  virtual bool can_run(const Graph& graph, NodeId node, std::string* why_not) const = 0;
  /// Which of the `free` nodes (in topological order) this provider would run; those that it can,
  /// unless it knows better.
  virtual Result<std::vector<NodeGroup>> offer(const Model& model,
                                               std::span<const NodeId> free) const;
  /// Takes a graph of its own, with types inferred and functions inlined.
  virtual Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                                    const CompileOptions& options) const = 0;
  /// As compile() for all parts of a model, for providers that put them into one file.
  virtual Result<std::vector<std::unique_ptr<Compiled>>> compile_all(
      std::vector<Graph> graphs, const CompileOptions& options) const;
  /// What the part that compile() would make of the graph takes, without reading its weights.
  /// Sizes are those for inputs of the shapes that the graph declares. Nothing from a provider that
  /// cannot tell.
  virtual Result<std::optional<PartEstimate>> estimate(const Graph& graph,
                                                       const CompileOptions& options) const;
  /// What a compiled model is to say about the provider and its device (model metadata
  /// "ep_compatibility_info.NAME"), so that check_compatibility() can judge it later; "" = nothing.
  virtual Result<std::string> compatibility_info(const Model& model) const;
  /// The verdict on such a text.
  virtual Result<Compatibility> check_compatibility(const std::string& info) const;
  /// Before and after every run of a session that has the provider to itself; `caller_options` is
  /// what the C interface was given for the run, or null.
  virtual Status begin_run(const void* caller_options) const;
  virtual Status end_run(const void* caller_options) const;
  /// Changes options of a session that exists.
  /// Errors   Unsupported for a provider that has none.
  virtual Status change_options(std::span<const std::pair<std::string, std::string>> entries) const;
};

using Providers = std::vector<std::shared_ptr<const Provider>>;

/// Makes providers for one session, in order of preference. The options have the model.
using ProviderMaker = std::function<Result<Providers>(const CompileOptions& options)>;

}  // namespace sardonyx
