#include "unit/plugin_host/tiny_session.h"

namespace sardonyx {

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
      {"newer_api", {"CreateEpFactories", "needs an API that is not there"}},
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
      {"create_ep_left", {"CreateEp", "failed, but left something"}},
      {"older", {"GetCapability"}},
      {"capability_throw", {"GetCapability", "unknown type"}},
      {"capability_error", {"GetCapability", "knows nothing"}},
      {"twice", {"GetCapability", "already taken"}},
      {"compile_throw", {"Compile", "thrown by Compile"}},
      {"compile_error", {"Compile", "cannot compile"}},
      {"compile_null", {"Compile", "null pointer"}},
      {"compile_left", {"Compile", "failed, but left something"}},
      {"state_error", {"CreateState", "no state today"}},
      {"compute_throw", {"Compute", "thrown by Compute"}},
      {"compute_error", {"Compute", "computed nothing"}},
      {"no_output", {"Compute", "did not make output"}},
      {"far.no_transfer", {"CreateDataTransfer"}},
      {"far.transfer_incomplete", {"OrtDataTransferImpl", "CanCopy"}},
      {"far.allocator_left", {"CreateAllocator", "failed, but left something"}},
      {"far.stream_left", {"CreateSyncStreamForDevice", "failed, but left something"}},
      {"kernels.create_error", {"OrtKernelCreateFunc", "makes no kernel"}},
      {"kernels.create_null", {"kernel", "null pointer"}},
      {"kernels.create_left", {"OrtKernelCreateFunc", "failed, but left something"}},
      {"kernels.no_output", {"kernel", "did not make output"}},
      {"kernels.compute_error", {"OrtKernelImpl::Compute", "computed nothing"}},
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

TEST_CASE("library, options, session and environment may go in every order") {
  enum Step { kLibrary, kOptions, kSession, kEnvironment };
  for (const std::string name : {"tiny", "tiny.far.kernels.stream"}) {
    std::array<int, 4> order = {kLibrary, kOptions, kSession, kEnvironment};
    do {
      auto env = std::make_unique<Env>();
      REQUIRE(env->add(name) == "");
      auto options = std::make_unique<Options>();
      REQUIRE(options->append(*env, env->devices(name)) == "");
      auto model = std::make_unique<LoadedModel>(*env, *options);
      REQUIRE(model->error == "");
      for (const int step : order) {
        if (step == kLibrary && env != nullptr) CHECK(env->remove(name) == "");
        if (step == kOptions) options.reset();
        if (step == kSession) model.reset();
        if (step == kEnvironment) env.reset();
        if (model == nullptr) continue;
        std::vector<float> results;
        CHECK(model->run({1, 2}, results) == "");
        CHECK(results == kExpected);
      }
      CHECK(!is_loaded());
    } while (std::next_permutation(order.begin(), order.end()));
  }
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
