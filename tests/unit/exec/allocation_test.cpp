#include <dlfcn.h>

#include <atomic>
#include <cstdlib>

#include "unit/small_graph.h"

using namespace sardonyx;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__GLIBC__)

namespace {

std::atomic<bool> g_is_counting{false};
std::atomic<int> g_allocations{0};

void count() {
  if (g_is_counting.load(std::memory_order_relaxed)) g_allocations.fetch_add(1);
}

}  // namespace

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

void* malloc(std::size_t bytes) { return count(), __libc_malloc(bytes); }
void* calloc(std::size_t number, std::size_t bytes) {
  return count(), __libc_calloc(number, bytes);
}
void* realloc(void* memory, std::size_t bytes) { return count(), __libc_realloc(memory, bytes); }
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return count(), __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : 12;
}
}

namespace {

/// Allocations of a run whose shapes and outputs were seen before.
int allocations_of_a_run(Compiled& compiled, std::span<const Datum> inputs,
                         std::span<Datum> outputs) {
  ThreadPool pool(ThreadPoolOptions{3});
  std::mt19937_64 random(1);
  RunState state{pool, nullptr, nullptr, &random};
  for (int turn = 0; turn < 2; ++turn) {
    const Status status = compiled.run(inputs, outputs, state);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
  }
  g_allocations = 0;
  g_is_counting = true;
  const Status status = compiled.run(inputs, outputs, state);
  g_is_counting = false;
  REQUIRE(status.ok());
  return g_allocations;
}

std::unique_ptr<Compiled> compiled(SmallGraph& small, int thread_count) {
  small.infer();
  CompileOptions options;
  options.thread_count = thread_count;
  auto made = make_cpu_provider(std::make_shared<WeightStore>())->compile(small.graph, options);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  return std::move(made).value();
}

}  // namespace

TEST_CASE("the hook counts allocations") {
  g_allocations = 0;
  g_is_counting = true;
  auto* number = new int(5);
  g_is_counting = false;
  CHECK(g_allocations == 1);
  delete number;
}

TEST_CASE("a run with given outputs and known shapes does not touch the heap") {
  SmallGraph small;
  const ValueId x = small.input("x", {1, 3, 8, 8});
  const ValueId w = small.constant(random_floats({4, 3, 3, 3}));
  const ValueId conv = small.node("Conv", {x, w}, with({{"pads", attribute({1, 1, 1, 1})}}));
  const ValueId relu = small.node("Relu", {conv});
  const ValueId pool =
      small.node("MaxPool", {relu},
                 with({{"kernel_shape", attribute({2, 2})}, {"strides", attribute({2, 2})}}));
  const ValueId flat = small.node("Reshape", {pool, small.ints({4, 16})});
  const ValueId turned = small.node("Transpose", {flat});
  const ValueId product = small.node("MatMul", {turned, small.constant(random_floats({4, 40}))});
  const ValueId sum = small.node("Add", {product, small.constant(random_floats({40}))});
  const ValueId norm = small.node("LayerNormalization", {sum, small.constant(random_floats({40}))},
                                  with({{"axis", attribute(-1)}}));
  const ValueId both = small.node("Concat", {norm, sum}, with({{"axis", attribute(1)}}));
  small.output(small.node("Softmax", {both}, with({{"axis", attribute(-1)}})));
  small.output(small.node("ReduceMean", {norm, small.ints({1})}));
  const auto part = compiled(small, 3);
  const std::vector<Datum> inputs = {random_floats({1, 3, 8, 8}, 5)};
  std::vector<Datum> outputs = {random_floats({16, 80}), random_floats({16, 1})};
  const std::byte* place = outputs[0].tensor()->data();
  CHECK(allocations_of_a_run(*part, inputs, outputs) == 0);
  CHECK(outputs[0].tensor()->data() == place);
  const auto expected = evaluated(small.graph, inputs);
  const auto found = values_of<float>(outputs[0]);
  const auto wanted = values_of<float>(expected[0]);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i] == doctest::Approx(wanted[i]).epsilon(1e-4));
  }
}

TEST_CASE("shapes that are computed from shapes cost no allocation either") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim, 6});
  const ValueId shape = small.node("Shape", {x});
  const ValueId first = small.node("Gather", {shape, small.ints({0})});
  const ValueId wanted =
      small.node("Concat", {first, small.ints({2, 3})}, with({{"axis", attribute(0)}}));
  small.output(small.node("Relu", {small.node("Reshape", {x, wanted})}));
  const auto part = compiled(small, 1);
  const std::vector<Datum> inputs = {random_floats({5, 6})};
  std::vector<Datum> outputs = {random_floats({5, 2, 3})};
  CHECK(allocations_of_a_run(*part, inputs, outputs) == 0);
  CHECK(values_of<float>(outputs[0])[4] == std::max(0.0F, values_of<float>(inputs[0])[4]));
}

#endif
