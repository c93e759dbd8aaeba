// IO binding: inputs and outputs that stay where they are between runs.
#include <nanobind/stl/string.h>

#include "devices.h"
#include "options.h"
#include "session.h"
#include "value.h"

namespace sardonyx::python {
namespace {

struct Binding {
  Handle<OrtIoBinding, &OrtApi::ReleaseIoBinding> handle;
};

void make_binding(Binding* place, Session& session) {
  OrtIoBinding* made = nullptr;
  check(api().CreateIoBinding(session.handle.get(), &made));
  new (place) Binding();
  place->handle.reset(made);
}

OrtValue* required(nb::handle object) {
  Value* value = value_in(object);
  if (!value) throw nb::type_error("expected an OrtValue");
  return value->handle.get();
}

nb::list outputs_of(const Binding& self) {
  OrtValue** values = nullptr;
  size_t count = 0;
  check(api().GetBoundOutputValues(self.handle.get(), cpu_allocator(), &values, &count));
  std::vector<ValueHandle> owned;
  for (size_t i = 0; i < count; ++i) owned.emplace_back(values[i]);
  if (values) cpu_allocator()->Free(cpu_allocator(), values);
  nb::list result;
  for (ValueHandle& value : owned) result.append(make_value(std::move(value)));
  return result;
}

void run_binding(Session& session, const Binding& binding, nb::object options) {
  const OrtRunOptions* raw =
      options.is_none() ? nullptr : nb::cast<RunOptions&>(options).handle.get();
  OrtStatus* status = nullptr;
  {
    nb::gil_scoped_release unlocked;
    status = api().RunWithBinding(session.handle.get(), raw, binding.handle.get());
  }
  check(status);
}

}  // namespace

void bind_binding(nb::module_& module) {
  nb::class_<Binding>(module, "Binding")
      .def("__init__", &make_binding)
      .def("bind_input", [](Binding& self, const std::string& name, nb::handle value) {
        check(api().BindInput(self.handle.get(), name.c_str(), required(value)));
      })
      .def("bind_output", [](Binding& self, const std::string& name, nb::handle value) {
        check(api().BindOutput(self.handle.get(), name.c_str(), required(value)));
      })
      .def("bind_output_to", [](Binding& self, const std::string& name, nb::object memory) {
        const OrtMemoryInfo* where = memory.is_none() ? cpu_memory() : memory_in(memory);
        check(api().BindOutputToDevice(self.handle.get(), name.c_str(), where));
      }, nb::arg("name"), nb::arg("memory").none())
      .def("outputs", &outputs_of)
      .def("clear_inputs", [](Binding& self) { api().ClearBoundInputs(self.handle.get()); })
      .def("clear_outputs", [](Binding& self) { api().ClearBoundOutputs(self.handle.get()); })
      .def("synchronize_inputs",
           [](Binding& self) { check(api().SynchronizeBoundInputs(self.handle.get())); })
      .def("synchronize_outputs",
           [](Binding& self) { check(api().SynchronizeBoundOutputs(self.handle.get())); });
  module.def("run_binding", &run_binding, nb::arg("session"), nb::arg("binding"),
             nb::arg("options").none());
}

}  // namespace sardonyx::python
