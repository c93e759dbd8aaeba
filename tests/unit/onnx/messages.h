#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/dtype.h"
#include "onnx/field_numbers.h"
#include "onnx/reader.h"
#include "onnx/tensor_writer.h"

/// ONNX messages put together by hand, right ones and wrong ones. Each function yields fields or a
/// whole message; + joins them.
namespace messages {

using namespace sardonyx;
using namespace sardonyx::onnx;

inline std::string field(std::uint32_t number, std::string_view payload) {
  std::string message;
  append_bytes(message, number, payload);
  return message;
}

inline std::string integer(std::uint32_t number, std::int64_t value) {
  std::string message;
  append_integer(message, number, value);
  return message;
}

template <typename T>
std::string raw(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

inline std::string varints(std::initializer_list<std::int64_t> values) {
  std::string packed;
  for (const std::int64_t value : values) packed += integer(1, value).substr(1);
  return packed;
}

inline std::string tensor(std::string_view name, DType dtype, std::vector<std::int64_t> dims,
                          const std::string& data) {
  std::string message;
  for (const std::int64_t dim : dims) message += integer(tensor_field::kDims, dim);
  message += integer(tensor_field::kDataType, static_cast<int>(dtype));
  return message + field(tensor_field::kName, name) + data;
}

inline std::string raw_data(std::string_view bytes) { return field(tensor_field::kRawData, bytes); }

inline std::string entry(std::uint32_t number, std::string_view key, std::string_view value) {
  std::string message;
  append_entry(message, number, key, value);
  return message;
}

/// The part of a TensorProto that refers to a file; "" leaves offset or length out.
inline std::string external(std::string_view location, std::string_view offset,
                            std::string_view length) {
  std::string message = entry(tensor_field::kExternalData, "location", location);
  if (!offset.empty()) message += entry(tensor_field::kExternalData, "offset", offset);
  if (!length.empty()) message += entry(tensor_field::kExternalData, "length", length);
  return message + integer(tensor_field::kDataLocation, 1);
}

inline std::string value_info(std::string_view name, const Type& type) {
  return encode_value_info(name, type, nullptr);
}

inline std::string input(std::string_view name, const Type& type = Type::tensor(DType::Float32)) {
  return field(graph_field::kInput, value_info(name, type));
}

inline std::string output(std::string_view name, const Type& type = Type::tensor(DType::Float32)) {
  return field(graph_field::kOutput, value_info(name, type));
}

inline std::string initializer(const std::string& tensor_message) {
  return field(graph_field::kInitializer, tensor_message);
}

/// A NodeProto's content.
inline std::string node_body(std::string_view op, std::vector<std::string> inputs,
                             std::vector<std::string> outputs, std::string_view name = "",
                             const std::string& more = "") {
  std::string message;
  for (const auto& item : inputs) message += field(node_field::kInput, item);
  for (const auto& item : outputs) message += field(node_field::kOutput, item);
  if (!name.empty()) message += field(node_field::kName, name);
  return message + field(node_field::kOpType, op) + more;
}

inline std::string node(std::string_view op, std::vector<std::string> inputs,
                        std::vector<std::string> outputs, std::string_view name = "",
                        const std::string& more = "") {
  return field(graph_field::kNode, node_body(op, inputs, outputs, name, more));
}

/// An attribute of a node, its value given as fields.
inline std::string attribute(std::string_view name, AttributeType type, const std::string& value) {
  return field(node_field::kAttribute,
               field(attribute_field::kName, name) +
                   integer(attribute_field::kType, static_cast<int>(type)) + value);
}

inline std::string graph_attribute(std::string_view name, const std::string& graph) {
  return attribute(name, AttributeType::Graph, field(attribute_field::kGraph, graph));
}

inline std::string opset(std::string_view domain, std::int64_t version) {
  return field(model_field::kOpsetImport,
               field(opset_field::kDomain, domain) + integer(opset_field::kVersion, version));
}

/// A model of the newest kind around a GraphProto's content.
inline std::string model(const std::string& graph, const std::string& more = opset("", 20),
                         std::int64_t ir_version = 10) {
  return integer(model_field::kIrVersion, ir_version) + more + field(model_field::kGraph, graph);
}

inline Result<Model> read(const std::string& bytes, const ReadOptions& options = {}) {
  return read_model_from_bytes(std::as_bytes(std::span(std::string_view(bytes))), options);
}

/// What reading the bytes complains about; "" when they are read.
inline std::string error_of(const std::string& bytes, const ReadOptions& options = {}) {
  const auto result = read(bytes, options);
  return result.ok() ? "" : result.status().to_string();
}

inline bool contains_text(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The value of that name; the graph must have it.
inline ValueId find(const Graph& graph, std::string_view name) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).name == name) return id;
  }
  return kNoValue;
}

/// A model that only returns the initializer 'w', and that initializer once it is read.
inline Result<Tensor> read_initializer(const std::string& tensor_message,
                                       const ReadOptions& options = {}) {
  auto read_model = read(model(initializer(tensor_message) + output("w", {})), options);
  if (!read_model.ok()) return std::move(read_model).take_status();
  return *read_model->graph.value(find(read_model->graph, "w")).constant;
}

template <typename T>
std::vector<T> elements(const Tensor& tensor) {
  const auto values = tensor.values<T>();
  return {values.begin(), values.end()};
}

}  // namespace messages
