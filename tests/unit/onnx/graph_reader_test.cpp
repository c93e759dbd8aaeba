#include <doctest/doctest.h>

#include <algorithm>

#include "messages.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

const std::string kWeight = tensor("w", DType::Float32, {2}, raw_data(raw<float>({1, 2})));

std::vector<std::string> names_of(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(id == kNoValue ? "" : graph.value(id).name);
  return names;
}

const Graph& subgraph_of(const Graph& graph, NodeId node, std::string_view name) {
  return **graph.node(node).attributes.get_if<std::shared_ptr<Graph>>(name);
}

}  // namespace

TEST_CASE("a model's header, graph and metadata are read") {
  const std::string more =
      opset("ai.onnx", 20) + opset("com.microsoft", 1) + field(model_field::kProducerName, "tool") +
      field(model_field::kProducerVersion, "3") + field(model_field::kDomain, "org.test") +
      integer(model_field::kModelVersion, 7) + field(model_field::kDocString, "words") +
      entry(model_field::kMetadata, "key", "value");
  const std::string graph =
      field(graph_field::kName, "main") + field(graph_field::kDocString, "doc") + input("x") +
      initializer(kWeight) +
      node("Add", {"x", "w"}, {"y"}, "add", entry(node_field::kMetadata, "layer", "first")) +
      entry(graph_field::kMetadata, "g", "h") + output("y");
  const auto result = read(model(graph, more));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(result->ir_version == 10);
  CHECK(result->producer_name == "tool");
  CHECK(result->producer_version == "3");
  CHECK(result->domain == "org.test");
  CHECK(result->model_version == 7);
  CHECK(result->doc_string == "words");
  CHECK(result->metadata.at(0).second == "value");
  CHECK(result->opset("") == 20);
  CHECK(result->opset("com.microsoft") == 1);
  const Graph& main = result->graph;
  CHECK(main.name == "main");
  CHECK(main.doc_string == "doc");
  CHECK(main.metadata.at(0).first == "g");
  CHECK(names_of(main, main.inputs()) == std::vector<std::string>{"x"});
  CHECK(names_of(main, main.outputs()) == std::vector<std::string>{"y"});
  REQUIRE(main.node_count() == 1);
  CHECK(main.node(0).op_type == "Add");
  CHECK(main.node(0).opset == 20);
  CHECK(main.node(0).metadata.at(0).second == "first");
  CHECK(names_of(main, main.node(0).inputs) == std::vector<std::string>{"x", "w"});
  CHECK(elements<float>(*main.value(find(main, "w")).constant) == std::vector<float>{1, 2});
  CHECK(main.value(find(main, "y")).producer == 0);
}

TEST_CASE("types of inputs, outputs and value_info are read, named dimensions as symbols") {
  SymbolTable symbols;
  const Dim n = symbols.intern("n");
  const auto info = [&](std::uint32_t number, std::string_view name, const Type& type) {
    return field(number, encode_value_info(name, type, &symbols));
  };
  const Type sequence = Type::sequence(Type::tensor(DType::Int64, Shape{2}));
  const Type optional = Type::optional(Type::sequence(Type::tensor(DType::Bool)));
  const Type map = Type::map(DType::String, Type::tensor(DType::Float32, Shape{}));
  const std::string graph =
      info(graph_field::kInput, "a", Type::tensor(DType::Float16, Shape{n, kUnknownDim, 3, n})) +
      info(graph_field::kInput, "b", sequence) + info(graph_field::kInput, "c", optional) +
      info(graph_field::kInput, "d", map) + node("Op", {"a", "b", "c", "d"}, {"y", "z"}) +
      info(graph_field::kOutput, "y", Type::tensor(DType::Float32)) +
      info(graph_field::kValueInfo, "z", Type::tensor(DType::Int8, Shape{4}));
  const auto result = read(model(graph));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const auto type_of = [&](std::string_view name) {
    return result->graph.value(find(result->graph, name)).type;
  };
  const Shape a = *type_of("a").shape;
  CHECK(a.rank() == 4);
  CHECK(is_symbol(a[0]));
  CHECK(result->symbols.name(a[0]) == "n");
  CHECK(a[0] == a[3]);
  CHECK(a[1] == kUnknownDim);
  CHECK(a[2] == 3);
  CHECK(type_of("a").to_string() == "tensor(float16)");
  CHECK(type_of("b").to_string() == "seq(tensor(int64))");
  CHECK(type_of("c").to_string() == "optional(seq(tensor(bool)))");
  CHECK(type_of("d").to_string() == "map(string,tensor(float))");
  CHECK(!type_of("y").shape);
  CHECK(*type_of("z").shape == Shape{4});
}

TEST_CASE("all kinds of attributes are read") {
  const std::string small = tensor("", DType::Int8, {1}, raw_data("\x05"));
  std::string real;
  append_float(real, attribute_field::kFloat, 0.5F);
  std::string reals;
  append_float(reals, attribute_field::kFloats, 1.5F);
  append_float(reals, attribute_field::kFloats, -2);
  const std::string more =
      attribute("int", AttributeType::Int, integer(attribute_field::kInt, -3)) +
      attribute("float", AttributeType::Float, real) +
      attribute("string", AttributeType::String, field(attribute_field::kString, "s")) +
      attribute("tensor", AttributeType::Tensor, field(attribute_field::kTensor, small)) +
      attribute("type", AttributeType::TypeProto,
                field(attribute_field::kTypeProto,
                      encode_type(Type::tensor(DType::Int32), nullptr))) +
      attribute("ints", AttributeType::Ints,
                integer(attribute_field::kInts, 1) + integer(attribute_field::kInts, -1)) +
      attribute("packed", AttributeType::Ints, field(attribute_field::kInts, varints({4, -5}))) +
      attribute("floats", AttributeType::Floats, reals) +
      attribute("strings", AttributeType::Strings,
                field(attribute_field::kStrings, "a") + field(attribute_field::kStrings, "")) +
      attribute("tensors", AttributeType::Tensors, field(attribute_field::kTensors, small)) +
      attribute("none", AttributeType::Ints, "") +
      field(node_field::kAttribute, field(attribute_field::kName, "untyped") +
                                        integer(attribute_field::kInt, 9));
  const auto result = read(model(node("Op", {}, {"y"}, "n", more) + output("y")));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const Attributes& attributes = result->graph.node(0).attributes;
  CHECK(attributes.get_int("int", 0) == -3);
  CHECK(attributes.get_float("float", 0) == 0.5F);
  CHECK(attributes.get_string("string", "") == "s");
  CHECK(elements<std::int8_t>(*attributes.get_if<Tensor>("tensor")).at(0) == 5);
  CHECK(attributes.get_if<Type>("type")->dtype == DType::Int32);
  CHECK(attributes.get_ints("ints") == std::vector<std::int64_t>{1, -1});
  CHECK(attributes.get_ints("packed") == std::vector<std::int64_t>{4, -5});
  CHECK(attributes.get_floats("floats") == std::vector<float>{1.5F, -2});
  CHECK(attributes.get_strings("strings") == std::vector<std::string>{"a", ""});
  CHECK(attributes.get_if<std::vector<Tensor>>("tensors")->size() == 1);
  CHECK(attributes.get_if<std::vector<std::int64_t>>("none") != nullptr);
  CHECK(attributes.get_int("untyped", 0) == 9);
}

TEST_CASE("inputs that are left out keep their place, those at the end are dropped") {
  const auto result =
      read(model(input("x") + node("Op", {"x", "", "x", "", ""}, {"", "y", ""}) + output("y")));
  REQUIRE(result.ok());
  CHECK(names_of(result->graph, result->graph.node(0).inputs) ==
        std::vector<std::string>{"x", "", "x"});
  CHECK(names_of(result->graph, result->graph.node(0).outputs) ==
        std::vector<std::string>{"", "y", ""});
}

TEST_CASE("an initializer that is an input is a default from IR version 4 on, a constant before") {
  const std::string graph = input("w", Type::tensor(DType::Float32, Shape{2})) +
                            initializer(kWeight) + node("Neg", {"w"}, {"y"}) + output("y");
  const auto newer = read(model(graph, opset("", 9), 4));
  REQUIRE(newer.ok());
  CHECK(newer->graph.inputs().size() == 1);
  const Value& overridable = newer->graph.value(newer->graph.inputs()[0]);
  CHECK(!overridable.constant);
  REQUIRE(overridable.default_value);
  CHECK(elements<float>(*overridable.default_value) == std::vector<float>{1, 2});
  const auto older = read(model(graph, opset("", 9), 3));
  REQUIRE(older.ok());
  CHECK(older->graph.inputs().empty());
  CHECK(older->graph.value(find(older->graph, "w")).constant);
}

TEST_CASE("an initializer of another type or shape than its input is refused") {
  for (const Type& type : {Type::tensor(DType::Float32, Shape{3}), Type::tensor(DType::Int32),
                           Type::tensor(DType::Float32, Shape{2, 1})}) {
    const std::string graph = input("w", type) + initializer(kWeight) + output("w");
    CHECK(contains_text(error_of(model(graph)), "input 'w' is declared as"));
  }
}

TEST_CASE("nodes may stand in any order") {
  const auto result = read(model(input("x") + node("B", {"a"}, {"y"}) + node("A", {"x"}, {"a"}) +
                                 output("y")));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(*result->graph.topological_order() == std::vector<NodeId>{1, 0});
}

TEST_CASE("a cycle is refused with a node on it") {
  const std::string graph = input("x") + node("A", {"x", "b"}, {"a"}, "first") +
                            node("B", {"a"}, {"b"}, "second") + output("b");
  CHECK(contains_text(error_of(model(graph)), "the graph has a cycle through node 'first' (A)"));
  const std::string self = node("A", {"a"}, {"a"}) + output("a");
  CHECK(contains_text(error_of(model(self)), "node with output 'a' (A)"));
}

TEST_CASE("a name that nobody makes is an error that names node, operator and tensor") {
  CHECK(contains_text(
      error_of(model(node("Relu", {"nope"}, {"y"}, "n") + output("y"))),
      "node 'n' (Relu) uses 'nope', which no input, initializer or node makes"));
  CHECK(contains_text(error_of(model(node("Relu", {"nope"}, {"y"}) + output("y"))),
                      "node with output 'y' (Relu) uses 'nope'"));
  CHECK(contains_text(error_of(model(output("y"))),
                      "graph output 'y' is made by no input, initializer or node"));
}

TEST_CASE("two makers of one name are an error that names both") {
  const std::string twice = input("x") + node("A", {"x"}, {"y"}, "a") +
                            node("B", {"x"}, {"y"}, "b") + output("y");
  CHECK(contains_text(error_of(model(twice)),
                      "'y' is made twice: by node 'a' (A) and by node 'b' (B)"));
  CHECK(contains_text(error_of(model(input("x") + node("A", {}, {"x"}, "a"))),
                      "'x' is made twice: by a graph input and by node 'a' (A)"));
  CHECK(contains_text(error_of(model(initializer(kWeight) + node("A", {}, {"w"}, "a"))),
                      "'w' is made twice: by an initializer and by node 'a' (A)"));
  CHECK(contains_text(error_of(model(input("x") + input("x"))), "'x' is made twice"));
  CHECK(contains_text(error_of(model(node("A", {}, {"y", "y"}, "a"))),
                      "by the same node and by"));
  const std::string other = tensor("w", DType::Float32, {1}, raw_data(raw<float>({1})));
  CHECK(contains_text(error_of(model(initializer(kWeight) + initializer(other))),
                      "two initializers have the name 'w'"));
  CHECK(error_of(model(initializer(kWeight) + initializer(kWeight) + output("w"))) == "");
}

TEST_CASE("a subgraph captures what it uses from around it, through every level") {
  const std::string inner = node("Add", {"x", "w"}, {"i"}) + output("i");
  const std::string middle = node("If", {"c"}, {"m"}, "", graph_attribute("then_branch", inner)) +
                             output("m");
  // 'x' is made by a node that stands after its use.
  const std::string graph =
      input("c", Type::tensor(DType::Bool)) + initializer(kWeight) +
      node("If", {"c"}, {"y"}, "outer", graph_attribute("then_branch", middle)) +
      node("Make", {}, {"x"}) + output("y");
  const auto result = read(model(graph));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const Graph& main = result->graph;
  const Graph& middle_graph = subgraph_of(main, 0, "then_branch");
  const Graph& inner_graph = subgraph_of(middle_graph, 0, "then_branch");
  CHECK(names_of(main, main.node(0).implicit_inputs).size() == 3);
  CHECK(middle_graph.captures().size() == 3);
  CHECK(inner_graph.captures().size() == 2);
  for (const Capture& capture : inner_graph.captures()) {
    CHECK(inner_graph.value(capture.inner).is_captured);
    CHECK(inner_graph.value(capture.inner).name == middle_graph.value(capture.outer).name);
  }
  CHECK(*main.topological_order() == std::vector<NodeId>{1, 0});
}

TEST_CASE("names inside a subgraph hide those around it") {
  const std::string inner = node("Neg", {"x"}, {"i"}) + output("i") + input("x");
  const std::string graph = input("x") + input("c") +
                            node("Loop", {"c"}, {"y"}, "", graph_attribute("body", inner)) +
                            output("y");
  const auto result = read(model(graph));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(subgraph_of(result->graph, 0, "body").captures().empty());
}

TEST_CASE("a subgraph may return a value of the graph around it") {
  const std::string branching =
      node("If", {"c"}, {"y"}, "", graph_attribute("then_branch", output("x")));
  const std::string graph = input("x") + input("c") + branching + output("y");
  const auto result = read(model(graph));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const Graph& branch = subgraph_of(result->graph, 0, "then_branch");
  CHECK(branch.value(branch.outputs()[0]).is_captured);
}

TEST_CASE("an error inside a subgraph names the nodes around it") {
  const std::string branch = node("Relu", {"nope"}, {"i"}, "inner") + output("i");
  const std::string graph = input("c") + node("If", {"c"}, {"y"}, "outer",
                                              graph_attribute("then_branch", branch));
  const std::string error = error_of(model(graph));
  CHECK(contains_text(error, "node 'inner' (Relu) uses 'nope'"));
  CHECK(contains_text(error, "reading attribute 'then_branch'"));
  CHECK(contains_text(error, "reading node 'outer' (If)"));
}

TEST_CASE("a subgraph that uses its own node's result is a cycle") {
  const std::string branch = node("Relu", {"y"}, {"i"}) + output("i");
  const std::string graph =
      input("c") + node("If", {"c"}, {"y"}, "outer", graph_attribute("then_branch", branch));
  CHECK(contains_text(error_of(model(graph)), "cycle through node 'outer' (If)"));
}

TEST_CASE("functions keep inputs, attributes, defaults, imports and overload") {
  const std::string reference =
      field(node_field::kAttribute, field(attribute_field::kName, "alpha") +
                                        field(attribute_field::kReference, "a") +
                                        integer(attribute_field::kType, 1));
  std::string value;
  append_float(value, attribute_field::kFloat, 2);
  const std::string function =
      field(function_field::kName, "F") + field(function_field::kDomain, "local") +
      field(function_field::kOverload, "v2") + field(function_field::kInput, "p") +
      field(function_field::kInput, "q") + field(function_field::kOutput, "r") +
      field(function_field::kAttribute, "a") +
      field(function_field::kAttributeProto,
            field(attribute_field::kName, "b") + integer(attribute_field::kType, 1) + value) +
      field(function_field::kOpsetImport,
            field(opset_field::kDomain, "") + integer(opset_field::kVersion, 17)) +
      field(function_field::kNode, node_body("Elu", {"q"}, {"r"}, "", reference));
  const std::string call = node("F", {"x"}, {"y"}, "call",
                                field(node_field::kDomain, "local") +
                                    field(node_field::kOverload, "v2"));
  const auto result =
      read(model(input("x") + call + output("y"), opset("", 20) + opset("local", 1) +
                                                      field(model_field::kFunctions, function)));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  REQUIRE(result->functions.size() == 1);
  const Function& read_function = result->functions[0];
  CHECK(read_function.overload == "v2");
  CHECK(read_function.attribute_names == std::vector<std::string>{"a"});
  CHECK(read_function.attribute_defaults.get_float("b", 0) == 2);
  CHECK(names_of(*read_function.body, read_function.body->inputs()) ==
        std::vector<std::string>{"p", "q"});
  const Node& elu = read_function.body->node(0);
  CHECK(elu.opset == 17);
  CHECK(elu.attributes.get_if<AttributeReference>("alpha")->name == "a");
  CHECK(elu.attributes.get_if<AttributeReference>("alpha")->onnx_type == 1);
  CHECK(result->graph.node(0).overload == "v2");
  // Outside of functions there is nothing to refer to.
  CHECK(contains_text(error_of(model(node("Elu", {}, {"y"}, "n", reference))),
                      "attribute 'alpha' refers to attribute 'a' of a function, outside of any"));
}

TEST_CASE("functions that call themselves are refused") {
  const auto function = [](std::string_view name, std::string_view callee) {
    return field(model_field::kFunctions,
                 field(function_field::kName, name) + field(function_field::kDomain, "local") +
                     field(function_field::kNode,
                           node_body(callee, {}, {"r"}, "", field(node_field::kDomain, "local"))));
  };
  const std::string imports = opset("", 20) + opset("local", 1);
  CHECK(error_of(model(input("x"), imports + function("F", "G") + function("G", "H"))) == "");
  CHECK(contains_text(
      error_of(model(input("x"), imports + function("F", "G") + function("G", "F"))),
      "function 'F' of domain 'local' calls itself"));
  CHECK(contains_text(
      error_of(model(input("x"), imports + function("F", "G") + function("F", "H"))),
      "two functions 'F'"));
}

TEST_CASE("operator sets must be imported") {
  const std::string graph = input("x") + node("Relu", {"x"}, {"y"}, "n") + output("y");
  CHECK(contains_text(error_of(model(graph, "", 8)),
                      "the model imports no operator set (opset_import)"));
  CHECK(contains_text(error_of(model(graph, opset("local", 1))),
                      "node 'n' (Relu) is of the domain ai.onnx, of which no operator set"));
  CHECK(contains_text(error_of(model(graph, opset("", 0))), "version 0"));
  CHECK(contains_text(error_of(model(graph, opset("", 5) + opset("ai.onnx", 6))),
                      "versions 5 and 6"));
  const auto oldest = read(model(graph, "", 2));
  REQUIRE(oldest.ok());
  CHECK(oldest->graph.node(0).opset == 1);
  const std::string contrib =
      input("x") + node("Gelu", {"x"}, {"y"}, "", field(node_field::kDomain, "com.microsoft"));
  const auto not_imported = read(model(contrib));
  REQUIRE(not_imported.ok());
  CHECK(not_imported->graph.node(0).opset == 0);
}

TEST_CASE("versions of the format out of range are refused by number") {
  CHECK(contains_text(error_of(model(input("x"), opset("", 20), 99)),
                      "the model's ir_version is 99, expected 1 to 14"));
  CHECK(contains_text(error_of(model(input("x"), opset("", 20), 0)), "ir_version is 0"));
}

TEST_CASE("a node without an operator or with an attribute twice is refused") {
  CHECK(contains_text(error_of(model(node("", {}, {"y"}, "n"))), "node 'n' () names no operator"));
  const std::string axis =
      attribute("axis", AttributeType::Int, integer(attribute_field::kInt, 1));
  CHECK(contains_text(error_of(model(node("Op", {}, {"y"}, "n", axis + axis))),
                      "node 'n' (Op) has the attribute 'axis' twice"));
}

TEST_CASE("40,000 nodes are read") {
  const auto chain = [](int count) {
    std::string graph = input("x");
    std::string previous = "x";
    for (int i = 0; i < count; ++i) {
      const std::string next = "layer_" + std::to_string(i) + "/output_tensor";
      graph += node("Relu", {previous}, {next}, "node_" + std::to_string(i));
      previous = next;
    }
    return model(graph + output(previous));
  };
  auto large = read(chain(40000));
  REQUIRE(large.ok());
  CHECK(large->graph.node_count() == 40000);
}
