#include <algorithm>
#include <map>

#include "report/json.h"
#include "report/report.h"

namespace sardonyx {

namespace {

constexpr std::size_t kLargestCount = 10;

struct Weight {
  std::string name;
  std::shared_ptr<const WeightOrigin> origin;
  DType dtype;
  Shape shape;
  std::uint64_t bytes;
};

struct Census {
  std::size_t node_count = 0;
  std::size_t subgraph_count = 0;
  /// By domain and operator.
  std::map<std::pair<std::string, std::string>, std::size_t> operators;
  std::vector<Weight> weights;
};

std::uint64_t bytes_of(const Tensor& tensor) {
  if (tensor.dtype() != DType::String) return tensor.byte_size();
  std::uint64_t bytes = 0;
  for (const std::string& text : tensor.values<std::string>()) bytes += text.size();
  return bytes;
}

void count_weight(const Value& value, Census& census) {
  if (value.is_captured || value.producer != kNoNode) return;
  if (value.sparse_constant != nullptr && !value.constant) {
    const SparseTensor& sparse = *value.sparse_constant;
    census.weights.push_back({value.name, value.origin, sparse.values.dtype(),
                              value.type.shape.value_or(Shape()),
                              bytes_of(sparse.values) + bytes_of(sparse.indices)});
    return;
  }
  const Tensor* tensor = value.constant ? &*value.constant : value.default_value.get();
  if (tensor == nullptr) return;
  census.weights.push_back(
      {value.name, value.origin, tensor->dtype(), tensor->shape(), bytes_of(*tensor)});
}

void count_graph(const Graph& graph, Census& census) {
  for (ValueId id = 0; id < graph.value_count(); ++id) count_weight(graph.value(id), census);
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    ++census.node_count;
    ++census.operators[{node.domain, node.op_type}];
    const Tensor* constant = node.op_type == "Constant" && node.domain.empty()
                                 ? node.attributes.get_if<Tensor>("value")
                                 : nullptr;
    if (constant != nullptr && !node.outputs.empty() && node.outputs[0] != kNoValue) {
      census.weights.push_back({graph.value(node.outputs[0]).name, nullptr, constant->dtype(),
                                constant->shape(), bytes_of(*constant)});
    }
    for (const Graph* inner : subgraphs(node)) {
      ++census.subgraph_count;
      count_graph(*inner, census);
    }
  }
}

std::string domain_name(const std::string& domain) { return domain.empty() ? "ai.onnx" : domain; }

Json pairs(const std::vector<std::pair<std::string, std::string>>& entries) {
  Json json = Json::object();
  for (const auto& [key, value] : entries) json[key] = value;
  return json;
}

Json values(const std::vector<ValueId>& ids, const Model& model) {
  Json json = Json::array();
  for (const ValueId id : ids) {
    const Value& value = model.graph.value(id);
    json.push_back(describe_value(value.name, value.type,
                                  [&](int, Dim dim) { return model.symbols.name(dim); }));
    if (value.default_value != nullptr) json.back()["has_default"] = true;
  }
  return json;
}

Json operators(const Census& census) {
  std::vector<std::pair<std::pair<std::string, std::string>, std::size_t>> rows(
      census.operators.begin(), census.operators.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  Json json = Json::array();
  for (const auto& [key, count] : rows) {
    json.push_back({{"op_type", key.second}, {"domain", domain_name(key.first)}, {"count", count}});
  }
  return json;
}

Json describe_weight(const Weight& weight) {
  Json json = {{"name", weight.name},
               {"type", dtype_name(weight.dtype)},
               {"shape", Json(weight.shape.dims())},
               {"bytes", weight.bytes},
               {"origin", nullptr}};
  if (const auto& origin = weight.origin) {
    json["origin"] = {
        {"file", origin->file}, {"offset", origin->offset}, {"length", origin->length}};
  }
  return json;
}

Json initializers(Census& census) {
  std::uint64_t bytes = 0;
  for (const Weight& weight : census.weights) bytes += weight.bytes;
  std::stable_sort(census.weights.begin(), census.weights.end(),
                   [](const Weight& a, const Weight& b) { return a.bytes > b.bytes; });
  Json largest = Json::array();
  for (const Weight& weight : census.weights) {
    if (largest.size() == kLargestCount) break;
    largest.push_back(describe_weight(weight));
  }
  return {{"count", census.weights.size()}, {"bytes", bytes}, {"largest", largest}};
}

Json functions(const Model& model) {
  Json json = Json::array();
  for (const Function& function : model.functions) {
    Census census;
    if (function.body != nullptr) count_graph(*function.body, census);
    json.push_back({{"domain", function.domain},
                    {"name", function.name},
                    {"overload", function.overload},
                    {"node_count", census.node_count}});
  }
  return json;
}

}  // namespace

std::string describe_model(const Model& model) {
  Census census;
  count_graph(model.graph, census);
  Json opsets = Json::object();
  for (const auto& [domain, version] : model.opset_imports) opsets[domain_name(domain)] = version;
  return to_text({{"path", model.path},
                  {"ir_version", model.ir_version},
                  {"opset_imports", opsets},
                  {"producer_name", model.producer_name},
                  {"producer_version", model.producer_version},
                  {"domain", model.domain},
                  {"model_version", model.model_version},
                  {"doc_string", model.doc_string},
                  {"graph_name", model.graph.name},
                  {"metadata", pairs(model.metadata)},
                  {"inputs", values(model.graph.inputs(), model)},
                  {"outputs", values(model.graph.outputs(), model)},
                  {"node_count", census.node_count},
                  {"subgraph_count", census.subgraph_count},
                  {"operators", operators(census)},
                  {"initializers", initializers(census)},
                  {"functions", functions(model)}});
}

}  // namespace sardonyx
