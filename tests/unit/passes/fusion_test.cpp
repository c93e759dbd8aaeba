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

ValueId tanh_gelu(SmallGraph& small, ValueId x, int form, float number) {
  const ValueId factor = small.floats({}, {number});
  ValueId cubic = 0;
  if (form == 0) cubic = small.node("Mul", {small.node("Pow", {x, small.floats({}, {3})}), factor});
  if (form == 1) {
    cubic = small.node("Mul", {x, small.node("Mul", {x, small.node("Mul", {factor, x})})});
  }
  if (form >= 2) {
    cubic = small.node("Mul", {small.node("Mul", {small.node("Mul", {x, x}), x}), factor});
  }
  const ValueId root = small.floats({}, {0.79788458F});
  const ValueId sum = small.node("Add", form == 2 ? std::vector{cubic, x} : std::vector{x, cubic});
  const ValueId tanh = small.node(
      "Tanh", {small.node("Mul", form == 3 ? std::vector{root, sum} : std::vector{sum, root})});
  const ValueId one = small.node("Add", {small.floats({}, {1}), tanh});
  const ValueId half = small.floats({}, {0.5F});
  if (form == 0) return small.node("Mul", {small.node("Mul", {x, half}), one});
  return small.node("Mul", {x, small.node("Mul", {half, one})});
}

ValueId hard_gate(SmallGraph& small, ValueId x) {
  const ValueId sum = small.node("Add", {small.floats({}, {3}), x});
  const ValueId clip = small.node("Clip", {sum, small.floats({}, {0}), small.floats({}, {6})});
  return small.node("Div", {clip, small.floats({}, {6})});
}

ValueId hard_swish(SmallGraph& small, ValueId x, int form) {
  if (form == 0) return small.node("Mul", {x, hard_gate(small, x)});
  if (form == 1) {
    const Attributes numbers = with({{"alpha", Attribute(1.0F / 6)}, {"beta", Attribute(0.5F)}});
    return small.node("Mul", {small.node("HardSigmoid", {x}, numbers), x});
  }
  const ValueId sum = small.node("Add", {x, small.floats({1}, {3})});
  const ValueId clip =
      form == 2 ? small.node("Clip", {sum, small.floats({}, {0}), small.floats({}, {6})})
                : small.node("Clip", {sum},
                             with({{"min", Attribute(0.0F)}, {"max", Attribute(6.0F)}}), 10);
  const ValueId product = small.node("Mul", {clip, x});
  return form == 2 ? small.node("Div", {product, small.floats({}, {6})})
                   : small.node("Mul", {small.floats({}, {0.16666667F}), product});
}

/// From 4 channels to 6.
ValueId convolution(SmallGraph& small, ValueId x, bool is_transposed, Dim groups, bool has_bias) {
  const Shape shape = is_transposed ? Shape{4, 6 / groups, 3, 3} : Shape{6, 4 / groups, 3, 3};
  std::vector<ValueId> inputs = {x, small.constant(random_floats(shape, 1))};
  if (has_bias) inputs.push_back(small.constant(random_floats({6}, 2)));
  return small.node(is_transposed ? "ConvTranspose" : "Conv", inputs,
                    with({{"group", Attribute(groups)}, {"pads", attribute({1, 1, 1, 1})}}), 11);
}

ValueId batch_norm(SmallGraph& small, ValueId x, Dim channels) {
  std::vector<ValueId> inputs = {x};
  for (const unsigned seed : {11U, 12U, 13U, 14U}) {
    inputs.push_back(small.constant(random_floats({channels}, seed)));
  }
  for (float& variance : small.graph.value(inputs[4]).constant->mutable_values<float>()) {
    variance = 0.5F + variance * variance;
  }
  return small.node("BatchNormalization", inputs, with({{"epsilon", Attribute(0.01F)}}), 15);
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

TEST_CASE("Gelu approximated by Tanh becomes one node in all orders") {
  for (const int form : {0, 1, 2, 3}) {
    SmallGraph small;
    const ValueId x = small.input("x", {3, 4});
    small.output(tanh_gelu(small, x, form, 0.044715F));
    CHECK(rewritten(small, fuse_gelu, {rows()}) == "Gelu");
    SmallGraph other;
    other.output(tanh_gelu(other, other.input("x", {3, 4}), form, 0.05F));
    CHECK(rewritten(other, fuse_gelu, {rows()}).find("Gelu") == std::string::npos);
  }
}

TEST_CASE("a product with the approximated Gelu after it is one product") {
  SmallGraph small;
  const ValueId w = small.constant(random_floats({4, 5}, 1));
  const ValueId y = small.node("MatMul", {small.input("x", {3, 4}), w});
  small.output(
      small.node("Gelu", {y}, with({{"approximate", Attribute(std::string("tanh"))}}), 20));
  CHECK(rewritten(small, fuse_matmul, {rows()}) == "MatMul");
}

TEST_CASE("HardSwish written out becomes one node in all orders, its gate alone HardSigmoid") {
  for (const int form : {0, 1, 2, 3}) {
    SmallGraph small;
    small.output(hard_swish(small, small.input("x", {3, 4}), form));
    CHECK(rewritten(small, fuse_hard_swish, {rows()}) == "HardSwish");
  }
  SmallGraph gate;
  const ValueId x = gate.input("x", {3, 4});
  gate.output(gate.node("Mul", {hard_gate(gate, x), gate.input("y", {3, 4})}));
  CHECK(rewritten(gate, fuse_hard_swish, {rows(), rows()}) == "HardSigmoid Mul");
}

TEST_CASE("what only resembles HardSwish stays") {
  SmallGraph bounds;
  const ValueId x = bounds.input("x", {3, 4});
  const ValueId sum = bounds.node("Add", {x, bounds.floats({}, {3})});
  const ValueId clip = bounds.node("Clip", {sum, bounds.floats({}, {0}), bounds.floats({}, {5})});
  bounds.output(bounds.node("Div", {bounds.node("Mul", {x, clip}), bounds.floats({}, {6})}));
  CHECK(rewritten(bounds, fuse_hard_swish, {rows()}) == "Add Clip Mul Div");
  SmallGraph shared;
  const ValueId y = shared.input("x", {3, 4});
  const ValueId gate = hard_gate(shared, y);
  shared.output(shared.node("Mul", {y, gate}));
  shared.output(gate);
  CHECK(rewritten(shared, fuse_hard_swish, {rows()}) == "HardSigmoid Mul");
  SmallGraph alpha;
  const ValueId z = alpha.input("x", {3, 4});
  alpha.output(alpha.node("Mul", {z, alpha.node("HardSigmoid", {z})}));
  CHECK(rewritten(alpha, fuse_hard_swish, {rows()}) == "HardSigmoid Mul");
}

TEST_CASE("batch normalisation, scales and shifts after a convolution go into its weights") {
  for (const bool is_transposed : {false, true}) {
    for (const Dim groups : {1, 2}) {
      for (const bool has_bias : {false, true}) {
        SmallGraph small;
        ValueId y =
            convolution(small, small.input("x", {1, 4, 5, 5}), is_transposed, groups, has_bias);
        y = batch_norm(small, y, 6);
        y = small.node("Mul", {y, small.constant(random_floats({6, 1, 1}, 4))});
        y = small.node("Add", {small.constant(random_floats({1, 6, 1, 1}, 5)), y});
        y = small.node("Sub", {y, small.floats({}, {0.5F})});
        small.output(small.node("Div", {y, small.floats({1}, {4})}));
        CHECK(rewritten(small, fold_channel_scale, {Datum(random_floats({1, 4, 5, 5}, 9))}) ==
              (is_transposed ? "ConvTranspose" : "Conv"));
      }
    }
  }
}

TEST_CASE("what follows a convolution stays where it does not scale its channels") {
  const Datum fed = random_floats({1, 4, 6, 6}, 9);
  // Along the width, of a shape that widens, or with the convolution on the wrong side.
  for (const int form : {0, 1, 2, 3}) {
    SmallGraph small;
    const ValueId y = convolution(small, small.input("x", {1, 4, 6, 6}), false, 1, true);
    const ValueId row = small.constant(random_floats({6}, 4));
    if (form == 0) small.output(small.node("Mul", {y, row}));
    if (form == 1) small.output(small.node("Mul", {y, small.floats({1, 1, 1, 1, 1}, {2})}));
    if (form == 2) small.output(small.node("Sub", {small.floats({}, {2}), y}));
    if (form == 3) small.output(small.node("Div", {y, small.floats({}, {0})}));
    CHECK(rewritten(small, fold_channel_scale, {fed}, 1e30).find("Conv ") == 0);
  }
  SmallGraph shared;
  const ValueId y = convolution(shared, shared.input("x", {1, 4, 6, 6}), false, 1, false);
  shared.output(batch_norm(shared, y, 6));
  shared.output(y);
  CHECK(rewritten(shared, fold_channel_scale, {fed}) == "Conv BatchNormalization");
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
