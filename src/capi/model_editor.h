#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "capi/graph_view.h"

/// What the model editor builds: parts that refer to each other by name. Whoever takes a part in
/// owns it from then on (`is_owned`), and its release function does nothing any more.

namespace sardonyx::capi {

struct EditorValueInfo : OrtValueInfo {
  EditorValueInfo(std::string value_name, OrtTypeInfo* type)
      : OrtValueInfo(false, std::move(value_name)), type_info(type) {}
  std::unique_ptr<OrtTypeInfo> type_info;
  bool is_owned = false;
};

struct EditorNode : OrtNode {
  EditorNode(std::string node_name, std::string node_op, std::string node_domain)
      : OrtNode(false, 0, std::move(node_name), std::move(node_op), std::move(node_domain)) {}
  /// "" where one is left out.
  std::vector<std::string> input_names;
  std::vector<std::string> output_names;
  bool is_owned = false;
};

struct EditorGraph : OrtGraph {
  EditorGraph() : OrtGraph(false) {}
  /// Set by SetGraphInputs; a graph that adds to a model may leave the model's inputs alone.
  bool has_inputs = false;
  bool has_outputs = false;
  std::vector<std::unique_ptr<EditorValueInfo>> inputs;
  std::vector<std::unique_ptr<EditorValueInfo>> outputs;
  std::vector<std::pair<std::string, std::unique_ptr<OrtValue>>> initializers;
  std::vector<std::unique_ptr<EditorNode>> nodes;
  bool is_owned = false;
};

}  // namespace sardonyx::capi

struct OrtModel {
  std::vector<std::pair<std::string, std::int64_t>> opsets;
  std::unique_ptr<sardonyx::capi::EditorGraph> graph;
};

namespace sardonyx::capi {

/// For handles whose is_view is false.
inline const EditorGraph& editor_of(const OrtGraph* graph) {
  return *static_cast<const EditorGraph*>(graph);
}
inline const EditorNode& editor_of(const OrtNode* node) {
  return *static_cast<const EditorNode*>(node);
}
inline const EditorValueInfo& editor_of(const OrtValueInfo* value_info) {
  return *static_cast<const EditorValueInfo*>(value_info);
}

/// The node that was built, with its attributes and no edges.
Node bare_node(const EditorNode& edited);

/// The model that was built; tensors are shared with it, not copied.
/// Errors   InvalidArgument or InvalidModel, naming the value or the node: no graph, outputs or
///          ONNX operator set, a name that is made twice or that nothing makes.
Result<Model> to_model(const OrtModel& built);

/// Adds what was built to a model that was read: new operator sets, initializers and nodes, and the
/// inputs and outputs of the whole when they are given.
Result<Model> add_to_model(const OrtModel& built, const Model& model);

}  // namespace sardonyx::capi
