#include "placement/stages.h"

#include <algorithm>
#include <map>

#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

std::vector<NodeId> order_of(const Graph& graph) {
  auto order = graph.topological_order();
  REQUIRE(order.ok());
  return std::move(order).value();
}

/// A graph of nodes that each use up to two earlier results.
SmallGraph random_graph(std::mt19937& random, int node_count) {
  SmallGraph small;
  std::vector<ValueId> values = {small.input("x", {2})};
  for (int i = 0; i < node_count; ++i) {
    const auto pick = [&] { return values[random() % values.size()]; };
    values.push_back(random() % 2 == 0 ? small.node("Relu", {pick()})
                                       : small.node("Add", {pick(), pick()}));
  }
  small.output(values.back());
  return small;
}

}  // namespace

TEST_CASE("nodes with others' nodes in between are in stages of their own") {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId a = small.node("Relu", {x});
  const ValueId b = small.node("Neg", {a});
  small.output(small.node("Add", {b, x}));
  const Graph& graph = small.graph;
  using Stages = std::vector<std::vector<NodeId>>;
  CHECK(cut_into_stages(graph, order_of(graph), {0, 2}, {}) == Stages{{0}, {2}});
  CHECK(cut_into_stages(graph, order_of(graph), {0, 1}, {}) == Stages{{0, 1}});
  CHECK(cut_into_stages(graph, order_of(graph), {1, 2}, {}) == Stages{{1, 2}});
  CHECK(cut_into_stages(graph, order_of(graph), {}, {}).empty());
}

TEST_CASE("a path through a group of another provider counts, also where no edge leads") {
  // a -> b1 and b2 -> a2, where b1 and b2 become one part: a2 has to wait for a1.
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId a1 = small.node("Relu", {x});
  small.output(small.node("Neg", {a1}));
  const ValueId b2 = small.node("Neg", {x});
  small.output(small.node("Relu", {b2}));
  Assignment assignment(4);
  for (auto& placement : assignment) placement.provider = 0xffffffffU;
  using Stages = std::vector<std::vector<NodeId>>;
  CHECK(cut_into_stages(small.graph, order_of(small.graph), {0, 3}, assignment) == Stages{{0, 3}});
  assignment[1] = assignment[2] = {1, 0};
  CHECK(cut_into_stages(small.graph, order_of(small.graph), {0, 3}, assignment) ==
        Stages{{0}, {3}});
}

TEST_CASE("stages of several providers, each made one part, can always be put in order") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const SmallGraph small = random_graph(random, 30);
    const auto order = order_of(small.graph);
    std::vector<std::uint32_t> wanted(order.size());
    for (auto& provider : wanted) provider = static_cast<std::uint32_t>(random() % 3);
    Assignment assignment(order.size());
    std::uint32_t group = 0;
    for (std::uint32_t provider = 0; provider < 3; ++provider) {
      std::vector<NodeId> chosen;
      for (const NodeId id : order) {
        if (wanted[id] == provider) chosen.push_back(id);
      }
      for (const auto& stage : cut_into_stages(small.graph, order, chosen, assignment)) {
        for (const NodeId id : stage) assignment[id] = {provider, group};
        ++group;
      }
    }
    const auto parts = order_parts(small.graph, order, assignment);
    REQUIRE_MESSAGE(parts.ok(), parts.status().to_string());
    std::size_t count = 0;
    for (const PlannedPart& part : *parts) count += part.nodes.size();
    CHECK(count == order.size());
    CHECK(parts->size() == group);
  }
}
