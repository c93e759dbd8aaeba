#include <cmath>
#include <limits>
#include <random>

#include "op_case.h"

using namespace sardonyx;

namespace {

using Ints = std::vector<std::int64_t>;

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

/// 1, 2, 3 ...
Tensor counting(const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(*shape.element_count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  return *make_tensor<float>(shape, values);
}

Type type(const Shape& shape) { return Type::tensor(DType::Float32, shape); }

}  // namespace

TEST_CASE("Conv slides a padded kernel over groups of channels") {
  const Tensor x = counting({1, 2, 2, 2});
  const Tensor weight = floats({2, 1, 2, 2}, {1, 0, 0, 1, 0, 1, 1, 0});
  const Tensor y = OpCase("Conv", 22)
                       .input(x)
                       .input(weight)
                       .input(floats({2}, {0, 100}))
                       .attribute<std::int64_t>("group", 2)
                       .attribute("pads", Ints{0, 0, 1, 1})
                       .tensor();
  CHECK(y.shape() == Shape{1, 2, 2, 2});
  CHECK(elements<float>(y) == std::vector<float>{5, 2, 3, 4, 113, 108, 108, 100});
}

TEST_CASE("Conv agrees with a direct loop over strides, dilations and pads in three dimensions") {
  std::mt19937 random(3);
  for (int round = 0; round < 30; ++round) {
    const auto pick = [&](std::int64_t low, std::int64_t high) {
      return low + static_cast<std::int64_t>(random() % static_cast<unsigned>(high - low + 1));
    };
    const Ints in{pick(4, 7), pick(4, 7), pick(4, 7)};
    const Ints k{pick(1, 3), pick(1, 2), pick(1, 3)};
    const Ints s{pick(1, 2), pick(1, 3), pick(1, 2)};
    const Ints d{pick(1, 2), pick(1, 2), 1};
    const Ints pads{pick(0, 2), 0, pick(0, 1), pick(0, 1), pick(0, 1), 0};
    const Tensor x = counting({1, 1, in[0], in[1], in[2]});
    const Tensor weight = counting({1, 1, k[0], k[1], k[2]});
    const Tensor y = OpCase("Conv", 11)
                         .input(x)
                         .input(weight)
                         .attribute("strides", s)
                         .attribute("dilations", d)
                         .attribute("pads", pads)
                         .tensor();
    const auto at = [&](std::int64_t a, std::int64_t b, std::int64_t c) {
      const bool is_inside = a >= 0 && a < in[0] && b >= 0 && b < in[1] && c >= 0 && c < in[2];
      return is_inside ? x.values<float>()[static_cast<std::size_t>((a * in[1] + b) * in[2] + c)]
                       : 0.0F;
    };
    std::size_t next = 0;
    for (std::int64_t a = 0; a < y.dim(2); ++a) {
      for (std::int64_t b = 0; b < y.dim(3); ++b) {
        for (std::int64_t c = 0; c < y.dim(4); ++c) {
          float sum = 0;
          std::size_t tap = 0;
          for (std::int64_t i = 0; i < k[0]; ++i) {
            for (std::int64_t j = 0; j < k[1]; ++j) {
              for (std::int64_t l = 0; l < k[2]; ++l) {
                sum += weight.values<float>()[tap++] * at(a * s[0] - pads[0] + i * d[0],
                                                          b * s[1] - pads[1] + j * d[1],
                                                          c * s[2] - pads[2] + l * d[2]);
              }
            }
          }
          CHECK(y.values<float>()[next++] == sum);
        }
      }
    }
  }
}

TEST_CASE("Conv infers unknown sizes and refuses channels and kernels that do not fit") {
  CHECK(OpCase("Conv", 11)
            .input_type(type({kUnknownDim, 3, kUnknownDim, 8}))
            .input_type(type({4, 3, 3, 3}))
            .inferred() == "float[?,4,?,6]");
  CHECK(OpCase("Conv", 11).input_type(type({1, 4, 8})).input_type(type({4, 3, 3})).inferred() ==
        "4 input channels in 1 groups do not fit a weight of shape [4,3,3]");
  CHECK(OpCase("Conv", 11).input_type(type({1, 3, 2})).input_type(type({4, 3, 3})).inferred() ==
        "a window of 3 positions does not fit into an axis of 2 (with padding)");
  CHECK(OpCase("Conv", 11)
            .input_type(type({1, 3, 8}))
            .input_type(type({4, 3, 3}))
            .attribute("strides", Ints{0})
            .inferred() == "strides holds 0, expected a number in [1, 1073741824]");
  CHECK(OpCase("Conv", 11)
            .input_type(type({1, 3, 7}))
            .input_type(type({4, 3, 3}))
            .attribute("strides", Ints{2})
            .attribute<std::string>("auto_pad", "SAME_UPPER")
            .inferred() == "float[1,4,4]");
}

TEST_CASE("ConvInteger is exact over the whole range and pads with the zero point") {
  const Tensor x = tensor_of<std::uint8_t>({1, 1, 1, 2}, {255, 255});
  const Tensor weight = tensor_of<std::int8_t>({1, 1, 1, 2}, {127, 127});
  const Tensor y = OpCase("ConvInteger", 10)
                       .input(x)
                       .input(weight)
                       .input(tensor_of<std::uint8_t>({}, {1}))
                       .attribute("pads", Ints{0, 1, 0, 0})
                       .tensor();
  CHECK(elements<std::int32_t>(y) == std::vector<std::int32_t>{32258, 64516});
}

TEST_CASE("ConvTranspose spreads windows, with output padding and a wanted shape") {
  const Tensor x = floats({1, 1, 2}, {1, 2});
  const Tensor weight = floats({1, 1, 3}, {1, 10, 100});
  const auto node = [&] {
    OpCase made("ConvTranspose", 11);
    made.input(x).input(weight).attribute("strides", Ints{2});
    return made;
  };
  CHECK(elements<float>(node().tensor()) == std::vector<float>{1, 10, 102, 20, 200});
  CHECK(elements<float>(node().attribute("output_padding", Ints{1}).tensor()) ==
        std::vector<float>{1, 10, 102, 20, 200, 0});
  CHECK(elements<float>(node().attribute("pads", Ints{1, 1}).tensor()) ==
        std::vector<float>{10, 102, 20});
  CHECK(elements<float>(node().attribute("output_shape", Ints{4}).tensor()) ==
        std::vector<float>{10, 102, 20, 200});
}

TEST_CASE("MaxPool tells where its maxima stand and lets NaN through") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor x = floats({1, 1, 2, 3}, {1, 5, 5, 5, 2, nan});
  OpCase node("MaxPool", 12);
  node.input(x).outputs(2).attribute("kernel_shape", Ints{2, 2});
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  const auto values = elements<float>(*result->at(0).tensor());
  CHECK(values[0] == 5);
  CHECK(std::isnan(values[1]));
  CHECK(elements<std::int64_t>(*result->at(1).tensor()) == Ints{1, 5});
}

TEST_CASE("A pool rounds up only for windows that start before the end padding") {
  const auto inferred = [](std::int64_t size, Ints pads) {
    return OpCase("MaxPool", 12)
        .input_type(type({1, 1, size}))
        .attribute("kernel_shape", Ints{2})
        .attribute("strides", Ints{3})
        .attribute("pads", std::move(pads))
        .attribute<std::int64_t>("ceil_mode", 1)
        .inferred();
  };
  CHECK(inferred(4, {0, 0}) == "float[1,1,2]");
  CHECK(inferred(3, {0, 1}) == "float[1,1,1]");
}

TEST_CASE("AveragePool divides by the positions inside, or by the padding too") {
  const Tensor x = floats({1, 1, 3}, {3, 6, 9});
  const auto run = [&](std::int64_t counts_padding) {
    return elements<float>(OpCase("AveragePool", 11)
                               .input(x)
                               .attribute("kernel_shape", Ints{3})
                               .attribute("pads", Ints{1, 1})
                               .attribute("count_include_pad", counts_padding)
                               .tensor());
  };
  CHECK(run(0) == std::vector<float>{4.5F, 6, 7.5F});
  CHECK(run(1) == std::vector<float>{3, 6, 5});
}

TEST_CASE("MaxUnpool refuses an index outside the output") {
  CHECK(OpCase("MaxUnpool", 11)
            .input(floats({1, 1, 1}, {2}))
            .input(tensor_of<std::int64_t>({1, 1, 1}, {2}))
            .attribute("kernel_shape", Ints{2})
            .error() == "index 2 at position 0 is outside [0, 2)");
}

TEST_CASE("CausalConvWithState continues where the last call stopped") {
  OpCase node("CausalConvWithState", 27);
  node.input(floats({1, 1, 2}, {1, 2})).input(floats({1, 1, 3}, {1, 10, 100})).no_input();
  node.input(floats({1, 1, 2}, {7, 8})).outputs(2);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(0).tensor()) == std::vector<float>{187, 218});
  CHECK(elements<float>(*result->at(1).tensor()) == std::vector<float>{1, 2});
}

TEST_CASE("CausalConvWithState of com.microsoft refuses options that it does not know") {
  const auto node = [](std::int64_t dilation) {
    OpCase made("CausalConvWithState", 1, "com.microsoft");
    made.input(floats({1, 1, 2}, {1, 2})).input(floats({1, 1, 1}, {3})).outputs(2);
    made.attribute("dilation", dilation).attribute<std::int64_t>("channels_last", 0);
    return made;
  };
  CHECK(elements<float>(node(1).tensor()) == std::vector<float>{3, 6});
  CHECK(node(2).error() == "dilation is 2; only 1 is known");
}
