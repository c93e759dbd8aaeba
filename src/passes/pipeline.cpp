#include "passes/pipeline.h"

namespace sardonyx {

std::span<const Pass> passes_of(PassStage) { return {}; }

Status run_passes(PassStage stage, Graph& graph, const PassOptions& options) {
  for (const Pass& pass : passes_of(stage)) {
    if (options.level < pass.level) continue;
    Status status = pass.run(graph, options);
    if (!status.ok()) return std::move(status).with("running pass '" + std::string(pass.name) + "'");
  }
  return {};
}

Status inline_functions(Model& model) {
  if (model.functions.empty()) return {};
  return Status(Code::Unsupported, "models with functions of their own are not supported yet");
}

}  // namespace sardonyx
