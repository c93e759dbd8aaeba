#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "capi/typed_entries.h"

namespace sardonyx::capi {

OrtStatus* CreateRunOptions(OrtRunOptions** out) noexcept {
  return guarded("CreateRunOptions", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = new OrtRunOptions;
    return {};
  });
}

void ReleaseRunOptions(OrtRunOptions* object) noexcept { delete object; }

OrtStatus* RunOptionsSetRunLogVerbosityLevel(OrtRunOptions* options,
                                             int log_verbosity_level) noexcept {
  return guarded("RunOptionsSetRunLogVerbosityLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->log_verbosity_level = log_verbosity_level;
    return {};
  });
}

OrtStatus* RunOptionsSetRunLogSeverityLevel(OrtRunOptions* options,
                                            int log_severity_level) noexcept {
  return guarded("RunOptionsSetRunLogSeverityLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->log_severity_level = log_severity_level;
    return {};
  });
}

OrtStatus* RunOptionsSetRunTag(OrtRunOptions* options, const char* run_tag) noexcept {
  return guarded("RunOptionsSetRunTag", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->tag = run_tag != nullptr ? run_tag : "";
    return {};
  });
}

OrtStatus* RunOptionsGetRunLogVerbosityLevel(const OrtRunOptions* options,
                                             int* log_verbosity_level) noexcept {
  return guarded("RunOptionsGetRunLogVerbosityLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(log_verbosity_level, "log_verbosity_level"));
    *log_verbosity_level = options->log_verbosity_level;
    return {};
  });
}

OrtStatus* RunOptionsGetRunLogSeverityLevel(const OrtRunOptions* options,
                                            int* log_severity_level) noexcept {
  return guarded("RunOptionsGetRunLogSeverityLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(log_severity_level, "log_severity_level"));
    *log_severity_level = options->log_severity_level;
    return {};
  });
}

OrtStatus* RunOptionsGetRunTag(const OrtRunOptions* options, const char** run_tag) noexcept {
  return guarded("RunOptionsGetRunTag", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(run_tag, "run_tag"));
    *run_tag = options->tag.c_str();
    return {};
  });
}

OrtStatus* RunOptionsSetTerminate(OrtRunOptions* options) noexcept {
  return guarded("RunOptionsSetTerminate", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->terminate.store(true);
    return {};
  });
}

OrtStatus* RunOptionsUnsetTerminate(OrtRunOptions* options) noexcept {
  return guarded("RunOptionsUnsetTerminate", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->terminate.store(false);
    return {};
  });
}

OrtStatus* AddRunConfigEntry(OrtRunOptions* options, const char* config_key,
                             const char* config_value) noexcept {
  return guarded("AddRunConfigEntry", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(config_key, "config_key"));
    SDX_TRY(require(config_value, "config_value"));
    SDX_TRY(check_entry(config_key, config_value));
    options->entries[config_key] = config_value;
    return {};
  });
}

const char* GetRunConfigEntry(const OrtRunOptions* options, const char* config_key) noexcept {
  if (options == nullptr || config_key == nullptr) return nullptr;
  const auto found = options->entries.find(config_key);
  return found == options->entries.end() ? nullptr : found->second.c_str();
}

OrtStatus* RunOptionsEnableProfiling(OrtRunOptions* options,
                                     const ORTCHAR_T* profile_file_prefix) noexcept {
  return guarded("RunOptionsEnableProfiling", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(profile_file_prefix, "profile_file_prefix"));
    options->profile_prefix =
        *profile_file_prefix != '\0' ? profile_file_prefix : "onnxruntime_run";
    return {};
  });
}

OrtStatus* RunOptionsDisableProfiling(OrtRunOptions* options) noexcept {
  return guarded("RunOptionsDisableProfiling", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->profile_prefix.clear();
    return {};
  });
}

}  // namespace sardonyx::capi
