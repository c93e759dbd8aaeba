// What a call of Run costs beyond the work itself: one node on four floats, through the C interface
// of one or more libraries, side by side.
//
//   bench_call_cost LIBRARY...      for example lib/libonnxruntime.so.1 and ONNX Runtime's own
//
// Every library is loaded into this process and called in turns. Per library: nanoseconds per call
// (the fastest of many rounds) when outputs are made by Run, when they are given, and when they are
// bound; then each as a share of the last library's.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

namespace {

constexpr int kCalls = 2000;
constexpr int kRounds = 60;

/// y = Relu(x), x and y float[4], as a ModelProto.
constexpr unsigned char kModel[] = {
    8,  8,   18,  0,  58, 51, 10,  12, 10, 1,  120, 18, 1, 121, 34, 4,  82, 101, 108, 117, 18,
    1,  103, 90,  15, 10, 1,  120, 18, 10, 10, 8,   8,  1, 18,  4,  10, 2,  8,   4,   98,  15,
    10, 1,   121, 18, 10, 10, 8,   8,  1,  18, 4,   10, 2, 8,   4,  66, 4,  10,  0,   16,  13};

/// A library and a session of it.
struct Subject {
  std::string path;
  const OrtApi* api = nullptr;
  OrtEnv* env = nullptr;
  OrtSession* session = nullptr;
  OrtMemoryInfo* memory = nullptr;
  OrtIoBinding* binding = nullptr;
  float x_data[4] = {1, -2, 3, -4};
  float y_data[4] = {};
  OrtValue* x = nullptr;
  OrtValue* y = nullptr;

  void check(OrtStatus* status) const {
    if (status == nullptr) return;
    std::fprintf(stderr, "%s: %s\n", path.c_str(), api->GetErrorMessage(status));
    std::exit(1);
  }

  OrtValue* view(float* data) const {
    const int64_t shape[] = {4};
    OrtValue* value = nullptr;
    check(api->CreateTensorWithDataAsOrtValue(memory, data, 16, shape, 1,
                                              ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    return value;
  }

  void open() {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      std::fprintf(stderr, "%s\n", dlerror());
      std::exit(1);
    }
    const auto get = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
    api = get()->GetApi(ORT_API_VERSION);
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
    OrtSessionOptions* options = nullptr;
    check(api->CreateSessionOptions(&options));
    check(api->SetIntraOpNumThreads(options, 1));
    check(api->CreateSessionFromArray(env, kModel, sizeof(kModel), options, &session));
    api->ReleaseSessionOptions(options);
    check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
    x = view(x_data);
    y = view(y_data);
    check(api->CreateIoBinding(session, &binding));
    check(api->BindInput(binding, "x", x));
    check(api->BindOutput(binding, "y", y));
  }

  void run_made() const {
    const char* inputs[] = {"x"};
    const char* outputs[] = {"y"};
    const OrtValue* fed[] = {x};
    OrtValue* made = nullptr;
    check(api->Run(session, nullptr, inputs, fed, 1, outputs, 1, &made));
    api->ReleaseValue(made);
  }

  void run_given() const {
    const char* inputs[] = {"x"};
    const char* outputs[] = {"y"};
    const OrtValue* fed[] = {x};
    OrtValue* given = y;
    check(api->Run(session, nullptr, inputs, fed, 1, outputs, 1, &given));
  }

  void run_bound() const { check(api->RunWithBinding(session, nullptr, binding)); }
};

using Call = void (Subject::*)() const;

double nanoseconds(const Subject& subject, Call call) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i) (subject.*call)();
  const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
  return spent.count() / kCalls;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_call_cost LIBRARY...\n");
    return 2;
  }
  std::vector<Subject> subjects(static_cast<size_t>(count - 1));
  for (size_t i = 0; i < subjects.size(); ++i) {
    subjects[i].path = arguments[i + 1];
    subjects[i].open();
  }
  const struct {
    const char* name;
    Call call;
  } kWays[] = {{"outputs made by Run", &Subject::run_made},
               {"outputs given to Run", &Subject::run_given},
               {"RunWithBinding", &Subject::run_bound}};
  for (const auto& way : kWays) {
    std::vector<double> best(subjects.size(), 1e30);
    for (int round = 0; round < kRounds; ++round) {
      for (size_t i = 0; i < subjects.size(); ++i) {
        best[i] = std::min(best[i], nanoseconds(subjects[i], way.call));
      }
    }
    std::printf("%s\n", way.name);
    for (size_t i = 0; i < subjects.size(); ++i) {
      std::printf("  %8.0f ns  %5.2f of the last  %s\n", best[i], best[i] / best.back(),
                  subjects[i].path.c_str());
    }
  }
  for (const Subject& subject : subjects) {
    if (subject.y_data[0] == 1 && subject.y_data[1] == 0) continue;
    std::fprintf(stderr, "%s: the result is wrong\n", subject.path.c_str());
    return 1;
  }
  return 0;
}
