#include <cstring>
#include <set>

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

struct Vector {
  std::size_t begin = 0;
  std::size_t count = 0;
};

/// A flatbuffer of which nothing is believed: every position is checked before it is read.
class FlatReader {
 public:
  explicit FlatReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  Result<T> read(std::size_t position) const {
    if (position > bytes_.size() || bytes_.size() - position < sizeof(T)) {
      return failure(Code::InvalidArgument, "the adapter is cut short: it points to byte {} of {}",
                     position, bytes_.size());
    }
    T value;
    std::memcpy(&value, bytes_.data() + position, sizeof(T));
    return value;
  }

  /// What the unsigned offset at `position` points to.
  Result<std::size_t> follow(std::size_t position) const {
    SDX_ASSIGN(const auto offset, read<std::uint32_t>(position));
    return position + offset;
  }

  /// The position of a table's field; 0 when it is left out.
  Result<std::size_t> field(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const auto back, read<std::int32_t>(table));
    const std::int64_t vtable = static_cast<std::int64_t>(table) - back;
    if (vtable < 0) return failure(Code::InvalidArgument, "the adapter has a table before itself");
    const auto at = static_cast<std::size_t>(vtable);
    SDX_ASSIGN(const auto vtable_bytes, read<std::uint16_t>(at));
    const std::size_t entry = 4 + 2 * std::size_t{slot};
    if (entry + 2 > vtable_bytes) return std::size_t{0};
    SDX_ASSIGN(const auto offset, read<std::uint16_t>(at + entry));
    return offset == 0 ? std::size_t{0} : table + offset;
  }

  Result<std::int32_t> number(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const std::size_t position, field(table, slot));
    if (position == 0) return std::int32_t{0};
    return read<std::int32_t>(position);
  }

  /// A vector field, whose items are known to lie inside the bytes; empty when it is left out.
  Result<Vector> vector(std::size_t table, std::uint32_t slot, std::size_t item_bytes) const {
    SDX_ASSIGN(const std::size_t position, field(table, slot));
    if (position == 0) return Vector{};
    SDX_ASSIGN(const std::size_t start, follow(position));
    SDX_ASSIGN(const auto count, read<std::uint32_t>(start));
    const std::size_t begin = start + sizeof(std::uint32_t);
    if (count > (bytes_.size() - begin) / item_bytes) {
      return failure(Code::InvalidArgument,
                     "the adapter is cut short: {} items at byte {} of {} do not fit", count, begin,
                     bytes_.size());
    }
    return Vector{begin, count};
  }

  Result<std::string> text(std::size_t table, std::uint32_t slot) const {
    SDX_ASSIGN(const Vector found, vector(table, slot, 1));
    return std::string(reinterpret_cast<const char*>(bytes_.data()) + found.begin, found.count);
  }

  const std::byte* at(std::size_t position) const { return bytes_.data() + position; }

 private:
  std::span<const std::byte> bytes_;
};

Result<Shape> read_shape(const FlatReader& reader, std::size_t table, const std::string& name) {
  SDX_ASSIGN(const Vector dims, reader.vector(table, kDims, sizeof(std::int64_t)));
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
  SDX_ASSIGN(std::string name, reader.text(table, kName));
  if (name.empty()) return failure(Code::InvalidArgument, "a parameter of the adapter has no name");
  SDX_ASSIGN(const std::int32_t number, reader.number(table, kDataType));
  SDX_ASSIGN(const DType dtype, to_dtype(static_cast<ONNXTensorElementDataType>(number)));
  if (dtype == DType::String) {
    return failure(Code::InvalidArgument, "parameter '{}' holds strings", name);
  }
  SDX_ASSIGN(const Shape shape, read_shape(reader, table, name));
  SDX_ASSIGN(const Vector raw, reader.vector(table, kRawData, 1));
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
  const FlatReader reader(bytes);
  if (bytes.size() < 8 || std::memcmp(bytes.data() + 4, kIdentifier, 4) != 0) {
    return failure(Code::InvalidArgument, "this is not an adapter: it does not have '{}' at byte 4",
                   kIdentifier);
  }
  SDX_ASSIGN(const std::size_t root, reader.follow(0));
  SDX_ASSIGN(const std::int32_t version, reader.number(root, kVersion));
  if (version != kFormatVersion) {
    return failure(Code::InvalidArgument, "the adapter has format version {}, expected {}", version,
                   kFormatVersion);
  }
  SDX_ASSIGN(const Vector tables, reader.vector(root, kParameters, sizeof(std::uint32_t)));
  LoraParameters parameters;
  std::set<std::string> names;
  for (std::size_t i = 0; i < tables.count; ++i) {
    SDX_ASSIGN(const std::size_t table, reader.follow(tables.begin + i * sizeof(std::uint32_t)));
    SDX_ASSIGN(auto parameter, read_parameter(reader, table, owner));
    if (!names.insert(parameter.first).second) {
      return failure(Code::InvalidArgument, "the adapter has two parameters '{}'", parameter.first);
    }
    parameters.tensors.push_back(std::move(parameter));
  }
  return parameters;
}

}  // namespace sardonyx::capi
