#include <cmath>
#include <limits>
#include <random>

#include "ir/element.h"
#include "op_case.h"

using namespace sardonyx;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

Tensor random_floats(const Shape& shape, std::mt19937& random) {
  auto tensor = Tensor::allocate(DType::Float32, shape);
  REQUIRE(tensor.ok());
  for (float& value : tensor->mutable_values<float>()) {
    value = static_cast<float>(random() % 1000) / 8 - 60;
  }
  return *tensor;
}

/// Where element `index` of a tensor of shape `output` lies in an operand that broadcasts to it.
std::int64_t operand_index(const Shape& output, const Shape& operand, std::int64_t index) {
  std::int64_t at = 0;
  std::int64_t stride = 1;
  for (int i = 1; i <= output.rank(); ++i) {
    const std::int64_t size = output[output.rank() - i];
    if (i <= operand.rank()) {
      const std::int64_t extent = operand[operand.rank() - i];
      at += extent == 1 ? 0 : index % size * stride;
      stride *= extent;
    }
    index /= size;
  }
  return at;
}

}  // namespace

TEST_CASE("binary operators broadcast any two shapes that fit, as numpy does") {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    Shape a, b;
    const int rank = static_cast<int>(random() % 5);
    for (int i = 0; i < rank; ++i) {
      const auto size = static_cast<Dim>(random() % 4 + (random() % 8 != 0));
      const auto kind = random() % 4;
      a.push_back(kind == 1 ? 1 : size);
      b.push_back(kind == 2 ? 1 : size);
    }
    while (b.rank() > 0 && random() % 3 == 0) b.erase(0);
    const Tensor x = random_floats(a, random);
    const Tensor y = random_floats(b, random);
    const Tensor z = OpCase("Sub", 14).input(x).input(y).tensor();
    CAPTURE(a.to_string());
    CAPTURE(b.to_string());
    REQUIRE(z.shape() == *broadcast(a, b));
    for (std::int64_t i = 0; i < z.element_count(); ++i) {
      const auto ia = static_cast<std::size_t>(operand_index(z.shape(), a, i));
      const auto ib = static_cast<std::size_t>(operand_index(z.shape(), b, i));
      REQUIRE(z.values<float>()[static_cast<std::size_t>(i)] ==
              x.values<float>()[ia] - y.values<float>()[ib]);
    }
  }
}

TEST_CASE("shapes that do not broadcast are refused with both shapes") {
  CHECK(OpCase("Add", 14).input(floats({2}, {1, 2})).input(floats({3}, {1, 2, 3})).error() ==
        "shapes [2] of 'x0' and [3] of 'x1' do not broadcast");
}

TEST_CASE("before opset 7 the axis attribute says where the second operand begins") {
  const auto a = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  OpCase add("Add", 6);
  add.input(a).input(floats({2}, {10, 20}));
  add.attribute("axis", std::int64_t{0}).attribute("broadcast", std::int64_t{1});
  CHECK(elements<float>(add.tensor()) == std::vector<float>{11, 12, 13, 24, 25, 26});
  OpCase outside("Add", 6);
  outside.input(a).input(floats({2}, {10, 20}));
  outside.attribute("axis", std::int64_t{3}).attribute("broadcast", std::int64_t{1});
  CHECK(outside.error() == "axis 3 puts operand [2] outside of [2,3,1]");
}

TEST_CASE("broadcast shapes are inferred as far as they are known") {
  const Dim n = -2;
  OpCase add("Add", 14);
  add.input_type(Type::tensor(DType::Float32, Shape{n, 1, 4}));
  add.input_type(Type::tensor(DType::Float32, Shape{3, kUnknownDim}));
  CHECK(add.inferred() == "float[s0,3,4]");
  OpCase unknown("Add", 14);
  unknown.input_type(Type::tensor(DType::Float32));
  unknown.input_type(Type::tensor(DType::Float32, Shape{3}));
  CHECK(unknown.inferred() == "float?");
}

TEST_CASE("integer arithmetic wraps and division truncates") {
  using Ints = std::vector<std::int32_t>;
  const std::int32_t least = std::numeric_limits<std::int32_t>::min();
  const auto a = tensor_of<std::int32_t>({3}, {-7, 7, least});
  const auto b = tensor_of<std::int32_t>({3}, {2, -2, -1});
  CHECK(elements<std::int32_t>(OpCase("Div", 14).input(a).input(b).tensor()) ==
        Ints{-3, -3, least});
  CHECK(elements<std::int32_t>(OpCase("Mod", 13).input(a).input(b).tensor()) == Ints{1, -1, 0});
  CHECK(elements<std::int32_t>(OpCase("Sub", 14).input(b).input(a).tensor()) ==
        Ints{9, -9, std::numeric_limits<std::int32_t>::max()});
  const auto zero = tensor_of<std::int32_t>({}, {0});
  CHECK(OpCase("Div", 14).input(a).input(zero).error() == "integer division by zero");
  CHECK(OpCase("Mod", 13).input(a).input(zero).error() == "integer division by zero");
}

TEST_CASE("the remainder of floats has the sign of the divisor or, with fmod, of the dividend") {
  const auto a = floats({4}, {-5.5F, 5.5F, kInf, 4});
  const auto b = floats({4}, {2, -2, 2, 0});
  const auto floored = elements<float>(OpCase("Mod", 28).input(a).input(b).tensor());
  CHECK(floored[0] == 0.5F);
  CHECK(floored[1] == -0.5F);
  CHECK(std::isnan(floored[2]));
  CHECK(std::isnan(floored[3]));
  OpCase truncated("Mod", 28);
  truncated.input(a).input(b).attribute("fmod", std::int64_t{1});
  CHECK(elements<float>(truncated.tensor())[0] == -1.5F);
}

TEST_CASE("64-bit integers keep their low bits in arithmetic, comparisons and powers") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const auto a = tensor_of<std::int64_t>({1}, {big});
  const auto b = tensor_of<std::int64_t>({1}, {big - 1});
  CHECK(elements<bool>(OpCase("Greater", 13).input(a).input(b).tensor()) == std::vector{true});
  CHECK(elements<std::int64_t>(OpCase("Max", 13).input(a).input(b).tensor()) == std::vector{big});
  const auto three = tensor_of<std::int64_t>({1}, {3});
  const auto forty = tensor_of<std::int32_t>({1}, {39});
  CHECK(elements<std::int64_t>(OpCase("Pow", 15).input(three).input(forty).tensor()) ==
        std::vector<std::int64_t>{4052555153018976267});
}

TEST_CASE("shifts beyond the width leave the sign's fill") {
  using Bytes = std::vector<std::int8_t>;
  const auto x = tensor_of<std::int8_t>({4}, {-16, 16, -1, 3});
  const auto y = tensor_of<std::int8_t>({4}, {2, 9, -1, 7});
  OpCase right("BitShift", 28);
  right.input(x).input(y).attribute("direction", std::string("RIGHT"));
  CHECK(elements<std::int8_t>(right.tensor()) == Bytes{-4, 0, -1, 0});
  OpCase left("BitShift", 28);
  left.input(x).input(y).attribute("direction", std::string("LEFT"));
  CHECK(elements<std::int8_t>(left.tensor()) == Bytes{-64, 0, 0, -128});
}

TEST_CASE("a NaN is the result of Max, Min, Clip and Relu") {
  const auto x = floats({2}, {kNan, 1});
  const auto y = floats({2}, {0, kNan});
  for (const char* name : {"Max", "Min"}) {
    for (const float value : elements<float>(OpCase(name, 13).input(x).input(y).tensor())) {
      CHECK(std::isnan(value));
    }
  }
  CHECK(std::isnan(elements<float>(OpCase("Relu", 14).input(x).tensor())[0]));
  OpCase clip("Clip", 13);
  clip.input(x).input(floats({}, {0})).input(floats({}, {0.5F}));
  const auto clipped = elements<float>(clip.tensor());
  CHECK(std::isnan(clipped[0]));
  CHECK(clipped[1] == 0.5F);
}

TEST_CASE("Clip leaves out bounds, and gives the upper one when they cross") {
  OpCase clip("Clip", 13);
  clip.input(tensor_of<std::uint64_t>({2}, {~std::uint64_t{0}, 2})).no_input();
  clip.input(tensor_of<std::uint64_t>({}, {std::uint64_t{1} << 63}));
  CHECK(elements<std::uint64_t>(clip.tensor()) ==
        std::vector<std::uint64_t>{std::uint64_t{1} << 63, 2});
  OpCase crossed("Clip", 13);
  crossed.input(floats({1}, {3})).input(floats({}, {2})).input(floats({}, {1}));
  CHECK(elements<float>(crossed.tensor()) == std::vector<float>{1});
  OpCase many("Clip", 13);
  many.input(floats({1}, {3})).input(floats({2}, {2, 3}));
  CHECK(many.error() == "bound 'x1' should be a scalar, but has shape [2]");
}

TEST_CASE("float16 sums round once") {
  const auto one = tensor_of<Half>({1}, {to_half(1.0F)});
  const auto small = tensor_of<Half>({1}, {to_half(0x1p-12F)});
  const Tensor sum = OpCase("Sum", 13).input(one).input(small).input(small).input(small).tensor();
  CHECK(to_float(sum.values<Half>()[0]) == 1.0F + 0x1p-10F);
}

TEST_CASE("softmax before version 13 flattens from the axis on") {
  const auto x = floats({1, 2, 2}, {0, 0, 0, 0});
  CHECK(elements<float>(OpCase("Softmax", 11).input(x).tensor()) == std::vector<float>(4, 0.25F));
  CHECK(elements<float>(OpCase("Softmax", 13).input(x).tensor()) == std::vector<float>(4, 0.5F));
  OpCase outside("Softmax", 13);
  outside.input(x).attribute("axis", std::int64_t{3});
  CHECK(outside.error() == "axis 3 is outside [-3, 3) of 'x0'");
}

TEST_CASE("softmax does not overflow and hardmax marks the first largest") {
  const auto x = floats({1, 3}, {1000, 1000, -1000});
  CHECK(elements<float>(OpCase("Softmax", 13).input(x).tensor()) ==
        std::vector<float>{0.5F, 0.5F, 0});
  CHECK(elements<float>(OpCase("Hardmax", 13).input(x).tensor()) == std::vector<float>{1, 0, 0});
}

TEST_CASE("a slope wider than the input is refused; an old one of rank 1 is per channel") {
  OpCase wide("PRelu", 16);
  wide.input(floats({1}, {-1})).input(floats({2}, {1, 2}));
  CHECK(wide.error() == "a slope of shape [2] does not broadcast to [1]");
  OpCase old("PRelu", 6);
  old.input(floats({1, 2, 2}, {-1, -1, -1, 1})).input(floats({2}, {2, 3}));
  CHECK(elements<float>(old.tensor()) == std::vector<float>{-2, -2, -3, 1});
}
