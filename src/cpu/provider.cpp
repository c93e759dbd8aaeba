#include "cpu/provider.h"

#include <algorithm>

#include "base/build_id.h"
#include "base/text.h"
#include "cpu/artifact.h"
#include "cpu/estimate.h"
#include "cpu/lower.h"
#include "exec/executor.h"
#include "ir/custom_operator.h"
#include "ops/infer.h"
#include "ops/schema.h"
#include "passes/passes.h"
#include "passes/pipeline.h"

namespace sardonyx {

namespace {

/// Float products may pack this much, or this share of all weights if that is more.
constexpr std::size_t kSpare_bytes_least = std::size_t{48} << 20;
constexpr double kSpare_share = 0.1;
/// Everything together may take as much as the weights themselves, or this if that is more.
constexpr std::size_t kNeeded_bytes_least = std::size_t{128} << 20;

std::size_t constant_bytes(const Graph& graph) {
  std::size_t total = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const auto& constant = graph.value(id).constant;
    if (constant) total += constant->byte_size();
  }
  return total;
}

PackingBounds packing_bounds(const Graph& graph) {
  const std::size_t total_bytes = constant_bytes(graph);
  const auto share = static_cast<std::size_t>(static_cast<double>(total_bytes) * kSpare_share);
  return {std::max(kSpare_bytes_least, share), std::max(kNeeded_bytes_least, total_bytes)};
}

/// Lets go of weights that the program does not read: a folded one would lie beside its packed
/// form.
void release_unread(const Program& program, Graph& graph) {
  for (const ValueId id : unread_constants(program)) graph.value(id).constant.reset();
}

class CpuCompiled final : public Compiled {
 public:
  CpuCompiled(Graph graph, PackedWeights weights, Program program)
      : graph_(std::move(graph)),
        packed_bytes_(weights.used_bytes()),
        executor_(std::move(program)) {}

  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& state) override {
    return executor_.run(inputs, {}, outputs, state);
  }
  Status output_types(std::span<const Datum> inputs, std::span<Type> outputs,
                      RunState& state) override {
    return executor_.output_types(inputs, {}, outputs, state);
  }
  std::pair<std::size_t, std::size_t> end_counts() const override {
    return {executor_.program().inputs.size(), executor_.program().outputs.size()};
  }
  CompiledMemory memory() const override {
    return {packed_bytes_, 0, executor_.memory().arena_bytes};
  }
  void shrink() override { executor_.shrink(); }
  const Graph* optimized_graph() const override { return &graph_; }

 private:
  Graph graph_;
  std::size_t packed_bytes_;
  Executor executor_;
};

class CpuProvider final : public ArtifactProvider {
 public:
  explicit CpuProvider(std::shared_ptr<WeightStore> weights) : weights_(std::move(weights)) {}

  std::string_view name() const override { return "CPUExecutionProvider"; }
  std::vector<DeviceDescription> devices() const override {
    return {{DeviceType::Cpu, "", 0, std::nullopt, 0}};
  }

  bool can_run(const Graph& graph, NodeId id, std::string* why_not) const override {
    const Node& node = graph.node(id);
    if (node.custom != nullptr) {
      const bool is_ours = node.custom->runs_on(name());
      if (!is_ours && why_not != nullptr) {
        *why_not = fmt::format("custom operator {}:{} is made for another provider", node.domain,
                               node.op_type);
      }
      return is_ours;
    }
    const auto schema = find_schema(node.domain, node.op_type, node.opset);
    if (!schema.ok() && why_not != nullptr) *why_not = schema.status().message();
    if (!schema.ok()) return false;
    const bool is_compiled = (*schema)->has(kCompiledPart);
    if (is_compiled && why_not != nullptr) {
      *why_not = fmt::format("{} holds what another provider compiled", node.describe(graph));
    }
    return !is_compiled;
  }

  Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                            const CompileOptions& options) const override {
    SDX_TRY(run_passes(PassStage::Provider, graph, pass_options(options)));
    if (options.weightless != Weightless::None) return finish_weightless(std::move(graph), options);
    PackedWeights weights(*weights_, packing_bounds(graph));
    return finish(std::move(graph), options, std::move(weights));
  }

  Result<std::optional<PartEstimate>> estimate(const Graph& source,
                                               const CompileOptions& options) const override {
    Graph graph = source;
    SDX_TRY(run_passes(PassStage::Provider, graph, pass_options(options)));
    PackingBounds bounds;
    if (options.weightless == Weightless::None) {
      bounds = packing_bounds(graph);
    } else {
      SDX_TRY(fold_for_weightless(graph));
    }
    PackedWeights weights(*weights_, bounds);
    SDX_ASSIGN(const Program program, lower(graph, weights, options.thread_count));
    SDX_TRY(weights.pretend_all());
    SDX_ASSIGN(PartEstimate estimate, estimate_part(source, graph, program, weights));
    return std::optional(std::move(estimate));
  }

  std::string_view context_source() const override { return "SardonyxExecutionProvider"; }

  Result<std::string> compatibility_info(const Model&) const override {
    return fmt::format("sardonyx;build={};isa={}", build_id(), packing_isa());
  }
  Result<Compatibility> check_compatibility(const std::string& info) const override {
    if (!info.starts_with("sardonyx;")) return Compatibility::NotApplicable;
    const bool is_ours = info == fmt::format("sardonyx;build={};isa={}", build_id(), packing_isa());
    return is_ours ? Compatibility::Optimal : Compatibility::Unsupported;
  }

  Status save(Graph graph, const CompileOptions& options, ArtifactWriter& writer) const override {
    SDX_TRY(run_passes(PassStage::Provider, graph, pass_options(options)));
    return save_graph(graph, options, writer);
  }

  Result<std::unique_ptr<Compiled>> load(const Artifact& artifact,
                                         const CompileOptions& options) const override {
    SDX_ASSIGN(SavedGraph saved, read_graph(artifact));
    if (saved.is_weightless) return finish_weightless(std::move(saved.graph), options);
    return finish(std::move(saved.graph), options, PackedWeights(std::move(saved.packing)));
  }

 private:
  static PassOptions pass_options(const CompileOptions& options) {
    PassOptions passes;
    passes.keeps_weights = options.weightless != Weightless::None;
    return passes;
  }

  static Status fold_for_weightless(Graph& graph) {
    PassOptions passes;
    passes.folded_bytes_max = std::size_t{1} << 30;
    SDX_TRY(fold_weights(graph, passes));
    return infer_types(graph);
  }

  /// Weights stay where they are; what has to be computed from them is, once.
  Result<std::unique_ptr<Compiled>> finish_weightless(Graph graph,
                                                      const CompileOptions& options) const {
    SDX_TRY(fold_for_weightless(graph));
    return finish(std::move(graph), options, PackedWeights(*weights_, {0, 0}));
  }

  static Result<std::unique_ptr<Compiled>> finish(Graph graph, const CompileOptions& options,
                                                  PackedWeights weights) {
    SDX_ASSIGN(Program program, lower(graph, weights, options.thread_count));
    SDX_TRY(weights.make_all(options.pool));
    release_unread(program, graph);
    return std::unique_ptr<Compiled>(
        std::make_unique<CpuCompiled>(std::move(graph), std::move(weights), std::move(program)));
  }

  std::shared_ptr<WeightStore> weights_;
};

}  // namespace

std::unique_ptr<Provider> make_cpu_provider(std::shared_ptr<WeightStore> weights) {
  return std::make_unique<CpuProvider>(std::move(weights));
}

}  // namespace sardonyx
