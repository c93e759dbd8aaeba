#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* SessionGetModelMetadata(const OrtSession* session, OrtModelMetadata** out) noexcept {
  return guarded("SessionGetModelMetadata", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    *out = new OrtModelMetadata{session->session->metadata()};
    return {};
  });
}

void ReleaseModelMetadata(OrtModelMetadata* object) noexcept { delete object; }

OrtStatus* ModelMetadataGetProducerName(const OrtModelMetadata* model_metadata,
                                        OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetProducerName", [&] {
    return copy_text(allocator, model_metadata->metadata.producer_name, value);
  });
}

OrtStatus* ModelMetadataGetGraphName(const OrtModelMetadata* model_metadata,
                                     OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetGraphName",
                 [&] { return copy_text(allocator, model_metadata->metadata.graph_name, value); });
}

OrtStatus* ModelMetadataGetDomain(const OrtModelMetadata* model_metadata, OrtAllocator* allocator,
                                  char** value) noexcept {
  return guarded("ModelMetadataGetDomain",
                 [&] { return copy_text(allocator, model_metadata->metadata.domain, value); });
}

OrtStatus* ModelMetadataGetDescription(const OrtModelMetadata* model_metadata,
                                       OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetDescription",
                 [&] { return copy_text(allocator, model_metadata->metadata.description, value); });
}

OrtStatus* ModelMetadataGetGraphDescription(const OrtModelMetadata* model_metadata,
                                            OrtAllocator* allocator, char** value) noexcept {
  return guarded("ModelMetadataGetGraphDescription", [&] {
    return copy_text(allocator, model_metadata->metadata.graph_description, value);
  });
}

OrtStatus* ModelMetadataGetVersion(const OrtModelMetadata* model_metadata,
                                   int64_t* value) noexcept {
  *value = model_metadata->metadata.version;
  return nullptr;
}

OrtStatus* ModelMetadataLookupCustomMetadataMap(const OrtModelMetadata* model_metadata,
                                                OrtAllocator* allocator, const char* key,
                                                char** value) noexcept {
  return guarded("ModelMetadataLookupCustomMetadataMap", [&]() -> Status {
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
    const auto& custom = model_metadata->metadata.custom;
    *keys = nullptr;
    *key_count = static_cast<int64_t>(custom.size());
    if (custom.empty()) return {};
    auto* list = static_cast<char**>(allocator->Alloc(allocator, custom.size() * sizeof(char*)));
    if (list == nullptr) return failure(Code::OutOfMemory, "no memory for {} keys", custom.size());
    for (size_t i = 0; i < custom.size(); ++i) {
      SDX_TRY(copy_text(allocator, custom[i].first, &list[i]));
    }
    *keys = list;
    return {};
  });
}

}  // namespace sardonyx::capi
