#include "plugin/graph_reader.h"

#include <filesystem>
#include <unordered_map>

#include "base/mapped_file.h"
#include "base/text.h"
#include "plugin/attribute_reader.h"
#include "plugin/values.h"

namespace sardonyx::plugin {

namespace {

/// What is the same for a graph and those inside it.
struct Shared {
  const Host& host;
  Weights weights;
  SymbolTable& symbols;
  std::string model_folder;
  /// Versions of operators by domain.
  std::unordered_map<std::string, std::int64_t> opsets;
};

std::string domain_of(const char* text) {
  const std::string domain = text == nullptr ? "" : text;
  return domain == "ai.onnx" ? "" : domain;
}

Status read_opsets(const OrtGraph& graph, Shared& shared) {
  const OrtApi& api = *shared.host.api;
  std::size_t count = 0;
  SDX_TRY(shared.host.take(api.Graph_GetNumOperatorSets(&graph, &count)));
  std::vector<const char*> domains(count);
  std::vector<std::int64_t> versions(count);
  SDX_TRY(
      shared.host.take(api.Graph_GetOperatorSets(&graph, domains.data(), versions.data(), count)));
  for (std::size_t i = 0; i < count; ++i) shared.opsets[domain_of(domains[i])] = versions[i];
  return {};
}

/// The bytes of an initializer in its file, when the host says where they are and they are there.
Result<bool> map_weight(const Shared& shared, const OrtValueInfo& info, const Type& type,
                        Graph& graph, ValueId id) {
  const OrtApi& api = *shared.host.api;
  OrtExternalInitializerInfo* external = nullptr;
  SDX_TRY(shared.host.take(api.ValueInfo_GetExternalInitializerInfo(&info, &external)));
  if (external == nullptr) return false;
  const std::filesystem::path named(api.ExternalInitializerInfo_GetFilePath(external));
  const auto offset = api.ExternalInitializerInfo_GetFileOffset(external);
  const std::size_t size = api.ExternalInitializerInfo_GetByteSize(external);
  api.ReleaseExternalInitializerInfo(external);
  if (!type.is_tensor() || !type.shape || !type.shape->is_static()) return false;
  const auto count = type.shape->element_count();
  const auto bytes = count ? dtype_bytes(type.dtype, *count) : std::nullopt;
  const auto path = named.is_absolute() ? named : shared.model_folder / named;
  const auto file = MappedFile::open(path.string());
  if (!bytes || *bytes != size || offset < 0 || !file.ok()) return false;
  const auto whole = (*file)->bytes();
  if (static_cast<std::uint64_t>(offset) > whole.size() || size > whole.size() - offset) {
    return false;
  }
  const std::byte* data = whole.data() + offset;
  graph.set_constant(id, Tensor::view(type.dtype, *type.shape, data, *file));
  graph.value(id).origin = std::make_shared<const WeightOrigin>(
      WeightOrigin{(*file)->path(), static_cast<std::uint64_t>(offset), size});
  return true;
}

/// One graph; those inside nodes are read by readers of their own, which look for values that they
/// do not have in the reader around them.
class Reader {
 public:
  Reader(Shared& shared, Reader* outer) : shared_(shared), api_(*shared.host.api), outer_(outer) {}

  Status read(const OrtGraph& graph) {
    SDX_TRY(read_values(graph));
    std::size_t count = 0;
    SDX_TRY(take(api_.Graph_GetNumNodes(&graph, &count)));
    nodes_.resize(count);
    SDX_TRY(take(api_.Graph_GetNodes(&graph, nodes_.data(), count)));
    for (const OrtNode* node : nodes_) SDX_TRY(declare_outputs(*node));
    for (const OrtNode* node : nodes_) SDX_TRY(add_node(*node));
    return read_outputs(graph);
  }

  Graph take_graph() { return std::move(graph_); }
  std::vector<const OrtNode*> take_nodes() { return std::move(nodes_); }
  std::vector<std::string> take_unread() { return std::move(unread_); }

 private:
  Status take(OrtStatus* status) const { return shared_.host.take(status); }

  Result<std::string> name_of(const OrtValueInfo& info) const {
    const char* name = nullptr;
    SDX_TRY(take(api_.GetValueInfoName(&info, &name)));
    return std::string(name == nullptr ? "" : name);
  }

  Result<ValueId> declare(const OrtValueInfo& info) {
    SDX_ASSIGN(std::string name, name_of(info));
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    const OrtTypeInfo* type_info = nullptr;
    SDX_TRY(take(api_.GetValueInfoTypeInfo(&info, &type_info)));
    Type type;
    if (type_info != nullptr) {
      SDX_ASSIGN(type, read_type(shared_.host, *type_info, shared_.symbols));
    }
    const ValueId id = graph_.add_value(name, std::move(type));
    ids_.emplace(std::move(name), id);
    return id;
  }

  Status read_values(const OrtGraph& graph) {
    std::size_t count = 0;
    SDX_TRY(take(api_.Graph_GetNumInitializers(&graph, &count)));
    std::vector<const OrtValueInfo*> infos(count);
    SDX_TRY(take(api_.Graph_GetInitializers(&graph, infos.data(), count)));
    for (const OrtValueInfo* info : infos) {
      bool is_constant = false;
      SDX_TRY(take(api_.ValueInfo_IsConstantInitializer(info, &is_constant)));
      if (is_constant) SDX_TRY(add_constant(*info));
    }
    SDX_TRY(take(api_.Graph_GetNumInputs(&graph, &count)));
    infos.resize(count);
    SDX_TRY(take(api_.Graph_GetInputs(&graph, infos.data(), count)));
    for (const OrtValueInfo* info : infos) {
      SDX_ASSIGN(const ValueId id, declare(*info));
      if (!graph_.value(id).constant) graph_.add_input(id);
    }
    return {};
  }

  Status add_constant(const OrtValueInfo& info) {
    SDX_ASSIGN(const ValueId id, declare(info));
    if (shared_.weights == Weights::Leave || graph_.value(id).constant) return {};
    SDX_ASSIGN(const bool is_mapped, map_weight(shared_, info, graph_.value(id).type, graph_, id));
    if (is_mapped) return {};
    const OrtValue* value = nullptr;
    SDX_TRY(take(api_.ValueInfo_GetInitializerValue(&info, &value)));
    if (value == nullptr) {
      return failure(Code::Unsupported, "the runtime has no data for initializer '{}'",
                     graph_.value(id).name);
    }
    SDX_ASSIGN(Tensor tensor, copy(shared_.host, *value));
    graph_.value(id).type = Type::tensor(tensor.dtype(), tensor.shape());
    graph_.set_constant(id, std::move(tensor));
    return {};
  }

  Status read_outputs(const OrtGraph& graph) {
    std::size_t count = 0;
    SDX_TRY(take(api_.Graph_GetNumOutputs(&graph, &count)));
    std::vector<const OrtValueInfo*> infos(count);
    SDX_TRY(take(api_.Graph_GetOutputs(&graph, infos.data(), count)));
    for (const OrtValueInfo* info : infos) {
      SDX_ASSIGN(const ValueId id, use(info));
      if (id == kNoValue) return Status(Code::InvalidModel, "the graph has an output without name");
      graph_.add_output(id);
    }
    return {};
  }

  Result<std::vector<const OrtValueInfo*>> outputs_of(const OrtNode& node) const {
    std::size_t count = 0;
    SDX_TRY(take(api_.Node_GetNumOutputs(&node, &count)));
    std::vector<const OrtValueInfo*> infos(count);
    SDX_TRY(take(api_.Node_GetOutputs(&node, infos.data(), count)));
    return infos;
  }

  Status declare_outputs(const OrtNode& node) {
    SDX_ASSIGN(const auto infos, outputs_of(node));
    for (const OrtValueInfo* info : infos) {
      if (info == nullptr) continue;
      SDX_ASSIGN(const std::string name, name_of(*info));
      if (!name.empty()) SDX_TRY(declare(*info).take_status());
    }
    return {};
  }

  /// The id of a value that this graph or one around it has.
  Result<ValueId> find(const std::string& name) {
    if (const auto found = ids_.find(name); found != ids_.end()) return found->second;
    if (outer_ == nullptr) return kNoValue;
    SDX_ASSIGN(const ValueId outer, outer_->find(name));
    if (outer == kNoValue) return kNoValue;
    const ValueId inner = graph_.capture(outer, name, outer_->graph_.value(outer).type);
    ids_.emplace(name, inner);
    return inner;
  }

  /// What a node uses: kNoValue for one that is left out.
  Result<ValueId> use(const OrtValueInfo* info) {
    if (info == nullptr) return kNoValue;
    SDX_ASSIGN(const std::string name, name_of(*info));
    if (name.empty()) return kNoValue;
    SDX_ASSIGN(const ValueId known, find(name));
    if (known != kNoValue) return known;
    // A weight that only a subgraph uses may be missing from the list of the graph around it.
    bool is_constant = false;
    SDX_TRY(take(api_.ValueInfo_IsConstantInitializer(info, &is_constant)));
    if (is_constant) {
      SDX_TRY(add_constant(*info));
    } else if (shared_.weights == Weights::Take) {
      return failure(Code::InvalidModel, "the graph uses '{}', but nothing in it makes it", name);
    }
    return declare(*info);
  }

  Status add_node(const OrtNode& handle) {
    Node node;
    const char* text = nullptr;
    SDX_TRY(take(api_.Node_GetName(&handle, &text)));
    node.name = text == nullptr ? "" : text;
    SDX_TRY(take(api_.Node_GetOperatorType(&handle, &text)));
    node.op_type = text;
    SDX_TRY(take(api_.Node_GetDomain(&handle, &text)));
    node.domain = domain_of(text);
    SDX_TRY(read_opset(handle, node));
    SDX_TRY(read_edges(handle, node));
    std::string unread;
    Status status = read_attributes(shared_.host, handle, node.attributes);
    if (status.ok()) status = read_subgraphs(handle, node);
    if (!status.ok()) {
      if (shared_.weights == Weights::Take) {
        return std::move(status).with("reading " + node.describe(graph_));
      }
      unread = status.to_string();
    }
    unread_.push_back(std::move(unread));
    graph_.add_node(std::move(node));
    return {};
  }

  Status read_opset(const OrtNode& handle, Node& node) {
    if (const auto found = shared_.opsets.find(node.domain); found != shared_.opsets.end()) {
      node.opset = found->second;
      return {};
    }
    int since = 0;
    SDX_TRY(take(api_.Node_GetSinceVersion(&handle, &since)));
    node.opset = since;
    return {};
  }

  Status read_edges(const OrtNode& handle, Node& node) {
    std::size_t count = 0;
    SDX_TRY(take(api_.Node_GetNumInputs(&handle, &count)));
    std::vector<const OrtValueInfo*> infos(count);
    SDX_TRY(take(api_.Node_GetInputs(&handle, infos.data(), count)));
    for (const OrtValueInfo* info : infos) {
      SDX_ASSIGN(const ValueId id, use(info));
      node.inputs.push_back(id);
    }
    while (!node.inputs.empty() && node.inputs.back() == kNoValue) node.inputs.pop_back();
    SDX_ASSIGN(const auto outputs, outputs_of(handle));
    for (const OrtValueInfo* info : outputs) {
      if (info == nullptr) {
        node.outputs.push_back(kNoValue);
        continue;
      }
      SDX_ASSIGN(const std::string name, name_of(*info));
      node.outputs.push_back(name.empty() ? kNoValue : ids_.at(name));
    }
    return {};
  }

  Status read_subgraphs(const OrtNode& handle, Node& node) {
    std::size_t count = 0;
    SDX_TRY(take(api_.Node_GetNumSubgraphs(&handle, &count)));
    std::vector<const OrtGraph*> graphs(count);
    std::vector<const char*> names(count);
    SDX_TRY(take(api_.Node_GetSubgraphs(&handle, graphs.data(), count, names.data())));
    for (std::size_t i = 0; i < count; ++i) {
      Reader inner(shared_, this);
      SDX_TRY(inner.read(*graphs[i]));
      for (const std::string& reason : inner.unread_) {
        if (!reason.empty()) return Status(Code::Unsupported, reason);
      }
      node.attributes.set(names[i], std::make_shared<Graph>(inner.take_graph()));
    }
    return {};
  }

  Shared& shared_;
  const OrtApi& api_;
  Reader* outer_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  std::vector<const OrtNode*> nodes_;
  std::vector<std::string> unread_;
};

}  // namespace

Result<ReadGraph> read_graph(const Host& host, const OrtGraph& graph, Weights weights) {
  ReadGraph result;
  Shared shared{host, weights, result.symbols, {}, {}};
  const ORTCHAR_T* path = nullptr;
  SDX_TRY(host.take(host.api->Graph_GetModelPath(&graph, &path)));
  if (path != nullptr) shared.model_folder = std::filesystem::path(path).parent_path().string();
  SDX_TRY(read_opsets(graph, shared));
  Reader reader(shared, nullptr);
  SDX_TRY(reader.read(graph));
  result.graph = reader.take_graph();
  const char* name = nullptr;
  SDX_TRY(host.take(host.api->Graph_GetName(&graph, &name)));
  result.graph.name = name == nullptr ? "" : name;
  result.nodes = reader.take_nodes();
  result.unread = reader.take_unread();
  return result;
}

}  // namespace sardonyx::plugin
