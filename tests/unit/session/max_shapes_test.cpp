#include "session/max_shapes.h"

#include <random>

#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

std::string refusal(std::string_view text) {
  const auto shapes = parse_max_shapes(text);
  REQUIRE_MESSAGE(!shapes.ok(), std::string(text));
  CHECK(shapes.status().code() == Code::Internal);
  return shapes.status().message();
}

std::string misfit(const Graph& graph, std::string_view text) {
  const auto shapes = parse_max_shapes(text);
  REQUIRE_MESSAGE(shapes.ok(), shapes.status().to_string());
  const auto bounded = with_max_shapes(graph, *shapes);
  REQUIRE(!bounded.ok());
  return bounded.status().message();
}

constexpr Dim kBatch = kUnknownDim - 1;

}  // namespace

TEST_CASE("largest shapes are read by name, also of names with colons") {
  const auto shapes = parse_max_shapes(" x : [ 64 , 256 ] ;in:0:[7]");
  REQUIRE_MESSAGE(shapes.ok(), shapes.status().to_string());
  REQUIRE(shapes->size() == 2);
  CHECK((*shapes)[0].input == "x");
  CHECK((*shapes)[0].dims == std::vector<Dim>{64, 256});
  CHECK((*shapes)[1].input == "in:0");
  CHECK((*shapes)[1].dims == std::vector<Dim>{7});
  CHECK(parse_max_shapes("")->empty());
  CHECK(parse_max_shapes("s:[]")->front().dims.empty());
}

TEST_CASE("what is no list of shapes is refused with the texts of ONNX Runtime") {
  CHECK(refusal("x:[64, 256];") == "max_shape_override: empty entry at position 12");
  CHECK(refusal(";") == "max_shape_override: empty entry at position 0");
  CHECK(refusal("x") == "max_shape_override: missing ':' in entry 'x'");
  CHECK(refusal(":[1]") == "max_shape_override: empty name in entry ':[1]'");
  CHECK(refusal("x:64,256") == "max_shape_override: shape must be enclosed in [] for 'x'");
  CHECK(refusal("x:[0,256]") ==
        "max_shape_override: dimensions must be positive, got 0 for input 'x'");
  CHECK(refusal("x:[64,-1]") ==
        "max_shape_override: dimensions must be positive, got -1 for input 'x'");
  CHECK(refusal("x:[a,256]") == "max_shape_override: invalid dimension 'a' for input 'x'");
  CHECK(refusal("x:[,256]") == "max_shape_override: empty dimension for input 'x'");
  CHECK(refusal("x:[8];x:[8]") == "max_shape_override: duplicate entry for 'x'");
  CHECK(refusal("x:[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]").find("rank 17") != std::string::npos);
}

TEST_CASE("inputs get their largest shapes, and symbols that they share the same size") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{kBatch, 256});
  const ValueId y = small.input("y", Shape{kBatch, 1});
  const ValueId sum = small.node("Add", {x, y});
  small.output(sum);
  small.infer();
  const auto bounded = with_max_shapes(small.graph, *parse_max_shapes("x:[64,256]"));
  REQUIRE_MESSAGE(bounded.ok(), bounded.status().to_string());
  CHECK(*bounded->value(y).type.shape == Shape{64, 1});
  CHECK(*bounded->value(sum).type.shape == Shape{64, 256});
  CHECK(*small.graph.value(sum).type.shape == Shape{kBatch, 256});
}

TEST_CASE("sizes that nodes compute from shapes are known with the largest ones") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{kBatch, 4, 6});
  const ValueId shape = small.node("Shape", {x});
  const ValueId batch = small.node("Gather", {shape, small.ints({0})});
  const ValueId target =
      small.node("Concat", {batch, small.ints({24})}, with({{"axis", std::int64_t{0}}}));
  const ValueId flat = small.node("Relu", {small.node("Reshape", {x, target})});
  small.output(flat);
  small.infer();
  const auto bounded = with_max_shapes(small.graph, *parse_max_shapes("x:[64,4,6]"));
  REQUIRE_MESSAGE(bounded.ok(), bounded.status().to_string());
  const auto types = computed_types(*bounded);
  REQUIRE_MESSAGE(types.ok(), types.status().to_string());
  CHECK(*(*types)[flat].shape == Shape{64, 24});
}

TEST_CASE("shapes that do not fit the model are refused with the texts of ONNX Runtime") {
  SmallGraph small;
  small.output(small.node("Relu", {small.input("x", Shape{kBatch, 256})}));
  small.infer();
  CHECK(misfit(small.graph, "y:[1]") == "max_shape_override: 'y' is not a graph input");
  CHECK(misfit(small.graph, "x:[64]") ==
        "max_shape_override: rank mismatch for graph input 'x': model rank 2, override rank 1");
  CHECK(misfit(small.graph, "x:[64,128]") ==
        "max_shape_override: dimension 1 for graph input 'x' is static (256) but override "
        "specifies 128");
}

TEST_CASE("no text makes the reader of shapes fail otherwise than by a message") {
  std::mt19937 random(7);
  constexpr std::string_view kLetters = "x:[]0123,; -y";
  for (int turn = 0; turn < 4000; ++turn) {
    std::string text;
    for (int i = static_cast<int>(random() % 24); i > 0; --i) {
      text += kLetters[random() % kLetters.size()];
    }
    const auto shapes = parse_max_shapes(text);
    if (!shapes.ok()) CHECK(shapes.status().message().starts_with("max_shape_override: "));
  }
}
