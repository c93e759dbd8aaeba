#include <cmath>
#include <limits>

#include "ir/element.h"
#include "op_case.h"

using namespace sardonyx;

namespace {

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<std::int64_t> all_ints(const Tensor& tensor) {
  std::vector<std::int64_t> values;
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
    values.push_back(read_int(tensor.dtype(), tensor.data(), i));
  }
  return values;
}

using Ints = std::vector<std::int64_t>;
using Bytes = std::vector<std::uint8_t>;

}  // namespace

TEST_CASE("quantisation rounds half to even and saturates, infinities included") {
  OpCase quantize("QuantizeLinear", 13);
  quantize.input(floats({6}, {0.5F, 1.5F, 1000, -1000, kInf, kNan})).input(floats({}, {1}));
  quantize.input(tensor_of<std::uint8_t>({}, {10}));
  CHECK(elements<std::uint8_t>(quantize.tensor()) == Bytes{10, 12, 255, 0, 255, 0});
}

TEST_CASE("the output's type is the zero point's, else output_dtype, else uint8") {
  const Tensor x = floats({2}, {-9, 3});
  const Tensor scale = floats({}, {1});
  CHECK(OpCase("QuantizeLinear", 21).input(x).input(scale).inferred() == "uint8[2]");
  OpCase int4("QuantizeLinear", 21);
  int4.input(x).input(scale).attribute("output_dtype", std::int64_t{22});
  CHECK(all_ints(int4.tensor()) == Ints{-8, 3});
  OpCase both("QuantizeLinear", 21);
  both.input(x).input(scale).input(tensor_of<std::int8_t>({}, {0}));
  both.attribute("output_dtype", std::int64_t{22});
  CHECK(both.error() == "output_dtype is int4, but the zero point is tensor(int8)");
}

TEST_CASE("scales along an axis need its length") {
  const Tensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  OpCase rows("QuantizeLinear", 13);
  rows.input(x).input(floats({2}, {1, 2})).attribute("axis", std::int64_t{0});
  CHECK(all_ints(rows.tensor()) == Ints{1, 2, 3, 2, 2, 3});
  OpCase wrong("QuantizeLinear", 13);
  wrong.input(x).input(floats({2}, {1, 2}));
  CHECK(wrong.error() == "scales of shape [2] do not fit a tensor of shape [2,3] along axis 1");
  OpCase outside("QuantizeLinear", 13);
  outside.input(x).input(floats({2}, {1, 2})).attribute("axis", std::int64_t{2});
  CHECK(outside.error() == "axis 2 is outside [-2, 2)");
}

TEST_CASE("blocks may end with a shorter one, on the last axis and on others") {
  OpCase last("DequantizeLinear", 21);
  last.input(tensor_of<std::int8_t>({1, 5}, {1, 1, 1, 1, 1})).input(floats({1, 3}, {2, 3, 4}));
  last.attribute("block_size", std::int64_t{2});
  CHECK(elements<float>(last.tensor()) == std::vector<float>{2, 2, 3, 3, 4});
  OpCase first("DequantizeLinear", 21);
  first.input(tensor_of<std::int8_t>({3, 2}, {1, 1, 1, 1, 1, 1}));
  first.input(floats({2, 2}, {1, 2, 3, 4})).input(tensor_of<std::int8_t>({2, 2}, {0, 0, 1, -1}));
  first.attribute("block_size", std::int64_t{2}).attribute("axis", std::int64_t{0});
  CHECK(elements<float>(first.tensor()) == std::vector<float>{1, 2, 1, 2, 0, 8});
  OpCase huge("DequantizeLinear", 21);
  huge.input(tensor_of<std::int8_t>({1, 2}, {3, 4})).input(floats({1, 1}, {2}));
  huge.attribute("block_size", std::numeric_limits<std::int64_t>::max());
  CHECK(elements<float>(huge.tensor()) == std::vector<float>{6, 8});
}

TEST_CASE("a zero point of another shape than the scale is refused") {
  OpCase wrong("DequantizeLinear", 13);
  wrong.input(tensor_of<std::int8_t>({1, 2}, {3, 4})).input(floats({2}, {2, 2}));
  wrong.input(tensor_of<std::int8_t>({1}, {0}));
  CHECK(wrong.error() == "scale 'x1' has shape [2], but its zero point has shape [1]");
}

TEST_CASE("dynamic quantisation represents zero exactly and survives constant input") {
  OpCase quantize("DynamicQuantizeLinear", 11);
  quantize.input(floats({3}, {0, 2, -3})).outputs(3);
  const auto outputs = quantize.evaluate();
  REQUIRE(outputs.ok());
  CHECK(elements<std::uint8_t>(*outputs->at(0).tensor()) == Bytes{153, 255, 0});
  CHECK(elements<float>(*outputs->at(1).tensor())[0] == doctest::Approx(5.0 / 255));
  CHECK(elements<std::uint8_t>(*outputs->at(2).tensor()) == Bytes{153});
  OpCase zeros("DynamicQuantizeLinear", 11);
  zeros.input(floats({2}, {0, 0})).outputs(3);
  CHECK(elements<std::uint8_t>(zeros.tensor()) == Bytes{0, 0});
}

TEST_CASE("strings are read as numbers, and what is no number is named") {
  OpCase real("Cast", 13);
  real.attribute("to", std::int64_t{1});
  real.input(tensor_of<std::string>({4}, {" 1e-3", "+2", "-INF", "NaN"}));
  const auto values = elements<float>(real.tensor());
  CHECK(values[0] == 1e-3F);
  CHECK(values[1] == 2);
  CHECK(values[2] == -kInf);
  CHECK(std::isnan(values[3]));
  OpCase integer("Cast", 13);
  integer.attribute("to", std::int64_t{13});
  integer.input(tensor_of<std::string>({2}, {"18446744073709551615", "100.5"}));
  CHECK(elements<std::uint64_t>(integer.tensor()) == std::vector<std::uint64_t>{~0ULL, 100});
  OpCase wrong("Cast", 13);
  wrong.attribute("to", std::int64_t{7}).input(tensor_of<std::string>({1}, {"seven"}));
  CHECK(wrong.error() == "'seven' is no integer");
}

TEST_CASE("numbers are written with the fewest digits that name them") {
  OpCase text("Cast", 13);
  text.attribute("to", std::int64_t{8}).input(floats({5}, {0.1F, 100, 1e-5F, -kInf, 1e20F}));
  CHECK(elements<std::string>(text.tensor()) ==
        std::vector<std::string>{"0.1", "100.0", "1e-05", "-INF", "1e+20"});
  OpCase half("Cast", 13);
  half.attribute("to", std::int64_t{8}).input(tensor_of<Half>({1}, {to_half(0.1F)}));
  CHECK(elements<std::string>(half.tensor()) == std::vector<std::string>{"0.1"});
}

TEST_CASE("casts to a type that is none are refused") {
  OpCase cast("Cast", 13);
  cast.attribute("to", std::int64_t{99}).input(floats({1}, {1}));
  CHECK(cast.error() == "attribute 'to' is 99, which is no type to cast to");
  OpCase old("Cast", 1);
  old.attribute("to", std::string("INT64")).input(floats({1}, {1.5F}));
  CHECK(elements<std::int64_t>(old.tensor()) == std::vector<std::int64_t>{1});
}

TEST_CASE("bits are cast between types of one size only") {
  OpCase bits("BitCast", 26);
  bits.attribute("to", std::int64_t{6}).input(floats({1}, {1}));
  CHECK(elements<std::int32_t>(bits.tensor()) == std::vector<std::int32_t>{0x3f800000});
  OpCase wrong("BitCast", 26);
  wrong.attribute("to", std::int64_t{7}).input(floats({1}, {1}));
  CHECK(wrong.error() == "tensor(float) and tensor(int64) differ in size: 32 and 64 bits");
}
