#include "onnx/graph_reader.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/type_reader.h"
#include "onnx/wire.h"

namespace sardonyx::onnx {

namespace {

/// How many graphs may be nested.
constexpr int kMaxDepth = 64;
/// Attributes are searched one by one.
constexpr std::size_t kMaxAttributes = 4096;

using Messages = std::vector<std::string_view>;

/// The fields of a GraphProto or FunctionProto, still encoded.
struct Parts {
  Messages nodes;
  Messages initializers;
  Messages sparse_initializers;
  Messages inputs;
  Messages outputs;
  Messages value_infos;
};

struct Initializer {
  std::string_view name;
  Tensor tensor;
  std::shared_ptr<const SparseTensor> sparse;
  std::shared_ptr<const WeightOrigin> origin;
  bool is_declared = false;
};

/// A node whose outputs have values; its inputs and attributes wait for all names to be known.
struct PendingNode {
  Node node;
  Messages inputs;
  Messages attributes;
};

/// The value of that name as `scope` sees it, captured from around it if need be; or kNoValue.
ValueId resolve(Scope& scope, std::string_view name) {
  const auto known = scope.names.find(name);
  if (known != scope.names.end()) return known->second;
  if (scope.outer == nullptr) return kNoValue;
  const ValueId outer = resolve(*scope.outer, name);
  if (outer == kNoValue) return kNoValue;
  const Value& value = scope.outer->graph->value(outer);
  const ValueId inner = scope.graph->add_capture(outer, value.name, value.type);
  scope.names.emplace(name, inner);
  return inner;
}

bool have_equal_bytes(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()) || a.dtype() == DType::String) {
    return false;
  }
  return a.byte_size() == 0 || std::memcmp(a.data(), b.data(), a.byte_size()) == 0;
}

/// Whether a tensor may stand where `type` is declared.
bool accepts(const Type& type, const Tensor& tensor) {
  if (type.kind == Type::Kind::Unknown) return true;
  if (!type.is_tensor()) return false;
  if (type.dtype != DType::Undefined && type.dtype != tensor.dtype()) return false;
  if (!type.shape) return true;
  if (type.shape->rank() != tensor.rank()) return false;
  for (int axis = 0; axis < tensor.rank(); ++axis) {
    const Dim dim = (*type.shape)[axis];
    if (is_known(dim) && dim != tensor.dim(axis)) return false;
  }
  return true;
}

class GraphReader {
 public:
  GraphReader(const GraphContext& context, Scope* outer, int depth)
      : context_(context), graph_(std::make_shared<Graph>()), depth_(depth) {
    scope_.graph = graph_.get();
    scope_.outer = outer;
  }

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  Scope& scope() { return scope_; }

  Status read_initializers(const Parts& parts);
  Status declare_input(std::string_view name, Type type);
  /// Tells the model what the dimensions of a declared input of the main graph stand for.
  void note_denotations(std::string_view name, std::string_view message);
  Status declare_constants();
  Status declare_nodes(const Messages& messages);
  /// Sets the type of a value that has none yet. Types of unknown names are of no use.
  void set_type(std::string_view name, const Type& type);
  Status read_nodes();
  Status add_output(std::string_view name);
  Status check_cycles() const;

 private:
  bool is_main() const { return depth_ == 0 && !context_.in_function; }
  Status add_initializer(Initializer initializer);
  Status add_dense(std::string_view message);
  Result<ValueId> declare(std::string_view name, std::string_view what);
  std::string maker_of(ValueId value) const;
  void set_constant(ValueId value, Initializer& initializer);
  Result<PendingNode> read_header(std::string_view message);
  Status declare_outputs(const Messages& names, Node& node);
  Status set_opset(Node& node) const;
  Status read_node(PendingNode& pending);

  const GraphContext& context_;
  std::shared_ptr<Graph> graph_;
  Scope scope_;
  int depth_;
  std::vector<Initializer> initializers_;
  std::unordered_map<std::string_view, std::size_t> initializer_index_;
  std::vector<PendingNode> pending_;
};

Status GraphReader::add_initializer(Initializer initializer) {
  if (initializer.name.empty()) return failure(Code::InvalidModel, "an initializer has no name");
  const auto [entry, is_new] =
      initializer_index_.try_emplace(initializer.name, initializers_.size());
  if (!is_new) {
    const Initializer& first = initializers_[entry->second];
    // Some writers store a shared weight once per use.
    if (!first.sparse && !initializer.sparse &&
        have_equal_bytes(first.tensor, initializer.tensor)) {
      return {};
    }
    return failure(Code::InvalidModel, "two initializers have the name '{}'", initializer.name);
  }
  initializers_.push_back(std::move(initializer));
  return {};
}

Status GraphReader::add_dense(std::string_view message) {
  Initializer initializer;
  if (is_main() && !context_.options->initializers.empty()) {
    const std::string name(tensor_name(message));
    const auto given = context_.options->initializers.find(name);
    if (given != context_.options->initializers.end()) {
      SDX_ASSIGN(const Type type, read_tensor_type(message));
      if (!accepts(type, given->second)) {
        return failure(Code::InvalidArgument,
                       "the given initializer '{}' is {} {}, the model's is {} {}", name,
                       dtype_name(given->second.dtype()), given->second.shape().to_string(),
                       dtype_name(type.dtype), type.shape->to_string());
      }
      initializer.name = tensor_name(message);
      initializer.tensor = given->second;
      return add_initializer(std::move(initializer));
    }
  }
  SDX_ASSIGN(NamedTensor named, read_tensor(message, context_.source));
  initializer.name = named.name;
  initializer.tensor = std::move(named.tensor);
  initializer.origin = std::move(named.origin);
  return add_initializer(std::move(initializer));
}

Status GraphReader::read_initializers(const Parts& parts) {
  initializers_.reserve(parts.initializers.size() + parts.sparse_initializers.size());
  initializer_index_.reserve(initializers_.capacity());
  scope_.names.reserve(initializers_.capacity() + parts.nodes.size() + parts.inputs.size());
  graph_->reserve(initializers_.capacity() + parts.nodes.size() + parts.inputs.size(),
                  parts.nodes.size());
  for (const std::string_view message : parts.initializers) SDX_TRY(add_dense(message));
  for (const std::string_view message : parts.sparse_initializers) {
    SDX_ASSIGN(NamedSparseTensor named, read_sparse_tensor(message, context_.source));
    Initializer initializer;
    initializer.name = named.name;
    initializer.sparse = std::move(named.sparse);
    SDX_TRY(add_initializer(std::move(initializer)));
  }
  return {};
}

std::string GraphReader::maker_of(ValueId value) const {
  if (graph_->value(value).is_input) return "a graph input";
  for (const PendingNode& pending : pending_) {
    const auto& outputs = pending.node.outputs;
    if (std::find(outputs.begin(), outputs.end(), value) != outputs.end()) {
      return pending.node.describe(*graph_);
    }
  }
  const Value& made = graph_->value(value);
  return made.constant || made.sparse_constant ? "an initializer" : "the same node";
}

Result<ValueId> GraphReader::declare(std::string_view name, std::string_view what) {
  const auto known = scope_.names.find(name);
  if (known != scope_.names.end()) {
    return failure(Code::InvalidModel, "'{}' is made twice: by {} and by {}", name,
                   maker_of(known->second), what);
  }
  const ValueId value = graph_->add_value(std::string(name));
  scope_.names.emplace(name, value);
  return value;
}

void GraphReader::set_constant(ValueId value, Initializer& initializer) {
  if (initializer.sparse) {
    graph_->value(value).type =
        Type::tensor(initializer.sparse->values.dtype(), initializer.sparse->shape);
    graph_->value(value).sparse_constant = std::move(initializer.sparse);
  } else {
    graph_->set_constant(value, std::move(initializer.tensor));
  }
  graph_->value(value).origin = std::move(initializer.origin);
}

Status GraphReader::declare_input(std::string_view name, Type type) {
  if (name.empty()) return failure(Code::InvalidModel, "a graph input has no name");
  const auto found = initializer_index_.find(name);
  Initializer* initializer =
      found != initializer_index_.end() ? &initializers_[found->second] : nullptr;
  if (initializer != nullptr && !initializer->sparse && !accepts(type, initializer->tensor)) {
    return failure(Code::InvalidModel, "input '{}' is declared as {} {}, its initializer is {} {}",
                   name, type.to_string(), type.shape ? type.shape->to_string() : "",
                   dtype_name(initializer->tensor.dtype()),
                   initializer->tensor.shape().to_string());
  }
  // Declared with the other constants.
  if (initializer != nullptr && (context_.ir_version < 4 || initializer->sparse)) return {};
  SDX_ASSIGN(const ValueId value, declare(name, "a graph input"));
  graph_->value(value).type = std::move(type);
  graph_->add_input(value);
  if (initializer != nullptr) {
    initializer->is_declared = true;
    graph_->value(value).default_value =
        std::make_shared<const Tensor>(std::move(initializer->tensor));
    graph_->value(value).origin = std::move(initializer->origin);
  }
  return {};
}

void GraphReader::note_denotations(std::string_view name, std::string_view message) {
  if (!is_main() || context_.denotations == nullptr) return;
  const auto found = scope_.names.find(name);
  if (found == scope_.names.end() || graph_->value(found->second).default_value) return;
  for (auto& [axis, text] : read_denotations(message)) {
    context_.denotations->push_back({found->second, axis, std::move(text)});
  }
}

Status GraphReader::declare_constants() {
  for (Initializer& initializer : initializers_) {
    if (initializer.is_declared) continue;
    SDX_ASSIGN(const ValueId value, declare(initializer.name, "an initializer"));
    set_constant(value, initializer);
  }
  return {};
}

Status GraphReader::set_opset(Node& node) const {
  const auto import = context_.opsets.find(node.domain);
  if (import != context_.opsets.end()) {
    node.opset = import->second;
  } else if (node.domain.empty()) {
    return failure(Code::InvalidModel,
                   "{} is of the domain ai.onnx, of which no operator set is imported",
                   node.describe(*graph_));
  }
  return {};
}

Status GraphReader::declare_outputs(const Messages& names, Node& node) {
  for (const std::string_view name : names) {
    if (name.empty()) {
      node.outputs.push_back(kNoValue);
      continue;
    }
    const auto known = scope_.names.find(name);
    if (known != scope_.names.end()) {
      const std::string second =
          node.name.empty() ? fmt::format("a node ({})", node.op_type) : node.describe(*graph_);
      return failure(Code::InvalidModel, "'{}' is made twice: by {} and by {}", name,
                     maker_of(known->second), second);
    }
    const ValueId value = graph_->add_value(std::string(name));
    scope_.names.emplace(name, value);
    node.outputs.push_back(value);
  }
  return {};
}

Result<PendingNode> GraphReader::read_header(std::string_view message) {
  PendingNode pending;
  Node& node = pending.node;
  Messages outputs;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case node_field::kInput: pending.inputs.push_back(fields.bytes()); break;
      case node_field::kOutput: outputs.push_back(fields.bytes()); break;
      case node_field::kName: node.name = fields.bytes(); break;
      case node_field::kOpType: node.op_type = fields.bytes(); break;
      case node_field::kDomain: node.domain = fields.bytes(); break;
      case node_field::kOverload: node.overload = fields.bytes(); break;
      case node_field::kAttribute: pending.attributes.push_back(fields.bytes()); break;
      case node_field::kMetadata: node.metadata.push_back(read_entry(fields.bytes())); break;
      default: fields.skip();
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  while (!pending.inputs.empty() && pending.inputs.back().empty()) pending.inputs.pop_back();
  SDX_TRY(declare_outputs(outputs, node));
  if (node.op_type.empty()) {
    return failure(Code::InvalidModel, "{} names no operator", node.describe(*graph_));
  }
  return pending;
}

Status GraphReader::declare_nodes(const Messages& messages) {
  pending_.reserve(messages.size());
  for (const std::string_view message : messages) {
    auto pending = guarded([&] { return read_header(message); });
    if (!pending.ok()) {
      return std::move(pending).take_status().with(fmt::format("reading node {}", pending_.size()));
    }
    pending_.push_back(std::move(pending).value());
  }
  return {};
}

void GraphReader::set_type(std::string_view name, const Type& type) {
  const auto known = scope_.names.find(name);
  if (known == scope_.names.end()) return;
  Value& value = graph_->value(known->second);
  if (value.type.kind == Type::Kind::Unknown) value.type = type;
}

Status GraphReader::read_node(PendingNode& pending) {
  Node& node = pending.node;
  SDX_TRY(set_opset(node));
  node.inputs.reserve(pending.inputs.size());
  for (const std::string_view name : pending.inputs) {
    const ValueId value = name.empty() ? kNoValue : resolve(scope_, name);
    if (value == kNoValue && !name.empty()) {
      return failure(Code::InvalidModel, "{} uses '{}', which no input, initializer or node makes",
                     node.describe(*graph_), name);
    }
    node.inputs.push_back(value);
  }
  if (pending.attributes.size() > kMaxAttributes) {
    return failure(Code::Unsupported, "{} has {} attributes, more than {}", node.describe(*graph_),
                   pending.attributes.size(), kMaxAttributes);
  }
  for (const std::string_view message : pending.attributes) {
    auto attribute = guarded([&] { return read_attribute(message, context_, scope_, depth_); });
    if (!attribute.ok()) {
      return std::move(attribute).take_status().with("reading " + node.describe(*graph_));
    }
    if (node.attributes.has(attribute->first)) {
      return failure(Code::InvalidModel, "{} has the attribute '{}' twice", node.describe(*graph_),
                     attribute->first);
    }
    node.attributes.set(std::move(attribute->first), std::move(attribute->second));
  }
  graph_->add_node(std::move(node));
  return {};
}

Status GraphReader::read_nodes() {
  for (PendingNode& pending : pending_) SDX_TRY(read_node(pending));
  return {};
}

Status GraphReader::add_output(std::string_view name) {
  const ValueId value = name.empty() ? kNoValue : resolve(scope_, name);
  if (value == kNoValue) {
    return failure(Code::InvalidModel, "graph output '{}' is made by no input, initializer or node",
                   name);
  }
  graph_->add_output(value);
  return {};
}

Status GraphReader::check_cycles() const {
  const auto comes_before = [&](NodeId node) {
    return [&, node](ValueId value) {
      if (value == kNoValue) return true;
      const NodeId producer = graph_->value(value).producer;
      return producer == kNoNode || producer < node;
    };
  };
  for (NodeId id = 0; id < graph_->node_count(); ++id) {
    const Node& node = graph_->node(id);
    if (!std::all_of(node.inputs.begin(), node.inputs.end(), comes_before(id)) ||
        !std::all_of(node.implicit_inputs.begin(), node.implicit_inputs.end(), comes_before(id))) {
      return graph_->topological_order().take_status();
    }
  }
  return {};
}

Result<Parts> read_graph_parts(std::string_view message, Graph& graph) {
  Parts parts;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case graph_field::kNode: parts.nodes.push_back(fields.bytes()); break;
      case graph_field::kName: graph.name = fields.bytes(); break;
      case graph_field::kInitializer: parts.initializers.push_back(fields.bytes()); break;
      case graph_field::kDocString: graph.doc_string = fields.bytes(); break;
      case graph_field::kInput: parts.inputs.push_back(fields.bytes()); break;
      case graph_field::kOutput: parts.outputs.push_back(fields.bytes()); break;
      case graph_field::kValueInfo: parts.value_infos.push_back(fields.bytes()); break;
      case graph_field::kSparseInitializer:
        parts.sparse_initializers.push_back(fields.bytes());
        break;
      case graph_field::kMetadata: graph.metadata.push_back(read_entry(fields.bytes())); break;
      default: fields.skip();
    }
  }
  return parts;
}

Status read_graph_body(GraphReader& reader, const Parts& parts, const GraphContext& context) {
  SDX_TRY(reader.read_initializers(parts));
  for (const std::string_view message : parts.inputs) {
    SDX_ASSIGN(NamedType input, read_value_info(message, context.symbols));
    SDX_TRY(reader.declare_input(input.name, std::move(input.type)));
    reader.note_denotations(input.name, message);
  }
  SDX_TRY(reader.declare_constants());
  SDX_TRY(reader.declare_nodes(parts.nodes));
  Messages outputs;
  for (const std::string_view message : parts.outputs) {
    SDX_ASSIGN(const NamedType output, read_value_info(message, context.symbols));
    reader.set_type(output.name, output.type);
    outputs.push_back(output.name);
  }
  for (const std::string_view message : parts.value_infos) {
    SDX_ASSIGN(const NamedType info, read_value_info(message, context.symbols));
    reader.set_type(info.name, info.type);
  }
  SDX_TRY(reader.read_nodes());
  for (const std::string_view name : outputs) SDX_TRY(reader.add_output(name));
  return reader.check_cycles();
}

/// The fields of a FunctionProto. Inputs, outputs and attributes are names.
struct FunctionParts {
  Parts graph;
  Messages opset_imports;
  Messages attribute_defaults;
};

FunctionParts read_function_parts(std::string_view message, Function& function, Graph& body) {
  FunctionParts parts;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case function_field::kName: function.name = fields.bytes(); break;
      case function_field::kInput: parts.graph.inputs.push_back(fields.bytes()); break;
      case function_field::kOutput: parts.graph.outputs.push_back(fields.bytes()); break;
      case function_field::kAttribute: function.attribute_names.push_back(fields.text()); break;
      case function_field::kNode: parts.graph.nodes.push_back(fields.bytes()); break;
      case function_field::kDocString: body.doc_string = fields.bytes(); break;
      case function_field::kOpsetImport: parts.opset_imports.push_back(fields.bytes()); break;
      case function_field::kDomain: function.domain = fields.bytes(); break;
      case function_field::kAttributeProto:
        parts.attribute_defaults.push_back(fields.bytes());
        break;
      case function_field::kValueInfo: parts.graph.value_infos.push_back(fields.bytes()); break;
      case function_field::kOverload: function.overload = fields.bytes(); break;
      case function_field::kMetadata: body.metadata.push_back(read_entry(fields.bytes())); break;
      default: fields.skip();
    }
  }
  if (function.domain == "ai.onnx") function.domain.clear();
  body.name = function.name;
  return parts;
}

Status read_function_body(GraphReader& reader, const Parts& parts) {
  for (const std::string_view name : parts.inputs) SDX_TRY(reader.declare_input(name, {}));
  SDX_TRY(reader.declare_nodes(parts.nodes));
  for (const std::string_view message : parts.value_infos) {
    SDX_ASSIGN(const NamedType info, read_value_info(message, nullptr));
    reader.set_type(info.name, info.type);
  }
  SDX_TRY(reader.read_nodes());
  for (const std::string_view name : parts.outputs) SDX_TRY(reader.add_output(name));
  return reader.check_cycles();
}

}  // namespace

std::pair<std::string, std::string> read_entry(std::string_view message) {
  std::pair<std::string, std::string> entry;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case entry_field::kKey: entry.first = fields.bytes(); break;
      case entry_field::kValue: entry.second = fields.bytes(); break;
      default: fields.skip();
    }
  }
  return entry;
}

Status read_opset_import(std::string_view message,
                         std::vector<std::pair<std::string, std::int64_t>>& imports,
                         std::unordered_map<std::string, std::int64_t>& opsets) {
  std::string domain;
  std::int64_t version = 0;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case opset_field::kDomain: domain = fields.bytes(); break;
      case opset_field::kVersion: version = fields.integer(); break;
      default: fields.skip();
    }
  }
  if (domain == "ai.onnx") domain.clear();
  const std::string_view shown = domain.empty() ? "ai.onnx" : std::string_view(domain);
  if (version < 1) {
    return failure(Code::InvalidModel, "operator set {} is imported with the version {}", shown,
                   version);
  }
  const auto [entry, is_new] = opsets.try_emplace(domain, version);
  if (!is_new && entry->second != version) {
    return failure(Code::InvalidModel, "operator set {} is imported with the versions {} and {}",
                   shown, entry->second, version);
  }
  if (is_new) imports.emplace_back(std::move(domain), version);
  return {};
}

Result<std::shared_ptr<Graph>> read_graph(std::string_view message, const GraphContext& context,
                                          Scope* outer, int depth) {
  if (depth > kMaxDepth) {
    return failure(Code::Unsupported, "graphs are nested more than {} deep", kMaxDepth);
  }
  GraphReader reader(context, outer, depth);
  SDX_ASSIGN(const Parts parts, read_graph_parts(message, *reader.graph()));
  Status status = guarded([&] { return read_graph_body(reader, parts, context); });
  if (!status.ok()) {
    return std::move(status).with(fmt::format("reading graph '{}'", reader.graph()->name));
  }
  return reader.graph();
}

Result<Function> read_function(std::string_view message, GraphContext context) {
  Function function;
  context.in_function = true;
  context.symbols = nullptr;
  context.opsets.clear();
  GraphReader reader(context, nullptr, 0);
  const FunctionParts parts = read_function_parts(message, function, *reader.graph());
  const auto read_body = [&]() -> Status {
    for (const std::string_view import : parts.opset_imports) {
      SDX_TRY(read_opset_import(import, function.opset_imports, context.opsets));
    }
    for (const std::string_view attribute : parts.attribute_defaults) {
      SDX_ASSIGN(auto entry, read_attribute(attribute, context, reader.scope(), 0));
      function.attribute_defaults.set(std::move(entry.first), std::move(entry.second));
    }
    return read_function_body(reader, parts.graph);
  };
  Status status = guarded(read_body);
  if (!status.ok()) {
    return std::move(status).with(
        fmt::format("reading function '{}' of domain '{}'", function.name, function.domain));
  }
  function.body = reader.graph();
  return function;
}

}  // namespace sardonyx::onnx
