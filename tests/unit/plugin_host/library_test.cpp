#include <dlfcn.h>
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "capi/api_tables.h"
#include "onnx/writer.h"
#include "unit/small_graph.h"

namespace sardonyx {

namespace {

const OrtApi& api() { return capi::ort_api_table(); }

/// "" on success, otherwise the message.
std::string text_of(OrtStatus* status) {
  if (status == nullptr) return "";
  std::string text = api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  return text;
}

void check_ok(OrtStatus* status) {
  const std::string text = text_of(status);
  CHECK(text == "");
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

bool is_loaded() {
  void* handle = dlopen(SARDONYX_TINY_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  if (handle != nullptr) dlclose(handle);
  return handle != nullptr;
}

struct Env {
  OrtEnv* env = nullptr;
  Env() { check_ok(api().CreateEnv(ORT_LOGGING_LEVEL_FATAL, "test", &env)); }
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
std::string model_bytes() {
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

const std::vector<float> kExpected = {3, 7, 1, 4};

/// The message of loading and running, "" when the results are right.
std::string use(const Env& env, const Options& options) {
  const LoadedModel model(env, options);
  if (!model.error.empty()) return model.error;
  std::vector<float> results;
  const std::string text = model.run({1, 2}, results);
  CHECK(results == (text.empty() ? kExpected : std::vector<float>()));
  return text;
}

/// The message of the first step that fails for a plugin with that fault.
std::string first_error(const std::string& name) {
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

}  // namespace

TEST_CASE("a plugin library registers, offers its device and computes its nodes") {
  const Env env;
  for (const std::string name : {"tiny", "tiny.keep", "tiny.newer"}) {
    CAPTURE(name);
    REQUIRE(env.add(name) == "");
    const auto devices = env.devices(name);
    REQUIRE(devices.size() == 1);
    CHECK(std::string(api().EpDevice_EpVendor(devices[0])) == "Tests");
    CHECK(std::string(api().GetKeyValue(api().EpDevice_EpMetadata(devices[0]), "version")) ==
          "1.2.3");
    CHECK(std::string(api().GetKeyValue(api().EpDevice_EpOptions(devices[0]), "threads")) == "1");
    const Options options;
    REQUIRE(options.append(env, devices) == "");
    CHECK(use(env, options) == "");
    CHECK(env.remove(name) == "");
    CHECK(env.devices(name).empty());
  }
}

TEST_CASE("whatever goes wrong in a plugin is an error that names the library and the callback") {
  struct Row {
    const char* fault;
    std::vector<std::string> parts;
  };
  const std::vector<Row> rows = {
      {"create_throw", {"CreateEpFactories", "thrown by CreateEpFactories"}},
      {"create_error", {"CreateEpFactories", "made no factory"}},
      {"create_many", {"CreateEpFactories", "5 factories"}},
      {"create_null", {"CreateEpFactories", "null pointer"}},
      {"no_create_ep", {"CreateEp"}},
      {"name_null", {"GetName", "null pointer"}},
      {"name_empty", {"GetName", "empty text"}},
      {"name_long", {"GetName", "too long"}},
      {"name_throw", {"GetName", "thrown by GetName"}},
      {"devices_throw", {"GetSupportedDevices", "thrown"}},
      {"devices_error", {"GetSupportedDevices", "no devices today"}},
      {"devices_many", {"GetSupportedDevices", "13 devices"}},
      {"devices_null", {"GetSupportedDevices", "1 devices, but 0"}},
      {"create_ep_throw", {"CreateEp", "thrown by CreateEp"}},
      {"create_ep_error", {"CreateEp", "refused by CreateEp"}},
      {"create_ep_null", {"CreateEp", "null pointer"}},
      {"older", {"GetCapability"}},
      {"capability_throw", {"GetCapability", "unknown type"}},
      {"capability_error", {"GetCapability", "knows nothing"}},
      {"twice", {"GetCapability", "already taken"}},
      {"compile_throw", {"Compile", "thrown by Compile"}},
      {"compile_error", {"Compile", "cannot compile"}},
      {"compile_null", {"Compile", "null pointer"}},
      {"state_error", {"CreateState", "no state today"}},
      {"compute_throw", {"Compute", "thrown by Compute"}},
      {"compute_error", {"Compute", "computed nothing"}},
      {"no_output", {"Compute", "did not make output"}},
  };
  for (const Row& row : rows) {
    const std::string name = std::string("tiny.") + row.fault;
    const std::string text = first_error(name);
    CAPTURE(text);
    CHECK_MESSAGE(contains(text, "'" + name + "'"), row.fault);
    for (const std::string& part : row.parts) CHECK_MESSAGE(contains(text, part), row.fault);
    CHECK_MESSAGE(!is_loaded(), row.fault);
  }
  CHECK(first_error("tiny.create_none") == "no devices");
  CHECK(first_error("tiny.devices_none") == "no devices");
  CHECK(first_error("tiny") == "");
}

TEST_CASE("files that are no plugin libraries and wrong names are refused") {
  const Env env;
  const auto add = [&](const char* name, const char* path) {
    return text_of(api().RegisterExecutionProviderLibrary(env.env, name, path));
  };
  CHECK(contains(add("a", "/no/such/file.so"), "there is no file '/no/such/file.so'"));
  CHECK(contains(add("a", "/proc/self/exe"), "plugin library 'a' cannot be loaded"));
  CHECK(contains(add("", SARDONYX_TINY_PLUGIN), "1 to 256 characters"));
  CHECK(contains(add("a", nullptr), "path"));
  CHECK(contains(env.remove("a"), "no plugin library is registered as 'a'"));
  CHECK(env.add("tiny") == "");
  CHECK(contains(env.add("tiny"), "already registered as 'tiny'"));
  CHECK(env.remove("tiny") == "");
}

TEST_CASE("a library that is unregistered stays open until its last user is gone") {
  const Env env;
  REQUIRE(env.add("tiny") == "");
  const auto devices = env.devices("tiny");
  auto options = std::make_unique<Options>();
  REQUIRE(options->append(env, devices) == "");
  auto model = std::make_unique<LoadedModel>(env, *options);
  REQUIRE(model->error == "");
  REQUIRE(env.remove("tiny") == "");
  CHECK(is_loaded());
  CHECK(std::string(api().EpDevice_EpName(devices[0])) == "tiny");
  const Options late;
  CHECK(contains(late.append(env, devices), "was unregistered"));
  options.reset();
  CHECK(is_loaded());
  std::vector<float> results;
  CHECK(model->run({1, 2}, results) == "");
  CHECK(results == kExpected);
  model.reset();
  CHECK(!is_loaded());
}

TEST_CASE("a session outlives its environment and its options") {
  auto env = std::make_unique<Env>();
  REQUIRE(env->add("tiny") == "");
  auto options = std::make_unique<Options>();
  REQUIRE(options->append(*env, env->devices("tiny")) == "");
  auto model = std::make_unique<LoadedModel>(*env, *options);
  REQUIRE(model->error == "");
  env.reset();
  options.reset();
  std::vector<float> results;
  CHECK(model->run({1, 2}, results) == "");
  CHECK(results == kExpected);
  model.reset();
  CHECK(!is_loaded());
}

TEST_CASE("dynamic options reach the plugin, and its refusal comes back") {
  const Env env;
  REQUIRE(env.add("tiny") == "");
  const Options options;
  REQUIRE(options.append(env, env.devices("tiny")) == "");
  const LoadedModel model(env, options);
  const auto set = [&](const char* key) {
    const char* value = "1";
    return text_of(api().SetEpDynamicOptions(model.session, &key, &value, 1));
  };
  CHECK(set("speed") == "");
  CHECK(contains(set("colour"), "no such option"));
  CHECK(contains(set(""), "empty key"));
}

TEST_CASE("hardware devices can be added and changed for tests") {
  setenv("SARDONYX_HARDWARE_DEVICES",
         "none; cpu:vendor=0x8086; gpu:vendor=0x10de,device=0x2684,ordinal=1,memory=4096; npu:", 1);
  const Env env;
  REQUIRE(env.add("tiny.all_devices") == "");
  unsetenv("SARDONYX_HARDWARE_DEVICES");
  const auto devices = env.devices("tiny.all_devices");
  REQUIRE(devices.size() == 3);
  const OrtHardwareDevice* cpu = api().EpDevice_Device(devices[0]);
  CHECK(api().HardwareDevice_Type(cpu) == OrtHardwareDeviceType_CPU);
  CHECK(api().HardwareDevice_VendorId(cpu) == 0x8086);
  CHECK(std::string(api().HardwareDevice_Vendor(cpu)) == "Intel");
  const OrtHardwareDevice* gpu = api().EpDevice_Device(devices[1]);
  CHECK(api().HardwareDevice_Type(gpu) == OrtHardwareDeviceType_GPU);
  CHECK(api().HardwareDevice_DeviceId(gpu) == 0x2684);
  CHECK(std::string(api().GetKeyValue(api().HardwareDevice_Metadata(gpu), "ordinal")) == "1");
  uint64_t total = 0;
  uint64_t available = 0;
  check_ok(api().EpDevice_GetMemoryCapacity(devices[1], OrtDeviceMemoryType_DEFAULT, &total,
                                            &available));
  CHECK(total == 4096);
  CHECK(api().HardwareDevice_Type(api().EpDevice_Device(devices[2])) == OrtHardwareDeviceType_NPU);
}

TEST_CASE("a wrong list of hardware devices is an error that quotes it") {
  for (const char* text : {"tpu:", "gpu:colour=3", "gpu:vendor=blue"}) {
    setenv("SARDONYX_HARDWARE_DEVICES", text, 1);
    const Env env;
    const OrtEpDevice* const* devices = nullptr;
    size_t count = 0;
    const std::string error = text_of(api().GetEpDevices(env.env, &devices, &count));
    CHECK_MESSAGE(contains(error, "hardware devices: expected"), error);
    unsetenv("SARDONYX_HARDWARE_DEVICES");
  }
}

TEST_CASE("a policy chooses devices by kind, a function any that were offered") {
  setenv("SARDONYX_HARDWARE_DEVICES", "none; gpu:vendor=0x10de", 1);
  const Env env;
  REQUIRE(env.add("tiny.all_devices") == "");
  unsetenv("SARDONYX_HARDWARE_DEVICES");
  for (int policy = 0; policy <= 6; ++policy) {
    const Options options;
    check_ok(api().SessionOptionsSetEpSelectionPolicy(
        options.options, static_cast<OrtExecutionProviderDevicePolicy>(policy)));
    CHECK(use(env, options) == "");
  }
  const EpSelectionDelegate choose = [](const OrtEpDevice** devices, size_t count,
                                        const OrtKeyValuePairs*, const OrtKeyValuePairs*,
                                        const OrtEpDevice** selected, size_t,
                                        size_t* selected_count, void* state) -> OrtStatus* {
    selected[0] = state == nullptr ? devices[count - 1] : static_cast<const OrtEpDevice*>(state);
    *selected_count = 1;
    return nullptr;
  };
  const auto with_state = [&](void* state) {
    const Options options;
    check_ok(api().SessionOptionsSetEpSelectionPolicyDelegate(options.options, choose, state));
    return use(env, options);
  };
  CHECK(with_state(nullptr) == "");
  int other = 0;
  CHECK(contains(with_state(&other), "not offered"));
}

}  // namespace sardonyx
