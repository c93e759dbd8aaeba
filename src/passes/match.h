#pragma once

#include <cmath>
#include <limits>
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

/// The bounds of a Clip, where they are known; an open end is infinite, or the largest float where
/// the version says so.
struct ClipBounds {
  float low;
  float high;
};
inline std::optional<ClipBounds> clip_bounds(const Graph& graph, const Node& node) {
  constexpr float kLargest = 3.402823466e38F;
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.opset < 11) {
    return ClipBounds{node.attributes.get_float("min", -kLargest),
                      node.attributes.get_float("max", kLargest)};
  }
  const auto bound = [&](std::size_t i, float open) -> std::optional<float> {
    if (i >= node.inputs.size() || node.inputs[i] == kNoValue) return open;
    return scalar_constant(graph, node.inputs[i]);
  };
  const auto low = bound(1, -kInfinity);
  const auto high = bound(2, kInfinity);
  if (!low || !high) return std::nullopt;
  return ClipBounds{*low, *high};
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
