#include "placement/parts.h"

#include <algorithm>
#include <map>

#include "base/text.h"

namespace sardonyx {

namespace {

/// What runs at once: a node, or all nodes of a group.
struct Unit {
  std::uint32_t provider = 0;
  bool is_group = false;
  std::vector<NodeId> nodes;
  /// Units that use what this one makes, and how many this one still waits for.
  std::vector<std::uint32_t> users;
  std::uint32_t waits_for = 0;
};

std::vector<Unit> make_units(const std::vector<NodeId>& order, const Assignment& assignment,
                             std::vector<std::uint32_t>& unit_of) {
  std::vector<Unit> units;
  std::map<std::uint32_t, std::uint32_t> unit_of_group;
  for (const NodeId id : order) {
    const NodePlacement& placement = assignment[id];
    const bool is_group = placement.group != kNoGroup;
    auto index = static_cast<std::uint32_t>(units.size());
    if (is_group) index = unit_of_group.emplace(placement.group, index).first->second;
    if (index == units.size()) units.push_back({placement.provider, is_group, {}, {}, 0});
    units[index].nodes.push_back(id);
    unit_of[id] = index;
  }
  return units;
}

/// The units whose results a unit uses, each once.
std::vector<std::uint32_t> makers_of(const Graph& graph, const std::vector<std::uint32_t>& unit_of,
                                     const Unit& unit, std::uint32_t index) {
  std::vector<std::uint32_t> makers;
  const auto look = [&](const std::vector<ValueId>& inputs) {
    for (const ValueId input : inputs) {
      if (input == kNoValue || graph.value(input).producer == kNoNode) continue;
      const std::uint32_t maker = unit_of[graph.value(input).producer];
      if (maker != index) makers.push_back(maker);
    }
  };
  for (const NodeId id : unit.nodes) {
    look(graph.node(id).inputs);
    look(graph.node(id).implicit_inputs);
  }
  std::sort(makers.begin(), makers.end());
  makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
  return makers;
}

void connect(const Graph& graph, const std::vector<std::uint32_t>& unit_of,
             std::vector<Unit>& units) {
  for (std::uint32_t index = 0; index < units.size(); ++index) {
    const auto makers = makers_of(graph, unit_of, units[index], index);
    for (const std::uint32_t maker : makers) units[maker].users.push_back(index);
    units[index].waits_for = static_cast<std::uint32_t>(makers.size());
  }
}

/// Units that can run, per provider, the oldest first.
class ReadyUnits {
 public:
  explicit ReadyUnits(const std::vector<Unit>& units) : units_(units) {
    for (std::uint32_t i = 0; i < units.size(); ++i) {
      if (units[i].waits_for == 0) push(i);
    }
  }
  bool empty() const { return ready_.empty(); }
  bool has(std::uint32_t provider) const { return ready_.count(provider) != 0; }
  std::uint32_t first_provider() const { return ready_.begin()->first; }
  void push(std::uint32_t unit) { ready_[units_[unit].provider].units.push_back(unit); }
  std::uint32_t pop(std::uint32_t provider) {
    Queue& queue = ready_[provider];
    const std::uint32_t unit = queue.units[queue.next++];
    if (queue.next == queue.units.size()) ready_.erase(provider);
    return unit;
  }

 private:
  struct Queue {
    std::vector<std::uint32_t> units;
    std::size_t next = 0;
  };
  const std::vector<Unit>& units_;
  std::map<std::uint32_t, Queue> ready_;
};

Status entangled(const Graph& graph, const std::vector<Unit>& units) {
  for (const Unit& unit : units) {
    if (unit.waits_for == 0 || !unit.is_group) continue;
    return failure(Code::Runtime,
                   "{} nodes are to run as one part, from {} on, but need results that nodes "
                   "outside make of theirs",
                   unit.nodes.size(), graph.node(unit.nodes.front()).describe(graph));
  }
  return Status(Code::Runtime, "the parts of the graph wait for each other");
}

}  // namespace

Result<std::vector<PlannedPart>> order_parts(const Graph& graph, const std::vector<NodeId>& order,
                                             const Assignment& assignment) {
  std::vector<std::uint32_t> unit_of(graph.node_count(), 0);
  std::vector<Unit> units = make_units(order, assignment, unit_of);
  connect(graph, unit_of, units);
  ReadyUnits ready(units);
  std::vector<PlannedPart> parts;
  std::size_t done = 0;
  bool is_open = false;  // whether the last part takes more nodes
  while (!ready.empty()) {
    const bool goes_on = !parts.empty() && ready.has(parts.back().provider);
    const std::uint32_t provider = goes_on ? parts.back().provider : ready.first_provider();
    const Unit& unit = units[ready.pop(provider)];
    if (!is_open || !goes_on || unit.is_group) parts.push_back({provider, {}});
    is_open = !unit.is_group;
    std::vector<NodeId>& nodes = parts.back().nodes;
    nodes.insert(nodes.end(), unit.nodes.begin(), unit.nodes.end());
    for (const std::uint32_t user : unit.users) {
      if (--units[user].waits_for == 0) ready.push(user);
    }
    ++done;
  }
  if (done != units.size()) return entangled(graph, units);
  return parts;
}

}  // namespace sardonyx
