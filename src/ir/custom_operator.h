#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/type.h"

namespace sardonyx {

class CustomKernel;
class Graph;
struct Node;

/// An operator whose meaning comes from outside the library. Nodes that it serves point to it;
/// everyone who would look up the operator's row asks it instead.
class CustomOperator {
 public:
  virtual ~CustomOperator() = default;

  /// Whether that provider executes it.
  virtual bool runs_on(std::string_view provider) const = 0;

  /// Checks the node, then sets the types of its outputs as far as they can be told. `inputs[i]`
  /// is null where it is left out; `outputs` come in with Kind::Unknown.
  /// Errors   InvalidModel, or what the operator's own code says; the caller adds the node.
  virtual Status infer(const Graph& graph, const Node& node, std::span<const Type* const> inputs,
                       std::span<Type> outputs) const = 0;

  /// The kernel (ep/custom_kernel.h) of a node whose types are inferred. It keeps nothing of the
  /// graph but handles of constants.
  virtual Result<std::shared_ptr<const CustomKernel>> create_kernel(const Graph& graph,
                                                                    const Node& node) const = 0;
};

/// One entry of the table that a session is given.
struct CustomOperatorEntry {
  std::string domain;
  std::string name;
  std::shared_ptr<const CustomOperator> op;
};

}  // namespace sardonyx
