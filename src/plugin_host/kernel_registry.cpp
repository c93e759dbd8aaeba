#include "plugin_host/kernel_registry.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/node_schema.h"
#include "capi/status.h"

namespace {

using sardonyx::Graph;
using sardonyx::kNoValue;
using sardonyx::Node;
using sardonyx::Type;
using sardonyx::ValueId;

/// A kernel without end is for the version that it names alone.
bool holds_for(const OrtKernelDef& def, int since) {
  if (def.since_start == since) return true;
  return def.since_end != std::numeric_limits<int>::max() && def.since_start < since &&
         since <= def.since_end;
}

bool allows(const std::vector<ONNXTensorElementDataType>& allowed, const Type& type) {
  if (!type.is_tensor()) return false;
  const auto element = sardonyx::capi::to_ort(type.dtype);
  return std::find(allowed.begin(), allowed.end(), element) != allowed.end();
}

bool types_fit(const OrtKernelDef& def, const Graph& graph, const Node& node, bool is_output) {
  const auto& operands = is_output ? node.outputs : node.inputs;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i] == kNoValue) continue;
    const auto name = sardonyx::capi::operand_type_name(node, is_output, i);
    const auto found = def.types.find(std::string(name));
    if (found == def.types.end()) continue;
    if (!allows(found->second, graph.value(operands[i]).type)) return false;
  }
  return true;
}

}  // namespace

const OrtKernelRegistry::Entry* OrtKernelRegistry::find(const Graph& graph,
                                                        const Node& node) const {
  const int since = sardonyx::capi::since_version(node);
  for (const auto& entry : entries) {
    const OrtKernelDef& def = entry->def;
    const bool fits = def.op_type == node.op_type && def.domain == node.domain &&
                      holds_for(def, since) && types_fit(def, graph, node, false) &&
                      types_fit(def, graph, node, true);
    if (fits) return entry.get();
  }
  return nullptr;
}

namespace sardonyx::capi::ep_api {

namespace {

constexpr int kElementTypeCount = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0 + 1;

/// A domain as models write it: "ai.onnx" is the default one.
std::string domain_name(const char* domain) {
  const std::string name = domain != nullptr ? domain : "";
  return name == "ai.onnx" ? "" : name;
}

Status add_aliases(OrtKernelDefBuilder* builder, const int* inputs, const int* outputs,
                   std::size_t count, std::vector<std::pair<int, int>> OrtKernelDef::* list) {
  SDX_TRY(require(builder, "kernel_def_builder"));
  if (count != 0) {
    SDX_TRY(require(inputs, "input_indices"));
    SDX_TRY(require(outputs, "output_indices"));
  }
  for (std::size_t i = 0; i < count; ++i) {
    (builder->def.*list).emplace_back(inputs[i], outputs[i]);
  }
  return {};
}

Status memory_at(const std::map<std::size_t, OrtMemType>& memory, std::size_t index,
                 OrtMemType* mem_type) {
  SDX_TRY(require(mem_type, "mem_type"));
  const auto found = memory.find(index);
  *mem_type = found == memory.end() ? OrtMemTypeDefault : found->second;
  return {};
}

}  // namespace

OrtStatus* GetTensorDataType(ONNXTensorElementDataType element_type,
                             const OrtDataType** out) noexcept {
  return guarded("GetTensorDataType", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    static const auto types = [] {
      std::array<OrtDataType, kElementTypeCount> made{};
      for (int i = 0; i < kElementTypeCount; ++i) {
        made[static_cast<std::size_t>(i)].type = static_cast<ONNXTensorElementDataType>(i);
      }
      return made;
    }();
    if (element_type <= ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED ||
        element_type >= kElementTypeCount) {
      return failure(Code::InvalidArgument, "there is no element type {}",
                     static_cast<int>(element_type));
    }
    *out = &types[static_cast<std::size_t>(element_type)];
    return {};
  });
}

OrtStatus* CreateKernelRegistry(OrtKernelRegistry** kernel_registry) noexcept {
  return guarded("CreateKernelRegistry", [&]() -> Status {
    SDX_TRY(require(kernel_registry, "kernel_registry"));
    *kernel_registry = new OrtKernelRegistry;
    return {};
  });
}

void ReleaseKernelImpl(OrtKernelImpl* object) noexcept {
  if (object != nullptr && object->Release != nullptr) object->Release(object);
}

void ReleaseKernelRegistry(OrtKernelRegistry* object) noexcept { delete object; }

OrtStatus* KernelRegistry_AddKernel(OrtKernelRegistry* kernel_registry,
                                    const OrtKernelDef* kernel_def,
                                    OrtKernelCreateFunc kernel_create_func,
                                    void* kernel_create_func_state) noexcept {
  return guarded("KernelRegistry_AddKernel", [&]() -> Status {
    SDX_TRY(require(kernel_registry, "kernel_registry"));
    SDX_TRY(require(kernel_def, "kernel_def"));
    SDX_TRY(require(reinterpret_cast<const void*>(kernel_create_func), "kernel_create_func"));
    kernel_registry->entries.push_back(std::make_unique<const OrtKernelRegistry::Entry>(
        OrtKernelRegistry::Entry{*kernel_def, kernel_create_func, kernel_create_func_state}));
    return {};
  });
}

OrtStatus* CreateKernelDefBuilder(OrtKernelDefBuilder** kernel_def_builder_out) noexcept {
  return guarded("CreateKernelDefBuilder", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder_out, "kernel_def_builder_out"));
    *kernel_def_builder_out = new OrtKernelDefBuilder;
    return {};
  });
}

void ReleaseKernelDefBuilder(OrtKernelDefBuilder* object) noexcept { delete object; }

OrtStatus* KernelDefBuilder_SetOperatorType(OrtKernelDefBuilder* kernel_def_builder,
                                            const char* op_type) noexcept {
  return guarded("KernelDefBuilder_SetOperatorType", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    SDX_TRY(require(op_type, "op_type"));
    kernel_def_builder->def.op_type = op_type;
    return {};
  });
}

OrtStatus* KernelDefBuilder_SetDomain(OrtKernelDefBuilder* kernel_def_builder,
                                      const char* domain) noexcept {
  return guarded("KernelDefBuilder_SetDomain", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    kernel_def_builder->def.domain = domain_name(domain);
    return {};
  });
}

OrtStatus* KernelDefBuilder_SetSinceVersion(OrtKernelDefBuilder* kernel_def_builder,
                                            int since_version_start,
                                            int since_version_end) noexcept {
  return guarded("KernelDefBuilder_SetSinceVersion", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    if (since_version_start < 1 || since_version_end < since_version_start) {
      return failure(Code::InvalidArgument, "versions {} to {} of an operator are none",
                     since_version_start, since_version_end);
    }
    kernel_def_builder->def.since_start = since_version_start;
    kernel_def_builder->def.since_end = since_version_end;
    return {};
  });
}

OrtStatus* KernelDefBuilder_SetExecutionProvider(OrtKernelDefBuilder* kernel_def_builder,
                                                 const char* ep_name) noexcept {
  return guarded("KernelDefBuilder_SetExecutionProvider", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    SDX_TRY(require(ep_name, "ep_name"));
    kernel_def_builder->def.provider = ep_name;
    return {};
  });
}

OrtStatus* KernelDefBuilder_SetInputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                            size_t input_index, OrtMemType mem_type) noexcept {
  return guarded("KernelDefBuilder_SetInputMemType", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    kernel_def_builder->def.input_memory[input_index] = mem_type;
    return {};
  });
}

OrtStatus* KernelDefBuilder_SetOutputMemType(OrtKernelDefBuilder* kernel_def_builder,
                                             size_t output_index, OrtMemType mem_type) noexcept {
  return guarded("KernelDefBuilder_SetOutputMemType", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    kernel_def_builder->def.output_memory[output_index] = mem_type;
    return {};
  });
}

OrtStatus* KernelDefBuilder_AddTypeConstraint(OrtKernelDefBuilder* kernel_def_builder,
                                              const char* arg_name, const OrtDataType* const* types,
                                              size_t type_count) noexcept {
  return guarded("KernelDefBuilder_AddTypeConstraint", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    SDX_TRY(require(arg_name, "arg_name"));
    SDX_TRY(require(types, "types"));
    auto& allowed = kernel_def_builder->def.types[arg_name];
    for (size_t i = 0; i < type_count; ++i) {
      SDX_TRY(require(types[i], "a type"));
      allowed.push_back(types[i]->type);
    }
    return {};
  });
}

OrtStatus* KernelDefBuilder_AddInputOutputAliases(OrtKernelDefBuilder* kernel_def_builder,
                                                  int const* input_indices,
                                                  int const* output_indices,
                                                  size_t io_indice_count) noexcept {
  return guarded("KernelDefBuilder_AddInputOutputAliases", [&] {
    return add_aliases(kernel_def_builder, input_indices, output_indices, io_indice_count,
                       &OrtKernelDef::aliases);
  });
}

OrtStatus* KernelDefBuilder_AddInputOutputMutableAliases(OrtKernelDefBuilder* kernel_def_builder,
                                                         int const* input_indices,
                                                         int const* output_indices,
                                                         size_t io_indice_count) noexcept {
  return guarded("KernelDefBuilder_AddInputOutputMutableAliases", [&] {
    return add_aliases(kernel_def_builder, input_indices, output_indices, io_indice_count,
                       &OrtKernelDef::mutable_aliases);
  });
}

OrtStatus* KernelDefBuilder_Build(OrtKernelDefBuilder* kernel_def_builder,
                                  OrtKernelDef** kernel_def_out) noexcept {
  return guarded("KernelDefBuilder_Build", [&]() -> Status {
    SDX_TRY(require(kernel_def_builder, "kernel_def_builder"));
    SDX_TRY(require(kernel_def_out, "kernel_def_out"));
    if (kernel_def_builder->def.op_type.empty()) {
      return failure(Code::InvalidArgument, "the kernel has no operator type");
    }
    *kernel_def_out = new OrtKernelDef(kernel_def_builder->def);
    return {};
  });
}

void ReleaseKernelDef(OrtKernelDef* object) noexcept { delete object; }

const char* KernelDef_GetOperatorType(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? nullptr : kernel_def->op_type.c_str();
}

const char* KernelDef_GetDomain(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? nullptr : kernel_def->domain.c_str();
}

OrtStatus* KernelDef_GetSinceVersion(const OrtKernelDef* kernel_def, int* start_version,
                                     int* end_version) noexcept {
  return guarded("KernelDef_GetSinceVersion", [&]() -> Status {
    SDX_TRY(require(kernel_def, "kernel_def"));
    SDX_TRY(require(start_version, "start_version"));
    SDX_TRY(require(end_version, "end_version"));
    *start_version = kernel_def->since_start;
    *end_version = kernel_def->since_end;
    return {};
  });
}

const char* KernelDef_GetExecutionProvider(const OrtKernelDef* kernel_def) noexcept {
  return kernel_def == nullptr ? nullptr : kernel_def->provider.c_str();
}

OrtStatus* KernelDef_GetInputMemType(const OrtKernelDef* kernel_def, size_t input_index,
                                     OrtMemType* mem_type) noexcept {
  return guarded("KernelDef_GetInputMemType", [&]() -> Status {
    SDX_TRY(require(kernel_def, "kernel_def"));
    return memory_at(kernel_def->input_memory, input_index, mem_type);
  });
}

OrtStatus* KernelDef_GetOutputMemType(const OrtKernelDef* kernel_def, size_t output_index,
                                      OrtMemType* mem_type) noexcept {
  return guarded("KernelDef_GetOutputMemType", [&]() -> Status {
    SDX_TRY(require(kernel_def, "kernel_def"));
    return memory_at(kernel_def->output_memory, output_index, mem_type);
  });
}

}  // namespace sardonyx::capi::ep_api
