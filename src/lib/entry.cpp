// The three functions that libonnxruntime.so.1 exports.
#include "base/log.h"
#include "capi/api_tables.h"
#include "sardonyx/c_api.h"

namespace {

const OrtApi* ORT_API_CALL get_api(uint32_t version) {
  if (version >= 1 && version <= ORT_API_VERSION) return &sardonyx::capi::ort_api_table();
  sardonyx::log(sardonyx::Severity::Error, "the requested API version {} is not available: this "
                "build serves versions 1 to {} (release {})",
                version, ORT_API_VERSION, SARDONYX_ORT_RELEASE);
  return nullptr;
}

const char* ORT_API_CALL get_version_string() { return SARDONYX_ORT_RELEASE; }

constexpr OrtApiBase kApiBase = {get_api, get_version_string};

}  // namespace

extern "C" {

ORT_EXPORT const OrtApiBase* ORT_API_CALL OrtGetApiBase(void) noexcept { return &kApiBase; }

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
