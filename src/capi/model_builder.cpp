// From names to a graph: what the model editor built, as the reader would have read it.
#include <unordered_map>

#include "base/text.h"
#include "capi/model_editor.h"
#include "session/load.h"

namespace sardonyx::capi {

namespace {

/// ONNX's first version of the file format that holds each operator set.
std::int64_t ir_version_of(std::int64_t opset) {
  if (opset <= 22) return 10;
  if (opset <= 24) return opset - 12;
  return opset <= 27 ? 13 : 14;
}

std::string shown_domain(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

/// The graph with its values and nodes (and their ids), but without inputs and outputs.
Graph without_ends(const Graph& graph) {
  Graph result;
  result.name = graph.name;
  result.doc_string = graph.doc_string;
  result.metadata = graph.metadata;
  result.reserve(graph.value_count(), graph.node_count());
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    result.add_value("");
    Value& value = result.value(id);
    value = graph.value(id);
    value.producer = kNoNode;
    value.use_count = 0;
    value.is_input = false;
    value.is_output = false;
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) result.add_node(graph.node(id));
  return result;
}

/// Adds what was built to `model`, whose graph has no inputs and outputs yet; `inputs` and
/// `outputs` are what it has unless the built graph says otherwise.
class ModelBuilder {
 public:
  ModelBuilder(Model& model, const EditorGraph& built, std::vector<ValueId> inputs,
               std::vector<ValueId> outputs)
      : model_(model),
        graph_(model.graph),
        built_(built),
        former_inputs_(std::move(inputs)),
        former_outputs_(std::move(outputs)) {}

  Status build();

 private:
  void index_names();
  Type type_of(const EditorValueInfo& info);
  Status add_inputs();
  Status add_initializers();
  Status add_initializer(const std::string& name, const OrtValue& value);
  Status declare_outputs();
  Status declare_output(const EditorNode& edited, const std::string& name);
  Status add_node(const EditorNode& edited, std::vector<ValueId> outputs);
  Status set_outputs();
  Status check_old_uses() const;
  std::int64_t opset_of(const std::string& domain);
  std::string maker_of(ValueId id) const;
  bool is_made(ValueId id) const;

  Model& model_;
  Graph& graph_;
  const EditorGraph& built_;
  std::vector<ValueId> former_inputs_;
  std::vector<ValueId> former_outputs_;
  std::unordered_map<std::string, ValueId> names_;
  /// Per new node: its outputs.
  std::vector<std::vector<ValueId>> outputs_;
  std::unordered_map<ValueId, const EditorNode*> makers_;
};

void ModelBuilder::index_names() {
  for (ValueId id = 0; id < graph_.value_count(); ++id) names_.emplace(graph_.value(id).name, id);
}

bool ModelBuilder::is_made(ValueId id) const {
  const Value& value = graph_.value(id);
  return value.producer != kNoNode || value.is_input || value.constant || value.sparse_constant ||
         makers_.contains(id);
}

std::string ModelBuilder::maker_of(ValueId id) const {
  const Value& value = graph_.value(id);
  if (const auto maker = makers_.find(id); maker != makers_.end()) {
    return fmt::format("node '{}' ({})", maker->second->name, maker->second->op_type);
  }
  if (value.producer != kNoNode) return graph_.node(value.producer).describe(graph_);
  return value.is_input ? "a graph input" : "an initializer";
}

Type ModelBuilder::type_of(const EditorValueInfo& info) {
  Type type = info.type_info->type;
  if (!type.shape) return type;
  const OrtTensorTypeAndShapeInfo& tensor = info.type_info->tensor;
  for (int axis = 0; axis < type.shape->rank(); ++axis) {
    const auto i = static_cast<std::size_t>(axis);
    const bool has_name = i < tensor.symbols.size() && !tensor.symbols[i].empty();
    if (has_name && !is_known((*type.shape)[axis])) {
      (*type.shape)[axis] = model_.symbols.intern(tensor.symbols[i]);
    }
  }
  return type;
}

Status ModelBuilder::add_inputs() {
  if (!built_.has_inputs) {
    for (const ValueId id : former_inputs_) graph_.add_input(id);
    return {};
  }
  for (const auto& info : built_.inputs) {
    const auto [entry, is_new] = names_.try_emplace(info->name, kNoValue);
    if (is_new) entry->second = graph_.add_value(info->name);
    const ValueId id = entry->second;
    if (is_made(id)) {
      return failure(Code::InvalidModel, "'{}' is made twice: by {} and by a graph input",
                     info->name, maker_of(id));
    }
    graph_.value(id).type = type_of(*info);
    graph_.add_input(id);
  }
  // What was an input with a default is a plain initializer now.
  for (const ValueId id : former_inputs_) {
    Value& value = graph_.value(id);
    if (value.is_input || value.default_value == nullptr) continue;
    graph_.set_constant(id, *value.default_value);
    value.default_value = nullptr;
  }
  return {};
}

Status ModelBuilder::add_initializer(const std::string& name, const OrtValue& value) {
  const Tensor& tensor = *value.datum.tensor();
  const auto [entry, is_new] = names_.try_emplace(name, kNoValue);
  if (is_new) entry->second = graph_.add_value(name);
  Value& target = graph_.value(entry->second);
  if (!is_made(entry->second)) {
    graph_.set_constant(entry->second, tensor);
    return {};
  }
  if (!target.is_input || target.default_value != nullptr) {
    return failure(Code::InvalidModel, "'{}' is made twice: by {} and by an initializer", name,
                   target.default_value != nullptr ? "an initializer" : maker_of(entry->second));
  }
  if (!target.type.is_tensor() || target.type.dtype != tensor.dtype()) {
    return failure(Code::InvalidModel, "input '{}' is {}, its initializer holds {}", name,
                   target.type.to_string(), dtype_name(tensor.dtype()));
  }
  target.default_value = std::make_shared<const Tensor>(tensor);
  return {};
}

Status ModelBuilder::add_initializers() {
  for (const auto& [name, value] : built_.initializers) SDX_TRY(add_initializer(name, *value));
  return {};
}

Status ModelBuilder::declare_output(const EditorNode& edited, const std::string& name) {
  if (name.empty()) {
    outputs_.back().push_back(kNoValue);
    return {};
  }
  const auto [entry, is_new] = names_.try_emplace(name, kNoValue);
  if (is_new) entry->second = graph_.add_value(name);
  if (is_made(entry->second)) {
    return failure(Code::InvalidModel, "'{}' is made twice: by {} and by node '{}' ({})", name,
                   maker_of(entry->second), edited.name, edited.op_type);
  }
  makers_.emplace(entry->second, &edited);
  outputs_.back().push_back(entry->second);
  return {};
}

Status ModelBuilder::declare_outputs() {
  for (const auto& edited : built_.nodes) {
    outputs_.emplace_back();
    for (const std::string& name : edited->output_names) SDX_TRY(declare_output(*edited, name));
  }
  return {};
}

/// The version that the model imports. Other domains than ONNX's need not be declared: they are
/// imported at the newest version that is known.
std::int64_t ModelBuilder::opset_of(const std::string& domain) {
  if (const std::int64_t version = model_.opset(domain); version != 0) return version;
  std::int64_t version = 1;
  for (const auto& [known, newest] : known_opsets()) {
    if (known == domain) version = newest;
  }
  model_.opset_imports.emplace_back(domain, version);
  return version;
}

Status ModelBuilder::add_node(const EditorNode& edited, std::vector<ValueId> outputs) {
  Node node = bare_node(edited);
  node.opset = opset_of(node.domain);
  node.outputs = std::move(outputs);
  for (const std::string& name : edited.input_names) {
    const auto found = names_.find(name);
    const bool is_left_out = name.empty();
    if (!is_left_out && (found == names_.end() || !is_made(found->second))) {
      return failure(Code::InvalidModel,
                     "{} uses '{}', which is no graph input, initializer or output of a node",
                     node.describe(graph_), name);
    }
    node.inputs.push_back(is_left_out ? kNoValue : found->second);
  }
  while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
  graph_.add_node(std::move(node));
  return {};
}

Status ModelBuilder::set_outputs() {
  if (!built_.has_outputs) {
    for (const ValueId id : former_outputs_) graph_.add_output(id);
    return {};
  }
  for (const auto& info : built_.outputs) {
    const auto found = names_.find(info->name);
    if (found == names_.end() || !is_made(found->second)) {
      return failure(Code::InvalidModel,
                     "graph output '{}' is made by no input, initializer or node", info->name);
    }
    graph_.add_output(found->second);
    Value& value = graph_.value(found->second);
    if (value.type.kind == Type::Kind::Unknown) value.type = type_of(*info);
  }
  return {};
}

/// An input that the new list leaves out may still be used.
Status ModelBuilder::check_old_uses() const {
  for (NodeId id = 0; id < graph_.node_count(); ++id) {
    const Node& node = graph_.node(id);
    for (const auto* inputs : {&node.inputs, &node.implicit_inputs}) {
      for (const ValueId input : *inputs) {
        if (input == kNoValue || is_made(input)) continue;
        return failure(Code::InvalidModel,
                       "{} uses '{}', which is no graph input, initializer or output of a node "
                       "any more",
                       node.describe(graph_), graph_.value(input).name);
      }
    }
  }
  for (const ValueId output : graph_.outputs()) {
    if (is_made(output)) continue;
    return failure(Code::InvalidModel, "graph output '{}' is made by nothing any more",
                   graph_.value(output).name);
  }
  return {};
}

Status ModelBuilder::build() {
  index_names();
  SDX_TRY(add_inputs());
  SDX_TRY(add_initializers());
  SDX_TRY(declare_outputs());
  for (std::size_t i = 0; i < built_.nodes.size(); ++i) {
    SDX_TRY(add_node(*built_.nodes[i], std::move(outputs_[i])));
  }
  SDX_TRY(set_outputs());
  SDX_TRY(check_old_uses());
  return graph_.topological_order().take_status();
}

Status add_opset(Model& model, const std::string& domain, std::int64_t version) {
  if (version < 1) {
    return failure(Code::InvalidModel, "operator set {} is imported with the version {}",
                   shown_domain(domain), version);
  }
  const std::int64_t former = model.opset(domain);
  if (former == 0) model.opset_imports.emplace_back(domain, version);
  if (former == 0 || former == version) return {};
  return failure(Code::InvalidModel,
                 "operator set {} is imported with version {}: it cannot be changed to {}",
                 shown_domain(domain), former, version);
}

Status require_graph(const OrtModel& built) {
  if (built.graph != nullptr) return {};
  return failure(Code::InvalidArgument, "the model has no graph: AddGraphToModel gives it one");
}

}  // namespace

Node bare_node(const EditorNode& edited) {
  Node node;
  node.name = edited.name;
  node.op_type = edited.op_type;
  node.domain = edited.domain;
  for (const OrtOpAttr& attribute : edited.attributes) {
    node.attributes.set(attribute.name, attribute.value());
  }
  return node;
}

Result<Model> to_model(const OrtModel& built) {
  SDX_TRY(require_graph(built));
  Model model;
  for (const auto& [domain, version] : built.opsets) SDX_TRY(add_opset(model, domain, version));
  if (model.opset("") == 0) {
    return failure(Code::InvalidModel,
                   "the model imports no version of the operator set ai.onnx (domain \"\")");
  }
  if (built.graph->outputs.empty()) {
    return failure(Code::InvalidModel, "the graph has no outputs: SetGraphOutputs gives it some");
  }
  model.ir_version = ir_version_of(model.opset(""));
  SDX_TRY(ModelBuilder(model, *built.graph, {}, {}).build());
  return model;
}

Result<Model> add_to_model(const OrtModel& built, const Model& model) {
  SDX_TRY(require_graph(built));
  Model changed = model;
  for (const auto& [domain, version] : built.opsets) SDX_TRY(add_opset(changed, domain, version));
  if (built.graph->has_outputs && built.graph->outputs.empty()) {
    return failure(Code::InvalidModel, "the graph would be left without outputs");
  }
  std::vector<ValueId> inputs = changed.graph.inputs();
  std::vector<ValueId> outputs = changed.graph.outputs();
  changed.graph = without_ends(changed.graph);
  SDX_TRY(ModelBuilder(changed, *built.graph, std::move(inputs), std::move(outputs)).build());
  return changed;
}

}  // namespace sardonyx::capi
