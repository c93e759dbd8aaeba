#include "session/environment.h"

#include <cstring>
#include <mutex>

#include "base/log_scope.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/as_number.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "session/bound_threads.h"

namespace sardonyx::capi {

namespace {

/// T of the process, made by `make` when no handle has it: all handles that live at the same time
/// share it.
template <typename T>
std::shared_ptr<T> shared_by_process(std::shared_ptr<T> (*make)()) {
  static std::mutex mutex;
  static std::weak_ptr<T> current;
  const std::lock_guard lock(mutex);
  auto shared = current.lock();
  if (shared == nullptr) {
    shared = make();
    current = shared;
  }
  return shared;
}

/// Sessions share weights and threads whoever made their environments.
std::shared_ptr<Environment> shared_environment() { return shared_by_process(&make_environment); }

std::shared_ptr<ProcessState> process_state() {
  return shared_by_process<ProcessState>([] { return std::make_shared<ProcessState>(); });
}

Status create(int level, const OrtThreadingOptions* threading, OrtEnv** out) {
  SDX_TRY(require(out, "out"));
  set_log_level(to_severity(level));
  auto made = std::make_unique<OrtEnv>(OrtEnv{shared_environment(), process_state()});
  if (threading != nullptr) {
    ThreadPoolOptions options;
    options.thread_count = threading->thread_count;
    SDX_ASSIGN(options.functions, threading->threads.functions());
    if (!threading->affinities.empty()) {
      SDX_ASSIGN(Affinities affinities, parse_affinities(threading->affinities));
      if (!options.functions.start) options.functions = bound_threads(std::move(affinities));
    }
    if (!made->environment->shared_pool(std::move(options))->is_complete()) {
      return failure(Code::InvalidArgument,
                     "the custom function that creates threads returned none");
    }
  }
  *out = made.release();
  return {};
}

Status create_with_logger(OrtLoggingFunction function, void* parameter, int level,
                          const char* logid, const OrtThreadingOptions* threading, OrtEnv** out) {
  SDX_TRY(require(reinterpret_cast<const void*>(function), "logging_function"));
  auto sink = hold_log_sink(log_sink_of(function, parameter, logid != nullptr ? logid : ""));
  SDX_TRY(create(level, threading, out));
  (*out)->log_sink = std::move(sink);
  return {};
}

Status create_with_options(const OrtEnvCreationOptions& options, OrtEnv** out) {
  const int level = options.logging_severity_level;
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
  return guarded("CreateEnv", [&] { return create(as_number(log_severity_level), nullptr, out); });
}

OrtStatus* CreateEnvWithGlobalThreadPools(OrtLoggingLevel log_severity_level, const char*,
                                          const OrtThreadingOptions* tp_options,
                                          OrtEnv** out) noexcept {
  return guarded("CreateEnvWithGlobalThreadPools",
                 [&] { return create(as_number(log_severity_level), tp_options, out); });
}

OrtStatus* CreateEnvWithCustomLogger(OrtLoggingFunction logging_function, void* logger_param,
                                     OrtLoggingLevel log_severity_level, const char* logid,
                                     OrtEnv** out) noexcept {
  return guarded("CreateEnvWithCustomLogger", [&] {
    return create_with_logger(logging_function, logger_param, as_number(log_severity_level), logid,
                              nullptr, out);
  });
}

OrtStatus* CreateEnvWithCustomLoggerAndGlobalThreadPools(
    OrtLoggingFunction logging_function, void* logger_param, OrtLoggingLevel log_severity_level,
    const char* logid, const OrtThreadingOptions* tp_options, OrtEnv** out) noexcept {
  return guarded("CreateEnvWithCustomLoggerAndGlobalThreadPools", [&] {
    return create_with_logger(logging_function, logger_param, as_number(log_severity_level), logid,
                              tp_options, out);
  });
}

void ReleaseEnv(OrtEnv* object) noexcept { delete object; }

// There is no telemetry: both have nothing to change.
OrtStatus* EnableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* DisableTelemetryEvents(const OrtEnv*) noexcept { return nullptr; }
OrtStatus* SetLanguageProjection(const OrtEnv*, OrtLanguageProjection) noexcept { return nullptr; }

OrtStatus* UpdateEnvWithCustomLogLevel(OrtEnv*, OrtLoggingLevel log_severity_level) noexcept {
  set_log_level(to_severity(as_number(log_severity_level)));
  return nullptr;
}

OrtStatus* CreateThreadingOptions(OrtThreadingOptions** out) noexcept {
  return guarded("CreateThreadingOptions", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = new OrtThreadingOptions;
    return {};
  });
}

void ReleaseThreadingOptions(OrtThreadingOptions* object) noexcept { delete object; }

OrtStatus* SetGlobalIntraOpNumThreads(OrtThreadingOptions* tp_options,
                                      int intra_op_num_threads) noexcept {
  return guarded("SetGlobalIntraOpNumThreads", [&]() -> Status {
    SDX_TRY(require(tp_options, "tp_options"));
    tp_options->thread_count = intra_op_num_threads;
    return {};
  });
}

OrtStatus* SetGlobalIntraOpThreadAffinity(OrtThreadingOptions* tp_options,
                                          const char* affinity_string) noexcept {
  return guarded("SetGlobalIntraOpThreadAffinity", [&]() -> Status {
    constexpr size_t kLengthMax = 4096;
    SDX_TRY(require(tp_options, "tp_options"));
    SDX_TRY(require(affinity_string, "affinity_string"));
    const std::string_view text = affinity_string;
    if (text.empty() || text.size() > kLengthMax) {
      return failure(Code::InvalidArgument,
                     "an affinity string has between 1 and {} characters, found {}", kLengthMax,
                     text.size());
    }
    tp_options->affinities = text;
    return {};
  });
}

// Nodes run one after the other, each on all threads: there is no second pool to size.
OrtStatus* SetGlobalInterOpNumThreads(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalSpinControl(OrtThreadingOptions*, int) noexcept { return nullptr; }
OrtStatus* SetGlobalDenormalAsZero(OrtThreadingOptions*) noexcept { return nullptr; }

OrtStatus* GetAvailableProviders(char*** out_ptr, int* provider_length) noexcept {
  return guarded("GetAvailableProviders", [&]() -> Status {
    SDX_TRY(require(out_ptr, "out_ptr"));
    SDX_TRY(require(provider_length, "provider_length"));
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
    SDX_TRY(require(out, "out"));
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
  if (out == nullptr) return;
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
  if (kvps == nullptr || keys == nullptr || values == nullptr || entrie_count == nullptr) return;
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
