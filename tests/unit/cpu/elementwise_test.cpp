#include <limits>

#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Tensor special_values() {
  auto tensor = make_tensor<float>(
      Shape{24}, {0.0F,   -0.0F, 1.0F,   -1.0F,  0.5F,   -0.5F,  2.5F,      -2.5F,
                  1e-30F, 1e30F, -1e30F, 100.0F, 88.0F,  -88.0F, kInfinity, -kInfinity,
                  kNan,   3.0F,  -3.0F,  20.0F,  -20.0F, 7.0F,   1e-3F,     -1e-3F});
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

struct UnaryCase {
  const char* name;
  std::int64_t opset;
  const char* domain;
  float low;
  float high;
};

constexpr UnaryCase kFunctions[] = {{"Relu", 14, "", -5, 5},
                                    {"Sigmoid", 13, "", -20, 20},
                                    {"Tanh", 13, "", -10, 10},
                                    {"HardSwish", 14, "", -6, 6},
                                    {"LeakyRelu", 16, "", -5, 5},
                                    {"HardSigmoid", 6, "", -6, 6},
                                    {"Gelu", 20, "", -8, 8},
                                    {"Swish", 24, "", -20, 20},
                                    {"Clip", 6, "", -5, 5},
                                    {"Exp", 13, "", -20, 20},
                                    {"Log", 13, "", 0.001F, 50},
                                    {"Sqrt", 13, "", 0, 100},
                                    {"Abs", 13, "", -5, 5},
                                    {"Neg", 13, "", -5, 5},
                                    {"Reciprocal", 13, "", 0.1F, 9},
                                    {"Erf", 13, "", -4, 4},
                                    {"Sin", 7, "", -100, 100},
                                    {"Cos", 7, "", -100, 100},
                                    {"Floor", 13, "", -9, 9},
                                    {"Ceil", 13, "", -9, 9},
                                    {"Softplus", 1, "", -30, 30},
                                    {"Gelu", 1, "com.microsoft", -8, 8},
                                    {"QuickGelu", 1, "com.microsoft", -9, 9}};

}  // namespace

TEST_CASE("functions of one tensor are as evaluated, at all lengths") {
  Source source(1);
  for (const UnaryCase& function : kFunctions) {
    for (const std::int64_t size : {0, 1, 7, 16, 33, 5000, 40001}) {
      CHECK(NodeCase(function.name, function.opset, function.domain)
                .input(source.floats(Shape{size}, function.low, function.high))
                .difference({4e-6}) == "");
    }
  }
}

TEST_CASE("functions of one tensor treat infinities, NaN and zeros as evaluated") {
  for (const UnaryCase& function : kFunctions) {
    const std::string name = function.name;
    // Angles beyond every use; products of zero and infinity inside the function.
    if (name == "Sin" || name == "Cos" || name == "Gelu" || name == "Swish") continue;
    CHECK(NodeCase(name, function.opset, function.domain)
              .input(special_values())
              .difference({4e-6}) == "");
  }
}

TEST_CASE("attributes of activations are used") {
  Source source(2);
  const Tensor x = source.floats({77}, -6, 6);
  CHECK(NodeCase("LeakyRelu", 16).input(x).attribute("alpha", 0.3F).difference({1e-6}) == "");
  CHECK(NodeCase("HardSigmoid", 6)
            .input(x)
            .attribute("alpha", 0.4F)
            .attribute("beta", 0.1F)
            .difference({1e-6}) == "");
  CHECK(NodeCase("Gelu", 20)
            .input(x)
            .attribute("approximate", std::string("tanh"))
            .difference({4e-6}) == "");
  CHECK(NodeCase("QuickGelu", 1, "com.microsoft")
            .input(x)
            .attribute("alpha", 1.0F)
            .difference({4e-6}) == "");
  CHECK(NodeCase("Swish", 24).input(x).attribute("alpha", 0.7F).difference({4e-6}) == "");
  CHECK(
      NodeCase("Clip", 6).input(x).attribute("min", -1.5F).attribute("max", 2.5F).difference({0}) ==
      "");
}

TEST_CASE("Clip takes bounds that are constant, fed, or left out") {
  Source source(3);
  for (const bool is_constant : {true, false}) {
    const Tensor x = source.floats({99}, -6, 6);
    CHECK(NodeCase("Clip", 13)
              .input(x)
              .input(number(-1), is_constant)
              .input(number(2), is_constant)
              .difference({0}) == "");
    CHECK(NodeCase("Clip", 13).input(x).no_input().input(number(2), is_constant).difference({0}) ==
          "");
    CHECK(NodeCase("Clip", 13).input(x).input(number(-1), is_constant).difference({0}) == "");
    CHECK(NodeCase("Clip", 13)
              .input(special_values())
              .input(number(2), is_constant)
              .input(number(-1), is_constant)
              .difference({0}) == "");
  }
  CHECK(NodeCase("Clip", 13).input(special_values()).difference({0}) == "");
}

TEST_CASE("functions of two tensors broadcast as evaluated") {
  Source source(4);
  for (int turn = 0; turn < 300; ++turn) {
    const auto rank = static_cast<int>(source.between(0, 5));
    Shape a;
    Shape b;
    for (int axis = 0; axis < rank; ++axis) {
      const Dim size = source.one_of<Dim>({1, 2, 3, 5, 17, source.chance(0.1) ? 0 : 4});
      a.push_back(source.chance(0.3) ? 1 : size);
      b.push_back(source.chance(0.3) ? 1 : size);
    }
    const char* name = source.one_of({"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu"});
    const bool is_power = std::string(name) == "Pow";
    const bool is_one_way = std::string(name) == "PRelu";
    for (std::int64_t cut = source.between(0, rank); cut > 0; --cut) {
      (turn % 2 == 0 && !is_one_way ? a : b).erase(0);
    }
    for (int axis = 0; is_one_way && axis < b.rank(); ++axis) {
      if (b[axis] != 1) a[a.rank() - b.rank() + axis] = b[axis];
    }
    NodeCase node(name, std::string(name) == "PRelu" ? 16 : 14);
    node.input(source.floats(a, is_power ? 0.1F : -3, 3), source.chance(0.2))
        .input(source.floats(b, -3, 3), source.chance(0.2));
    if (!is_one_way && source.chance(0.3)) node.unknown_sizes();
    CHECK(node.difference({3e-6}) == "");
  }
}

TEST_CASE("functions of two tensors are as evaluated where runs are long") {
  Source source(5);
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "PRelu"}) {
    const Tensor a = source.floats({3, 40000}, 0.1F, 3);
    for (const Shape& b : {Shape{40000}, Shape{1}, Shape{3, 1}, Shape{3, 40000}}) {
      CHECK(NodeCase(name, 13).input(a).input(source.floats(b)).difference({3e-6}) == "");
    }
  }
}

TEST_CASE("functions of two tensors treat infinities, NaN and zeros as evaluated") {
  const Tensor row = special_values();
  for (const char* name : {"Add", "Sub", "Mul", "Div", "Pow", "Min", "Max"}) {
    CHECK(NodeCase(name, 13).input(row.reshaped({24, 1})).input(row).difference({3e-6}) == "");
    CHECK(NodeCase(name, 13).input(row).input(row.reshaped({24, 1})).difference({3e-6}) == "");
  }
}
