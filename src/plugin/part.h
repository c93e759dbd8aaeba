#pragma once

#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "ep/provider.h"
#include "plugin/context.h"
#include "plugin/host.h"
#include "plugin/virtual_devices.h"

namespace sardonyx::plugin {

/// What the parts of one session share.
struct PartContext {
  Host host;
  std::shared_ptr<const Provider> provider;
  std::shared_ptr<ThreadPool> pool;
  /// All devices whose tensors may come in; the factory's.
  const VirtualDevices* devices = nullptr;
  /// Where this session's tensors are; null for ordinary memory.
  const VirtualDevice* device = nullptr;
  const OrtKernelRegistry* copy_kernels = nullptr;
  std::vector<std::pair<std::string, std::string>> entries;
  ContextOptions compiled_models;
};

/// A fused node of the host, ready to run from several threads at once.
class Part : public OrtNodeComputeInfo {
 public:
  /// Reads the graph, runs the passes of a session over it and compiles it. `fused` is the node
  /// that stands for the graph in the host's.
  ///
  /// When the session asks for a compiled model, the part is kept too, and `context_node` gets the
  /// node that stands for it. A graph of one such node is loaded instead.
  static Result<std::unique_ptr<Part>> compile(const PartContext& context, const OrtGraph& graph,
                                               const OrtNode& fused, OrtNode** context_node);

  Status run(OrtKernelContext& context);
  const Host& host() const { return context_.host; }

 private:
  explicit Part(const PartContext& context);
  Status bind(const Graph& graph, const OrtNode& fused);
  Status read_inputs(const OrtKernelContext& context, std::vector<Datum>& inputs) const;
  Result<Datum> make_output(OrtKernelContext& context, std::size_t i, const Shape& shape) const;
  Status hand_out(OrtKernelContext& context, std::size_t i, const Datum& result) const;

  PartContext context_;
  std::unique_ptr<Compiled> compiled_;
  /// Positions among the fused node's inputs and outputs, in the order of the graph's.
  std::vector<std::size_t> input_index_;
  std::vector<std::size_t> output_index_;
  std::vector<std::string> output_names_;
};

}  // namespace sardonyx::plugin
