// Options of the providers that ONNX Runtime builds in for other vendors' devices. They are kept
// and printed; appending such a provider says that its plugin library serves it here.
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <map>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

struct VendorOptions {
  std::map<std::string, std::string> texts;
  /// Values that cannot be written as text: streams, allocator settings.
  std::map<std::string, void*> pointers;
};

}  // namespace

}  // namespace sardonyx::capi

struct OrtCUDAProviderOptionsV2 {
  sardonyx::capi::VendorOptions held;
};
struct OrtTensorRTProviderOptionsV2 {
  sardonyx::capi::VendorOptions held;
};
struct OrtCANNProviderOptions {
  sardonyx::capi::VendorOptions held;
};
struct OrtDnnlProviderOptions {
  sardonyx::capi::VendorOptions held;
};

namespace sardonyx::capi {

namespace {

template <typename Options>
OrtStatus* create(const char* function, Options** out) noexcept {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = new Options;
    return {};
  });
}

/// Calls set(key, value) for each pair that was given.
template <typename Set>
Status for_each_pair(const char* const* keys, const char* const* values, size_t count, Set&& set) {
  if (count != 0) {
    SDX_TRY(require(keys, "provider_options_keys"));
    SDX_TRY(require(values, "provider_options_values"));
  }
  for (size_t i = 0; i < count; ++i) {
    if (keys[i] == nullptr || values[i] == nullptr || keys[i][0] == '\0') {
      return failure(Code::InvalidArgument, "option {} has no key or no value", i);
    }
    SDX_TRY(set(std::string(keys[i]), std::string(values[i])));
  }
  return {};
}

template <typename Options>
OrtStatus* update(const char* function, Options* options, const char* const* keys,
                  const char* const* values, size_t count) noexcept {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(options, "options"));
    return for_each_pair(keys, values, count, [&](std::string key, std::string value) -> Status {
      options->held.texts[std::move(key)] = std::move(value);
      return {};
    });
  });
}

/// "key=value;key=value", in the order of the keys.
std::string print(const std::map<std::string, std::string>& texts) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : texts) parts.push_back(key + "=" + value);
  return join(parts, ";");
}

template <typename Options>
OrtStatus* print(const char* function, const Options* options, OrtAllocator* allocator,
                 char** out) noexcept {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(options, "options"));
    return copy_text(allocator, print(options->held.texts), out);
  });
}

template <typename Options>
OrtStatus* set_pointer(const char* function, Options* options, const char* key,
                       void* value) noexcept {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(key, "key"));
    options->held.pointers[key] = value;
    return {};
  });
}

template <typename Options>
OrtStatus* get_pointer(const char* function, const Options* options, const char* key,
                       void** out) noexcept {
  return guarded(function, [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(key, "key"));
    SDX_TRY(require(out, "ptr"));
    const auto found = options->held.pointers.find(key);
    *out = found == options->held.pointers.end() ? nullptr : found->second;
    return {};
  });
}

OrtStatus* refuse(const char* function, const char* provider) noexcept {
  return guarded(function, [&]() -> Status {
    return failure(Code::Unsupported,
                   "{} is not built in: load the plugin instead "
                   "(RegisterExecutionProviderLibrary, then "
                   "SessionOptionsAppendExecutionProvider_V2)",
                   provider);
  });
}

/// The members of OrtROCMProviderOptions that have a text form.
struct RocmField {
  const char* key;
  int OrtROCMProviderOptions::* member;
};
constexpr RocmField kRocmFields[] = {
    {"device_id", &OrtROCMProviderOptions::device_id},
    {"miopen_conv_exhaustive_search", &OrtROCMProviderOptions::miopen_conv_exhaustive_search},
    {"arena_extend_strategy", &OrtROCMProviderOptions::arena_extend_strategy},
    {"do_copy_in_default_stream", &OrtROCMProviderOptions::do_copy_in_default_stream},
    {"has_user_compute_stream", &OrtROCMProviderOptions::has_user_compute_stream},
    {"enable_hip_graph", &OrtROCMProviderOptions::enable_hip_graph},
    {"tunable_op_enable", &OrtROCMProviderOptions::tunable_op_enable},
    {"tunable_op_tuning_enable", &OrtROCMProviderOptions::tunable_op_tuning_enable},
    {"tunable_op_max_tuning_duration_ms",
     &OrtROCMProviderOptions::tunable_op_max_tuning_duration_ms},
};
constexpr const char* kRocmMemoryLimit = "gpu_mem_limit";

template <typename T>
Status parse(const std::string& key, const std::string& text, T* out) {
  char* end = nullptr;
  errno = 0;
  const auto value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || text[0] == '-' || errno != 0 ||
      value > static_cast<unsigned long long>(std::numeric_limits<T>::max())) {
    return failure(Code::InvalidArgument, "option '{}' should be a number, found '{}'", key, text);
  }
  *out = static_cast<T>(value);
  return {};
}

Status set_rocm(OrtROCMProviderOptions& options, const std::string& key, const std::string& value) {
  if (key == kRocmMemoryLimit) return parse(key, value, &options.gpu_mem_limit);
  for (const RocmField& field : kRocmFields) {
    if (key == field.key) return parse(key, value, &(options.*field.member));
  }
  return failure(Code::InvalidArgument, "'{}' is no option of the ROCm provider", key);
}

}  // namespace

OrtStatus* CreateCUDAProviderOptions(OrtCUDAProviderOptionsV2** out) noexcept {
  return create("CreateCUDAProviderOptions", out);
}
OrtStatus* UpdateCUDAProviderOptions(OrtCUDAProviderOptionsV2* cuda_options,
                                     const char* const* provider_options_keys,
                                     const char* const* provider_options_values,
                                     size_t key_count) noexcept {
  return update("UpdateCUDAProviderOptions", cuda_options, provider_options_keys,
                provider_options_values, key_count);
}
OrtStatus* GetCUDAProviderOptionsAsString(const OrtCUDAProviderOptionsV2* cuda_options,
                                          OrtAllocator* allocator, char** ptr) noexcept {
  return print("GetCUDAProviderOptionsAsString", cuda_options, allocator, ptr);
}
OrtStatus* UpdateCUDAProviderOptionsWithValue(OrtCUDAProviderOptionsV2* cuda_options,
                                              const char* key, void* value) noexcept {
  return set_pointer("UpdateCUDAProviderOptionsWithValue", cuda_options, key, value);
}
OrtStatus* GetCUDAProviderOptionsByName(const OrtCUDAProviderOptionsV2* cuda_options,
                                        const char* key, void** ptr) noexcept {
  return get_pointer("GetCUDAProviderOptionsByName", cuda_options, key, ptr);
}
void ReleaseCUDAProviderOptions(OrtCUDAProviderOptionsV2* object) noexcept { delete object; }

OrtStatus* CreateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2** out) noexcept {
  return create("CreateTensorRTProviderOptions", out);
}
OrtStatus* UpdateTensorRTProviderOptions(OrtTensorRTProviderOptionsV2* tensorrt_options,
                                         const char* const* provider_options_keys,
                                         const char* const* provider_options_values,
                                         size_t key_count) noexcept {
  return update("UpdateTensorRTProviderOptions", tensorrt_options, provider_options_keys,
                provider_options_values, key_count);
}
OrtStatus* GetTensorRTProviderOptionsAsString(const OrtTensorRTProviderOptionsV2* tensorrt_options,
                                              OrtAllocator* allocator, char** ptr) noexcept {
  return print("GetTensorRTProviderOptionsAsString", tensorrt_options, allocator, ptr);
}
OrtStatus* UpdateTensorRTProviderOptionsWithValue(OrtTensorRTProviderOptionsV2* tensorrt_options,
                                                  const char* key, void* value) noexcept {
  return set_pointer("UpdateTensorRTProviderOptionsWithValue", tensorrt_options, key, value);
}
OrtStatus* GetTensorRTProviderOptionsByName(const OrtTensorRTProviderOptionsV2* tensorrt_options,
                                            const char* key, void** ptr) noexcept {
  return get_pointer("GetTensorRTProviderOptionsByName", tensorrt_options, key, ptr);
}
void ReleaseTensorRTProviderOptions(OrtTensorRTProviderOptionsV2* object) noexcept {
  delete object;
}

OrtStatus* CreateCANNProviderOptions(OrtCANNProviderOptions** out) noexcept {
  return create("CreateCANNProviderOptions", out);
}
OrtStatus* UpdateCANNProviderOptions(OrtCANNProviderOptions* cann_options,
                                     const char* const* provider_options_keys,
                                     const char* const* provider_options_values,
                                     size_t key_count) noexcept {
  return update("UpdateCANNProviderOptions", cann_options, provider_options_keys,
                provider_options_values, key_count);
}
OrtStatus* GetCANNProviderOptionsAsString(const OrtCANNProviderOptions* cann_options,
                                          OrtAllocator* allocator, char** ptr) noexcept {
  return print("GetCANNProviderOptionsAsString", cann_options, allocator, ptr);
}
void ReleaseCANNProviderOptions(OrtCANNProviderOptions* object) noexcept { delete object; }

OrtStatus* CreateDnnlProviderOptions(OrtDnnlProviderOptions** out) noexcept {
  return create("CreateDnnlProviderOptions", out);
}
OrtStatus* UpdateDnnlProviderOptions(OrtDnnlProviderOptions* dnnl_options,
                                     const char* const* provider_options_keys,
                                     const char* const* provider_options_values,
                                     size_t key_count) noexcept {
  return update("UpdateDnnlProviderOptions", dnnl_options, provider_options_keys,
                provider_options_values, key_count);
}
OrtStatus* GetDnnlProviderOptionsAsString(const OrtDnnlProviderOptions* dnnl_options,
                                          OrtAllocator* allocator, char** ptr) noexcept {
  return print("GetDnnlProviderOptionsAsString", dnnl_options, allocator, ptr);
}
void ReleaseDnnlProviderOptions(OrtDnnlProviderOptions* object) noexcept { delete object; }

OrtStatus* CreateROCMProviderOptions(OrtROCMProviderOptions** out) noexcept {
  return create("CreateROCMProviderOptions", out);
}
OrtStatus* UpdateROCMProviderOptions(OrtROCMProviderOptions* rocm_options,
                                     const char* const* provider_options_keys,
                                     const char* const* provider_options_values,
                                     size_t key_count) noexcept {
  return guarded("UpdateROCMProviderOptions", [&]() -> Status {
    SDX_TRY(require(rocm_options, "rocm_options"));
    return for_each_pair(provider_options_keys, provider_options_values, key_count,
                         [&](const std::string& key, const std::string& value) {
                           return set_rocm(*rocm_options, key, value);
                         });
  });
}
OrtStatus* GetROCMProviderOptionsAsString(const OrtROCMProviderOptions* rocm_options,
                                          OrtAllocator* allocator, char** ptr) noexcept {
  return guarded("GetROCMProviderOptionsAsString", [&]() -> Status {
    SDX_TRY(require(rocm_options, "rocm_options"));
    std::map<std::string, std::string> texts;
    texts[kRocmMemoryLimit] = std::to_string(rocm_options->gpu_mem_limit);
    for (const RocmField& field : kRocmFields) {
      texts[field.key] = std::to_string(rocm_options->*field.member);
    }
    return copy_text(allocator, print(texts), ptr);
  });
}
void ReleaseROCMProviderOptions(OrtROCMProviderOptions* object) noexcept { delete object; }

OrtStatus* SessionOptionsAppendExecutionProvider_CUDA(OrtSessionOptions*,
                                                      const OrtCUDAProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_CUDA", "CUDAExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CUDA_V2(OrtSessionOptions*,
                                                         const OrtCUDAProviderOptionsV2*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_CUDA_V2", "CUDAExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_ROCM(OrtSessionOptions*,
                                                      const OrtROCMProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_ROCM", "ROCMExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO(
    OrtSessionOptions*, const OrtOpenVINOProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_OpenVINO", "OpenVINOExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_OpenVINO_V2(OrtSessionOptions*, const char* const*,
                                                             const char* const*, size_t) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_OpenVINO_V2", "OpenVINOExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT(
    OrtSessionOptions*, const OrtTensorRTProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_TensorRT", "TensorrtExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_TensorRT_V2(
    OrtSessionOptions*, const OrtTensorRTProviderOptionsV2*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_TensorRT_V2", "TensorrtExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_MIGraphX(
    OrtSessionOptions*, const OrtMIGraphXProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_MIGraphX", "MIGraphXExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_CANN(OrtSessionOptions*,
                                                      const OrtCANNProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_CANN", "CANNExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_Dnnl(OrtSessionOptions*,
                                                      const OrtDnnlProviderOptions*) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_Dnnl", "DnnlExecutionProvider");
}
OrtStatus* SessionOptionsAppendExecutionProvider_VitisAI(OrtSessionOptions*, const char* const*,
                                                         const char* const*, size_t) noexcept {
  return refuse("SessionOptionsAppendExecutionProvider_VitisAI", "VitisAIExecutionProvider");
}

// There is no device that a thread could choose.
OrtStatus* SetCurrentGpuDeviceId(int) noexcept {
  return refuse("SetCurrentGpuDeviceId", "CUDAExecutionProvider");
}
OrtStatus* GetCurrentGpuDeviceId(int*) noexcept {
  return refuse("GetCurrentGpuDeviceId", "CUDAExecutionProvider");
}

// Functions of one provider alone: the vendors' own come with their plugin libraries.
OrtStatus* GetExecutionProviderApi(const char* provider_name, uint32_t,
                                   const void** provider_api) noexcept {
  return guarded("GetExecutionProviderApi", [&]() -> Status {
    SDX_TRY(require(provider_name, "provider_name"));
    SDX_TRY(require(provider_api, "provider_api"));
    return failure(Code::InvalidArgument, "provider '{}' has no functions of its own here",
                   provider_name);
  });
}

}  // namespace sardonyx::capi
