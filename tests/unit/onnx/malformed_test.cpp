#include <doctest/doctest.h>

#include <random>

#include "messages.h"
#include "onnx/writer.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

/// A model with something of most kinds in it.
std::string rich_model() {
  const std::string weight =
      initializer(tensor("w", DType::Float32, {2}, raw_data(raw<float>({1, 2})))) +
      initializer(tensor("i", DType::Int8, {3},
                         field(tensor_field::kInt32Data, varints({1, 2, 3})))) +
      initializer(tensor("s", DType::String, {1}, field(tensor_field::kStringData, "abc")));
  const std::string sparse = field(
      graph_field::kSparseInitializer,
      field(sparse_field::kValues, tensor("p", DType::Float32, {1}, raw_data(raw<float>({5})))) +
          field(sparse_field::kIndices,
                tensor("", DType::Int64, {1}, raw_data(raw<std::int64_t>({3})))) +
          integer(sparse_field::kDims, 4));
  const std::string branch = node("Neg", {"x"}, {"b"}) + output("b");
  const std::string function = field(
      model_field::kFunctions,
      field(function_field::kName, "F") + field(function_field::kDomain, "local") +
          field(function_field::kInput, "p") + field(function_field::kOutput, "q") +
          field(function_field::kOpsetImport, integer(opset_field::kVersion, 17)) +
          field(function_field::kNode, node_body("Neg", {"p"}, {"q"})));
  const std::string graph =
      field(graph_field::kName, "g") +
      input("x", Type::sequence(Type::tensor(DType::Float32, Shape{1, 2}))) + weight + sparse +
      node("If", {"x"}, {"y"}, "n",
           graph_attribute("then_branch", branch) +
               attribute("axes", AttributeType::Ints,
                         field(attribute_field::kInts, varints({1, -1})))) +
      output("y") + entry(graph_field::kMetadata, "k", "v");
  return model(graph, opset("", 20) + opset("local", 1) + function);
}

}  // namespace

TEST_CASE("every truncation of a model is an error or another whole model, never a crash") {
  const std::string bytes = rich_model();
  REQUIRE_MESSAGE(error_of(bytes) == "", error_of(bytes));
  int errors = 0;
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    // On the heap at its exact size, so that a checker sees every read past the end.
    const std::vector<std::byte> cut(reinterpret_cast<const std::byte*>(bytes.data()),
                                     reinterpret_cast<const std::byte*>(bytes.data()) + length);
    ReadOptions options;
    options.borrow_bytes = true;
    errors += !read_model_from_bytes(cut, options).ok();
  }
  // The graph comes last: without all of it there is no model.
  CHECK(errors == static_cast<int>(bytes.size()));
}

TEST_CASE("no change of a byte crashes the reader, and what is read can be written") {
  const std::string original = rich_model();
  std::mt19937 random(7);
  int read_count = 0;
  for (std::size_t place = 0; place < original.size(); ++place) {
    for (int i = 0; i < 8; ++i) {
      std::string bytes = original;
      bytes[place] = static_cast<char>(i < 4 ? random() : bytes[place] ^ (1 << i));
      const auto result = read(bytes);
      if (!result.ok()) continue;
      ++read_count;
      CHECK(write_model_to_bytes(*result).ok());
    }
  }
  CHECK(read_count > 0);
}

TEST_CASE("random bytes do not crash the reader") {
  std::mt19937 random(11);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random() % 64, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    CHECK(error_of(bytes) != "");
  }
}

TEST_CASE("lengths that need more than 32 bits are refused, not cut") {
  // Field 7 (graph) of length 2^32 + 1, of which 32-bit code would see 1.
  const std::string bytes = integer(model_field::kIrVersion, 10) + opset("", 20) +
                            std::string("\x3a\x81\x80\x80\x80\x10\x00", 7);
  CHECK(contains_text(error_of(bytes), "longer than what holds it"));
  const std::string unknown =
      model(input("x")) + std::string("\xfa\x06\x81\x80\x80\x80\x10\x00", 8);
  CHECK(contains_text(error_of(unknown), "longer than what holds it"));
}

TEST_CASE("a wrong wire type is an error, an unknown field is not") {
  CHECK(contains_text(error_of(field(model_field::kIrVersion, "abc")), "wrong wire type"));
  CHECK(contains_text(error_of(model(integer(graph_field::kNode, 3))), "wrong wire type"));
  CHECK(contains_text(error_of(model(field(graph_field::kNode, integer(node_field::kName, 3)))),
                      "reading node 0"));
  CHECK(error_of(model(input("x") + field(99, "from the future") + integer(98, 1))) == "");
}

TEST_CASE("graphs nested too deeply are refused") {
  const auto nested = [](int depth) {
    std::string graph = input("c");
    for (int i = 0; i < depth; ++i) {
      graph = input("c") + node("If", {"c"}, {"y"}, "", graph_attribute("then_branch", graph));
    }
    return error_of(model(graph));
  };
  CHECK(nested(40) == "");
  CHECK(contains_text(nested(65), "graphs are nested more than 64 deep"));
  CHECK(contains_text(nested(2000), "graphs are nested more than 64 deep"));
}

TEST_CASE("types nested too deeply are refused") {
  const auto nested = [](int depth) {
    std::string type = encode_type(Type::tensor(DType::Float32), nullptr);
    for (int i = 0; i < depth; ++i) {
      type = field(type_field::kSequence, field(type_field::kElement, type));
    }
    return error_of(model(field(graph_field::kInput, field(value_info_field::kName, "x") +
                                                         field(value_info_field::kType, type))));
  };
  CHECK(nested(20) == "");
  CHECK(contains_text(nested(3000), "a type is nested more than 32 deep"));
  CHECK(contains_text(nested(3000), "reading the type of 'x'"));
}

TEST_CASE("a type of too many dimensions is refused") {
  std::string shape;
  for (int i = 0; i < 17; ++i) shape += field(shape_field::kDim, "");
  const std::string type = field(
      type_field::kTensor, integer(type_field::kElement, 1) + field(type_field::kSecond, shape));
  CHECK(contains_text(error_of(model(field(graph_field::kInput,
                                           field(value_info_field::kName, "x") +
                                               field(value_info_field::kType, type)))),
                      "more than 16 dimensions"));
}

TEST_CASE("files that are no models are named for what they are") {
  const TemporaryFolder folder;
  const auto error = [&](const std::string& path) {
    const auto result = read_model(path);
    return result.ok() ? "" : result.status().to_string();
  };
  CHECK(contains_text(error(folder / "missing.onnx"), "missing.onnx"));
  CHECK(read_model(folder / "missing.onnx").status().code() == Code::NoSuchFile);
  CHECK(contains_text(error(folder.path().string()), "is a folder"));
  CHECK(contains_text(error("/dev/zero"), "is a device"));
  CHECK(contains_text(error(write_text(folder / "a.ort", "")), "empty"));
  CHECK(contains_text(error(write_text(folder / "b.onnx", "")), "empty"));
  CHECK(contains_text(error(write_text(folder / "c.onnx", std::string("\0\0\0\0ORTM\0\0", 10))),
                      "the .ort file holds no model"));
  CHECK(contains_text(
      error(write_text(folder / "d.onnx", "version https://git-lfs.github.com/spec/v1\n")),
      "Git LFS"));
  const std::string text = error(write_text(folder / "e.onnx", "{\"not\": \"a model\"}"));
  CHECK(contains_text(text, "e.onnx"));
  CHECK(contains_text(error(write_text(folder / "f.onnx", opset("", 20))), "no graph"));
}
