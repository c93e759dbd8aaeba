#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return guarded("CreateRunOptions", [&]() -> Status {
    *out = new OrtRunOptions;
    return {};
  });
}

void ReleaseRunOptions(OrtRunOptions* object) noexcept { delete object; }

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options,
                                             int log_verbosity_level) noexcept {
  options->log_verbosity_level = log_verbosity_level;
  return nullptr;
}

OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options,
                                            int log_severity_level) noexcept {
  options->log_severity_level = log_severity_level;
  return nullptr;
}

OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* run_tag) noexcept {
  return guarded("RunOptionsSetRunTag", [&]() -> Status {
    options->tag = run_tag != nullptr ? run_tag : "";
    return {};
  });
}

OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options,
                                             int* log_verbosity_level) noexcept {
  *log_verbosity_level = options->log_verbosity_level;
  return nullptr;
}

OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options,
                                            int* log_severity_level) noexcept {
  *log_severity_level = options->log_severity_level;
  return nullptr;
}

OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** run_tag) noexcept {
  *run_tag = options->tag.c_str();
  return nullptr;
}

OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  options->terminate.store(true);
  return nullptr;
}

OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  options->terminate.store(false);
  return nullptr;
}

OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* config_key,
                             const char* config_value) noexcept {
  return guarded("AddRunConfigEntry", [&]() -> Status {
    SDX_TRY(require(config_key, "config_key"));
    SDX_TRY(require(config_value, "config_value"));
    options->entries[config_key] = config_value;
    return {};
  });
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* config_key) noexcept {
  const auto found = options->entries.find(config_key);
  return found == options->entries.end() ? nullptr : found->second.c_str();
}

}  // namespace sardonyx::capi
