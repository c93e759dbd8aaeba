#include <cstring>
#include <set>

#include "base/flat_reader.h"
#include "base/text.h"
#include "capi/handles.h"
#include "capi/lora.h"

namespace sardonyx::capi {

namespace {

constexpr char kIdentifier[] = "TORT";
constexpr std::int32_t kFormatVersion = 1;

/// The fields of the format's two tables, in the order of their slots.
enum AdapterField : std::uint32_t { kVersion, kAdapterVersion, kModelVersion, kParameters };
enum ParameterField : std::uint32_t { kName, kDims, kDataType, kRawData };

Result<Shape> read_shape(const FlatReader& reader, std::size_t table, const std::string& name) {
  SDX_ASSIGN(const FlatReader::Vector dims, reader.vector(table, kDims, sizeof(std::int64_t)));
  std::vector<std::int64_t> sizes(dims.count);
  if (dims.count > static_cast<std::size_t>(Shape::kMaxRank)) {
    return failure(Code::InvalidArgument, "parameter '{}' has {} dimensions, more than {}", name,
                   dims.count, Shape::kMaxRank);
  }
  if (!sizes.empty()) {
    std::memcpy(sizes.data(), reader.at(dims.begin), sizes.size() * sizeof(std::int64_t));
  }
  return to_shape(sizes.data(), sizes.size());
}

Result<std::pair<std::string, Tensor>> read_parameter(const FlatReader& reader, std::size_t table,
                                                      const std::shared_ptr<const void>& owner) {
  SDX_ASSIGN(const std::string_view text, reader.text(table, kName));
  std::string name(text);
  if (name.empty()) return failure(Code::InvalidArgument, "a parameter of the adapter has no name");
  SDX_ASSIGN(const auto number, reader.number<std::int32_t>(table, kDataType));
  SDX_ASSIGN(const DType dtype, to_dtype(static_cast<ONNXTensorElementDataType>(number)));
  if (dtype == DType::String) {
    return failure(Code::InvalidArgument, "parameter '{}' holds strings", name);
  }
  SDX_ASSIGN(const Shape shape, read_shape(reader, table, name));
  SDX_ASSIGN(const FlatReader::Vector raw, reader.vector(table, kRawData, 1));
  const auto count = shape.element_count();
  const auto needed = count ? dtype_bytes(dtype, *count) : std::nullopt;
  if (!needed || *needed != raw.count) {
    return failure(Code::InvalidArgument,
                   "parameter '{}' is tensor({}) of shape {}, but holds {} bytes", name,
                   dtype_name(dtype), shape.to_string(), raw.count);
  }
  SDX_ASSIGN(Tensor tensor, aligned(Tensor::view(dtype, shape, reader.at(raw.begin), owner)));
  return std::pair<std::string, Tensor>(std::move(name), std::move(tensor));
}

}  // namespace

Result<LoraParameters> read_lora(std::span<const std::byte> bytes,
                                 const std::shared_ptr<const void>& owner) {
  const FlatReader reader(bytes, Code::InvalidArgument, "adapter");
  if (bytes.size() < 8 || std::memcmp(bytes.data() + 4, kIdentifier, 4) != 0) {
    return failure(Code::InvalidArgument, "this is not an adapter: it does not have '{}' at byte 4",
                   kIdentifier);
  }
  SDX_ASSIGN(const std::size_t root, reader.follow(0));
  SDX_ASSIGN(const auto version, reader.number<std::int32_t>(root, kVersion));
  if (version != kFormatVersion) {
    return failure(Code::InvalidArgument, "the adapter has format version {}, expected {}", version,
                   kFormatVersion);
  }
  SDX_ASSIGN(const FlatReader::Vector tables,
             reader.vector(root, kParameters, sizeof(std::uint32_t)));
  LoraParameters parameters;
  std::set<std::string> names;
  for (std::size_t i = 0; i < tables.count; ++i) {
    SDX_ASSIGN(const std::size_t table, reader.item(tables, i));
    SDX_ASSIGN(auto parameter, read_parameter(reader, table, owner));
    if (!names.insert(parameter.first).second) {
      return failure(Code::InvalidArgument, "the adapter has two parameters '{}'", parameter.first);
    }
    parameters.tensors.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace sardonyx::capi
