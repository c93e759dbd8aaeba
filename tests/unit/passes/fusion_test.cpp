#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

ValueId gelu(SmallGraph& small, ValueId x, int form, const Shape& number) {
  const ValueId scaled = form == 0 ? small.node("Div", {x, small.floats(number, {1.41421354F})})
                                   : small.node("Mul", {small.floats(number, {0.70710678F}), x});
  const ValueId one = small.node("Add", {small.node("Erf", {scaled}), small.floats(number, {1})});
  const ValueId half = small.floats(number, {0.5F});
  if (form == 0) return small.node("Mul", {small.node("Mul", {x, one}), half});
  if (form == 1) return small.node("Mul", {small.node("Mul", {x, half}), one});
  return small.node("Mul", {small.node("Mul", {one, half}), x});
}

struct NormForm {
  bool subtracts_mean = true;
  bool has_bias = true;
  Shape epsilon = {};
  Shape scale = {4};
};

ValueId norm(SmallGraph& small, ValueId x, const NormForm& form) {
  const Attributes last = with({{"axes", attribute({-1})}});
  const ValueId centered =
      form.subtracts_mean ? small.node("Sub", {x, small.node("ReduceMean", {x}, last, 13)}) : x;
  const ValueId square = small.node("Pow", {centered, small.floats({}, {2})});
  const ValueId variance = small.node("ReduceMean", {square}, last, 13);
  const ValueId sum = small.node("Add", {variance, small.floats(form.epsilon, {0.01F})});
  ValueId y = small.node("Div", {centered, small.node("Sqrt", {sum})});
  y = small.node("Mul", {y, small.constant(random_floats(form.scale, 3))});
  return form.has_bias ? small.node("Add", {y, small.constant(random_floats({4}, 4))}) : y;
}

Datum rows() { return random_floats({3, 4}, 9); }

bool has_norm(const std::string& ops) { return ops.find("Normalization") != std::string::npos; }

}  // namespace

TEST_CASE("x * sigmoid(x) becomes one node, in either order") {
  for (const bool is_first : {true, false}) {
    SmallGraph small;
    const ValueId x = small.input("x", {3, 4});
    const ValueId s = small.node("Sigmoid", {x});
    small.output(small.node("Mul", is_first ? std::vector{x, s} : std::vector{s, x}));
    CHECK(rewritten(small, fuse_silu, {rows()}) == "QuickGelu");
  }
}

TEST_CASE("a sigmoid that others need, or times another value, stays") {
  SmallGraph small;
  const ValueId x = small.input("x", {3, 4});
  const ValueId s = small.node("Sigmoid", {x});
  small.output(small.node("Mul", {x, s}));
  small.output(s);
  CHECK(rewritten(small, fuse_silu, {rows()}) == "Sigmoid Mul");
  SmallGraph other;
  const ValueId y = other.input("x", {3, 4});
  const ValueId negative = other.node("Neg", {y});
  other.output(other.node("Mul", {negative, other.node("Sigmoid", {y})}));
  CHECK(rewritten(other, fuse_silu, {rows()}) == "Neg Sigmoid Mul");
}

TEST_CASE("Gelu written out becomes one node in all orders") {
  for (const int form : {0, 1, 2}) {
    SmallGraph small;
    small.output(gelu(small, small.input("x", {3, 4}), form, {}));
    CHECK(rewritten(small, fuse_gelu, {rows()}) == "Gelu");
  }
}

TEST_CASE("Gelu whose numbers widen the result keeps its shape") {
  for (const int form : {0, 1, 2}) {
    SmallGraph small;
    small.output(gelu(small, small.input("x", {3, 4}), form, {1, 1, 1}));
    CHECK(rewritten(small, fuse_gelu, {rows()}) != "Gelu");
    SmallGraph scalar;
    scalar.output(gelu(scalar, scalar.input("x", {}), form, {1}));
    CHECK(rewritten(scalar, fuse_gelu, {float_tensor({}, {0.5F})}) != "Gelu");
  }
}

TEST_CASE("Gelu with an output inside stays") {
  SmallGraph small;
  const ValueId x = small.input("x", {3, 4});
  const ValueId erf = small.node("Erf", {small.node("Div", {x, small.floats({}, {1.41421354F})})});
  small.output(erf);
  const ValueId sum = small.node("Add", {erf, small.floats({}, {1})});
  small.output(small.node("Mul", {small.node("Mul", {x, sum}), small.floats({}, {0.5F})}));
  CHECK(rewritten(small, fuse_gelu, {rows()}) == "Div Erf Add Mul Mul");
}

TEST_CASE("normalisation written out becomes one node") {
  for (const bool has_bias : {true, false}) {
    SmallGraph small;
    small.output(norm(small, small.input("x", {3, 4}), {true, has_bias}));
    CHECK(rewritten(small, fuse_norm, {rows()}) == "LayerNormalization");
  }
  SmallGraph small;
  small.output(norm(small, small.input("x", {3, 4}), {false, false}));
  CHECK(rewritten(small, fuse_norm, {rows()}) == "RMSNormalization");
}

TEST_CASE("normalisation that its numbers widen keeps its shape") {
  SmallGraph epsilon;
  epsilon.output(norm(epsilon, epsilon.input("x", {3, 4}), {true, true, {1, 1, 1}}));
  CHECK(!has_norm(rewritten(epsilon, fuse_norm, {rows()})));
  SmallGraph scale;
  scale.output(norm(scale, scale.input("x", {3, 4}), {true, true, {}, {2, 1, 4}}));
  CHECK(!has_norm(rewritten(scale, fuse_norm, {rows()})));
  SmallGraph row;
  row.output(norm(row, row.input("x", {3, 1}), {}));
  CHECK(!has_norm(rewritten(row, fuse_norm, {random_floats({3, 1})})));
}

TEST_CASE("a convolution takes the sum and the activation after it") {
  for (const char* activation : {"Relu", "Sigmoid", "Tanh", "HardSwish", "LeakyRelu", "Clip"}) {
    SmallGraph small;
    const ValueId x = small.input("x", {1, 3, 5, 5});
    const ValueId conv = small.node("Conv", {x, small.constant(random_floats({3, 3, 1, 1}))});
    std::vector<ValueId> inputs = {small.node("Add", {x, conv})};
    if (std::string(activation) == "Clip") {
      inputs.push_back(small.floats({}, {-1}));
      inputs.push_back(small.floats({}, {1.5F}));
    }
    small.output(small.node(activation, inputs));
    CHECK(rewritten(small, fuse_conv, {random_floats({1, 3, 5, 5}, 2)}) == "FusedConv");
  }
}

TEST_CASE("a convolution leaves what is used twice, is an output, or widens") {
  const Datum fed = random_floats({1, 3, 5, 5}, 2);
  const auto conv_of = [](SmallGraph& small, ValueId x) {
    return small.node("Conv", {x, small.constant(random_floats({3, 3, 1, 1}))});
  };
  SmallGraph twice;
  const ValueId a = conv_of(twice, twice.input("x", {1, 3, 5, 5}));
  twice.output(twice.node("Relu", {a}));
  twice.output(twice.node("Neg", {a}));
  CHECK(rewritten(twice, fuse_conv, {fed}) == "Conv Relu Neg");
  SmallGraph output;
  const ValueId b = conv_of(output, output.input("x", {1, 3, 5, 5}));
  output.output(b);
  output.output(output.node("Relu", {b}));
  CHECK(rewritten(output, fuse_conv, {fed}) == "Conv Relu");
  SmallGraph wide;
  const ValueId c = conv_of(wide, wide.input("x", {1, 3, 5, 5}));
  wide.output(wide.node("Add", {c, wide.input("z", {2, 3, 5, 5})}));
  CHECK(rewritten(wide, fuse_conv, {fed, random_floats({2, 3, 5, 5})}) == "Conv Add");
  SmallGraph unknown;
  const ValueId d = conv_of(unknown, unknown.input("x", {1, 3, 5, kUnknownDim}));
  unknown.output(unknown.node("Add", {d, unknown.input("z", {1, 3, 5, kUnknownDim})}));
  CHECK(rewritten(unknown, fuse_conv, {fed, random_floats({1, 3, 5, 1})}) == "Conv Add");
}

TEST_CASE("a product takes scaling, bias, sum and activation") {
  SmallGraph small;
  const ValueId x = small.input("x", {3, 4});
  ValueId y = small.node("MatMul", {x, small.constant(random_floats({4, 4}))});
  y = small.node("Div", {y, small.floats({}, {2})});
  y = small.node("Add", {small.constant(random_floats({4}, 5)), y});
  y = small.node("Add", {x, y});
  small.output(small.node("Gelu", {y}, {}, 20));
  CHECK(rewritten(small, fuse_matmul, {rows()}) == "MatMul");
}

TEST_CASE("products leave what does not fit them") {
  SmallGraph vector;
  const ValueId x = vector.input("x", {2, 3, 4});
  const ValueId product = vector.node("MatMul", {x, vector.constant(random_floats({4}))});
  vector.output(vector.node("Add", {product, vector.constant(random_floats({3}, 2))}));
  CHECK(rewritten(vector, fuse_matmul, {random_floats({2, 3, 4})}) == "MatMul Add");
  SmallGraph wide;
  const ValueId y =
      wide.node("MatMul", {wide.input("x", {3, 4}), wide.constant(random_floats({4, 4}))});
  wide.output(wide.node("Mul", {y, wide.floats({1, 1, 1}, {3})}));
  CHECK(rewritten(wide, fuse_matmul, {rows()}) == "MatMul Mul");
  SmallGraph inverse;
  const ValueId z =
      inverse.node("MatMul", {inverse.input("x", {3, 4}), inverse.constant(random_floats({4, 4}))});
  inverse.output(inverse.node("Div", {inverse.floats({}, {3}), z}));
  CHECK(rewritten(inverse, fuse_matmul, {rows()}, 1e-3) == "MatMul Div");
}

TEST_CASE("an integer product takes the scaling after it unless that widens") {
  const auto build = [](SmallGraph& small, const Shape& b_scale) {
    const auto parts = small.nodes("DynamicQuantizeLinear", {small.input("x", {3, 4})}, 3);
    auto weight = Tensor::allocate(DType::Int8, {4, 5});
    REQUIRE(weight.ok());
    int value = -100;
    for (auto& element : weight->mutable_values<std::int8_t>()) {
      element = static_cast<std::int8_t>(value += 10);
    }
    const ValueId product =
        small.node("MatMulInteger", {parts[0], small.constant(*weight), parts[2]});
    const ValueId real = small.node("Cast", {product}, with({{"to", attribute(1)}}));
    const ValueId scale = small.node("Mul", {parts[1], small.constant(random_floats(b_scale, 6))});
    const ValueId y = small.node("Mul", {real, scale});
    small.output(small.node("Add", {y, small.constant(random_floats({5}, 7))}));
  };
  for (const Shape& plain : {Shape{}, Shape{1}, Shape{5}}) {
    SmallGraph small;
    build(small, plain);
    CHECK(rewritten(small, fuse_integer_matmul, {rows()}) ==
          "DynamicQuantizeLinear MatMulIntegerToFloat");
  }
  SmallGraph wide;
  build(wide, {1, 1, 1});
  CHECK(rewritten(wide, fuse_integer_matmul, {rows()}).find("ToFloat") == std::string::npos);
}
