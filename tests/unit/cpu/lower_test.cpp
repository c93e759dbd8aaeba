#include "cpu/lower.h"

#include <doctest/doctest.h>

#include <cstring>

#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

/// The same elements one byte beyond an aligned place, as in a file.
Tensor at_odd_place(const Tensor& tensor) {
  auto memory = Tensor::allocate(DType::UInt8, Shape{static_cast<Dim>(tensor.byte_size()) + 1});
  REQUIRE(memory.ok());
  std::memcpy(memory->mutable_data() + 1, tensor.data(), tensor.byte_size());
  return Tensor::view(tensor.dtype(), tensor.shape(), memory->mutable_data() + 1, memory->owner());
}

const Tensor* constant_in(const Program& program, ValueId id) {
  for (const auto& [slot, datum] : program.constants) {
    if (slot == id) return datum.tensor();
  }
  return nullptr;
}

}  // namespace

TEST_CASE("a constant at an odd address is copied for kernels that read it element by element") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{256, 128});
  const Tensor values = random_floats(Shape{256, 128});
  const ValueId addend = small.constant(at_odd_place(values));
  const ValueId weight = small.constant(at_odd_place(random_floats(Shape{128, 200}, 2)));
  const ValueId table = small.constant(at_odd_place(random_floats(Shape{300, 128}, 3)));
  const ValueId sum = small.node("Add", {x, addend});
  small.output(small.node("MatMul", {sum, weight}));
  small.output(small.node("Gather", {table, small.ints({7, 299})}));
  small.output(small.node("Reshape", {addend, small.ints({-1})}));
  small.infer();
  WeightStore store;
  PackedWeights weights(store, {0, 0});
  auto program = lower(small.graph, weights, 1);
  REQUIRE(program.ok());
  CHECK(constant_in(*program, addend)->is_aligned());
  CHECK(!constant_in(*program, weight)->is_aligned());
  CHECK(!constant_in(*program, table)->is_aligned());
}

TEST_CASE("constants at odd addresses give the results of those at even ones") {
  for (const bool is_odd : {false, true}) {
    SmallGraph small;
    const auto place = [&](Tensor tensor) {
      return small.constant(is_odd ? at_odd_place(tensor) : tensor);
    };
    const ValueId x = small.input("x", Shape{5, 128});
    const ValueId scale = place(random_floats(Shape{128}, 4));
    const ValueId weight = place(random_floats(Shape{128, 200}, 2));
    const ValueId bias = place(random_floats(Shape{200}, 5));
    const ValueId scaled = small.node("Mul", {x, scale});
    small.output(small.node("Gemm", {scaled, weight, bias}));
    small.output(
        small.node("Einsum", {scaled, weight}, with({{"equation", std::string("ij,jk->k")}})));
    const Tensor fed = random_floats(Shape{5, 128}, 6);
    const auto expected = evaluated(small.infer().graph, {fed});
    const auto found = Runnable(small)({fed});
    for (std::size_t k = 0; k < 2; ++k) {
      const auto a = values_of<float>(expected[k]);
      const auto b = values_of<float>(found[k]);
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) CHECK(b[i] == doctest::Approx(a[i]).epsilon(1e-3));
    }
  }
}

TEST_CASE("a weight that is packed leaves its elements behind unless another node reads them") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{4, 128});
  const ValueId alone = small.constant(random_floats(Shape{128, 64}, 2));
  const ValueId shared = small.constant(random_floats(Shape{128, 64}, 3));
  const ValueId given = small.constant(random_floats(Shape{128, 64}, 4));
  for (const ValueId weight : {alone, shared, given}) {
    small.output(small.node("MatMul", {x, weight}));
  }
  small.output(small.node("Neg", {shared}));
  small.output(given);
  small.infer();
  for (const std::size_t room : {std::size_t{0}, std::size_t{1} << 20}) {
    WeightStore store;
    PackedWeights weights(store, {room, room});
    auto program = lower(small.graph, weights, 1);
    REQUIRE(program.ok());
    REQUIRE(weights.make_all(nullptr).ok());
    CHECK((constant_in(*program, alone)->data() == nullptr) == (room != 0));
    CHECK(constant_in(*program, alone)->shape() == Shape{128, 64});
    CHECK(constant_in(*program, shared)->data() != nullptr);
    CHECK(constant_in(*program, given)->data() != nullptr);
  }
}

TEST_CASE("a tensor without element type is refused when it arrives") {
  SmallGraph small;
  const ValueId x = small.graph.add_value("x");
  small.graph.add_input(x);
  small.output(small.node("Neg", {x}));
  Runnable runnable(small);
  Datum output;
  const std::byte bytes[16] = {};
  const Datum fed = Tensor::view(DType::Undefined, Shape{4}, static_cast<const void*>(bytes));
  const Status status = runnable.run(std::span(&fed, 1), std::span(&output, 1));
  REQUIRE(!status.ok());
  CHECK(status.message() == "input 0 is a tensor without element type");
}

TEST_CASE("a value that is not of its declared type is refused when it arrives") {
  SmallGraph small;
  const ValueId s = small.graph.add_value("s", Type{Type::Kind::Sequence, {}, {}, nullptr});
  small.graph.add_input(s);
  const ValueId item = small.node("SequenceAt", {s, small.ints({0})});
  small.graph.value(item).type = Type::tensor(DType::Float16, Shape{4});
  small.output(small.node("Relu", {item}));
  auto values = make_tensor<double>(Shape{4}, {1, 2, 3, 4});
  REQUIRE(values.ok());
  auto sequence = std::make_shared<Sequence>();
  sequence->items.push_back(Datum(*values));
  Runnable runnable(small);
  Datum output;
  const Datum feeds[] = {Datum(std::shared_ptr<const Sequence>(std::move(sequence)))};
  const Status status = runnable.run(feeds, std::span(&output, 1));
  REQUIRE(!status.ok());
  CHECK(status.message() == "input 0 should be tensor(float16), but is tensor(double)");
}

TEST_CASE("a constant that is read but has no elements is refused") {
  for (const bool is_output : {false, true}) {
    SmallGraph small;
    const ValueId x = small.input("x", Shape{8});
    const ValueId addend = small.constant(
        Tensor::view(DType::Float32, Shape{8}, static_cast<const void*>(nullptr)));
    small.output(is_output ? addend : small.node("Add", {x, addend}));
    small.infer();
    WeightStore store;
    PackedWeights weights(store, {0, 0});
    const auto program = lower(small.graph, weights, 1);
    REQUIRE(!program.ok());
    CHECK(program.status().to_string().find("has no elements") != std::string::npos);
  }
}
