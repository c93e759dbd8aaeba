#include "capi/api_base.h"

#include "base/log.h"
#include "capi/api_tables.h"

namespace sardonyx::capi {

namespace {

const OrtApi* ORT_API_CALL get_api(uint32_t version) {
  if (version >= 1 && version <= ORT_API_VERSION) return &ort_api_table();
  log(Severity::Error,
      "the requested API version {} is not available: this build serves versions 1 to {} "
      "(release {})",
      version, ORT_API_VERSION, SARDONYX_ORT_RELEASE);
  return nullptr;
}

const char* ORT_API_CALL get_version_string() { return SARDONYX_ORT_RELEASE; }

constexpr OrtApiBase kApiBase = {get_api, get_version_string};

}  // namespace

const OrtApiBase& api_base() { return kApiBase; }

}  // namespace sardonyx::capi
