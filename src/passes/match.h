#pragma once

#include <cmath>
#include <optional>
#include <string_view>

#include "ir/graph.h"

namespace sardonyx {

/// What rewrites ask about a graph, over and over.

/// Whether the node is there, alive, and this operator of the ONNX domain.
inline bool is_op(const Graph& graph, NodeId id, std::string_view name) {
  return id != kNoNode && !graph.node(id).is_removed && graph.node(id).domain.empty() &&
         graph.node(id).op_type == name;
}

/// The one number of a constant float tensor.
inline std::optional<float> scalar_constant(const Graph& graph, ValueId id) {
  if (id == kNoValue) return std::nullopt;
  const auto& constant = graph.value(id).constant;
  if (!constant || constant->dtype() != DType::Float32 || constant->element_count() != 1) {
    return std::nullopt;
  }
  return constant->values<float>()[0];
}

/// Whether the value is that constant, to a relative 1e-4: exporters round.
inline bool is_number(const Graph& graph, ValueId id, float expected) {
  const auto value = scalar_constant(graph, id);
  return value && std::abs(*value - expected) <= 1e-4F * std::abs(expected);
}

/// The input of a binary node that is not `one`; kNoValue when `one` is not an input.
inline ValueId other_input(const Node& node, ValueId one) {
  if (node.inputs.size() != 2) return kNoValue;
  if (node.inputs[0] == one) return node.inputs[1];
  return node.inputs[1] == one ? node.inputs[0] : kNoValue;
}

/// Both ranks are known and equal: what lies between widened nothing.
inline bool have_same_rank(const Graph& graph, ValueId a, ValueId b) {
  const auto& first = graph.value(a).type.shape;
  const auto& second = graph.value(b).type.shape;
  return first && second && first->rank() == second->rank();
}

/// The same shape for certain: equal sizes and symbols, nothing unknown.
inline bool have_same_shape(const Graph& graph, ValueId a, ValueId b) {
  const auto& first = graph.value(a).type.shape;
  const auto& second = graph.value(b).type.shape;
  if (!first || !second || !(*first == *second)) return false;
  for (const Dim dim : *first) {
    if (dim == kUnknownDim) return false;
  }
  return true;
}

}  // namespace sardonyx
