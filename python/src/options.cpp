// Session options and run options. Python's SessionOptions holds the settings and applies them to a
// fresh Options when a session is made; see sardonyx/options.py.
#include "options.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "devices.h"
#include "value.h"

namespace sardonyx::python {
namespace {

using OptionSetter = OrtStatus* (*OrtApi::*)(OrtSessionOptions*);

void set_logger(Options& self, nb::object callback) {
  // The callback must live as long as any session made from these options: it is never released.
  auto log = [](void* state, OrtLoggingLevel level, const char* category, const char* logid,
                const char* location, const char* message) {
    if (!Py_IsInitialized()) return;
    nb::gil_scoped_acquire locked;
    try {
      nb::handle(static_cast<PyObject*>(state))(static_cast<int>(level), category, logid, location,
                                                message);
    } catch (nb::python_error& error) {
      error.discard_as_unraisable("a logger callback");
    }
  };
  check(api().SetUserLoggingFunction(self.handle.get(), log, callback.release().ptr()));
}

void add_initializer(Options& self, const std::string& name, nb::handle value) {
  Value* held = value_in(value);
  if (!held) throw nb::type_error("an initializer must be an OrtValue");
  check(api().AddInitializer(self.handle.get(), name.c_str(), held->handle.get()));
  self.kept.append(value);
}

void add_external_initializers(Options& self, std::vector<std::string> names, nb::list values) {
  std::vector<const OrtValue*> pointers;
  for (nb::handle value : values) {
    Value* held = value_in(value);
    if (!held) throw nb::type_error("external initializers must be OrtValues");
    pointers.push_back(held->handle.get());
    self.kept.append(value);
  }
  if (names.size() != pointers.size()) {
    throw nb::value_error("there must be one name for each external initializer");
  }
  Strings texts(std::move(names));
  check(api().AddExternalInitializers(self.handle.get(), texts.data(), pointers.data(),
                                      pointers.size()));
}

void add_initializer_files(Options& self, std::vector<std::string> names, nb::list buffers,
                           const std::vector<size_t>& lengths) {
  std::vector<char*> pointers;
  for (nb::handle buffer : buffers) {
    Py_buffer view;
    if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_SIMPLE) != 0) throw nb::python_error();
    pointers.push_back(static_cast<char*>(view.buf));
    PyBuffer_Release(&view);
    self.kept.append(buffer);
  }
  if (names.size() != pointers.size() || lengths.size() != pointers.size()) {
    throw nb::value_error("there must be one name, one buffer and one length for each file");
  }
  Strings texts(std::move(names));
  check(api().AddExternalInitializersFromFilesInMemory(self.handle.get(), texts.data(),
                                                       pointers.data(), lengths.data(),
                                                       pointers.size()));
}

void add_provider(Options& self, const std::string& name, nb::object options) {
  const Pairs pairs(options);
  check(api().SessionOptionsAppendExecutionProvider(self.handle.get(), name.c_str(),
                                                    pairs.keys.data(), pairs.values.data(),
                                                    pairs.keys.size()));
}

void add_provider_for_devices(Options& self, nb::list devices, nb::object options) {
  std::vector<const OrtEpDevice*> pointers;
  for (nb::handle device : devices) pointers.push_back(device_in(device));
  const Pairs pairs(options);
  check(api().SessionOptionsAppendExecutionProvider_V2(
      self.handle.get(), environment(), pointers.data(), pointers.size(), pairs.keys.data(),
      pairs.values.data(), pairs.keys.size()));
}

OrtStatus* select_devices(const OrtEpDevice** devices, size_t count, const OrtKeyValuePairs* model,
                          const OrtKeyValuePairs* runtime, const OrtEpDevice** selected,
                          size_t max_selected, size_t* selected_count, void* state) {
  nb::gil_scoped_acquire locked;
  try {
    nb::list offered;
    for (size_t i = 0; i < count; ++i) offered.append(make_device(devices[i]));
    nb::object chosen = nb::handle(static_cast<PyObject*>(state))(
        offered, to_dict(model), to_dict(runtime), max_selected);
    *selected_count = 0;
    for (nb::handle device : chosen) {
      if (*selected_count == max_selected) break;
      selected[(*selected_count)++] = device_in(device);
    }
    return nullptr;
  } catch (const std::exception& error) {
    return api().CreateStatus(ORT_FAIL, error.what());
  }
}

// Hands a data file's name and a buffer object to Python; what the buffer holds afterwards is
// copied into memory of the library.
OrtStatus* read_named(void* state, const char* name, OrtAllocator* allocator, void** buffer,
                      size_t* bytes) {
  nb::gil_scoped_acquire locked;
  try {
    nb::object holder = nb::module_::import_("sardonyx.compiler").attr("OrtEpContextDataBuffer")();
    nb::handle(static_cast<PyObject*>(state))(nb::str(name), holder);
    const auto content = nb::cast<nb::bytes>(holder.attr("_content")());
    *buffer = allocator->Alloc(allocator, content.size());
    if (!*buffer) return api().CreateStatus(ORT_FAIL, "out of memory");
    std::memcpy(*buffer, content.data(), content.size());
    *bytes = content.size();
    return nullptr;
  } catch (const std::exception& error) {
    return api().CreateStatus(ORT_FAIL, error.what());
  }
}

void set_read_data(Options& self, nb::object callback) {
  self.kept.append(callback);
  check(api().SessionOptionsSetEpContextDataReadFunc(self.handle.get(), read_named,
                                                     callback.ptr()));
}

// Hands a stage on; an answer that is true, or an error, stops the work.
int report_progress(void* state, const char* stage, double done, double total) {
  nb::gil_scoped_acquire locked;
  try {
    const nb::object answer = nb::handle(static_cast<PyObject*>(state))(stage, done, total);
    return nb::cast<bool>(nb::bool_(answer)) ? 1 : 0;
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("the progress function");
  } catch (const std::exception&) {
  }
  return 1;
}

void set_progress(Options& self, nb::object callback) {
  if (!own_api()) throw nb::value_error("progress needs the library of Sardonyx itself");
  self.kept.append(callback);
  check(own_api()->SessionOptionsSetProgressFunction(self.handle.get(), report_progress,
                                                     callback.ptr()));
}

void set_policy(Options& self, int policy) {
  check(api().SessionOptionsSetEpSelectionPolicy(
      self.handle.get(), static_cast<OrtExecutionProviderDevicePolicy>(policy)));
}

void set_delegate(Options& self, nb::object callback) {
  self.kept.append(callback);
  check(api().SessionOptionsSetEpSelectionPolicyDelegate(self.handle.get(), select_devices,
                                                         callback.ptr()));
}

void bind_run_options(nb::module_& module) {
  nb::class_<RunOptions>(module, "RunOptions",
                         "Settings of one call of run(); may be used for several calls.",
                         nb::dynamic_attr())
      .def(nb::init<>())
      .def_prop_rw(
          "terminate", [](const RunOptions& self) { return self.terminate; },
          [](RunOptions& self, bool stop) {
            OrtRunOptions* options = self.handle.get();
            check(stop ? api().RunOptionsSetTerminate(options)
                       : api().RunOptionsUnsetTerminate(options));
            self.terminate = stop;
          },
          "Set it to True, from any thread, to stop the runs that use these options.")
      .def_prop_rw(
          "log_severity_level",
          [](const RunOptions& self) {
            int level = 0;
            check(api().RunOptionsGetRunLogSeverityLevel(self.handle.get(), &level));
            return level;
          },
          [](RunOptions& self, int level) {
            check(api().RunOptionsSetRunLogSeverityLevel(self.handle.get(), level));
          },
          "0 verbose, 1 info, 2 warning, 3 error, 4 fatal; -1 as the session.")
      .def_prop_rw(
          "log_verbosity_level",
          [](const RunOptions& self) {
            int level = 0;
            check(api().RunOptionsGetRunLogVerbosityLevel(self.handle.get(), &level));
            return level;
          },
          [](RunOptions& self, int level) {
            check(api().RunOptionsSetRunLogVerbosityLevel(self.handle.get(), level));
          },
          "How much of the verbose messages is logged.")
      .def_prop_rw(
          "logid",
          [](const RunOptions& self) {
            const char* tag = nullptr;
            check(api().RunOptionsGetRunTag(self.handle.get(), &tag));
            return std::string(tag ? tag : "");
          },
          [](RunOptions& self, const std::string& tag) {
            check(api().RunOptionsSetRunTag(self.handle.get(), tag.c_str()));
          },
          "Name of the run in log messages.")
      .def("add_run_config_entry", [](RunOptions& self, const std::string& key,
                                      const std::string& value) {
             check(api().AddRunConfigEntry(self.handle.get(), key.c_str(), value.c_str()));
           }, nb::arg("key"), nb::arg("value"), "Sets an option of the run by its key.")
      .def("get_run_config_entry", [](const RunOptions& self, const std::string& key) {
             const char* value = api().GetRunConfigEntry(self.handle.get(), key.c_str());
             if (value) return std::string(value);
             PyErr_Format(PyExc_RuntimeError, "RunOptions does not have configuration with key: %s",
                          key.c_str());
             throw nb::python_error();
           }, nb::arg("key"), "The value set for a key.")
      .def("add_active_adapter", [](RunOptions& self, nb::handle adapter) {
             check(api().RunOptionsAddActiveLoraAdapter(self.handle.get(), adapter_in(adapter)));
             self.kept.append(adapter);
           }, nb::arg("adapter"), "Applies a LoRA adapter to the runs.");
}

// Setters of OrtSessionOptions that take one plain value.
template <auto Setter, typename T>
void set_plain(Options& self, T value) {
  check((api().*Setter)(self.handle.get(), value));
}

template <auto Setter>
void set_text(Options& self, const std::string& value) {
  check((api().*Setter)(self.handle.get(), value.c_str()));
}

template <auto On, auto Off>
void set_switch(Options& self, bool on) {
  check(on ? (api().*On)(self.handle.get()) : (api().*Off)(self.handle.get()));
}

void bind_settings(nb::class_<Options>& options) {
  options.def("set_intra_op", &set_plain<&OrtApi::SetIntraOpNumThreads, int>)
      .def("set_inter_op", &set_plain<&OrtApi::SetInterOpNumThreads, int>)
      .def("set_severity", &set_plain<&OrtApi::SetSessionLogSeverityLevel, int>)
      .def("set_verbosity", &set_plain<&OrtApi::SetSessionLogVerbosityLevel, int>)
      .def("set_deterministic", &set_plain<&OrtApi::SetDeterministicCompute, bool>)
      .def("set_cancelled", &set_plain<&OrtApi::SessionOptionsSetLoadCancellationFlag, bool>)
      .def("set_logid", &set_text<&OrtApi::SetSessionLogId>)
      .def("set_optimized_path", &set_text<&OrtApi::SetOptimizedModelFilePath>)
      .def("enable_profiling", &set_text<&OrtApi::EnableProfiling>)
      .def("register_custom_ops", &set_text<&OrtApi::RegisterCustomOpsLibrary_V2>)
      .def("set_arena", &set_switch<&OrtApi::EnableCpuMemArena, &OrtApi::DisableCpuMemArena>)
      .def("set_pattern", &set_switch<&OrtApi::EnableMemPattern, &OrtApi::DisableMemPattern>)
      .def("disable_per_session_threads", [](Options& self) {
        check(api().DisablePerSessionThreads(self.handle.get()));
      })
      .def("set_level", [](Options& self, int level) {
        check(api().SetSessionGraphOptimizationLevel(self.handle.get(),
                                                     static_cast<GraphOptimizationLevel>(level)));
      })
      .def("set_mode", [](Options& self, int mode) {
        check(api().SetSessionExecutionMode(self.handle.get(), static_cast<ExecutionMode>(mode)));
      })
      .def("add_config", [](Options& self, const std::string& key, const std::string& value) {
        check(api().AddSessionConfigEntry(self.handle.get(), key.c_str(), value.c_str()));
      })
      .def("add_dimension", [](Options& self, const std::string& name, int64_t size, bool by_name) {
        OrtSessionOptions* raw = self.handle.get();
        check(by_name ? api().AddFreeDimensionOverrideByName(raw, name.c_str(), size)
                      : api().AddFreeDimensionOverride(raw, name.c_str(), size));
      });
}

}  // namespace

Options::Options() {
  OrtSessionOptions* made = nullptr;
  check(api().CreateSessionOptions(&made));
  handle.reset(made);
}

RunOptions::RunOptions() {
  OrtRunOptions* made = nullptr;
  check(api().CreateRunOptions(&made));
  handle.reset(made);
}

void bind_options(nb::module_& module) {
  nb::class_<Options> options(module, "Options");
  options.def(nb::init<>())
      .def("set_logger", &set_logger)
      .def("add_initializer", &add_initializer)
      .def("add_external_initializers", &add_external_initializers)
      .def("add_initializer_files", &add_initializer_files)
      .def("add_provider", &add_provider)
      .def("add_provider_for_devices", &add_provider_for_devices)
      .def("set_read_data", &set_read_data)
      .def("set_progress", &set_progress)
      .def("set_policy", &set_policy)
      .def("set_delegate", &set_delegate);
  bind_settings(options);
  bind_run_options(module);
}

}  // namespace sardonyx::python
