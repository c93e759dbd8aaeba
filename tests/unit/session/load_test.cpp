#include "session/load.h"

#include <doctest/doctest.h>

#include "unit/onnx/messages.h"

using namespace messages;

namespace {

/// A SparseTensorProto of one value, 5 at place 1.
std::string sparse(std::string_view name, std::initializer_list<std::int64_t> dims) {
  std::string message =
      field(sparse_field::kValues, tensor(name, DType::Float32, {1}, raw_data(raw<float>({5})))) +
      field(sparse_field::kIndices,
            tensor("", DType::Int64, {1}, raw_data(raw<std::int64_t>({1}))));
  for (const std::int64_t dim : dims) message += integer(sparse_field::kDims, dim);
  return field(graph_field::kSparseInitializer, message);
}

Status prepare(Model& model) { return prepare_model(model, SessionOptions{}); }

}  // namespace

TEST_CASE("sparse initializers are expanded, in subgraphs too") {
  const std::string branch = sparse("s", {3}) + node("Add", {"x", "s"}, {"z"}) + output("z");
  const std::string graph = input("c", Type::tensor(DType::Bool, Shape{})) +
                            input("x", Type::tensor(DType::Float32, Shape{3})) + sparse("t", {3}) +
                            node("If", {"c"}, {"a"}, "",
                                 graph_attribute("then_branch", branch) +
                                     graph_attribute("else_branch", branch)) +
                            node("Add", {"a", "t"}, {"y"}) + output("y");
  auto model_read = read(model(graph));
  REQUIRE_MESSAGE(model_read.ok(), model_read.status().to_string());
  const Status status = prepare(*model_read);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  const Graph& main = model_read->graph;
  CHECK(elements<float>(*main.value(find(main, "t")).constant) == std::vector<float>{0, 5, 0});
  for (NodeId id = 0; id < main.node_count(); ++id) {
    for (const Graph* subgraph : subgraphs(main.node(id))) {
      CHECK(elements<float>(*subgraph->value(find(*subgraph, "s")).constant) ==
            std::vector<float>{0, 5, 0});
    }
  }
}

TEST_CASE("a sparse initializer of a huge dense size is refused by name") {
  auto model_read = read(model(sparse("bomb", {1 << 15, 1 << 14}) + output("bomb")));
  REQUIRE(model_read.ok());
  const Status status = prepare(*model_read);
  REQUIRE(!status.ok());
  CHECK(contains_text(status.to_string(), "sparse initializer 'bomb' of shape [32768,16384]"));
}
