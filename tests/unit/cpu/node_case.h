#pragma once

#include <doctest/doctest.h>

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph.h"

namespace sardonyx {

/// How far results may be from the plain evaluator's.
struct Tolerance {
  /// |found - expected| <= error * (1 + |expected|); 0 asks for equality.
  double error = 0;
};

/// One node that runs as its kernel and as the plain evaluator:
/// CHECK(NodeCase("Add", 14).input(a).input(b).difference({1e-6}) == "").
class NodeCase {
 public:
  NodeCase(std::string op_type, std::int64_t opset, std::string domain = "");

  /// An input that is fed.
  NodeCase& input(Tensor tensor) { return add(std::move(tensor), false); }
  NodeCase& constant(Tensor tensor) { return add(std::move(tensor), true); }
  NodeCase& input(Tensor tensor, bool is_constant) { return add(std::move(tensor), is_constant); }
  NodeCase& no_input();
  template <typename T>
  NodeCase& attribute(std::string name, T value) {
    node_.attributes.set(std::move(name), Attribute(std::move(value)));
    return *this;
  }
  NodeCase& outputs(std::size_t count);
  /// Inputs are declared without sizes: shapes are known at run time only.
  NodeCase& unknown_sizes();

  /// "" if the kernel gives what the evaluator gives, with one and three threads alike, or refuses
  /// what it refuses; else what is different.
  std::string difference(Tolerance tolerance);
  /// The evaluator's refusal, or "".
  std::string refusal();

 private:
  NodeCase& add(Tensor tensor, bool is_constant);
  void finish();
  std::string describe() const;
  Result<std::vector<Datum>> run_kernel(int thread_count, bool gives_outputs,
                                        const std::vector<Datum>& expected);

  Graph graph_;
  Node node_;
  std::vector<Datum> fed_;
  std::size_t output_count_ = 1;
  bool is_finished_ = false;
};

/// Reproducible random tensors and choices.
class Source {
 public:
  explicit Source(std::uint64_t seed) : random_(seed) {}

  std::int64_t between(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random_);
  }
  bool chance(double probability) { return std::bernoulli_distribution(probability)(random_); }
  template <typename T>
  T one_of(std::initializer_list<T> values) {
    return *(values.begin() + between(0, static_cast<std::int64_t>(values.size()) - 1));
  }
  Tensor floats(const Shape& shape, float low = -2, float high = 2);
  /// Any bytes: full range.
  Tensor bytes(DType dtype, const Shape& shape);
  Tensor zeros(DType dtype, const Shape& shape);
  DType dtype_8_bit() { return chance(0.5) ? DType::Int8 : DType::UInt8; }

 private:
  std::mt19937_64 random_;
};

inline Tensor ints(std::initializer_list<std::int64_t> values) {
  auto tensor = make_tensor<std::int64_t>(Shape{static_cast<Dim>(values.size())}, values);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

inline Tensor number(float value) {
  auto tensor = make_tensor<float>(Shape{}, {value});
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

/// Where the first element differs, or "".
std::string compare(const Tensor& found, const Tensor& expected, Tolerance tolerance);

}  // namespace sardonyx
