#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "capi/typed_entries.h"

namespace sardonyx::capi {

namespace {

Status add_initializer(OrtSessionOptions& options, const char* name, const OrtValue* value,
                       bool is_owned) {
  SDX_TRY(require(name, "name"));
  SDX_TRY(require(value, "value"));
  const Tensor* tensor = value->datum.tensor();
  if (tensor == nullptr) {
    return failure(Code::InvalidArgument, "initializer '{}' should be a tensor", name);
  }
  Tensor kept = *tensor;
  // AddInitializer leaves the memory to the caller; AddExternalInitializers may outlive it.
  if (is_owned && kept.owner() == nullptr) {
    SDX_ASSIGN(kept, clone(*tensor));
  }
  options.options.read.initializers.insert_or_assign(name, std::move(kept));
  return {};
}

}  // namespace

OrtStatus* CreateSessionOptions(OrtSessionOptions** options) noexcept {
  return guarded("CreateSessionOptions", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    *options = new OrtSessionOptions;
    return {};
  });
}

OrtStatus* CloneSessionOptions(const OrtSessionOptions* in_options,
                               OrtSessionOptions** out_options) noexcept {
  return guarded("CloneSessionOptions", [&]() -> Status {
    SDX_TRY(require(in_options, "in_options"));
    SDX_TRY(require(out_options, "out_options"));
    auto copy = std::make_unique<OrtSessionOptions>(*in_options);
    copy->load_cancelled = std::make_shared<std::atomic<bool>>(false);
    *out_options = copy.release();
    return {};
  });
}

void ReleaseSessionOptions(OrtSessionOptions* object) noexcept { delete object; }

OrtStatus* SetOptimizedModelFilePath(OrtSessionOptions* options,
                                     const ORTCHAR_T* optimized_model_filepath) noexcept {
  return guarded("SetOptimizedModelFilePath", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(optimized_model_filepath, "optimized_model_filepath"));
    options->options.optimized_model_path = optimized_model_filepath;
    return {};
  });
}

OrtStatus* SetSessionExecutionMode(OrtSessionOptions* options,
                                   ExecutionMode execution_mode) noexcept {
  return guarded("SetSessionExecutionMode", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    if (execution_mode != ORT_SEQUENTIAL && execution_mode != ORT_PARALLEL) {
      return failure(Code::InvalidArgument,
                     "execution_mode is not valid: expected 0 or 1, found {}",
                     static_cast<int>(execution_mode));
    }
    options->execution_mode = execution_mode;
    return {};
  });
}

OrtStatus* GetSessionExecutionMode(const OrtSessionOptions* options, ExecutionMode* out) noexcept {
  return guarded("GetSessionExecutionMode", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    *out = options->execution_mode;
    return {};
  });
}

OrtStatus* EnableProfiling(OrtSessionOptions* options,
                           const ORTCHAR_T* profile_file_prefix) noexcept {
  return guarded("EnableProfiling", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.is_profiling = true;
    if (profile_file_prefix != nullptr) options->options.profile_prefix = profile_file_prefix;
    return {};
  });
}

OrtStatus* DisableProfiling(OrtSessionOptions* options) noexcept {
  return guarded("DisableProfiling", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.is_profiling = false;
    return {};
  });
}

OrtStatus* EnableMemPattern(OrtSessionOptions* options) noexcept {
  return guarded("EnableMemPattern", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->mem_pattern = true;
    return {};
  });
}

OrtStatus* DisableMemPattern(OrtSessionOptions* options) noexcept {
  return guarded("DisableMemPattern", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->mem_pattern = false;
    return {};
  });
}

OrtStatus* GetMemPatternEnabled(const OrtSessionOptions* options, int* out) noexcept {
  return guarded("GetMemPatternEnabled", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    *out = options->mem_pattern ? 1 : 0;
    return {};
  });
}

OrtStatus* EnableCpuMemArena(OrtSessionOptions* options) noexcept {
  return guarded("EnableCpuMemArena", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->cpu_arena = true;
    return {};
  });
}

OrtStatus* DisableCpuMemArena(OrtSessionOptions* options) noexcept {
  return guarded("DisableCpuMemArena", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->cpu_arena = false;
    return {};
  });
}

OrtStatus* SetSessionLogId(OrtSessionOptions* options, const char* logid) noexcept {
  return guarded("SetSessionLogId", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.log_id = logid != nullptr ? logid : "";
    return {};
  });
}

OrtStatus* SetSessionLogVerbosityLevel(OrtSessionOptions*, int) noexcept { return nullptr; }

OrtStatus* SetSessionLogSeverityLevel(OrtSessionOptions* options,
                                      int session_log_severity_level) noexcept {
  return guarded("SetSessionLogSeverityLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->log_level = session_log_severity_level;
    return {};
  });
}

OrtStatus* SetSessionGraphOptimizationLevel(
    OrtSessionOptions* options, GraphOptimizationLevel graph_optimization_level) noexcept {
  return guarded("SetSessionGraphOptimizationLevel", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    const int level = static_cast<int>(graph_optimization_level);
    if (level != 99 && (level < 0 || level > 3)) {
      return failure(Code::InvalidArgument,
                     "graph_optimization_level is not valid: expected 0, 1, 2, 3 or 99, found {}",
                     level);
    }
    options->options.optimization_level = level;
    return {};
  });
}

OrtStatus* SetIntraOpNumThreads(OrtSessionOptions* options, int intra_op_num_threads) noexcept {
  return guarded("SetIntraOpNumThreads", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.thread_count = std::max(0, intra_op_num_threads);
    return {};
  });
}

OrtStatus* SetInterOpNumThreads(OrtSessionOptions*, int) noexcept { return nullptr; }

OrtStatus* DisablePerSessionThreads(OrtSessionOptions* options) noexcept {
  return guarded("DisablePerSessionThreads", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.use_shared_pool = true;
    return {};
  });
}

OrtStatus* SetDeterministicCompute(OrtSessionOptions* options, bool value) noexcept {
  return guarded("SetDeterministicCompute", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->deterministic = value;
    return {};
  });
}

OrtStatus* AddFreeDimensionOverride(OrtSessionOptions* options, const char* dim_denotation,
                                    int64_t dim_value) noexcept {
  return guarded("AddFreeDimensionOverride", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(dim_denotation, "dim_denotation"));
    options->options.dimensions_by_denotation.emplace_back(dim_denotation, dim_value);
    return {};
  });
}

OrtStatus* AddFreeDimensionOverrideByName(OrtSessionOptions* options, const char* dim_name,
                                          int64_t dim_value) noexcept {
  return guarded("AddFreeDimensionOverrideByName", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(dim_name, "dim_name"));
    options->options.dimensions_by_name.emplace_back(dim_name, dim_value);
    return {};
  });
}

OrtStatus* AddSessionConfigEntry(OrtSessionOptions* options, const char* config_key,
                                 const char* config_value) noexcept {
  return guarded("AddSessionConfigEntry", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(config_key, "config_key"));
    SDX_TRY(require(config_value, "config_value"));
    const std::string key = config_key;
    const std::string value = config_value;
    SDX_TRY(check_entry(key, value));
    SDX_ASSIGN(const bool is_typed, set_typed_entry(*options, key, value));
    if (!is_typed) options->options.entries[key] = value;
    return {};
  });
}

OrtStatus* HasSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                 int* out) noexcept {
  return guarded("HasSessionConfigEntry", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(config_key, "config_key"));
    *out = options->options.entries.count(config_key) != 0 ? 1 : 0;
    return {};
  });
}

OrtStatus* GetSessionConfigEntry(const OrtSessionOptions* options, const char* config_key,
                                 char* config_value, size_t* size) noexcept {
  return guarded("GetSessionConfigEntry", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(size, "size"));
    SDX_TRY(require(config_key, "config_key"));
    const auto found = options->options.entries.find(config_key);
    if (found == options->options.entries.end()) {
      return failure(Code::InvalidArgument, "Session config entry '{}' was not found.", config_key);
    }
    const size_t needed = found->second.size() + 1;
    const bool fits = *size >= needed;
    *size = needed;
    if (config_value == nullptr) return {};
    if (!fits) {
      return failure(
          Code::InvalidArgument,
          "Output buffer is not large enough for session config entry: it needs {} bytes", needed);
    }
    std::memcpy(config_value, found->second.c_str(), needed);
    return {};
  });
}

OrtStatus* GetSessionOptionsConfigEntries(const OrtSessionOptions* options,
                                          OrtKeyValuePairs** out) noexcept {
  return guarded("GetSessionOptionsConfigEntries", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtKeyValuePairs>();
    made->entries = {options->options.entries.begin(), options->options.entries.end()};
    made->refresh();
    *out = made.release();
    return {};
  });
}

OrtStatus* AddInitializer(OrtSessionOptions* options, const char* name,
                          const OrtValue* val) noexcept {
  return guarded("AddInitializer", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(name, "name"));
    if (options->options.read.initializers.count(name) != 0) {
      return failure(Code::InvalidArgument, "initializer '{}' was added before", name);
    }
    return add_initializer(*options, name, val, false);
  });
}

OrtStatus* AddExternalInitializers(OrtSessionOptions* options, const char* const* initializer_names,
                                   const OrtValue* const* initializers,
                                   size_t initializer_count) noexcept {
  return guarded("AddExternalInitializers", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    if (initializer_count != 0) SDX_TRY(require(initializer_names, "initializer_names"));
    if (initializer_count != 0) SDX_TRY(require(initializers, "initializers"));
    for (size_t i = 0; i < initializer_count; ++i) {
      SDX_TRY(add_initializer(*options, initializer_names[i], initializers[i], true));
    }
    return {};
  });
}

OrtStatus* AddExternalInitializersFromFilesInMemory(
    OrtSessionOptions* options, const ORTCHAR_T* const* external_initializer_file_names,
    char* const* external_initializer_file_buffer_array,
    const size_t* external_initializer_file_lengths,
    size_t external_initializer_file_count) noexcept {
  return guarded("AddExternalInitializersFromFilesInMemory", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    if (external_initializer_file_count != 0) {
      SDX_TRY(require(external_initializer_file_names, "external_initializer_file_names"));
      SDX_TRY(require(external_initializer_file_buffer_array, "the files' bytes"));
      SDX_TRY(require(external_initializer_file_lengths, "external_initializer_file_lengths"));
    }
    for (size_t i = 0; i < external_initializer_file_count; ++i) {
      SDX_TRY(require(external_initializer_file_names[i], "a file name"));
      const size_t length = external_initializer_file_lengths[i];
      // The caller keeps the bytes until the session is made, which uses them longer.
      SDX_ASSIGN(Tensor copy, Tensor::allocate(DType::UInt8, {static_cast<Dim>(length)}));
      if (length != 0) {
        SDX_TRY(require(external_initializer_file_buffer_array[i], "the bytes of a file"));
        std::memcpy(copy.mutable_data(), external_initializer_file_buffer_array[i], length);
      }
      options->options.read.memory_files.push_back(
          {external_initializer_file_names[i], {copy.data(), length}, copy.owner()});
    }
    return {};
  });
}

OrtStatus* SessionOptionsSetLoadCancellationFlag(OrtSessionOptions* options, bool cancel) noexcept {
  return guarded("SessionOptionsSetLoadCancellationFlag", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->load_cancelled->store(cancel);
    return {};
  });
}

OrtStatus* SetUserLoggingFunction(OrtSessionOptions* options,
                                  OrtLoggingFunction user_logging_function,
                                  void* user_logging_param) noexcept {
  return guarded("SetUserLoggingFunction", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->log_sink.reset();
    if (user_logging_function == nullptr) return {};
    options->log_sink = std::make_shared<const LogSink>(
        log_sink_of(user_logging_function, user_logging_param, options->options.log_id));
    return {};
  });
}

OrtStatus* SessionOptionsAppendExecutionProvider(OrtSessionOptions* options,
                                                 const char* provider_name, const char* const*,
                                                 const char* const*, size_t) noexcept {
  return guarded("SessionOptionsAppendExecutionProvider", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(provider_name, "provider_name"));
    const std::string_view name = provider_name;
    if (name == "CPU" || name == "CPUExecutionProvider") {
      options->options.providers.emplace_back("CPUExecutionProvider");
      if (!options->first_choice) {
        options->first_choice = ProviderChoice{"CPUExecutionProvider", {}};
      }
      return {};
    }
    return failure(Code::InvalidArgument,
                   "provider '{}' is not built in: the built-in one is CPUExecutionProvider",
                   provider_name);
  });
}

}  // namespace sardonyx::capi
