#include <cstring>
#include <optional>

#include "base/mapped_file.h"
#include "base/text.h"
#include "ir/make_map.h"
#include "onnx/field_numbers.h"
#include "onnx/reader.h"
#include "onnx/tensor_reader.h"
#include "onnx/wire.h"

namespace sardonyx {

namespace {

using namespace onnx;

constexpr int kMaxDepth = 32;

Result<Datum> read_nested(std::string_view message, const Type& type, const Source& source,
                          int depth);

const Type& element_of(const Type& type) {
  static const Type kUnknown;
  return type.element ? *type.element : kUnknown;
}

Result<Datum> read_tensor_datum(std::string_view message, const Source& source) {
  SDX_ASSIGN(NamedTensor named, read_tensor(message, source));
  return Datum(std::move(named.tensor));
}

Result<Datum> read_sparse_datum(std::string_view message, const Source& source) {
  SDX_ASSIGN(NamedSparseTensor named, read_sparse_tensor(message, source));
  return Datum(std::move(named.sparse));
}

/// The kind of datum in a field that SequenceProto and OptionalProto have in common.
std::optional<Type::Kind> kind_of(std::uint32_t field) {
  switch (field) {
    case sequence_field::kTensors: return Type::Kind::Tensor;
    case sequence_field::kSparseTensors: return Type::Kind::SparseTensor;
    case sequence_field::kSequences: return Type::Kind::Sequence;
    case sequence_field::kMaps: return Type::Kind::Map;
    case sequence_field::kOptionals: return Type::Kind::Optional;
    default: return std::nullopt;
  }
}

/// Type to read an item of that kind by: the declared one if it is of that kind.
Type item_type(const Type& declared, Type::Kind kind) {
  if (declared.kind == kind) return declared;
  Type type;
  type.kind = kind;
  return type;
}

Result<Datum> read_sequence(std::string_view message, const Type& type, const Source& source,
                            int depth) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element = element_of(type);
  Fields fields(message);
  while (fields.next()) {
    const auto kind = kind_of(fields.number());
    if (!kind) {
      fields.skip();
      continue;
    }
    SDX_ASSIGN(Datum item, read_nested(fields.bytes(), item_type(element_of(type), *kind), source,
                                       depth + 1));
    if (sequence->element.kind == Type::Kind::Unknown) {
      sequence->element = item.type();
      sequence->element.shape.reset();
    }
    sequence->items.push_back(std::move(item));
  }
  return Datum(std::shared_ptr<const Sequence>(std::move(sequence)));
}

Result<Datum> read_optional(std::string_view message, const Type& type, const Source& source,
                            int depth) {
  Datum datum;
  Fields fields(message);
  while (fields.next()) {
    const auto kind = kind_of(fields.number());
    if (!kind) {
      fields.skip();
      continue;
    }
    SDX_ASSIGN(datum, read_nested(fields.bytes(), item_type(element_of(type), *kind), source,
                                  depth + 1));
  }
  return datum;
}

Result<Tensor> make_keys(const std::vector<std::int64_t>& numbers,
                         const std::vector<std::string>& strings) {
  if (!strings.empty()) {
    return make_tensor<std::string>({static_cast<Dim>(strings.size())}, std::span(strings));
  }
  return make_tensor<std::int64_t>({static_cast<Dim>(numbers.size())}, std::span(numbers));
}

/// Values of a map, one scalar per key, as one tensor.
Result<Tensor> join_values(const Sequence& sequence) {
  if (sequence.items.empty()) return Tensor::allocate(DType::Float32, {0});
  const Tensor* first = sequence.items.front().tensor();
  const DType dtype = first != nullptr ? first->dtype() : DType::Undefined;
  SDX_ASSIGN(Tensor joined,
             Tensor::allocate(dtype, {static_cast<Dim>(sequence.items.size())}));
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    const Tensor* item = sequence.items[i].tensor();
    const bool fits = item != nullptr && item->dtype() == dtype && item->element_count() == 1 &&
                      (dtype == DType::String || dtype_bits(dtype) >= 8);
    if (!fits) {
      return failure(Code::Unsupported, "a map holds values that are no scalars of one type");
    }
    if (dtype == DType::String) {
      joined.mutable_values<std::string>()[i] = item->values<std::string>()[0];
    } else {
      std::memcpy(joined.mutable_data() + i * item->byte_size(), item->data(), item->byte_size());
    }
  }
  return joined;
}

Result<Datum> read_map(std::string_view message, const Source& source, int depth) {
  std::vector<std::int64_t> numbers;
  std::vector<std::string> strings;
  std::string_view values;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case map_field::kKeys:
        fields.integers([&](std::int64_t key) { numbers.push_back(key); });
        break;
      case map_field::kStringKeys: strings.push_back(fields.text()); break;
      case map_field::kValues: values = fields.bytes(); break;
      default: fields.skip();
    }
  }
  SDX_ASSIGN(const Datum items, read_sequence(values, {}, source, depth + 1));
  SDX_ASSIGN(const Tensor keys, make_keys(numbers, strings));
  SDX_ASSIGN(const Tensor parts, join_values(*items.sequence()));
  if (keys.dim(0) != parts.dim(0)) {
    return failure(Code::InvalidModel, "a map has {} keys and {} values", keys.dim(0),
                   parts.dim(0));
  }
  SDX_ASSIGN(auto map, make_map(keys, parts));
  return Datum(std::move(map));
}

Result<Datum> read_nested(std::string_view message, const Type& type, const Source& source,
                          int depth) {
  if (depth > kMaxDepth) {
    return failure(Code::Unsupported, "data is nested more than {} deep", kMaxDepth);
  }
  switch (type.kind) {
    case Type::Kind::Tensor: return read_tensor_datum(message, source);
    case Type::Kind::SparseTensor: return read_sparse_datum(message, source);
    case Type::Kind::Sequence: return read_sequence(message, type, source, depth);
    case Type::Kind::Optional: return read_optional(message, type, source, depth);
    case Type::Kind::Map: return read_map(message, source, depth);
    case Type::Kind::Unknown:
    case Type::Kind::Opaque: break;
  }
  return failure(Code::Unsupported, "data of type {} cannot be read", type.to_string());
}

Result<Datum> read_datum(const Source& source, const Type& type) {
  return guarded([&] { return read_nested(source.bytes, type, source, 0); });
}

}  // namespace

Result<Datum> read_datum(std::span<const std::byte> bytes, const Type& type) {
  SDX_ASSIGN(Tensor copy, Tensor::allocate(DType::UInt8, {static_cast<Dim>(bytes.size())}));
  if (!bytes.empty()) std::memcpy(copy.mutable_data(), bytes.data(), bytes.size());
  Source source;
  source.bytes = {reinterpret_cast<const char*>(copy.data()), bytes.size()};
  source.owner = copy.owner();
  return read_datum(source, type);
}

Result<Datum> read_datum_file(const std::string& path, const Type& type) {
  SDX_ASSIGN(auto file, MappedFile::open(path));
  Source source;
  source.bytes = {reinterpret_cast<const char*>(file->bytes().data()), file->size()};
  source.file = file->path();
  source.owner = std::move(file);
  auto datum = read_datum(source, type);
  if (!datum.ok()) {
    return std::move(datum).take_status().with(fmt::format("reading '{}'", path));
  }
  return datum;
}

Result<Tensor> read_tensor_file(const std::string& path) {
  SDX_ASSIGN(Datum datum, read_datum_file(path, Type::tensor(DType::Undefined)));
  return std::move(*datum.tensor());
}

}  // namespace sardonyx
