// The way of a fresh process to its first output, through the C interface of a library.
//
//   bench_first_output LIBRARY MODEL FEED THREADS RUNS STARTED_NS
//
// FEED is a file that bench/first_output.py writes, STARTED_NS the monotonic clock when the process
// was asked for. Prints one line: milliseconds from then to the first output, and of a median run;
// then the same in processor time of all threads, which other work on the machine hardly changes.
#include <dlfcn.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

namespace {

const OrtApi* api = nullptr;

void check(OrtStatus* status) {
  if (status == nullptr) return;
  std::fprintf(stderr, "%s\n", api->GetErrorMessage(status));
  std::exit(1);
}

double now_ms() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double, std::milli>(now).count();
}

double processor_ms() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto ms = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return ms(usage.ru_utime) + ms(usage.ru_stime);
}

double median(std::vector<double>& times) {
  std::sort(times.begin(), times.end());
  return times[times.size() / 2];
}

/// Inputs by name, over memory of their own.
struct Feed {
  std::vector<std::string> names;
  std::vector<OrtValue*> values;
  std::vector<std::vector<char>> memory;
};

std::int64_t read_number(std::ifstream& file) {
  std::int64_t number = 0;
  file.read(reinterpret_cast<char*>(&number), sizeof(number));
  return number;
}

std::vector<char> read_bytes(std::ifstream& file) {
  std::vector<char> bytes(static_cast<std::size_t>(read_number(file)));
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

Feed read_feed(const char* path) {
  Feed feed;
  std::ifstream file(path, std::ios::binary);
  OrtMemoryInfo* memory = nullptr;
  check(api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &memory));
  for (std::int64_t left = read_number(file); left > 0 && file; --left) {
    const std::vector<char> name = read_bytes(file);
    const auto type = static_cast<ONNXTensorElementDataType>(read_number(file));
    std::vector<std::int64_t> shape(static_cast<std::size_t>(read_number(file)));
    for (std::int64_t& dim : shape) dim = read_number(file);
    feed.names.emplace_back(name.begin(), name.end());
    std::vector<char>& bytes = feed.memory.emplace_back(read_bytes(file));
    check(api->CreateTensorWithDataAsOrtValue(memory, bytes.data(), bytes.size(), shape.data(),
                                              shape.size(), type,
                                              &feed.values.emplace_back(nullptr)));
  }
  api->ReleaseMemoryInfo(memory);
  if (file) return feed;
  std::fprintf(stderr, "cannot read '%s'\n", path);
  std::exit(1);
}

std::vector<std::string> output_names(const OrtSession* session) {
  OrtAllocator* allocator = nullptr;
  check(api->GetAllocatorWithDefaultOptions(&allocator));
  std::size_t count = 0;
  check(api->SessionGetOutputCount(session, &count));
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    check(api->SessionGetOutputName(session, i, allocator, &name));
    names.emplace_back(name);
    check(api->AllocatorFree(allocator, name));
  }
  return names;
}

std::vector<const char*> pointers(const std::vector<std::string>& names) {
  std::vector<const char*> all;
  for (const std::string& name : names) all.push_back(name.c_str());
  return all;
}

OrtSession* open_session(const char* path, int threads) {
  OrtEnv* env = nullptr;
  check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "bench", &env));
  OrtSessionOptions* options = nullptr;
  check(api->CreateSessionOptions(&options));
  check(api->SetIntraOpNumThreads(options, threads));
  OrtSession* session = nullptr;
  check(api->CreateSession(env, path, options, &session));
  return session;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 7) {
    std::fprintf(stderr, "usage: bench_first_output LIBRARY MODEL FEED THREADS RUNS STARTED_NS\n");
    return 2;
  }
  void* library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(library, "OrtGetApiBase"));
  api = base()->GetApi(ORT_API_VERSION);
  const OrtSession* session = open_session(arguments[2], std::atoi(arguments[4]));
  const Feed feed = read_feed(arguments[3]);
  const std::vector<const char*> inputs = pointers(feed.names);
  const std::vector<std::string> names = output_names(session);
  const std::vector<const char*> outputs = pointers(names);
  const auto run = [&] {
    std::vector<OrtValue*> made(outputs.size(), nullptr);
    check(api->Run(const_cast<OrtSession*>(session), nullptr, inputs.data(), feed.values.data(),
                   inputs.size(), outputs.data(), outputs.size(), made.data()));
    for (OrtValue* value : made) api->ReleaseValue(value);
  };
  run();
  const double first_ms = now_ms() - std::atof(arguments[6]) / 1e6;
  const double first_processor_ms = processor_ms();
  std::vector<double> times;
  std::vector<double> processor_times;
  for (int i = 0; i < std::atoi(arguments[5]); ++i) {
    const double start = now_ms();
    const double processor_start = processor_ms();
    run();
    times.push_back(now_ms() - start);
    processor_times.push_back(processor_ms() - processor_start);
  }
  std::printf("%.3f %.3f %.3f %.3f\n", first_ms, median(times), first_processor_ms,
              median(processor_times));
  return 0;
}
