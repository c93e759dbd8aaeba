#include "api.h"

#include <dlfcn.h>

#include <mutex>

namespace sardonyx::python {
namespace {

struct Library {
  const OrtApiBase* base = nullptr;
  const OrtApi* api = nullptr;
  const SardonyxApi* own = nullptr;
  OrtEnv* environment = nullptr;
  OrtMemoryInfo* memory = nullptr;
  OrtAllocator* allocator = nullptr;
  int severity = ORT_LOGGING_LEVEL_WARNING;
  int intra_op = -1;
  int inter_op = -1;
};

Library& library() {
  static Library loaded;
  return loaded;
}

// Name as it stands in messages, in the order of OrtErrorCode; the class has the next name.
struct ErrorName {
  const char* text;
  const char* type;
};
constexpr ErrorName kErrors[] = {
    {"SUCCESS", "Fail"},
    {"FAIL", "Fail"},
    {"INVALID_ARGUMENT", "InvalidArgument"},
    {"NO_SUCHFILE", "NoSuchFile"},
    {"NO_MODEL", "NoModel"},
    {"ENGINE_ERROR", "EngineError"},
    {"RUNTIME_EXCEPTION", "RuntimeException"},
    {"INVALID_PROTOBUF", "InvalidProtobuf"},
    {"MODEL_LOADED", "ModelLoaded"},
    {"NOT_IMPLEMENTED", "NotImplemented"},
    {"INVALID_GRAPH", "InvalidGraph"},
    {"EP_FAIL", "EPFail"},
    {"MODEL_LOAD_CANCELED", "ModelLoadCanceled"},
    {"MODEL_REQUIRES_COMPILATION", "ModelRequiresCompilation"},
    {"NOT_FOUND", "NotFound"},
    {"DEVICE_RESET", "DeviceReset"},
};

[[noreturn]] void raise_import_error(const std::string& message) {
  throw nb::import_error(message.c_str());
}

OrtEnv* make_environment(const Library& lib) {
  OrtEnv* made = nullptr;
  const auto level = static_cast<OrtLoggingLevel>(lib.severity);
  if (lib.intra_op < 0) {
    check(lib.api->CreateEnv(level, "Default", &made));
    return made;
  }
  OrtThreadingOptions* threads = nullptr;
  check(lib.api->CreateThreadingOptions(&threads));
  Handle<OrtThreadingOptions, &OrtApi::ReleaseThreadingOptions> owner(threads);
  check(lib.api->SetGlobalIntraOpNumThreads(threads, lib.intra_op));
  check(lib.api->SetGlobalInterOpNumThreads(threads, lib.inter_op));
  check(lib.api->CreateEnvWithGlobalThreadPools(level, "Default", threads, &made));
  return made;
}

}  // namespace

void load_library(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) raise_import_error("cannot load the runtime library: " + std::string(dlerror()));
  auto* get_base = reinterpret_cast<const OrtApiBase* (*)()>(dlsym(handle, "OrtGetApiBase"));
  if (!get_base) raise_import_error(path + " has no OrtGetApiBase: it is not a runtime library");
  library().base = get_base();
  library().api = get_base()->GetApi(ORT_API_VERSION);
  if (!library().api) {
    raise_import_error(path + " is release " + get_base()->GetVersionString() +
                       "; this package needs API version " + std::to_string(ORT_API_VERSION));
  }
  auto* get_own =
      reinterpret_cast<const SardonyxApi* (*)(uint32_t)>(dlsym(handle, "SardonyxGetApi"));
  library().own = get_own ? get_own(SARDONYX_API_VERSION) : nullptr;
}

std::string version_string() { return library().base->GetVersionString(); }

const OrtApi& api() { return *library().api; }

const SardonyxApi* own_api() { return library().own; }

OrtEnv* environment() {
  Library& lib = library();
  if (!lib.environment) lib.environment = make_environment(lib);
  return lib.environment;
}

bool set_environment_threads(int intra_op, int inter_op) {
  if (library().environment) return false;
  library().intra_op = intra_op;
  library().inter_op = inter_op;
  return true;
}

void set_environment_severity(int level) {
  Library& lib = library();
  lib.severity = level;
  if (!lib.environment) return;
  check(lib.api->UpdateEnvWithCustomLogLevel(lib.environment, static_cast<OrtLoggingLevel>(level)));
}

void check(OrtStatus* status) {
  if (!status) return;
  const OrtErrorCode code = api().GetErrorCode(status);
  const auto given = static_cast<size_t>(code);
  const size_t index = given < std::size(kErrors) ? given : static_cast<size_t>(ORT_FAIL);
  const ErrorName& name = kErrors[index];
  std::string text = "[ONNXRuntimeError] : " + std::to_string(static_cast<int>(code)) + " : " +
                     name.text + " : " + api().GetErrorMessage(status);
  api().ReleaseStatus(status);
  nb::object type = nb::module_::import_("sardonyx.errors").attr(name.type);
  nb::object message = nb::steal(PyUnicode_DecodeUTF8(text.data(), text.size(), "replace"));
  PyErr_SetObject(type.ptr(), message.ptr());
  throw nb::python_error();
}

const OrtMemoryInfo* cpu_memory() {
  Library& lib = library();
  if (!lib.memory) {
    check(lib.api->CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &lib.memory));
  }
  return lib.memory;
}

OrtAllocator* cpu_allocator() {
  Library& lib = library();
  if (!lib.allocator) check(lib.api->GetAllocatorWithDefaultOptions(&lib.allocator));
  return lib.allocator;
}

std::string take_string(char* text) {
  std::string copy = text ? text : "";
  if (text) cpu_allocator()->Free(cpu_allocator(), text);
  return copy;
}

Pairs::Pairs(nb::handle mapping) {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  if (!mapping.is_none()) {
    for (auto [key, value] : as_dict(mapping)) {
      names.emplace_back(nb::str(key).c_str());
      texts.emplace_back(nb::str(value).c_str());
    }
  }
  keys = Strings(std::move(names));
  values = Strings(std::move(texts));
}

nb::dict as_dict(nb::handle mapping) {
  if (PyDict_Check(mapping.ptr())) return nb::borrow<nb::dict>(mapping);
  return nb::borrow<nb::dict>(nb::module_::import_("builtins").attr("dict")(mapping));
}

nb::dict to_dict(const OrtKeyValuePairs* pairs) {
  nb::dict result;
  if (!pairs) return result;
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  size_t count = 0;
  api().GetKeyValuePairs(pairs, &keys, &values, &count);
  for (size_t i = 0; i < count; ++i) result[keys[i]] = nb::str(values[i]);
  return result;
}

}  // namespace sardonyx::python
