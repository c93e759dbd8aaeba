#include "session/compile.h"

#include <algorithm>

#include "base/text.h"
#include "placement/parts.h"
#include "session/load.h"
#include "session/parts.h"

namespace sardonyx {

namespace {

bool is_wanted(const Provider& provider, const SessionOptions& options) {
  const auto& names = options.providers;
  return names.empty() || std::find(names.begin(), names.end(), provider.name()) != names.end();
}

Result<Providers> make_own_providers(const SessionOptions& options,
                                     const CompileOptions& compile_options) {
  Providers providers;
  for (const ProviderMaker& make : options.own_providers) {
    SDX_ASSIGN(const Providers made, make(compile_options));
    providers.insert(providers.end(), made.begin(), made.end());
  }
  return providers;
}

Result<Providers> with_shared(Providers providers, const Environment& environment,
                              const SessionOptions& options) {
  for (const auto& provider : environment.providers()) {
    if (is_wanted(*provider, options)) providers.push_back(provider);
  }
  if (providers.empty()) return Status(Code::Unsupported, "no execution provider is available");
  return providers;
}

constexpr std::uint32_t kNobody = 0xffffffffU;

/// Offers the nodes that are still free, all at first, to one provider after the other.
Result<Assignment> assign(const Model& model, const Providers& providers,
                          std::vector<NodeId> free) {
  Assignment assignment(model.graph.node_count(), NodePlacement{kNobody, kNoGroup});
  std::uint32_t group_count = 0;
  for (std::uint32_t i = 0; i < providers.size() && !free.empty(); ++i) {
    SDX_ASSIGN(const auto groups, providers[i]->offer(model, free));
    for (const NodeGroup& group : groups) {
      const std::uint32_t number = group.is_fused ? group_count++ : kNoGroup;
      for (const NodeId id : group.nodes) assignment[id] = {i, number};
    }
    std::erase_if(free, [&](NodeId id) { return assignment[id].provider != kNobody; });
  }
  if (free.empty()) return assignment;
  std::string reason;
  if (providers.back()->can_run(model.graph, free.front(), &reason)) {
    reason = fmt::format("no execution provider takes {}",
                         model.graph.node(free.front()).describe(model.graph));
  }
  return Status(Code::Unsupported, reason);
}

Result<std::unique_ptr<Compiled>> compile_with(const Provider& provider, Graph graph,
                                               const CompileOptions& options) {
  auto compiled = provider.compile(std::move(graph), options);
  if (compiled.ok()) return compiled;
  return std::move(compiled).take_status().with("compiling for " + std::string(provider.name()));
}

Result<std::unique_ptr<Compiled>> compile_parts(const Model& model, const Providers& providers,
                                                const std::vector<PlannedPart>& planned,
                                                const CompileOptions& options) {
  std::vector<CompiledPart> parts;
  for (const PlannedPart& plan : planned) {
    Part part = extract_part(model.graph, plan.nodes);
    const auto& provider = providers[plan.provider];
    SDX_ASSIGN(auto compiled, compile_with(*provider, std::move(part.graph), options));
    parts.push_back({provider, std::move(compiled), part.inputs, part.outputs});
  }
  return join_parts(model.graph, std::move(parts));
}

void name_providers(const Providers& providers, const std::vector<PlannedPart>& parts,
                    CompiledModel& made) {
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    made.providers.emplace_back(providers[i]->name());
    const bool is_used = std::any_of(parts.begin(), parts.end(),
                                     [&](const PlannedPart& part) { return part.provider == i; });
    if (is_used) made.used_providers.emplace_back(providers[i]->name());
  }
}

}  // namespace

Result<CompiledModel> compile_model(const Model& model, const Environment& environment,
                                    const SessionOptions& options, ThreadPool& pool) {
  SDX_TRY(report_progress(options, LoadStage::Compile));
  CompileOptions compile_options;
  compile_options.thread_count = pool.thread_count();
  compile_options.pool = &pool;
  compile_options.entries = {options.entries.begin(), options.entries.end()};
  compile_options.cancel = options.cancel.get();
  compile_options.model = &model;
  CompiledModel made;
  SDX_ASSIGN(made.own_providers, make_own_providers(options, compile_options));
  SDX_ASSIGN(const Providers providers, with_shared(made.own_providers, environment, options));
  SDX_ASSIGN(const std::vector<NodeId> order, model.graph.topological_order());
  SDX_ASSIGN(const Assignment assignment, assign(model, providers, order));
  SDX_ASSIGN(const auto parts, order_parts(model.graph, order, assignment));
  name_providers(providers, parts, made);
  if (made.own_providers.empty() && parts.size() <= 1) {
    // One provider of the environment runs it all: it gets the graph as it is.
    const auto& provider = providers[parts.empty() ? 0 : parts.front().provider];
    SDX_ASSIGN(made.compiled, provider->compile(model.graph, compile_options));
  } else {
    SDX_ASSIGN(made.compiled, compile_parts(model, providers, parts, compile_options));
  }
  return made;
}

}  // namespace sardonyx
