#include <cmath>

#include "op_case.h"

using namespace sardonyx;

namespace {

const std::string kDomain = "com.microsoft";

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}
Tensor scalar(float value) { return floats({}, {value}); }
Tensor byte(std::uint8_t value) { return tensor_of<std::uint8_t>({}, {value}); }

using Bytes = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("quantised sums broadcast and requantise") {
  OpCase add("QLinearAdd", 1, kDomain);
  // (130 - 128) * 0.5 = 1 and (132 - 128) * 0.5 = 2, plus 10 * 0.1 = 1.
  add.input(tensor_of<std::uint8_t>({2}, {130, 132})).input(scalar(0.5F)).input(byte(128));
  add.input(tensor_of<std::uint8_t>({1}, {10})).input(scalar(0.1F)).no_input();
  add.input(scalar(0.25F)).input(byte(100));
  CHECK(elements<std::uint8_t>(add.tensor()) == Bytes{108, 112});
}

TEST_CASE("quantised products saturate") {
  OpCase mul("QLinearMul", 1, kDomain);
  mul.input(tensor_of<std::uint8_t>({2}, {255, 2})).input(scalar(1)).input(byte(0));
  mul.input(tensor_of<std::uint8_t>({}, {2})).input(scalar(1)).input(byte(0));
  mul.input(scalar(1)).input(byte(0));
  CHECK(elements<std::uint8_t>(mul.tensor()) == Bytes{255, 4});
}

TEST_CASE("a scale with several values is refused") {
  OpCase sigmoid("QLinearSigmoid", 1, kDomain);
  sigmoid.input(tensor_of<std::uint8_t>({2}, {0, 1})).input(floats({2}, {1, 2})).no_input();
  sigmoid.input(scalar(1)).no_input();
  CHECK(sigmoid.error() == "'x1' should be a scalar, but has shape [2]");
}

TEST_CASE("quantised sigmoid of zero is a half") {
  OpCase sigmoid("QLinearSigmoid", 1, kDomain);
  sigmoid.input(tensor_of<std::uint8_t>({1}, {7})).input(scalar(0.1F)).input(byte(7));
  sigmoid.input(scalar(0.01F)).no_input();
  CHECK(elements<std::uint8_t>(sigmoid.tensor()) == Bytes{50});
}

TEST_CASE("quantised tensors of different scales are joined in the output's") {
  OpCase concat("QLinearConcat", 1, kDomain);
  concat.attribute("axis", std::int64_t{-1});
  concat.input(scalar(1)).input(byte(10));
  concat.input(tensor_of<std::uint8_t>({1, 2}, {1, 2})).input(scalar(2)).input(byte(0));
  concat.input(tensor_of<std::uint8_t>({1, 1}, {9})).input(scalar(3)).input(byte(8));
  const Tensor y = concat.tensor();
  CHECK(y.shape() == Shape{1, 3});
  CHECK(elements<std::uint8_t>(y) == Bytes{12, 14, 13});
}

TEST_CASE("quantised average pools take channels first and last") {
  for (const bool is_last : {false, true}) {
    OpCase pool("QLinearAveragePool", 1, kDomain);
    pool.attribute("kernel_shape", std::vector<std::int64_t>{1, 2});
    pool.attribute("channels_last", std::int64_t{is_last});
    const Shape shape = is_last ? Shape{1, 1, 3, 1} : Shape{1, 1, 1, 3};
    pool.input(tensor_of<std::uint8_t>(shape, {10, 20, 40})).input(scalar(1)).input(byte(0));
    pool.input(scalar(0.5F)).input(byte(1));
    const Tensor y = pool.tensor();
    CHECK(y.shape() == (is_last ? Shape{1, 1, 2, 1} : Shape{1, 1, 1, 2}));
    CHECK(elements<std::uint8_t>(y) == Bytes{31, 61});
  }
}

TEST_CASE("quantised softmax and means keep to their axes") {
  OpCase softmax("QLinearSoftmax", 1, kDomain);
  softmax.attribute("opset", std::int64_t{13});
  softmax.input(tensor_of<std::uint8_t>({2, 2}, {5, 5, 9, 9})).input(scalar(1)).input(byte(0));
  softmax.input(scalar(1.0F / 256)).input(byte(0));
  CHECK(elements<std::uint8_t>(softmax.tensor()) == Bytes{128, 128, 128, 128});
  OpCase mean("QLinearReduceMean", 1, kDomain);
  mean.attribute("axes", std::vector<std::int64_t>{1}).attribute("keepdims", std::int64_t{0});
  mean.input(tensor_of<std::uint8_t>({2, 2}, {5, 7, 10, 20})).input(scalar(1)).input(byte(0));
  mean.input(scalar(1)).input(byte(0));
  CHECK(elements<std::uint8_t>(mean.tensor()) == Bytes{6, 15});
}

TEST_CASE("integer products and sums do not wrap in 8 bits") {
  OpCase product("MulInteger", 1, kDomain);
  product.input(tensor_of<std::uint8_t>({2}, {200, 100})).input(byte(10));
  product.input(tensor_of<std::uint8_t>({1}, {255})).no_input();
  CHECK(elements<std::int32_t>(product.tensor()) == std::vector<std::int32_t>{48450, 22950});
  OpCase sum("ReduceSumInteger", 1, kDomain);
  sum.attribute("axes", std::vector<std::int64_t>{0}).attribute("keepdims", std::int64_t{1});
  sum.input(tensor_of<std::uint8_t>({3}, {200, 200, 200}));
  CHECK(elements<std::uint32_t>(sum.tensor()) == std::vector<std::uint32_t>{600});
}

TEST_CASE("Gelu with a bias adds it first") {
  const Tensor x = floats({1, 2}, {0, 1});
  const Tensor bias = floats({2}, {1, -1});
  const auto y = elements<float>(OpCase("BiasGelu", 1, kDomain).input(x).input(bias).tensor());
  CHECK(y[0] == doctest::Approx(0.8413447));
  CHECK(y[1] == 0);
  const auto fast = elements<float>(OpCase("FastGelu", 1, kDomain).input(x).input(bias).tensor());
  CHECK(fast[0] == doctest::Approx(0.8411920));
  const auto quick = elements<float>(OpCase("QuickGelu", 1, kDomain).input(x).tensor());
  CHECK(quick[1] == doctest::Approx(0.8457958));
  CHECK(OpCase("BiasGelu", 1, kDomain).input(x).input(floats({3}, {1, 2, 3})).error() ==
        "'x1' of shape [3] does not broadcast to [1,2]");
}

TEST_CASE("BiasSplitGelu multiplies the left half with Gelu of the right one") {
  OpCase split("BiasSplitGelu", 1, kDomain);
  split.input(floats({1, 1, 4}, {2, 3, 0, 1})).input(floats({4}, {0, 0, 1, -1}));
  const Tensor y = split.tensor();
  CHECK(y.shape() == Shape{1, 1, 2});
  CHECK(y.values<float>()[0] == doctest::Approx(1.6826894));
  CHECK(y.values<float>()[1] == 0);
}

TEST_CASE("BiasDropout without training adds bias and residual and masks nothing") {
  OpCase dropout("BiasDropout", 1, kDomain);
  dropout.outputs(2);
  dropout.input(floats({1, 2}, {1, 2})).input(floats({2}, {10, 20}));
  dropout.input(floats({1, 2}, {100, 200}));
  const auto outputs = dropout.evaluate();
  REQUIRE(outputs.ok());
  CHECK(elements<float>(*outputs->at(0).tensor()) == std::vector<float>{111, 222});
  CHECK(elements<bool>(*outputs->at(1).tensor()) == std::vector<bool>{true, true});
}

TEST_CASE("BiasSoftmax normalises from its axis on") {
  OpCase softmax("BiasSoftmax", 1, kDomain);
  softmax.attribute("axis", std::int64_t{1}).attribute("is_inner_broadcast", std::int64_t{0});
  softmax.input(floats({1, 2, 2}, {0, 0, 0, 0})).input(floats({2}, {0, -INFINITY}));
  CHECK(elements<float>(softmax.tensor()) == std::vector<float>{0.5F, 0, 0.5F, 0});
}

TEST_CASE("what is added to an input, and a grid over it, may not have more axes") {
  const Tensor x = floats({3}, {1, 2, 3});
  const Tensor wide = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(OpCase("BiasDropout", 1, kDomain).input(x).input(wide).error().find(
            "does not broadcast to [3]") != std::string::npos);
  CHECK(OpCase("GridSample", 16).input(wide).input(x).error().find("does not fit an input") !=
        std::string::npos);
}
