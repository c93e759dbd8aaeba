#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return guarded("SessionGetModelMetadata", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(session, "session"));
    *out = new OrtModelMetadata{session->session->metadata()};
    return {};
  });
}

void ReleaseModelMetadata(OrtModelMetadata* object) noexcept { delete object; }

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* model_metadata,
                                        OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetProducerName", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    return copy_text(allocator, model_metadata->metadata.producer_name, value);
  });
}

OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* model_metadata,
                                     OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetGraphName", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    return copy_text(allocator, model_metadata->metadata.graph_name, value);
  });
}

OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* model_metadata, OrtAllocator* allocator,
                                  char** value) noexcept {
  return guarded("ModelMetadataGetDomain", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    return copy_text(allocator, model_metadata->metadata.domain, value);
  });
}

OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* model_metadata,
                                       OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetDescription", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    return copy_text(allocator, model_metadata->metadata.description, value);
  });
}

OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* model_metadata,
                                            OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetGraphDescription", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    return copy_text(allocator, model_metadata->metadata.graph_description, value);
  });
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* model_metadata,
                                   int64_t* value) noexcept {
  return guarded("ModelMetadataGetVersion", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    SDX_TRY(require(value, "value"));
    *value = model_metadata->metadata.version;
    return {};
  });
}

OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* model_metadata,
                                                OrtAllocator* allocator, const char* key,
                                                char** value) noexcept {
  return guarded("ModelMetadataLookupCustomMetadataMap", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    SDX_TRY(require(key, "key"));
    SDX_TRY(require(value, "value"));
    *value = nullptr;
    for (const auto& [name, text] : model_metadata->metadata.custom) {
      if (name == key) return copy_text(allocator, text, value);
    }
    return {};
  });
}

OrtStatus* ModelMetadataGetCustomMetadataMapKeys(const OrtModelMetadata* model_metadata,
                                                 OrtAllocator* allocator, char*** keys,
                                                 int64_t* key_count) noexcept {
  return guarded("ModelMetadataGetCustomMetadataMapKeys", [&]() -> Status {
    SDX_TRY(require(model_metadata, "model_metadata"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_TRY(require(keys, "keys"));
    SDX_TRY(require(key_count, "key_count"));
    const auto& custom = model_metadata->metadata.custom;
    *keys = nullptr;
    *key_count = static_cast<int64_t>(custom.size());
    if (custom.empty()) return {};
    auto* list = static_cast<char**>(allocator->Alloc(allocator, custom.size() * sizeof(char*)));
    if (list == nullptr) return failure(Code::OutOfMemory, "no memory for {} keys", custom.size());
    for (size_t i = 0; i < custom.size(); ++i) {
      Status copied = copy_text(allocator, custom[i].first, &list[i]);
      if (copied.ok()) continue;
      while (i > 0) allocator->Free(allocator, list[--i]);
      allocator->Free(allocator, list);
      *key_count = 0;
      return copied;
    }
    *keys = list;
    return {};
  });
}

namespace {

/// What the provider that compiled the model wrote into it; null when it did not.
Status give_compatibility(const Model& model, const char* ep_type, OrtAllocator* allocator,
                          char** out) {
  const std::string wanted = std::string("ep_compatibility_info.") + ep_type;
  *out = nullptr;
  for (const auto& [key, value] : model.metadata) {
    if (key == wanted) return copy_text(allocator, value, out);
  }
  return {};
}

Status check_compatibility_query(const char* ep_type, const OrtAllocator* allocator,
                                 char* const* out) {
  SDX_TRY(require(ep_type, "ep_type"));
  SDX_TRY(require(allocator, "allocator"));
  SDX_TRY(require(out, "compatibility_info"));
  if (*ep_type != '\0') return {};
  return failure(Code::InvalidArgument, "ep_type should name an execution provider, it is empty");
}

}  // namespace

OrtStatus* GetCompatibilityInfoFromModel(const ORTCHAR_T* model_path, const char* ep_type,
                                         OrtAllocator* allocator,
                                         char** compatibility_info) noexcept {
  return guarded("GetCompatibilityInfoFromModel", [&]() -> Status {
    SDX_TRY(require(model_path, "model_path"));
    SDX_TRY(check_compatibility_query(ep_type, allocator, compatibility_info));
    SDX_ASSIGN(const Model model, read_model_head(model_path));
    return give_compatibility(model, ep_type, allocator, compatibility_info);
  });
}

OrtStatus* GetCompatibilityInfoFromModelBytes(const void* model_data, size_t model_data_length,
                                              const char* ep_type, OrtAllocator* allocator,
                                              char** compatibility_info) noexcept {
  return guarded("GetCompatibilityInfoFromModelBytes", [&]() -> Status {
    SDX_TRY(require(model_data, "model_data"));
    SDX_TRY(check_compatibility_query(ep_type, allocator, compatibility_info));
    const auto* bytes = static_cast<const std::byte*>(model_data);
    SDX_ASSIGN(const Model model, read_model_head_from_bytes({bytes, model_data_length}));
    return give_compatibility(model, ep_type, allocator, compatibility_info);
  });
}

}  // namespace sardonyx::capi
