#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

using Floats = std::vector<float>;

/// y = op(x[, z]) as a function "f" of the domain "local".
Function function_of(const std::string& name, SmallGraph body) {
  Function function;
  function.domain = "local";
  function.name = name;
  function.body = std::make_shared<const Graph>(std::move(body.graph));
  return function;
}

Model model_of(SmallGraph main, std::vector<Function> functions) {
  Model model;
  model.opset_imports = {{"", 18}, {"local", 1}};
  model.functions = std::move(functions);
  model.graph = std::move(main.graph);
  return model;
}

/// A model function's input: its type is not known.
ValueId parameter(SmallGraph& small, const std::string& name) {
  const ValueId id = small.graph.add_value(name);
  small.graph.add_input(id);
  return id;
}

Function negated_twice_plus() {
  SmallGraph body;
  const ValueId x = parameter(body, "x");
  const ValueId once = body.node("neg", {x}, {}, 1, "local");
  body.output(body.node("Add", {body.node("neg", {once}, {}, 1, "local"), x}));
  return function_of("outer", std::move(body));
}

Function negated() {
  SmallGraph body;
  body.output(body.node("Neg", {parameter(body, "x")}));
  return function_of("neg", std::move(body));
}

Floats run(Model& model, const std::vector<Datum>& fed) {
  const Status status = infer_types(model.graph);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return values_of<float>(evaluated(model.graph, fed)[0]);
}

}  // namespace

TEST_CASE("functions that call functions become plain nodes") {
  SmallGraph main;
  main.output(main.node("outer", {main.input("x", {2})}, {}, 1, "local"));
  Model model = model_of(std::move(main), {negated(), negated_twice_plus()});
  const Status status = inline_functions(model);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  CHECK(ops_of(model.graph) == "Neg Neg Add");
  CHECK(run(model, {float_tensor({2}, {1, -3})}) == Floats{2, -6});
}

TEST_CASE("attributes that refer to the call take its value, the default, or go") {
  const auto build = [](Attributes given) {
    SmallGraph body;
    const ValueId x = parameter(body, "x");
    Attributes reference;
    reference.set("alpha", AttributeReference{"slope"});
    body.output(body.node("LeakyRelu", {x}, reference));
    Function function = function_of("leaky", std::move(body));
    function.attribute_names = {"slope"};
    SmallGraph main;
    main.output(main.node("leaky", {main.input("x", {2})}, std::move(given), 1, "local"));
    Model model = model_of(std::move(main), {function});
    REQUIRE(inline_functions(model).ok());
    return run(model, {float_tensor({2}, {2, -10})});
  };
  CHECK(build(with({{"slope", Attribute(0.5F)}})) == Floats{2, -5});
  CHECK(build({}) == Floats{2, -10 * 0.01F});
}

TEST_CASE("an optional input that the call leaves out is left out in the body") {
  SmallGraph body;
  const ValueId x = parameter(body, "x");
  const ValueId low = parameter(body, "low");
  const ValueId high = parameter(body, "high");
  body.output(body.node("Clip", {x, low, high}));
  SmallGraph main;
  const ValueId fed = main.input("x", {3});
  main.output(main.node("clip", {fed, kNoValue, main.floats({}, {1})}, {}, 1, "local"));
  main.output(main.node("clip", {fed, main.floats({}, {0})}, {}, 1, "local"));
  Model model = model_of(std::move(main), {function_of("clip", std::move(body))});
  REQUIRE(inline_functions(model).ok());
  CHECK(run(model, {float_tensor({3}, {-5, 0.5F, 5})}) == Floats{-5, 0.5F, 1});
  CHECK(values_of<float>(evaluated(model.graph, {float_tensor({3}, {-5, 0.5F, 5})})[1]) ==
        Floats{0, 0.5F, 5});
}

TEST_CASE("a left-out input that a subgraph of the body uses is left out there") {
  SmallGraph body;
  const ValueId condition = parameter(body, "condition");
  const ValueId x = parameter(body, "x");
  const ValueId low = parameter(body, "low");
  const auto branch = [&] {
    auto inner = std::make_shared<Graph>();
    Node node;
    node.op_type = "Clip";
    node.opset = 18;
    node.inputs = {inner->capture(x, "x", {}), inner->capture(low, "low", {})};
    node.outputs = {inner->add_value("z")};
    const ValueId z = node.outputs[0];
    inner->add_node(std::move(node));
    inner->add_output(z);
    return Attribute(std::move(inner));
  };
  body.output(
      body.node("If", {condition}, with({{"then_branch", branch()}, {"else_branch", branch()}})));
  SmallGraph main;
  const ValueId flag = main.input("condition", {}, DType::Bool);
  main.output(main.node("f", {flag, main.input("x", {2})}, {}, 1, "local"));
  Model model = model_of(std::move(main), {function_of("f", std::move(body))});
  const Status status = inline_functions(model);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  auto yes = make_tensor<bool>(Shape{}, {true});
  REQUIRE(yes.ok());
  CHECK(run(model, {*yes, float_tensor({2}, {-1, 1})}) == Floats{-1, 1});
}

TEST_CASE("a function that hands out an input, a constant or one value twice") {
  SmallGraph body;
  const ValueId x = parameter(body, "x");
  const ValueId y = body.node("Neg", {x});
  body.output(y);
  body.output(y);
  body.output(x);
  SmallGraph main;
  for (const ValueId id : main.nodes("f", {main.input("x", {2})}, 3, {}, 1, "local")) {
    main.output(id);
  }
  Model model = model_of(std::move(main), {function_of("f", std::move(body))});
  REQUIRE(inline_functions(model).ok());
  REQUIRE(infer_types(model.graph).ok());
  const auto outputs = evaluated(model.graph, {float_tensor({2}, {1, 2})});
  CHECK(values_of<float>(outputs[0]) == Floats{-1, -2});
  CHECK(values_of<float>(outputs[1]) == Floats{-1, -2});
  CHECK(values_of<float>(outputs[2]) == Floats{1, 2});
}

TEST_CASE("functions that call themselves are refused") {
  SmallGraph body;
  body.output(body.node("f", {parameter(body, "x")}, {}, 1, "local"));
  SmallGraph main;
  main.output(main.node("f", {main.input("x", {2})}, {}, 1, "local"));
  Model model = model_of(std::move(main), {function_of("f", std::move(body))});
  const Status status = inline_functions(model);
  REQUIRE(!status.ok());
  CHECK(status.code() == Code::InvalidModel);
  CHECK(status.message().find("levels deep") != std::string::npos);
}

TEST_CASE("functions that double at each level are refused before they fill the memory") {
  std::vector<Function> functions = {negated()};
  std::string last = "neg";
  for (int level = 0; level < 40; ++level) {
    SmallGraph body;
    const ValueId once = body.node(last, {parameter(body, "x")}, {}, 1, "local");
    body.output(body.node(last, {once}, {}, 1, "local"));
    last = "level" + std::to_string(level);
    functions.push_back(function_of(last, std::move(body)));
  }
  SmallGraph main;
  main.output(main.node(last, {main.input("x", {2})}, {}, 1, "local"));
  Model model = model_of(std::move(main), std::move(functions));
  const Status status = inline_functions(model);
  REQUIRE(!status.ok());
  CHECK(status.message().find("nodes") != std::string::npos);
}
