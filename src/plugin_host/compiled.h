#pragma once

#include <string>
#include <vector>

#include "plugin_host/provider.h"
#include "sardonyx/c_api.h"

/// What a plugin may ask when it makes the state of a compiled part.
struct OrtNodeComputeContext {
  std::string node_name;
};

namespace sardonyx::plugin_host {

/// A part that a plugin compiled. The provider outlives it.
class CompiledPlugin final : public DeviceCompiled {
 public:
  /// With `drops_constants` the plugin keeps the part's constants itself, otherwise they are inputs
  /// of every run, after the part's own.
  CompiledPlugin(const PluginProvider& provider, Graph graph, bool drops_constants)
      : provider_(provider),
        library_(provider.library()),
        ep_(provider.ep()),
        graph_(std::move(graph)),
        drops_constants_(drops_constants) {}
  ~CompiledPlugin() override;

  /// Has the plugin compile the part as a node of that name, and makes its state.
  Status prepare(const std::string& name, const Model& model);
  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) override;
  const Place* input_place(std::size_t) const override { return provider_.place(); }
  const Place* output_place(std::size_t) const override { return provider_.place(); }

 private:
  Status compile(const std::string& name, const Model& model);

  const PluginProvider& provider_;
  std::string library_;
  OrtEp& ep_;
  Graph graph_;
  bool drops_constants_;
  std::vector<Datum> constants_;
  OrtNodeComputeInfo* info_ = nullptr;
  void* state_ = nullptr;
  bool has_state_ = false;
};

}  // namespace sardonyx::plugin_host
