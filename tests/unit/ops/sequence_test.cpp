#include <cmath>
#include <limits>

#include "op_case.h"

using namespace sardonyx;

namespace {

using Ints = std::vector<std::int64_t>;

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

void check_near(const Tensor& actual, std::vector<double> expected, double tolerance = 1e-6) {
  const auto values = elements<float>(actual);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(static_cast<double>(values[i]) - expected[i]) <= tolerance);
  }
}

}  // namespace

TEST_CASE("LayerNormalization gives the mean and the inverse deviation on request") {
  OpCase node("LayerNormalization", 17);
  node.input(floats({1, 2}, {1, 3})).input(floats({2}, {2, 2})).input(floats({2}, {10, 20}));
  node.outputs(3).attribute("epsilon", 0.0F);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(0).tensor()) == std::vector<float>{8, 22});
  CHECK(elements<float>(*result->at(1).tensor()) == std::vector<float>{2});
  CHECK(elements<float>(*result->at(2).tensor()) == std::vector<float>{1});
  CHECK(result->at(1).tensor()->shape() == Shape{1, 1});
}

TEST_CASE("BatchNormalization in training mode blends the running statistics") {
  const Tensor one = floats({1}, {1});
  OpCase node("BatchNormalization", 15);
  node.input(floats({2, 1, 1}, {2, 6})).input(one).input(floats({1}, {5}));
  node.input(floats({1}, {10})).input(one).outputs(3);
  node.attribute<std::int64_t>("training_mode", 1).attribute("epsilon", 0.0F);
  node.attribute("momentum", 0.5F);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(0).tensor()) == std::vector<float>{4, 6});
  CHECK(elements<float>(*result->at(1).tensor()) == std::vector<float>{7});
  CHECK(elements<float>(*result->at(2).tensor()) == std::vector<float>{2.5F});
}

TEST_CASE("A normalization names the parameter that does not fit") {
  CHECK(OpCase("InstanceNormalization", 6)
            .input(floats({1, 2, 1}, {1, 2}))
            .input(floats({3}, {1, 1, 1}))
            .input(floats({2}, {0, 0}))
            .error() == "'x1' has shape [3], expected [2]");
  CHECK(OpCase("GroupNormalization", 21)
            .input(floats({1, 2, 1}, {1, 2}))
            .input(floats({2}, {1, 1}))
            .input(floats({2}, {0, 0}))
            .attribute<std::int64_t>("num_groups", 3)
            .error() == "'x0' of shape [1,2,1] does not split into 3 groups of channels");
}

TEST_CASE("A normalization keeps its statistics in a floating-point type") {
  for (const std::int64_t number : {0, 7, 8, 9, -1, 1000}) {
    CAPTURE(number);
    CHECK(OpCase("LayerNormalization", 17)
              .input(floats({1, 2}, {1, 3}))
              .input(floats({2}, {2, 2}))
              .attribute<std::int64_t>("stash_type", number)
              .error() == "stash_type is " + std::to_string(number) +
                              ", expected the number of a floating-point type");
  }
}

TEST_CASE("SkipLayerNormalization returns the sum that it normalizes") {
  OpCase node("SkipLayerNormalization", 1, "com.microsoft");
  node.input(floats({1, 1, 2}, {1, 2})).input(floats({1, 2}, {10, 13}));
  node.input(floats({2}, {1, 1})).no_input().input(floats({2}, {0, 2})).outputs(4);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(3).tensor()) == std::vector<float>{11, 17});
  check_near(*result->at(0).tensor(), {-1, 1});
}

TEST_CASE("A reverse RNN begins at the end of each sequence and leaves the rest zero") {
  OpCase node("RNN", 14);
  node.input(floats({3, 2, 1}, {1, 10, 2, 20, 3, 30}));
  node.input(floats({1, 1, 1}, {1})).input(floats({1, 1, 1}, {0.5F})).no_input();
  node.input(tensor_of<std::int32_t>({2}, {3, 2})).outputs(2);
  node.attribute<std::string>("direction", "reverse");
  node.attribute("activations", std::vector<std::string>{"Affine"});
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  CHECK(elements<float>(*result->at(0).tensor()) == std::vector<float>{2.75F, 20, 3.5F, 20, 3, 0});
  CHECK(elements<float>(*result->at(1).tensor()) == std::vector<float>{2.75F, 20});
}

TEST_CASE("GRU applies the reset gate before or after the recurrence") {
  const auto run = [](std::int64_t after) {
    OpCase node("GRU", 14);
    node.input(floats({1, 1, 1}, {1})).input(floats({1, 3, 1}, {0, 0, 1}));
    node.input(floats({1, 3, 1}, {0, 0, 2})).input(floats({1, 6}, {0, 0, 0, 0, 0, 4})).no_input();
    node.input(floats({1, 1, 1}, {3})).outputs(1);
    node.attribute("linear_before_reset", after);
    node.attribute("activations", std::vector<std::string>{"Sigmoid", "Affine"});
    return node.tensor();
  };
  // Both gates are one half: candidates 1 + (2 * 1.5 + 4), and 1 + (2 * 3 + 4) / 2.
  check_near(run(0), {0.5 * 8 + 1.5});
  check_near(run(1), {0.5 * 6 + 1.5});
}

TEST_CASE("LSTM keeps its cell and refuses what it does not know") {
  OpCase node("LSTM", 14);
  node.input(floats({1, 1, 1}, {1})).input(floats({1, 4, 1}, {0, 0, 0, 1}));
  node.input(floats({1, 4, 1}, {0, 0, 0, 0})).no_input().no_input().no_input();
  node.input(floats({1, 1, 1}, {2})).outputs(3);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  const double cell = 0.5 * 2 + 0.5 * std::tanh(1.0);
  check_near(*result->at(2).tensor(), {cell});
  check_near(*result->at(1).tensor(), {0.5 * std::tanh(cell)});
  OpCase wrong("LSTM", 14);
  wrong.input(floats({1, 1, 1}, {1})).input(floats({1, 4, 1}, {0, 0, 0, 1}));
  wrong.input(floats({1, 4, 1}, {0, 0, 0, 0})).attribute<std::string>("direction", "sideways");
  CHECK(wrong.error() == "direction is 'sideways', expected forward, reverse or bidirectional");
}

TEST_CASE("Attention masks future keys, and a row without keys is zero") {
  const Tensor q = floats({1, 1, 2, 1}, {0, 0});
  const Tensor v = floats({1, 1, 2, 1}, {4, 8});
  const auto node = [&] {
    OpCase made("Attention", 23);
    made.input(q).input(q).input(v);
    return made;
  };
  check_near(node().tensor(), {6, 6});
  check_near(node().attribute<std::int64_t>("is_causal", 1).tensor(), {4, 6});
  check_near(node().input(tensor_of<bool>({2, 2}, {false, false, false, true})).tensor(), {0, 8});
  CHECK(node().input(floats({3, 2}, {0, 0, 0, 0, 0, 0})).error() ==
        "'x3' of shape [3,2] does not broadcast to [1,1,2,2]");
}

TEST_CASE("Attention appends to its cache") {
  OpCase node("Attention", 23);
  node.input(floats({1, 1, 2}, {0, 0})).input(floats({1, 1, 2}, {1, 2}));
  node.input(floats({1, 1, 2}, {30, 40})).no_input();
  node.input(floats({1, 2, 1, 1}, {5, 6})).input(floats({1, 2, 1, 1}, {10, 20})).outputs(3);
  node.attribute<std::int64_t>("q_num_heads", 2).attribute<std::int64_t>("kv_num_heads", 2);
  const auto result = node.evaluate();
  REQUIRE(result.ok());
  check_near(*result->at(0).tensor(), {20, 30});
  CHECK(elements<float>(*result->at(1).tensor()) == std::vector<float>{5, 1, 6, 2});
  CHECK(elements<float>(*result->at(2).tensor()) == std::vector<float>{10, 30, 20, 40});
}

TEST_CASE("GroupQueryAttention refuses quantized caches by name") {
  const Tensor x = floats({1, 1, 2}, {1, 2});
  OpCase node("GroupQueryAttention", 1, "com.microsoft");
  node.input(x).input(x).input(x).no_input().no_input();
  node.input(tensor_of<std::int32_t>({1}, {0})).input(tensor_of<std::int32_t>({}, {1}));
  node.attribute<std::int64_t>("num_heads", 1).attribute<std::int64_t>("kv_num_heads", 1);
  check_near(node.tensor(), {1, 2});
  for (int i = 0; i < 5; ++i) node.no_input();
  CHECK(node.input(floats({1}, {1})).error() ==
        "quantized key and value caches (k_scale, v_scale)");
}

TEST_CASE("RotaryEmbedding turns halves or neighbours, and checks its positions") {
  const auto node = [](std::int64_t is_interleaved, std::int64_t position) {
    OpCase made("RotaryEmbedding", 23);
    made.input(floats({1, 1, 1, 4}, {1, 2, 3, 4})).input(floats({2, 2}, {9, 9, 0, 1}));
    made.input(floats({2, 2}, {9, 9, 1, 0})).input(tensor_of<std::int64_t>({1, 1}, {position}));
    made.attribute("interleaved", is_interleaved);
    return made;
  };
  CHECK(elements<float>(node(0, 1).tensor()) == std::vector<float>{-3, 2, 1, 4});
  CHECK(elements<float>(node(1, 1).tensor()) == std::vector<float>{-2, 1, 3, 4});
  CHECK(node(0, 2).error() == "position 2 is outside [0, 2)");
}

TEST_CASE("DFT of one side completes the spectrum on the way back") {
  const Tensor x = floats({1, 5, 1}, {1, 2, 3, 4, 5});
  const Tensor spectrum =
      OpCase("DFT", 17).input(x).attribute<std::int64_t>("onesided", 1).tensor();
  CHECK(spectrum.shape() == Shape{1, 3, 2});
  check_near(spectrum, {15, 0, -2.5, 3.440955, -2.5, 0.812299}, 1e-5);
  const Tensor back = OpCase("DFT", 20)
                          .input(spectrum)
                          .input(tensor_of<std::int64_t>({}, {5}))
                          .attribute<std::int64_t>("onesided", 1)
                          .attribute<std::int64_t>("inverse", 1)
                          .tensor();
  check_near(back, {1, 2, 3, 4, 5}, 1e-5);
  CHECK(OpCase("DFT", 17).input(x).attribute<std::int64_t>("axis", 2).error() ==
        "axis 2 is outside [-3, -2] and [0, 1]");
}

TEST_CASE("STFT weighs each frame and refuses one longer than the signal") {
  const Tensor signal = floats({1, 4, 1}, {1, 2, 3, 4});
  const Tensor y = OpCase("STFT", 17)
                       .input(signal)
                       .input(tensor_of<std::int64_t>({}, {2}))
                       .input(floats({2}, {1, 2}))
                       .tensor();
  CHECK(y.shape() == Shape{1, 2, 2, 2});
  check_near(y, {5, 0, -3, 0, 11, 0, -5, 0});
  CHECK(OpCase("STFT", 17)
            .input(signal)
            .input(tensor_of<std::int64_t>({}, {1}))
            .no_input()
            .input(tensor_of<std::int64_t>({}, {5}))
            .error() == "a frame of 5 does not fit into a signal of 4");
}

TEST_CASE("Values that no shape can bound are refused, not read past") {
  OpCase lengths("Attention", 24);
  const Tensor q = floats({1, 1, 1, 1}, {0});
  lengths.input(q).input(q).input(q).no_input().no_input().no_input();
  CHECK(lengths.input(tensor_of<std::int64_t>({1}, {2})).error() ==
        "nonpad_kv_seqlen holds 2, expected 0 to 1");
  CHECK(OpCase("RotaryEmbedding", 1, "com.microsoft")
            .input(floats({1, 1, 2}, {1, 2}))
            .input(tensor_of<std::int64_t>({1}, {std::numeric_limits<std::int64_t>::max()}))
            .input(floats({1, 1}, {1}))
            .input(floats({1, 1}, {1}))
            .error() == "position 9223372036854775807 is outside [0, 1)");
  CHECK(OpCase("SkipLayerNormalization", 1, "com.microsoft")
            .input(floats({1, 1, 1}, {1}))
            .input(floats({1, 2, 1}, {1, 2}))
            .input(floats({1}, {1}))
            .error() == "'x1' of shape [1,2,1] does not broadcast to [1,1,1]");
  CHECK(OpCase("DFT", 20)
            .input(floats({1, 0, 2}, {}))
            .attribute<std::int64_t>("onesided", 1)
            .attribute<std::int64_t>("inverse", 1)
            .error() == "a transform of length 0");
}

TEST_CASE("MoE mixes the experts that the router ranks highest") {
  OpCase node("MoE", 1, "com.microsoft");
  // Three experts multiply by 1, 10 and 100; the router leaves out the first.
  node.input(floats({1, 1}, {2})).input(floats({1, 3}, {-50, 0, 0}));
  node.input(floats({3, 1, 1}, {1, 10, 100})).no_input().input(floats({3, 1, 1}, {1, 1, 1}));
  node.attribute<std::int64_t>("k", 2).attribute<std::string>("activation_type", "identity");
  check_near(node.tensor(), {110}, 1e-4);
}
