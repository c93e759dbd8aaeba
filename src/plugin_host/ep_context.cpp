// What providers may ask about compiled models: where their data and their source are.
#include <cstring>

#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

/// A snapshot of the session options' functions for data of compiled models.
struct OrtEpContextConfig {
  sardonyx::capi::EpContextData data;
};

namespace sardonyx::capi {

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
    options->options.entries.erase("ep.context_source_model_path");
    return {};
  });
}

namespace {

OrtStatus* experimental_config(const OrtSessionOptions* options,
                               OrtEpContextConfig** config) noexcept {
  return ep_api::SessionOptionsGetEpContextConfig(options, config);
}

void experimental_release(OrtEpContextConfig* config) noexcept {
  ep_api::ReleaseEpContextConfig(config);
}

OrtStatus* experimental_read(const OrtEpContextConfig* config, OrtReadNamedBufferFunc* read,
                             void** state) noexcept {
  return ep_api::EpContextConfigGetEpContextDataReadFunc(config, read, state);
}

OrtStatus* experimental_write(const OrtEpContextConfig* config, OrtWriteNamedBufferFunc* write,
                              void** state) noexcept {
  return ep_api::EpContextConfigGetEpContextDataWriteFunc(config, write, state);
}

struct Experimental {
  const char* name;
  OrtExperimentalFnPtr function;
};

}  // namespace

// Plugins that were built before these functions had their place in the table ask for them by name.
OrtExperimentalFnPtr GetExperimentalFunction(const char* name) noexcept {
  static const Experimental kFunctions[] = {
      {"OrtEpApi_SessionOptions_GetEpContextConfig_SinceV28",
       reinterpret_cast<OrtExperimentalFnPtr>(experimental_config)},
      {"OrtEpApi_ReleaseEpContextConfig_SinceV28",
       reinterpret_cast<OrtExperimentalFnPtr>(experimental_release)},
      {"OrtEpApi_EpContextConfig_GetEpContextDataReadFunc_SinceV28",
       reinterpret_cast<OrtExperimentalFnPtr>(experimental_read)},
      {"OrtEpApi_EpContextConfig_GetEpContextDataWriteFunc_SinceV28",
       reinterpret_cast<OrtExperimentalFnPtr>(experimental_write)}};
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
