// Reading values of a graph, and where initializers stand.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/graph_view.h"
#include "capi/lists.h"
#include "capi/model_editor.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

template <typename Ask>
OrtStatus* put_answer(const char* function, const OrtValueInfo* value_info, bool* out, Ask&& ask) {
  return guarded(function, [&]() -> Status {
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    SDX_TRY(require(out, "the answer"));
    *out = ask(*value);
    return {};
  });
}

/// The path as programs find it from the model's folder.
std::string file_below(const std::string& file, const ModelFacts& facts) {
  const std::string prefix = facts.real_folder + "/";
  return !facts.real_folder.empty() && file.starts_with(prefix) ? file.substr(prefix.size()) : file;
}

}  // namespace

OrtStatus* GetValueInfoName(const OrtValueInfo* value_info, const char** name) noexcept {
  return guarded("GetValueInfoName", [&]() -> Status {
    SDX_TRY(require(value_info, "value_info"));
    SDX_TRY(require(name, "name"));
    *name = value_info->name.c_str();
    return {};
  });
}

OrtStatus* GetValueInfoTypeInfo(const OrtValueInfo* value_info,
                                const OrtTypeInfo** type_info) noexcept {
  return guarded("GetValueInfoTypeInfo", [&]() -> Status {
    SDX_TRY(require(value_info, "value_info"));
    SDX_TRY(require(type_info, "type_info"));
    if (!value_info->is_view) {
      *type_info = editor_of(value_info).type_info.get();
      return {};
    }
    const auto* value = static_cast<const ViewValue*>(value_info);
    *type_info = value->graph.type_info(*value);
    return {};
  });
}

OrtStatus* ValueInfo_GetValueProducer(const OrtValueInfo* value_info, const OrtNode** producer_node,
                                      size_t* producer_output_index) noexcept {
  return guarded("ValueInfo_GetValueProducer", [&]() -> Status {
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    SDX_TRY(require(producer_node, "producer_node"));
    *producer_node = value->producer;
    if (producer_output_index != nullptr) *producer_output_index = value->producer_output;
    return {};
  });
}

OrtStatus* ValueInfo_GetValueNumConsumers(const OrtValueInfo* value_info,
                                          size_t* consumer_count) noexcept {
  return guarded("ValueInfo_GetValueNumConsumers", [&]() -> Status {
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    return put_count(value->uses, consumer_count);
  });
}

OrtStatus* ValueInfo_GetValueConsumers(const OrtValueInfo* value_info, const OrtNode** nodes,
                                       int64_t* input_indices, size_t consumer_count) noexcept {
  return guarded("ValueInfo_GetValueConsumers", [&]() -> Status {
    if (consumer_count != 0) SDX_TRY(require(nodes, "nodes"));
    if (consumer_count != 0) SDX_TRY(require(input_indices, "input_indices"));
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    SDX_TRY(check_room(value->uses.size(), consumer_count, nodes, "nodes"));
    SDX_TRY(check_room(value->uses.size(), consumer_count, input_indices, "input_indices"));
    for (std::size_t i = 0; i < value->uses.size(); ++i) {
      nodes[i] = value->uses[i].node;
      input_indices[i] = value->uses[i].index;
    }
    return {};
  });
}

OrtStatus* ValueInfo_GetInitializerValue(const OrtValueInfo* value_info,
                                         const OrtValue** initializer_value) noexcept {
  return guarded("ValueInfo_GetInitializerValue", [&]() -> Status {
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    SDX_TRY(require(initializer_value, "initializer_value"));
    *initializer_value = value->graph.initializer(*value);
    return {};
  });
}

OrtStatus* ValueInfo_GetExternalInitializerInfo(const OrtValueInfo* value_info,
                                                OrtExternalInitializerInfo** info) noexcept {
  return guarded("ValueInfo_GetExternalInitializerInfo", [&]() -> Status {
    SDX_ASSIGN(const ViewValue* value, view_of(value_info));
    SDX_TRY(require(info, "info"));
    *info = nullptr;
    const ModelFacts& facts = value->graph.facts();
    const WeightOrigin* origin = value->source.origin.get();
    if (origin == nullptr || value->initial_tensor() == nullptr) return {};
    if (origin->file == facts.real_path) return {};
    *info = new OrtExternalInitializerInfo{file_below(origin->file, facts),
                                           static_cast<std::int64_t>(origin->offset),
                                           static_cast<std::size_t>(origin->length)};
    return {};
  });
}

OrtStatus* ValueInfo_IsRequiredGraphInput(const OrtValueInfo* value_info,
                                          bool* is_required_graph_input) noexcept {
  return put_answer("ValueInfo_IsRequiredGraphInput", value_info, is_required_graph_input,
                    [](const ViewValue& value) { return value.is_required_input; });
}

OrtStatus* ValueInfo_IsOptionalGraphInput(const OrtValueInfo* value_info,
                                          bool* is_optional_graph_input) noexcept {
  return put_answer("ValueInfo_IsOptionalGraphInput", value_info, is_optional_graph_input,
                    [](const ViewValue& value) { return value.is_optional_input; });
}

OrtStatus* ValueInfo_IsGraphOutput(const OrtValueInfo* value_info, bool* is_graph_output) noexcept {
  return put_answer("ValueInfo_IsGraphOutput", value_info, is_graph_output,
                    [](const ViewValue& value) { return value.is_output; });
}

OrtStatus* ValueInfo_IsConstantInitializer(const OrtValueInfo* value_info,
                                           bool* is_constant_initializer) noexcept {
  return put_answer("ValueInfo_IsConstantInitializer", value_info, is_constant_initializer,
                    [](const ViewValue& value) { return value.is_constant(); });
}

OrtStatus* ValueInfo_IsFromOuterScope(const OrtValueInfo* value_info,
                                      bool* is_from_outer_scope) noexcept {
  return put_answer("ValueInfo_IsFromOuterScope", value_info, is_from_outer_scope,
                    [](const ViewValue& value) { return value.value.is_captured; });
}

OrtStatus* CreateExternalInitializerInfo(const ORTCHAR_T* filepath, int64_t file_offset,
                                         size_t byte_size,
                                         OrtExternalInitializerInfo** out) noexcept {
  return guarded("CreateExternalInitializerInfo", [&]() -> Status {
    SDX_TRY(require(filepath, "filepath"));
    SDX_TRY(require(out, "out"));
    *out = new OrtExternalInitializerInfo{filepath, file_offset, byte_size};
    return {};
  });
}

void ReleaseExternalInitializerInfo(OrtExternalInitializerInfo* object) noexcept { delete object; }

const ORTCHAR_T* ExternalInitializerInfo_GetFilePath(
    const OrtExternalInitializerInfo* info) noexcept {
  return info != nullptr ? info->file.c_str() : "";
}

int64_t ExternalInitializerInfo_GetFileOffset(const OrtExternalInitializerInfo* info) noexcept {
  return info != nullptr ? info->offset : 0;
}

size_t ExternalInitializerInfo_GetByteSize(const OrtExternalInitializerInfo* info) noexcept {
  return info != nullptr ? info->byte_size : 0;
}

}  // namespace sardonyx::capi
