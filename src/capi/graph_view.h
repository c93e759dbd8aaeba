#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "capi/handles.h"
#include "capi/op_attr.h"
#include "ir/graph.h"

/// Handles of the graph interface. Each is either part of a GraphView (what plugins read) or made
/// by the model editor (what programs build); functions that take one tell them apart by `is_view`.

struct OrtValueInfo {
  explicit OrtValueInfo(bool view, std::string value_name)
      : is_view(view), name(std::move(value_name)) {}
  virtual ~OrtValueInfo() = default;
  bool is_view;
  std::string name;
};

struct OrtNode {
  OrtNode(bool view, std::size_t node_id, std::string node_name, std::string node_op,
          std::string node_domain)
      : is_view(view),
        id(node_id),
        name(std::move(node_name)),
        op_type(std::move(node_op)),
        domain(std::move(node_domain)) {}
  virtual ~OrtNode() = default;
  bool is_view;
  std::size_t id;
  std::string name;
  std::string op_type;
  std::string domain;
  std::vector<OrtOpAttr> attributes;
};

struct OrtGraph {
  explicit OrtGraph(bool view) : is_view(view) {}
  virtual ~OrtGraph() = default;
  bool is_view;
};

/// Where the bytes of an initializer stand.
struct OrtExternalInitializerInfo {
  /// Below the model's folder when it lies there, else absolute.
  std::string file;
  std::int64_t offset = 0;
  std::size_t byte_size = 0;
};

namespace sardonyx::capi {

class GraphView;

/// What holds for a whole model, whichever part of it a view shows.
struct ModelFacts {
  ModelMetadata metadata;
  /// The file it was read from; "" for a model from memory.
  std::string path;
  /// Its absolute path without links, and its folder's; what tells external data from own.
  std::string real_path;
  std::string real_folder;
  std::int64_t ir_version = 0;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  /// Names of the dimensions; null: they have none. Must outlive the facts.
  const SymbolTable* symbols = nullptr;
};

/// The facts of a model, whose symbol table they refer to.
std::shared_ptr<const ModelFacts> model_facts(const Model& model);

/// One edge in a view. What a subgraph uses of the graph around it has the name that it has there.
struct ViewValue : OrtValueInfo {
  struct Use {
    const OrtNode* node;
    /// -1 for an implicit input.
    std::int64_t index;
  };
  ViewValue(const GraphView& view, ValueId value_id, const Value& own, const Value& origin)
      : OrtValueInfo(true, own.is_captured ? origin.name : own.name),
        graph(view),
        id(value_id),
        value(own),
        source(origin) {}

  const GraphView& graph;
  ValueId id;
  /// In the graph of the view.
  const Value& value;
  /// The same, or, for a captured value, that of the graph that makes it.
  const Value& source;
  const OrtNode* producer = nullptr;
  std::size_t producer_output = 0;
  std::vector<Use> uses;
  bool is_required_input = false;
  bool is_optional_input = false;
  bool is_output = false;
  /// Made at the first question, under the view's lock.
  mutable std::unique_ptr<OrtTypeInfo> type_info;
  mutable std::unique_ptr<OrtValue> initializer;

  /// The tensor that the value has before anything runs, or null.
  const Tensor* initial_tensor() const {
    return source.constant ? &*source.constant : source.default_value.get();
  }
  bool is_constant() const { return source.constant.has_value(); }
};

/// One node in a view.
struct ViewNode : OrtNode {
  struct Subgraph {
    std::string attribute;
    std::unique_ptr<GraphView> view;
  };
  ViewNode(const GraphView& view, NodeId node_id, const Node& own);
  ~ViewNode() override;

  const GraphView& graph;
  const Node& node;
  /// Null where an optional one is left out.
  std::vector<const ViewValue*> inputs;
  std::vector<const ViewValue*> outputs;
  std::vector<const ViewValue*> implicit_inputs;
  std::vector<Subgraph> subgraphs;
  /// Name of the provider that the node is given to; "" = nobody yet.
  std::string provider;
};

/// Some nodes of a graph, with what goes into them and comes out of them, in order.
struct GraphPart {
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
};

/// What the nodes need from outside (constants too when `with_constants`, each value once, in the
/// order of use) and what somebody outside needs of them (in the order of making).
GraphPart part_of(const Graph& graph, std::span<const NodeId> nodes, bool with_constants);

/// A graph, or a part of one, as the C interface shows it: an immutable snapshot that owns a handle
/// per node and value. Subgraphs are views of their own, whose captured values lead to the values
/// around them; a value's handle belongs to one view, ids are those of the graph.
///
/// The graph, its constants and the facts' symbol table must stay as they are as long as the view
/// lives; so must the view around a subgraph. Reading is thread-safe.
/// Cost     linear in nodes and values; weights are neither copied nor touched. Type descriptions
///          and initializer values are made when they are asked for.
class GraphView : public OrtGraph {
 public:
  /// A whole graph, its nodes in topological order.
  /// Errors   InvalidModel when there is a cycle.
  static Result<std::unique_ptr<GraphView>> whole(const Graph& graph,
                                                  std::shared_ptr<const ModelFacts> facts);
  /// The nodes of a part, in the order in which the part lists them. `outer` is the view of the
  /// graph around `graph`, null for a main graph.
  static Result<std::unique_ptr<GraphView>> of_part(const Graph& graph,
                                                    std::shared_ptr<const ModelFacts> facts,
                                                    const GraphPart& part,
                                                    const GraphView* outer = nullptr);

  const Graph& graph() const { return graph_; }
  const ModelFacts& facts() const { return *facts_; }
  const std::shared_ptr<const ModelFacts>& shared_facts() const { return facts_; }
  const GraphView* outer() const { return outer_; }
  /// The node that this is a subgraph of, or null.
  const OrtNode* parent_node() const { return parent_node_; }
  const std::vector<const ViewValue*>& inputs() const { return inputs_; }
  const std::vector<const ViewValue*>& outputs() const { return outputs_; }
  const std::vector<const ViewValue*>& initializers() const { return initializers_; }
  const std::deque<ViewNode>& nodes() const { return nodes_; }
  /// The handle, or null when the view does not show it.
  const ViewNode* find_node(NodeId id) const;
  const ViewValue* find_value(ValueId id) const;
  /// What Node_GetEpName says; before anybody reads the view.
  void set_provider(NodeId id, const std::string& name);

  const OrtTypeInfo* type_info(const ViewValue& value) const;
  /// The initializer's value, or null.
  const OrtValue* initializer(const ViewValue& value) const;

 private:
  GraphView(const Graph& graph, std::shared_ptr<const ModelFacts> facts, const GraphView* outer);
  static Result<std::unique_ptr<GraphView>> whole_inside(const Graph& graph,
                                                         std::shared_ptr<const ModelFacts> facts,
                                                         const GraphView* outer,
                                                         const OrtNode* parent);
  Status add_all(const GraphPart& part);
  Status add_node(NodeId id);
  Status add_subgraphs(ViewNode& node);
  void add_initializers(bool is_whole);
  ViewValue* show(ValueId id);
  const Value& source_of(ValueId id) const;

  const Graph& graph_;
  std::shared_ptr<const ModelFacts> facts_;
  const GraphView* outer_;
  const OrtNode* parent_node_ = nullptr;
  std::deque<ViewNode> nodes_;
  std::deque<ViewValue> values_;
  std::unordered_map<NodeId, ViewNode*> node_index_;
  std::unordered_map<ValueId, ViewValue*> value_index_;
  std::unordered_map<ValueId, ValueId> captured_;
  std::vector<const ViewValue*> inputs_;
  std::vector<const ViewValue*> outputs_;
  std::vector<const ViewValue*> initializers_;
  mutable std::mutex mutex_;
};

/// The handle as part of a view, or NOT_IMPLEMENTED / InvalidArgument that names the parameter.
Result<const GraphView*> view_of(const OrtGraph* graph);
Result<const ViewNode*> view_of(const OrtNode* node);
Result<const ViewValue*> view_of(const OrtValueInfo* value_info);

}  // namespace sardonyx::capi
