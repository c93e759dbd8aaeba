#include "session/compile.h"

#include <algorithm>

#include "session/compiled_model.h"
#include "session/context_model.h"
#include "session/context_parts.h"
#include "session/load.h"
#include "session/weightless.h"

namespace sardonyx {

namespace {

void name_providers(const Providers& providers, const std::vector<PlannedPart>& parts,
                    CompiledModel& made) {
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    made.providers.emplace_back(providers[i]->name());
    const bool is_used = std::any_of(parts.begin(), parts.end(),
                                     [&](const PlannedPart& part) { return part.provider == i; });
    if (is_used) made.used_providers.emplace_back(providers[i]->name());
  }
}

/// The parts of one provider, compiled together.
Status compile_with(const Provider& provider, const std::vector<CompiledPart*>& parts,
                    std::vector<Graph> graphs, const CompileOptions& options) {
  if (parts.empty()) return {};
  auto compiled = provider.compile_all(std::move(graphs), options);
  if (!compiled.ok()) {
    const std::string name(provider.name());
    return std::move(compiled).take_status().with("compiling for " + name);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->compiled = std::move((*compiled)[i]);
  return {};
}

Result<std::unique_ptr<Compiled>> load_into(PlacedModel& placed, const Graph& graph,
                                            const ArtifactProvider& keeper) {
  SDX_ASSIGN(LoadedContext loaded,
             load_context(graph, keeper, placed.compile_options, placed.options));
  placed.files.insert(placed.files.end(), loaded.files.begin(), loaded.files.end());
  return std::move(loaded.compiled);
}

/// Who kept what the part is, or null.
const ArtifactProvider* keeper_of_part(const PlacedModel& placed, const PlannedPart& plan) {
  return keeper_of(placed.model.graph.node(plan.nodes.front()), placed.providers);
}

/// The graph as it is, also one without nodes.
Result<std::unique_ptr<Compiled>> compile_whole(PlacedModel& placed) {
  if (!placed.parts.empty()) {
    const ArtifactProvider* keeper = keeper_of_part(placed, placed.parts.front());
    if (keeper != nullptr) return load_into(placed, placed.model.graph, *keeper);
  }
  return placed.providers.front()->compile(placed.model.graph, placed.compile_options);
}

}  // namespace

Result<std::vector<CompiledPart>> compile_parts(PlacedModel& placed,
                                                FunctionRef<bool(const PlannedPart&)> is_wanted) {
  std::vector<CompiledPart> parts(placed.parts.size());
  for (std::uint32_t i = 0; i < placed.providers.size(); ++i) {
    std::vector<CompiledPart*> wanted;
    std::vector<Graph> graphs;
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const PlannedPart& plan = placed.parts[p];
      if (plan.provider != i) continue;
      Part part = extract_part(placed.model.graph, plan.nodes);
      parts[p] = {placed.providers[i], nullptr, std::move(part.inputs), std::move(part.outputs)};
      if (!is_wanted(plan)) continue;
      if (const ArtifactProvider* keeper = keeper_of_part(placed, plan)) {
        SDX_ASSIGN(parts[p].compiled, load_into(placed, part.graph, *keeper));
      } else {
        graphs.push_back(std::move(part.graph));
        wanted.push_back(&parts[p]);
      }
    }
    SDX_TRY(compile_with(*placed.providers[i], wanted, std::move(graphs), placed.compile_options));
  }
  return parts;
}

Result<CompiledModel> assemble(PlacedModel& placed, std::vector<CompiledPart> parts) {
  CompiledModel made;
  name_providers(placed.providers, placed.parts, made);
  made.assigned_parts = std::move(placed.assigned_parts);
  made.placement = std::move(placed.placement);
  if (placed.is_whole) {
    SDX_ASSIGN(made.compiled, compile_whole(placed));
  } else {
    made.compiled = join_parts(placed.model.graph, std::move(parts), placed.providers);
  }
  made.own_providers = std::move(placed.own_providers);
  made.files = std::move(placed.files);
  return made;
}

Result<CompiledModel> compile_model(Model model, const Environment& environment,
                                    const SessionOptions& options, ThreadPool& pool,
                                    const ContextOptions* context,
                                    std::span<const std::string> sources) {
  SDX_TRY(report_progress(options, LoadStage::Compile));
  if (context != nullptr) name_borders(model.graph);
  PlacedModel placed(std::move(model), environment, options, pool);
  SDX_TRY(place_model(placed));
  std::vector<CompiledPart> parts;
  if (!placed.is_whole || context != nullptr) {
    SDX_ASSIGN(parts,
               compile_parts(placed, [&](const PlannedPart&) { return !placed.is_whole; }));
  }
  if (context != nullptr) {
    SDX_TRY(write_context_model(placed, parts, sources, *context, ContainerFiles(options)));
  }
  return assemble(placed, std::move(parts));
}

}  // namespace sardonyx
