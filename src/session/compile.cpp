#include "session/compile.h"

#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "passes/move_channels_last.h"
#include "placement/parts.h"
#include "session/compiled_model.h"
#include "session/context_parts.h"
#include "session/load.h"
#include "session/parts.h"
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

/// The parts of one provider, compiled together.
Status compile_with(const Provider& provider, const std::vector<CompiledPart*>& parts,
                    std::vector<Graph> graphs, const CompileOptions& options) {
  auto compiled = provider.compile_all(std::move(graphs), options);
  if (!compiled.ok()) {
    const std::string name(provider.name());
    return std::move(compiled).take_status().with("compiling for " + name);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->compiled = std::move((*compiled)[i]);
  return {};
}

Result<std::unique_ptr<Compiled>> load_into(CompiledModel& made, const Graph& graph,
                                            const ArtifactProvider& keeper,
                                            const CompileOptions& compile_options,
                                            const SessionOptions& options) {
  SDX_ASSIGN(LoadedContext loaded, load_context(graph, keeper, compile_options, options));
  made.files.insert(made.files.end(), loaded.files.begin(), loaded.files.end());
  return std::move(loaded.compiled);
}

Result<std::unique_ptr<Compiled>> compile_parts(const Model& model, const Providers& providers,
                                                const std::vector<PlannedPart>& planned,
                                                const CompileOptions& options,
                                                const SessionOptions& session_options,
                                                CompiledModel& made) {
  std::vector<CompiledPart> parts(planned.size());
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    std::vector<CompiledPart*> compiled;
    std::vector<Graph> graphs;
    for (std::size_t p = 0; p < planned.size(); ++p) {
      if (planned[p].provider != i) continue;
      Part part = extract_part(model.graph, planned[p].nodes);
      parts[p] = {providers[i], nullptr, std::move(part.inputs), std::move(part.outputs)};
      const NodeId first = planned[p].nodes.front();
      if (const ArtifactProvider* keeper = keeper_of(model.graph.node(first), providers)) {
        SDX_ASSIGN(parts[p].compiled,
                   load_into(made, part.graph, *keeper, options, session_options));
      } else {
        graphs.push_back(std::move(part.graph));
        compiled.push_back(&parts[p]);
      }
    }
    if (!compiled.empty())
      SDX_TRY(compile_with(*providers[i], compiled, std::move(graphs), options));
  }
  return join_parts(model.graph, std::move(parts), providers);
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
  const auto entry = options.entries.find("session.disable_cpu_ep_fallback");
  if (entry == options.entries.end() || entry->second != "1") return {};
  const auto fallen = std::find_if(order.begin(), order.end(),
                                   [&](NodeId id) { return assignment[id].provider >= own_count; });
  if (fallen == order.end()) return {};
  return failure(Code::InvalidArgument,
                 "{} is assigned to the default CPU EP, but fallback to CPU EP has been explicitly "
                 "disabled (session.disable_cpu_ep_fallback)",
                 model.graph.node(*fallen).describe(model.graph));
}

bool records_assignment(const CompileOptions& options) {
  return options.entry("session.record_ep_graph_assignment_info", "0") == "1";
}

/// One of the providers has all of the model.
void name_all(const Provider& user, const Providers& providers, CompiledModel& made) {
  for (const auto& provider : providers) made.providers.emplace_back(provider->name());
  made.used_providers.emplace_back(user.name());
}

/// Whether the model is nothing but a node that stands for what one of the providers kept.
const ArtifactProvider* keeper_of_all(const Graph& graph, const std::vector<NodeId>& order,
                                      const Providers& providers) {
  if (order.size() != 1) return nullptr;
  const Node& node = graph.node(order.front());
  const bool is_all = node.inputs == graph.inputs() && node.outputs == graph.outputs();
  return is_all ? keeper_of(node, providers) : nullptr;
}

/// The whole model by the one provider there is.
Result<CompiledModel> compile_whole(const Model& model, const Providers& providers,
                                    const std::vector<NodeId>& order,
                                    const CompileOptions& options, CompiledModel made) {
  const Provider& provider = *providers.front();
  for (const NodeId id : order) {
    std::string reason;
    if (provider.can_run(model.graph, id, &reason)) continue;
    const Node& node = model.graph.node(id);
    if (is_context_node(node)) return untaken_context_node(node, providers);
    return Status(Code::Unsupported, reason);
  }
  made.providers.emplace_back(provider.name());
  if (!order.empty()) made.used_providers.emplace_back(provider.name());
  if (records_assignment(options)) {
    const Assignment all(model.graph.node_count(), NodePlacement{0, kNoGroup});
    made.assigned_parts = describe_assignment(model.graph, order, providers, all);
  }
  SDX_ASSIGN(made.compiled, provider.compile(model.graph, options));
  return made;
}

}  // namespace

Result<CompiledModel> compile_model(const Model& given, const Environment& environment,
                                    const SessionOptions& options, ThreadPool& pool) {
  SDX_TRY(report_progress(options, LoadStage::Compile));
  CompileOptions compile_options;
  compile_options.thread_count = pool.thread_count();
  compile_options.pool = &pool;
  compile_options.entries = {options.entries.begin(), options.entries.end()};
  compile_options.cancel = options.cancel.get();
  compile_options.model = &given;
  SDX_ASSIGN(compile_options.weightless_request, weightless_request(options));
  compile_options.weightless = compile_options.weightless_request.mode;
  compile_options.weightless_source = options.weightless_source;
  warn_of_old_weightless_entries(options);
  CompiledModel made;
  SDX_ASSIGN(made.own_providers, make_own_providers(options, compile_options));
  SDX_ASSIGN(const Providers providers, with_shared(made.own_providers, environment, options));
  SDX_TRY(check_compiled_model(given, providers, options));
  SDX_ASSIGN(const auto given_order, given.graph.topological_order());
  if (const ArtifactProvider* keeper = keeper_of_all(given.graph, given_order, providers)) {
    name_all(*keeper, providers, made);
    SDX_ASSIGN(made.compiled, load_into(made, given.graph, *keeper, compile_options, options));
    return made;
  }
  const bool has_kept = std::any_of(given_order.begin(), given_order.end(), [&](NodeId id) {
    return keeper_of(given.graph.node(id), providers) != nullptr;
  });
  if (made.own_providers.empty() && providers.size() == 1 && !has_kept) {
    // One provider of the environment runs it all: it gets the graph as it is.
    return compile_whole(given, providers, given_order, compile_options, std::move(made));
  }
  // Weights are shared by the copy.
  Model model = given;
  compile_options.model = &model;
  SDX_ASSIGN(const Assignment assignment, assign(model, providers));
  SDX_ASSIGN(const std::vector<NodeId> order, model.graph.topological_order());
  SDX_ASSIGN(const auto parts, order_parts(model.graph, order, assignment));
  SDX_TRY(check_fallback(model, options, made.own_providers.size(), assignment, order));
  name_providers(providers, parts, made);
  if (records_assignment(compile_options)) {
    made.assigned_parts = describe_assignment(model.graph, order, providers, assignment);
  }
  SDX_ASSIGN(made.compiled, compile_parts(model, providers, parts, compile_options, options, made));
  return made;
}

}  // namespace sardonyx
