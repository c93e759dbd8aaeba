// The extension module sardonyx._native: the C interface as Python objects. The package around it
// gives them their public names; see sardonyx/__init__.py.
#define SARDONYX_IMPORTS_NUMPY
#include "numpy_api.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <optional>

#include "api.h"
#include "options.h"

namespace sardonyx::python {
namespace {

bool import_numpy() { return _import_array() == 0; }

std::string take_json(OrtStatus* status, char*& json) {
  check(status);
  return take_string(json);
}

const SardonyxApi& required_api() {
  if (own_api()) return *own_api();
  PyErr_SetString(PyExc_RuntimeError, "the loaded runtime library is not Sardonyx's own");
  throw nb::python_error();
}

void bind_own(nb::module_& module) {
  module.def("is_own_library", [] { return own_api() != nullptr; });
  module.def("set_random_seed",
             [](int64_t seed) { check(required_api().SetRandomSeed(seed)); });
  module.def("describe_build", [] {
    char* json = nullptr;
    return take_json(required_api().DescribeBuild(cpu_allocator(), &json), json);
  });
  module.def("describe_options", [] {
    char* json = nullptr;
    return take_json(required_api().DescribeOptions(cpu_allocator(), &json), json);
  });
  module.def("describe_memory", [] {
    char* json = nullptr;
    return take_json(required_api().DescribeMemory(cpu_allocator(), &json), json);
  });
  module.def("describe_model", [](const std::string& path) {
    char* json = nullptr;
    return take_json(required_api().DescribeModel(path.c_str(), cpu_allocator(), &json), json);
  });
  module.def("describe_context", [](const std::string& path, bool verify_all) {
    char* json = nullptr;
    OrtAllocator* allocator = cpu_allocator();
    return take_json(required_api().DescribeContext(path.c_str(), verify_all, allocator, &json),
                     json);
  });
  module.def("explain_model", [](const std::string& path, const Options& options,
                                 const std::optional<std::string>& devices) {
    char* json = nullptr;
    return take_json(
        required_api().ExplainModel(environment(), path.c_str(), options.handle.get(),
                                    devices ? devices->c_str() : nullptr, cpu_allocator(), &json),
        json);
  }, nanobind::arg("path"), nanobind::arg("options"), nanobind::arg("devices").none());
  module.def("suggest_patterns", [](const std::string& path) {
    char* json = nullptr;
    return take_json(required_api().SuggestPatterns(path.c_str(), cpu_allocator(), &json), json);
  });
  module.def("plan_to_html", [](const std::string& plan) {
    char* html = nullptr;
    return take_json(required_api().PlanToHtml(plan.c_str(), cpu_allocator(), &html), html);
  });
  module.def("plan_model", [](const std::string& path, const Options& options) {
    char* json = nullptr;
    return take_json(required_api().PlanModel(environment(), path.c_str(), options.handle.get(),
                                              cpu_allocator(), &json),
                     json);
  });
}

}  // namespace
}  // namespace sardonyx::python

NB_MODULE(_native, module) {
  namespace python = sardonyx::python;
  nanobind::set_leak_warnings(false);  // objects that live until the process ends are no leaks
  if (!python::import_numpy()) throw nanobind::python_error();
  module.doc() = "The C interface of the runtime as Python objects; use the package sardonyx.";
  module.def("load_library", &python::load_library);
  module.def("set_environment_threads", &python::set_environment_threads);
  module.def("set_environment_severity", &python::set_environment_severity);
  module.def("set_telemetry", [](bool on) {
    OrtEnv* env = python::environment();
    python::check(on ? python::api().EnableTelemetryEvents(env)
                     : python::api().DisableTelemetryEvents(env));
  });
  module.def("version_string", [] { return python::version_string(); });
  module.def("build_info", [] {
    const char* text = python::api().GetBuildInfoString();
    return std::string(text ? text : "");
  });
  python::bind_own(module);
  python::bind_values(module);
  python::bind_devices(module);
  python::bind_options(module);
  python::bind_session(module);
  python::bind_binding(module);
  python::bind_compiler(module);
}
