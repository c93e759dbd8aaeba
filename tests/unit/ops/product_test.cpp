#include <algorithm>
#include <cmath>
#include <random>

#include "op_case.h"
#include "ops/fft.h"

using namespace sardonyx;

namespace {

Tensor floats(const Shape& shape, std::initializer_list<float> values) {
  return tensor_of<float>(shape, values);
}

}  // namespace

TEST_CASE("MatMul broadcasts batches and treats vectors as numpy does") {
  const Tensor a = floats({2, 1, 2}, {1, 2, 3, 4});
  const Tensor b = floats({2, 2}, {1, 10, 100, 1000});
  CHECK(elements<float>(OpCase("MatMul", 13).input(a).input(b).tensor()) ==
        std::vector<float>{201, 2010, 403, 4030});
  const Tensor dot =
      OpCase("MatMul", 13).input(floats({3}, {1, 2, 3})).input(floats({3}, {4, 5, 6})).tensor();
  CHECK(dot.rank() == 0);
  CHECK(elements<float>(dot) == std::vector<float>{32});
}

TEST_CASE("MatMul of int64 keeps every bit and an empty depth gives zeros") {
  const std::int64_t large = (std::int64_t{1} << 62) + 1;
  const Tensor a = tensor_of<std::int64_t>({1, 2}, {large, -3});
  const Tensor b = tensor_of<std::int64_t>({2, 1}, {1, 7});
  CHECK(elements<std::int64_t>(OpCase("MatMul", 13).input(a).input(b).tensor()) ==
        std::vector<std::int64_t>{large - 21});
  CHECK(elements<float>(
            OpCase("MatMul", 13).input(floats({2, 0}, {})).input(floats({0, 1}, {})).tensor()) ==
        std::vector<float>{0, 0});
}

TEST_CASE("MatMul infers partly known shapes and refuses what cannot fit") {
  const auto type = [](const Shape& shape) { return Type::tensor(DType::Float32, shape); };
  CHECK(OpCase("MatMul", 13)
            .input_type(type({-2, 7, kUnknownDim}))
            .input_type(type({1, 5, 4}))
            .inferred() == "float" + Shape({-2, 7, 4}).to_string());
  CHECK(OpCase("MatMul", 13).input_type(type({2, 3})).input_type(type({4, 5})).inferred() ==
        "matrix product of shapes [2,3] and [4,5]: 3 columns do not meet 4 rows");
  CHECK(OpCase("MatMul", 13).input_type(type({})).input_type(type({4})).inferred() ==
        "matrix product of shapes [] and [4]: scalars have no rows");
}

TEST_CASE("Gemm transposes, scales and broadcasts its bias") {
  const Tensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const Tensor b = floats({2, 2}, {1, 0, 0, 1});
  const Tensor y = OpCase("Gemm", 13)
                       .input(a)
                       .input(b)
                       .input(floats({2}, {10, 20}))
                       .attribute<std::int64_t>("transA", 1)
                       .attribute("alpha", 2.0F)
                       .attribute("beta", 0.5F)
                       .tensor();
  CHECK(y.shape() == Shape{3, 2});
  CHECK(elements<float>(y) == std::vector<float>{7, 18, 9, 20, 11, 22});
  CHECK(OpCase("Gemm", 13).input(a).input(b).error().find("3 columns do not meet 2 rows") !=
        std::string::npos);
}

TEST_CASE("8-bit products are exact over the whole range of both signs") {
  const Tensor a = tensor_of<std::uint8_t>({1, 4}, {255, 255, 255, 255});
  const Tensor b = tensor_of<std::int8_t>({4, 2}, {127, -128, 127, -128, 127, -128, 127, -128});
  CHECK(elements<std::int32_t>(OpCase("MatMulInteger", 10).input(a).input(b).tensor()) ==
        std::vector<std::int32_t>{129540, -130560});
  const Tensor rows = OpCase("MatMulInteger", 10)
                          .input(a)
                          .input(b)
                          .input(tensor_of<std::uint8_t>({1}, {5}))
                          .input(tensor_of<std::int8_t>({2}, {-1, 2}))
                          .tensor();
  CHECK(elements<std::int32_t>(rows) == std::vector<std::int32_t>{128000, -130000});
}

TEST_CASE("QLinearMatMul rounds half to even before it adds the zero point") {
  const Tensor one = floats({}, {1});
  const Tensor half = floats({}, {0.5F});
  const Tensor y = OpCase("QLinearMatMul", 21)
                       .input(tensor_of<std::uint8_t>({3, 1}, {5, 7, 200}))
                       .input(half)
                       .input(tensor_of<std::uint8_t>({}, {0}))
                       .input(tensor_of<std::int8_t>({1, 1}, {1}))
                       .input(one)
                       .input(tensor_of<std::int8_t>({}, {0}))
                       .input(one)
                       .input(tensor_of<std::int8_t>({}, {101}))
                       .tensor();
  CHECK(elements<std::int8_t>(y) == std::vector<std::int8_t>{103, 105, 127});
}

TEST_CASE("FusedMatMul moves batches and swaps matrices before it multiplies") {
  const Tensor a = floats({2, 2, 1}, {1, 2, 3, 4});
  const Tensor b = floats({2, 2, 1}, {10, 20, 30, 40});
  const Tensor y = OpCase("FusedMatMul", 1, "com.microsoft")
                       .input(a)
                       .input(b)
                       .attribute<std::int64_t>("transA", 1)
                       .attribute<std::int64_t>("transBatchA", 1)
                       .attribute("alpha", 0.5F)
                       .tensor();
  CHECK(y.shape() == Shape{2, 1, 1});
  // Batches of a are its middle dimension: (1, 3) and (2, 4).
  CHECK(elements<float>(y) == std::vector<float>{35, 110});
}

TEST_CASE("Einsum takes diagonals, sums, contracts and broadcasts") {
  const Tensor m = floats({2, 2}, {1, 2, 3, 4});
  const auto run = [](std::string equation, std::initializer_list<Tensor> inputs) {
    OpCase node("Einsum", 12);
    for (const Tensor& input : inputs) node.input(input);
    return elements<float>(node.attribute("equation", std::move(equation)).tensor());
  };
  CHECK(run("ii->i", {m}) == std::vector<float>{1, 4});
  CHECK(run("ii", {m}) == std::vector<float>{5});
  CHECK(run("ij->ji", {m}) == std::vector<float>{1, 3, 2, 4});
  CHECK(run("ij,jk->ik", {m, m}) == std::vector<float>{7, 10, 15, 22});
  CHECK(run("ij,jk,kl->", {m, m, m}) == std::vector<float>{290});
  CHECK(run(" i , j ", {floats({2}, {1, 2}), floats({2}, {3, 5})}) ==
        std::vector<float>{3, 5, 6, 10});
  CHECK(run("...i,...i->...", {m, floats({1, 2}, {10, 100})}) == std::vector<float>{210, 430});
  CHECK(OpCase("Einsum", 12).input(m).attribute<std::string>("equation", "i->i").error() ==
        "input 0 of shape [2,2] does not fit a term of 1 letters");
  CHECK(OpCase("Einsum", 12).input(m).attribute<std::string>("equation", "ij->k").error() ==
        "an output letter is in none of the inputs");
}

TEST_CASE("Inverse undoes a permutation and a scale") {
  const Tensor x = floats({2, 2}, {0, 2, 4, 0});
  CHECK(elements<float>(OpCase("Inverse", 1, "com.microsoft").input(x).tensor()) ==
        std::vector<float>{0, 0.25F, 0.5F, 0});
}

TEST_CASE("Det of a batch pivots, and a singular matrix has none") {
  const Tensor x = floats({2, 2, 2}, {0, 2, 3, 4, 1, 2, 2, 4});
  CHECK(elements<float>(OpCase("Det", 11).input(x).tensor()) == std::vector<float>{-6, 0});
}

TEST_CASE("MatMulNBits decodes blocks with packed zero points, and refuses other widths") {
  // Two rows of 16 codes: 0 1 2 ... 15, and all 9.
  std::vector<std::uint8_t> codes;
  for (int i = 0; i < 8; ++i) codes.push_back(static_cast<std::uint8_t>(2 * i | (2 * i + 1) << 4));
  for (int i = 0; i < 8; ++i) codes.push_back(0x99);
  const Tensor weight = *make_tensor<std::uint8_t>({2, 1, 8}, codes);
  const Tensor x = *make_tensor<float>({1, 16}, std::vector<float>(16, 1.0F));
  const auto node = [&](std::int64_t bits) {
    OpCase made("MatMulNBits", 1, "com.microsoft");
    made.input(x).input(weight).input(floats({2, 1}, {0.5F, 2.0F}));
    made.attribute<std::int64_t>("K", 16).attribute<std::int64_t>("N", 2);
    made.attribute<std::int64_t>("block_size", 16).attribute("bits", bits);
    return made;
  };
  CHECK(elements<float>(node(4).tensor()) == std::vector<float>{-4, 32});
  CHECK(elements<float>(node(4).input(tensor_of<std::uint8_t>({2, 1}, {7, 9})).tensor()) ==
        std::vector<float>{4, 0});
  CHECK(node(5).error() == "weights of 5 bits; 2, 4 and 8 are known");
}

TEST_CASE("The fast Fourier transform agrees with the sum for every length") {
  std::mt19937 random(7);
  for (std::int64_t n = 1; n <= 70; ++n) {
    std::vector<Complex> x(static_cast<std::size_t>(n));
    for (Complex& value : x) {
      value = {static_cast<double>(random() % 200) - 100, static_cast<double>(random() % 200)};
    }
    std::vector<Complex> y = x;
    Fft fft(n);
    fft.forward(y.data());
    double worst = 0;
    for (std::int64_t k = 0; k < n; ++k) {
      Complex sum;
      for (std::int64_t i = 0; i < n; ++i) {
        const double angle =
            -2 * 3.14159265358979323846 * static_cast<double>(k * i % n) / static_cast<double>(n);
        sum = sum + x[static_cast<std::size_t>(i)] * Complex{std::cos(angle), std::sin(angle)};
      }
      const Complex error = sum - y[static_cast<std::size_t>(k)];
      worst = std::max({worst, std::abs(error.real), std::abs(error.imaginary)});
    }
    fft.inverse(y.data());
    for (std::size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, std::abs((y[i] - x[i]).real));
    }
    CAPTURE(n);
    CHECK(worst < 1e-9);
  }
}
