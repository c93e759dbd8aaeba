#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

std::vector<Datum> fed() { return {float_tensor({2, 3}, {1, -2, 3, -4, 5, -6})}; }

Attributes permutation(std::initializer_list<std::int64_t> axes) {
  return with({{"perm", attribute(axes)}});
}

}  // namespace

TEST_CASE("nodes that do nothing go, and outputs keep their names") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  const ValueId a = small.node("Identity", {small.node("Neg", {x})});
  const ValueId b = small.node("Cast", {a}, with({{"to", attribute(1)}}));
  const ValueId c = small.node("Dropout", {b});
  const ValueId d = small.node("Transpose", {c}, permutation({0, 1}));
  small.output(small.node("Identity", {small.node("Exp", {d})}));
  CHECK(rewritten(small, remove_no_ops, fed()) == "Neg Exp");
}

TEST_CASE("transposes after each other become one, or none when they cancel out") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3, 1});
  const ValueId a = small.node("Transpose", {x}, permutation({1, 2, 0}));
  small.output(small.node("Neg", {small.node("Transpose", {a}, permutation({1, 0, 2}))}));
  small.output(small.node("Exp", {small.node("Transpose", {a}, permutation({2, 0, 1}))}));
  CHECK(rewritten(small, remove_no_ops, {random_floats({2, 3, 1})}) == "Transpose Neg Exp");
}

TEST_CASE("an identity between an input and an output stays, as does one of an output") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  small.output(small.node("Identity", {x}));
  const ValueId y = small.node("Neg", {x});
  small.output(y);
  small.output(small.node("Identity", {y}));
  CHECK(rewritten(small, remove_no_ops, fed()) == "Identity Neg Identity");
}

TEST_CASE("a dropout whose mask is used stays") {
  SmallGraph small;
  const auto both = small.nodes("Dropout", {small.input("x", {2, 3})}, 2);
  small.output(small.node("Neg", {both[0]}));
  small.output(both[1]);
  CHECK(rewritten(small, remove_no_ops, fed()) == "Dropout Neg");
}

TEST_CASE("what a subgraph captures follows when the node before it goes") {
  SmallGraph small;
  const ValueId condition = small.input("condition", {}, DType::Bool);
  const ValueId y = small.node("Neg", {small.input("x", {2})});
  const ValueId same = small.node("Identity", {y});
  const auto branch = [&](const std::string& op) {
    auto inner = std::make_shared<Graph>();
    const Type type = Type::tensor(DType::Float32, Shape{2});
    Node node;
    node.op_type = op;
    node.opset = 18;
    node.inputs = {inner->capture(y, "y", type), inner->capture(same, "same", type)};
    node.outputs = {inner->add_value("z")};
    const ValueId z = node.outputs[0];
    inner->add_node(std::move(node));
    inner->add_output(z);
    return Attribute(std::move(inner));
  };
  small.output(small.node("If", {condition},
                          with({{"then_branch", branch("Add")}, {"else_branch", branch("Mul")}})));
  auto yes = make_tensor<bool>(Shape{}, {true});
  REQUIRE(yes.ok());
  CHECK(rewritten(small, remove_no_ops, {*yes, float_tensor({2}, {1, 2})}) == "Neg If");
}

TEST_CASE("nodes of constants are computed, and the shape of a value of known sizes") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  const ValueId sum = small.node("Add", {small.floats({3}, {1, 2, 3}), small.floats({1}, {10})});
  const ValueId shape = small.node("Shape", {small.node("Exp", {x})});
  const ValueId twice = small.node("Mul", {shape, small.ints({1})});
  small.output(small.node("Reshape", {small.node("Mul", {x, sum}), twice}));
  CHECK(rewritten(small, fold_constants, fed()) == "Mul Reshape");
}

TEST_CASE("what only folded nodes used lets its elements go") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  const ValueId base = small.floats({3}, {1, 2, 3});
  const ValueId kept = small.floats({3}, {4, 5, 6});
  const ValueId between = small.node("Add", {base, kept});
  const ValueId scaled = small.node("Mul", {between, small.floats({1}, {10})});
  small.output(small.node("Add", {x, scaled}));
  small.output(small.node("Sub", {x, kept}));
  small.infer();
  REQUIRE(fold_constants(small.graph, {}).ok());
  CHECK(ops_of(small.graph) == "Add Sub");
  CHECK(!small.graph.value(base).constant);
  CHECK(!small.graph.value(between).constant);
  CHECK(small.graph.value(kept).constant);
  CHECK(small.graph.value(scaled).constant);
}

TEST_CASE("random numbers, large expansions and shapes of unknown sizes are not computed") {
  SmallGraph small;
  small.output(small.node("Shape", {small.input("x", {kUnknownDim, 3})}));
  small.output(small.node("ConstantOfShape", {small.ints({10000, 10000})}));
  small.infer();
  REQUIRE(fold_constants(small.graph, {}).ok());
  CHECK(ops_of(small.graph) == "Shape ConstantOfShape");
  SmallGraph random;
  random.output(random.node("RandomNormal", {}, with({{"shape", attribute({2})}})));
  random.infer();
  REQUIRE(fold_constants(random.graph, {}).ok());
  CHECK(ops_of(random.graph) == "RandomNormal");
}

TEST_CASE("a node of constants that fails stays and fails when it runs") {
  SmallGraph small;
  small.output(small.node("Gather", {small.floats({2}, {1, 2}), small.ints({7})}));
  small.infer();
  REQUIRE(fold_constants(small.graph, {}).ok());
  CHECK(ops_of(small.graph) == "Gather");
}

TEST_CASE("an optional without value is not computed away") {
  SmallGraph small;
  const ValueId none =
      small.node("Optional", {}, with({{"type", Attribute(Type::tensor(DType::Float32))}}));
  small.output(small.node("OptionalHasElement", {none}));
  small.infer();
  REQUIRE(fold_constants(small.graph, {}).ok());
  small.infer();
  CHECK(*evaluated(small.graph, {})[0].tensor()->data() == std::byte{0});
}

TEST_CASE("what nobody needs goes, through chains, and what an output needs stays") {
  SmallGraph small;
  const ValueId a = small.node("Neg", {small.input("x", {2, 3})});
  small.node("Exp", {small.node("Abs", {a})});
  small.output(a);
  CHECK(rewritten(small, remove_dead_nodes, fed()) == "Neg");
}
