#include "placement/describe.h"

#include <fmt/core.h>

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "placement/designator.h"

namespace sardonyx {

namespace {

std::uint64_t tensor_bytes(const Type& type) {
  if (!type.is_tensor() || !type.shape) return 0;
  const auto count = type.shape->element_count();
  if (!count) return 0;
  return dtype_bytes(type.dtype, *count).value_or(0);
}

class Describer {
 public:
  Describer(const PlacementFacts& facts, Placement& placement)
      : facts_(facts), placement_(placement) {
    rules_of_names();
    if (facts.matcher != nullptr) add_rules();
  }

  void run() {
    std::vector<std::uint32_t> device_of(facts_.graph.node_count(), 0);
    for (std::uint32_t part = 0; part < facts_.parts.size(); ++part) {
      const PlannedPart& plan = facts_.parts[part];
      for (const NodeId id : plan.nodes) {
        device_of[id] = plan.provider;
        add_node(id, plan.provider, part);
      }
    }
    for (const PlannedPart& plan : facts_.parts) {
      for (const NodeId id : plan.nodes) add_copies(id, plan.provider, device_of);
    }
  }

 private:
  /// Nodes that were rewritten since rules were matched have the names of those that they were.
  void rules_of_names() {
    if (facts_.matches.size() == facts_.graph.node_count()) return;
    for (NodeId id = 0; id < facts_.matches.size(); ++id) {
      const Node& node = facts_.graph.node(id);
      if (node.is_removed && !node.name.empty()) rewritten_.emplace(node.name, id);
    }
  }

  const NodeMatch* match_of(NodeId id) const {
    if (id < facts_.matches.size()) return &facts_.matches[id];
    const auto found = rewritten_.find(facts_.graph.node(id).name);
    return found == rewritten_.end() ? nullptr : &facts_.matches[found->second];
  }

  void add_rules() {
    const auto outcomes = facts_.matcher->outcomes();
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      const Rule& rule = facts_.matcher->rules().rules[i];
      placement_.rules.push_back(
          {rule.to_string(), std::string(rule.is_planned ? kPlanOption : option_of(rule.source)),
           0, 0, outcomes[i].why_not, rule.is_strict});
    }
  }

  void add_node(NodeId id, std::uint32_t device, std::uint32_t part) {
    const Node& node = facts_.graph.node(id);
    PlacedNode placed;
    placed.name = node.name;
    placed.domain = node.domain;
    placed.op_type = node.op_type;
    placed.device = device;
    placed.part = part;
    placed.reason = facts_.reasons[id];
    judge_budget(id, placed);
    judge_rule(id, placed);
    for (const ValueId input : node.inputs) {
      if (input == kNoValue || !facts_.graph.value(input).constant) continue;
      const std::uint64_t bytes = facts_.graph.value(input).constant->byte_size();
      placed.weight_bytes += bytes;
      const bool is_new = weights_.emplace(input, device).second;
      if (is_new) placement_.devices[device].weight_bytes += bytes;
    }
    for (const ValueId output : node.outputs) {
      if (output != kNoValue) placed.output_bytes += tensor_bytes(facts_.graph.value(output).type);
    }
    ++placement_.devices[device].node_count;
    placement_.nodes.push_back(std::move(placed));
  }

  /// Where the device that it would have had is full.
  void judge_budget(NodeId id, PlacedNode& placed) const {
    if (id >= facts_.over_budget.size() || facts_.over_budget[id].empty()) return;
    placed.reason = PlacementReason::Budget;
    placed.why_not = facts_.over_budget[id];
  }

  void judge_rule(NodeId id, PlacedNode& placed) {
    const NodeMatch* match = match_of(id);
    if (match == nullptr) return;
    placed.rule = match->rule != kNoRule ? match->rule : match->missed;
    if (placed.rule == kNoRule) return;
    const bool is_kept = match->provider == placed.device;
    ++(is_kept ? placement_.rules[placed.rule].kept : placement_.rules[placed.rule].lost);
    if (is_kept && placed.reason != PlacementReason::Budget) {
      const bool is_planned = facts_.matcher->rules().rules[placed.rule].is_planned;
      placed.reason = is_planned ? PlacementReason::Plan : PlacementReason::Rule;
    } else if (is_kept || placed.reason == PlacementReason::Budget) {
      return;
    } else if (!match->provider) {
      placed.why_not = placement_.rules[placed.rule].why_not;
    } else if (placed.why_not.empty()) {
      placed.why_not = fmt::format(
          "{} does not take {}", device_name(placement_.devices[*match->provider]), placed.op_type);
    }
  }

  /// What the node needs from other devices; once for all nodes of a device.
  void add_copies(NodeId id, std::uint32_t device, const std::vector<std::uint32_t>& device_of) {
    const Node& node = facts_.graph.node(id);
    for (const auto* inputs : {&node.inputs, &node.implicit_inputs}) {
      for (const ValueId input : *inputs) {
        if (input == kNoValue || facts_.graph.value(input).producer == kNoNode) continue;
        const Value& value = facts_.graph.value(input);
        const std::uint32_t from = device_of[value.producer];
        if (from == device || !copied_.emplace(input, device).second) continue;
        placement_.copies.push_back({value.name, from, device, tensor_bytes(value.type)});
      }
    }
  }

  const PlacementFacts& facts_;
  Placement& placement_;
  std::unordered_map<std::string_view, NodeId> rewritten_;
  std::set<std::pair<ValueId, std::uint32_t>> weights_;
  std::set<std::pair<ValueId, std::uint32_t>> copied_;
};

}  // namespace

std::string device_name(const PlacedDevice& device) {
  const bool is_alone = device.devices.size() == 1;
  if (!is_alone || device.devices.front().type == DeviceType::Unknown) return device.provider;
  const DeviceDescription& one = device.devices.front();
  const bool is_processor = one.type == DeviceType::Cpu;
  if (is_processor) return device.provider == "CPUExecutionProvider" ? "cpu" : device.provider;
  if (!one.ordinal) return std::string(device_word(one.type));
  return fmt::format("{}:{}", device_word(one.type), *one.ordinal);
}

void describe_placement(const PlacementFacts& facts, Placement& placement) {
  Describer(facts, placement).run();
}

}  // namespace sardonyx
