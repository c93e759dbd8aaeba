#pragma once

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/evaluate.h"
#include "ops/infer_context.h"
#include "ops/schema.h"

namespace sardonyx {

/// A tensor with these elements.
template <typename T>
Tensor tensor_of(const Shape& shape, std::initializer_list<T> values) {
  auto tensor = make_tensor<T>(shape, values);
  REQUIRE(tensor.ok());
  return std::move(tensor).value();
}

/// One node to evaluate or infer in a test: OpCase("Add", 14).input(a).input(b).evaluate().
class OpCase {
 public:
  OpCase(std::string op_type, std::int64_t opset, std::string domain = "") {
    node_.op_type = std::move(op_type);
    node_.opset = opset;
    node_.domain = std::move(domain);
  }

  OpCase& input(Datum datum) {
    types_.push_back(datum.type());
    data_.push_back(std::move(datum));
    return add_edge();
  }
  /// An input of which only the type is known: for infer() alone.
  OpCase& input_type(Type type) {
    types_.push_back(std::move(type));
    data_.emplace_back();
    return add_edge();
  }
  OpCase& no_input() {
    types_.emplace_back();
    data_.emplace_back();
    node_.inputs.push_back(kNoValue);
    return *this;
  }
  template <typename T>
  OpCase& attribute(std::string name, T value) {
    node_.attributes.set(std::move(name), Attribute(std::move(value)));
    return *this;
  }
  OpCase& outputs(std::size_t count) {
    output_count_ = count;
    return *this;
  }

  Result<std::vector<Datum>> evaluate() {
    finish();
    SDX_ASSIGN(const OpSchema* schema, find_schema(node_.domain, node_.op_type, node_.opset));
    std::vector<const Datum*> inputs;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      inputs.push_back(node_.inputs[i] == kNoValue ? nullptr : &data_[i]);
    }
    return evaluate_node(node_, *schema, graph_, inputs);
  }

  /// The first output, which must be there.
  Tensor tensor() {
    auto result = evaluate();
    const std::string message = result.ok() ? "" : result.status().to_string();
    CAPTURE(message);
    REQUIRE(result.ok());
    REQUIRE(result->at(0).tensor() != nullptr);
    return *result->at(0).tensor();
  }
  /// What evaluating is refused with; "" if it is not.
  std::string error() {
    auto result = evaluate();
    return result.ok() ? "" : result.status().message();
  }

  Result<std::vector<Type>> infer() {
    finish();
    SDX_ASSIGN(const OpSchema* schema, find_schema(node_.domain, node_.op_type, node_.opset));
    std::vector<const Type*> types;
    std::vector<const Tensor*> data;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      types.push_back(node_.inputs[i] == kNoValue ? nullptr : &types_[i]);
      data.push_back(data_[i].tensor());
    }
    std::vector<Type> outputs(node_.outputs.size());
    SDX_TRY(check_signature(node_, *schema, &graph_, types, outputs));
    InferContext context(node_, *schema, &graph_, {types, data, outputs});
    SDX_TRY(schema->infer(context));
    return outputs;
  }
  /// The first output's type as text, or the message that it is refused with; an unknown rank is
  /// shown as "?".
  std::string inferred() {
    auto types = infer();
    if (!types.ok()) return types.status().message();
    const Type& type = types->at(0);
    return std::string(dtype_name(type.dtype)) + (type.shape ? type.shape->to_string() : "?");
  }

 private:
  OpCase& add_edge() {
    node_.inputs.push_back(graph_.add_value("x" + std::to_string(node_.inputs.size())));
    return *this;
  }
  void finish() {
    if (!node_.outputs.empty()) return;
    for (std::size_t i = 0; i < output_count_; ++i) {
      node_.outputs.push_back(graph_.add_value("y" + std::to_string(i)));
    }
  }

  Graph graph_;
  Node node_;
  std::vector<Type> types_;
  std::vector<Datum> data_;
  std::size_t output_count_ = 1;
};

/// Elements of a tensor, which must be of that type.
template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  REQUIRE(tensor.dtype() == DTypeOf<T>::value);
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace sardonyx
