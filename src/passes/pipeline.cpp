#include "passes/pipeline.h"

#include <array>

#include "ops/infer.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

constexpr std::array kCommonPasses = {
    Pass{"remove_no_ops", 1, remove_no_ops},
    Pass{"gather_first", 1, gather_first},
    Pass{"fold_constants", 1, fold_constants},
    Pass{"remove_dead_nodes", 1, remove_dead_nodes},
};

constexpr std::array kProviderPasses = {
    Pass{"widen_floats", 0, widen_floats},
    Pass{"fuse_quantized_conv", 0, fuse_quantized_conv},
    Pass{"fuse_quantized_matmul", 0, fuse_quantized_matmul},
    Pass{"fuse_quantized_add", 0, fuse_quantized_add},
    Pass{"remove_dead_nodes", 0, remove_dead_nodes},
    Pass{"fold_weights", 1, fold_weights},
    Pass{"fold_channel_scale", 0, fold_channel_scale},
    Pass{"fuse_hard_swish", 0, fuse_hard_swish},
    Pass{"fuse_gelu", 0, fuse_gelu},
    Pass{"fuse_norm", 0, fuse_norm},
    Pass{"fuse_silu", 0, fuse_silu},
    Pass{"remove_dead_nodes", 0, remove_dead_nodes},
    Pass{"fuse_conv", 0, fuse_conv},
    Pass{"remove_dead_nodes", 0, remove_dead_nodes},
    Pass{"fuse_matmul", 0, fuse_matmul},
    Pass{"fuse_integer_matmul", 0, fuse_integer_matmul},
    Pass{"use_channels_last", 0, use_channels_last},
    Pass{"remove_no_ops", 0, remove_no_ops},
    Pass{"remove_dead_nodes", 0, remove_dead_nodes},
};

bool is_skipped(std::string_view skipped, std::string_view name) {
  while (!skipped.empty()) {
    const std::size_t end = std::min(skipped.find(';'), skipped.size());
    if (skipped.substr(0, end) == name) return true;
    skipped.remove_prefix(std::min(end + 1, skipped.size()));
  }
  return false;
}

}  // namespace

std::span<const Pass> passes_of(PassStage stage) {
  return stage == PassStage::Common ? std::span<const Pass>(kCommonPasses)
                                    : std::span<const Pass>(kProviderPasses);
}

Status run_passes(PassStage stage, Graph& graph, const PassOptions& options) {
  for (const Pass& pass : passes_of(stage)) {
    if (options.level < pass.level || is_skipped(options.skipped, pass.name)) continue;
    Status status = pass.run(graph, options);
    if (status.ok()) status = infer_types(graph);
    if (!status.ok()) {
      return std::move(status).with("running pass '" + std::string(pass.name) + "'");
    }
  }
  return {};
}

}  // namespace sardonyx
