#pragma once

#include <memory>
#include <string>
#include <vector>

#include "plugin_host/kernel_registry.h"
#include "plugin_host/plugin_call.h"
#include "plugin_host/provider.h"

namespace sardonyx::plugin_host {

/// A part whose nodes a plugin runs one by one, by kernels of its registry. Values between nodes
/// stay in the memory that the kernels say. The provider outlives it.
class KernelPart final : public DeviceCompiled, public capi::KernelMaker {
 public:
  KernelPart(const PluginProvider& provider, Graph graph, const CompileOptions& options);
  ~KernelPart() override;

  /// Makes the kernels, brings the constants to where they are needed, and offers them for packing.
  /// Errors   those of the plugin, naming the node.
  Status prepare(const CompileOptions& options);

  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) override;
  const Place* input_place(std::size_t i) const override;
  const Place* output_place(std::size_t i) const override;

  const OrtEp* ep() const override { return &provider_.ep(); }
  Result<OrtAllocator*> allocator(OrtMemType mem_type) override;

 private:
  struct Input {
    ValueId value = kNoValue;
    const Place* place = nullptr;
    bool is_constant = false;
    /// What a constant is, empty when the kernel packed it.
    Datum constant;
  };
  struct Output {
    ValueId value = kNoValue;
    PluginCall::Output operand;
    /// Which output of the part, or -1.
    int part_output = -1;
    bool is_used = true;
  };
  struct Step {
    /// Lives as long as the kernel: plugins keep the pointer.
    std::unique_ptr<OrtKernelInfo> info;
    OrtKernelImpl* kernel = nullptr;
    std::string description;
    std::string node_name;
    std::string op_type;
    std::vector<Input> inputs;
    std::vector<Output> outputs;
    std::vector<ValueId> released;
  };

  Status add_node(NodeId id);
  Status create_kernel(const OrtKernelRegistry::Entry& entry, const Node& node, Step& step);
  Status pack_weights(Step& step);
  Status pack_weight(Step& step, std::size_t i);
  void plan_releases();
  Result<Datum> input_at(const Input& input, std::span<const Datum> slots) const;
  Status run_step(const Step& step, std::span<Datum> slots, std::span<const Datum> given,
                  RunState& run) const;

  const PluginProvider& provider_;
  Graph graph_;
  std::shared_ptr<const capi::KernelSession> session_;
  std::vector<const Place*> input_places_;
  std::vector<const Place*> output_places_;
  std::vector<std::pair<ValueId, Datum>> output_constants_;
  std::vector<Step> steps_;
  /// Packed weights that kernels gave to be shared.
  std::vector<std::shared_ptr<const void>> packed_;
};

}  // namespace sardonyx::plugin_host
