#include "onnx/tensor_reader.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/wire.h"

namespace sardonyx::onnx {

namespace {

/// The fields of a TensorProto, elements left where they are.
struct Parts {
  std::string_view message;
  std::string_view name;
  DType dtype = DType::Undefined;
  Shape shape;
  std::optional<std::string_view> raw;
  bool is_external = false;
  std::vector<std::string_view> external;
  /// The typed field that has elements, 0 when none has.
  std::uint32_t data_field = 0;
  /// At least as many as there are elements in that field.
  std::uint64_t data_bytes = 0;
  /// The packed payload when there is exactly one.
  std::string_view packed;
  std::int64_t parts = 0;
};

Status add_data(Fields& fields, Parts& parts) {
  if (parts.data_field != 0 && parts.data_field != fields.number()) {
    return failure(Code::InvalidModel, "tensor '{}' has elements in two fields", parts.name);
  }
  parts.data_field = fields.number();
  ++parts.parts;
  if (fields.is_packed()) {
    parts.packed = fields.bytes();
    // An empty string takes no bytes of its own.
    parts.data_bytes += parts.packed.size() + (parts.data_field == tensor_field::kStringData);
  } else {
    fields.skip();
    ++parts.data_bytes;
    parts.packed = {};
  }
  return {};
}

Status set_dtype(std::int64_t number, Parts& parts) {
  const auto dtype = dtype_from_onnx(number);
  if (!dtype) {
    return failure(Code::Unsupported, "tensor '{}' has the unknown element type {}", parts.name,
                   number);
  }
  parts.dtype = *dtype;
  return {};
}

Status add_field(Fields& fields, Parts& parts) {
  switch (fields.number()) {
    case tensor_field::kDims: {
      Status status;
      fields.integers([&](std::int64_t dim) {
        if (status.ok()) status = append_dim(parts.shape, dim, parts.name);
      });
      return status;
    }
    case tensor_field::kDataType: return set_dtype(fields.integer(), parts);
    case tensor_field::kRawData: parts.raw = fields.bytes(); return {};
    case tensor_field::kExternalData: parts.external.push_back(fields.bytes()); return {};
    case tensor_field::kDataLocation: parts.is_external = fields.integer() == 1; return {};
    case tensor_field::kFloatData:
    case tensor_field::kInt32Data:
    case tensor_field::kStringData:
    case tensor_field::kInt64Data:
    case tensor_field::kDoubleData:
    case tensor_field::kUInt64Data: return add_data(fields, parts);
    case tensor_field::kSegment:
      return failure(Code::Unsupported, "tensor '{}' is stored in segments", parts.name);
    default: fields.skip(); return {};
  }
}

Result<Parts> read_parts(std::string_view message) {
  Parts parts;
  parts.message = message;
  parts.name = tensor_name(message);
  Fields fields(message);
  while (fields.next()) SDX_TRY(add_field(fields, parts));
  if (parts.dtype == DType::Undefined) {
    return failure(Code::InvalidModel, "tensor '{}' has no element type", parts.name);
  }
  return parts;
}

/// Bytes of the elements in raw_data and in external files, where 6-bit floats are packed.
Result<std::size_t> stored_bytes(const Parts& parts) {
  const auto count = parts.shape.element_count();
  auto bytes = count ? dtype_bytes(parts.dtype, *count) : std::nullopt;
  if (!bytes || *bytes > std::size_t{1} << 62) {
    return failure(Code::InvalidModel, "tensor '{}' of shape {} does not fit into memory",
                   parts.name, parts.shape.to_string());
  }
  if (contains(kFloat6, parts.dtype)) *bytes = *bytes / 4 * 3 + (*bytes % 4 * 6 + 7) / 8;
  return *bytes;
}

/// Four 6-bit elements stand in three bytes, low bits first; in memory each takes a byte.
Result<Tensor> unpack_float6(const Parts& parts, std::string_view bytes) {
  SDX_ASSIGN(Tensor tensor, Tensor::allocate(parts.dtype, parts.shape));
  auto target = tensor.mutable_values<std::uint8_t>();
  for (std::size_t i = 0; i < target.size(); ++i) {
    const std::size_t bit = i * 6;
    unsigned word = static_cast<unsigned char>(bytes[bit / 8]);
    if (bit / 8 + 1 < bytes.size()) word |= static_cast<unsigned char>(bytes[bit / 8 + 1]) << 8;
    target[i] = static_cast<std::uint8_t>((word >> (bit % 8)) & 0x3fU);
  }
  return tensor;
}

/// Elements that stand in a file as they are in memory: a view, or a copy where a view would be
/// misaligned (and small) or hold bools that are neither 0 nor 1.
Result<Tensor> view_bytes(const Parts& parts, std::string_view bytes,
                          const std::shared_ptr<const void>& owner) {
  if (contains(kFloat6, parts.dtype)) return unpack_float6(parts, bytes);
  const Tensor view = Tensor::view(parts.dtype, parts.shape,
                                   static_cast<const void*>(bytes.data()), owner);
  if (bytes.empty()) return Tensor::allocate(parts.dtype, parts.shape);
  const bool is_odd_bool =
      parts.dtype == DType::Bool && std::any_of(bytes.begin(), bytes.end(), [](char c) {
        return static_cast<unsigned char>(c) > 1;
      });
  if (!is_odd_bool && (view.is_aligned() || bytes.size() > kAlignedCopyBytes)) return view;
  SDX_ASSIGN(Tensor copy, clone(view));
  if (is_odd_bool) {
    for (std::uint8_t& element : copy.mutable_values<std::uint8_t>()) element = element != 0;
  }
  return copy;
}

Status wrong_size(const Parts& parts, std::uint64_t found, std::uint64_t expected) {
  return failure(Code::InvalidModel,
                 "tensor '{}' ({}) of shape {} must have {} bytes of data, found {}", parts.name,
                 dtype_name(parts.dtype), parts.shape.to_string(), expected, found);
}

Status wrong_count(const Parts& parts) {
  return failure(Code::InvalidModel,
                 "tensor '{}' ({}) of shape {}: the number of stored elements does not fit the "
                 "shape",
                 parts.name, dtype_name(parts.dtype), parts.shape.to_string());
}

/// Stored bytes are those in memory; 6-bit floats are unpacked, bools may be changed to 0 and 1.
bool stands_as_it_is(DType dtype) { return !contains(kFloat6 | set_of(DType::Bool), dtype); }

Result<NamedTensor> from_file_bytes(const Parts& parts, std::string_view bytes,
                                    const Source& source) {
  NamedTensor result;
  SDX_ASSIGN(result.tensor, view_bytes(parts, bytes, source.owner));
  if (!source.file.empty() && stands_as_it_is(parts.dtype)) {
    result.origin = std::make_shared<const WeightOrigin>(
        WeightOrigin{source.file, static_cast<std::uint64_t>(bytes.data() - source.bytes.data()),
                     bytes.size()});
  }
  return result;
}

Result<NamedTensor> from_raw(const Parts& parts, const Source& source) {
  if (parts.dtype == DType::String) {
    return failure(Code::InvalidModel, "tensor '{}' holds strings as raw data", parts.name);
  }
  SDX_ASSIGN(const std::size_t expected, stored_bytes(parts));
  if (parts.raw->size() != expected) return wrong_size(parts, parts.raw->size(), expected);
  return from_file_bytes(parts, *parts.raw, source);
}

// --- external data ---

struct Location {
  std::string_view path;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length_bytes;
};

Result<std::uint64_t> parse_number(const Parts& parts, std::string_view key,
                                   std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) {
    return failure(Code::InvalidModel,
                   "tensor '{}': the {} of its external data is '{}', expected a number of bytes",
                   parts.name, key, text.substr(0, 40));
  }
  return number;
}

Result<Location> read_location(const Parts& parts) {
  Location location;
  for (const std::string_view entry : parts.external) {
    std::string_view key;
    std::string_view value;
    Fields fields(entry);
    while (fields.next()) {
      switch (fields.number()) {
        case entry_field::kKey: key = fields.bytes(); break;
        case entry_field::kValue: value = fields.bytes(); break;
        default: fields.skip();
      }
    }
    if (key == "location") location.path = value;
    if (key == "offset") {
      SDX_ASSIGN(location.offset, parse_number(parts, key, value));
    }
    if (key == "length") {
      SDX_ASSIGN(location.length_bytes, parse_number(parts, key, value));
    }
  }
  return location;
}

Result<NamedTensor> from_external(const Parts& parts, const Source& source) {
  const std::string place = fmt::format("reading tensor '{}'", parts.name);
  if (parts.dtype == DType::String || source.external == nullptr) {
    return failure(Code::InvalidModel, "tensor '{}' cannot have external data: {}", parts.name,
                   source.external == nullptr ? "it is no part of a model" : "it holds strings");
  }
  SDX_ASSIGN(const std::size_t expected, stored_bytes(parts));
  SDX_ASSIGN(const Location location, read_location(parts));
  const std::uint64_t length = location.length_bytes.value_or(expected);
  if (length != expected) return wrong_size(parts, length, expected);
  auto found = source.external->find(location.path, location.offset, expected);
  if (!found.ok()) return std::move(found).take_status().with(place);
  NamedTensor result;
  SDX_ASSIGN(result.tensor,
             view_bytes(parts,
                        {reinterpret_cast<const char*>(found->bytes.data()), found->bytes.size()},
                        found->owner));
  if (stands_as_it_is(parts.dtype)) result.origin = std::move(found->origin);
  return result;
}

// --- typed fields ---

/// Which field holds elements of that type, and how many numbers there make one element.
struct Storage {
  std::uint32_t field;
  int numbers_per_element;
};

Storage storage_of(DType dtype) {
  switch (dtype) {
    case DType::Float32: return {tensor_field::kFloatData, 1};
    case DType::Complex64: return {tensor_field::kFloatData, 2};
    case DType::Float64: return {tensor_field::kDoubleData, 1};
    case DType::Complex128: return {tensor_field::kDoubleData, 2};
    case DType::Int64: return {tensor_field::kInt64Data, 1};
    case DType::UInt32:
    case DType::UInt64: return {tensor_field::kUInt64Data, 1};
    case DType::String: return {tensor_field::kStringData, 1};
    default: return {tensor_field::kInt32Data, 1};
  }
}

/// Writes numbers of one size, one after the other, as long as there is room.
class NumberWriter {
 public:
  NumberWriter(Tensor& tensor, std::size_t number_bytes)
      : position_(tensor.mutable_data()),
        left_(tensor.byte_size() / number_bytes),
        bytes_(number_bytes) {}

  void write(const void* number) {
    if (left_ == 0) {
      is_too_long_ = true;
      return;
    }
    std::memcpy(position_, number, bytes_);
    position_ += bytes_;
    --left_;
  }
  bool is_complete() const { return left_ == 0 && !is_too_long_; }

 private:
  std::byte* position_;
  std::size_t left_;
  std::size_t bytes_;
  bool is_too_long_ = false;
};

Status decode_numbers(const Parts& parts, Tensor& tensor) {
  const std::uint32_t field = parts.data_field;
  const bool is_float = field == tensor_field::kFloatData;
  const bool is_double = field == tensor_field::kDoubleData;
  const auto element_bytes = static_cast<std::size_t>(std::max(1, dtype_bits(parts.dtype) / 8));
  NumberWriter writer(tensor, is_float ? 4 : is_double ? 8 : element_bytes);
  const bool is_bool = parts.dtype == DType::Bool;
  const std::int64_t mask = contains(kFloat6, parts.dtype) ? 0x3f : -1;
  Fields fields(parts.message);
  while (fields.next()) {
    if (fields.number() != field) {
      fields.skip();
    } else if (is_float) {
      fields.fixed<float>([&](float number) { writer.write(&number); });
    } else if (is_double) {
      fields.fixed<double>([&](double number) { writer.write(&number); });
    } else {
      fields.integers([&](std::int64_t number) {
        // The low bytes are the element: memory is little-endian.
        const std::int64_t element = is_bool ? number != 0 : number & mask;
        writer.write(&element);
      });
    }
  }
  return writer.is_complete() ? Status() : wrong_count(parts);
}

Status decode_strings(const Parts& parts, Tensor& tensor) {
  auto target = tensor.mutable_values<std::string>();
  if (static_cast<std::uint64_t>(parts.parts) != target.size()) return wrong_count(parts);
  std::size_t next = 0;
  Fields fields(parts.message);
  while (fields.next()) {
    if (fields.number() == tensor_field::kStringData) {
      target[next++] = fields.text();
    } else {
      fields.skip();
    }
  }
  return {};
}

Result<NamedTensor> from_typed(const Parts& parts, const Source& source) {
  SDX_ASSIGN(const std::size_t bytes, stored_bytes(parts));
  const std::int64_t count = *parts.shape.element_count();
  const Storage storage = storage_of(parts.dtype);
  if (parts.data_field == 0 && count != 0) return wrong_count(parts);
  if (parts.data_field != 0 && parts.data_field != storage.field) {
    return failure(Code::InvalidModel,
                   "tensor '{}': elements of type {} must not be in field {} of a TensorProto",
                   parts.name, dtype_name(parts.dtype), parts.data_field);
  }
  const bool is_fixed =
      storage.field == tensor_field::kFloatData || storage.field == tensor_field::kDoubleData;
  if (is_fixed && parts.parts == 1 && parts.packed.size() == bytes && bytes != 0) {
    return from_file_bytes(parts, parts.packed, source);
  }
  // Packed elements below a byte share a number: count numbers, not elements.
  const int bits = dtype_bits(parts.dtype);
  const std::int64_t numbers = bits != 0 && bits < 8 ? static_cast<std::int64_t>(bytes) : count;
  // Each number takes at least a byte: refuse before memory is taken for what cannot be there.
  if (static_cast<std::uint64_t>(numbers) > parts.data_bytes) return wrong_count(parts);
  NamedTensor result;
  SDX_ASSIGN(result.tensor, Tensor::allocate(parts.dtype, parts.shape));
  SDX_TRY(parts.dtype == DType::String ? decode_strings(parts, result.tensor)
                                       : decode_numbers(parts, result.tensor));
  return result;
}

}  // namespace

Status append_dim(Shape& shape, std::int64_t dim, std::string_view tensor) {
  if (dim < 0) {
    return failure(Code::InvalidModel, "tensor '{}' has the negative dimension {}", tensor, dim);
  }
  if (!Shape::fits(static_cast<std::size_t>(shape.rank()) + 1)) {
    return failure(Code::Unsupported, "tensor '{}' has more than {} dimensions", tensor,
                   Shape::kMaxRank);
  }
  shape.push_back(dim);
  return {};
}

std::string_view tensor_name(std::string_view message) {
  std::string_view name;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == tensor_field::kName) {
      name = fields.bytes();
    } else {
      fields.skip();
    }
  }
  return name;
}

Result<Type> read_tensor_type(std::string_view message) {
  SDX_ASSIGN(const Parts parts, read_parts(message));
  return Type::tensor(parts.dtype, parts.shape);
}

Result<NamedTensor> read_tensor(std::string_view message, const Source& source) {
  SDX_ASSIGN(const Parts parts, read_parts(message));
  // Some writers add an empty raw_data to typed elements.
  const bool is_raw = parts.raw && (!parts.raw->empty() || parts.data_field == 0);
  auto result = parts.is_external ? from_external(parts, source)
                : is_raw          ? from_raw(parts, source)
                                  : from_typed(parts, source);
  if (result.ok()) result->name = parts.name;
  return result;
}

Result<NamedSparseTensor> read_sparse_tensor(std::string_view message, const Source& source) {
  std::string_view values;
  std::string_view indices;
  NamedSparseTensor result;
  auto sparse = std::make_shared<SparseTensor>();
  Status status;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case sparse_field::kValues: values = fields.bytes(); break;
      case sparse_field::kIndices: indices = fields.bytes(); break;
      case sparse_field::kDims:
        fields.integers([&](std::int64_t dim) {
          if (status.ok()) status = append_dim(sparse->shape, dim, "(sparse)");
        });
        break;
      default: fields.skip();
    }
  }
  SDX_TRY(std::move(status));
  SDX_ASSIGN(NamedTensor named, read_tensor(values, source));
  SDX_ASSIGN(NamedTensor index, read_tensor(indices, source));
  result.name = named.name;
  sparse->values = std::move(named.tensor);
  SDX_ASSIGN(sparse->indices, aligned(index.tensor));
  SDX_TRY(check_sparse(*sparse).with(fmt::format("reading sparse tensor '{}'", result.name)));
  result.sparse = std::move(sparse);
  return result;
}

}  // namespace sardonyx::onnx
