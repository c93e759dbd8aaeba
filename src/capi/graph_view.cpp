#include "capi/graph_view.h"

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "base/text.h"
#include "session/load.h"

namespace sardonyx::capi {

std::shared_ptr<const ModelFacts> model_facts(const Model& model) {
  auto facts = std::make_shared<ModelFacts>();
  facts->metadata = metadata_of(model);
  facts->path = model.path;
  if (!model.path.empty()) {
    std::error_code error;
    const std::filesystem::path path(model.path);
    facts->real_path = std::filesystem::weakly_canonical(path, error).string();
    facts->real_folder = std::filesystem::weakly_canonical(
                             std::filesystem::absolute(path, error).parent_path(), error)
                             .string();
  }
  facts->ir_version = model.ir_version;
  facts->opset_imports = model.opset_imports;
  facts->symbols = &model.symbols;
  return facts;
}

ViewNode::ViewNode(const GraphView& view, NodeId node_id, const Node& own)
    : OrtNode(true, node_id, own.name, own.op_type, own.domain), graph(view), node(own) {}

ViewNode::~ViewNode() = default;

GraphPart part_of(const Graph& graph, std::span<const NodeId> nodes, bool with_constants) {
  GraphPart part;
  part.nodes.assign(nodes.begin(), nodes.end());
  const std::unordered_set<NodeId> chosen(nodes.begin(), nodes.end());
  std::unordered_set<ValueId> taken;
  const auto take = [&](ValueId id) {
    if (id == kNoValue || !taken.insert(id).second) return;
    const Value& value = graph.value(id);
    if (value.producer != kNoNode && chosen.contains(value.producer)) return;
    if (value.constant && !with_constants) return;
    part.inputs.push_back(id);
  };
  for (const NodeId node : nodes) {
    for (const ValueId id : graph.node(node).inputs) take(id);
    for (const ValueId id : graph.node(node).implicit_inputs) take(id);
  }
  for (const NodeId node : nodes) {
    for (const ValueId id : graph.node(node).outputs) {
      if (id == kNoValue) continue;
      bool is_needed = graph.value(id).is_output;
      if (!is_needed) {
        const std::vector<NodeId> users = graph.consumers(id);
        is_needed = std::any_of(users.begin(), users.end(),
                                [&](NodeId user) { return !chosen.contains(user); });
      }
      if (is_needed) part.outputs.push_back(id);
    }
  }
  return part;
}

GraphView::GraphView(const Graph& graph, std::shared_ptr<const ModelFacts> facts,
                     const GraphView* outer)
    : OrtGraph(true), graph_(graph), facts_(std::move(facts)), outer_(outer) {
  for (const Capture& capture : graph.captures()) captured_.emplace(capture.inner, capture.outer);
}

const Value& GraphView::source_of(ValueId id) const {
  const auto captured = captured_.find(id);
  if (captured == captured_.end() || outer_ == nullptr) return graph_.value(id);
  return outer_->source_of(captured->second);
}

ViewValue* GraphView::show(ValueId id) {
  if (id == kNoValue) return nullptr;
  const auto [entry, is_new] = value_index_.try_emplace(id, nullptr);
  if (is_new) {
    entry->second = &values_.emplace_back(*this, id, graph_.value(id), source_of(id));
  }
  return entry->second;
}

Status GraphView::add_subgraphs(ViewNode& shown) {
  const auto add = [&](const std::string& attribute, const Graph& graph) -> Status {
    SDX_ASSIGN(auto view, whole_inside(graph, facts_, this, &shown));
    shown.subgraphs.push_back({attribute, std::move(view)});
    return {};
  };
  for (const auto& [name, attribute] : shown.node.attributes) {
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      if (*graph) SDX_TRY(add(name, **graph));
    } else if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      for (const auto& item : *graphs) SDX_TRY(add(name, *item));
    }
  }
  return {};
}

Status GraphView::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  ViewNode& shown = nodes_.emplace_back(*this, id, node);
  node_index_.emplace(id, &shown);
  shown.attributes.reserve(node.attributes.size());
  for (const auto& [name, attribute] : node.attributes) {
    shown.attributes.emplace_back(name, &attribute);
  }
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    ViewValue* value = show(node.inputs[i]);
    shown.inputs.push_back(value);
    if (value != nullptr) value->uses.push_back({&shown, static_cast<std::int64_t>(i)});
  }
  for (const ValueId input : node.implicit_inputs) {
    ViewValue* value = show(input);
    shown.implicit_inputs.push_back(value);
    value->uses.push_back({&shown, -1});
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    ViewValue* value = show(node.outputs[i]);
    shown.outputs.push_back(value);
    if (value == nullptr) continue;
    value->producer = &shown;
    value->producer_output = i;
  }
  return add_subgraphs(shown);
}

/// Of a whole graph all that are used; of a part those that its nodes use.
void GraphView::add_initializers(bool is_whole) {
  const auto add = [&](ViewValue* value) {
    if (value->value.is_captured || value->value.producer != kNoNode) return;
    if (value->initial_tensor() == nullptr) return;
    value->is_optional_input = !value->is_constant();
    initializers_.push_back(value);
  };
  if (!is_whole) {
    for (ViewValue& value : values_) add(&value);
    return;
  }
  for (ValueId id = 0; id < graph_.value_count(); ++id) {
    const Value& value = graph_.value(id);
    if (value.use_count != 0 || value.is_output || value.is_input) add(show(id));
  }
}

Status GraphView::add_all(const GraphPart& part) {
  for (const ValueId id : part.inputs) {
    ViewValue* value = show(id);
    inputs_.push_back(value);
    value->is_optional_input = value->value.default_value != nullptr;
    value->is_required_input = !value->is_optional_input && !value->is_constant();
  }
  for (const ValueId id : part.outputs) {
    ViewValue* value = show(id);
    outputs_.push_back(value);
    value->is_output = true;
  }
  for (const NodeId id : part.nodes) SDX_TRY(add_node(id));
  return {};
}

Result<std::unique_ptr<GraphView>> GraphView::whole_inside(const Graph& graph,
                                                           std::shared_ptr<const ModelFacts> facts,
                                                           const GraphView* outer,
                                                           const OrtNode* parent) {
  std::unique_ptr<GraphView> view(new GraphView(graph, std::move(facts), outer));
  view->parent_node_ = parent;
  GraphPart part;
  SDX_ASSIGN(part.nodes, graph.topological_order());
  part.inputs = graph.inputs();
  part.outputs = graph.outputs();
  SDX_TRY(view->add_all(part));
  view->add_initializers(true);
  return view;
}

Result<std::unique_ptr<GraphView>> GraphView::whole(const Graph& graph,
                                                    std::shared_ptr<const ModelFacts> facts) {
  return whole_inside(graph, std::move(facts), nullptr, nullptr);
}

Result<std::unique_ptr<GraphView>> GraphView::of_part(const Graph& graph,
                                                      std::shared_ptr<const ModelFacts> facts,
                                                      const GraphPart& part,
                                                      const GraphView* outer) {
  std::unique_ptr<GraphView> view(new GraphView(graph, std::move(facts), outer));
  SDX_TRY(view->add_all(part));
  view->add_initializers(false);
  return view;
}

const ViewNode* GraphView::find_node(NodeId id) const {
  const auto found = node_index_.find(id);
  return found == node_index_.end() ? nullptr : found->second;
}

const ViewValue* GraphView::find_value(ValueId id) const {
  const auto found = value_index_.find(id);
  return found == value_index_.end() ? nullptr : found->second;
}

void GraphView::set_provider(NodeId id, const std::string& name) {
  const auto found = node_index_.find(id);
  if (found != node_index_.end()) found->second->provider = name;
}

const OrtTypeInfo* GraphView::type_info(const ViewValue& value) const {
  const Type& type = value.value.type;
  if (type.kind == Type::Kind::Unknown) return nullptr;
  const std::lock_guard lock(mutex_);
  if (value.type_info == nullptr) {
    std::vector<std::string> symbols;
    if (type.shape && facts_->symbols != nullptr) {
      for (const Dim dim : *type.shape) symbols.push_back(facts_->symbols->name(dim));
    }
    value.type_info.reset(new_type_info(type, symbols));
  }
  return value.type_info.get();
}

const OrtValue* GraphView::initializer(const ViewValue& value) const {
  const Tensor* tensor = value.initial_tensor();
  if (tensor == nullptr) return nullptr;
  const std::lock_guard lock(mutex_);
  if (value.initializer == nullptr) {
    value.initializer = std::make_unique<OrtValue>(OrtValue{Datum(*tensor), cpu_memory_info()});
  }
  return value.initializer.get();
}

namespace {

Status made_by_editor(const char* what) {
  return failure(Code::Unsupported,
                 "the {} was made by the model editor, which knows names only: connections can be "
                 "read from the graphs that execution providers are given",
                 what);
}

}  // namespace

Result<const GraphView*> view_of(const OrtGraph* graph) {
  SDX_TRY(require(graph, "graph"));
  if (graph->is_view) return static_cast<const GraphView*>(graph);
  return made_by_editor("graph");
}

Result<const ViewNode*> view_of(const OrtNode* node) {
  SDX_TRY(require(node, "node"));
  if (node->is_view) return static_cast<const ViewNode*>(node);
  return made_by_editor("node");
}

Result<const ViewValue*> view_of(const OrtValueInfo* value_info) {
  SDX_TRY(require(value_info, "value_info"));
  if (value_info->is_view) return static_cast<const ViewValue*>(value_info);
  return made_by_editor("value");
}

}  // namespace sardonyx::capi
