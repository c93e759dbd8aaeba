#include "ir/element.h"
#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

constexpr std::int64_t kHalf = static_cast<std::int64_t>(DType::Float16);
constexpr std::int64_t kFloat = static_cast<std::int64_t>(DType::Float32);

Tensor half(const Tensor& tensor, DType dtype = DType::Float16) {
  auto made = to_dtype(tensor, dtype);
  REQUIRE(made.ok());
  return std::move(made).value();
}

ValueId half_input(SmallGraph& small, const Shape& shape, DType dtype = DType::Float16) {
  const ValueId x = small.input("x", shape);
  small.graph.value(x).type = Type::tensor(dtype, shape);
  return x;
}

/// The operators after widening; results may differ from the reference by its own roundings.
std::string widened(SmallGraph& small, const std::vector<Datum>& fed, DType dtype) {
  small.infer();
  const auto expected = evaluated(small.graph, fed);
  const std::string name = small.graph.value(small.graph.outputs()[0]).name;
  REQUIRE(widen_floats(small.graph, {}).ok());
  REQUIRE(remove_dead_nodes(small.graph, {}).ok());
  small.infer();
  CHECK(small.graph.value(small.graph.outputs()[0]).name == name);
  const auto found = evaluated(small.graph, fed);
  const Tensor a = half(*found[0].tensor(), DType::Float32);
  const Tensor b = half(*expected[0].tensor(), DType::Float32);
  CHECK(found[0].tensor()->dtype() == expected[0].tensor()->dtype());
  REQUIRE(a.shape() == b.shape());
  const float error = dtype == DType::Float16 ? 4e-3F : 4e-2F;
  for (std::int64_t i = 0; i < a.element_count(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(std::abs(a.values<float>()[at] - b.values<float>()[at]) <=
          error * (1 + std::abs(b.values<float>()[at])));
  }
  return ops_of(small.graph);
}

}  // namespace

TEST_CASE("nodes on 16-bit floats stay in floats between one cast in and one out") {
  for (const DType dtype : {DType::Float16, DType::BFloat16}) {
    SmallGraph small;
    const ValueId x = half_input(small, {2, 3}, dtype);
    const ValueId weight = small.constant(half(random_floats({3, 3}), dtype));
    const ValueId product = small.node("MatMul", {x, weight});
    const ValueId gate = small.node("Sigmoid", {product});
    small.output(small.node("Add", {small.node("Mul", {product, gate}), x}));
    const Datum fed = half(random_floats({2, 3}, 5), dtype);
    CHECK(widened(small, {fed}, dtype) == "Cast MatMul Sigmoid Mul Add Cast");
    CHECK(evaluated(small.graph, {fed})[0].tensor()->dtype() == dtype);
  }
}

TEST_CASE("a cast to half that the model asks for still rounds") {
  SmallGraph small;
  const ValueId x = small.input("x", {1});
  const ValueId narrow = small.node("Cast", {x}, with({{"to", attribute(kHalf)}}));
  const ValueId twice = small.node("Add", {narrow, narrow});
  small.output(small.node("Cast", {twice}, with({{"to", attribute(kFloat)}})));
  small.infer();
  REQUIRE(widen_floats(small.graph, {}).ok());
  small.infer();
  CHECK(values_of<float>(evaluated(small.graph, {float_tensor({1}, {2049.0F})})[0]) ==
        std::vector<float>{4096.0F});
}

TEST_CASE("rows of a large table are looked up before they are widened") {
  SmallGraph small;
  const ValueId table = small.constant(half(random_floats({300, 128})));
  const ValueId rows = small.node("Gather", {table, small.ints({7, 299})});
  small.output(small.node("Mul", {rows, rows}));
  CHECK(widened(small, {}, DType::Float16) == "Gather Cast Mul Cast");
}

TEST_CASE("a model without 16-bit floats, and nodes without a float form, stay as they are") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  small.output(small.node("Mul", {x, x}));
  small.infer();
  REQUIRE(widen_floats(small.graph, {}).ok());
  CHECK(ops_of(small.graph) == "Mul");
  SmallGraph bits;
  const ValueId y = half_input(bits, {2});
  const auto number = static_cast<std::int64_t>(DType::Int16);
  bits.output(bits.node("BitCast", {y}, with({{"to", attribute(number)}}), 26));
  bits.infer();
  REQUIRE(widen_floats(bits.graph, {}).ok());
  CHECK(ops_of(bits.graph) == "BitCast");
}
