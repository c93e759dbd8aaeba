#include "session/compile.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "passes/move_channels_last.h"
#include "session/compiled_model.h"
#include "session/context_model.h"
#include "session/context_parts.h"
#include "session/load.h"
#include "session/weightless.h"

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

bool takes_all(const std::vector<NodeGroup>& groups, const std::vector<NodeId>& nodes) {
  return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
    return std::any_of(groups.begin(), groups.end(), [&](const NodeGroup& group) {
      return std::find(group.nodes.begin(), group.nodes.end(), id) != group.nodes.end();
    });
  });
}

/// The nodes of `order` that nobody has.
std::vector<NodeId> free_nodes(const std::vector<NodeId>& order, const Assignment& assignment) {
  std::vector<NodeId> free;
  for (const NodeId id : order) {
    if (id >= assignment.size() || assignment[id].provider == kNobody) free.push_back(id);
  }
  return free;
}

/// What a provider offers that wants channels last: the model is rewritten for it, unless it then
/// does not take all nodes that were rewritten. `free` are the nodes of the model that results.
Result<std::vector<NodeGroup>> offer_channels_last(const DeviceProvider& provider, Model& model,
                                                   const Assignment& assignment,
                                                   std::vector<NodeId>& free) {
  SDX_ASSIGN(const auto wanted, provider.wants_channels_last(model, free));
  if (wanted.empty()) return provider.offer(model, free);
  Graph before = model.graph;
  SDX_ASSIGN(const auto moved, move_channels_last(model.graph, wanted, free, model.opset("")));
  SDX_ASSIGN(const auto order, model.graph.topological_order());
  const std::vector<NodeId> former = std::exchange(free, free_nodes(order, assignment));
  SDX_ASSIGN(auto groups, provider.offer(model, free));
  if (takes_all(groups, moved)) return groups;
  model.graph = std::move(before);
  free = former;
  return provider.offer(model, free);
}

/// Takes the nodes that stand for what the provider kept, each as a part of its own, from those
/// that are free.
void take_kept(const Model& model, const Providers& providers, std::uint32_t provider,
               Assignment& assignment, std::uint32_t& group_count, std::vector<NodeId>& free) {
  std::erase_if(free, [&](NodeId id) {
    const ArtifactProvider* keeper = keeper_of(model.graph.node(id), providers);
    if (keeper == nullptr || keeper != providers[provider].get()) return false;
    assignment[id] = {provider, group_count++};
    return true;
  });
}

/// Offers the nodes that are still free, all at first, to one provider after the other.
Result<Assignment> assign(Model& model, const Providers& providers) {
  SDX_ASSIGN(std::vector<NodeId> free, model.graph.topological_order());
  Assignment assignment;
  std::uint32_t group_count = 0;
  for (std::uint32_t i = 0; i < providers.size() && !free.empty(); ++i) {
    assignment.resize(model.graph.node_count(), NodePlacement{kNobody, kNoGroup});
    take_kept(model, providers, i, assignment, group_count, free);
    const DeviceProvider* device = as_device(*providers[i]);
    SDX_ASSIGN(const auto groups, device == nullptr
                                      ? providers[i]->offer(model, free)
                                      : offer_channels_last(*device, model, assignment, free));
    assignment.resize(model.graph.node_count(), NodePlacement{kNobody, kNoGroup});
    for (const NodeGroup& group : groups) {
      const std::uint32_t number = group.is_fused ? group_count++ : kNoGroup;
      for (const NodeId id : group.nodes) assignment[id] = {i, number};
    }
    std::erase_if(free, [&](NodeId id) { return assignment[id].provider != kNobody; });
  }
  assignment.resize(model.graph.node_count(), NodePlacement{kNobody, kNoGroup});
  if (free.empty()) return assignment;
  const auto context = std::find_if(free.begin(), free.end(), [&](NodeId id) {
    return is_context_node(model.graph.node(id));
  });
  if (context != free.end()) return untaken_context_node(model.graph.node(*context), providers);
  std::string reason;
  if (providers.back()->can_run(model.graph, free.front(), &reason)) {
    reason = fmt::format("no execution provider takes {}",
                         model.graph.node(free.front()).describe(model.graph));
  }
  return Status(Code::Unsupported, reason);
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

/// The nodes of each provider in the graph's order, those of a group together at its first.
std::vector<AssignedPart> describe_assignment(const Graph& graph, const std::vector<NodeId>& order,
                                              const Providers& providers,
                                              const Assignment& assignment) {
  std::vector<AssignedPart> parts;
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    std::unordered_map<std::uint32_t, std::size_t> part_of_group;
    for (const NodeId id : order) {
      const NodePlacement& placement = assignment[id];
      if (placement.provider != i) continue;
      std::size_t part = parts.size();
      if (placement.group != kNoGroup) {
        part = part_of_group.try_emplace(placement.group, part).first->second;
      }
      if (part == parts.size()) parts.push_back({std::string(providers[i]->name()), {}});
      const Node& node = graph.node(id);
      parts[part].nodes.push_back({node.name, node.domain, node.op_type});
    }
  }
  return parts;
}

/// Whether nodes may run on the providers that every session has.
/// Errors   InvalidArgument, naming the first node that does, when the options forbid it.
Status check_fallback(const Model& model, const SessionOptions& options, std::size_t own_count,
                      const Assignment& assignment, const std::vector<NodeId>& order) {
  if (options.entry("session.disable_cpu_ep_fallback") != "1") return {};
  const auto fallen = std::find_if(order.begin(), order.end(),
                                   [&](NodeId id) { return assignment[id].provider >= own_count; });
  if (fallen == order.end()) return {};
  return failure(Code::InvalidArgument,
                 "{} is assigned to the default CPU EP, but fallback to CPU EP has been explicitly "
                 "disabled (session.disable_cpu_ep_fallback)",
                 model.graph.node(*fallen).describe(model.graph));
}

/// Errors   NeedsCompiling for nodes that a provider makes one part of, when the options forbid
///          that; nodes that are compiled already are free.
Status check_compilation(const PlacedModel& placed, const Assignment& assignment,
                         const std::vector<NodeId>& order) {
  if (placed.compile_options.entry("session.disable_model_compile", "0") != "1") return {};
  for (const NodeId id : order) {
    if (assignment[id].group == kNoGroup) continue;
    if (is_context_node(placed.model.graph.node(id))) continue;
    return failure(Code::NeedsCompiling,
                   "User disabled EP compilation but EP {} needs to compile one or more nodes "
                   "(session.disable_model_compile)",
                   placed.providers[assignment[id].provider]->name());
  }
  return {};
}

bool records_assignment(const CompileOptions& options) {
  return options.entry("session.record_ep_graph_assignment_info", "0") == "1";
}

/// Errors   Unsupported, naming the first node that the one provider does not run.
Status check_whole(const Providers& providers, const Graph& graph,
                   const std::vector<NodeId>& order) {
  for (const NodeId id : order) {
    std::string reason;
    if (providers.front()->can_run(graph, id, &reason)) continue;
    const Node& node = graph.node(id);
    if (is_context_node(node)) return untaken_context_node(node, providers);
    return Status(Code::Unsupported, reason);
  }
  return {};
}

/// The number of the provider that kept the one node which the whole model is, or kNobody.
std::uint32_t keeper_of_all(const Graph& graph, const std::vector<NodeId>& order,
                            const Providers& providers) {
  if (order.size() != 1) return kNobody;
  const Node& node = graph.node(order.front());
  if (node.inputs != graph.inputs() || node.outputs != graph.outputs()) return kNobody;
  const ArtifactProvider* keeper = keeper_of(node, providers);
  const auto found = std::find_if(providers.begin(), providers.end(),
                                  [&](const auto& each) { return each.get() == keeper; });
  if (found == providers.end()) return kNobody;
  return static_cast<std::uint32_t>(found - providers.begin());
}

/// Whether one provider has the whole model, which then is its part.
Result<bool> place_whole(PlacedModel& placed) {
  const Graph& graph = placed.model.graph;
  SDX_ASSIGN(const auto order, graph.topological_order());
  std::uint32_t number = keeper_of_all(graph, order, placed.providers);
  if (number == kNobody) {
    const bool has_kept = std::any_of(order.begin(), order.end(), [&](NodeId id) {
      return keeper_of(graph.node(id), placed.providers) != nullptr;
    });
    if (!placed.own_providers.empty() || placed.providers.size() != 1 || has_kept) return false;
    SDX_TRY(check_whole(placed.providers, graph, order));
    number = 0;
  }
  placed.is_whole = true;
  if (!order.empty()) placed.parts.push_back({number, order});
  if (records_assignment(placed.compile_options)) {
    const Assignment all(graph.node_count(), NodePlacement{number, kNoGroup});
    placed.assigned_parts = describe_assignment(graph, order, placed.providers, all);
  }
  return true;
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

PlacedModel::PlacedModel(Model given, const Environment& shared, const SessionOptions& chosen,
                         ThreadPool& pool)
    : model(std::move(given)), environment(shared), options(chosen) {
  compile_options.thread_count = pool.thread_count();
  compile_options.pool = &pool;
  compile_options.entries = {options.entries.begin(), options.entries.end()};
  compile_options.cancel = options.cancel.get();
  compile_options.model = &model;
}

Status place_model(PlacedModel& placed) {
  SDX_ASSIGN(placed.compile_options.weightless_request, weightless_request(placed.options));
  placed.compile_options.weightless = placed.compile_options.weightless_request.mode;
  placed.compile_options.weightless_source = placed.options.weightless_source;
  warn_of_old_weightless_entries(placed.options);
  SDX_ASSIGN(placed.own_providers, make_own_providers(placed.options, placed.compile_options));
  SDX_ASSIGN(placed.providers,
             with_shared(placed.own_providers, placed.environment, placed.options));
  SDX_TRY(check_compiled_model(placed.model, placed.providers, placed.options));
  SDX_ASSIGN(const bool is_whole, place_whole(placed));
  if (is_whole) return {};
  Model& model = placed.model;
  SDX_ASSIGN(const Assignment assignment, assign(model, placed.providers));
  SDX_ASSIGN(const std::vector<NodeId> order, model.graph.topological_order());
  SDX_ASSIGN(placed.parts, order_parts(model.graph, order, assignment));
  SDX_TRY(
      check_fallback(model, placed.options, placed.own_providers.size(), assignment, order));
  SDX_TRY(check_compilation(placed, assignment, order));
  if (records_assignment(placed.compile_options)) {
    placed.assigned_parts = describe_assignment(model.graph, order, placed.providers, assignment);
  }
  return {};
}

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
