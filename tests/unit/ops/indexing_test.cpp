#include <limits>

#include "op_case.h"

using namespace sardonyx;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

using Longs = std::vector<std::int64_t>;

Tensor ints(const Shape& shape, std::initializer_list<std::int64_t> values) {
  return tensor_of<std::int64_t>(shape, values);
}

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

}  // namespace

TEST_CASE("indices outside the data are refused by value") {
  const Tensor data = floats({3}, {1, 2, 3});
  CHECK(OpCase("Gather", 13).input(data).input(ints({1}, {3})).error() ==
        "index 3 is outside [-3, 3)");
  CHECK(OpCase("GatherElements", 13).input(data).input(ints({1}, {-4})).error() ==
        "index -4 is outside [-3, 3)");
  CHECK(OpCase("GatherND", 13).input(data).input(ints({1, 1}, {9})).error() ==
        "index 9 is outside [-3, 3)");
  CHECK(OpCase("ScatterND", 16)
            .input(data)
            .input(ints({1, 1}, {-9}))
            .input(floats({1}, {5}))
            .error() == "index -9 is outside [-3, 3)");
}

TEST_CASE("ScatterElements sums what falls on one place") {
  CHECK(elements<float>(OpCase("ScatterElements", 18)
                            .input(floats({3}, {1, 2, 3}))
                            .input(ints({3}, {0, -1, 0}))
                            .input(floats({3}, {10, 20, 30}))
                            .attribute("reduction", std::string("add"))
                            .tensor()) == std::vector<float>{41, 2, 23});
}

TEST_CASE("TopK takes NaN for the largest and keeps the order of equal elements") {
  const auto result = OpCase("TopK", 11)
                          .input(floats({5}, {1, kNan, 3, 3, 2}))
                          .input(ints({1}, {3}))
                          .outputs(2)
                          .evaluate();
  REQUIRE(result.ok());
  CHECK(elements<std::int64_t>(*result->at(1).tensor()) == Longs{1, 2, 3});
  CHECK(OpCase("TopK", 11).input(floats({2}, {1, 2})).input(ints({1}, {3})).outputs(2).error() ==
        "K is 3, but axis 0 has 2 elements");
}

TEST_CASE("Unique finds NaN once and can keep the order of first occurrence") {
  const auto result = OpCase("Unique", 11)
                          .input(floats({6}, {2, kNan, 1, 2, kNan, 1}))
                          .attribute("sorted", std::int64_t{0})
                          .outputs(4)
                          .evaluate();
  REQUIRE(result.ok());
  CHECK(result->at(0).tensor()->shape() == Shape{3});
  CHECK(elements<std::int64_t>(*result->at(1).tensor()) == Longs{0, 1, 2});
  CHECK(elements<std::int64_t>(*result->at(2).tensor()) == Longs{0, 1, 2, 0, 1, 2});
  CHECK(elements<std::int64_t>(*result->at(3).tensor()) == Longs{2, 2, 2});
}

TEST_CASE("NonZero of a scalar has no rows") {
  CHECK(OpCase("NonZero", 13).input(floats({}, {4})).tensor().shape() == Shape{0, 1});
  CHECK(elements<std::int64_t>(
            OpCase("NonZero", 13).input(floats({2, 2}, {0, 1, kNan, 0})).tensor()) ==
        Longs{0, 1, 1, 0});
}

TEST_CASE("OneHot leaves rows without a place for indices outside the depth") {
  CHECK(elements<float>(OpCase("OneHot", 11)
                            .input(ints({3}, {1, 5, -1}))
                            .input(ints({1}, {3}))
                            .input(floats({2}, {0, 9}))
                            .tensor()) == std::vector<float>{0, 9, 0, 0, 0, 0, 0, 0, 9});
}

TEST_CASE("Compress stops at conditions beyond the axis") {
  CHECK(elements<float>(OpCase("Compress", 11)
                            .input(floats({3}, {1, 2, 3}))
                            .input(tensor_of<bool>({2}, {false, true}))
                            .tensor()) == std::vector<float>{2});
  CHECK(OpCase("Compress", 11)
            .input(floats({1}, {1}))
            .input(tensor_of<bool>({2}, {false, true}))
            .error() == "condition[1] is true, but the axis has size 1");
}

TEST_CASE("NonMaxSuppression drops what overlaps, and scores that are not numbers come last") {
  const Tensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1F, 1, 1.1F, 0, 10, 1, 11});
  const auto keep = [&](std::initializer_list<float> scores) {
    return elements<std::int64_t>(OpCase("NonMaxSuppression", 11)
                                      .input(boxes)
                                      .input(floats({1, 1, 3}, scores))
                                      .input(ints({1}, {3}))
                                      .input(floats({1}, {0.5F}))
                                      .tensor());
  };
  CHECK(keep({0.9F, 0.8F, 0.7F}) == Longs{0, 0, 0, 0, 0, 2});
  CHECK(keep({kNan, 0.8F, 0.9F}) == Longs{0, 0, 2, 0, 0, 1});
}

TEST_CASE("NonMaxSuppression keeps the order of equal scores among many boxes") {
  constexpr std::int64_t kBoxes = 100;
  std::vector<float> boxes;
  std::vector<float> scores;
  Longs expected;
  for (const float shift : {0.0F, 0.1F}) {
    for (std::int64_t i = 0; i < kBoxes; ++i) {
      const float left = static_cast<float>(2 * i) + shift;
      boxes.insert(boxes.end(), {0, left, 1, left + 1});
      scores.push_back(shift > 0 ? -1.0F : (i % 2 == 0 ? 0.0F : -0.0F));
      if (shift == 0) expected.insert(expected.end(), {0, 0, i});
    }
  }
  auto all_boxes = make_tensor<float>(Shape{1, 2 * kBoxes, 4}, std::span<const float>(boxes));
  auto all_scores = make_tensor<float>(Shape{1, 1, 2 * kBoxes}, std::span<const float>(scores));
  REQUIRE((all_boxes.ok() && all_scores.ok()));
  CHECK(elements<std::int64_t>(OpCase("NonMaxSuppression", 11)
                                   .input(*all_boxes)
                                   .input(*all_scores)
                                   .input(ints({1}, {1000}))
                                   .input(floats({1}, {0.5F}))
                                   .tensor()) == expected);
}

TEST_CASE("Resize doubles, rounds down half-way points and saturates integers") {
  CHECK(elements<float>(OpCase("Resize", 13)
                            .input(floats({2}, {1, 2}))
                            .no_input()
                            .input(floats({1}, {2}))
                            .tensor()) == std::vector<float>{1, 1, 2, 2});
  CHECK(elements<std::uint8_t>(OpCase("Resize", 13)
                                   .input(tensor_of<std::uint8_t>({4}, {0, 255, 255, 0}))
                                   .no_input()
                                   .no_input()
                                   .input(ints({1}, {8}))
                                   .attribute("mode", std::string("cubic"))
                                   .tensor())[3] == 255);
  CHECK(
      OpCase("Resize", 13).input(floats({2}, {1, 2})).no_input().input(floats({1}, {-1})).error() ==
      "a scale is -1, but should be above 0");
}

TEST_CASE("an operator that is refused says why") {
  const auto schema = find_schema("com.microsoft", "BeamSearch", 1);
  REQUIRE(!schema.ok());
  CHECK(schema.status().message() ==
        "operator com.microsoft:BeamSearch is not supported: it runs a whole generation loop; "
        "export the decoder alone and loop in the application");
}
