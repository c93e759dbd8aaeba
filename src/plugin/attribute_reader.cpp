#include "plugin/attribute_reader.h"

#include "base/text.h"
#include "plugin/values.h"

namespace sardonyx::plugin {

namespace {

/// The bytes of an attribute. The first question, without room, only tells how many there are.
Result<std::string> read_bytes(const Host& host, const OrtOpAttr& attribute, OrtOpAttrType type) {
  std::size_t size = 0;
  char small[64];
  OrtStatus* status = host.api->ReadOpAttr(&attribute, type, small, sizeof small, &size);
  if (status == nullptr) return std::string(small, size);
  if (size <= sizeof small) return host.take(status);
  host.api->ReleaseStatus(status);
  std::string bytes(size, '\0');
  SDX_TRY(host.take(host.api->ReadOpAttr(&attribute, type, bytes.data(), size, &size)));
  return bytes;
}

template <typename T>
std::vector<T> as_list(const std::string& bytes) {
  std::vector<T> list(bytes.size() / sizeof(T));
  bytes.copy(reinterpret_cast<char*>(list.data()), list.size() * sizeof(T));
  return list;
}

template <typename T>
Result<Attribute> as_one(const std::string& bytes) {
  const auto list = as_list<T>(bytes);
  if (list.size() != 1) {
    return failure(Code::Internal, "expected a number of {} bytes, found {}", sizeof(T),
                   bytes.size());
  }
  return Attribute(list.front());
}

/// Texts that each end with a zero.
std::vector<std::string> as_texts(const std::string& bytes) {
  std::vector<std::string> texts;
  for (std::size_t begin = 0; begin < bytes.size();) {
    const std::size_t end = std::min(bytes.find('\0', begin), bytes.size());
    texts.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  return texts;
}

Result<Attribute> read_tensor(const Host& host, const OrtOpAttr& attribute) {
  OrtValue* value = nullptr;
  SDX_TRY(host.take(host.api->OpAttr_GetTensorAttributeAsOrtValue(&attribute, &value)));
  auto tensor = copy(host, *value);
  host.api->ReleaseValue(value);
  SDX_ASSIGN(Tensor made, std::move(tensor));
  return Attribute(std::move(made));
}

Result<Attribute> read_value(const Host& host, const OrtOpAttr& attribute, OrtOpAttrType type) {
  if (type == ORT_OP_ATTR_TENSOR) return read_tensor(host, attribute);
  SDX_ASSIGN(std::string bytes, read_bytes(host, attribute, type));
  switch (type) {
    case ORT_OP_ATTR_INT: return as_one<std::int64_t>(bytes);
    case ORT_OP_ATTR_FLOAT: return as_one<float>(bytes);
    case ORT_OP_ATTR_INTS: return Attribute(as_list<std::int64_t>(bytes));
    case ORT_OP_ATTR_FLOATS: return Attribute(as_list<float>(bytes));
    case ORT_OP_ATTR_STRINGS: return Attribute(as_texts(bytes));
    default: return Attribute(std::move(bytes));
  }
}

}  // namespace

Status read_attributes(const Host& host, const OrtNode& node, Attributes& attributes) {
  std::size_t count = 0;
  SDX_TRY(host.take(host.api->Node_GetNumAttributes(&node, &count)));
  std::vector<const OrtOpAttr*> handles(count);
  SDX_TRY(host.take(host.api->Node_GetAttributes(&node, handles.data(), count)));
  for (const OrtOpAttr* handle : handles) {
    const char* name = nullptr;
    SDX_TRY(host.take(host.api->OpAttr_GetName(handle, &name)));
    OrtOpAttrType type = ORT_OP_ATTR_UNDEFINED;
    SDX_TRY(host.take(host.api->OpAttr_GetType(handle, &type)));
    if (type == ORT_OP_ATTR_GRAPH) continue;
    if (type == ORT_OP_ATTR_UNDEFINED) {
      return failure(Code::Unsupported, "attribute '{}' is of a kind that the runtime cannot show",
                     name);
    }
    auto value = read_value(host, *handle, type);
    if (!value.ok()) {
      return std::move(value).take_status().with(fmt::format("reading attribute '{}'", name));
    }
    attributes.set(name, std::move(value).value());
  }
  return {};
}

}  // namespace sardonyx::plugin
