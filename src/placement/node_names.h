#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"

namespace sardonyx {

/// Everything that a rule can know a node by. Views into strings of the caller.
struct NodeNames {
  /// The name that it has now.
  std::string_view name;
  /// Names of the model's nodes that a pass made it from.
  std::vector<std::string_view> originals;
  /// Where the module stands that the node comes from, for models of exporters that number their
  /// nodes: "/model/layers.0/mlp/mul_3" and "model.layers.0.mlp"; "" when the model does not say.
  std::string_view module_path;
  std::string_view module_name;
  /// The first output's name: what a node without name and module is known by.
  std::string_view output;
  /// `layer_ann` of the node's metadata.
  std::string_view annotation;
};

/// The names that a node's metadata holds.
struct ModuleNames {
  std::string path;
  std::string name;
};

/// Reads pkg.torch.onnx.name_scopes, else namespace, of PyTorch's exporter. The path is spelled as
/// by its older exporter, so that one pattern serves models of both; empty texts when there is
/// neither or they are not of that form.
ModuleNames module_names(const Node& node);

/// The node's annotation, or "".
std::string_view annotation_of(const Node& node);

/// All of it for a node that no pass has touched. `modules` keeps the texts.
NodeNames names_of(const Graph& graph, const Node& node, ModuleNames& modules);

}  // namespace sardonyx
