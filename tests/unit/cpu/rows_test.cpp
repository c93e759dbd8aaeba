#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

Shape random_shape(Source& source, int rank_min, int rank_max, Dim size_max) {
  Shape shape;
  const auto rank = source.between(rank_min, rank_max);
  for (std::int64_t axis = 0; axis < rank; ++axis) {
    shape.push_back(source.chance(0.05) ? 0 : source.between(1, size_max));
  }
  return shape;
}

}  // namespace

TEST_CASE("Softmax is as evaluated over every axis, old and new versions") {
  Source source(11);
  for (int turn = 0; turn < 120; ++turn) {
    const Shape shape = random_shape(source, 1, 4, 9);
    const std::int64_t opset = source.one_of<std::int64_t>({1, 11, 13});
    NodeCase node("Softmax", opset);
    node.input(source.floats(shape, -30, 30));
    if (source.chance(0.7)) {
      const std::int64_t least = opset == 1 ? 0 : -shape.rank();
      node.attribute("axis", source.between(least, shape.rank() - 1));
    }
    if (source.chance(0.3)) node.unknown_sizes();
    CHECK(node.difference({4e-6}) == "");
  }
  CHECK(NodeCase("Softmax", 13).input(source.floats({5, 3000}, -80, 80)).difference({4e-6}) == "");
}

TEST_CASE("layer and root-mean-square normalisation are as evaluated") {
  Source source(12);
  for (int turn = 0; turn < 120; ++turn) {
    const Shape shape = random_shape(source, 1, 4, 20);
    const auto axis = static_cast<int>(source.between(0, shape.rank() - 1));
    Shape tail;
    for (int i = axis; i < shape.rank(); ++i) tail.push_back(shape[i]);
    const bool is_layer = source.chance(0.5);
    NodeCase node(is_layer ? "LayerNormalization" : "RMSNormalization", is_layer ? 17 : 23);
    node.input(source.floats(shape)).input(source.floats(tail), source.chance(0.5));
    if (is_layer && source.chance(0.5)) node.input(source.floats(tail), source.chance(0.5));
    node.attribute("axis", source.chance(0.5) ? axis : axis - std::int64_t{shape.rank()});
    if (source.chance(0.5)) node.attribute("epsilon", 0.01F);
    CHECK(node.difference({1e-5}) == "");
  }
}

TEST_CASE("a scale of layer normalisation that broadcasts along other axes is used as one a row") {
  Source source(13);
  const Tensor x = source.floats({4, 4}, 0, 2);
  for (const Shape& scale : {Shape{4, 1}, Shape{1}, Shape{1, 4}, Shape{4}}) {
    CHECK(NodeCase("LayerNormalization", 17)
              .input(x)
              .constant(source.floats(scale))
              .difference({1e-5}) == "");
    CHECK(NodeCase("LayerNormalization", 17)
              .input(x)
              .constant(source.floats({4}))
              .constant(source.floats(scale))
              .difference({1e-5}) == "");
  }
}

TEST_CASE("normalisation with further outputs is as evaluated") {
  Source source(14);
  CHECK(NodeCase("LayerNormalization", 17)
            .input(source.floats({3, 5, 8}))
            .constant(source.floats({8}))
            .outputs(3)
            .difference({1e-5}) == "");
}

TEST_CASE("reductions over any set of axes are as evaluated") {
  Source source(15);
  for (int turn = 0; turn < 300; ++turn) {
    const Shape shape = random_shape(source, 1, 5, 7);
    const char* name =
        source.one_of({"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare"});
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      if (source.chance(0.5)) axes.push_back(source.chance(0.5) ? axis : axis - shape.rank());
    }
    const bool is_new = source.chance(0.5);
    NodeCase node(name, is_new ? 18 : 11);
    node.input(source.floats(shape));
    if (is_new && !(axes.empty() && source.chance(0.5))) {
      auto tensor = make_tensor<std::int64_t>(Shape{static_cast<Dim>(axes.size())},
                                              std::span<const std::int64_t>(axes));
      REQUIRE(tensor.ok());
      node.input(*tensor, source.chance(0.8));
    } else if (!is_new && !axes.empty()) {
      node.attribute("axes", axes);
    }
    if (is_new && source.chance(0.2)) node.attribute("noop_with_empty_axes", std::int64_t{1});
    node.attribute("keepdims", source.between(0, 1));
    CHECK(node.difference({1e-5}) == "");
  }
}

TEST_CASE("reductions over many elements are as evaluated") {
  Source source(16);
  for (const char* name :
       {"ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceSumSquare"}) {
    for (const std::int64_t axis : {0, 1, 2}) {
      CHECK(NodeCase(name, 11)
                .input(source.floats({30, 64, 33}))
                .attribute("axes", std::vector<std::int64_t>{axis})
                .difference({2e-5}) == "");
    }
    CHECK(NodeCase(name, 11).input(source.floats({100000}, 0, 1)).difference({2e-5}) == "");
  }
}

TEST_CASE("Concat is as evaluated for every type of whole bytes and every axis") {
  Source source(17);
  for (int turn = 0; turn < 150; ++turn) {
    Shape shape = random_shape(source, 1, 4, 6);
    const auto axis = static_cast<int>(source.between(0, shape.rank() - 1));
    const DType dtype = source.one_of({DType::Float32, DType::Int64, DType::UInt8, DType::Float16,
                                       DType::Bool, DType::Float64, DType::UInt4});
    NodeCase node("Concat", 13);
    for (std::int64_t part = source.between(1, 4); part > 0; --part) {
      shape[axis] = source.between(0, 5);
      node.input(dtype == DType::Bool ? source.zeros(dtype, shape) : source.bytes(dtype, shape),
                 source.chance(0.2));
    }
    node.attribute("axis", source.chance(0.5) ? axis : axis - std::int64_t{shape.rank()});
    if (dtype == DType::UInt4) continue;
    CHECK(node.difference({0}) == "");
  }
  CHECK(NodeCase("Concat", 13)
            .input(source.floats({50, 3000}))
            .input(source.floats({50, 17}))
            .attribute("axis", std::int64_t{1})
            .difference({0}) == "");
}

TEST_CASE("Transpose is as evaluated for every permutation and type of whole bytes") {
  Source source(18);
  for (int turn = 0; turn < 250; ++turn) {
    const Shape shape = random_shape(source, 0, 6, 6);
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      axes.insert(axes.begin() + source.between(0, axis), axis);
    }
    const DType dtype =
        source.one_of({DType::Float32, DType::Int64, DType::UInt8, DType::Float16, DType::Float64});
    NodeCase node("Transpose", 13);
    node.input(source.bytes(dtype, shape));
    if (!axes.empty() && source.chance(0.9)) node.attribute("perm", axes);
    CHECK(node.difference({0}) == "");
  }
  CHECK(NodeCase("Transpose", 13).input(source.floats({300, 701})).difference({0}) == "");
}
