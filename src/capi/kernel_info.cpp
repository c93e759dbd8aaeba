// OrtKernelInfo: what a kernel may ask about its node while it is made.
#include "capi/kernel_info.h"

#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/node_schema.h"
#include "capi/places.h"
#include "capi/status.h"
#include "session/load.h"

namespace sardonyx::capi {

namespace {

using Operand = KernelNode::Operand;

std::vector<std::string> symbols_of(const Type& type) {
  std::vector<std::string> names;
  if (!type.shape) return names;
  for (const Dim dim : *type.shape) {
    names.push_back(is_symbol(dim) ? fmt::format("s{}", kUnknownDim - dim) : "");
  }
  return names;
}

Result<Operand> describe_operand(const Graph& graph, ValueId id) {
  Operand operand;
  if (id == kNoValue) return operand;
  const Value& value = graph.value(id);
  operand.name = value.name;
  operand.is_there = true;
  operand.is_used = value.is_output || value.use_count != 0;
  operand.type = value.type;
  operand.symbols = symbols_of(value.type);
  if (value.constant) {
    SDX_ASSIGN(Tensor constant, aligned(*value.constant));
    operand.constant =
        std::make_unique<OrtValue>(OrtValue{Datum(std::move(constant)), cpu_memory_info()});
  }
  return operand;
}

/// Fills a text the way that these functions share: a null place asks for the size alone.
Status fill_text(const std::string& text, char* out, size_t* size) {
  SDX_TRY(require(size, "size"));
  const size_t needed = text.size() + 1;
  const bool fits = *size >= needed;
  *size = needed;
  if (out == nullptr) return {};
  if (!fits) return failure(Code::InvalidArgument, "Result buffer is not large enough");
  std::memcpy(out, text.c_str(), needed);
  return {};
}

template <typename T>
Status fill_array(const std::vector<T>& values, T* out, size_t* size) {
  SDX_TRY(require(size, "size"));
  const bool fits = *size >= values.size();
  *size = values.size();
  if (out == nullptr) return {};
  if (!fits) return failure(Code::InvalidArgument, "Result buffer is not large enough");
  std::copy(values.begin(), values.end(), out);
  return {};
}

template <typename T>
Result<const T*> attribute(const OrtKernelInfo* info, const char* name) {
  SDX_TRY(require(info, "info"));
  SDX_TRY(require(name, "name"));
  const Attribute* found = info->node->attributes.find(name);
  if (found == nullptr) {
    return failure(Code::Internal, "No attribute with name:'{}' is defined.", name);
  }
  if (const T* value = std::get_if<T>(found)) return value;
  return failure(Code::Internal, "attribute '{}' holds {}, which is not what was asked for", name,
                 attribute_kind(*found));
}

Result<const Operand*> operand(const std::vector<Operand>& operands, size_t index) {
  if (index < operands.size()) return &operands[index];
  return failure(Code::InvalidArgument, "index {} is outside the {} there are", index,
                 operands.size());
}

Status type_of(const std::vector<Operand>& operands, size_t index, OrtTypeInfo** type_info) {
  SDX_TRY(require(type_info, "type_info"));
  SDX_ASSIGN(const Operand* found, operand(operands, index));
  if (!found->is_there) return failure(Code::InvalidArgument, "operand {} is left out", index);
  *type_info = new_type_info(found->type, found->symbols);
  return {};
}

Status name_of(const std::vector<Operand>& operands, size_t index, char* out, size_t* size) {
  SDX_ASSIGN(const Operand* found, operand(operands, index));
  return fill_text(found->name, out, size);
}

/// Texts in the allocator's memory, which the caller gives back one by one.
Status copy_texts(const std::vector<std::string>& texts, OrtAllocator* allocator, char*** out) {
  SDX_TRY(require(allocator, "allocator"));
  SDX_TRY(require(out, "out"));
  auto** made = static_cast<char**>(
      allocator->Alloc(allocator, std::max<size_t>(1, texts.size()) * sizeof(char*)));
  if (made == nullptr) return failure(Code::OutOfMemory, "no memory for {} texts", texts.size());
  for (size_t i = 0; i < texts.size(); ++i) {
    Status status = copy_text(allocator, texts[i], &made[i]);
    if (status.ok()) continue;
    while (i-- > 0) allocator->Free(allocator, made[i]);
    allocator->Free(allocator, made);
    return status;
  }
  *out = made;
  return {};
}

}  // namespace

int since_version(const Node& node) { return operator_since(node); }

std::string_view operand_type_name(const Node& node, bool is_output, std::size_t index) {
  return sardonyx::operand_type_name(node, is_output, index);
}

Result<std::shared_ptr<KernelNode>> describe_kernel_node(
    const Graph& graph, const Node& node, int since_version,
    std::shared_ptr<const KernelSession> session) {
  auto made = std::make_shared<KernelNode>();
  made->name = node.name;
  made->domain = node.domain;
  made->op_type = node.op_type;
  made->since_version = since_version;
  made->attributes = full_attributes(node);
  made->session = std::move(session);
  for (const ValueId id : node.inputs) {
    SDX_ASSIGN(Operand described, describe_operand(graph, id));
    made->inputs.push_back(std::move(described));
  }
  for (const ValueId id : node.outputs) {
    SDX_ASSIGN(Operand described, describe_operand(graph, id));
    made->outputs.push_back(std::move(described));
  }
  return made;
}

OrtStatus* CopyKernelInfo(const OrtKernelInfo* info, OrtKernelInfo** info_copy) noexcept {
  return guarded("CopyKernelInfo", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(info_copy, "info_copy"));
    *info_copy = new OrtKernelInfo(*info);
    return {};
  });
}

void ReleaseKernelInfo(OrtKernelInfo* object) noexcept { delete object; }

OrtStatus* KernelInfoGetAttribute_float(const OrtKernelInfo* info, const char* name,
                                        float* out) noexcept {
  return guarded("KernelInfoGetAttribute_float", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const float* value, attribute<float>(info, name));
    *out = *value;
    return {};
  });
}

OrtStatus* KernelInfoGetAttribute_int64(const OrtKernelInfo* info, const char* name,
                                        int64_t* out) noexcept {
  return guarded("KernelInfoGetAttribute_int64", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const std::int64_t* value, attribute<std::int64_t>(info, name));
    *out = *value;
    return {};
  });
}

OrtStatus* KernelInfoGetAttribute_string(const OrtKernelInfo* info, const char* name, char* out,
                                         size_t* size) noexcept {
  return guarded("KernelInfoGetAttribute_string", [&]() -> Status {
    SDX_ASSIGN(const std::string* value, attribute<std::string>(info, name));
    return fill_text(*value, out, size);
  });
}

OrtStatus* KernelInfoGetAttributeArray_float(const OrtKernelInfo* info, const char* name,
                                             float* out, size_t* size) noexcept {
  return guarded("KernelInfoGetAttributeArray_float", [&]() -> Status {
    SDX_ASSIGN(const auto* values, attribute<std::vector<float>>(info, name));
    return fill_array(*values, out, size);
  });
}

OrtStatus* KernelInfoGetAttributeArray_int64(const OrtKernelInfo* info, const char* name,
                                             int64_t* out, size_t* size) noexcept {
  return guarded("KernelInfoGetAttributeArray_int64", [&]() -> Status {
    SDX_ASSIGN(const auto* values, attribute<std::vector<std::int64_t>>(info, name));
    return fill_array(*values, out, size);
  });
}

OrtStatus* KernelInfoGetAttributeArray_string(const OrtKernelInfo* info, const char* name,
                                              OrtAllocator* allocator, char*** out,
                                              size_t* size) noexcept {
  return guarded("KernelInfoGetAttributeArray_string", [&]() -> Status {
    SDX_TRY(require(size, "size"));
    SDX_ASSIGN(const auto* values, attribute<std::vector<std::string>>(info, name));
    *size = values->size();
    if (out == nullptr) return {};
    *out = nullptr;
    return values->empty() ? Status() : copy_texts(*values, allocator, out);
  });
}

OrtStatus* KernelInfoGetAttribute_tensor(const OrtKernelInfo* info, const char* name,
                                         OrtAllocator* allocator, OrtValue** out) noexcept {
  return guarded("KernelInfoGetAttribute_tensor", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_ASSIGN(const Tensor* source, attribute<Tensor>(info, name));
    SDX_ASSIGN(Tensor copy, allocate_with(allocator, source->dtype(), source->shape()));
    copy_elements(*source, copy);
    *out = new OrtValue{Datum(std::move(copy)), cpu_memory_info()};
    return {};
  });
}

OrtStatus* KernelInfoGetConstantInput_tensor(const OrtKernelInfo* info, size_t index,
                                             int* is_constant, const OrtValue** out) noexcept {
  return guarded("KernelInfoGetConstantInput_tensor", [&]() -> Status {
    SDX_TRY(require(is_constant, "is_constant"));
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(info, "info"));
    SDX_ASSIGN(const Operand* found, operand(info->node->inputs, index));
    *is_constant = found->constant != nullptr ? 1 : 0;
    *out = found->constant.get();
    return {};
  });
}

OrtStatus* KernelInfo_GetInputCount(const OrtKernelInfo* info, size_t* out) noexcept {
  return guarded("KernelInfo_GetInputCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(info, "info"));
    *out = info->node->inputs.size();
    return {};
  });
}

OrtStatus* KernelInfo_GetOutputCount(const OrtKernelInfo* info, size_t* out) noexcept {
  return guarded("KernelInfo_GetOutputCount", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(info, "info"));
    *out = info->node->outputs.size();
    return {};
  });
}

OrtStatus* KernelInfo_GetInputName(const OrtKernelInfo* info, size_t index, char* out,
                                   size_t* size) noexcept {
  return guarded("KernelInfo_GetInputName", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return name_of(info->node->inputs, index, out, size);
  });
}

OrtStatus* KernelInfo_GetOutputName(const OrtKernelInfo* info, size_t index, char* out,
                                    size_t* size) noexcept {
  return guarded("KernelInfo_GetOutputName", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return name_of(info->node->outputs, index, out, size);
  });
}

OrtStatus* KernelInfo_GetInputTypeInfo(const OrtKernelInfo* info, size_t index,
                                       OrtTypeInfo** type_info) noexcept {
  return guarded("KernelInfo_GetInputTypeInfo", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return type_of(info->node->inputs, index, type_info);
  });
}

OrtStatus* KernelInfo_GetOutputTypeInfo(const OrtKernelInfo* info, size_t index,
                                        OrtTypeInfo** type_info) noexcept {
  return guarded("KernelInfo_GetOutputTypeInfo", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return type_of(info->node->outputs, index, type_info);
  });
}

OrtStatus* KernelInfo_GetNodeName(const OrtKernelInfo* info, char* out, size_t* size) noexcept {
  return guarded("KernelInfo_GetNodeName", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return fill_text(info->node->name, out, size);
  });
}

OrtStatus* KernelInfo_GetOperatorDomain(const OrtKernelInfo* info, char* out,
                                        size_t* size) noexcept {
  return guarded("KernelInfo_GetOperatorDomain", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return fill_text(info->node->domain, out, size);
  });
}

OrtStatus* KernelInfo_GetOperatorType(const OrtKernelInfo* info, char* out, size_t* size) noexcept {
  return guarded("KernelInfo_GetOperatorType", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    return fill_text(info->node->op_type, out, size);
  });
}

OrtStatus* KernelInfo_GetOperatorSinceVersion(const OrtKernelInfo* info,
                                              int* since_version) noexcept {
  return guarded("KernelInfo_GetOperatorSinceVersion", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(since_version, "since_version"));
    *since_version = info->node->since_version;
    return {};
  });
}

OrtStatus* KernelInfo_GetConfigEntries(const OrtKernelInfo* info, OrtKeyValuePairs** out) noexcept {
  return guarded("KernelInfo_GetConfigEntries", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtKeyValuePairs>();
    const auto& entries = info->node->session->entries;
    made->entries = {entries.begin(), entries.end()};
    made->refresh();
    *out = made.release();
    return {};
  });
}

OrtStatus* KernelInfoGetAllocator(const OrtKernelInfo* info, OrtMemType mem_type,
                                  OrtAllocator** out) noexcept {
  return guarded("KernelInfoGetAllocator", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    if (info->maker == nullptr) {
      *out = new_allocator(*default_allocator());
    } else {
      SDX_ASSIGN(*out, info->maker->allocator(mem_type));
    }
    return {};
  });
}

OrtStatus* KernelInfo_GetLogger(const OrtKernelInfo* info, const OrtLogger** logger) noexcept {
  return guarded("KernelInfo_GetLogger", [&]() -> Status {
    SDX_TRY(require(logger, "logger"));
    SDX_TRY(require(info, "info"));
    *logger = &default_logger();
    return {};
  });
}

}  // namespace sardonyx::capi
