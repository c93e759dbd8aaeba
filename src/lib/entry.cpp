// The three functions that libonnxruntime.so.1 exports.
#include "capi/api_base.h"
#include "capi/api_tables.h"
#include "sardonyx/c_api.h"

extern "C" {

ORT_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) noexcept {
  return &sardonyx::capi::api_base();
}

// The CPU provider is always there, so there is nothing to append.
ORT_EXPORT OrtStatus* ORT_API_CALL
OrtSessionOptionsAppendExecutionProvider_CPU(OrtSessionOptions* options, int) noexcept {
  if (options) return nullptr;
  return sardonyx::capi::ort_api_table().CreateStatus(
      ORT_INVALID_ARGUMENT, "expected session options, found a null pointer");
}

ORT_EXPORT const SardonyxApi* ORT_API_CALL SardonyxGetApi(uint32_t version) noexcept {
  const bool known = version >= 1 && version <= SARDONYX_API_VERSION;
  return known ? &sardonyx::capi::sardonyx_api_table() : nullptr;
}

}  // extern "C"
