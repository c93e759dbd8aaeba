#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/function_ref.h"
#include "ir/attribute.h"
#include "ir/datum.h"
#include "ir/type.h"

namespace sardonyx {

class CustomOperator;

using ValueId = std::uint32_t;
using NodeId = std::uint32_t;
/// Stands for an input or output that is left out.
inline constexpr ValueId kNoValue = std::numeric_limits<ValueId>::max();
inline constexpr NodeId kNoNode = std::numeric_limits<NodeId>::max();

/// Where the bytes of an initializer lie in a file.
struct WeightOrigin {
  /// Absolute and without links.
  std::string file;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// One edge of a graph: made once, by a node, a graph input, an initializer or the outer graph.
struct Value {
  std::string name;
  Type type;
  /// The node that makes it, or kNoNode.
  NodeId producer = kNoNode;
  /// Known before anything runs: an initializer (not overridden by an input) or a folded result.
  std::optional<Tensor> constant;
  /// A constant that the model stores sparsely; the type is that of the dense tensor, which
  /// densify() makes.
  std::shared_ptr<const SparseTensor> sparse_constant;
  /// What a graph input is when nothing is fed.
  std::shared_ptr<const Tensor> default_value;
  /// Set for initializers whose bytes stand in a file.
  std::shared_ptr<const WeightOrigin> origin;
  bool is_input = false;
  bool is_output = false;
  /// A value of the enclosing graph, seen from a subgraph.
  bool is_captured = false;
  /// Number of times that nodes use it as an input (implicit ones through subgraphs included).
  std::uint32_t use_count = 0;
};

/// One application of an operator.
struct Node {
  /// "" is the ONNX domain ("ai.onnx" is read as "").
  std::string domain;
  std::string op_type;
  std::string name;
  /// Tells functions of one name apart.
  std::string overload;
  Attributes attributes;
  /// kNoValue where an optional one is left out.
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  /// Values of this graph that the node's subgraphs use, each once.
  std::vector<ValueId> implicit_inputs;
  std::vector<std::pair<std::string, std::string>> metadata;
  /// Opset version of the node's domain in the model; 0 when the model does not import the domain
  /// (never for ai.onnx).
  std::int64_t opset = 0;
  /// Set when the operator comes from the session's options, not from the table of operators.
  std::shared_ptr<const CustomOperator> custom;
  bool is_removed = false;

  /// "node 'name' (Op)", or "node with output 'y' (Op)" when it has no name; needs the graph.
  std::string describe(const Graph& graph) const;
};

/// A subgraph's view of a value of the graph around it.
struct Capture {
  ValueId outer;
  ValueId inner;
};

/// Nodes and the values between them. Ids stay valid while the graph is changed; removed nodes
/// keep theirs. All changes go through the functions, which keep producers and use
/// counts right.
class Graph {
 public:
  Graph() = default;
  /// Copying copies subgraphs too.
  Graph(const Graph& other);
  Graph& operator=(const Graph& other);
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;

  std::string name;
  std::string doc_string;
  std::vector<std::pair<std::string, std::string>> metadata;

  /// Makes room for that many more values and nodes.
  void reserve(std::size_t values, std::size_t nodes);
  ValueId add_value(std::string value_name, Type type = {});
  /// Marks a value as the next graph input or output. A value can be output more than once.
  void add_input(ValueId value);
  void add_output(ValueId value);
  void set_output(std::size_t index, ValueId value);
  void set_constant(ValueId value, Tensor tensor);
  /// The inner value for `outer` of the enclosing graph, made at the first call.
  ValueId capture(ValueId outer, std::string value_name, Type type);
  /// As capture() for an `outer` that is known to be not captured yet: does not search.
  ValueId add_capture(ValueId outer, std::string value_name, Type type);

  /// Renames the outer values of the captures: for a subgraph whose node moves to another graph.
  void map_captures(FunctionRef<ValueId(ValueId outer)> map);

  /// Adds a node, whose outputs must have no producer yet. Records uses of its implicit inputs
  /// from its subgraphs' captures.
  NodeId add_node(Node node);
  void remove_node(NodeId node);
  void set_input(NodeId node, std::size_t index, ValueId value);
  void set_inputs(NodeId node, std::vector<ValueId> values);
  /// Gives output `index` of `node` another value (which must have no producer); the former value
  /// is left without producer. kNoValue drops the output.
  void replace_node_output(NodeId node, std::size_t index, ValueId value);
  /// Makes every use of `from` (inputs, subgraph captures, graph outputs) a use of `to`. A graph
  /// output keeps its position but is named like `to`: passes that would rename one leave the
  /// node in place instead.
  void replace_uses(ValueId from, ValueId to);

  const std::vector<ValueId>& inputs() const { return inputs_; }
  const std::vector<ValueId>& outputs() const { return outputs_; }
  const std::vector<Capture>& captures() const { return captures_; }
  std::size_t value_count() const { return values_.size(); }
  /// Ids below this may be removed nodes.
  std::size_t node_count() const { return nodes_.size(); }
  const Value& value(ValueId id) const { return values_[id]; }
  Value& value(ValueId id) { return values_[id]; }
  const Node& node(NodeId id) const { return nodes_[id]; }
  /// Attributes, names and metadata may be changed in place; edges only by the functions above.
  Node& node(NodeId id) { return nodes_[id]; }

  /// Live nodes that use the value, each once, in no particular order. Costs the number of uses
  /// ever recorded: do not call it on constants that thousands of nodes share.
  std::vector<NodeId> consumers(ValueId id) const;
  /// The one live node that uses the value exactly once, or kNoNode (also when it is an output).
  NodeId sole_consumer(ValueId id) const;

  /// Live nodes so that producers come before consumers; ties keep the order of ids.
  /// Errors   InvalidModel when there is a cycle; the message names a node on it.
  Result<std::vector<NodeId>> topological_order() const;

  /// A name that no value of this graph has, beginning with `stem`.
  std::string unique_name(const std::string& stem);

  /// Recomputes captures' uses after a subgraph of `node` was changed from outside.
  void refresh_implicit_inputs(NodeId node);

 private:
  void add_use(ValueId value, NodeId node);
  void drop_use(ValueId value);
  void retarget_captures(NodeId node, ValueId from, ValueId to);

  std::vector<Value> values_;
  std::vector<Node> nodes_;
  /// Per value: nodes that use or once used it.
  std::vector<std::vector<NodeId>> uses_;
  std::vector<ValueId> inputs_;
  std::vector<ValueId> outputs_;
  std::vector<Capture> captures_;
  std::uint64_t next_name_ = 0;
};

/// Gives a copied node subgraphs of its own, so that changing them leaves the original alone.
void detach_subgraphs(Node& node);

/// The subgraphs among a node's attributes.
std::vector<Graph*> subgraphs(Node& node);
std::vector<const Graph*> subgraphs(const Node& node);

/// Calls `visit` for the graph and all subgraphs inside it, inner ones first.
Status for_each_graph(Graph& graph, FunctionRef<Status(Graph&)> visit);

/// A function defined by the model. Its body's inputs and outputs are the function's, in order.
struct Function {
  std::string domain;
  std::string name;
  std::string overload;
  /// Attributes without default, which a caller must or may give.
  std::vector<std::string> attribute_names;
  Attributes attribute_defaults;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  std::shared_ptr<const Graph> body;
};

/// Everything in a model file.
struct Model {
  std::int64_t ir_version = 0;
  std::string producer_name;
  std::string producer_version;
  std::string domain;
  std::int64_t model_version = 0;
  std::string doc_string;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  std::vector<std::pair<std::string, std::string>> metadata;
  std::vector<Function> functions;
  SymbolTable symbols;
  Graph graph;
  /// The file it was read from; "" for a model from memory.
  std::string path;
  /// Keeps mapped files alive that initializers point into.
  std::vector<std::shared_ptr<const void>> keep_alive;

  /// The version imported for `op_domain` ("" = ai.onnx), or 0.
  std::int64_t opset(std::string_view op_domain) const;
};

}  // namespace sardonyx
