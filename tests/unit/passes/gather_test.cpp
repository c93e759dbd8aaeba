#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

constexpr Dim kRows = 700;
constexpr Dim kWidth = 100;

Tensor weight() {
  auto tensor = Tensor::allocate(DType::Int8, Shape{kRows, kWidth});
  REQUIRE(tensor.ok());
  int value = 0;
  for (auto& element : tensor->mutable_values<std::uint8_t>()) {
    element = static_cast<std::uint8_t>(value += 37);
  }
  return std::move(tensor).value();
}

std::vector<Datum> indices() {
  auto tensor = make_tensor<std::int64_t>(Shape{2, 2}, {3, 699, -1, 0});
  REQUIRE(tensor.ok());
  return {std::move(tensor).value()};
}

ValueId cast(SmallGraph& small) {
  return small.node("Cast", {small.constant(weight())}, with({{"to", attribute(1)}}));
}

std::string moved(SmallGraph& small, ValueId data) {
  const ValueId ids = small.input("ids", {2, 2}, DType::Int64);
  small.output(small.node("Gather", {data, ids}));
  return rewritten(small, gather_first, indices(), 0);
}

}  // namespace

TEST_CASE("rows are gathered before a large weight is widened and scaled, by row or as a whole") {
  SmallGraph by_row;
  const ValueId scales = by_row.constant(random_floats({kRows, 1}, 5));
  CHECK(moved(by_row, by_row.node("Mul", {cast(by_row), scales})) == "Gather Cast Gather Mul");
  SmallGraph whole;
  CHECK(moved(whole, whole.node("Mul", {whole.floats({}, {0.5F}), cast(whole)})) ==
        "Gather Cast Mul");
  SmallGraph plain;
  CHECK(moved(plain, cast(plain)) == "Gather Cast");
  SmallGraph linear;
  CHECK(moved(linear, linear.node("DequantizeLinear",
                                  {linear.constant(weight()), linear.floats({}, {0.25F})})) ==
        "Gather DequantizeLinear");
}

TEST_CASE("a widened weight that others need, or with a scale per column, is widened as a whole") {
  SmallGraph by_column;
  const ValueId scales = by_column.constant(random_floats({1, kWidth}, 5));
  CHECK(moved(by_column, by_column.node("Mul", {cast(by_column), scales})) == "Cast Mul Gather");
  SmallGraph shared;
  const ValueId data = cast(shared);
  shared.output(data);
  CHECK(moved(shared, data) == "Cast Gather");
}
