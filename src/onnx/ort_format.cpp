#include "onnx/ort_format.h"

#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/flat_reader.h"
#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/tensor_writer.h"

namespace sardonyx::onnx {

namespace {

/// Slots of the fields of the format's tables.
namespace slot {
enum Session : std::uint32_t { kModel = 1 };
enum Model : std::uint32_t {
  kIrVersion = 0,
  kOpsets = 1,
  kProducerName = 2,
  kProducerVersion = 3,
  kModelDomain = 4,
  kModelVersion = 5,
  kModelDoc = 6,
  kGraph = 7,
  kGraphDoc = 8,
  kMetadata = 9,
};
enum Pair : std::uint32_t { kFirst = 0, kSecond = 1 };
enum Graph : std::uint32_t {
  kInitializers = 0,
  kNodeArgs = 1,
  kNodes = 2,
  kInputs = 5,
  kOutputs = 6,
  kSparseInitializers = 7,
};
enum Node : std::uint32_t {
  kNodeName = 0,
  kNodeDomain = 2,
  kOpType = 5,
  kNodeInputs = 8,
  kNodeOutputs = 9,
  kAttributes = 10,
};
enum ValueInfo : std::uint32_t { kValueName = 0, kValueType = 2 };
enum TypeInfo : std::uint32_t { kTypeKind = 1, kType = 2 };
enum Dimension : std::uint32_t { kDimValue = 0 };
enum DimValue : std::uint32_t { kDimKind = 0, kDimSize = 1, kDimName = 2 };
enum Tensor : std::uint32_t {
  kTensorName = 0,
  kDims = 2,
  kDataType = 3,
  kRawData = 4,
  kStringData = 5,
  kExternalOffset = 6,
};
enum Attribute : std::uint32_t {
  kAttributeName = 0,
  kAttributeType = 2,
  kFloat = 3,
  kInt = 4,
  kString = 5,
  kTensor = 6,
  kSubgraph = 7,
  kFloats = 8,
  kInts = 9,
  kStrings = 10,
  kTensors = 11,
};
}  // namespace slot

enum class TypeKind : std::uint8_t { None = 0, Tensor = 1, Sequence = 2, Map = 3 };
enum class DimKind : std::int8_t { Unknown = 0, Value = 1, Name = 2 };

constexpr int kMaxDepth = 32;

/// Writes the ONNX messages of a model's tables. Tables of a flatbuffer can be shared, so that a
/// small file could stand for a vast message: what is written is counted.
class Converter {
 public:
  explicit Converter(std::string_view bytes)
      : reader_(std::as_bytes(std::span(bytes.data(), bytes.size())), Code::InvalidProtobuf,
                "model"),
        budget_(64 * bytes.size() + (std::size_t{1} << 20)) {}

  Result<std::string> model() {
    SDX_ASSIGN(const std::size_t root, reader_.follow(0));
    SDX_ASSIGN(const std::size_t table, reader_.table(root, slot::kModel));
    if (table == 0) return failure(Code::InvalidProtobuf, "the .ort file holds no model");
    std::string out;
    SDX_ASSIGN(const auto ir, reader_.number<std::int64_t>(table, slot::kIrVersion));
    SDX_ASSIGN(const auto version, reader_.number<std::int64_t>(table, slot::kModelVersion));
    append_integer(out, model_field::kIrVersion, ir);
    append_integer(out, model_field::kModelVersion, version);
    SDX_TRY(copy_text(table, slot::kProducerName, out, model_field::kProducerName));
    SDX_TRY(copy_text(table, slot::kProducerVersion, out, model_field::kProducerVersion));
    SDX_TRY(copy_text(table, slot::kModelDomain, out, model_field::kDomain));
    SDX_TRY(copy_text(table, slot::kModelDoc, out, model_field::kDocString));
    SDX_TRY(opsets(table, out));
    SDX_TRY(metadata(table, out));
    SDX_ASSIGN(const std::size_t inner, reader_.table(table, slot::kGraph));
    if (inner == 0) return failure(Code::InvalidProtobuf, "the .ort file holds no graph");
    SDX_ASSIGN(std::string message, graph(inner, 0));
    SDX_TRY(copy_text(table, slot::kGraphDoc, message, graph_field::kDocString));
    SDX_TRY(put(out, model_field::kGraph, message));
    return out;
  }

 private:
  using Vector = FlatReader::Vector;

  Status spend(std::size_t bytes) {
    if (bytes > budget_) {
      return failure(Code::InvalidProtobuf, "the .ort file holds the same parts too many times");
    }
    budget_ -= bytes;
    return {};
  }

  Status put(std::string& out, std::uint32_t field, std::string_view payload) {
    // Lengths are written in 32 bits.
    if (payload.size() > UINT32_MAX) {
      return failure(Code::InvalidProtobuf,
                     "the .ort file holds a part of {} bytes, expected less than 4 GiB",
                     payload.size());
    }
    SDX_TRY(spend(payload.size() + 16));
    append_bytes(out, field, payload);
    return {};
  }

  Status copy_text(std::size_t table, std::uint32_t from, std::string& out, std::uint32_t field) {
    SDX_ASSIGN(const std::string_view text, reader_.text(table, from));
    return text.empty() ? Status() : put(out, field, text);
  }

  Status copy_texts(std::size_t table, std::uint32_t from, std::string& out, std::uint32_t field) {
    SDX_ASSIGN(const Vector texts, reader_.vector(table, from, sizeof(std::uint32_t)));
    for (std::size_t i = 0; i < texts.count; ++i) {
      SDX_ASSIGN(const std::string_view text, reader_.text_item(texts, i));
      SDX_TRY(put(out, field, text));
    }
    return {};
  }

  /// The message that `make` makes of each table of a vector.
  template <typename Make>
  Status each(std::size_t table, std::uint32_t from, std::string& out, std::uint32_t field,
              Make make) {
    SDX_ASSIGN(const Vector tables, reader_.vector(table, from, sizeof(std::uint32_t)));
    for (std::size_t i = 0; i < tables.count; ++i) {
      SDX_ASSIGN(const std::size_t item, reader_.item(tables, i));
      SDX_ASSIGN(const std::string message, make(item));
      SDX_TRY(put(out, field, message));
    }
    return {};
  }

  Status opsets(std::size_t table, std::string& out) {
    return each(table, slot::kOpsets, out, model_field::kOpsetImport,
                [&](std::size_t item) -> Result<std::string> {
                  std::string message;
                  SDX_TRY(copy_text(item, slot::kFirst, message, opset_field::kDomain));
                  SDX_ASSIGN(const auto version, reader_.number<std::int64_t>(item, slot::kSecond));
                  append_integer(message, opset_field::kVersion, version);
                  return message;
                });
  }

  Status metadata(std::size_t table, std::string& out) {
    return each(table, slot::kMetadata, out, model_field::kMetadata,
                [&](std::size_t item) -> Result<std::string> {
                  std::string message;
                  SDX_TRY(copy_text(item, slot::kFirst, message, entry_field::kKey));
                  SDX_TRY(copy_text(item, slot::kSecond, message, entry_field::kValue));
                  return message;
                });
  }

  Result<std::string> graph(std::size_t table, int depth) {
    if (depth > kMaxDepth) {
      return failure(Code::InvalidProtobuf, "graphs are nested more than {} deep", kMaxDepth);
    }
    std::string out;
    SDX_TRY(put(out, graph_field::kName, "graph"));
    SDX_TRY(each(table, slot::kNodes, out, graph_field::kNode,
                 [&](std::size_t item) { return node(item, depth); }));
    SDX_TRY(each(table, slot::kInitializers, out, graph_field::kInitializer,
                 [&](std::size_t item) { return tensor(item); }));
    SDX_ASSIGN(const Vector sparse,
               reader_.vector(table, slot::kSparseInitializers, sizeof(std::uint32_t)));
    if (sparse.count != 0) {
      return failure(Code::Unsupported, "sparse weights of .ort files are not read");
    }
    SDX_TRY(values(table, out));
    return out;
  }

  /// Inputs and outputs with their types, and the types of what lies between.
  Status values(std::size_t table, std::string& out) {
    std::unordered_map<std::string_view, std::string> infos;
    SDX_ASSIGN(const Vector all, reader_.vector(table, slot::kNodeArgs, sizeof(std::uint32_t)));
    for (std::size_t i = 0; i < all.count; ++i) {
      SDX_TRY(spend(16));
      SDX_ASSIGN(const std::size_t item, reader_.item(all, i));
      SDX_ASSIGN(const std::string_view name, reader_.text(item, slot::kValueName));
      SDX_ASSIGN(std::string message, value_info(item));
      infos.insert_or_assign(name, std::move(message));
    }
    std::unordered_set<std::string_view> ports;
    SDX_TRY(port_list(table, slot::kInputs, infos, ports, out, graph_field::kInput));
    SDX_TRY(port_list(table, slot::kOutputs, infos, ports, out, graph_field::kOutput));
    for (const auto& [name, message] : infos) {
      if (name.empty() || ports.count(name) != 0) continue;
      SDX_TRY(put(out, graph_field::kValueInfo, message));
    }
    return {};
  }

  Status port_list(std::size_t table, std::uint32_t from,
                   const std::unordered_map<std::string_view, std::string>& infos,
                   std::unordered_set<std::string_view>& ports, std::string& out,
                   std::uint32_t field) {
    SDX_ASSIGN(const Vector names, reader_.vector(table, from, sizeof(std::uint32_t)));
    for (std::size_t i = 0; i < names.count; ++i) {
      SDX_ASSIGN(const std::string_view name, reader_.text_item(names, i));
      const auto info = infos.find(name);
      if (info == infos.end()) {
        return failure(Code::InvalidProtobuf, "the .ort file does not describe the value '{}'",
                       name);
      }
      ports.insert(name);
      SDX_TRY(put(out, field, info->second));
    }
    return {};
  }

  Result<std::string> value_info(std::size_t table) {
    std::string out;
    SDX_TRY(copy_text(table, slot::kValueName, out, value_info_field::kName));
    SDX_ASSIGN(const std::size_t type, reader_.table(table, slot::kValueType));
    if (type == 0) return out;
    SDX_ASSIGN(const std::string message, type_info(type, 0));
    if (!message.empty()) SDX_TRY(put(out, value_info_field::kType, message));
    return out;
  }

  Result<std::string> type_info(std::size_t table, int depth) {
    if (depth > kMaxDepth) {
      return failure(Code::InvalidProtobuf, "types are nested more than {} deep", kMaxDepth);
    }
    SDX_ASSIGN(const auto kind, reader_.number<std::uint8_t>(table, slot::kTypeKind));
    SDX_ASSIGN(const std::size_t inner, reader_.table(table, slot::kType));
    std::string out;
    if (inner == 0) return out;
    std::string message;
    switch (static_cast<TypeKind>(kind)) {
      case TypeKind::None: return out;
      case TypeKind::Tensor: {
        SDX_ASSIGN(const auto element, reader_.number<std::int32_t>(inner, slot::kFirst));
        append_integer(message, type_field::kElement, element);
        SDX_ASSIGN(const std::size_t dims, reader_.table(inner, slot::kSecond));
        if (dims != 0) {
          SDX_ASSIGN(const std::string shape, shape_of(dims));
          SDX_TRY(put(message, type_field::kSecond, shape));
        }
        SDX_TRY(put(out, type_field::kTensor, message));
        return out;
      }
      case TypeKind::Sequence: {
        SDX_TRY(put_type(inner, slot::kFirst, message, type_field::kElement, depth));
        SDX_TRY(put(out, type_field::kSequence, message));
        return out;
      }
      case TypeKind::Map: {
        SDX_ASSIGN(const auto key, reader_.number<std::int32_t>(inner, slot::kFirst));
        append_integer(message, type_field::kElement, key);
        SDX_TRY(put_type(inner, slot::kSecond, message, type_field::kSecond, depth));
        SDX_TRY(put(out, type_field::kMap, message));
        return out;
      }
    }
    return failure(Code::Unsupported, "the .ort file has a value of unknown kind {}", kind);
  }

  Status put_type(std::size_t table, std::uint32_t from, std::string& out, std::uint32_t field,
                  int depth) {
    SDX_ASSIGN(const std::size_t type, reader_.table(table, from));
    if (type == 0) return {};
    SDX_ASSIGN(const std::string message, type_info(type, depth + 1));
    return put(out, field, message);
  }

  Result<std::string> shape_of(std::size_t table) {
    std::string out;
    SDX_TRY(each(table, slot::kFirst, out, shape_field::kDim,
                 [&](std::size_t item) { return dimension(item); }));
    return out;
  }

  Result<std::string> dimension(std::size_t table) {
    std::string out;
    SDX_ASSIGN(const std::size_t value, reader_.table(table, slot::kDimValue));
    if (value == 0) return out;
    SDX_ASSIGN(const auto kind, reader_.number<std::int8_t>(value, slot::kDimKind));
    if (static_cast<DimKind>(kind) == DimKind::Value) {
      SDX_ASSIGN(const auto size, reader_.number<std::int64_t>(value, slot::kDimSize));
      append_integer(out, shape_field::kValue, size);
    } else if (static_cast<DimKind>(kind) == DimKind::Name) {
      SDX_TRY(copy_text(value, slot::kDimName, out, shape_field::kParameter));
    }
    return out;
  }

  Result<std::string> node(std::size_t table, int depth) {
    std::string out;
    SDX_TRY(copy_texts(table, slot::kNodeInputs, out, node_field::kInput));
    SDX_TRY(copy_texts(table, slot::kNodeOutputs, out, node_field::kOutput));
    SDX_TRY(copy_text(table, slot::kNodeName, out, node_field::kName));
    SDX_TRY(copy_text(table, slot::kOpType, out, node_field::kOpType));
    SDX_TRY(copy_text(table, slot::kNodeDomain, out, node_field::kDomain));
    SDX_TRY(each(table, slot::kAttributes, out, node_field::kAttribute,
                 [&](std::size_t item) { return attribute(item, depth); }));
    return out;
  }

  Result<std::string> attribute(std::size_t table, int depth) {
    std::string out;
    SDX_TRY(copy_text(table, slot::kAttributeName, out, attribute_field::kName));
    SDX_ASSIGN(const auto type, reader_.number<std::int32_t>(table, slot::kAttributeType));
    append_integer(out, attribute_field::kType, type);
    switch (static_cast<AttributeType>(type)) {
      case AttributeType::Float: {
        SDX_ASSIGN(const auto value, reader_.number<float>(table, slot::kFloat));
        append_float(out, attribute_field::kFloat, value);
        return out;
      }
      case AttributeType::Int: {
        SDX_ASSIGN(const auto value, reader_.number<std::int64_t>(table, slot::kInt));
        append_integer(out, attribute_field::kInt, value);
        return out;
      }
      case AttributeType::String: {
        SDX_ASSIGN(const std::string_view text, reader_.text(table, slot::kString));
        SDX_TRY(put(out, attribute_field::kString, text));
        return out;
      }
      case AttributeType::Strings:
        SDX_TRY(copy_texts(table, slot::kStrings, out, attribute_field::kStrings));
        return out;
      case AttributeType::Floats: SDX_TRY(floats(table, out)); return out;
      case AttributeType::Ints:
        SDX_TRY(integers(table, slot::kInts, out, attribute_field::kInts));
        return out;
      case AttributeType::Tensors:
        SDX_TRY(each(table, slot::kTensors, out, attribute_field::kTensors,
                     [&](std::size_t item) { return tensor(item); }));
        return out;
      case AttributeType::Tensor: {
        SDX_ASSIGN(const std::size_t inner, reader_.table(table, slot::kTensor));
        if (inner == 0) break;
        SDX_ASSIGN(const std::string message, tensor(inner));
        SDX_TRY(put(out, attribute_field::kTensor, message));
        return out;
      }
      case AttributeType::Graph: {
        SDX_ASSIGN(const std::size_t inner, reader_.table(table, slot::kSubgraph));
        if (inner == 0) break;
        SDX_ASSIGN(const std::string message, graph(inner, depth + 1));
        SDX_TRY(put(out, attribute_field::kGraph, message));
        return out;
      }
      default: break;
    }
    return failure(Code::Unsupported, "attributes of type {} of .ort files are not read", type);
  }

  Status floats(std::size_t table, std::string& out) {
    SDX_ASSIGN(const Vector found, reader_.vector(table, slot::kFloats, sizeof(float)));
    for (std::size_t i = 0; i < found.count; ++i) {
      SDX_ASSIGN(const auto value, reader_.read<float>(found.begin + i * sizeof(float)));
      append_float(out, attribute_field::kFloats, value);
    }
    return {};
  }

  Status integers(std::size_t table, std::uint32_t from, std::string& out, std::uint32_t field) {
    SDX_ASSIGN(const Vector found, reader_.vector(table, from, sizeof(std::int64_t)));
    for (std::size_t i = 0; i < found.count; ++i) {
      SDX_ASSIGN(const auto value,
                 reader_.read<std::int64_t>(found.begin + i * sizeof(std::int64_t)));
      append_integer(out, field, value);
    }
    return {};
  }

  Result<std::string> tensor(std::size_t table) {
    std::string out;
    SDX_TRY(copy_text(table, slot::kTensorName, out, tensor_field::kName));
    SDX_TRY(integers(table, slot::kDims, out, tensor_field::kDims));
    SDX_ASSIGN(const auto type, reader_.number<std::int32_t>(table, slot::kDataType));
    append_integer(out, tensor_field::kDataType, type);
    SDX_ASSIGN(const auto offset,
               reader_.number<std::int64_t>(table, slot::kExternalOffset, std::int64_t{-1}));
    if (offset >= 0) {
      return failure(Code::Unsupported, "weights of .ort files in another file are not read");
    }
    SDX_TRY(copy_texts(table, slot::kStringData, out, tensor_field::kStringData));
    SDX_ASSIGN(const std::string_view raw, reader_.text(table, slot::kRawData));
    if (!raw.empty()) SDX_TRY(put(out, tensor_field::kRawData, raw));
    return out;
  }

  FlatReader reader_;
  std::size_t budget_;
};

}  // namespace

bool is_ort_format(std::string_view bytes) {
  return bytes.size() >= 8 && bytes.substr(4, 4) == "ORTM";
}

Result<std::string> onnx_of_ort_format(std::string_view bytes) { return Converter(bytes).model(); }

}  // namespace sardonyx::onnx
