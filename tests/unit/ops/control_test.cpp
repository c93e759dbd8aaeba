#include <atomic>
#include <limits>

#include "op_case.h"
#include "ops/infer.h"

using namespace sardonyx;

namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();

Node node_of(std::string op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs) {
  Node node;
  node.op_type = std::move(op_type);
  node.opset = 16;
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return node;
}

/// A Loop over a body (counter, condition, x) -> (condition, x + x, x) with `trips` as M.
Graph doubling_loop(std::int64_t trips) {
  auto body = std::make_shared<Graph>();
  const ValueId counter = body->add_value("counter", Type::tensor(DType::Int64));
  const ValueId condition = body->add_value("condition", Type::tensor(DType::Bool));
  const ValueId x = body->add_value("x", Type::tensor(DType::Float32));
  for (const ValueId input : {counter, condition, x}) body->add_input(input);
  const ValueId next_condition = body->add_value("next_condition");
  const ValueId doubled = body->add_value("doubled");
  const ValueId seen = body->add_value("seen", Type::tensor(DType::Float32, Shape{2}));
  body->add_node(node_of("Identity", {condition}, {next_condition}));
  body->add_node(node_of("Concat", {x, x}, {doubled}));
  body->node(1).attributes.set("axis", Attribute(std::int64_t{0}));
  body->add_node(node_of("Identity", {x}, {seen}));
  for (const ValueId output : {next_condition, doubled, seen}) body->add_output(output);

  Graph graph;
  const ValueId limit = graph.add_value("limit");
  graph.set_constant(limit, tensor_of<std::int64_t>({}, {trips}));
  const ValueId start = graph.add_value("start", Type::tensor(DType::Float32, Shape{1}));
  graph.add_input(start);
  const ValueId last = graph.add_value("last");
  const ValueId history = graph.add_value("history");
  Node loop = node_of("Loop", {limit, kNoValue, start}, {last, history});
  loop.attributes.set("body", Attribute(body));
  graph.add_node(std::move(loop));
  graph.add_output(last);
  graph.add_output(history);
  return graph;
}

Result<std::vector<Datum>> run(Graph& graph, const std::atomic<bool>* cancel = nullptr) {
  SDX_TRY(infer_types(graph));
  SDX_ASSIGN(const Evaluator evaluator, Evaluator::create(graph));
  const std::vector<Datum> inputs{tensor_of<float>({1}, {3.0F})};
  return evaluator.run(inputs, {}, {cancel, 0});
}

}  // namespace

TEST_CASE("a Loop carries values whose shapes change") {
  Graph graph = doubling_loop(1);
  const auto result = run(graph);
  REQUIRE(result.ok());
  CHECK(result->at(0).tensor()->shape() == Shape{2});
  CHECK(result->at(1).tensor()->shape() == Shape{1, 1});
}

TEST_CASE("a Loop that never turns gives back its start, and empty scan outputs") {
  Graph graph = doubling_loop(0);
  const auto result = run(graph);
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(0).tensor()) == std::vector<float>{3.0F});
  CHECK(result->at(1).tensor()->shape()[0] == 0);
}

TEST_CASE("a Loop refuses scan outputs whose shapes change") {
  Graph graph = doubling_loop(3);
  const auto result = run(graph);
  REQUIRE(!result.ok());
  CHECK(result.status().message() ==
        "output 1 of the body has shape [1] at first, but [2] in turn 1");
}

TEST_CASE("a Loop without end reserves nothing and stops when it is told to") {
  Graph graph = doubling_loop(kForever);
  const std::atomic<bool> cancel = true;
  const auto result = run(graph, &cancel);
  REQUIRE(!result.ok());
  CHECK(result.status().code() == Code::Cancelled);
}
