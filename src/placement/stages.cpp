#include "placement/stages.h"

#include <algorithm>
#include <unordered_map>

namespace sardonyx {

namespace {

/// Nodes that count as one, and the units that use what they make.
struct Unit {
  std::vector<std::uint32_t> users;
  std::uint32_t waits_for = 0;
  /// The most often that a path to here has come back to chosen nodes from others.
  std::uint32_t stage = 0;
  bool is_chosen = false;
  /// A path leads here from a chosen node.
  bool follows_chosen = false;
};

class StageCutter {
 public:
  StageCutter(const Graph& graph, const std::vector<NodeId>& order,
              const std::vector<NodeId>& chosen, const Assignment& assignment)
      : unit_of_(graph.node_count(), 0) {
    std::unordered_map<std::uint32_t, std::uint32_t> unit_of_group;
    for (const NodeId id : order) {
      const std::uint32_t group = id < assignment.size() ? assignment[id].group : kNoGroup;
      auto index = static_cast<std::uint32_t>(units_.size());
      if (group != kNoGroup) index = unit_of_group.emplace(group, index).first->second;
      if (index == units_.size()) units_.emplace_back();
      unit_of_[id] = index;
    }
    for (const NodeId id : chosen) units_[unit_of_[id]].is_chosen = true;
    for (const NodeId id : order) connect(graph, id);
  }

  std::vector<std::vector<NodeId>> cut(const std::vector<NodeId>& chosen) {
    walk();
    std::vector<std::vector<NodeId>> stages;
    for (const NodeId id : chosen) {
      const std::uint32_t stage = units_[unit_of_[id]].stage;
      if (stages.size() <= stage) stages.resize(stage + 1);
      stages[stage].push_back(id);
    }
    std::erase_if(stages, [](const auto& stage) { return stage.empty(); });
    return stages;
  }

 private:
  void connect(const Graph& graph, NodeId id) {
    const auto look = [&](const std::vector<ValueId>& inputs) {
      for (const ValueId input : inputs) {
        if (input == kNoValue || graph.value(input).producer == kNoNode) continue;
        const std::uint32_t maker = unit_of_[graph.value(input).producer];
        if (maker == unit_of_[id]) continue;
        units_[maker].users.push_back(unit_of_[id]);
        ++units_[unit_of_[id]].waits_for;
      }
    };
    look(graph.node(id).inputs);
    look(graph.node(id).implicit_inputs);
  }

  void walk() {
    std::vector<std::uint32_t> ready;
    for (std::uint32_t i = 0; i < units_.size(); ++i) {
      if (units_[i].waits_for == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const Unit& unit = units_[ready.back()];
      ready.pop_back();
      for (const std::uint32_t user : unit.users) {
        pass_on(unit, units_[user]);
        if (--units_[user].waits_for == 0) ready.push_back(user);
      }
    }
  }

  /// What a unit tells the ones that use it. A path that left the chosen nodes and comes back to
  /// them begins a new stage.
  static void pass_on(const Unit& from, Unit& to) {
    const bool comes_back = to.is_chosen && !from.is_chosen && from.follows_chosen;
    to.stage = std::max(to.stage, from.stage + (comes_back ? 1U : 0U));
    to.follows_chosen = to.follows_chosen || from.is_chosen || from.follows_chosen;
  }

  std::vector<std::uint32_t> unit_of_;
  std::vector<Unit> units_;
};

}  // namespace

std::vector<std::vector<NodeId>> cut_into_stages(const Graph& graph,
                                                 const std::vector<NodeId>& order,
                                                 const std::vector<NodeId>& chosen,
                                                 const Assignment& assignment) {
  return StageCutter(graph, order, chosen, assignment).cut(chosen);
}

}  // namespace sardonyx
