#include "onnx/tensor_writer.h"

#include <protozero/pbf_writer.hpp>

#include "base/text.h"
#include "onnx/field_numbers.h"

namespace sardonyx::onnx {

namespace {

std::string_view bytes_of(const Tensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.byte_size()};
}

/// Four 6-bit elements to three bytes, low bits first.
std::string pack_float6(const Tensor& tensor) {
  const auto elements = tensor.values<std::uint8_t>();
  std::string packed(elements.size() / 4 * 3 + (elements.size() % 4 * 6 + 7) / 8, '\0');
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const unsigned shifted = (elements[i] & 0x3fU) << (i * 6 % 8);
    const std::size_t byte = i * 6 / 8;
    packed[byte] = static_cast<char>(static_cast<unsigned char>(packed[byte]) | (shifted & 0xffU));
    if (shifted >> 8 != 0) {
      packed[byte + 1] =
          static_cast<char>(static_cast<unsigned char>(packed[byte + 1]) | (shifted >> 8));
    }
  }
  return packed;
}

std::string encode_shape(const Shape& shape, const SymbolTable* symbols) {
  std::string message;
  for (const Dim dim : shape) {
    std::string dimension;
    if (is_known(dim)) {
      append_integer(dimension, shape_field::kValue, dim);
    } else if (symbols != nullptr && !symbols->name(dim).empty()) {
      append_bytes(dimension, shape_field::kParameter, symbols->name(dim));
    }
    append_bytes(message, shape_field::kDim, dimension);
  }
  return message;
}

std::uint32_t type_field_of(Type::Kind kind) {
  switch (kind) {
    case Type::Kind::Tensor: return type_field::kTensor;
    case Type::Kind::SparseTensor: return type_field::kSparseTensor;
    case Type::Kind::Sequence: return type_field::kSequence;
    case Type::Kind::Map: return type_field::kMap;
    case Type::Kind::Optional: return type_field::kOptional;
    case Type::Kind::Opaque: return type_field::kOpaque;
    case Type::Kind::Unknown: break;
  }
  return 0;
}

Result<std::string> encode_nested(const Datum& datum);

/// Field of SequenceProto and OptionalProto for such an item, and its DataKind.
std::pair<std::uint32_t, DataKind> kind_of(const Datum& datum) {
  if (datum.tensor() != nullptr) return {sequence_field::kTensors, DataKind::Tensor};
  if (datum.sparse() != nullptr) return {sequence_field::kSparseTensors, DataKind::SparseTensor};
  if (datum.sequence() != nullptr) return {sequence_field::kSequences, DataKind::Sequence};
  if (datum.map() != nullptr) return {sequence_field::kMaps, DataKind::Map};
  return {sequence_field::kOptionals, DataKind::Optional};
}

DataKind kind_of(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Tensor: return DataKind::Tensor;
    case Type::Kind::SparseTensor: return DataKind::SparseTensor;
    case Type::Kind::Sequence: return DataKind::Sequence;
    case Type::Kind::Map: return DataKind::Map;
    case Type::Kind::Optional: return DataKind::Optional;
    case Type::Kind::Unknown:
    case Type::Kind::Opaque: break;
  }
  return DataKind::Undefined;
}

Status append_item(std::string& message, std::uint32_t field, const Datum& item) {
  SDX_ASSIGN(const std::string encoded, encode_nested(item));
  if (message.size() + encoded.size() > kMaxMessageBytes) {
    return failure(Code::InvalidArgument, "data of 2 GiB and more cannot be written");
  }
  append_bytes(message, field, encoded);
  return {};
}

Result<std::string> encode_sequence(const Sequence& sequence) {
  std::string message;
  append_integer(message, sequence_field::kElementKind,
                 static_cast<std::int64_t>(kind_of(sequence.element)));
  for (const Datum& item : sequence.items) {
    SDX_TRY(append_item(message, kind_of(item).first, item));
  }
  return message;
}

Result<std::string> encode_map(const Map& map) {
  std::string message;
  append_integer(message, map_field::kKeyType, static_cast<std::int64_t>(map.keys.dtype()));
  if (map.keys.dtype() == DType::String) {
    for (const std::string& key : map.keys.values<std::string>()) {
      append_bytes(message, map_field::kStringKeys, key);
    }
  } else {
    for (const std::int64_t key : map.keys.values<std::int64_t>()) {
      append_integer(message, map_field::kKeys, key);
    }
  }
  Sequence values;
  values.element = Type::tensor(map.values.dtype());
  // Scalars of a map take whole bytes.
  const std::size_t bytes = *dtype_bytes(map.values.dtype(), 1);
  for (std::int64_t i = 0; i < map.values.element_count(); ++i) {
    values.items.emplace_back(Tensor::view(map.values.dtype(), Shape{},
                                           map.values.data() + static_cast<std::size_t>(i) * bytes,
                                           map.values.owner()));
  }
  SDX_ASSIGN(const std::string encoded, encode_sequence(values));
  append_bytes(message, map_field::kValues, encoded);
  return message;
}

Result<std::string> encode_nested(const Datum& datum) {
  if (const Tensor* tensor = datum.tensor()) return encode_tensor("", *tensor);
  if (const SparseTensor* sparse = datum.sparse()) return encode_sparse("", *sparse);
  if (const Sequence* sequence = datum.sequence()) return encode_sequence(*sequence);
  if (const Map* map = datum.map()) return encode_map(*map);
  return std::string();
}

}  // namespace

void append_bytes(std::string& message, std::uint32_t field, std::string_view payload) {
  protozero::pbf_writer(message).add_bytes(field, payload.data(), payload.size());
}

void append_head(std::string& message, std::uint32_t field, std::uint64_t payload_bytes) {
  const auto tag =
      protozero::tag_and_type(field, protozero::pbf_wire_type::length_delimited);
  protozero::add_varint_to_buffer(&message, tag);
  protozero::add_varint_to_buffer(&message, payload_bytes);
}

void append_integer(std::string& message, std::uint32_t field, std::int64_t value) {
  protozero::pbf_writer(message).add_int64(field, value);
}

void append_float(std::string& message, std::uint32_t field, float value) {
  protozero::pbf_writer(message).add_float(field, value);
}

void append_entry(std::string& message, std::uint32_t field, std::string_view key,
                  std::string_view value) {
  std::string entry;
  append_bytes(entry, entry_field::kKey, key);
  append_bytes(entry, entry_field::kValue, value);
  append_bytes(message, field, entry);
}

std::string tensor_head(std::string_view name, const Tensor& tensor) {
  std::string message;
  for (const Dim dim : tensor.shape()) append_integer(message, tensor_field::kDims, dim);
  append_integer(message, tensor_field::kDataType, static_cast<std::int64_t>(tensor.dtype()));
  if (!name.empty()) append_bytes(message, tensor_field::kName, name);
  return message;
}

bool is_written_as_it_is(const Tensor& tensor) {
  return !contains(kFloat6 | set_of(DType::String), tensor.dtype());
}

Result<std::string> encode_tensor(std::string_view name, const Tensor& tensor) {
  std::string message = tensor_head(name, tensor);
  if (tensor.byte_size() > kMaxMessageBytes - message.size() - 16) {
    return failure(Code::InvalidArgument,
                   "tensor '{}' has {} bytes; 2 GiB and more must be written as external data",
                   name, tensor.byte_size());
  }
  if (tensor.dtype() == DType::String) {
    for (const std::string& text : tensor.values<std::string>()) {
      append_bytes(message, tensor_field::kStringData, text);
    }
  } else if (contains(kFloat6, tensor.dtype())) {
    append_bytes(message, tensor_field::kRawData, pack_float6(tensor));
  } else {
    append_bytes(message, tensor_field::kRawData, bytes_of(tensor));
  }
  return message;
}

std::string encode_external(std::string_view name, const Tensor& tensor,
                            const ExternalLocation& location) {
  std::string message = tensor_head(name, tensor);
  append_entry(message, tensor_field::kExternalData, "location", location.location);
  append_entry(message, tensor_field::kExternalData, "offset",
               fmt::format("{}", location.offset));
  append_entry(message, tensor_field::kExternalData, "length",
               fmt::format("{}", location.length_bytes));
  append_integer(message, tensor_field::kDataLocation, 1);
  return message;
}

Result<std::string> encode_sparse(std::string_view name, const SparseTensor& sparse) {
  std::string message;
  SDX_ASSIGN(const std::string values, encode_tensor(name, sparse.values));
  SDX_ASSIGN(const std::string indices, encode_tensor("", sparse.indices));
  if (values.size() + indices.size() > kMaxMessageBytes - 1024) {
    return failure(Code::InvalidArgument, "sparse tensor '{}' has 2 GiB or more", name);
  }
  append_bytes(message, sparse_field::kValues, values);
  append_bytes(message, sparse_field::kIndices, indices);
  for (const Dim dim : sparse.shape) append_integer(message, sparse_field::kDims, dim);
  return message;
}

std::string encode_type(const Type& type, const SymbolTable* symbols) {
  std::string inner;
  switch (type.kind) {
    case Type::Kind::Unknown: return inner;
    case Type::Kind::Opaque: break;
    case Type::Kind::Tensor:
    case Type::Kind::SparseTensor:
      append_integer(inner, type_field::kElement, static_cast<std::int64_t>(type.dtype));
      if (type.shape) append_bytes(inner, type_field::kSecond, encode_shape(*type.shape, symbols));
      break;
    case Type::Kind::Map:
      append_integer(inner, type_field::kElement, static_cast<std::int64_t>(type.dtype));
      if (type.element) {
        append_bytes(inner, type_field::kSecond, encode_type(*type.element, symbols));
      }
      break;
    case Type::Kind::Sequence:
    case Type::Kind::Optional:
      if (type.element) {
        append_bytes(inner, type_field::kElement, encode_type(*type.element, symbols));
      }
      break;
  }
  std::string message;
  append_bytes(message, type_field_of(type.kind), inner);
  return message;
}

std::string encode_value_info(std::string_view name, const Type& type,
                              const SymbolTable* symbols) {
  std::string message;
  append_bytes(message, value_info_field::kName, name);
  if (type.kind != Type::Kind::Unknown) {
    append_bytes(message, value_info_field::kType, encode_type(type, symbols));
  }
  return message;
}

}  // namespace sardonyx::onnx

namespace sardonyx {

Result<std::string> write_datum(const Datum& datum) { return onnx::encode_nested(datum); }

Result<std::string> write_optional(const Datum& datum) {
  std::string message;
  if (!datum.has_value()) return message;
  const auto [field, kind] = onnx::kind_of(datum);
  onnx::append_integer(message, onnx::sequence_field::kElementKind,
                       static_cast<std::int64_t>(kind));
  SDX_TRY(onnx::append_item(message, field, datum));
  return message;
}

}  // namespace sardonyx
