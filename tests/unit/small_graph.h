#pragma once

#include <doctest/doctest.h>

#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/lower.h"
#include "cpu/provider.h"
#include "exec/executor.h"
#include "ir/graph.h"
#include "ops/evaluate.h"
#include "ops/infer.h"

namespace sardonyx {

/// A graph written down in a test, value by value.
class SmallGraph {
 public:
  Graph graph;

  ValueId input(const std::string& name, Shape shape, DType dtype = DType::Float32) {
    const ValueId id = graph.add_value(name, Type::tensor(dtype, shape));
    graph.add_input(id);
    return id;
  }
  ValueId constant(Tensor tensor) {
    const ValueId id =
        graph.add_value(graph.unique_name("c"), Type::tensor(tensor.dtype(), tensor.shape()));
    graph.set_constant(id, std::move(tensor));
    return id;
  }
  ValueId floats(const Shape& shape, std::initializer_list<float> values) {
    auto tensor = make_tensor<float>(shape, values);
    REQUIRE(tensor.ok());
    return constant(std::move(tensor).value());
  }
  ValueId ints(std::initializer_list<std::int64_t> values) {
    auto tensor = make_tensor<std::int64_t>(Shape{static_cast<Dim>(values.size())}, values);
    REQUIRE(tensor.ok());
    return constant(std::move(tensor).value());
  }
  /// A node of the ONNX domain with one output.
  ValueId node(const std::string& op, std::vector<ValueId> inputs, Attributes attributes = {},
               std::int64_t opset = 18, const std::string& domain = "") {
    return nodes(op, std::move(inputs), 1, std::move(attributes), opset, domain)[0];
  }
  std::vector<ValueId> nodes(const std::string& op, std::vector<ValueId> inputs,
                             std::size_t output_count, Attributes attributes = {},
                             std::int64_t opset = 18, const std::string& domain = "") {
    Node made;
    made.op_type = op;
    made.domain = domain;
    made.opset = opset;
    made.attributes = std::move(attributes);
    made.inputs = std::move(inputs);
    for (std::size_t i = 0; i < output_count; ++i) {
      made.outputs.push_back(graph.add_value(graph.unique_name(op)));
    }
    std::vector<ValueId> outputs = made.outputs;
    graph.add_node(std::move(made));
    return outputs;
  }
  void output(ValueId id) { graph.add_output(id); }

  /// Infers types, which must succeed.
  SmallGraph& infer() {
    const Status status = infer_types(graph);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    return *this;
  }
};

/// {{"axis", 1}}: attributes of a node.
inline Attributes with(std::initializer_list<std::pair<const char*, Attribute>> entries) {
  Attributes attributes;
  for (const auto& [name, value] : entries) attributes.set(name, value);
  return attributes;
}
inline Attribute attribute(std::initializer_list<std::int64_t> values) {
  return std::vector<std::int64_t>(values);
}
inline Attribute attribute(std::int64_t value) { return value; }

inline Tensor float_tensor(const Shape& shape, std::initializer_list<float> values) {
  auto tensor = make_tensor<float>(shape, values);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}
inline Tensor int_tensor(const Shape& shape, std::initializer_list<std::int64_t> values) {
  auto tensor = make_tensor<std::int64_t>(shape, values);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}
inline Tensor random_floats(const Shape& shape, unsigned seed = 1) {
  auto tensor = Tensor::allocate(DType::Float32, shape);
  REQUIRE(tensor.ok());
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> distribution(-2, 2);
  for (float& value : tensor->mutable_values<float>()) value = distribution(random);
  return std::move(tensor).value();
}

template <typename T>
std::vector<T> values_of(const Datum& datum) {
  REQUIRE(datum.tensor() != nullptr);
  REQUIRE(datum.tensor()->dtype() == DTypeOf<T>::value);
  const auto values = datum.tensor()->values<T>();
  return {values.begin(), values.end()};
}

/// A graph as its nodes' kernels, without passes.
class Runnable {
 public:
  explicit Runnable(SmallGraph& small, int thread_count = 2)
      : pool_(ThreadPoolOptions{thread_count}) {
    small.infer();
    PackedWeights weights(store_, {std::size_t{1} << 28, std::size_t{1} << 28});
    auto program = lower(small.graph, weights, thread_count);
    REQUIRE_MESSAGE(program.ok(), program.status().to_string());
    REQUIRE(weights.make_all(&pool_).ok());
    executor_ = std::make_unique<Executor>(std::move(program).value());
    output_count_ = small.graph.outputs().size();
  }

  Status run(std::span<const Datum> inputs, std::span<Datum> outputs,
             const std::atomic<bool>* cancel = nullptr) {
    std::mt19937_64 random(1);
    RunState state{pool_, cancel, nullptr, &random};
    return executor_->run(inputs, {}, outputs, state);
  }
  /// The outputs; the run must succeed.
  std::vector<Datum> operator()(std::vector<Datum> inputs) {
    std::vector<Datum> outputs(output_count_);
    const Status status = run(inputs, outputs);
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    return outputs;
  }
  Executor& executor() { return *executor_; }

 private:
  ThreadPool pool_;
  WeightStore store_;
  std::unique_ptr<Executor> executor_;
  std::size_t output_count_ = 0;
};

/// What the plain evaluator gives; it must succeed.
inline std::vector<Datum> evaluated(const Graph& graph, const std::vector<Datum>& inputs) {
  auto evaluator = Evaluator::create(graph);
  REQUIRE_MESSAGE(evaluator.ok(), evaluator.status().to_string());
  auto outputs = evaluator->run(inputs, {}, {});
  REQUIRE_MESSAGE(outputs.ok(), outputs.status().to_string());
  return std::move(outputs).value();
}

}  // namespace sardonyx
