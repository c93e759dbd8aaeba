#include "ir/graph.h"

#include <algorithm>
#include <queue>
#include <unordered_set>

#include "base/text.h"

namespace sardonyx {

void detach_subgraphs(Node& node) {
  for (auto& [name, attribute] : node.attributes) {
    if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      *graph = std::make_shared<Graph>(**graph);
    } else if (auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      for (auto& item : *graphs) item = std::make_shared<Graph>(*item);
    }
  }
}

std::string Node::describe(const Graph& graph) const {
  if (!name.empty()) return fmt::format("node '{}' ({})", name, op_type);
  for (const ValueId output : outputs) {
    if (output != kNoValue) {
      return fmt::format("node with output '{}' ({})", graph.value(output).name, op_type);
    }
  }
  return fmt::format("node without outputs ({})", op_type);
}

Graph::Graph(const Graph& other)
    : name(other.name),
      doc_string(other.doc_string),
      metadata(other.metadata),
      values_(other.values_),
      nodes_(other.nodes_),
      uses_(other.uses_),
      inputs_(other.inputs_),
      outputs_(other.outputs_),
      captures_(other.captures_),
      next_name_(other.next_name_) {
  for (Node& node : nodes_) detach_subgraphs(node);
}

Graph& Graph::operator=(const Graph& other) {
  if (this != &other) *this = Graph(other);
  return *this;
}

void Graph::reserve(std::size_t values, std::size_t nodes) {
  values_.reserve(values_.size() + values);
  uses_.reserve(uses_.size() + values);
  nodes_.reserve(nodes_.size() + nodes);
}

ValueId Graph::add_value(std::string value_name, Type type) {
  Value value;
  value.name = std::move(value_name);
  value.type = std::move(type);
  values_.push_back(std::move(value));
  uses_.emplace_back();
  return static_cast<ValueId>(values_.size() - 1);
}

void Graph::add_input(ValueId value) {
  inputs_.push_back(value);
  values_[value].is_input = true;
}

void Graph::add_output(ValueId value) {
  outputs_.push_back(value);
  values_[value].is_output = true;
}

void Graph::set_output(std::size_t index, ValueId value) {
  const ValueId former = outputs_[index];
  outputs_[index] = value;
  values_[former].is_output = std::find(outputs_.begin(), outputs_.end(), former) != outputs_.end();
  values_[value].is_output = true;
}

void Graph::set_constant(ValueId value, Tensor tensor) {
  values_[value].type = Type::tensor(tensor.dtype(), tensor.shape());
  values_[value].constant = std::move(tensor);
}

ValueId Graph::capture(ValueId outer, std::string value_name, Type type) {
  for (const Capture& existing : captures_) {
    if (existing.outer == outer) return existing.inner;
  }
  return add_capture(outer, std::move(value_name), std::move(type));
}

ValueId Graph::add_capture(ValueId outer, std::string value_name, Type type) {
  const ValueId inner = add_value(std::move(value_name), std::move(type));
  values_[inner].is_captured = true;
  captures_.push_back({outer, inner});
  return inner;
}

void Graph::map_captures(FunctionRef<ValueId(ValueId)> map) {
  for (Capture& captured : captures_) {
    captured.outer = map(captured.outer);
    if (captured.outer != kNoValue) continue;
    // What is left out around the graph is left out inside it.
    const ValueId gone = captured.inner;
    for (const NodeId id : consumers(gone)) {
      for (std::size_t i = 0; i < nodes_[id].inputs.size(); ++i) {
        if (nodes_[id].inputs[i] == gone) set_input(id, i, kNoValue);
      }
      for (Graph* subgraph : subgraphs(nodes_[id])) {
        subgraph->map_captures([&](ValueId outer) { return outer == gone ? kNoValue : outer; });
      }
      refresh_implicit_inputs(id);
    }
  }
  std::erase_if(captures_, [](const Capture& captured) { return captured.outer == kNoValue; });
}

void Graph::add_use(ValueId value, NodeId node) {
  if (value == kNoValue) return;
  ++values_[value].use_count;
  uses_[value].push_back(node);
}

void Graph::drop_use(ValueId value) {
  if (value != kNoValue) --values_[value].use_count;
}

NodeId Graph::add_node(Node node) {
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(std::move(node));
  for (const ValueId input : nodes_[id].inputs) add_use(input, id);
  for (const ValueId output : nodes_[id].outputs) {
    if (output != kNoValue) values_[output].producer = id;
  }
  nodes_[id].implicit_inputs.clear();
  refresh_implicit_inputs(id);
  return id;
}

void Graph::refresh_implicit_inputs(NodeId id) {
  for (const ValueId value : nodes_[id].implicit_inputs) drop_use(value);
  std::vector<ValueId> implicit;
  for (const Graph* subgraph : subgraphs(std::as_const(nodes_[id]))) {
    for (const Capture& captured : subgraph->captures()) implicit.push_back(captured.outer);
  }
  std::sort(implicit.begin(), implicit.end());
  implicit.erase(std::unique(implicit.begin(), implicit.end()), implicit.end());
  nodes_[id].implicit_inputs = std::move(implicit);
  for (const ValueId value : nodes_[id].implicit_inputs) add_use(value, id);
}

void Graph::remove_node(NodeId id) {
  Node& node = nodes_[id];
  if (node.is_removed) return;
  for (const ValueId input : node.inputs) drop_use(input);
  for (const ValueId input : node.implicit_inputs) drop_use(input);
  for (const ValueId output : node.outputs) {
    if (output != kNoValue && values_[output].producer == id) values_[output].producer = kNoNode;
  }
  node.inputs.clear();
  node.outputs.clear();
  node.implicit_inputs.clear();
  node.attributes = {};
  node.is_removed = true;
}

void Graph::set_input(NodeId id, std::size_t index, ValueId value) {
  ValueId& slot = nodes_[id].inputs[index];
  drop_use(slot);
  slot = value;
  add_use(value, id);
}

void Graph::set_inputs(NodeId id, std::vector<ValueId> values) {
  for (const ValueId input : nodes_[id].inputs) drop_use(input);
  nodes_[id].inputs = std::move(values);
  for (const ValueId input : nodes_[id].inputs) add_use(input, id);
}

void Graph::replace_node_output(NodeId id, std::size_t index, ValueId value) {
  ValueId& slot = nodes_[id].outputs[index];
  if (slot != kNoValue && values_[slot].producer == id) values_[slot].producer = kNoNode;
  slot = value;
  if (value != kNoValue) values_[value].producer = id;
}

void Graph::retarget_captures(NodeId id, ValueId from, ValueId to) {
  for (Graph* subgraph : subgraphs(nodes_[id])) {
    for (Capture& captured : subgraph->captures_) {
      if (captured.outer == from) captured.outer = to;
    }
  }
  refresh_implicit_inputs(id);
}

void Graph::replace_uses(ValueId from, ValueId to) {
  for (const NodeId id : consumers(from)) {
    for (std::size_t i = 0; i < nodes_[id].inputs.size(); ++i) {
      if (nodes_[id].inputs[i] == from) set_input(id, i, to);
    }
    const auto& implicit = nodes_[id].implicit_inputs;
    if (std::find(implicit.begin(), implicit.end(), from) != implicit.end()) {
      retarget_captures(id, from, to);
    }
  }
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i] == from) set_output(i, to);
  }
}

std::vector<NodeId> Graph::consumers(ValueId id) const {
  std::vector<NodeId> result;
  if (values_[id].use_count == 0) return result;
  for (const NodeId user : uses_[id]) {
    const Node& node = nodes_[user];
    const bool uses = std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end() ||
                      std::find(node.implicit_inputs.begin(), node.implicit_inputs.end(), id) !=
                          node.implicit_inputs.end();
    if (uses) result.push_back(user);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

NodeId Graph::sole_consumer(ValueId id) const {
  if (values_[id].use_count != 1 || values_[id].is_output) return kNoNode;
  const auto users = consumers(id);
  return users.empty() ? kNoNode : users.front();
}

namespace {

/// The live nodes in the order of their ids, if that is one in which they can run.
std::vector<NodeId> order_of_ids(const Graph& graph) {
  std::vector<NodeId> order;
  order.reserve(graph.node_count());
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    const auto comes_later = [&](ValueId input) {
      if (input == kNoValue) return false;
      const NodeId producer = graph.value(input).producer;
      return producer != kNoNode && producer >= id;
    };
    const auto& implicit = node.implicit_inputs;
    const bool waits = std::any_of(node.inputs.begin(), node.inputs.end(), comes_later) ||
                       std::any_of(implicit.begin(), implicit.end(), comes_later);
    if (waits) return {};
    order.push_back(id);
  }
  return order;
}

}  // namespace

Result<std::vector<NodeId>> Graph::topological_order() const {
  // Most graphs are read in order.
  if (std::vector<NodeId> order = order_of_ids(*this); !order.empty()) return order;
  std::vector<std::uint32_t> waiting(nodes_.size(), 0);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  std::vector<std::vector<NodeId>> followers(nodes_.size());
  std::size_t live = 0;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    const Node& node = nodes_[id];
    if (node.is_removed) continue;
    ++live;
    const auto wait_for = [&](ValueId input) {
      if (input == kNoValue || values_[input].producer == kNoNode) return;
      followers[values_[input].producer].push_back(id);
      ++waiting[id];
    };
    for (const ValueId input : node.inputs) wait_for(input);
    for (const ValueId input : node.implicit_inputs) wait_for(input);
    if (waiting[id] == 0) ready.push(id);
  }
  std::vector<NodeId> order;
  order.reserve(live);
  while (!ready.empty()) {
    const NodeId id = ready.top();
    ready.pop();
    order.push_back(id);
    for (const NodeId follower : followers[id]) {
      if (--waiting[follower] == 0) ready.push(follower);
    }
  }
  if (order.size() == live) return order;
  for (NodeId id = 0; id < nodes_.size(); ++id) {
    if (!nodes_[id].is_removed && waiting[id] != 0) {
      return failure(Code::InvalidModel, "the graph has a cycle through {}",
                     nodes_[id].describe(*this));
    }
  }
  return failure(Code::Internal, "a cycle without a node");
}

std::string Graph::unique_name(const std::string& stem) {
  // A user's own name could end in the same way, so that the suffix is one that exporters avoid.
  return fmt::format("{}@{}", stem, next_name_++);
}

std::vector<Graph*> subgraphs(Node& node) {
  std::vector<Graph*> found;
  for (auto& [name, attribute] : node.attributes) {
    if (auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      if (*graph) found.push_back(graph->get());
    } else if (auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      for (auto& item : *graphs) found.push_back(item.get());
    }
  }
  return found;
}

std::vector<const Graph*> subgraphs(const Node& node) {
  std::vector<const Graph*> found;
  for (Graph* graph : subgraphs(const_cast<Node&>(node))) found.push_back(graph);
  return found;
}

Status for_each_graph(Graph& graph, FunctionRef<Status(Graph&)> visit) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).is_removed) continue;
    bool has_subgraphs = false;
    for (Graph* subgraph : subgraphs(graph.node(id))) {
      SDX_TRY(for_each_graph(*subgraph, visit));
      has_subgraphs = true;
    }
    if (has_subgraphs) graph.refresh_implicit_inputs(id);
  }
  return visit(graph);
}

std::int64_t Model::opset(std::string_view op_domain) const {
  for (const auto& [imported, version] : opset_imports) {
    if (imported == op_domain) return version;
  }
  return 0;
}

}  // namespace sardonyx
