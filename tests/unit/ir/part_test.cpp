#include "ir/part.h"

#include <doctest/doctest.h>

using namespace sardonyx;

namespace {

Type floats() { return Type::tensor(DType::Float32, Shape{2}); }

/// Three values before it, then a node whose branch uses the last of them.
Graph graph_with_branch() {
  Graph graph;
  for (const char* name : {"a", "b", "condition", "captured"}) {
    graph.add_input(graph.add_value(name, floats()));
  }
  auto branch = std::make_shared<Graph>();
  const ValueId inner = branch->capture(3, "captured", floats());
  const ValueId result = branch->add_value("result", floats());
  Node negation;
  negation.op_type = "Neg";
  negation.inputs = {inner};
  negation.outputs = {result};
  branch->add_node(std::move(negation));
  branch->add_output(result);
  Node node;
  node.op_type = "If";
  node.inputs = {2};
  node.outputs = {graph.add_value("y", floats())};
  node.attributes.set("then_branch", branch);
  graph.add_node(std::move(node));
  graph.add_output(4);
  return graph;
}

ValueId captured_by_branch(const Graph& graph) {
  return subgraphs(graph.node(0)).front()->captures().front().outer;
}

}  // namespace

TEST_CASE("parts can be taken out of a graph again and again, and leave it as it was") {
  const Graph whole = graph_with_branch();
  for (int round = 0; round < 3; ++round) {
    const NodeId nodes[] = {0};
    const Part part = extract_part(whole, nodes);
    CHECK(captured_by_branch(whole) == 3);
    CHECK(part.inputs == std::vector<ValueId>{2, 3});
    const ValueId captured = captured_by_branch(part.graph);
    REQUIRE(captured < part.graph.value_count());
    CHECK(part.graph.value(captured).name == "captured");
  }
}
