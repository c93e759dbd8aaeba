#include "session/environment.h"

#include <cstring>
#include <mutex>

#include "base/log_scope.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

/// One environment for all handles of a process that live at the same time, so that sessions share
/// weights and threads whoever made them.
std::shared_ptr<Environment> shared_environment() {
  static std::mutex mutex;
  static std::weak_ptr<Environment> current;
  const std::lock_guard lock(mutex);
  auto environment = current.lock();
  if (environment == nullptr) {
    environment = make_environment();
    current = environment;
  }
  return environment;
}

Severity to_severity(int level) { return static_cast<Severity>(std::min(4, std::max(0, level))); }

Status create(OrtLoggingLevel level, const OrtThreadingOptions* threading, OrtEnv** out) {
  SDX_TRY(require(out, "out"));
  set_log_level(to_severity(level));
  auto made = std::make_unique<OrtEnv>(OrtEnv{shared_environment()});
  if (threading != nullptr) {
    ThreadPoolOptions options;
    options.thread_count = threading->thread_count;
    SDX_ASSIGN(options.functions, threading->threads.functions());
    if (!made->environment->shared_pool(std::move(options))->is_complete()) {
      return failure(Code::InvalidArgument,
                     "the custom function that creates threads returned none");
    }
  }
  *out = made.release();
  return {};
}

Status create_with_logger(OrtLoggingFunction function, void* parameter, OrtLoggingLevel level,
                          const char* logid, const OrtThreadingOptions* threading, OrtEnv** out) {
  SDX_TRY(require(reinterpret_cast<const void*>(function), "logging_function"));
  auto sink = hold_log_sink(log_sink_of(function, parameter, logid != nullptr ? logid : ""));
  SDX_TRY(create(level, threading, out));
  (*out)->log_sink = std::move(sink);
  return {};
}

Status create_with_options(const OrtEnvCreationOptions& options, OrtEnv** out) {
  const auto level = static_cast<OrtLoggingLevel>(options.logging_severity_level);
  if (options.custom_logging_function != nullptr) {
    SDX_TRY(create_with_logger(options.custom_logging_function, options.custom_logging_param, level,
                               options.log_id, options.threading_options, out));
  } else {
    SDX_TRY(create(level, options.threading_options, out));
  }
  if (options.config_entries != nullptr) (*out)->entries = options.config_entries->entries;
  return {};
}

}  // namespace

OrtStatus* CreateEnvWithOptions(const OrtEnvCreationOptions* options, OrtEnv** out) noexcept {
  return guarded("CreateEnvWithOptions", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    return create_with_options(*options, out);
  });
}

OrtStatus* CreateEnv(OrtLoggingLevel log_severity_level, const char*, OrtEnv** out) noexcept {
  return guarded("CreateEnv", [&] { return create(log_severity_level, nullptr, out); });
}

OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel log_severity_level, const char*,
                                          const OrtThreadingOptions* tp_options,
                                          OrtEnv** out) noexcept {
  return guarded("CreateEnvWithGlobalThreadPools",
                 [&] { return create(log_severity_level, tp_options, out); });
}

OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction logging_function, void* logger_param,
                                     OrtLoggingLevel log_severity_level, const char* logid,
                                     OrtEnv** out) noexcept {
  return guarded("CreateEnvWithCustomLogger", [&] {
    return create_with_logger(logging_function, logger_param, log_severity_level, logid, nullptr,
                              out);
  });
}

OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(
    OrtLoggingFunction logging_function, void* logger_param, OrtLoggingLevel log_severity_level,
    const char* logid, const OrtThreadingOptions* tp_options, OrtEnv** out) noexcept {
  return guarded("CreateEnvWithCustomLoggerAndGlobalThreadPools", [&] {
    return create_with_logger(logging_function, logger_param, log_severity_level, logid, tp_options,
                              out);
  });
}

void ReleaseEnv(OrtEnv* object) noexcept { delete object; }

// There is no telemetry: both have nothing to change.
OrtStatus* EnableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* DisableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) noexcept { return nullptr; }

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv*, OrtLoggingLevel log_severity_level) noexcept {
  set_log_level(to_severity(log_severity_level));
  return nullptr;
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  return guarded("CreateThreadingOptions", [&]() -> Status {
    *out = new OrtThreadingOptions;
    return {};
  });
}

void ReleaseThreadingOptions(OrtThreadingOptions* object) noexcept { delete object; }

OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* tp_options,
                                      int intra_op_num_threads) noexcept {
  tp_options->thread_count = intra_op_num_threads;
  return nullptr;
}

// Nodes run one after the other, each on all threads: there is no second pool to size.
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions*) noexcept { return nullptr; }

OrtStatus* GetAvailableProviders(char*** out_ptr, int* provider_length) noexcept {
  return guarded("GetAvailableProviders", [&]() -> Status {
    const auto environment = shared_environment();
    const auto& providers = environment->providers();
    auto names = std::make_unique<char*[]>(providers.size());
    for (size_t i = 0; i < providers.size(); ++i) {
      const std::string_view name = providers[i]->name();
      names[i] = new char[name.size() + 1];
      std::memcpy(names[i], name.data(), name.size());
      names[i][name.size()] = '\0';
    }
    *out_ptr = names.release();
    *provider_length = static_cast<int>(providers.size());
    return {};
  });
}

OrtStatus* ReleaseAvailableProviders(char** ptr, int providers_length) noexcept {
  if (ptr == nullptr) return nullptr;
  for (int i = 0; i < providers_length; ++i) delete[] ptr[i];
  delete[] ptr;
  return nullptr;
}

const char* GetBuildInfoString() noexcept {
  return "Sardonyx build info: git-branch=main, cmake cxx flags: C++20";
}

OrtStatus* CreatePrepackedWeightsContainer(OrtPrepackedWeightsContainer** out) noexcept {
  return guarded("CreatePrepackedWeightsContainer", [&]() -> Status {
    *out = new OrtPrepackedWeightsContainer;
    return {};
  });
}

void ReleasePrepackedWeightsContainer(OrtPrepackedWeightsContainer* object) noexcept {
  delete object;
}

}  // namespace sardonyx::capi

void OrtKeyValuePairs::refresh() {
  keys.clear();
  values.clear();
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
}

namespace sardonyx::capi {

void CreateKeyValuePairs(OrtKeyValuePairs** out) noexcept {
  *out = new (std::nothrow) OrtKeyValuePairs;
}

void AddKeyValuePair(OrtKeyValuePairs* kvps, const char* key, const char* value) noexcept {
  if (kvps == nullptr || key == nullptr || *key == '\0' || value == nullptr) return;
  try {
    kvps->entries[key] = value;
    kvps->refresh();
  } catch (const std::bad_alloc&) {
    log(Severity::Error, "no memory for the entry '{}'", key);
  }
}

const char* GetKeyValue(const OrtKeyValuePairs* kvps, const char* key) noexcept {
  if (kvps == nullptr || key == nullptr) return nullptr;
  const auto found = kvps->entries.find(key);
  return found == kvps->entries.end() ? nullptr : found->second.c_str();
}

void GetKeyValuePairs(const OrtKeyValuePairs* kvps, const char* const** keys,
                      const char* const** values, size_t* entrie_count) noexcept {
  *keys = kvps->keys.data();
  *values = kvps->values.data();
  *entrie_count = kvps->keys.size();
}

void RemoveKeyValuePair(OrtKeyValuePairs* kvps, const char* key) noexcept {
  if (kvps == nullptr || key == nullptr) return;
  kvps->entries.erase(key);
  kvps->refresh();
}

void ReleaseKeyValuePairs(OrtKeyValuePairs* object) noexcept { delete object; }

}  // namespace sardonyx::capi
