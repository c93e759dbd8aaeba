#include "ir/graph.h"

#include <doctest/doctest.h>

#include <algorithm>

using namespace sardonyx;

namespace {

NodeId add_node(Graph& graph, std::string op, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs) {
  Node node;
  node.op_type = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return graph.add_node(std::move(node));
}

/// x -> A -> a -> B -> y, and C(a, a) -> z; y and z are outputs.
struct Small {
  Small() {
    graph.add_input(x);
    first = add_node(graph, "A", {x}, {a});
    second = add_node(graph, "B", {a}, {y});
    third = add_node(graph, "C", {a, a}, {z});
    graph.add_output(y);
    graph.add_output(z);
  }
  Graph graph;
  ValueId x = graph.add_value("x");
  ValueId a = graph.add_value("a");
  ValueId y = graph.add_value("y");
  ValueId z = graph.add_value("z");
  NodeId first = kNoNode;
  NodeId second = kNoNode;
  NodeId third = kNoNode;
};

/// An If whose branch uses `outer`.
NodeId add_branching(Graph& graph, ValueId condition, ValueId outer, ValueId result) {
  auto branch = std::make_shared<Graph>();
  const ValueId inner = branch->capture(outer, "captured", {});
  CHECK(branch->capture(outer, "again", {}) == inner);
  const ValueId negated = branch->add_value("negated");
  add_node(*branch, "Neg", {inner}, {negated});
  branch->add_output(negated);
  Node node;
  node.op_type = "If";
  node.inputs = {condition};
  node.outputs = {result};
  node.attributes.set("then_branch", std::move(branch));
  return graph.add_node(std::move(node));
}

}  // namespace

TEST_CASE("producers and uses follow the nodes") {
  Small small;
  CHECK(small.graph.value(small.a).producer == small.first);
  CHECK(small.graph.value(small.x).producer == kNoNode);
  CHECK(small.graph.value(small.a).use_count == 3);
  CHECK(small.graph.consumers(small.a) == std::vector<NodeId>{small.second, small.third});
  CHECK(small.graph.sole_consumer(small.x) == small.first);
  CHECK(small.graph.sole_consumer(small.a) == kNoNode);
  CHECK(small.graph.sole_consumer(small.y) == kNoNode);
}

TEST_CASE("a removed node uses and makes nothing") {
  Small small;
  small.graph.remove_node(small.third);
  small.graph.remove_node(small.third);
  CHECK(small.graph.value(small.a).use_count == 1);
  CHECK(small.graph.sole_consumer(small.a) == small.second);
  CHECK(small.graph.value(small.z).producer == kNoNode);
  CHECK(*small.graph.topological_order() == std::vector<NodeId>{small.first, small.second});
}

TEST_CASE("replacing uses moves inputs and graph outputs to the other value") {
  Small small;
  small.graph.replace_uses(small.a, small.x);
  CHECK(small.graph.value(small.a).use_count == 0);
  CHECK(small.graph.value(small.x).use_count == 4);
  CHECK(small.graph.node(small.third).inputs == std::vector<ValueId>{small.x, small.x});
  small.graph.replace_uses(small.y, small.a);
  CHECK(small.graph.outputs()[0] == small.a);
  CHECK(small.graph.value(small.a).is_output);
  CHECK(!small.graph.value(small.y).is_output);
}

TEST_CASE("a value can be output twice and stays output until the last is replaced") {
  Small small;
  small.graph.add_output(small.y);
  small.graph.set_output(0, small.x);
  CHECK(small.graph.value(small.y).is_output);
  small.graph.set_output(2, small.x);
  CHECK(!small.graph.value(small.y).is_output);
}

TEST_CASE("inputs and outputs of a node can be exchanged") {
  Small small;
  small.graph.set_input(small.third, 1, small.x);
  CHECK(small.graph.value(small.a).use_count == 2);
  CHECK(small.graph.value(small.x).use_count == 2);
  small.graph.set_inputs(small.third, {kNoValue, small.x});
  CHECK(small.graph.value(small.a).use_count == 1);
  const ValueId other = small.graph.add_value("other");
  small.graph.replace_node_output(small.second, 0, other);
  CHECK(small.graph.value(small.y).producer == kNoNode);
  CHECK(small.graph.value(other).producer == small.second);
}

TEST_CASE("what a subgraph captures is an implicit input of its node") {
  Graph graph;
  const ValueId c = graph.add_value("c");
  const ValueId x = graph.add_value("x");
  const ValueId other = graph.add_value("other");
  const ValueId y = graph.add_value("y");
  graph.add_input(c);
  graph.add_input(x);
  graph.add_input(other);
  const NodeId node = add_branching(graph, c, x, y);
  CHECK(graph.node(node).implicit_inputs == std::vector<ValueId>{x});
  CHECK(graph.value(x).use_count == 1);
  CHECK(graph.consumers(x) == std::vector<NodeId>{node});
  graph.replace_uses(x, other);
  CHECK(graph.node(node).implicit_inputs == std::vector<ValueId>{other});
  CHECK(subgraphs(graph.node(node))[0]->captures()[0].outer == other);
  CHECK(graph.value(x).use_count == 0);
  graph.remove_node(node);
  CHECK(graph.value(other).use_count == 0);
}

TEST_CASE("a copied graph has subgraphs of its own") {
  Graph graph;
  const ValueId c = graph.add_value("c");
  const ValueId y = graph.add_value("y");
  const NodeId node = add_branching(graph, c, c, y);
  Graph copy(graph);
  subgraphs(copy.node(node))[0]->remove_node(0);
  CHECK(!subgraphs(graph.node(node))[0]->node(0).is_removed);
}

TEST_CASE("topological order puts producers first and keeps the order of ids otherwise") {
  Graph graph;
  const ValueId x = graph.add_value("x");
  const ValueId a = graph.add_value("a");
  const ValueId b = graph.add_value("b");
  const ValueId c = graph.add_value("c");
  const NodeId last = add_node(graph, "Last", {b}, {c});
  const NodeId middle = add_node(graph, "Middle", {a}, {b});
  const NodeId first = add_node(graph, "First", {x}, {a});
  const NodeId free = add_node(graph, "Free", {}, {});
  CHECK(*graph.topological_order() == std::vector<NodeId>{first, middle, last, free});
}

TEST_CASE("a captured value orders the node that captures it") {
  Graph graph;
  const ValueId x = graph.add_value("x");
  const ValueId a = graph.add_value("a");
  const ValueId y = graph.add_value("y");
  const NodeId node = add_branching(graph, x, a, y);
  const NodeId maker = add_node(graph, "Make", {x}, {a});
  CHECK(*graph.topological_order() == std::vector<NodeId>{maker, node});
}

TEST_CASE("a cycle is named by a node on it") {
  Graph graph;
  const ValueId a = graph.add_value("a");
  const ValueId b = graph.add_value("b");
  add_node(graph, "A", {b}, {a});
  add_node(graph, "B", {a}, {b});
  const auto order = graph.topological_order();
  REQUIRE(!order.ok());
  CHECK(order.status().message() == "the graph has a cycle through node with output 'a' (A)");
}

TEST_CASE("nodes are described by name or else by their first output") {
  Small small;
  CHECK(small.graph.node(small.first).describe(small.graph) == "node with output 'a' (A)");
  small.graph.node(small.first).name = "n";
  CHECK(small.graph.node(small.first).describe(small.graph) == "node 'n' (A)");
  Node nothing;
  nothing.op_type = "Nop";
  CHECK(nothing.describe(small.graph) == "node without outputs (Nop)");
}

TEST_CASE("unique names differ from each other") {
  Graph graph;
  CHECK(graph.unique_name("x") != graph.unique_name("x"));
}
