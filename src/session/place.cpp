#include "session/place.h"

#include <algorithm>
#include <unordered_map>

#include "base/log.h"
#include "base/text.h"
#include "passes/move_channels_last.h"
#include "placement/body_rules.h"
#include "placement/describe.h"
#include "placement/plan_file.h"
#include "placement/rule_matcher.h"
#include "placement/stages.h"
#include "placement/words.h"
#include "session/budgets.h"
#include "session/compiled_model.h"
#include "session/context_parts.h"
#include "session/weightless.h"

namespace sardonyx {

namespace {

constexpr std::uint32_t kNobody = 0xffffffffU;

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

std::vector<ProviderDevices> devices_of(const Providers& providers) {
  std::vector<ProviderDevices> all;
  for (const auto& provider : providers) {
    all.push_back({std::string(provider->name()), provider->devices()});
  }
  return all;
}

/// What a designator tells apart: "gpu:1" devices of one type, "npu" types, a provider nothing.
DeviceSplit split_for(std::string_view designator) {
  const std::string_view word = designator.substr(0, designator.find(':'));
  const bool is_type = same_word(word, "gpu") || same_word(word, "npu") || same_word(word, "fpga");
  const std::size_t colon = designator.rfind(':');
  const bool is_numbered =
      colon != std::string_view::npos && colon + 1 < designator.size() &&
      designator.find_first_not_of("0123456789 ", colon + 1) == std::string_view::npos;
  if (is_numbered || (is_type && colon != std::string_view::npos)) return DeviceSplit::Each;
  return is_type ? DeviceSplit::ByType : DeviceSplit::None;
}

/// What the options say about who runs what.
struct Wishes {
  std::optional<RuleMatcher> matcher;
  /// By NodeId; nodes that were made since are not in it.
  std::vector<NodeMatch> matches;
  /// By NodeId; empty without budgets.
  std::vector<BudgetedNode> budgeted;
};

/// The rules of the session, or those of its plan.
/// Errors   InvalidArgument for rules that cannot be read, and for rules beside a plan.
Result<Rules> rules_of(const SessionOptions& options, std::optional<PlanFile>& plan) {
  const std::string placement = options.entry(std::string(kPlacementOption));
  const std::string names = options.entry(std::string(kNamesOption));
  const std::string annotations = options.entry(std::string(kAnnotationsOption));
  const std::string path = options.entry(std::string(kPlanOption));
  if (path.empty()) return parse_rules({placement, names, annotations});
  if (!placement.empty() || !names.empty() || !annotations.empty()) {
    return failure(Code::InvalidArgument,
                   "{} stands for all rules, and '{}' is set beside it; give one of the two",
                   kPlanOption, !placement.empty() ? kPlacementOption
                                : !names.empty()   ? kNamesOption
                                                   : kAnnotationsOption);
  }
  SDX_ASSIGN(plan, load_plan(path));
  return Rules{plan->rules, {}};
}

void warn(Placement& placement, std::string text) {
  log(Severity::Warning, "{}", text);
  placement.warnings.push_back(std::move(text));
}

Result<Wishes> match_rules(PlacedModel& placed, Rules rules, const std::optional<PlanFile>& plan) {
  Wishes wishes;
  for (std::string& warning : rules.warnings) warn(placed.placement, std::move(warning));
  if (rules.empty()) return wishes;
  SDX_ASSIGN(wishes.matcher, RuleMatcher::create(std::move(rules), devices_of(placed.providers)));
  wishes.matches = match_graph(*wishes.matcher, placed.model.graph);
  auto findings = findings_of(*wishes.matcher, placed.model.graph);
  if (plan) {
    auto more = plan_findings(*plan, placed.model.graph, wishes.matches);
    std::move(more.begin(), more.end(), std::back_inserter(findings));
  }
  SDX_TRY(RuleMatcher::strict_status(findings));
  for (const Finding& finding : findings) warn(placed.placement, finding.text);
  return wishes;
}

/// Rules that speak of nodes in bodies.
Status check_bodies(PlacedModel& placed, const Wishes& wishes, const Assignment& assignment) {
  if (!wishes.matcher) return {};
  SDX_ASSIGN(const auto findings,
             find_body_rules(*wishes.matcher, placed.model.graph, wishes.matches, assignment));
  SDX_TRY(RuleMatcher::strict_status(findings));
  for (const Finding& finding : findings) warn(placed.placement, finding.text);
  return {};
}

/// Errors   InvalidArgument, naming the first node that a strict rule does not have where it says.
Status check_strict(const Placement& placement) {
  for (const PlacedNode& node : placement.nodes) {
    if (node.why_not.empty() || node.rule >= placement.rules.size()) continue;
    const PlacedRule& rule = placement.rules[node.rule];
    if (!rule.is_strict) continue;
    return failure(Code::InvalidArgument,
                   "{}: strict rule '{}' cannot be kept for node '{}' ({}): {}", rule.option,
                   rule.text, node.name, node.op_type, node.why_not);
  }
  return {};
}

/// Offers nodes to one provider after the other.
class Assigner {
 public:
  Assigner(PlacedModel& placed, const Wishes& wishes)
      : model_(placed.model),
        providers_(placed.providers),
        wishes_(wishes),
        own_count_(static_cast<std::uint32_t>(placed.own_providers.size())) {
    for (const NodeMatch& match : wishes.matches) {
      wanted_.push_back(match.provider.value_or(kNobody));
    }
    if (wishes.budgeted.empty()) return;
    wanted_.clear();
    for (const BudgetedNode& node : wishes.budgeted) wanted_.push_back(node.provider);
  }

  /// Nodes that a provider was asked to take by a rule are kept from the others until it does not
  /// take them.
  Result<Assignment> run() {
    for (int round = 0; round < 2; ++round) {
      for (std::uint32_t i = 0; i < providers_.size(); ++i) SDX_TRY(offer_to(i));
      SDX_ASSIGN(const auto left, free_nodes());
      if (left.empty()) return std::move(assignment_);
      // Whoever came before the provider that did not take them has not seen them yet.
      if (wanted_.empty()) break;
    }
    return refused();
  }

  /// Why a node is where it is, by NodeId.
  std::vector<PlacementReason> take_reasons() { return std::move(reasons_); }

 private:
  std::uint32_t wanted(NodeId id) const { return id < wanted_.size() ? wanted_[id] : kNobody; }

  void fit() {
    assignment_.resize(model_.graph.node_count(), NodePlacement{kNobody, kNoGroup});
    reasons_.resize(model_.graph.node_count(), PlacementReason::Capability);
  }

  Result<std::vector<NodeId>> free_nodes() {
    SDX_ASSIGN(const auto order, model_.graph.topological_order());
    fit();
    std::vector<NodeId> free;
    for (const NodeId id : order) {
      if (assignment_[id].provider == kNobody) free.push_back(id);
    }
    return free;
  }

  /// The free nodes that a provider may see.
  Result<std::vector<NodeId>> visible_nodes(std::uint32_t provider) {
    SDX_ASSIGN(std::vector<NodeId> free, free_nodes());
    std::erase_if(free, [&](NodeId id) { return wanted(id) != kNobody && wanted(id) != provider; });
    return free;
  }

  Status offer_to(std::uint32_t provider) {
    SDX_ASSIGN(std::vector<NodeId> visible, visible_nodes(provider));
    if (visible.empty()) return {};
    take_kept(provider, visible);
    const DeviceProvider* device = as_device(*providers_[provider]);
    SDX_ASSIGN(const auto groups, device == nullptr
                                      ? ask(provider, visible)
                                      : ask_channels_last(*device, provider, visible));
    fit();
    for (const NodeGroup& group : groups) {
      const std::uint32_t number = group.is_fused ? group_count_++ : kNoGroup;
      for (const NodeId id : group.nodes) assign(id, provider, number);
    }
    release(provider);
    return {};
  }

  void assign(NodeId id, std::uint32_t provider, std::uint32_t group) {
    assignment_[id] = {provider, group};
    const auto ruled = id < wishes_.matches.size() ? wishes_.matches[id].provider : std::nullopt;
    if (ruled == provider) reasons_[id] = PlacementReason::Rule;
  }

  /// What the provider was to run and did not take is free for all.
  void release(std::uint32_t provider) {
    for (NodeId id = 0; id < wanted_.size(); ++id) {
      if (wanted_[id] != provider || assignment_[id].provider != kNobody) continue;
      wanted_[id] = kNobody;
      reasons_[id] = PlacementReason::Fallback;
    }
  }

  /// Takes the nodes that stand for what the provider kept, each as a part of its own, from those
  /// that are free.
  void take_kept(std::uint32_t provider, std::vector<NodeId>& free) {
    std::erase_if(free, [&](NodeId id) {
      const ArtifactProvider* keeper = keeper_of(model_.graph.node(id), providers_);
      if (keeper == nullptr || keeper != providers_[provider].get()) return false;
      assignment_[id] = {provider, group_count_++};
      reasons_[id] = PlacementReason::Compiled;
      return true;
    });
  }

  /// What the provider offers for nodes; in stages, if others have nodes in between: what it makes
  /// one part of must not wait for itself.
  Result<std::vector<NodeGroup>> ask(std::uint32_t provider, const std::vector<NodeId>& visible) {
    SDX_ASSIGN(const auto order, model_.graph.topological_order());
    const bool is_alone = visible.size() == order.size() || provider >= own_count_;
    if (is_alone) return providers_[provider]->offer(model_, visible);
    std::vector<NodeGroup> groups;
    for (const auto& stage : cut_into_stages(model_.graph, order, visible, assignment_)) {
      SDX_ASSIGN(auto offered, providers_[provider]->offer(model_, stage));
      std::move(offered.begin(), offered.end(), std::back_inserter(groups));
    }
    return groups;
  }

  static bool takes_all(const std::vector<NodeGroup>& groups, const std::vector<NodeId>& nodes) {
    std::vector<NodeId> taken;
    for (const NodeGroup& group : groups) {
      taken.insert(taken.end(), group.nodes.begin(), group.nodes.end());
    }
    std::sort(taken.begin(), taken.end());
    return std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) {
      return std::binary_search(taken.begin(), taken.end(), id);
    });
  }

  /// What a provider offers that wants channels last: the model is rewritten for it, unless it then
  /// does not take all nodes that were rewritten.
  Result<std::vector<NodeGroup>> ask_channels_last(const DeviceProvider& device,
                                                   std::uint32_t provider,
                                                   const std::vector<NodeId>& visible) {
    SDX_ASSIGN(const auto nodes, device.wants_channels_last(model_, visible));
    if (nodes.empty()) return ask(provider, visible);
    Graph before = model_.graph;
    SDX_ASSIGN(const auto moved,
               move_channels_last(model_.graph, nodes, visible, model_.opset("")));
    SDX_ASSIGN(const auto changed, visible_nodes(provider));
    SDX_ASSIGN(auto groups, ask(provider, changed));
    if (takes_all(groups, moved)) return groups;
    model_.graph = std::move(before);
    return ask(provider, visible);
  }

  /// Errors   always: why the first node that is left is not run.
  Status refused() {
    SDX_ASSIGN(const auto free, free_nodes());
    const Graph& graph = model_.graph;
    const auto context = std::find_if(free.begin(), free.end(),
                                      [&](NodeId id) { return is_context_node(graph.node(id)); });
    if (context != free.end()) return untaken_context_node(graph.node(*context), providers_);
    std::string reason;
    if (providers_.back()->can_run(graph, free.front(), &reason)) {
      reason =
          fmt::format("no execution provider takes {}", graph.node(free.front()).describe(graph));
    }
    return Status(Code::Unsupported, reason);
  }

  Model& model_;
  const Providers& providers_;
  const Wishes& wishes_;
  std::uint32_t own_count_;
  /// By NodeId: the provider that is to run it.
  std::vector<std::uint32_t> wanted_;
  Assignment assignment_;
  std::vector<PlacementReason> reasons_;
  std::uint32_t group_count_ = 0;
};

/// The nodes of each provider in the graph's order, those of a group together at its first.
std::vector<AssignedPart> describe_assignment(const Graph& graph, const std::vector<NodeId>& order,
                                              const Providers& providers,
                                              const Assignment& assignment) {
  std::vector<AssignedPart> parts;
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    std::unordered_map<std::uint32_t, std::size_t> part_of_group;
    for (const NodeId id : order) {
      const NodePlacement& place = assignment[id];
      if (place.provider != i) continue;
      std::size_t part = parts.size();
      if (place.group != kNoGroup) {
        part = part_of_group.try_emplace(place.group, part).first->second;
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

/// Who has the whole model, if one provider does.
Result<std::optional<Assignment>> place_whole(PlacedModel& placed,
                                              const std::vector<NodeId>& order) {
  const Graph& graph = placed.model.graph;
  std::uint32_t number = keeper_of_all(graph, order, placed.providers);
  if (number == kNobody) {
    const bool has_kept = std::any_of(order.begin(), order.end(), [&](NodeId id) {
      return keeper_of(graph.node(id), placed.providers) != nullptr;
    });
    if (!placed.own_providers.empty() || placed.providers.size() != 1 || has_kept) {
      return std::optional<Assignment>();
    }
    SDX_TRY(check_whole(placed.providers, graph, order));
    number = 0;
  }
  placed.is_whole = true;
  if (!order.empty()) placed.parts.push_back({number, order});
  return std::optional(Assignment(graph.node_count(), NodePlacement{number, kNoGroup}));
}

/// What rules and budgets tell apart.
DeviceSplit split_for_all(const Rules& rules, const std::vector<BudgetSettings>& budgets) {
  DeviceSplit split = DeviceSplit::None;
  for (const Rule& rule : rules.rules) split = std::max(split, split_for(rule.device));
  for (const BudgetSettings& budget : budgets) {
    for (const DeviceBudget& entry : budget.devices) {
      split = std::max(split, split_for(entry.device));
    }
  }
  return split;
}

Status make_providers(PlacedModel& placed) {
  const CompileOptions& options = placed.compile_options;
  SDX_ASSIGN(placed.own_providers, make_own_providers(placed.options, options));
  SDX_ASSIGN(placed.providers,
             with_shared(placed.own_providers, placed.environment, placed.options));
  return {};
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

namespace {

/// Gives every node a provider, and notes why.
Result<Assignment> place_parts(PlacedModel& placed, const Wishes& wishes,
                               std::vector<PlacementReason>& reasons) {
  SDX_ASSIGN(std::vector<NodeId> order, placed.model.graph.topological_order());
  SDX_ASSIGN(auto whole, place_whole(placed, order));
  if (whole) {
    reasons.assign(placed.model.graph.node_count(), PlacementReason::Capability);
    for (NodeId id = 0; id < wishes.matches.size(); ++id) {
      if (wishes.matches[id].provider == 0) reasons[id] = PlacementReason::Rule;
    }
    return *std::move(whole);
  }
  Assigner assigner(placed, wishes);
  SDX_ASSIGN(Assignment assignment, assigner.run());
  reasons = assigner.take_reasons();
  SDX_ASSIGN(order, placed.model.graph.topological_order());
  SDX_ASSIGN(placed.parts, order_parts(placed.model.graph, order, assignment));
  SDX_TRY(
      check_fallback(placed.model, placed.options, placed.own_providers.size(), assignment, order));
  SDX_TRY(check_compilation(placed, assignment, order));
  return assignment;
}

/// One line: nodes and weights by device.
void log_summary(const Placement& placement) {
  if (log_level() > Severity::Info) return;
  std::vector<std::string> texts;
  for (const PlacedDevice& device : placement.devices) {
    if (device.node_count == 0) continue;
    texts.push_back(fmt::format("{} nodes with {} of weights on {} ({})", device.node_count,
                                describe_bytes(device.weight_bytes), device_name(device),
                                device.provider));
  }
  log(Severity::Info, "placement: {}", join(texts, "; "));
}

}  // namespace

Status place_model(PlacedModel& placed) {
  SDX_ASSIGN(placed.compile_options.weightless_request, weightless_request(placed.options));
  placed.compile_options.weightless = placed.compile_options.weightless_request.mode;
  placed.compile_options.weightless_source = placed.options.weightless_source;
  warn_of_old_weightless_entries(placed.options);
  std::optional<PlanFile> plan;
  SDX_ASSIGN(Rules rules, rules_of(placed.options, plan));
  SDX_ASSIGN(const auto budgets, budgets_of(placed.options));
  placed.compile_options.device_split = split_for_all(rules, budgets);
  SDX_TRY(make_providers(placed));
  SDX_TRY(check_compiled_model(placed.model, placed.providers, placed.options));
  for (const ProviderDevices& device : devices_of(placed.providers)) {
    PlacedDevice& described = placed.placement.devices.emplace_back();
    described.provider = device.provider;
    described.devices = device.devices;
  }
  SDX_ASSIGN(Wishes wishes, match_rules(placed, std::move(rules), plan));
  SDX_ASSIGN(wishes.budgeted, spread_by_budget(placed, budgets, wishes.matches));
  std::vector<PlacementReason> reasons;
  SDX_ASSIGN(const Assignment assignment, place_parts(placed, wishes, reasons));
  std::vector<std::string> over_budget;
  for (const BudgetedNode& node : wishes.budgeted) over_budget.push_back(node.why_not);
  describe_placement({placed.model.graph, placed.parts, reasons, wishes.matches,
                      wishes.matcher ? &*wishes.matcher : nullptr, over_budget},
                     placed.placement);
  SDX_TRY(check_strict(placed.placement));
  SDX_TRY(check_bodies(placed, wishes, assignment));
  log_summary(placed.placement);
  if (records_assignment(placed.compile_options)) {
    SDX_ASSIGN(const auto order, placed.model.graph.topological_order());
    placed.assigned_parts =
        describe_assignment(placed.model.graph, order, placed.providers, assignment);
  }
  return {};
}

}  // namespace sardonyx
