// What a C++ program may do through onnxruntime_cxx_api.h, printed as lines "what = words".
//   check LIBRARY MODELS
#define ORT_API_MANUAL_INIT
#include <dlfcn.h>
#include <onnxruntime_cxx_api.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <sstream>
#include <thread>

namespace {

std::string models;

std::string model(const std::string& name) { return models + "/" + name + ".onnx"; }

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<float>(static_cast<int>(i % 7) - 3) * 0.25F;
  }
  return values;
}

Ort::Value floats(std::vector<float>& data, std::vector<int64_t> dims) {
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  return Ort::Value::CreateTensor<float>(memory, data.data(), data.size(), dims.data(),
                                         dims.size());
}

void show(const std::string& what, const Ort::Value& value) {
  const auto info = value.GetTensorTypeAndShapeInfo();
  std::cout << what << " = " << info.GetElementType();
  for (const int64_t dim : info.GetShape()) std::cout << " " << dim;
  const std::size_t count = std::min<std::size_t>(info.GetElementCount(), 64);
  for (std::size_t i = 0; i < count; ++i) {
    if (info.GetElementType() == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64) {
      std::cout << " " << value.GetTensorData<int64_t>()[i];
    } else {
      std::cout << " " << value.GetTensorData<float>()[i];
    }
  }
  std::cout << "\n";
}

template <typename Action>
void code(const std::string& what, Action action) {
  int found = 0;
  try {
    action();
  } catch (const Ort::Exception& error) {
    found = error.GetOrtErrorCode();
  }
  std::cout << "code " << what << " = " << found << "\n";
}

Ort::Value run(Ort::Session& session, std::vector<float> data, std::vector<int64_t> dims) {
  const char* in[] = {"x"};
  const char* out[] = {"y"};
  const Ort::Value x = floats(data, std::move(dims));
  return std::move(session.Run(Ort::RunOptions{nullptr}, in, &x, 1, out, 1).front());
}

void check_runs(Ort::Env& env) {
  Ort::SessionOptions options;
  options.SetIntraOpNumThreads(2)
      .SetGraphOptimizationLevel(ORT_ENABLE_ALL)
      .DisableMemPattern()
      .SetLogId("some session")
      .AddConfigEntry("session.intra_op.allow_spinning", "0");
  Ort::Session session(env, model("mlp").c_str(), options);
  Ort::AllocatorWithDefaultOptions allocator;
  std::cout << "names = " << session.GetInputNameAllocated(0, allocator).get() << " "
            << session.GetOutputNameAllocated(0, allocator).get() << "\n";
  for (const auto& name : session.GetInputNames()) std::cout << "input = " << name << "\n";
  for (const int64_t rows : {1, 3, 0, 32}) {
    show("mlp of " + std::to_string(rows) + " rows",
         run(session, ramp(static_cast<std::size_t>(rows) * 8), {rows, 8}));
  }
  Ort::Session moved = std::move(session);
  show("moved session", run(moved, ramp(8), {1, 8}));
  code("another rank", [&] { run(moved, ramp(8), {8}); });
  code("a missing file", [&] { Ort::Session(env, model("absent").c_str(), options); });
  code("garbage", [&] { Ort::Session(env, model("garbage").c_str(), options); });

  Ort::IoBinding binding(moved);
  auto data = ramp(16);
  const Ort::Value x = floats(data, {2, 8});
  binding.BindInput("x", x);
  binding.BindOutput("y", Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault));
  moved.Run(Ort::RunOptions{nullptr}, binding);
  show("bound", binding.GetOutputValues().front());
  std::cout << "bound names = " << binding.GetOutputNames().front() << "\n";

  const auto metadata = moved.GetModelMetadata();
  std::cout << "metadata = " << metadata.GetProducerNameAllocated(allocator).get() << " "
            << metadata.GetVersion() << " "
            << metadata.GetCustomMetadataMapKeysAllocated(allocator).size() << "\n";
  std::cout << "providers = " << (Ort::GetAvailableProviders().empty() ? 0 : 1) << "\n";
}

void check_containers(Ort::Env& env) {
  Ort::AllocatorWithDefaultOptions allocator;
  Ort::Session strings(env, model("strings").c_str(), Ort::SessionOptions{});
  const int64_t dims[] = {2};
  const char* left[] = {"größe", ""};
  const char* right[] = {"!", "a text that is longer than a small string"};
  std::vector<Ort::Value> texts;
  for (const auto& list : {left, right}) {
    texts.push_back(
        Ort::Value::CreateTensor(allocator, dims, 1, ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING));
    texts.back().FillStringTensor(list, 2);
  }
  const char* ab[] = {"a", "b"};
  const char* y[] = {"y"};
  auto joined = strings.Run(Ort::RunOptions{nullptr}, ab, texts.data(), 2, y, 1);
  std::cout << "texts = " << joined[0].GetStringTensorElement(0) << " | "
            << joined[0].GetStringTensorElement(1) << "\n";

  Ort::Session maps(env, model("map_out").c_str(), Ort::SessionOptions{});
  auto data = ramp(6);
  const Ort::Value x = floats(data, {2, 3});
  const char* in[] = {"x"};
  const char* z[] = {"z"};
  auto sequence = maps.Run(Ort::RunOptions{nullptr}, in, &x, 1, z, 1);
  for (std::size_t i = 0; i < sequence[0].GetCount(); ++i) {
    const Ort::Value map = sequence[0].GetValue(static_cast<int>(i), allocator);
    const Ort::Value keys = map.GetValue(0, allocator);
    show("values of " + keys.GetStringTensorElement(0), map.GetValue(1, allocator));
  }
  std::vector<Ort::Value> items;
  auto first = ramp(2);
  auto second = ramp(3);
  items.push_back(floats(first, {2}));
  items.push_back(floats(second, {3}));
  const Ort::Value made = Ort::Value::CreateSequence(items);
  items.clear();
  Ort::Session join(env, model("sequence_in").c_str(), Ort::SessionOptions{});
  const char* s[] = {"s"};
  show("joined", join.Run(Ort::RunOptions{nullptr}, s, &made, 1, y, 1)[0]);
}

/// y = share * x + (1 - share) * w, by the operators of ONNX that kernels may run.
struct BlendKernel {
  explicit BlendKernel(const OrtKernelInfo* info) {
    const Ort::ConstKernelInfo kernel(info);
    share = kernel.GetAttribute<float>("share");
    int is_constant = 0;
    const Ort::ConstValue weight = kernel.GetTensorConstantInput(1, &is_constant);
    count = is_constant != 0 ? weight.GetTensorTypeAndShapeInfo().GetElementCount() : 0;
    std::cout << "kernel = " << kernel.GetNodeName() << " " << kernel.GetInputCount() << " "
              << kernel.GetOutputName(0) << " " << count << "\n";
  }

  void Compute(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const auto x = context.GetInput(0);
    const auto w = context.GetInput(1);
    const auto shape = x.GetTensorTypeAndShapeInfo().GetShape();
    auto y = context.GetOutput(0, shape);
    for (std::size_t i = 0; i < count; ++i) {
      y.GetTensorMutableData<float>()[i] =
          share * x.GetTensorData<float>()[i] + (1 - share) * w.GetTensorData<float>()[i];
    }
  }

  float share = 0;
  std::size_t count = 0;
};

struct Blend : Ort::CustomOpBase<Blend, BlendKernel> {
  void* CreateKernel(const OrtApi&, const OrtKernelInfo* info) const {
    return new BlendKernel(info);
  }
  const char* GetName() const { return "Blend"; }
  std::size_t GetInputTypeCount() const { return 2; }
  ONNXTensorElementDataType GetInputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  static Ort::Status InferOutputShape(Ort::ShapeInferContext& context) {
    context.SetOutputShape(0, context.GetInputShape(0));
    return Ort::Status{nullptr};
  }
};

struct StepsKernel {
  explicit StepsKernel(const OrtKernelInfo* info)
      : sizes(Ort::ConstKernelInfo(info).GetAttributes<int64_t>("sizes")) {}

  OrtStatusPtr ComputeV2(OrtKernelContext* raw) {
    const Ort::KernelContext context(raw);
    const auto x = context.GetInput(0);
    const auto info = x.GetTensorTypeAndShapeInfo();
    if (x.GetTensorData<float>()[0] > 100) {
      return Ort::Status("too large a value for Steps", ORT_INVALID_ARGUMENT).release();
    }
    auto y = context.GetOutput(0, info.GetShape());
    for (std::size_t i = 0; i < info.GetElementCount(); ++i) {
      y.GetTensorMutableData<int64_t>()[i] =
          static_cast<int64_t>(x.GetTensorData<float>()[i] * 100) * sizes[i % sizes.size()];
    }
    return nullptr;
  }

  std::vector<int64_t> sizes;
};

struct Steps : Ort::CustomOpBase<Steps, StepsKernel, true> {
  OrtStatusPtr CreateKernelV2(const OrtApi&, const OrtKernelInfo* info, void** kernel) const {
    *kernel = new StepsKernel(info);
    return nullptr;
  }
  const char* GetName() const { return "Steps"; }
  std::size_t GetInputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetInputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
  }
  std::size_t GetOutputTypeCount() const { return 1; }
  ONNXTensorElementDataType GetOutputType(std::size_t) const {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
  }
};

void check_operators(Ort::Env& env) {
  Blend blend;
  Steps steps;
  Ort::CustomOpDomain domain("test.clients");
  domain.Add(&blend);
  domain.Add(&steps);
  Ort::SessionOptions options;
  options.Add(domain);
  Ort::Session session(env, model("custom").c_str(), options);
  show("custom", run(session, ramp(6), {6}));
  code("error of a kernel", [&] { run(session, std::vector<float>(6, 1e6F), {6}); });
  show("custom again", run(session, ramp(6), {6}));
}

void check_editor(Ort::Env& env) {
  const std::vector<int64_t> dims{3};
  const Ort::TensorTypeAndShapeInfo shape(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, dims);
  const auto type = Ort::TypeInfo::CreateTensorInfo(shape.GetConst());
  std::vector<Ort::ValueInfo> inputs;
  std::vector<Ort::ValueInfo> outputs;
  inputs.emplace_back("x", type.GetConst());
  outputs.emplace_back("y", type.GetConst());
  Ort::Graph graph;
  graph.SetInputs(inputs);
  graph.SetOutputs(outputs);
  Ort::Node node("Mul", "", "scale", {"x", "w"}, {"y"});
  graph.AddNode(node);
  Ort::AllocatorWithDefaultOptions allocator;
  auto weight = Ort::Value::CreateTensor<float>(allocator, dims.data(), 1);
  for (int i = 0; i < 3; ++i) weight.GetTensorMutableData<float>()[i] = static_cast<float>(i + 2);
  graph.AddInitializer("w", weight, false);
  const std::vector<Ort::Model::DomainOpsetPair> opsets{{"", 20}};
  Ort::Model made(opsets);
  made.AddGraph(graph);
  Ort::SessionOptions options;
  Ort::Session session(env, made, options);
  show("edited", run(session, ramp(3), {3}));
}

void check_threads(Ort::Env& env) {
  Ort::Session shared(env, model("mlp").c_str(), Ort::SessionOptions{});
  std::vector<std::thread> threads;
  std::vector<double> sums(6);
  for (std::size_t worker = 0; worker < sums.size(); ++worker) {
    threads.emplace_back([&, worker] {
      for (int i = 0; i < 40; ++i) {
        Ort::Session own{nullptr};
        if (worker % 3 == 0) own = Ort::Session(env, model("mlp").c_str(), Ort::SessionOptions{});
        const Ort::Value y = run(worker % 3 == 0 ? own : shared, ramp(16), {2, 8});
        for (int j = 0; j < 8; ++j) sums[worker] += y.GetTensorData<float>()[j];
      }
    });
  }
  for (auto& thread : threads) thread.join();
  std::cout << "threads =";
  for (const double sum : sums) std::cout << " " << sum;
  std::cout << "\n";
}

void check_cancelling(Ort::Env& env) {
  Ort::Session session(env, model("loop").c_str(), Ort::SessionOptions{});
  Ort::RunOptions options;
  options.SetRunTag("a tag");
  std::cout << "tag = " << options.GetRunTag() << "\n";
  auto data = ramp(64 * 64);
  int64_t steps = int64_t{1} << 40;
  const auto memory = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeDefault);
  std::vector<Ort::Value> feeds;
  feeds.push_back(Ort::Value::CreateTensor<int64_t>(memory, &steps, 1, nullptr, 0));
  feeds.push_back(floats(data, {64, 64}));
  const char* in[] = {"n", "x"};
  const char* out[] = {"y"};
  std::thread stopper([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    options.SetTerminate();
  });
  code("terminated", [&] { session.Run(options, in, feeds.data(), 2, out, 1); });
  stopper.join();
  steps = 2;
  options.UnsetTerminate();
  code("let run again", [&] { session.Run(options, in, feeds.data(), 2, out, 1); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: check LIBRARY MODELS\n"), 2;
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return std::fprintf(stderr, "%s\n", dlerror()), 2;
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  Ort::InitApi(base()->GetApi(ORT_API_VERSION));
  models = argv[2];
  try {
    Ort::Env env(ORT_LOGGING_LEVEL_FATAL, "check");
    check_runs(env);
    check_containers(env);
    check_operators(env);
    check_editor(env);
    check_threads(env);
    check_cancelling(env);
  } catch (const std::exception& error) {
    std::cout << "exception: " << error.what() << "\n";
    return 1;
  }
  std::cout << "end = 1\n";
  return 0;
}
