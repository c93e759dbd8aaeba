#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

namespace sardonyx::python {

namespace nb = nanobind;

/// Loads the library at `path` and keeps it for the life of the process. Throws ImportError with
/// the reason when it is missing or serves no API version that this module can use.
void load_library(const std::string& path);

/// The library's release, for example "1.32.0".
std::string version_string();

/// The function table. load_library must have succeeded.
const OrtApi& api();

/// The table of Sardonyx's own functions; null when the library is another implementation.
const SardonyxApi* own_api();

/// The process-wide environment, made when it is first needed; never released, because sessions
/// and arrays may outlive the module at interpreter exit.
OrtEnv* environment();

/// Settings that take effect when the environment is made; false when it exists already.
bool set_environment_threads(int intra_op, int inter_op);

/// Level of the environment's log, now and when it is made later.
void set_environment_severity(int level);

/// Raises the Python exception that belongs to `status`, or does nothing on success (null).
void check(OrtStatus* status);

/// The OrtMemoryInfo of ordinary memory.
const OrtMemoryInfo* cpu_memory();

/// The allocator of ordinary memory.
OrtAllocator* cpu_allocator();

/// A string that the library allocated with cpu_allocator(), taken over.
std::string take_string(char* text);

/// Frees what the C interface made, by the function of the table that does it.
template <typename T, auto Release>
struct Releaser {
  void operator()(T* object) const { (api().*Release)(object); }
};
template <typename T, auto Release>
using Handle = std::unique_ptr<T, Releaser<T, Release>>;

using ValueHandle = Handle<OrtValue, &OrtApi::ReleaseValue>;
using TypeInfoHandle = Handle<OrtTypeInfo, &OrtApi::ReleaseTypeInfo>;
using ShapeHandle = Handle<OrtTensorTypeAndShapeInfo, &OrtApi::ReleaseTensorTypeAndShapeInfo>;
using OptionsHandle = Handle<OrtSessionOptions, &OrtApi::ReleaseSessionOptions>;
using PairsHandle = Handle<OrtKeyValuePairs, &OrtApi::ReleaseKeyValuePairs>;
using MemoryHandle = Handle<OrtMemoryInfo, &OrtApi::ReleaseMemoryInfo>;
using MetadataHandle = Handle<OrtModelMetadata, &OrtApi::ReleaseModelMetadata>;
using ArenaHandle = Handle<OrtArenaCfg, &OrtApi::ReleaseArenaCfg>;

/// C strings over Python strings that stay alive with it.
class Strings {
 public:
  Strings() = default;
  explicit Strings(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (const std::string& text : texts_) pointers_.push_back(text.c_str());
  }
  const char* const* data() const { return pointers_.data(); }
  size_t size() const { return pointers_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

/// Keys and values of a dict, as the C interface takes them; other values go through str().
struct Pairs {
  explicit Pairs(nb::handle mapping);
  Strings keys;
  Strings values;
};

/// The object itself when it is a dict, else a dict made from it.
nb::dict as_dict(nb::handle mapping);

/// A dict of strings from an OrtKeyValuePairs.
nb::dict to_dict(const OrtKeyValuePairs* pairs);

// One function per source file adds its classes and functions to the module.
void bind_values(nb::module_& module);
void bind_devices(nb::module_& module);
void bind_options(nb::module_& module);
void bind_session(nb::module_& module);
void bind_binding(nb::module_& module);
void bind_compiler(nb::module_& module);

}  // namespace sardonyx::python
