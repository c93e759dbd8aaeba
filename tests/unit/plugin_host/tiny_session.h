#pragma once

#include <dlfcn.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "capi/api_tables.h"
#include "onnx/writer.h"
#include "unit/small_graph.h"

/// What tests of the plugin host share: an environment, options and a session on tiny_plugin.

namespace sardonyx {

inline const OrtApi& api() { return capi::ort_api_table(); }

/// "" on success, otherwise the message.
inline std::string text_of(OrtStatus* status) {
  if (status == nullptr) return "";
  std::string text = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  return text;
}

inline void check_ok(OrtStatus* status) {
  const std::string text = text_of(status);
  CHECK(text == "");
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline bool is_loaded() {
  void* handle = dlopen(SARDONYX_TINY_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

struct Env {
  OrtEnv* env = nullptr;
  Env() { check_ok(api().CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env)); }
  /// Takes an environment over.
  explicit Env(OrtEnv* made) : env(made) {}
  ~Env() { api().ReleaseEnv(env); }
  Env(const Env&) = delete;
  Env& operator=(const Env&) = delete;

  std::string add(const std::string& name) const {
    return text_of(api().RegisterExecutionProviderLibrary(env, name.c_str(), SARDONYX_TINY_PLUGIN));
  }
  std::string remove(const std::string& name) const {
    return text_of(api().UnregisterExecutionProviderLibrary(env, name.c_str()));
  }
  std::vector<const OrtEpDevice*> devices(const std::string& name) const {
    const OrtEpDevice* const* all = nullptr;
    size_t count = 0;
    check_ok(api().GetEpDevices(env, &all, &count));
    std::vector<const OrtEpDevice*> found;
    for (size_t i = 0; i < count; ++i) {
      if (api().EpDevice_EpName(all[i]) == name) found.push_back(all[i]);
    }
    return found;
  }
};

/// y = (x * {2, 3}) + {1, 1}, z = x * x
inline std::string model_bytes() {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId product = small.node("Mul", {x, small.floats({2}, {2, 3})});
  small.graph.add_output(small.node("Add", {product, small.floats({2}, {1, 1})}));
  small.graph.add_output(small.node("Mul", {x, x}));
  Model model;
  model.ir_version = 9;
  model.opset_imports = {{"", 18}};
  model.graph = std::move(small.infer().graph);
  auto bytes = write_model_to_bytes(model);
  REQUIRE(bytes.ok());
  return std::move(bytes).value();
}

struct Options {
  OrtSessionOptions* options = nullptr;
  Options() { check_ok(api().CreateSessionOptions(&options)); }
  ~Options() { api().ReleaseSessionOptions(options); }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;

  std::string append(const Env& env, const std::vector<const OrtEpDevice*>& devices) const {
    return text_of(api().SessionOptionsAppendExecutionProvider_V2(
        options, env.env, devices.data(), devices.size(), nullptr, nullptr, 0));
  }
};

struct LoadedModel {
  OrtSession* session = nullptr;
  std::string error;
  LoadedModel(const Env& env, const Options& options) {
    const std::string bytes = model_bytes();
    error = text_of(api().CreateSessionFromArray(env.env, bytes.data(), bytes.size(),
                                                 options.options, &session));
  }
  ~LoadedModel() { api().ReleaseSession(session); }
  LoadedModel(const LoadedModel&) = delete;
  LoadedModel& operator=(const LoadedModel&) = delete;

  std::vector<std::string> output_names() const {
    size_t count = 0;
    check_ok(api().SessionGetOutputCount(session, &count));
    OrtAllocator* allocator = nullptr;
    check_ok(api().GetAllocatorWithDefaultOptions(&allocator));
    std::vector<std::string> names;
    for (size_t i = 0; i < count; ++i) {
      char* name = nullptr;
      check_ok(api().SessionGetOutputName(session, i, allocator, &name));
      names.emplace_back(name);
      check_ok(api().AllocatorFree(allocator, name));
    }
    return names;
  }

  /// Both outputs for x after one another, or the error.
  std::string run(std::array<float, 2> x, std::vector<float>& results) const {
    const auto texts = output_names();
    std::vector<const char*> names;
    for (const auto& text : texts) names.push_back(text.c_str());
    OrtMemoryInfo* memory = nullptr;
    check_ok(api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    const int64_t shape[] = {2};
    OrtValue* input = nullptr;
    check_ok(api().CreateTensorWithDataAsOrtValue(memory, x.data(), sizeof(x), shape, 1,
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    const char* input_name = "x";
    std::vector<OrtValue*> outputs(names.size());
    const std::string text = text_of(api().Run(session, nullptr, &input_name, &input, 1,
                                               names.data(), names.size(), outputs.data()));
    for (OrtValue* output : outputs) {
      if (output == nullptr) continue;
      void* data = nullptr;
      check_ok(api().GetTensorMutableData(output, &data));
      const auto* values = static_cast<const float*>(data);
      results.insert(results.end(), values, values + 2);
      api().ReleaseValue(output);
    }
    api().ReleaseValue(input);
    api().ReleaseMemoryInfo(memory);
    return text;
  }
};

inline const std::vector<float> kExpected = {3, 7, 1, 4};

/// The message of loading and running, "" when the results are right.
inline std::string use(const Env& env, const Options& options) {
  const LoadedModel model(env, options);
  if (!model.error.empty()) return model.error;
  std::vector<float> results;
  const std::string text = model.run({1, 2}, results);
  CHECK(results == (text.empty() ? kExpected : std::vector<float>()));
  return text;
}

/// The message of the first step that fails for a plugin with that fault.
inline std::string first_error(const std::string& name) {
  const Env env;
  if (std::string text = env.add(name); !text.empty()) return text;
  std::string text = "no devices";
  if (const auto devices = env.devices(name); !devices.empty()) {
    const Options options;
    text = options.append(env, devices);
    if (text.empty()) text = use(env, options);
  }
  CHECK(env.remove(name) == "");
  return text;
}

}  // namespace sardonyx
