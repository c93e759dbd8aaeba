#include "capi/op_attr.h"

#include <cstring>
#include <span>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

std::string_view type_name(OrtOpAttrType type) {
  switch (type) {
    case ORT_OP_ATTR_INT: return "an int";
    case ORT_OP_ATTR_INTS: return "ints";
    case ORT_OP_ATTR_FLOAT: return "a float";
    case ORT_OP_ATTR_FLOATS: return "floats";
    case ORT_OP_ATTR_STRING: return "a string";
    case ORT_OP_ATTR_STRINGS: return "strings";
    case ORT_OP_ATTR_GRAPH: return "a graph";
    case ORT_OP_ATTR_TENSOR: return "a tensor";
    default: return "of no known type";
  }
}

Result<Attribute> make_strings(const char* name, std::span<const char* const> texts) {
  std::vector<std::string> strings;
  for (const char* text : texts) {
    if (text == nullptr) {
      return failure(Code::InvalidArgument, "attribute '{}': string {} is null", name,
                     strings.size());
    }
    strings.emplace_back(text);
  }
  return Attribute(std::move(strings));
}

Result<Attribute> make_attribute(const char* name, const void* data, int length,
                                 OrtOpAttrType type) {
  const auto count = static_cast<std::size_t>(length);
  const auto* ints = static_cast<const std::int64_t*>(data);
  const auto* floats = static_cast<const float*>(data);
  switch (type) {
    case ORT_OP_ATTR_INT: return Attribute(*ints);
    case ORT_OP_ATTR_INTS: return Attribute(std::vector<std::int64_t>(ints, ints + count));
    case ORT_OP_ATTR_FLOAT: return Attribute(*floats);
    case ORT_OP_ATTR_FLOATS: return Attribute(std::vector<float>(floats, floats + count));
    case ORT_OP_ATTR_STRING: return Attribute(std::string(static_cast<const char*>(data), count));
    case ORT_OP_ATTR_STRINGS:
      return make_strings(name, {static_cast<const char* const*>(data), count});
    default:
      return failure(Code::InvalidArgument,
                     "attribute '{}' is {}: an int, a float, a string or a list of these can be "
                     "made",
                     name, type_name(type));
  }
}

/// Copies `bytes` when they fit into `size`; how many there are goes to *needed in any case.
Status copy_bytes(const void* bytes, std::size_t count, void* target, std::size_t size,
                  std::size_t* needed) {
  *needed = count;
  if (count > size || (count != 0 && target == nullptr)) {
    return failure(Code::InvalidArgument, "the value needs {} bytes, the buffer has {}", count,
                   size);
  }
  if (count != 0) std::memcpy(target, bytes, count);
  return {};
}

template <typename T>
Status copy_list(const std::vector<T>& list, void* target, std::size_t size, std::size_t* needed) {
  return copy_bytes(list.data(), list.size() * sizeof(T), target, size, needed);
}

Status read_value(const Attribute& value, void* data, std::size_t size, std::size_t* needed) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return copy_bytes(number, sizeof(*number), data, size, needed);
  }
  if (const auto* number = std::get_if<float>(&value)) {
    return copy_bytes(number, sizeof(*number), data, size, needed);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return copy_bytes(text->data(), text->size(), data, size, needed);
  }
  if (const auto* list = std::get_if<std::vector<std::int64_t>>(&value)) {
    return copy_list(*list, data, size, needed);
  }
  if (const auto* list = std::get_if<std::vector<float>>(&value)) {
    return copy_list(*list, data, size, needed);
  }
  std::string joined;
  for (const std::string& text : *std::get_if<std::vector<std::string>>(&value)) {
    joined.append(text.c_str(), text.size() + 1);
  }
  return copy_bytes(joined.data(), joined.size(), data, size, needed);
}

}  // namespace

OrtOpAttrType op_attr_type(const Attribute& attribute) {
  struct Namer {
    OrtOpAttrType operator()(std::int64_t) const { return ORT_OP_ATTR_INT; }
    OrtOpAttrType operator()(float) const { return ORT_OP_ATTR_FLOAT; }
    OrtOpAttrType operator()(const std::string&) const { return ORT_OP_ATTR_STRING; }
    OrtOpAttrType operator()(const Tensor&) const { return ORT_OP_ATTR_TENSOR; }
    OrtOpAttrType operator()(const std::shared_ptr<Graph>&) const { return ORT_OP_ATTR_GRAPH; }
    OrtOpAttrType operator()(const std::vector<std::int64_t>&) const { return ORT_OP_ATTR_INTS; }
    OrtOpAttrType operator()(const std::vector<float>&) const { return ORT_OP_ATTR_FLOATS; }
    OrtOpAttrType operator()(const std::vector<std::string>&) const { return ORT_OP_ATTR_STRINGS; }
    OrtOpAttrType operator()(const std::shared_ptr<const SparseTensor>&) const { return {}; }
    OrtOpAttrType operator()(const Type&) const { return ORT_OP_ATTR_UNDEFINED; }
    OrtOpAttrType operator()(const std::vector<Tensor>&) const { return ORT_OP_ATTR_UNDEFINED; }
    OrtOpAttrType operator()(const std::vector<std::shared_ptr<Graph>>&) const { return {}; }
    OrtOpAttrType operator()(const std::vector<Type>&) const { return ORT_OP_ATTR_UNDEFINED; }
    OrtOpAttrType operator()(const AttributeReference&) const { return ORT_OP_ATTR_UNDEFINED; }
  };
  return std::visit(Namer{}, attribute);
}

OrtStatus* CreateOpAttr(const char* name, const void* data, int len, OrtOpAttrType type,
                        OrtOpAttr** op_attr) noexcept {
  return guarded("CreateOpAttr", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(op_attr, "op_attr"));
    if (len < 0) return failure(Code::InvalidArgument, "attribute '{}' has length {}", name, len);
    const bool is_one = type == ORT_OP_ATTR_INT || type == ORT_OP_ATTR_FLOAT;
    if (len > 0 || is_one) SDX_TRY(require(data, "data"));
    SDX_ASSIGN(Attribute value, make_attribute(name, data, len, type));
    *op_attr = new OrtOpAttr(name, std::move(value));
    return {};
  });
}

void ReleaseOpAttr(OrtOpAttr* object) noexcept { delete object; }

OrtStatus* ReadOpAttr(const OrtOpAttr* op_attr, OrtOpAttrType type, void* data, size_t len,
                      size_t* out) noexcept {
  return guarded("ReadOpAttr", [&]() -> Status {
    SDX_TRY(require(op_attr, "op_attr"));
    SDX_TRY(require(out, "out"));
    const Attribute& value = op_attr->value();
    const OrtOpAttrType actual = op_attr_type(value);
    if (actual != type) {
      return failure(Code::InvalidArgument, "attribute '{}' is {}, asked for as {}", op_attr->name,
                     attribute_kind(value), type_name(type));
    }
    if (type == ORT_OP_ATTR_TENSOR) {
      return failure(Code::InvalidArgument,
                     "attribute '{}' is a tensor: OpAttr_GetTensorAttributeAsOrtValue gives it",
                     op_attr->name);
    }
    if (type == ORT_OP_ATTR_GRAPH || type == ORT_OP_ATTR_UNDEFINED) {
      return failure(Code::InvalidArgument, "attribute '{}' ({}) cannot be read as bytes{}",
                     op_attr->name, attribute_kind(value),
                     type == ORT_OP_ATTR_GRAPH ? ": Node_GetSubgraphs gives the graph" : "");
    }
    Status status = read_value(value, data, len, out);
    return std::move(status).with("reading attribute '" + op_attr->name + "'");
  });
}

OrtStatus* OpAttr_GetTensorAttributeAsOrtValue(const OrtOpAttr* attribute,
                                               OrtValue** attr_tensor) noexcept {
  return guarded("OpAttr_GetTensorAttributeAsOrtValue", [&]() -> Status {
    SDX_TRY(require(attribute, "attribute"));
    SDX_TRY(require(attr_tensor, "attr_tensor"));
    *attr_tensor = nullptr;
    const auto* tensor = std::get_if<Tensor>(&attribute->value());
    if (tensor == nullptr) {
      return failure(Code::InvalidArgument, "attribute '{}' is {}, expected a tensor",
                     attribute->name, attribute_kind(attribute->value()));
    }
    *attr_tensor = new OrtValue{Datum(*tensor), cpu_memory_info()};
    return {};
  });
}

OrtStatus* OpAttr_GetType(const OrtOpAttr* attribute, OrtOpAttrType* type) noexcept {
  return guarded("OpAttr_GetType", [&]() -> Status {
    SDX_TRY(require(attribute, "attribute"));
    SDX_TRY(require(type, "type"));
    *type = op_attr_type(attribute->value());
    return {};
  });
}

OrtStatus* OpAttr_GetName(const OrtOpAttr* attribute, const char** name) noexcept {
  return guarded("OpAttr_GetName", [&]() -> Status {
    SDX_TRY(require(attribute, "attribute"));
    SDX_TRY(require(name, "name"));
    *name = attribute->name.c_str();
    return {};
  });
}

}  // namespace sardonyx::capi
