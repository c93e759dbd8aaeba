#include "plugin_host/device_memory.h"
#include "plugin_host/streams.h"
#include "unit/plugin_host/tiny_session.h"

namespace sardonyx {

namespace {

struct Counters {
  int live_blocks;
  int allocations;
  int copies;
  int streams;
  int waits;
  int packed;
  int on_stream;
  int transfers;
};

Counters counters() {
  Counters found{};
  void* library = dlopen(SARDONYX_TINY_PLUGIN, RTLD_NOW | RTLD_NOLOAD);
  REQUIRE(library != nullptr);
  const auto read = reinterpret_cast<void (*)(int*)>(dlsym(library, "tiny_counters"));
  const bool is_there = read != nullptr;
  REQUIRE(is_there);
  read(&found.live_blocks);
  dlclose(library);
  return found;
}

struct MemoryInfo {
  OrtMemoryInfo* info = nullptr;
  explicit MemoryInfo(bool is_far) {
    check_ok(is_far ? api().CreateMemoryInfo_V2("Far", OrtMemoryInfoDeviceType_NPU, 0x7e57, 0,
                                                OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator,
                                                &info)
                    : api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info));
  }
  ~MemoryInfo() { api().ReleaseMemoryInfo(info); }
  MemoryInfo(const MemoryInfo&) = delete;
  MemoryInfo& operator=(const MemoryInfo&) = delete;
};

using ValuePtr = std::unique_ptr<OrtValue, void (*)(OrtValue*)>;

ValuePtr value_in(OrtAllocator* allocator) {
  const int64_t shape[] = {2};
  OrtValue* value = nullptr;
  check_ok(api().CreateTensorAsOrtValue(allocator, shape, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT,
                                        &value));
  return {value, [](OrtValue* dropped) { api().ReleaseValue(dropped); }};
}

float* data_of(OrtValue* value) {
  void* data = nullptr;
  check_ok(api().GetTensorMutableData(value, &data));
  return static_cast<float*>(data);
}

std::string copy(const Env& env, const OrtValue* from, OrtValue* to) {
  return text_of(api().CopyTensors(env.env, &from, &to, nullptr, 1));
}

/// y = the mean of Relu(x * x) over the places of each channel, {1, 2, 1, 1}.
std::string pool_bytes() {
  SmallGraph small;
  const ValueId x = small.input("x", {1, 2, 2, 3});
  const ValueId square = small.node("Mul", {x, x});
  const ValueId mean = small.node("GlobalAveragePool", {square});
  small.graph.add_output(small.node("Relu", {mean}));
  Model model;
  model.ir_version = 9;
  model.opset_imports = {{"", 18}};
  model.graph = std::move(small.infer().graph);
  auto bytes = write_model_to_bytes(model);
  REQUIRE(bytes.ok());
  return std::move(bytes).value();
}

}  // namespace

TEST_CASE("a plugin works in its own memory, by kernels, on streams and on packed weights") {
  for (const std::string name :
       {"tiny.far", "tiny.far.keep", "tiny.kernels", "tiny.far.kernels", "tiny.far.stream",
        "tiny.far.kernels.stream", "tiny.kernels.pack", "tiny.far.kernels.pack"}) {
    CAPTURE(name);
    const Env env;
    REQUIRE(env.add(name) == "");
    const bool is_far = contains(name, "far");
    {
      const Options options;
      REQUIRE(options.append(env, env.devices(name)) == "");
      CHECK(use(env, options) == "");
      CHECK((counters().copies > 0) == is_far);
      CHECK((counters().allocations > 0) == is_far);
      CHECK((counters().waits > 0) == contains(name, "stream"));
      CHECK(counters().packed == (contains(name, "pack") ? 1 : 0));
    }
    CHECK(counters().live_blocks == 0);
    CHECK(counters().streams == 0);
    CHECK(counters().transfers == (is_far ? 1 : 0));
    CHECK(env.remove(name) == "");
    CHECK(!is_loaded());
  }
}

TEST_CASE("sessions on one device share constants of equal content") {
  const Env env;
  REQUIRE(env.add("tiny.far.keep") == "");
  const Options options;
  REQUIRE(options.append(env, env.devices("tiny.far.keep")) == "");
  const LoadedModel first(env, options);
  REQUIRE(first.error == "");
  CHECK(counters().live_blocks == 1);
  const LoadedModel second(env, options);
  REQUIRE(second.error == "");
  CHECK(counters().live_blocks == 1);
  std::vector<float> results;
  CHECK(second.run({1, 2}, results) == "");
  CHECK(results == kExpected);
}

TEST_CASE("inputs and outputs that are bound in the device's memory stay there") {
  const Env env;
  REQUIRE(env.add("tiny.far") == "");
  const auto devices = env.devices("tiny.far");
  const Options options;
  REQUIRE(options.append(env, devices) == "");
  const LoadedModel model(env, options);
  REQUIRE(model.error == "");
  const MemoryInfo far(true);
  OrtAllocator* allocator = nullptr;
  check_ok(api().CreateAllocator(model.session, far.info, &allocator));
  REQUIRE(allocator != nullptr);
  OrtAllocator* cpu = nullptr;
  check_ok(api().GetAllocatorWithDefaultOptions(&cpu));
  {
    const ValuePtr near_x = value_in(cpu);
    data_of(near_x.get())[0] = 3;
    data_of(near_x.get())[1] = 5;
    const ValuePtr x = value_in(allocator);
    const OrtMemoryInfo* memory = nullptr;
    check_ok(api().GetTensorMemoryInfo(x.get(), &memory));
    CHECK(api().MemoryInfoGetVendorId(memory) == 0x7e57);
    REQUIRE(copy(env, near_x.get(), x.get()) == "");
    OrtIoBinding* binding = nullptr;
    check_ok(api().CreateIoBinding(model.session, &binding));
    const auto names = model.output_names();
    check_ok(api().BindInput(binding, "x", x.get()));
    check_ok(api().BindOutputToDevice(binding, names[1].c_str(), far.info));
    const int before = counters().copies;
    check_ok(api().RunWithBinding(model.session, nullptr, binding));
    // The other output is a sum, which the processor makes of a product.
    CHECK(counters().copies == before + 1);
    OrtValue** outputs = nullptr;
    size_t count = 0;
    check_ok(api().GetBoundOutputValues(binding, cpu, &outputs, &count));
    REQUIRE(count == 1);
    const ValuePtr y = value_in(cpu);
    REQUIRE(copy(env, outputs[0], y.get()) == "");
    CHECK(data_of(y.get())[0] == 9);
    CHECK(data_of(y.get())[1] == 25);
    api().ReleaseValue(outputs[0]);
    check_ok(api().AllocatorFree(cpu, outputs));
    api().ReleaseIoBinding(binding);
  }
  api().ReleaseAllocator(allocator);
}

TEST_CASE("an output that a plugin does not make is an error also when the caller gave it") {
  for (const std::string name : {"tiny.no_output", "tiny.kernels.no_output"}) {
    CAPTURE(name);
    const Env env;
    REQUIRE(env.add(name) == "");
    const Options options;
    REQUIRE(options.append(env, env.devices(name)) == "");
    const LoadedModel model(env, options);
    REQUIRE(model.error == "");
    OrtAllocator* cpu = nullptr;
    check_ok(api().GetAllocatorWithDefaultOptions(&cpu));
    const ValuePtr x = value_in(cpu);
    const ValuePtr y = value_in(cpu);
    std::fill_n(data_of(x.get()), 2, 1.0F);
    const auto names = model.output_names();
    const char* input = "x";
    const char* output = names[1].c_str();
    const OrtValue* fed = x.get();
    OrtValue* made = y.get();
    const std::string text =
        text_of(api().Run(model.session, nullptr, &input, &fed, 1, &output, 1, &made));
    CHECK_MESSAGE(contains(text, "did not make output"), text);
  }
}

TEST_CASE("a tensor outlives the allocator that it was made with, the session and the library") {
  auto env = std::make_unique<Env>();
  REQUIRE(env->add("tiny.far") == "");
  ValuePtr kept(nullptr, nullptr);
  {
    const Options options;
    REQUIRE(options.append(*env, env->devices("tiny.far")) == "");
    const LoadedModel model(*env, options);
    REQUIRE(model.error == "");
    const MemoryInfo far(true);
    OrtAllocator* allocator = nullptr;
    check_ok(api().CreateAllocator(model.session, far.info, &allocator));
    REQUIRE(allocator != nullptr);
    kept = value_in(allocator);
    api().ReleaseAllocator(allocator);
  }
  REQUIRE(env->remove("tiny.far") == "");
  env.reset();
  CHECK(is_loaded());
  kept.reset();
  CHECK(!is_loaded());
}

TEST_CASE("a block that a stream may still use goes to tensors of that stream only") {
  using namespace plugin_host;
  const std::string name = "tiny.far.stream";
  auto library = Library::load(name, SARDONYX_TINY_PLUGIN);
  REQUIRE(library.ok());
  OrtEpFactory& factory = *(*library)->factories().front();
  auto handle = std::make_shared<EpHandle>(*library, factory);
  OrtSessionOptions options;
  options.options.entries.emplace("ep." + name + ".threads", "1");
  check_ok(factory.CreateEp(&factory, nullptr, nullptr, 0, &options, nullptr, &handle->ep));
  REQUIRE(handle->ep != nullptr);
  const MemoryInfo far(true);
  const auto stream = [&] {
    auto made = make_stream(*library, factory, handle, *far.info, nullptr);
    REQUIRE(made.ok());
    return std::move(made).value();
  };
  const auto memory = DeviceMemory::create(handle, *far.info);
  REQUIRE(memory.ok());
  auto first = stream();
  const auto second = stream();
  const auto block_for = [&](OrtSyncStream* user) {
    const auto tensor = (*memory)->allocate(DType::Float32, Shape{100}, user);
    REQUIRE(tensor.ok());
    return static_cast<const void*>(tensor->data());
  };
  const void* block = block_for(first.get());
  CHECK(block_for(first.get()) == block);
  CHECK(block_for(second.get()) != block);
  CHECK(block_for(nullptr) != block);
  CHECK(counters().allocations == 3);
  CHECK(counters().on_stream == 2);
  // Not even one that comes to lie where the stream lay.
  first = stream();
  CHECK(block_for(first.get()) != block);
  (*memory)->shrink();
  CHECK(counters().live_blocks == 0);
}

TEST_CASE("a session without the device refuses tensors in its memory") {
  const Env env;
  REQUIRE(env.add("tiny.far") == "");
  const Options plain;
  const LoadedModel model(env, plain);
  const MemoryInfo far(true);
  float dummy[2] = {};
  const int64_t shape[] = {2};
  OrtValue* x = nullptr;
  check_ok(api().CreateTensorWithDataAsOrtValue(far.info, dummy, sizeof dummy, shape, 1,
                                                ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &x));
  const auto names = model.output_names();
  const char* input = "x";
  const char* output = names[0].c_str();
  OrtValue* y = nullptr;
  const std::string text =
      text_of(api().Run(model.session, nullptr, &input, &x, 1, &output, 1, &y));
  CHECK_MESSAGE(contains(text, "'Far' memory"), text);
  api().ReleaseValue(x);
}

TEST_CASE("a plugin that wants channels last gets its nodes that way") {
  for (const std::string name : {"tiny.kernels.last", "tiny.far.kernels.last"}) {
    CAPTURE(name);
    const Env env;
    REQUIRE(env.add(name) == "");
    const Options options;
    REQUIRE(options.append(env, env.devices(name)) == "");
    const std::string bytes = pool_bytes();
    OrtSession* session = nullptr;
    REQUIRE(text_of(api().CreateSessionFromArray(env.env, bytes.data(), bytes.size(),
                                                 options.options, &session)) == "");
    const MemoryInfo cpu(false);
    std::array<float, 12> x = {1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2};
    const int64_t shape[] = {1, 2, 2, 3};
    OrtValue* input = nullptr;
    check_ok(api().CreateTensorWithDataAsOrtValue(cpu.info, x.data(), sizeof x, shape, 4,
                                                  ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &input));
    OrtAllocator* allocator = nullptr;
    check_ok(api().GetAllocatorWithDefaultOptions(&allocator));
    char* output_name = nullptr;
    check_ok(api().SessionGetOutputName(session, 0, allocator, &output_name));
    const char* input_name = "x";
    OrtValue* output = nullptr;
    CHECK(text_of(api().Run(session, nullptr, &input_name, &input, 1, &output_name, 1, &output)) ==
          "");
    REQUIRE(output != nullptr);
    CHECK(data_of(output)[0] == 1);
    CHECK(data_of(output)[1] == 4);
    check_ok(api().AllocatorFree(allocator, output_name));
    api().ReleaseValue(output);
    api().ReleaseValue(input);
    api().ReleaseSession(session);
  }
}

}  // namespace sardonyx
