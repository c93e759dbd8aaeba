#include "onnx/graph_writer.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/tensor_writer.h"

namespace sardonyx::onnx {

namespace {

/// Smaller tensors are cheaper copied than kept as parts.
constexpr std::size_t kBorrowBytes = 4096;

Status too_large(std::string_view what) {
  return failure(Code::InvalidArgument,
                 "{} would have 2 GiB or more; keep large weights in external data", what);
}

/// A constant that the graph itself must state.
bool is_own_constant(const Value& value) {
  const bool is_constant = value.constant.has_value() || value.sparse_constant != nullptr;
  return is_constant && value.producer == kNoNode && !value.is_captured && !value.is_input &&
         (value.use_count != 0 || value.is_output);
}

/// Values that appear in the written graph, inputs and outputs first.
std::vector<ValueId> values_to_name(const Graph& graph) {
  std::vector<ValueId> values(graph.inputs());
  values.insert(values.end(), graph.outputs().begin(), graph.outputs().end());
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.producer != kNoNode || is_own_constant(value)) values.push_back(id);
  }
  return values;
}

AttributeType type_of(const Attribute& attribute) {
  static constexpr std::array<AttributeType, std::variant_size_v<Attribute>> kTypes = {
      AttributeType::Int,          AttributeType::Float,     AttributeType::String,
      AttributeType::Tensor,       AttributeType::Graph,     AttributeType::SparseTensor,
      AttributeType::TypeProto,    AttributeType::Ints,      AttributeType::Floats,
      AttributeType::Strings,      AttributeType::Tensors,   AttributeType::Graphs,
      AttributeType::TypeProtos,   AttributeType::Undefined};
  return kTypes[attribute.index()];
}

void append_metadata(std::string& message, std::uint32_t field,
                     const std::vector<std::pair<std::string, std::string>>& metadata) {
  for (const auto& [key, value] : metadata) append_entry(message, field, key, value);
}

void append_text(std::string& message, std::uint32_t field, std::string_view text) {
  if (!text.empty()) append_bytes(message, field, text);
}

}  // namespace

void PartedMessage::add(std::string text) {
  size_bytes_ += text.size();
  if (!parts_.empty() && parts_.back().borrowed.data() == nullptr) {
    parts_.back().text += text;
  } else {
    parts_.push_back({std::move(text), {}});
  }
}

void PartedMessage::add_borrowed(std::string_view bytes) {
  size_bytes_ += bytes.size();
  parts_.push_back({{}, bytes});
}

Names GraphWriter::name_values(const Graph& graph, const Names* outer,
                               std::vector<std::string>& added) {
  Names names(graph.value_count());
  if (outer != nullptr) {
    for (const Capture& capture : graph.captures()) names[capture.inner] = (*outer)[capture.outer];
  }
  for (const ValueId id : values_to_name(graph)) {
    if (!names[id].empty()) continue;
    std::string name = graph.value(id).name;
    while (name.empty() || taken_.contains(name)) {
      name = fmt::format("{}@{}", graph.value(id).name, next_name_++);
    }
    taken_.insert(name);
    added.push_back(name);
    names[id] = std::move(name);
  }
  return names;
}

std::string GraphWriter::write_head(const Graph& graph) const {
  std::string message;
  append_text(message, graph_field::kName, graph.name.empty() ? "graph" : graph.name);
  append_text(message, graph_field::kDocString, graph.doc_string);
  append_metadata(message, graph_field::kMetadata, graph.metadata);
  return message;
}

std::string GraphWriter::write_signature(const Graph& graph, const Names& names) const {
  const SymbolTable* symbols = in_function_ ? nullptr : &model_.symbols;
  std::string message;
  for (const ValueId id : graph.inputs()) {
    append_bytes(message, graph_field::kInput,
                 encode_value_info(names[id], graph.value(id).type, symbols));
  }
  for (const ValueId id : graph.outputs()) {
    append_bytes(message, graph_field::kOutput,
                 encode_value_info(names[id], graph.value(id).type, symbols));
  }
  return message;
}

std::string GraphWriter::write_value_infos(const Graph& graph, const Names& names,
                                           std::uint32_t field) const {
  const SymbolTable* symbols = in_function_ ? nullptr : &model_.symbols;
  std::string message;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.producer == kNoNode || value.is_output || value.type.kind == Type::Kind::Unknown) {
      continue;
    }
    append_bytes(message, field, encode_value_info(names[id], value.type, symbols));
  }
  return message;
}

Result<std::string> GraphWriter::write_attribute(std::string_view name,
                                                 const Attribute& attribute, const Names& names) {
  std::string message;
  append_bytes(message, attribute_field::kName, name);
  auto type = static_cast<std::int64_t>(type_of(attribute));
  const SymbolTable* symbols = in_function_ ? nullptr : &model_.symbols;
  const auto add_tensor = [&](std::uint32_t field, const Tensor& tensor) -> Status {
    SDX_ASSIGN(const std::string encoded, encode_tensor("", tensor));
    if (message.size() + encoded.size() > kMaxMessageBytes) return too_large("an attribute");
    append_bytes(message, field, encoded);
    return {};
  };
  const auto add_graph = [&](std::uint32_t field, const Graph& graph) -> Status {
    SDX_ASSIGN(const std::string encoded, write_subgraph(graph, names));
    if (message.size() + encoded.size() > kMaxMessageBytes) return too_large("an attribute");
    append_bytes(message, field, encoded);
    return {};
  };
  if (const auto* value = std::get_if<std::int64_t>(&attribute)) {
    append_integer(message, attribute_field::kInt, *value);
  } else if (const auto* real = std::get_if<float>(&attribute)) {
    append_float(message, attribute_field::kFloat, *real);
  } else if (const auto* text = std::get_if<std::string>(&attribute)) {
    append_bytes(message, attribute_field::kString, *text);
  } else if (const auto* tensor = std::get_if<Tensor>(&attribute)) {
    SDX_TRY(add_tensor(attribute_field::kTensor, *tensor));
  } else if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
    SDX_TRY(add_graph(attribute_field::kGraph, **graph));
  } else if (const auto* sparse = std::get_if<std::shared_ptr<const SparseTensor>>(&attribute)) {
    SDX_ASSIGN(const std::string encoded, encode_sparse("", **sparse));
    append_bytes(message, attribute_field::kSparseTensor, encoded);
  } else if (const auto* type_value = std::get_if<Type>(&attribute)) {
    append_bytes(message, attribute_field::kTypeProto, encode_type(*type_value, symbols));
  } else if (const auto* ints = std::get_if<std::vector<std::int64_t>>(&attribute)) {
    for (const std::int64_t item : *ints) append_integer(message, attribute_field::kInts, item);
  } else if (const auto* floats = std::get_if<std::vector<float>>(&attribute)) {
    for (const float item : *floats) append_float(message, attribute_field::kFloats, item);
  } else if (const auto* strings = std::get_if<std::vector<std::string>>(&attribute)) {
    for (const auto& item : *strings) append_bytes(message, attribute_field::kStrings, item);
  } else if (const auto* tensors = std::get_if<std::vector<Tensor>>(&attribute)) {
    for (const auto& item : *tensors) SDX_TRY(add_tensor(attribute_field::kTensors, item));
  } else if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
    for (const auto& item : *graphs) SDX_TRY(add_graph(attribute_field::kGraphs, *item));
  } else if (const auto* types = std::get_if<std::vector<Type>>(&attribute)) {
    for (const auto& item : *types) {
      append_bytes(message, attribute_field::kTypeProtos, encode_type(item, symbols));
    }
  } else if (const auto* reference = std::get_if<AttributeReference>(&attribute)) {
    append_bytes(message, attribute_field::kReference, reference->name);
    type = reference->onnx_type;
  }
  append_integer(message, attribute_field::kType, type);
  return message;
}

Result<std::string> GraphWriter::write_node(const Graph& graph, const Node& node,
                                            const Names& names) {
  std::string message;
  const auto name_of = [&](ValueId id) {
    return id == kNoValue ? std::string_view() : std::string_view(names[id]);
  };
  for (const ValueId id : node.inputs) append_bytes(message, node_field::kInput, name_of(id));
  for (const ValueId id : node.outputs) append_bytes(message, node_field::kOutput, name_of(id));
  append_text(message, node_field::kName, node.name);
  append_bytes(message, node_field::kOpType, node.op_type);
  append_text(message, node_field::kDomain, node.domain);
  append_text(message, node_field::kOverload, node.overload);
  append_metadata(message, node_field::kMetadata, node.metadata);
  for (const auto& [name, attribute] : node.attributes) {
    auto encoded = write_attribute(name, attribute, names);
    if (!encoded.ok()) {
      return std::move(encoded).take_status().with("writing " + node.describe(graph));
    }
    if (message.size() + encoded->size() > kMaxMessageBytes) {
      return too_large(node.describe(graph));
    }
    append_bytes(message, node_field::kAttribute, *encoded);
  }
  return message;
}

Status GraphWriter::write_nodes(const Graph& graph, const Names& names, std::uint32_t field,
                                std::string& message) {
  SDX_ASSIGN(const auto order, graph.topological_order());
  for (const NodeId id : order) {
    SDX_ASSIGN(const std::string node, write_node(graph, graph.node(id), names));
    if (message.size() + node.size() > kMaxMessageBytes) return too_large("the graph");
    append_bytes(message, field, node);
  }
  return {};
}

Status GraphWriter::write_initializer(const Value& value, std::string_view name,
                                      const Tensor& tensor, PartedMessage& message) {
  const auto add_whole = [&](const std::string& encoded) {
    std::string field;
    append_bytes(field, graph_field::kInitializer, encoded);
    message.add(std::move(field));
    return Status();
  };
  if (options_.locate) {
    SDX_ASSIGN(const auto location, options_.locate(value));
    if (location) return add_whole(encode_external(name, tensor, *location));
  }
  const std::size_t bytes = tensor.dtype() == DType::String ? 0 : tensor.byte_size();
  const std::string_view data(reinterpret_cast<const char*>(tensor.data()), bytes);
  if (external_ != nullptr && is_written_as_it_is(tensor) &&
      bytes >= std::max<std::size_t>(1, options_.external_threshold_bytes)) {
    const std::size_t alignment = bytes >= options_.alignment_minimum_bytes
                                      ? options_.alignment_bytes
                                      : options_.small_alignment_bytes;
    SDX_TRY(external_->pad_to(std::max<std::size_t>(1, alignment)));
    const ExternalLocation location{options_.external_data_file, external_->size(), bytes};
    SDX_TRY(external_->append(std::as_bytes(std::span(data))));
    return add_whole(encode_external(name, tensor, location));
  }
  if (bytes < kBorrowBytes || !is_written_as_it_is(tensor)) {
    SDX_ASSIGN(const std::string encoded, encode_tensor(name, tensor));
    return add_whole(encoded);
  }
  std::string head = tensor_head(name, tensor);
  append_head(head, tensor_field::kRawData, bytes);
  std::string field;
  append_head(field, graph_field::kInitializer, head.size() + bytes);
  message.add(field + head);
  message.add_borrowed(data);
  return {};
}

Status GraphWriter::write_initializers(const Graph& graph, const Names& names,
                                       PartedMessage& message) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.is_input && value.default_value) {
      SDX_TRY(write_initializer(value, names[id], *value.default_value, message));
    }
    if (!is_own_constant(value)) continue;
    if (value.constant) {
      SDX_TRY(write_initializer(value, names[id], *value.constant, message));
      continue;
    }
    SDX_ASSIGN(const std::string sparse, encode_sparse(names[id], *value.sparse_constant));
    std::string field;
    append_bytes(field, graph_field::kSparseInitializer, sparse);
    message.add(std::move(field));
  }
  return {};
}

Result<PartedMessage> GraphWriter::write_main() {
  std::vector<std::string> added;
  const Graph& graph = model_.graph;
  const Names names = name_values(graph, nullptr, added);
  PartedMessage message;
  std::string nodes;
  SDX_TRY(write_nodes(graph, names, graph_field::kNode, nodes));
  message.add(std::move(nodes));
  message.add(write_head(graph));
  SDX_TRY(write_initializers(graph, names, message));
  message.add(write_signature(graph, names));
  message.add(write_value_infos(graph, names, graph_field::kValueInfo));
  taken_.clear();
  return message;
}

Result<std::string> GraphWriter::write_subgraph(const Graph& graph, const Names& outer) {
  std::vector<std::string> added;
  const Names names = name_values(graph, &outer, added);
  std::string message;
  SDX_TRY(write_nodes(graph, names, graph_field::kNode, message));
  message += write_head(graph);
  ExternalSink* const external = std::exchange(external_, nullptr);
  PartedMessage initializers;
  Status status = write_initializers(graph, names, initializers);
  external_ = external;
  SDX_TRY(std::move(status));
  if (message.size() + initializers.size_bytes() > kMaxMessageBytes) return too_large("a subgraph");
  SDX_TRY(initializers.for_each([&](std::string_view part) {
    message += part;
    return Status();
  }));
  message += write_signature(graph, names);
  message += write_value_infos(graph, names, graph_field::kValueInfo);
  for (const std::string& name : added) taken_.erase(name);
  return message;
}

/// Functions have no initializers.
Status GraphWriter::write_constant_nodes(const Graph& graph, const Names& names,
                                         std::string& message) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (!is_own_constant(value)) continue;
    std::string node;
    append_bytes(node, node_field::kOutput, names[id]);
    append_bytes(node, node_field::kOpType, "Constant");
    std::string attribute;
    if (value.constant) {
      SDX_ASSIGN(attribute, write_attribute("value", *value.constant, names));
    } else {
      SDX_ASSIGN(attribute, write_attribute("sparse_value", value.sparse_constant, names));
    }
    append_bytes(node, node_field::kAttribute, attribute);
    append_bytes(message, function_field::kNode, node);
  }
  return {};
}

Result<std::string> GraphWriter::write_function(const Function& function) {
  in_function_ = true;
  taken_.clear();
  std::vector<std::string> added;
  const Graph& body = *function.body;
  const Names names = name_values(body, nullptr, added);
  std::string message;
  append_bytes(message, function_field::kName, function.name);
  for (const ValueId id : body.inputs()) append_bytes(message, function_field::kInput, names[id]);
  for (const ValueId id : body.outputs()) {
    append_bytes(message, function_field::kOutput, names[id]);
  }
  for (const std::string& name : function.attribute_names) {
    append_bytes(message, function_field::kAttribute, name);
  }
  SDX_TRY(write_constant_nodes(body, names, message));
  SDX_TRY(write_nodes(body, names, function_field::kNode, message));
  append_text(message, function_field::kDocString, body.doc_string);
  for (const auto& [domain, version] : function.opset_imports) {
    std::string import;
    append_bytes(import, opset_field::kDomain, domain);
    append_integer(import, opset_field::kVersion, version);
    append_bytes(message, function_field::kOpsetImport, import);
  }
  append_bytes(message, function_field::kDomain, function.domain);
  for (const auto& [name, attribute] : function.attribute_defaults) {
    SDX_ASSIGN(const std::string encoded, write_attribute(name, attribute, names));
    append_bytes(message, function_field::kAttributeProto, encoded);
  }
  message += write_value_infos(body, names, function_field::kValueInfo);
  append_text(message, function_field::kOverload, function.overload);
  append_metadata(message, function_field::kMetadata, body.metadata);
  in_function_ = false;
  return message;
}

}  // namespace sardonyx::onnx
