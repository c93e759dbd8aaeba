#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "passes/match.h"

namespace sardonyx {

/// What rewrites ask about quantisation as models write it down.

inline bool is_8_bit(DType dtype) { return dtype == DType::Int8 || dtype == DType::UInt8; }

inline ValueId input_or_none(const Node& node, std::size_t i) {
  return i < node.inputs.size() ? node.inputs[i] : kNoValue;
}

/// The DequantizeLinear without blocks that makes the value, or null.
inline const Node* dequantized(const Graph& graph, ValueId id) {
  if (id == kNoValue || !is_op(graph, graph.value(id).producer, "DequantizeLinear")) {
    return nullptr;
  }
  const Node& node = graph.node(graph.value(id).producer);
  return node.attributes.get_int("block_size", 0) == 0 ? &node : nullptr;
}

/// Whether a QuantizeLinear or DequantizeLinear has one scale, a float32.
inline bool has_one_scale(const Graph& graph, const Node& node) {
  const Type& scale = graph.value(node.inputs[1]).type;
  return scale.dtype == DType::Float32 && scale.shape && scale.shape->is_static() &&
         scale.shape->element_count() == 1;
}

/// Whether the node is a QuantizeLinear to 8 bits with one scale, whose zero point is there.
inline bool is_plain_quantize(const Graph& graph, NodeId id) {
  if (!is_op(graph, id, "QuantizeLinear")) return false;
  const Node& node = graph.node(id);
  return has_one_scale(graph, node) && input_or_none(node, 2) != kNoValue &&
         is_8_bit(graph.value(node.inputs[2]).type.dtype);
}

/// A MatMulIntegerToFloat without edges yet: A, B, their scales, their zero points and the bias.
inline Node scaled_product(std::string name) {
  Node node;
  node.domain = "com.microsoft";
  node.op_type = "MatMulIntegerToFloat";
  node.opset = 1;
  node.name = std::move(name);
  return node;
}

}  // namespace sardonyx
