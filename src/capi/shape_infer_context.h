#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "capi/handles.h"
#include "capi/op_attr.h"
#include "ir/graph.h"

/// What a custom operator's shape inference sees of one node. Lives for one call.
struct OrtShapeInferContext {
  OrtShapeInferContext(const sardonyx::Graph& graph, const sardonyx::Node& node,
                       std::span<const sardonyx::Type* const> types);

  /// Puts what was said about outputs into their types.
  sardonyx::Status store(std::span<sardonyx::Type> outputs) const;

  const sardonyx::Node& node;
  std::vector<OrtTensorTypeAndShapeInfo> inputs;
  std::vector<std::optional<OrtTensorTypeAndShapeInfo>> outputs;
  /// Attributes that were asked for, so that their handles live as long as this.
  mutable std::vector<std::unique_ptr<OrtOpAttr>> attributes;
  /// Names of unknown sizes that inputs share, so that outputs may have them too.
  std::unordered_map<std::string, sardonyx::Dim> symbols;
};
