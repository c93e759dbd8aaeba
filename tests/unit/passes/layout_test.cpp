#include <functional>

#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

/// Evaluates what comes after a convolution with the layouts before and after the pass; the
/// operators that remain, transposes left out.
std::string around_conv(const std::function<ValueId(SmallGraph&, ValueId conv, ValueId x)>& rest) {
  SmallGraph small;
  const ValueId x = small.input("x", {1, 3, 6, 5});
  const ValueId w = small.constant(random_floats({4, 3, 3, 3}));
  const ValueId conv = small.node("Conv", {x, w}, with({{"pads", attribute({1, 1, 1, 1})}}));
  small.output(rest(small, conv, x));
  return rewritten(small, use_channels_last, {random_floats({1, 3, 6, 5}, 8)});
}

}  // namespace

TEST_CASE("operators after a convolution follow its layout and mean the same") {
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Relu", {y});
        }) == "Transpose NhwcFusedConv Relu Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Mul", {y, small.constant(random_floats({4, 1, 1}, 3))});
        }) == "Transpose NhwcFusedConv Mul Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Concat", {y, small.node("Neg", {y})}, with({{"axis", attribute(-3)}}));
        }) == "Transpose NhwcFusedConv Neg Concat Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Softmax", {y}, with({{"axis", attribute(1)}}));
        }) == "Transpose NhwcFusedConv Softmax Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("ReduceMean", {y, small.ints({2, -1})});
        }) == "Transpose NhwcFusedConv ReduceMean Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Pad", {y, small.ints({0, 1, 2, 0, 0, 0, 1, 3})});
        }) == "Transpose NhwcFusedConv Pad Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Resize", {y, kNoValue, small.floats({4}, {1, 1, 2, 3})});
        }) == "Transpose NhwcFusedConv Resize Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node(
              "MaxPool", {y},
              with({{"kernel_shape", attribute({2, 3})}, {"strides", attribute({2, 1})}}));
        }) == "Transpose NhwcFusedConv MaxPool Transpose");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("PRelu", {y, small.constant(random_floats({4, 1, 1}, 3))});
        }) == "Transpose NhwcFusedConv PRelu Transpose");
}

TEST_CASE("operators of other shapes and layouts after a convolution mean the same") {
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Add", {y, small.constant(random_floats({4, 6, 5}, 3))});
        }).find("Add") != std::string::npos);
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Add", {y, small.constant(random_floats({5}, 3))});
        }).find("Add") != std::string::npos);
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Mul", {y, small.constant(random_floats({1, 4, 6, 5}, 3))});
        }).find("Mul") != std::string::npos);
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Softmax", {y}, with({{"axis", attribute(2)}}), 11);
        }).find("Softmax") != std::string::npos);
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          const auto parts =
              small.nodes("Split", {y, small.ints({1, 3})}, 2, with({{"axis", attribute(1)}}));
          return small.node("Mul", {parts[0], parts[1]});
        }).find("Split") != std::string::npos);
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId) {
          return small.node("Reshape", {y, small.ints({1, 4, 5, 6})});
        }) == "Transpose NhwcFusedConv Transpose Reshape");
  CHECK(around_conv([](SmallGraph& small, ValueId y, ValueId x) {
          const ValueId w = small.constant(random_floats({4, 2, 2, 2}, 4));
          return small.node(
              "Add",
              {small.node("ConvTranspose", {y, w}),
               small.node("ConvTranspose", {x, small.constant(random_floats({3, 2, 2, 2}, 5))})});
        }).find("Add") != std::string::npos);
}

TEST_CASE("sums of the old versions broadcast along their axis, not the last") {
  for (const char* op : {"Add", "Mul", "Sub", "Div", "Pow"}) {
    CHECK(around_conv([op](SmallGraph& small, ValueId y, ValueId) {
            const ValueId positive = small.node("Exp", {y});
            return small.node(op, {positive, small.constant(random_floats({4}, 3))},
                              with({{"axis", attribute(1)}, {"broadcast", attribute(1)}}), 6);
          }).find(op) != std::string::npos);
  }
}

TEST_CASE("a long chain of fused convolutions is converted as a whole") {
  constexpr int kLength = 300;
  SmallGraph small;
  ValueId last = small.input("x", {1, 3, 2, 2});
  const ValueId w = small.constant(random_floats({3, 3, 1, 1}));
  for (int i = 0; i < kLength; ++i) {
    last = small.node("FusedConv", {last, w}, with({{"activation", std::string("Relu")}}), 1,
                      "com.microsoft");
  }
  small.output(last);
  small.infer();
  REQUIRE(use_channels_last(small.graph, {}).ok());
  int converted = 0;
  for (NodeId id = 0; id < small.graph.node_count(); ++id) {
    const Node& node = small.graph.node(id);
    converted += !node.is_removed && node.op_type == "NhwcFusedConv";
  }
  CHECK(converted == kLength);
}
