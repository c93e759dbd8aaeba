#include <algorithm>
#include <numeric>
#include <random>

#include "ir/element.h"
#include "op_case.h"
#include "ops/movement.h"

using namespace sardonyx;

namespace {

constexpr Dim kBatch = -2;  // A symbol.
constexpr Dim kLength = -3;

Tensor ints(std::initializer_list<std::int64_t> values) {
  return tensor_of<std::int64_t>({static_cast<Dim>(values.size())}, values);
}

Tensor counting(const Shape& shape) {
  auto tensor = Tensor::allocate(DType::Int32, shape);
  REQUIRE(tensor.ok());
  auto values = tensor->mutable_values<std::int32_t>();
  std::iota(values.begin(), values.end(), 0);
  return *tensor;
}

using Ints = std::vector<std::int32_t>;
using Longs = std::vector<std::int64_t>;

Type floats_of(const Shape& shape) { return Type::tensor(DType::Float32, shape); }

std::string reshaped(const Shape& input, std::initializer_list<std::int64_t> target) {
  return OpCase("Reshape", 14).input_type(floats_of(input)).input(ints(target)).inferred();
}

}  // namespace

TEST_CASE("Reshape follows symbols through the size that it works out") {
  CHECK(reshaped({kBatch, 4, 8}, {0, -1}) == "float[s0,32]");
  CHECK(reshaped({kBatch, 4, 8}, {-1, 32}) == "float[s0,32]");
  CHECK(reshaped({kBatch, kLength, 8}, {0, 0, 2, -1}) == "float[s0,s1,2,4]");
  CHECK(reshaped({kBatch, kLength, 8}, {-1, 8}) == "float[?,8]");
  CHECK(reshaped({2, 3, 4}, {-1}) == "float[24]");
  CHECK(reshaped({0, 3, 4}, {0, -1}) == "float[0,12]");
}

TEST_CASE("Reshape refuses what does not fit, with the numbers") {
  CHECK(reshaped({2, 3}, {4, 2}) == "[2,3] has 6 elements and cannot be reshaped to [4,2]");
  CHECK(reshaped({2, 3}, {-1, -1}) == "the new shape has more than one -1");
  CHECK(reshaped({2, 3}, {-2}) == "size -2 in the new shape is below -1");
  CHECK(reshaped({6}, {2, 0}) == "0 at position 1 of the new shape copies no size of [6]");
  CHECK(reshaped({6}, {std::int64_t{1} << 40, std::int64_t{1} << 40, -1}) ==
        "the sizes of [1099511627776,1099511627776,?] do not fit into 64 bits");
}

TEST_CASE("Reshape, Squeeze and Identity share the memory of their input") {
  const Tensor x = counting({2, 3});
  CHECK(OpCase("Reshape", 14).input(x).input(ints({3, 2})).tensor().data() == x.data());
  CHECK(OpCase("Unsqueeze", 13).input(x).input(ints({0, -1})).tensor().data() == x.data());
  CHECK(OpCase("Identity", 16).input(x).tensor().data() == x.data());
}

TEST_CASE("Squeeze names the axis that it cannot drop") {
  CHECK(OpCase("Squeeze", 13).input(counting({1, 2})).input(ints({1})).error() ==
        "axis 1 of [1,2] cannot be squeezed: its size is 2");
  CHECK(OpCase("Squeeze", 11).input(counting({1, 2})).attribute("axes", Longs{5}).error() ==
        "axis 5 is outside [-2, 2)");
}

TEST_CASE("Slice clamps as Python does, backwards too") {
  const Tensor x = counting({10});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t step) {
    return elements<std::int32_t>(OpCase("Slice", 13)
                                      .input(x)
                                      .input(ints({start}))
                                      .input(ints({end}))
                                      .input(ints({0}))
                                      .input(ints({step}))
                                      .tensor());
  };
  constexpr auto kLast = std::numeric_limits<std::int64_t>::max();
  constexpr auto kFirst = std::numeric_limits<std::int64_t>::min();
  CHECK(slice(2, 5, 1) == Ints{2, 3, 4});
  CHECK(slice(-3, kLast, 1) == Ints{7, 8, 9});
  CHECK(slice(kLast, kFirst, -4) == Ints{9, 5, 1});
  CHECK(slice(0, kLast, kLast) == Ints{0});
  CHECK(slice(9, kFirst, kFirst) == Ints{9});
  CHECK(slice(5, 5, 1) == Ints{});
  CHECK(OpCase("Slice", 9)
            .input(x)
            .attribute("starts", Longs{1})
            .attribute("ends", Longs{3})
            .inferred() == "int32[2]");
}

TEST_CASE("Split gives the last part what is left over, from version 18 on") {
  const Tensor x = counting({7});
  auto parts = OpCase("Split", 18).input(x).attribute("num_outputs", std::int64_t{3}).outputs(3);
  const auto result = parts.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<std::int32_t>(*result->at(2).tensor()) == Ints{6});
  CHECK(OpCase("Split", 13).input(x).outputs(3).error() ==
        "an axis of size 7 cannot be split evenly into 3 parts");
  CHECK(OpCase("Split", 13).input(x).input(ints({4, 4})).outputs(2).error() ==
        "the parts have 8 elements along an axis of size 7");
}

TEST_CASE("Concat keeps what is known of its inputs") {
  CHECK(OpCase("Concat", 13)
            .input_type(floats_of({kBatch, 3, kUnknownDim}))
            .input_type(floats_of({kBatch, 4, 5}))
            .attribute("axis", std::int64_t{1})
            .inferred() == "float[s0,7,5]");
  CHECK(OpCase("Concat", 13)
            .input(counting({2, 3}))
            .input(counting({3, 3}))
            .attribute("axis", std::int64_t{1})
            .error() == "[2,3] and [3,3] differ in axis 0, which is not the concatenated axis 1");
}

TEST_CASE("Tile repeats along every axis") {
  const Tensor y = OpCase("Tile", 13).input(counting({2, 2})).input(ints({3, 2})).tensor();
  CHECK(elements<std::int32_t>(y) ==
        Ints{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(OpCase("Tile", 13).input(counting({2, 2})).input(ints({0, 2})).tensor().shape() ==
        Shape{0, 4});
}

TEST_CASE("Pad reflects and wraps further than the axis is long") {
  const auto pad = [](std::string mode, std::initializer_list<std::int64_t> pads) {
    return elements<std::int32_t>(OpCase("Pad", 19)
                                      .input(counting({3}))
                                      .input(ints(pads))
                                      .attribute("mode", std::move(mode))
                                      .tensor());
  };
  CHECK(pad("reflect", {5, 4}) == Ints{1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2});
  CHECK(pad("wrap", {4, 4}) == Ints{2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0});
  CHECK(pad("edge", {2, 1}) == Ints{0, 0, 0, 1, 2, 2});
  CHECK(pad("constant", {-1, 2}) == Ints{1, 2, 0, 0});
  CHECK(pad("constant", {-2, -1}) == Ints{});
}

TEST_CASE("Pad refuses pads that no tensor can have") {
  constexpr auto kFirst = std::numeric_limits<std::int64_t>::min();
  CHECK(OpCase("Pad", 13).input(counting({3})).input(ints({kFirst, 4})).error() ==
        "a pad of -9223372036854775808 is out of range");
  CHECK(OpCase("Pad", 13).input(counting({3})).input(ints({-2, -2})).error() ==
        "axis 0 of [3] cannot be padded by -2 and -2");
  CHECK(OpCase("Pad", 13).input(counting({3})).input(ints({1})).error() ==
        "pads has 1 elements, expected 2 for 1 axes");
}

TEST_CASE("Expand refuses sizes whose product does not fit into memory") {
  const auto result = OpCase("Expand", 13)
                          .input(tensor_of<float>({1}, {1.0F}))
                          .input(ints({std::int64_t{1} << 40, std::int64_t{1} << 40}))
                          .evaluate();
  REQUIRE(!result.ok());
  CHECK(result.status().code() == Code::OutOfMemory);
}

TEST_CASE("four-bit elements and strings move like all others") {
  auto x = Tensor::allocate(DType::UInt4, {2, 3});
  REQUIRE(x.ok());
  for (std::int64_t i = 0; i < 6; ++i) write_int(DType::UInt4, x->mutable_data(), i, i + 1);
  const Tensor y = OpCase("Transpose", 21).input(*x).tensor();
  Longs codes;
  for (std::int64_t i = 0; i < 6; ++i) codes.push_back(read_int(y.dtype(), y.data(), i));
  CHECK(codes == Longs{1, 4, 2, 5, 3, 6});

  const Tensor names = tensor_of<std::string>({2, 2}, {"a", "b", "c", "d"});
  CHECK(elements<std::string>(OpCase("Transpose", 13).input(names).tensor()) ==
        std::vector<std::string>{"a", "c", "b", "d"});
  CHECK(elements<std::string>(OpCase("Gather", 13).input(names).input(ints({-1})).tensor()) ==
        std::vector<std::string>{"c", "d"});
}

TEST_CASE("Transpose refuses what is no permutation of axes from 0") {
  using Axes = std::vector<std::int64_t>;
  const std::pair<Axes, std::string> cases[] = {
      {{-1, 0}, "perm holds -1, expected axes from 0"},
      {{0, -2}, "axis -2 is named twice"},
      {{1, 1}, "axis 1 is named twice"},
      {{0, 2}, "axis 2 is outside [-2, 2)"},
      {{0}, "perm has 1 axes, but the input has 2"},
  };
  for (const auto& [perm, message] : cases) {
    CHECK(OpCase("Transpose", 21)
              .input(tensor_of<float>({1, 2}, {1, 2}))
              .attribute("perm", perm)
              .error() == message);
  }
}

TEST_CASE("copy_strided agrees with a walk over all positions") {
  std::mt19937 random(7);
  for (int turn = 0; turn < 200; ++turn) {
    Shape shape;
    Shape order;
    const int rank = static_cast<int>(random() % 5);
    for (int i = 0; i < rank; ++i) shape.push_back(static_cast<Dim>(1 + random() % 4));
    const Tensor x = counting(shape);
    // The same box with its axes in another order.
    std::vector<int> axes(static_cast<std::size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    std::shuffle(axes.begin(), axes.end(), random);
    Shape box;
    Shape from;
    const Shape own = strides_of(shape);
    for (const int axis : axes) {
      box.push_back(shape[axis]);
      from.push_back(own[axis]);
    }
    Tensor y = counting(box);
    copy_strided(x.dtype(), box, y.mutable_data(), {0, strides_of(box)}, x.data(), {0, from});
    BoxWalker walker(box, strides_of(box), from);
    bool is_same = true;
    do {
      is_same = is_same && y.values<std::int32_t>()[static_cast<std::size_t>(walker.first())] ==
                               walker.second();
    } while (walker.next());
    CHECK(is_same);
  }
}
