// Ahead-of-time compilation: OrtCompileApi.
#include <nanobind/stl/string.h>

#include <filesystem>

#include "options.h"
#include "value.h"

namespace sardonyx::python {
namespace {

const OrtCompileApi& compile_api() {
  const OrtCompileApi* table = api().GetCompileApi();
  if (!table) throw nb::import_error("the runtime library has no compile interface");
  return *table;
}

struct CompilerReleaser {
  void operator()(OrtModelCompilationOptions* options) const {
    compile_api().ReleaseModelCompilationOptions(options);
  }
};

struct Compiler {
  std::unique_ptr<OrtModelCompilationOptions, CompilerReleaser> handle;
  nb::list kept;
  std::string source;
  bool is_busy = false;
};

// One compilation at a time; the interpreter's lock guards the flag.
class Turn {
 public:
  explicit Turn(Compiler& compiler) : compiler_(compiler) {
    if (compiler.is_busy) {
      check(api().CreateStatus(ORT_FAIL, "Compilation is already in progress"));
    }
    compiler.is_busy = true;
  }
  ~Turn() { compiler_.is_busy = false; }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  Compiler& compiler_;
};

void make_compiler(Compiler* place, const Options& options, nb::object path, nb::object bytes) {
  OrtModelCompilationOptions* made = nullptr;
  check(compile_api().CreateModelCompilationOptionsFromSessionOptions(
      environment(), options.handle.get(), &made));
  new (place) Compiler();
  place->handle.reset(made);
  place->kept.append(options.kept);
  if (!path.is_none()) {
    place->source = nb::cast<std::string>(path);
    check(compile_api().ModelCompilationOptions_SetInputModelPath(made, place->source.c_str()));
  } else {
    const auto data = nb::cast<nb::bytes>(bytes);
    place->kept.append(data);
    check(compile_api().ModelCompilationOptions_SetInputModelFromBuffer(made, data.data(),
                                                                        data.size()));
  }
}

void compile(Compiler& self) {
  OrtEnv* env = environment();
  OrtStatus* status = nullptr;
  {
    nb::gil_scoped_release unlocked;
    status = compile_api().CompileModel(env, self.handle.get());
  }
  check(status);
}

void compile_to_file(Compiler& self, const std::string& path) {
  const Turn turn(self);
  check(compile_api().ModelCompilationOptions_SetOutputModelPath(self.handle.get(), path.c_str()));
  compile(self);
}

// As the C interface derives it; said here, since an output that was set before would win there.
void compile_to_default(Compiler& self) {
  if (self.source.empty()) {
    check(api().CreateStatus(
        ORT_INVALID_ARGUMENT,
        "Unable to generate an output model path: require an input model path if the location of "
        "the output model (e.g., file, buffer, or stream) is not specified."));
  }
  std::filesystem::path path(self.source);
  compile_to_file(self, path.replace_filename(path.stem().string() + "_ctx.onnx").string());
}

nb::bytes compile_to_bytes(Compiler& self) {
  const Turn turn(self);
  void* data = nullptr;
  size_t bytes = 0;
  check(compile_api().ModelCompilationOptions_SetOutputModelBuffer(
      self.handle.get(), cpu_allocator(), &data, &bytes));
  compile(self);
  nb::bytes result(data, bytes);
  if (data) cpu_allocator()->Free(cpu_allocator(), data);
  return result;
}

// Turns the exception of a callback into a status with its text.
template <typename Body>
OrtStatus* in_python(Body&& body) {
  nb::gil_scoped_acquire locked;
  try {
    body();
    return nullptr;
  } catch (const std::exception& error) {
    return api().CreateStatus(ORT_FAIL, error.what());
  }
}

OrtStatus* write_part(void* state, const void* buffer, size_t bytes) {
  return in_python([&] {
    nb::handle(static_cast<PyObject*>(state))(nb::bytes(buffer, bytes));
  });
}

OrtStatus* write_named(void* state, const char* name, const void* buffer, size_t bytes) {
  return in_python([&] {
    nb::handle(static_cast<PyObject*>(state))(nb::str(name), nb::bytes(buffer, bytes));
  });
}

OrtStatus* locate_initializer(void* state, const char* name, const OrtValue* value,
                              const OrtExternalInitializerInfo* info,
                              OrtExternalInitializerInfo** chosen) {
  return in_python([&] {
    *chosen = nullptr;
    nb::object given = nb::none();
    if (info) {
      given = nb::make_tuple(api().ExternalInitializerInfo_GetFilePath(info),
                             api().ExternalInitializerInfo_GetFileOffset(info),
                             api().ExternalInitializerInfo_GetByteSize(info));
    }
    nb::object array = to_array(value, nb::none());
    nb::object place = nb::handle(static_cast<PyObject*>(state))(nb::str(name), array, given);
    if (place.is_none()) return;
    const auto path = nb::cast<std::string>(place[0]);
    check(api().CreateExternalInitializerInfo(path.c_str(), nb::cast<int64_t>(place[1]),
                                              nb::cast<size_t>(place[2]), chosen));
  });
}

void set_data_writer(Compiler& self, nb::object callback) {
  PyObject* state = callback.is_none() ? nullptr : callback.ptr();
  if (state) self.kept.append(callback);
  check(compile_api().ModelCompilationOptions_SetEpContextDataWriteFunc(
      self.handle.get(), state ? write_named : nullptr, state));
}

void compile_to_stream(Compiler& self, nb::object callback) {
  const Turn turn(self);
  check(compile_api().ModelCompilationOptions_SetOutputModelWriteFunc(self.handle.get(),
                                                                      write_part, callback.ptr()));
  compile(self);
}

}  // namespace

void bind_compiler(nb::module_& module) {
  nb::class_<Compiler>(module, "Compiler")
      .def("__init__", &make_compiler, nb::arg("options"), nb::arg("path").none(),
           nb::arg("bytes").none())
      .def("set_embed", [](Compiler& self, bool embed) {
        check(
            compile_api().ModelCompilationOptions_SetEpContextEmbedMode(self.handle.get(), embed));
      })
      .def("set_initializers_file", [](Compiler& self, const std::string& path, size_t threshold) {
        check(compile_api().ModelCompilationOptions_SetOutputModelExternalInitializersFile(
            self.handle.get(), path.c_str(), threshold));
      })
      .def("set_flags", [](Compiler& self, uint32_t flags) {
        check(compile_api().ModelCompilationOptions_SetFlags(self.handle.get(), flags));
      })
      .def("set_level", [](Compiler& self, int level) {
        check(compile_api().ModelCompilationOptions_SetGraphOptimizationLevel(
            self.handle.get(), static_cast<GraphOptimizationLevel>(level)));
      })
      .def("set_binary_information", [](Compiler& self, const std::string& folder,
                                        const std::string& name) {
        check(compile_api().ModelCompilationOptions_SetEpContextBinaryInformation(
            self.handle.get(), folder.c_str(), name.c_str()));
      })
      .def("set_weightless_mode", [](Compiler& self, int mode) {
        check(compile_api().ModelCompilationOptions_SetWeightlessMode(
            self.handle.get(), static_cast<OrtWeightlessSupport>(mode)));
      })
      .def("set_locator", [](Compiler& self, nb::object callback) {
        self.kept.append(callback);
        check(compile_api().ModelCompilationOptions_SetOutputModelGetInitializerLocationFunc(
            self.handle.get(), locate_initializer, callback.ptr()));
      })
      .def("set_write_data", &set_data_writer, nb::arg("callback").none())
      .def("compile_to_file", &compile_to_file)
      .def("compile_to_default", &compile_to_default)
      .def("compile_to_bytes", &compile_to_bytes)
      .def("compile_to_stream", &compile_to_stream);
}

}  // namespace sardonyx::python
