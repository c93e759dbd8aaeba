#include "exec/executor.h"

#include <algorithm>
#include <thread>

#include "unit/small_graph.h"

using namespace sardonyx;

using Floats = std::vector<float>;

TEST_CASE("a buffer that two nodes need is not overwritten in place") {
  SmallGraph small;
  const ValueId x = small.input("x", {4});
  const ValueId a = small.node("Neg", {x});
  const ValueId b = small.node("Exp", {a});
  const ValueId c = small.node("Add", {a, b});
  small.output(small.node("Sub", {c, a}));
  Runnable run(small);
  const Floats found = values_of<float>(run({float_tensor({4}, {0, 1, 2, -1})})[0]);
  CHECK(found[0] == doctest::Approx(1));
  CHECK(found[1] == doctest::Approx(0.36788));
  CHECK(found[3] == doctest::Approx(2.71828));
}

TEST_CASE("an input is never overwritten, through views either") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 2});
  const ValueId view = small.node("Reshape", {x, small.ints({4})});
  const ValueId y = small.node("Neg", {view});
  small.output(small.node("Neg", {y}));
  Runnable run(small);
  const Tensor fed = float_tensor({2, 2}, {1, 2, 3, 4});
  CHECK(values_of<float>(run({fed})[0]) == Floats{1, 2, 3, 4});
  CHECK(values_of<float>(fed) == Floats{1, 2, 3, 4});
}

TEST_CASE("a view keeps the memory that it shows while anything uses it") {
  SmallGraph small;
  const ValueId x = small.input("x", {2, 3});
  const ValueId a = small.node("Neg", {x});
  const ValueId view = small.node("Reshape", {a, small.ints({3, 2})});
  const ValueId other = small.node("Exp", {x});
  const ValueId more = small.node("Add", {other, other});
  const ValueId back = small.node("Reshape", {view, small.ints({2, 3})});
  small.output(small.node("Add", {back, more}));
  Runnable run(small);
  const Floats found = values_of<float>(run({float_tensor({2, 3}, {0, 1, 0, 2, 0, 3})})[0]);
  CHECK(found[0] == doctest::Approx(2));
  CHECK(found[5] == doctest::Approx(2 * 20.0855 - 3));
}

TEST_CASE("outputs may be inputs, constants, views of them and one value twice") {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId c = small.floats({2}, {7, 8});
  const ValueId y = small.node("Neg", {x});
  for (const ValueId id :
       {x, c, y, y, small.node("Reshape", {x, small.ints({1, 2})}),
        small.node("Reshape", {y, small.ints({2, 1})}), small.node("Identity", {c})}) {
    small.output(id);
  }
  Runnable run(small);
  const std::vector<Floats> expected = {{1, 2}, {7, 8},   {-1, -2}, {-1, -2},
                                        {1, 2}, {-1, -2}, {7, 8}};
  for (int turn = 0; turn < 2; ++turn) {
    std::vector<Datum> outputs = run({float_tensor({2}, {1, 2})});
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      CHECK(values_of<float>(outputs[i]) == expected[i]);
    }
    CHECK(outputs[4].tensor()->shape() == Shape{1, 2});
    // What was handed out is the caller's: writing into it changes nothing else.
    for (Datum& output : outputs) {
      for (float& value : output.tensor()->mutable_values<float>()) value = 99;
    }
  }
  // And with buffers given for all of them.
  std::vector<Datum> given;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    given.emplace_back(float_tensor(i == 4   ? Shape{1, 2}
                                    : i == 5 ? Shape{2, 1}
                                             : Shape{2},
                                    {0, 0}));
  }
  std::vector<const std::byte*> places;
  for (const Datum& datum : given) places.push_back(datum.tensor()->data());
  const std::vector<Datum> inputs = {float_tensor({2}, {1, 2})};
  const Status status = run.run(inputs, given);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  for (std::size_t i = 0; i < given.size(); ++i) {
    CHECK(values_of<float>(given[i]) == expected[i]);
    CHECK(given[i].tensor()->data() == places[i]);
  }
}

TEST_CASE("a reshape to a fed shape gives an output of its own memory") {
  SmallGraph small;
  const ValueId x = small.input("x", {4});
  const ValueId shape = small.input("shape", {2}, DType::Int64);
  small.output(small.node("Reshape", {small.node("Neg", {x}), shape}));
  small.output(small.node("Reshape", {x, shape}));
  small.output(small.node("Reshape", {small.floats({4}, {5, 6, 7, 8}), shape}));
  Runnable run(small);
  for (const Shape& wanted : {Shape{2, 2}, Shape{4, 1}, Shape{1, 4}}) {
    const Tensor fed = float_tensor({4}, {1, 2, 3, 4});
    std::vector<Datum> outputs = run({fed, int_tensor({2}, {wanted[0], wanted[1]})});
    CHECK(outputs[0].tensor()->shape() == wanted);
    CHECK(values_of<float>(outputs[0]) == Floats{-1, -2, -3, -4});
    CHECK(values_of<float>(outputs[1]) == Floats{1, 2, 3, 4});
    CHECK(values_of<float>(outputs[2]) == Floats{5, 6, 7, 8});
    for (Datum& output : outputs) {
      for (float& value : output.tensor()->mutable_values<float>()) value = 99;
    }
    CHECK(values_of<float>(fed) == Floats{1, 2, 3, 4});
  }
}

TEST_CASE("shapes that depend on data are followed from run to run") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim});
  const ValueId places = small.node("NonZero", {x});
  const ValueId turned = small.node("Transpose", {places});
  const ValueId flat = small.node("Reshape", {turned, small.ints({-1})});
  small.output(small.node("Gather", {x, flat}));
  small.output(places);
  small.output(flat);
  Runnable run(small);
  const std::vector<std::pair<Tensor, Floats>> cases = {
      {float_tensor({4}, {0, 1, 0, 2}), {1, 2}},
      {float_tensor({4}, {3, 1, 0, 2}), {3, 1, 2}},
      {float_tensor({4}, {0, 0, 0, 0}), {}},
      {float_tensor({2}, {5, 6}), {5, 6}}};
  for (int turn = 0; turn < 3; ++turn) {
    for (const auto& [fed, expected] : cases) {
      std::vector<Datum> outputs = run({fed});
      CHECK(values_of<float>(outputs[0]) == expected);
      CHECK(outputs[1].tensor()->shape() == Shape{1, static_cast<Dim>(expected.size())});
      // Outputs of one memory would show each other's changes.
      for (auto& value : outputs[1].tensor()->mutable_values<std::int64_t>()) value = -7;
      for (const std::int64_t value : values_of<std::int64_t>(outputs[2])) CHECK(value >= 0);
    }
  }
}

TEST_CASE("a value of data-dependent shape may be two outputs and a view of it a third") {
  SmallGraph small;
  const ValueId x = small.input("x", {4});
  const ValueId places = small.node("NonZero", {x});
  const ValueId view = small.node("Reshape", {places, small.ints({-1})});
  for (const ValueId id : {places, places, view}) small.output(id);
  Runnable run(small);
  std::vector<Datum> outputs = run({float_tensor({4}, {0, 1, 0, 2})});
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(values_of<std::int64_t>(outputs[i]) == std::vector<std::int64_t>{1, 3});
    for (auto& value : outputs[i].tensor()->mutable_values<std::int64_t>()) value = -7;
  }
}

TEST_CASE("results follow when shapes change between runs, and back, many times") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim, kUnknownDim});
  const ValueId shape = small.node("Shape", {x});
  const ValueId exp = small.node("Exp", {x});
  const ValueId sum = small.node("Add", {exp, small.floats({1}, {1})});
  const ValueId turned = small.node("Transpose", {sum});
  small.output(small.node("Reshape", {turned, shape}, with({{"allowzero", attribute(1)}})));
  Runnable run(small);
  for (unsigned turn = 0; turn < 120; ++turn) {
    const Shape wanted{static_cast<Dim>(turn % 7), static_cast<Dim>(1 + turn % 40)};
    const Tensor fed = random_floats(wanted, turn);
    const auto expected = evaluated(small.graph, {fed});
    const auto found = run({fed});
    REQUIRE(found[0].tensor()->shape() == wanted);
    const auto a = values_of<float>(found[0]);
    const auto b = values_of<float>(expected[0]);
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
  }
  CHECK(run.executor().memory().plan_count <= 32);
}

TEST_CASE("shrinking between runs changes no result") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim});
  const ValueId a = small.node("Exp", {x});
  small.output(small.node("Add", {a, small.node("Neg", {x})}));
  small.output(small.node("NonZero", {a}));
  Runnable run(small);
  for (const Dim size : {3, 5, 3, 0, 5}) {
    const Tensor fed = random_floats({size});
    const auto found = run({fed});
    const auto expected = evaluated(small.graph, {fed});
    for (std::size_t i = 0; i < static_cast<std::size_t>(size); ++i) {
      CHECK(values_of<float>(found[0])[i] ==
            doctest::Approx(values_of<float>(expected[0])[i]).epsilon(1e-5));
    }
    CHECK(found[1].tensor()->shape() == Shape{1, size});
    run.executor().shrink();
    CHECK(run.executor().memory().arena_bytes == 0);
  }
}

TEST_CASE("sequences flow between nodes and out") {
  SmallGraph small;
  const ValueId x = small.input("x", {4});
  const ValueId parts = small.node("SplitToSequence", {small.node("Neg", {x}), small.ints({1, 3})});
  small.output(small.node("SequenceAt", {parts, small.ints({1})}));
  small.output(parts);
  Runnable run(small);
  for (int turn = 0; turn < 2; ++turn) {
    const std::vector<Datum> fed = {float_tensor({4}, {1, 2, 3, 4})};
    const auto outputs = run(fed);
    CHECK(values_of<float>(outputs[0]) == Floats{-2, -3, -4});
    REQUIRE(outputs[1].sequence() != nullptr);
    REQUIRE(outputs[1].sequence()->items.size() == 2);
    CHECK(values_of<float>(outputs[1].sequence()->items[0]) == Floats{-1});
  }
}

TEST_CASE("branches see values around them, constants and views too") {
  SmallGraph small;
  const ValueId condition = small.input("condition", {}, DType::Bool);
  const ValueId x = small.input("x", {2});
  const ValueId c = small.floats({2}, {10, 20});
  const ValueId y = small.node("Neg", {x});
  const auto branch = [&](const std::string& op) {
    auto inner = std::make_shared<Graph>();
    const ValueId own_y = inner->capture(y, "y", Type::tensor(DType::Float32, Shape{2}));
    const ValueId own_c = inner->capture(c, "c", Type::tensor(DType::Float32, Shape{2}));
    Node node;
    node.op_type = op;
    node.opset = 18;
    node.inputs = {own_y, own_c};
    node.outputs = {inner->add_value("z")};
    const ValueId z = node.outputs[0];
    inner->add_node(std::move(node));
    inner->add_output(z);
    return Attribute(std::move(inner));
  };
  small.output(small.node("If", {condition},
                          with({{"then_branch", branch("Add")}, {"else_branch", branch("Mul")}})));
  small.output(y);
  Runnable run(small);
  const auto flag = [](bool value) {
    auto tensor = make_tensor<bool>(Shape{}, {value});
    REQUIRE(tensor.ok());
    return Datum(std::move(tensor).value());
  };
  const Tensor fed = float_tensor({2}, {1, 2});
  CHECK(values_of<float>(run({flag(true), fed})[0]) == Floats{9, 18});
  CHECK(values_of<float>(run({flag(false), fed})[0]) == Floats{-10, -40});
  CHECK(values_of<float>(run({flag(true), fed})[1]) == Floats{-1, -2});
}

TEST_CASE("a run that is cancelled says so and the next one works") {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  small.output(small.node("Neg", {x}));
  Runnable run(small);
  const std::vector<Datum> fed = {float_tensor({2}, {1, 2})};
  std::vector<Datum> outputs(1);
  const std::atomic<bool> stop{true};
  const Status status = run.run(fed, outputs, &stop);
  REQUIRE(!status.ok());
  CHECK(status.code() == Code::Cancelled);
  CHECK(values_of<float>(run(fed)[0]) == Floats{-1, -2});
}

TEST_CASE("a failure names the node and the next run works") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim});
  const ValueId index = small.input("index", {1}, DType::Int64);
  small.output(small.node("Gather", {small.node("Neg", {x}), index}));
  Runnable run(small);
  std::vector<Datum> outputs(1);
  const std::vector<Datum> bad = {float_tensor({2}, {1, 2}), int_tensor({1}, {5})};
  const Status status = run.run(bad, outputs);
  REQUIRE(!status.ok());
  CHECK(status.to_string().find("(Gather)") != std::string::npos);
  CHECK(values_of<float>(run({float_tensor({2}, {1, 2}), int_tensor({1}, {1})})[0]) == Floats{-2});
}

TEST_CASE("threads that run at once with different shapes get their own results") {
  SmallGraph small;
  const ValueId x = small.input("x", {kUnknownDim, 8});
  const ValueId product = small.node("MatMul", {x, small.constant(random_floats({8, 8}))});
  const ValueId sum = small.node("Add", {product, x});
  small.output(small.node("Softmax", {sum}, with({{"axis", attribute(-1)}})));
  Runnable run(small, 3);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      for (unsigned turn = 0; turn < 60; ++turn) {
        const Tensor fed = random_floats({static_cast<Dim>(1 + (turn + thread) % 5), 8}, thread);
        const std::vector<Datum> inputs = {fed};
        std::vector<Datum> outputs(1);
        if (!run.run(inputs, outputs).ok()) {
          ++wrong;
          continue;
        }
        auto evaluator = Evaluator::create(small.graph);
        const auto expected = evaluator->run(inputs, {}, {});
        const auto a = outputs[0].tensor()->values<float>();
        const auto b = (*expected)[0].tensor()->values<float>();
        for (std::size_t i = 0; i < a.size(); ++i) wrong += std::abs(a[i] - b[i]) > 1e-5F;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("random graphs of functions and views give what the evaluator gives") {
  std::mt19937 random(7);
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  for (unsigned turn = 0; turn < 150; ++turn) {
    SmallGraph small;
    std::vector<ValueId> values = {small.input("x", {2, 6}), small.constant(random_floats({2, 6}))};
    for (std::size_t i = 3 + below(20); i > 0; --i) {
      const ValueId a = values[below(values.size())];
      const ValueId b = values[below(values.size())];
      const ValueId to_six = small.ints({2, 6});
      switch (below(6)) {
        case 0: values.push_back(small.node("Tanh", {a})); break;
        case 1: values.push_back(small.node("Add", {a, b})); break;
        case 2: values.push_back(small.node("Mul", {a, small.node("Sigmoid", {b})})); break;
        case 3: {
          const ValueId view = small.node("Reshape", {a, small.ints({12})});
          values.push_back(small.node("Reshape", {view, to_six}));
          break;
        }
        case 4:
          values.push_back(small.node("Reshape", {small.node("Transpose", {a}), to_six}));
          break;
        default: values.push_back(small.node("Identity", {a})); break;
      }
    }
    for (std::size_t i = 0; i < 3; ++i) small.output(values[below(values.size())]);
    small.output(values.back());
    Runnable run(small);
    for (unsigned repeat = 0; repeat < 2; ++repeat) {
      const std::vector<Datum> fed = {random_floats({2, 6}, turn + repeat)};
      const auto expected = evaluated(small.graph, fed);
      const auto found = run(fed);
      for (std::size_t k = 0; k < found.size(); ++k) {
        const auto a = values_of<float>(found[k]);
        const auto b = values_of<float>(expected[k]);
        for (std::size_t i = 0; i < a.size(); ++i) {
          CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-4));
        }
      }
    }
  }
}
