#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "capi/graph_view.h"
#include "plugin_host/provider.h"
#include "sardonyx/c_api.h"

/// What a plugin may ask when it makes the state of a compiled part.
struct OrtNodeComputeContext {
  std::string node_name;
};

namespace sardonyx::plugin_host {

/// How a part is compiled.
struct PartPlan {
  /// Of the node that stands for it.
  std::string name;
  /// The plugin keeps the part's constants itself; otherwise they are inputs of every run, after
  /// the part's own.
  bool drops_constants = false;
};

/// A part that a plugin compiled. The provider outlives it.
class CompiledPlugin final : public DeviceCompiled {
 public:
  CompiledPlugin(const PluginProvider& provider, Graph graph, PartPlan plan);
  ~CompiledPlugin() override;

  /// Has the plugin compile the parts in one call, as it needs them when it puts them into one
  /// file, and makes their states.
  static Status prepare_all(const PluginProvider& provider,
                            const std::vector<CompiledPlugin*>& parts, const Model& model);
  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) override;
  const Place* input_place(std::size_t) const override { return provider_.place(); }
  const Place* output_place(std::size_t) const override { return provider_.place(); }
  const ContextNode* context_node() const override { return context_ ? &*context_ : nullptr; }

 private:
  /// The part as the plugin sees it while it compiles, and as long as it may use weights in place.
  struct Shown {
    std::shared_ptr<const capi::ModelFacts> facts;
    SymbolTable symbols;
    Graph around;
    std::unique_ptr<capi::GraphView> view;
    std::unique_ptr<capi::GraphView> fused;
  };

  Status show(const Model& model);
  /// What the plugin's answer to the call means for this part.
  Status take(OrtNodeComputeInfo* info, const OrtNode* context_node, const Model& model);
  Status make_state();
  /// Lets go of what only compiling needed.
  void settle();

  const PluginProvider& provider_;
  std::string library_;
  OrtEp& ep_;
  Graph graph_;
  PartPlan plan_;
  std::unique_ptr<Shown> shown_;
  std::vector<Datum> constants_;
  std::optional<ContextNode> context_;
  OrtNodeComputeInfo* info_ = nullptr;
  void* state_ = nullptr;
  bool has_state_ = false;
};

}  // namespace sardonyx::plugin_host
