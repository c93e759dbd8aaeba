// What providers may ask about compiled models: where their data and their source are.
#include <cstring>
#include <filesystem>

#include "base/text.h"

#include "capi/api_declarations.h"
#include "capi/api_tables.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"

/// A snapshot of the session options' functions for data of compiled models.
struct OrtEpContextConfig {
  sardonyx::capi::EpContextData data;
};

namespace sardonyx::capi {

namespace {

constexpr const char* kSourcePath = "ep.context_source_model_path";

}  // namespace

OrtStatus* SessionOptionsSetEpContextDataReadFunc(OrtSessionOptions* options,
                                                  OrtReadNamedBufferFunc read_func,
                                                  void* state) noexcept {
  return guarded("SessionOptionsSetEpContextDataReadFunc", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->ep_context_data.read = read_func;
    options->ep_context_data.read_state = read_func != nullptr ? state : nullptr;
    return {};
  });
}

OrtStatus* SessionOptionsSetWeightlessSourceModelBuffer(OrtSessionOptions* options,
                                                        const void* model_data,
                                                        size_t model_data_length) noexcept {
  return guarded("SessionOptionsSetWeightlessSourceModelBuffer", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    if (model_data == nullptr) {
      return Status(Code::InvalidArgument, "Invalid source model: data pointer is null");
    }
    if (model_data_length == 0) {
      return Status(Code::InvalidArgument, "Invalid source model: data size is 0");
    }
    options->options.weightless_source = {static_cast<const std::byte*>(model_data),
                                          model_data_length};
    // The one that was set last counts.
    options->options.entries.erase(kSourcePath);
    return {};
  });
}

namespace sardonyx_api {

OrtStatus* SessionOptionsSetWeightlessSourceModelPath(OrtSessionOptions* options,
                                                      const ORTCHAR_T* path) noexcept {
  return guarded("SessionOptionsSetWeightlessSourceModelPath", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(path, "path"));
    std::error_code error;
    if (*path == '\0' || !std::filesystem::is_regular_file(path, error)) {
      return failure(Code::InvalidArgument,
                     "Invalid source model: expected the path of a file, found '{}'", path);
    }
    options->options.entries[kSourcePath] = path;
    options->options.weightless_source = {};
    return {};
  });
}

OrtStatus* SessionOptionsSetWeightlessSourceModelFromBuffer(OrtSessionOptions* options,
                                                            const void* model_data,
                                                            size_t model_data_length) noexcept {
  return SessionOptionsSetWeightlessSourceModelBuffer(options, model_data, model_data_length);
}

OrtStatus* ModelCompilationOptions_SetWeightlessCache(OrtModelCompilationOptions* options,
                                                      bool is_weightless) noexcept {
  return ort_compile_api_table().ModelCompilationOptions_SetWeightlessEnabled(
      options, is_weightless);
}

OrtStatus* GetWeightlessSupport(const OrtEp* ep, OrtWeightlessSupport* support) noexcept {
  return guarded("GetWeightlessSupport", [&]() -> Status {
    SDX_TRY(require(ep, "ep"));
    SDX_TRY(require(support, "support"));
    *support = OrtWeightlessSupport_NONE;
    const auto get = plugin_host::callback(*ep, &OrtEp::GetWeightlessSupport, 29);
    return get == nullptr ? Status() : take_status(get(ep, support));
  });
}

}  // namespace sardonyx_api

namespace {

struct Experimental {
  const char* name;
  OrtExperimentalFnPtr function;
};

template <typename Function>
Experimental named(const char* name, Function* function) {
  return {name, reinterpret_cast<OrtExperimentalFnPtr>(function)};
}

}  // namespace

// Plugins that were built before these functions had their place in the table ask for them by name;
// so do programs that were written for functions as they were proposed.
OrtExperimentalFnPtr GetExperimentalFunction(const char* name) noexcept {
  static const Experimental kFunctions[] = {
      named("OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28",
            &ep_api::SessionOptionsGetEpContextConfig),
      named("OrtEpApi_ReleaseEpContextConfig_SinceV28", &ep_api::ReleaseEpContextConfig),
      named("OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28",
            &ep_api::EpContextConfigGetEpContextDataReadFunc),
      named("OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28",
            &ep_api::EpContextConfigGetEpContextDataWriteFunc),
      named("SessionOptionsSetWeightlessSourceModelPath",
            &sardonyx_api::SessionOptionsSetWeightlessSourceModelPath),
      named("SessionOptionsSetWeightlessSourceModelFromBuffer",
            &sardonyx_api::SessionOptionsSetWeightlessSourceModelFromBuffer),
      named("ModelCompilationOptions_SetWeightlessCache",
            &sardonyx_api::ModelCompilationOptions_SetWeightlessCache),
      named("OrtEpApi_GetWeightlessSupport", &sardonyx_api::GetWeightlessSupport)};
  if (name == nullptr) return nullptr;
  for (const Experimental& known : kFunctions) {
    if (std::strcmp(known.name, name) == 0) return known.function;
  }
  return nullptr;
}

}  // namespace sardonyx::capi

namespace sardonyx::capi::ep_api {

OrtStatus* SessionOptionsGetWeightlessSourceModelBuffer(const OrtSessionOptions* session_options,
                                                        const void** source_model_data,
                                                        size_t* source_model_data_length) noexcept {
  return guarded("SessionOptionsGetWeightlessSourceModelBuffer", [&]() -> Status {
    SDX_TRY(require(session_options, "session_options"));
    SDX_TRY(require(source_model_data, "source_model_data"));
    SDX_TRY(require(source_model_data_length, "source_model_data_length"));
    *source_model_data = session_options->options.weightless_source.data();
    *source_model_data_length = session_options->options.weightless_source.size();
    return {};
  });
}

OrtStatus* SessionOptionsGetEpContextConfig(const OrtSessionOptions* options,
                                            OrtEpContextConfig** config) noexcept {
  return guarded("SessionOptionsGetEpContextConfig", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(config, "config"));
    *config = new OrtEpContextConfig{options->ep_context_data};
    if (options->asks_context_data != nullptr) options->asks_context_data->store(true);
    return {};
  });
}

void ReleaseEpContextConfig(OrtEpContextConfig* object) noexcept { delete object; }

OrtStatus* EpContextConfigGetEpContextDataReadFunc(const OrtEpContextConfig* config,
                                                   OrtReadNamedBufferFunc* read,
                                                   void** state) noexcept {
  return guarded("EpContextConfigGetEpContextDataReadFunc", [&]() -> Status {
    SDX_TRY(require(config, "config"));
    SDX_TRY(require(read, "read"));
    SDX_TRY(require(state, "state"));
    *read = config->data.read;
    *state = config->data.read_state;
    return {};
  });
}

OrtStatus* EpContextConfigGetEpContextDataWriteFunc(const OrtEpContextConfig* config,
                                                    OrtWriteNamedBufferFunc* write,
                                                    void** state) noexcept {
  return guarded("EpContextConfigGetEpContextDataWriteFunc", [&]() -> Status {
    SDX_TRY(require(config, "config"));
    SDX_TRY(require(write, "write"));
    SDX_TRY(require(state, "state"));
    *write = config->data.write;
    *state = config->data.write_state;
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
