#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

PartEstimate estimate(const Graph& graph) {
  CompileOptions options;
  options.thread_count = 2;
  auto made = make_cpu_provider(std::make_shared<WeightStore>())->estimate(graph, options);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  REQUIRE(made->has_value());
  return **made;
}

/// What the compiled part holds after a run on zeros.
CompiledMemory memory_after_run(const Graph& graph) {
  CompileOptions options;
  options.thread_count = 2;
  auto compiled = make_cpu_provider(std::make_shared<WeightStore>())->compile(graph, options);
  REQUIRE_MESSAGE(compiled.ok(), compiled.status().to_string());
  std::vector<Datum> inputs;
  for (const ValueId id : graph.inputs()) {
    const Type& type = graph.value(id).type;
    auto zeros = Tensor::allocate(type.dtype, *type.shape);
    REQUIRE(zeros.ok());
    std::fill_n(zeros->mutable_data(), zeros->byte_size(), std::byte{});
    inputs.emplace_back(std::move(zeros).value());
  }
  std::vector<Datum> outputs(graph.outputs().size());
  ThreadPool pool(ThreadPoolOptions{2});
  std::mt19937_64 random(1);
  RunState state{pool, nullptr, nullptr, &random};
  const Status status = (*compiled)->run(inputs, outputs, state);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return (*compiled)->memory();
}

/// Sizes differ by what allocators add.
void check_near(std::size_t predicted, std::size_t real) {
  CHECK(predicted >= real);
  CHECK(predicted <= real + 3 * 4096);
}

}  // namespace

TEST_CASE("an estimate tells packed bytes and arena of what compile() makes") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{24, 300});
  const ValueId first = small.constant(random_floats(Shape{300, 500}));
  const ValueId second = small.constant(random_floats(Shape{500, 200}, 2));
  const ValueId hidden = small.node("Relu", {small.node("MatMul", {x, first})});
  const ValueId sum = small.node("Softmax", {small.node("MatMul", {hidden, second})});
  small.output(small.node("Mul", {sum, sum}));
  small.infer();
  const PartEstimate told = estimate(small.graph);
  const CompiledMemory real = memory_after_run(small.graph);
  CHECK(told.unbounded.empty());
  check_near(told.packed_bytes, real.packed_bytes);
  // The result is memory of its own.
  check_near(told.arena_bytes, real.arena_bytes + std::size_t{24} * 200 * 4);
  CHECK(told.total_bytes() >= real.packed_bytes + real.arena_bytes);
}

TEST_CASE("an estimate of a convolution tells its scratch and packed weights") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{1, 16, 40, 40});
  const ValueId w = small.constant(random_floats(Shape{32, 16, 3, 3}));
  const ValueId v = small.constant(random_floats(Shape{8, 32, 1, 1}, 3));
  const ValueId hidden = small.node("Relu", {small.node("Conv", {x, w})});
  small.output(small.node("Conv", {hidden, v}));
  small.infer();
  const PartEstimate told = estimate(small.graph);
  const CompiledMemory real = memory_after_run(small.graph);
  check_near(told.packed_bytes, real.packed_bytes);
  check_near(told.arena_bytes, real.arena_bytes + std::size_t{8} * 38 * 38 * 4);
}

TEST_CASE("one weight that two nodes pack alike counts once") {
  SmallGraph one;
  SmallGraph two;
  const Tensor weight = random_floats(Shape{256, 256});
  const ValueId x = one.input("x", Shape{4, 256});
  one.output(one.node("MatMul", {x, one.constant(weight)}));
  const ValueId y = two.input("x", Shape{4, 256});
  const ValueId w = two.constant(weight);
  two.output(two.node("MatMul", {two.node("MatMul", {y, w}), w}));
  CHECK(estimate(one.infer().graph).packed_bytes == estimate(two.infer().graph).packed_bytes);
}

TEST_CASE("nodes and inputs without bound are named") {
  SmallGraph data;
  const ValueId x = data.input("x", Shape{8});
  data.output(data.node("Neg", {data.node("NonZero", {x})}));
  const PartEstimate by_data = estimate(data.infer().graph);
  REQUIRE(by_data.unbounded.size() == 2);
  CHECK(by_data.unbounded[0] == "node with output 'NonZero@0' (NonZero)");
  SmallGraph open;
  open.output(open.node("Relu", {open.input("x", Shape{kUnknownDim, 3})}));
  const PartEstimate by_shape = estimate(open.infer().graph);
  REQUIRE(by_shape.unbounded.size() == 1);
  CHECK(by_shape.unbounded[0] == "input 'x' tensor(float) of shape [?,3]");
  CHECK(by_shape.arena_bytes == 0);
}
