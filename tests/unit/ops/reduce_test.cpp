#include <cmath>
#include <limits>
#include <random>

#include "op_case.h"

using namespace sardonyx;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}
Tensor ints(std::initializer_list<std::int64_t> values) {
  return tensor_of<std::int64_t>({static_cast<Dim>(values.size())}, values);
}

}  // namespace

TEST_CASE("sums over any axes of any shape are those of a plain loop") {
  std::mt19937 random(5);
  for (int round = 0; round < 150; ++round) {
    Shape shape;
    const int rank = static_cast<int>(random() % 5);
    for (int i = 0; i < rank; ++i) shape.push_back(static_cast<Dim>(random() % 4 + 1));
    auto x = Tensor::allocate(DType::Float32, shape);
    REQUIRE(x.ok());
    for (float& value : x->mutable_values<float>()) value = static_cast<float>(random() % 100);
    std::vector<std::int64_t> axes;
    Shape kept = shape;
    for (int i = 0; i < rank; ++i) {
      if (random() % 2 == 0) continue;
      axes.push_back(random() % 2 == 0 ? i : i - rank);
      kept[i] = 1;
    }
    if (axes.empty()) kept = Shape::filled(rank, 1);
    OpCase reduce("ReduceSum", 13);
    reduce.input(*x);
    auto list = make_tensor<std::int64_t>(Shape{static_cast<Dim>(axes.size())},
                                          std::span<const std::int64_t>(axes));
    REQUIRE(list.ok());
    reduce.input(*list);
    const Tensor y = reduce.tensor();
    CAPTURE(shape.to_string());
    REQUIRE(y.shape() == kept);
    std::vector<float> expected(static_cast<std::size_t>(y.element_count()), 0);
    const Shape strides = strides_of(kept);
    for (std::int64_t i = 0; i < x->element_count(); ++i) {
      std::int64_t rest = i;
      std::int64_t at = 0;
      for (int axis = rank - 1; axis >= 0; --axis) {
        const std::int64_t index = rest % shape[axis];
        rest /= shape[axis];
        if (kept[axis] != 1) at += index * strides[axis];
      }
      expected[static_cast<std::size_t>(at)] += x->values<float>()[static_cast<std::size_t>(i)];
    }
    REQUIRE(elements<float>(y) == expected);
  }
}

TEST_CASE("empty axes reduce everything, or nothing when asked, but still take the logarithm") {
  const Tensor x = floats({2}, {1, std::exp(1.0F)});
  OpCase all("ReduceSum", 13);
  all.input(x).input(ints({})).attribute("keepdims", std::int64_t{0});
  CHECK(elements<float>(all.tensor())[0] == doctest::Approx(3.7182817));
  OpCase none("ReduceLogSum", 18);
  none.input(x).input(ints({})).attribute("noop_with_empty_axes", std::int64_t{1});
  const auto logs = elements<float>(none.tensor());
  CHECK(logs[0] == 0);
  CHECK(logs[1] == doctest::Approx(1));
}

TEST_CASE("an axis outside is refused, and unknown axes leave the rank when dims are kept") {
  OpCase outside("ReduceMean", 13);
  outside.input(floats({2}, {1, 2})).attribute("axes", std::vector<std::int64_t>{1});
  CHECK(outside.error() == "axis 1 is outside [-1, 1)");
  OpCase unknown("ReduceMean", 18);
  unknown.input_type(Type::tensor(DType::Float32, Shape{2, 3}));
  unknown.input_type(Type::tensor(DType::Int64, Shape{1}));
  CHECK(unknown.inferred() == "float[?,?]");
}

TEST_CASE("reductions over nothing give the neutral element or the type's limit") {
  const Tensor x = floats({2, 0}, {});
  const auto reduced = [&](const char* name) {
    return elements<float>(OpCase(name, 18).input(x).input(ints({1})).tensor());
  };
  CHECK(elements<float>(OpCase("ReduceSum", 13).input(x).input(ints({1})).tensor()) ==
        std::vector<float>{0, 0});
  CHECK(reduced("ReduceProd") == std::vector<float>{1, 1});
  CHECK(reduced("ReduceMax") == std::vector<float>{-kInf, -kInf});
  CHECK(reduced("ReduceMin") == std::vector<float>{kInf, kInf});
  CHECK(reduced("ReduceLogSumExp") == std::vector<float>{-kInf, -kInf});
  OpCase byte("ReduceMin", 18);
  byte.input(tensor_of<std::int8_t>({0}, {})).input(ints({0}));
  CHECK(elements<std::int8_t>(byte.tensor()) == std::vector<std::int8_t>{127});
}

TEST_CASE("a NaN is the largest and the smallest; logarithms of sums of powers do not overflow") {
  const Tensor x = floats({3}, {1, kNan, 2});
  CHECK(std::isnan(elements<float>(OpCase("ReduceMax", 13).input(x).tensor())[0]));
  CHECK(std::isnan(elements<float>(OpCase("ReduceMin", 13).input(x).tensor())[0]));
  CHECK(elements<std::int64_t>(OpCase("ArgMax", 13).input(x).tensor()) ==
        std::vector<std::int64_t>{1});
  const Tensor large = floats({2}, {1000, 1000});
  CHECK(elements<float>(OpCase("ReduceLogSumExp", 13).input(large).tensor())[0] ==
        doctest::Approx(1000.6931));
}

TEST_CASE("64-bit sums are exact and wrap") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  CHECK(elements<std::int64_t>(OpCase("ReduceSum", 13).input(ints({big, 2})).tensor()) ==
        std::vector<std::int64_t>{big + 2});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(elements<std::int64_t>(OpCase("ReduceSum", 13).input(ints({most, 1})).tensor()) ==
        std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min()});
}

TEST_CASE("the first or the last of equal elements is found, and none of no elements") {
  const Tensor x = floats({2, 3}, {1, 5, 5, 7, 7, 0});
  OpCase first("ArgMax", 13);
  first.input(x).attribute("axis", std::int64_t{1}).attribute("keepdims", std::int64_t{0});
  CHECK(elements<std::int64_t>(first.tensor()) == std::vector<std::int64_t>{1, 0});
  OpCase last("ArgMax", 13);
  last.input(x).attribute("axis", std::int64_t{-1});
  last.attribute("select_last_index", std::int64_t{1});
  CHECK(elements<std::int64_t>(last.tensor()) == std::vector<std::int64_t>{2, 1});
  OpCase empty("ArgMin", 13);
  empty.input(floats({0, 2}, {}));
  CHECK(empty.error() == "there is no largest or smallest of no elements (shape [0,2])");
}

TEST_CASE("running sums go either way, with or without the element itself") {
  const Tensor x = floats({2, 2}, {1, 2, 3, 4});
  OpCase down("CumSum", 14);
  down.input(x).input(tensor_of<std::int32_t>({}, {0}));
  CHECK(elements<float>(down.tensor()) == std::vector<float>{1, 2, 4, 6});
  OpCase back("CumSum", 14);
  back.input(x).input(tensor_of<std::int32_t>({}, {-1}));
  back.attribute("reverse", std::int64_t{1}).attribute("exclusive", std::int64_t{1});
  CHECK(elements<float>(back.tensor()) == std::vector<float>{2, 0, 4, 0});
  OpCase outside("CumSum", 14);
  outside.input(x).input(tensor_of<std::int32_t>({}, {2}));
  CHECK(outside.error() == "axis 2 is outside [-2, 2)");
}

TEST_CASE("ranges that have no end are refused, and huge distances counted right") {
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const auto range = [](std::int64_t a, std::int64_t b, std::int64_t c) {
    OpCase op("Range", 11);
    op.input(tensor_of<std::int64_t>({}, {a})).input(tensor_of<std::int64_t>({}, {b}));
    op.input(tensor_of<std::int64_t>({}, {c}));
    return op.inferred();
  };
  CHECK(range(10, 4, -2) == "int64[3]");
  CHECK(range(4, 10, -2) == "int64[0]");
  CHECK(range(0, 1, 0) == "a range by steps of 0 from 0 to 1 has no end");
  CHECK(range(least, most, most) == "int64[3]");
  OpCase real("Range", 11);
  real.input(floats({}, {0})).input(floats({}, {kNan})).input(floats({}, {1}));
  CHECK(real.error() == "a range by steps of 1 from 0 to nan has no end");
}

TEST_CASE("constants of a shape refuse negative sizes and fill packed types") {
  OpCase negative("ConstantOfShape", 9);
  negative.input(ints({2, -1}));
  CHECK(negative.error() == "'x0' asks for a size of -1");
  OpCase huge("ConstantOfShape", 9);
  huge.input(ints({std::int64_t{1} << 40, std::int64_t{1} << 40}));
  CHECK(huge.error().find("[1099511627776,1099511627776]") != std::string::npos);
  OpCase sevens("ConstantOfShape", 21);
  auto four = Tensor::allocate(DType::Int4, Shape{1});
  REQUIRE(four.ok());
  four->mutable_data()[0] = std::byte{0x7};
  sevens.input(ints({3})).attribute("value", *four);
  const Tensor y = sevens.tensor();
  CHECK(y.data()[0] == std::byte{0x77});
  CHECK((y.data()[1] & std::byte{0xf}) == std::byte{0x7});
}

TEST_CASE("random numbers repeat for a seed, keep to their range and draw what is likely") {
  const auto draw = [](float seed) {
    OpCase uniform("RandomUniform", 22);
    uniform.attribute("shape", std::vector<std::int64_t>{1000}).attribute("seed", seed);
    uniform.attribute("low", -1.0F).attribute("high", 3.0F);
    return elements<float>(uniform.tensor());
  };
  const auto values = draw(7);
  CHECK(values == draw(7));
  CHECK(values != draw(8));
  double sum = 0;
  for (const float value : values) {
    REQUIRE(value >= -1);
    REQUIRE(value <= 3);
    sum += static_cast<double>(value);
  }
  CHECK(sum / 1000 == doctest::Approx(1).epsilon(0.15));
  OpCase draws("Multinomial", 22);
  draws.input(floats({1, 3}, {-kInf, 0, -kInf})).attribute("sample_size", std::int64_t{20});
  CHECK(elements<std::int32_t>(draws.tensor()) == std::vector<std::int32_t>(20, 1));
}

TEST_CASE("dropout in training keeps a share of the elements and scales them") {
  OpCase dropout("Dropout", 13);
  auto x = Tensor::allocate(DType::Float32, Shape{1000});
  REQUIRE(x.ok());
  for (float& value : x->mutable_values<float>()) value = 1;
  dropout.input(*x).input(floats({}, {0.75F})).input(tensor_of<bool>({}, {true}));
  dropout.attribute("seed", std::int64_t{1});
  int kept = 0;
  for (const float value : elements<float>(dropout.tensor())) {
    REQUIRE((value == 0 || value == 4));
    kept += value == 4;
  }
  CHECK(kept > 200);
  CHECK(kept < 300);
  OpCase wrong("Dropout", 13);
  wrong.input(*x).input(floats({}, {1})).input(tensor_of<bool>({}, {true}));
  CHECK(wrong.error() == "the ratio should be in [0, 1), but is 1");
}

TEST_CASE("a target outside of the classes is refused unless it is ignored") {
  const Tensor scores = floats({2, 2}, {-1, -2, -3, -4});
  OpCase loss("NegativeLogLikelihoodLoss", 13);
  loss.input(scores).input(ints({1, 2}));
  CHECK(loss.error() == "target 2 is outside of 2 classes");
  OpCase ignored("NegativeLogLikelihoodLoss", 13);
  ignored.input(scores).input(ints({1, 2})).attribute("ignore_index", std::int64_t{2});
  CHECK(elements<float>(ignored.tensor()) == std::vector<float>{2});
}

TEST_CASE("gradients are refused by name") {
  OpCase gradient("Gradient", 1, "ai.onnx.preview.training");
  gradient.attribute("xs", std::vector<std::string>{"x"}).attribute("y", std::string("y"));
  gradient.input(floats({}, {1}));
  CHECK(gradient.error() ==
        "Gradient asks for a derivative of the graph, which this runtime does not make");
}
