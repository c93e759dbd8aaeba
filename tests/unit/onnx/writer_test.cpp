#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>

#include "messages.h"
#include "onnx/writer.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

/// The model after writing and reading it again.
Model rewritten(const Model& model) {
  const auto bytes = write_model_to_bytes(model);
  REQUIRE_MESSAGE(bytes.ok(), bytes.status().to_string());
  auto result = read(*bytes);
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  // Writing what was read changes nothing more.
  CHECK(*write_model_to_bytes(*result) == *bytes);
  return std::move(result).value();
}

Model empty_model() {
  Model model;
  model.ir_version = 10;
  model.opset_imports.emplace_back("", 20);
  return model;
}

NodeId add_node(Graph& graph, std::string op, std::vector<ValueId> inputs,
                std::vector<ValueId> outputs) {
  Node node;
  node.op_type = std::move(op);
  node.inputs = std::move(inputs);
  node.outputs = std::move(outputs);
  return graph.add_node(std::move(node));
}

bool equal_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.byte_size()) == 0;
}

/// A branch of one node that negates a value of the graph around it.
std::shared_ptr<Graph> negating_branch(ValueId outer, std::string name) {
  auto branch = std::make_shared<Graph>();
  const ValueId x = branch->capture(outer, std::move(name), Type::tensor(DType::Float32));
  const ValueId y = branch->add_value("negated");
  add_node(*branch, "Neg", {x}, {y});
  branch->add_output(y);
  return branch;
}

}  // namespace

TEST_CASE("a model's words, numbers and types survive writing") {
  Model model = empty_model();
  model.producer_name = "tool";
  model.producer_version = "1";
  model.domain = "org.test";
  model.model_version = 3;
  model.doc_string = "words";
  model.metadata.emplace_back("key", "value");
  model.opset_imports.emplace_back("com.microsoft", 1);
  model.graph.name = "main";
  model.graph.doc_string = "doc";
  model.graph.metadata.emplace_back("g", "h");
  const Dim n = model.symbols.intern("batch");
  const Type type = Type::tensor(DType::Float16, Shape{n, kUnknownDim, 0, 7});
  const ValueId x = model.graph.add_value("x", type);
  const ValueId s = model.graph.add_value("s", Type::sequence(Type::tensor(DType::String)));
  const ValueId o = model.graph.add_value("o", Type::optional(Type::tensor(DType::Int4, Shape{})));
  const ValueId m =
      model.graph.add_value("m", Type::map(DType::Int64, Type::tensor(DType::Float64)));
  for (const ValueId value : {x, s, o, m}) model.graph.add_input(value);
  const ValueId hidden = model.graph.add_value("hidden", Type::tensor(DType::Bool, Shape{2}));
  const ValueId y = model.graph.add_value("y");
  const NodeId node = add_node(model.graph, "Op", {x, kNoValue, s}, {kNoValue, hidden, y});
  model.graph.node(node).name = "n";
  model.graph.node(node).domain = "com.microsoft";
  model.graph.node(node).overload = "v";
  model.graph.node(node).metadata.emplace_back("layer", "first");
  model.graph.add_output(y);
  model.graph.add_output(hidden);

  const Model result = rewritten(model);
  CHECK(result.ir_version == 10);
  CHECK(result.producer_name == "tool");
  CHECK(result.producer_version == "1");
  CHECK(result.domain == "org.test");
  CHECK(result.model_version == 3);
  CHECK(result.doc_string == "words");
  CHECK(result.metadata == model.metadata);
  CHECK(result.opset_imports == model.opset_imports);
  const Graph& graph = result.graph;
  CHECK(graph.name == "main");
  CHECK(graph.doc_string == "doc");
  CHECK(graph.metadata == model.graph.metadata);
  const Shape& shape = *graph.value(find(graph, "x")).type.shape;
  CHECK(result.symbols.name(shape[0]) == "batch");
  CHECK(shape[1] == kUnknownDim);
  CHECK(shape[2] == 0);
  CHECK(shape[3] == 7);
  for (const ValueId value : {x, s, o, m, hidden}) {
    const std::string& name = model.graph.value(value).name;
    CHECK(graph.value(find(graph, name)).type.to_string() ==
          model.graph.value(value).type.to_string());
  }
  const Node& read_node = graph.node(0);
  CHECK(read_node.name == "n");
  CHECK(read_node.domain == "com.microsoft");
  CHECK(read_node.overload == "v");
  CHECK(read_node.metadata == model.graph.node(node).metadata);
  CHECK(read_node.inputs[1] == kNoValue);
  CHECK(read_node.outputs[0] == kNoValue);
  CHECK(graph.value(graph.outputs()[1]).name == "hidden");
}

TEST_CASE("every kind of attribute survives writing") {
  Model model = empty_model();
  const ValueId x = model.graph.add_value("x", Type::tensor(DType::Float32));
  model.graph.add_input(x);
  const ValueId y = model.graph.add_value("y");
  Node node;
  node.op_type = "Op";
  node.outputs = {y};
  const Tensor tensor_value = *make_tensor<std::int16_t>({2}, {1, -2});
  const auto sparse = std::make_shared<const SparseTensor>(
      SparseTensor{Shape{5}, *make_tensor<float>({1}, {4}), *make_tensor<std::int64_t>({1}, {2})});
  Attributes& attributes = node.attributes;
  attributes.set("int", std::int64_t{-3});
  attributes.set("float", 0.25F);
  attributes.set("string", std::string("a\0b", 3));
  attributes.set("tensor", tensor_value);
  attributes.set("graph", negating_branch(x, "x"));
  attributes.set("sparse", sparse);
  attributes.set("type", Type::sequence(Type::tensor(DType::Int8)));
  attributes.set("ints", std::vector<std::int64_t>{1, -1});
  attributes.set("no ints", std::vector<std::int64_t>{});
  attributes.set("floats", std::vector<float>{1.5F});
  attributes.set("strings", std::vector<std::string>{"", "s"});
  attributes.set("tensors", std::vector<Tensor>{tensor_value, tensor_value});
  attributes.set("graphs", std::vector<std::shared_ptr<Graph>>{negating_branch(x, "x")});
  attributes.set("types", std::vector<Type>{Type::tensor(DType::Bool)});
  model.graph.add_node(std::move(node));
  model.graph.add_output(y);

  const Model result = rewritten(model);
  const Attributes& found = result.graph.node(0).attributes;
  CHECK(found.size() == 14);
  CHECK(found.get_int("int", 0) == -3);
  CHECK(found.get_float("float", 0) == 0.25F);
  CHECK(found.get_string("string", "") == std::string("a\0b", 3));
  CHECK(equal_bytes(*found.get_if<Tensor>("tensor"), tensor_value));
  const auto& graph = **found.get_if<std::shared_ptr<Graph>>("graph");
  CHECK(graph.node(0).op_type == "Neg");
  CHECK(graph.captures().size() == 1);
  const auto& sparse_read = **found.get_if<std::shared_ptr<const SparseTensor>>("sparse");
  CHECK(sparse_read.shape == Shape{5});
  CHECK(equal_bytes(sparse_read.values, sparse->values));
  CHECK(found.get_if<Type>("type")->to_string() == "seq(tensor(int8))");
  CHECK(found.get_ints("ints") == std::vector<std::int64_t>{1, -1});
  CHECK(found.get_if<std::vector<std::int64_t>>("no ints") != nullptr);
  CHECK(found.get_floats("floats") == std::vector<float>{1.5F});
  CHECK(found.get_strings("strings") == std::vector<std::string>{"", "s"});
  CHECK(found.get_if<std::vector<Tensor>>("tensors")->size() == 2);
  CHECK(found.get_if<std::vector<std::shared_ptr<Graph>>>("graphs")->size() == 1);
  CHECK(found.get_if<std::vector<Type>>("types")->at(0).dtype == DType::Bool);
}

TEST_CASE("initializers of every element type survive writing") {
  Model model = empty_model();
  for (int number = 1; number < kDTypeCount; ++number) {
    const auto dtype = static_cast<DType>(number);
    Tensor tensor_value = *Tensor::allocate(dtype, Shape{3, 5});
    if (dtype == DType::String) {
      for (std::string& text : tensor_value.mutable_values<std::string>()) text = "text";
    } else {
      // Small enough for bools and 6-bit floats.
      std::memset(tensor_value.mutable_data(), 1, tensor_value.byte_size());
    }
    const ValueId value = model.graph.add_value(std::string(dtype_name(dtype)));
    model.graph.set_constant(value, tensor_value);
    model.graph.add_output(value);
  }
  const Model result = rewritten(model);
  for (const ValueId output_id : model.graph.outputs()) {
    const Value& value = model.graph.value(output_id);
    const Tensor& found = *result.graph.value(find(result.graph, value.name)).constant;
    if (found.dtype() == DType::String) {
      CHECK(elements<std::string>(found) == elements<std::string>(*value.constant));
    } else {
      CHECK_MESSAGE(equal_bytes(found, *value.constant), value.name);
    }
  }
}

TEST_CASE("defaults of inputs and sparse initializers survive writing") {
  Model model = empty_model();
  const ValueId x = model.graph.add_value("x", Type::tensor(DType::Float32, Shape{1}));
  model.graph.add_input(x);
  model.graph.value(x).default_value =
      std::make_shared<const Tensor>(*make_tensor<float>({1}, {3}));
  const ValueId s = model.graph.add_value("s", Type::tensor(DType::Float32, Shape{4}));
  model.graph.value(s).sparse_constant = std::make_shared<const SparseTensor>(
      SparseTensor{Shape{4}, *make_tensor<float>({1}, {9}), *make_tensor<std::int64_t>({1}, {3})});
  model.graph.add_output(x);
  model.graph.add_output(s);
  const Model result = rewritten(model);
  const Value& read_x = result.graph.value(find(result.graph, "x"));
  CHECK(read_x.is_input);
  CHECK(elements<float>(*read_x.default_value) == std::vector<float>{3});
  const auto dense = densify(*result.graph.value(find(result.graph, "s")).sparse_constant);
  CHECK(elements<float>(*dense) == std::vector<float>{0, 0, 0, 9});
}

TEST_CASE("functions survive writing, constants in their bodies as nodes") {
  Model model = empty_model();
  model.opset_imports.emplace_back("local", 1);
  auto body = std::make_shared<Graph>();
  const ValueId p = body->add_value("p");
  body->add_input(p);
  const ValueId c = body->add_value("c");
  body->set_constant(c, *make_tensor<float>({1}, {2}));
  const ValueId r = body->add_value("r");
  const NodeId node = add_node(*body, "Elu", {p, c}, {r});
  body->node(node).attributes.set("alpha", AttributeReference{"a", 1});
  body->add_output(r);
  Function function;
  function.domain = "local";
  function.name = "F";
  function.overload = "v";
  function.attribute_names = {"a"};
  function.attribute_defaults.set("b", std::int64_t{5});
  function.opset_imports.emplace_back("", 18);
  function.body = body;
  model.functions.push_back(function);

  const Model result = rewritten(model);
  REQUIRE(result.functions.size() == 1);
  const Function& found = result.functions[0];
  CHECK(found.domain == "local");
  CHECK(found.overload == "v");
  CHECK(found.attribute_names == function.attribute_names);
  CHECK(found.attribute_defaults.get_int("b", 0) == 5);
  CHECK(found.opset_imports == function.opset_imports);
  REQUIRE(found.body->node_count() == 2);
  CHECK(found.body->node(0).op_type == "Constant");
  CHECK(elements<float>(*found.body->node(0).attributes.get_if<Tensor>("value")).at(0) == 2);
  const auto* reference = found.body->node(1).attributes.get_if<AttributeReference>("alpha");
  REQUIRE(reference != nullptr);
  CHECK(reference->name == "a");
  CHECK(reference->onnx_type == 1);
}

TEST_CASE("values of equal or no name are told apart, inputs and outputs keep theirs") {
  Model model = empty_model();
  const Type type = Type::tensor(DType::Float32);
  const ValueId hidden = model.graph.add_value("x");
  const ValueId x = model.graph.add_value("x", type);
  const ValueId nameless = model.graph.add_value("");
  const ValueId y = model.graph.add_value("y", type);
  model.graph.add_input(x);
  add_node(model.graph, "A", {x}, {hidden});
  add_node(model.graph, "B", {hidden}, {nameless});
  Node branching;
  branching.op_type = "If";
  branching.inputs = {nameless};
  branching.outputs = {y};
  // Inside, the name would lead to the wrong value.
  branching.attributes.set("then_branch", negating_branch(hidden, "x"));
  model.graph.add_node(std::move(branching));
  model.graph.add_output(y);
  const Model result = rewritten(model);
  const Graph& graph = result.graph;
  CHECK(graph.value(graph.inputs()[0]).name == "x");
  CHECK(graph.value(graph.outputs()[0]).name == "y");
  CHECK(graph.node(1).inputs[0] == graph.node(0).outputs[0]);
  CHECK(graph.node(2).implicit_inputs == graph.node(0).outputs);
}

TEST_CASE("nodes are written in topological order, without removed ones and unused constants") {
  Model model = empty_model();
  const ValueId x = model.graph.add_value("x", Type::tensor(DType::Float32));
  model.graph.add_input(x);
  const ValueId a = model.graph.add_value("a");
  const ValueId b = model.graph.add_value("b");
  const ValueId dead = model.graph.add_value("dead");
  const ValueId unused = model.graph.add_value("unused");
  model.graph.set_constant(unused, *make_tensor<float>({1}, {1}));
  add_node(model.graph, "Second", {a}, {b});
  const NodeId removed = add_node(model.graph, "Removed", {x}, {dead});
  add_node(model.graph, "First", {x}, {a});
  model.graph.remove_node(removed);
  model.graph.add_output(b);
  const Model result = rewritten(model);
  REQUIRE(result.graph.node_count() == 2);
  CHECK(result.graph.node(0).op_type == "First");
  CHECK(find(result.graph, "dead") == kNoValue);
  CHECK(find(result.graph, "unused") == kNoValue);
}

TEST_CASE("large initializers go to the external file, aligned, and come back as views") {
  const TemporaryFolder folder;
  Model model = empty_model();
  const std::vector<float> large(1000, 2.5F);
  for (const std::string name : {"a", "b"}) {
    const ValueId value = model.graph.add_value(name);
    model.graph.set_constant(value, *make_tensor<float>({1000}, std::span(large)));
    model.graph.add_output(value);
  }
  const ValueId tiny = model.graph.add_value("tiny");
  model.graph.set_constant(tiny, *make_tensor<float>({2}, {1, 2}));
  model.graph.add_output(tiny);
  WriteOptions options;
  options.external_data_file = "m.data";
  const Status status = write_model(model, folder / "m.onnx", options);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  const auto result = read_model(folder / "m.onnx");
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  const auto value_of = [&](std::string_view name) -> const Value& {
    return result->graph.value(find(result->graph, name));
  };
  CHECK(value_of("a").origin->offset == 0);
  CHECK(value_of("b").origin->offset == 4096);
  CHECK(elements<float>(*value_of("b").constant) == large);
  CHECK(elements<float>(*value_of("tiny").constant) == std::vector<float>{1, 2});
  CHECK(std::filesystem::path(value_of("tiny").origin->file).filename() == "m.onnx");
  CHECK(std::filesystem::path(value_of("a").origin->file).filename() == "m.data");
}

TEST_CASE("a model may be written over the file it was read from") {
  const TemporaryFolder folder;
  Model model = empty_model();
  const std::vector<float> large(100000, 1.25F);
  const ValueId value = model.graph.add_value("w");
  model.graph.set_constant(value, *make_tensor<float>({100000}, std::span(large)));
  model.graph.add_output(value);
  const std::string path = folder / "m.onnx";
  REQUIRE(write_model(model, path).ok());
  const auto first = read_model(path);
  REQUIRE(first.ok());
  REQUIRE(write_model(*first, path).ok());
  const auto second = read_model(path);
  REQUIRE(second.ok());
  CHECK(elements<float>(*second->graph.value(0).constant) == large);
  CHECK(elements<float>(*first->graph.value(0).constant) == large);
}

TEST_CASE("the caller may say where an initializer stands") {
  Model model = empty_model();
  const ValueId value = model.graph.add_value("w");
  model.graph.set_constant(value, *make_tensor<float>({2}, {1, 2}));
  model.graph.add_output(value);
  WriteOptions options;
  options.locate = [](const Value&) -> Result<std::optional<ExternalLocation>> {
    return std::optional(ExternalLocation{"weights.bin", 64, 8});
  };
  const auto bytes = write_model_to_bytes(model, options);
  REQUIRE(bytes.ok());
  const TemporaryFolder folder;
  write_text(folder / "weights.bin", std::string(64, '\0') + raw<float>({7, 8}));
  const auto result = read_model(write_text(folder / "m.onnx", *bytes));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(elements<float>(*result->graph.value(0).constant) == std::vector<float>{7, 8});
}

TEST_CASE("a staged model appears with its external data when it is committed, or not at all") {
  const TemporaryFolder folder;
  Model model = empty_model();
  const ValueId value = model.graph.add_value("w");
  model.graph.set_constant(value, *make_tensor<float>({2}, {1, 2}));
  model.graph.add_output(value);
  WriteOptions options;
  options.external_data_file = "m.data";
  options.external_threshold_bytes = 0;
  const std::string path = folder / "m.onnx";
  {
    auto staged = stage_model(model, path, options);
    REQUIRE(staged.ok());
    CHECK(!std::filesystem::exists(path));
    CHECK(!std::filesystem::exists(folder / "m.data"));
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  auto staged = stage_model(model, path, options);
  REQUIRE(staged.ok());
  REQUIRE(staged->commit().ok());
  const auto result = read_model(path);
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  CHECK(elements<float>(*result->graph.value(0).constant) == std::vector<float>{1, 2});
}

TEST_CASE("large initializers of an external file are aligned, small ones as asked") {
  const TemporaryFolder folder;
  Model model = empty_model();
  std::vector<ValueId> values;
  for (const std::int64_t count : {5, 100, 5, 100}) {
    values.push_back(model.graph.add_value("w" + std::to_string(values.size())));
    const std::vector<float> numbers(static_cast<std::size_t>(count), 1.0F);
    model.graph.set_constant(values.back(), *make_tensor<float>({count}, std::span(numbers)));
    model.graph.add_output(values.back());
  }
  WriteOptions options;
  options.external_data_file = "m.data";
  options.external_threshold_bytes = 0;
  options.alignment_bytes = 256;
  options.alignment_minimum_bytes = 400;
  options.small_alignment_bytes = 8;
  const std::string path = folder / "m.onnx";
  REQUIRE(write_model(model, path, options).ok());
  const auto result = read_model(path);
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  std::vector<std::uint64_t> offsets;
  for (const ValueId id : values) offsets.push_back(result->graph.value(id).origin->offset);
  CHECK(offsets == std::vector<std::uint64_t>{0, 256, 656, 768});
}

TEST_CASE("what cannot be written is an error, and no file is left") {
  const TemporaryFolder folder;
  Model model = empty_model();
  WriteOptions options;
  options.external_data_file = "../m.data";
  const Status outside = write_model(model, folder / "m.onnx", options);
  REQUIRE(!outside.ok());
  CHECK(contains_text(outside.to_string(), "must lie in the model's folder"));
  CHECK(!write_model(model, folder / "missing/m.onnx").ok());
  const ValueId a = model.graph.add_value("a");
  add_node(model.graph, "A", {a}, {a});
  const Status cycle = write_model(model, folder / "m.onnx");
  REQUIRE(!cycle.ok());
  CHECK(contains_text(cycle.to_string(), "cycle"));
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("a model of 2 GiB without external data is refused before it is written") {
  const TemporaryFolder folder;
  // Pretends to be large: the size is looked at before any byte is.
  const std::int64_t count = std::int64_t{1} << 29;
  static const float kNumber = 0;
  Model model = empty_model();
  const ValueId value = model.graph.add_value("w");
  model.graph.set_constant(value, Tensor::view(DType::Float32, Shape{count}, &kNumber));
  model.graph.add_output(value);
  const Status status = write_model(model, folder / "m.onnx");
  REQUIRE(!status.ok());
  CHECK(contains_text(status.to_string(), "give an external_data_file"));
}
