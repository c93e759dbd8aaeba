// Sessions: creation, description, run.
#include "session.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "devices.h"
#include "options.h"
#include "value.h"

namespace sardonyx::python {
namespace {

using CountFunction = OrtStatus* (*)(const OrtSession*, size_t*);
using NameFunction = OrtStatus* (*)(const OrtSession*, size_t, OrtAllocator*, char**);
using TypeFunction = OrtStatus* (*)(const OrtSession*, size_t, OrtTypeInfo**);

std::vector<Port> read_ports(const OrtSession* session, CountFunction get_count,
                             NameFunction get_name, TypeFunction get_type) {
  size_t count = 0;
  check(get_count(session, &count));
  std::vector<Port> ports;
  for (size_t i = 0; i < count; ++i) {
    char* name = nullptr;
    check(get_name(session, i, cpu_allocator(), &name));
    std::string text = take_string(name);
    OrtTypeInfo* info = nullptr;
    check(get_type(session, i, &info));
    TypeInfoHandle owner(info);
    ports.push_back({std::move(text), read_type(info)});
  }
  return ports;
}

void read_interface(Session& session) {
  const OrtApi& c = api();
  const OrtSession* raw = session.handle.get();
  session.inputs = read_ports(raw, c.SessionGetInputCount, c.SessionGetInputName,
                              c.SessionGetInputTypeInfo);
  session.outputs = read_ports(raw, c.SessionGetOutputCount, c.SessionGetOutputName,
                               c.SessionGetOutputTypeInfo);
  session.initializers = read_ports(raw, c.SessionGetOverridableInitializerCount,
                                    c.SessionGetOverridableInitializerName,
                                    c.SessionGetOverridableInitializerTypeInfo);
  for (const Port& port : session.outputs) session.output_names.push_back(port.name.c_str());
}

void make_session(Session* place, const Options& options, nb::object path, nb::object bytes) {
  OrtSession* made = nullptr;
  OrtStatus* status = nullptr;
  OrtEnv* env = environment();
  if (!path.is_none()) {
    const auto name = nb::cast<std::string>(path);
    nb::gil_scoped_release unlocked;
    status = api().CreateSession(env, name.c_str(), options.handle.get(), &made);
  } else {
    const auto data = nb::cast<nb::bytes>(bytes);
    nb::gil_scoped_release unlocked;
    status = api().CreateSessionFromArray(env, data.data(), data.size(), options.handle.get(),
                                          &made);
  }
  check(status);
  new (place) Session();
  place->handle.reset(made);
  place->kept = nb::make_tuple(bytes, options.kept);
  read_interface(*place);
}

// The values of one call, in the form that the C interface takes them.
struct Call {
  std::vector<std::string> input_texts;
  std::vector<const char*> input_names;
  std::vector<const OrtValue*> inputs;
  std::vector<Fed> fed;
  std::vector<std::string> output_texts;
  std::vector<const char*> output_names;
  std::vector<OrtValue*> outputs;

  Call() = default;
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    for (OrtValue* value : outputs) api().ReleaseValue(value);
  }
};

[[noreturn]] void raise_feed_error(nb::handle session, nb::handle feeds) {
  nb::module_::import_("sardonyx.feeds").attr("raise_feed_error")(session, feeds);
  throw nb::value_error("the feeds do not fit the model");
}

void add_feeds(Call& call, nb::handle owner, const Session& session, nb::dict feeds) {
  size_t required = 0;
  const size_t count = nb::len(feeds);
  call.fed.reserve(count);
  call.input_texts.reserve(count);
  for (auto [key, object] : feeds) {
    const Port* port =
        PyUnicode_Check(key.ptr()) ? session.find_feed(PyUnicode_AsUTF8(key.ptr())) : nullptr;
    if (!port) raise_feed_error(owner, feeds);
    if (port >= session.inputs.data() && port < session.inputs.data() + session.inputs.size() &&
        port->type.kind != ONNX_TYPE_OPTIONAL) {
      ++required;
    }
    if (Value* value = value_in(object)) {
      call.inputs.push_back(value->handle.get());
    } else {
      call.fed.push_back(from_python(object, port->type, port->name));
      if (!call.fed.back().value) {  // none for an optional input: it is left out
        call.fed.pop_back();
        continue;
      }
      call.inputs.push_back(call.fed.back().value.get());
    }
    call.input_names.push_back(port->name.c_str());
  }
  size_t expected = 0;
  for (const Port& port : session.inputs) expected += port.type.kind != ONNX_TYPE_OPTIONAL;
  if (required < expected) raise_feed_error(owner, feeds);
}

void add_outputs(Call& call, nb::handle owner, const Session& session, nb::object names) {
  if (names.is_none() || nb::len(names) == 0) {
    call.output_names = session.output_names;
  } else {
    if (PyUnicode_Check(names.ptr())) {
      throw nb::type_error("output_names must be a list of names, found a string");
    }
    for (nb::handle name : names) call.output_texts.emplace_back(nb::cast<std::string>(name));
    for (const std::string& name : call.output_texts) {
      bool known = false;
      for (const char* own : session.output_names) known = known || name == own;
      if (!known) {
        nb::module_::import_("sardonyx.feeds").attr("raise_output_error")(owner, name);
      }
      call.output_names.push_back(name.c_str());
    }
  }
  call.outputs.assign(call.output_names.size(), nullptr);
}

void execute(Call& call, Session& session, const OrtRunOptions* options) {
  OrtStatus* status = nullptr;
  {
    nb::gil_scoped_release unlocked;
    status = api().Run(session.handle.get(), options, call.input_names.data(), call.inputs.data(),
                       call.inputs.size(), call.output_names.data(), call.output_names.size(),
                       call.outputs.data());
  }
  check(status);
}

const OrtRunOptions* raw(nb::handle options) {
  if (options.is_none()) return nullptr;
  return nb::cast<RunOptions&>(options).handle.get();
}

nb::list take_outputs(Call& call, bool as_values) {
  nb::list result;
  for (OrtValue*& output : call.outputs) {
    ValueHandle value(std::exchange(output, nullptr));
    if (!value) {
      result.append(nb::none());
    } else if (as_values) {
      result.append(make_value(std::move(value)));
    } else {
      result.append(take_python(std::move(value)));
    }
  }
  return result;
}

nb::list run(nb::handle self, nb::object names, nb::object feeds, nb::object options,
             bool as_values) {
  Session& session = *nb::cast<Session*>(self);
  Call call;
  add_outputs(call, self, session, names);
  add_feeds(call, self, session, as_dict(feeds));
  execute(call, session, raw(options));
  return take_outputs(call, as_values);
}

// --- asynchronous runs

// Runs that have not called back yet; the interpreter waits for them before it ends.
std::atomic<int> pending_runs{0};

void wait_for_pending_runs() {
  nb::gil_scoped_release unlocked;
  while (pending_runs.load() > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

struct AsyncCall {
  Call call;
  nb::object session;
  nb::object feeds;
  nb::object options;
  nb::object callback;
  nb::object user_data;
};

void finish_async(void* state, OrtValue**, size_t, OrtStatus* status) {
  nb::gil_scoped_acquire locked;
  std::unique_ptr<AsyncCall> task(static_cast<AsyncCall*>(state));
  std::string error;
  nb::object results = nb::list();
  try {
    try {
      check(status);
      results = take_outputs(task->call, false);
    } catch (const nb::python_error& raised) {
      error = nb::str(raised.value()).c_str();
    }
    task->callback(results, task->user_data, nb::str(error.c_str()));
  } catch (nb::python_error& raised) {
    raised.discard_as_unraisable("the callback of run_async");
  }
  task.reset();
  pending_runs.fetch_sub(1);
}

void run_async(nb::handle self, nb::object names, nb::object feeds, nb::object callback,
               nb::object user_data, nb::object options) {
  Session& session = *nb::cast<Session*>(self);
  auto task = std::make_unique<AsyncCall>();
  add_outputs(task->call, self, session, names);
  task->feeds = as_dict(feeds).attr("copy")();
  add_feeds(task->call, self, session, nb::borrow<nb::dict>(task->feeds));
  task->session = nb::borrow(self);
  task->options = options;
  task->callback = callback;
  task->user_data = user_data;
  Call& call = task->call;
  const OrtRunOptions* run_options = raw(options);
  AsyncCall* state = task.release();
  OrtStatus* status = nullptr;
  pending_runs.fetch_add(1);
  {
    nb::gil_scoped_release unlocked;
    status = api().RunAsync(session.handle.get(), run_options, call.input_names.data(),
                            call.inputs.data(), call.inputs.size(), call.output_names.data(),
                            call.output_names.size(), call.outputs.data(), finish_async, state);
  }
  if (status) {
    task.reset(state);
    pending_runs.fetch_sub(1);
  }
  check(status);
}

// --- what a session tells about itself

using TextFunction = OrtStatus* (*)(const OrtModelMetadata*, OrtAllocator*, char**);

std::string metadata_text(const OrtModelMetadata* metadata, TextFunction get) {
  char* text = nullptr;
  check(get(metadata, cpu_allocator(), &text));
  return take_string(text);
}

nb::dict custom_metadata(const OrtModelMetadata* metadata) {
  char** keys = nullptr;
  int64_t count = 0;
  check(api().ModelMetadataGetCustomMetadataMapKeys(metadata, cpu_allocator(), &keys, &count));
  nb::dict result;
  for (int64_t i = 0; i < count; ++i) {
    const std::string key = take_string(keys[i]);
    char* value = nullptr;
    check(api().ModelMetadataLookupCustomMetadataMap(metadata, cpu_allocator(), key.c_str(),
                                                     &value));
    result[key.c_str()] = nb::str(take_string(value).c_str());
  }
  if (keys) cpu_allocator()->Free(cpu_allocator(), keys);
  return result;
}

nb::dict metadata_of(const Session& session) {
  OrtModelMetadata* metadata = nullptr;
  check(api().SessionGetModelMetadata(session.handle.get(), &metadata));
  MetadataHandle owner(metadata);
  const OrtApi& c = api();
  nb::dict result;
  result["producer_name"] = metadata_text(metadata, c.ModelMetadataGetProducerName);
  result["graph_name"] = metadata_text(metadata, c.ModelMetadataGetGraphName);
  result["domain"] = metadata_text(metadata, c.ModelMetadataGetDomain);
  result["description"] = metadata_text(metadata, c.ModelMetadataGetDescription);
  result["graph_description"] = metadata_text(metadata, c.ModelMetadataGetGraphDescription);
  int64_t version = 0;
  check(c.ModelMetadataGetVersion(metadata, &version));
  result["version"] = version;
  result["custom_metadata_map"] = custom_metadata(metadata);
  return result;
}

nb::list describe_ports(const std::vector<Port>& ports) {
  nb::list result;
  for (const Port& port : ports) {
    result.append(nb::make_tuple(port.name, port.type.name(), port.type.python_shape()));
  }
  return result;
}

nb::list assignment_of(const Session& session) {
  const OrtEpAssignedSubgraph* const* parts = nullptr;
  size_t part_count = 0;
  check(api().Session_GetEpGraphAssignmentInfo(session.handle.get(), &parts, &part_count));
  nb::list result;
  for (size_t i = 0; i < part_count; ++i) {
    const char* ep = nullptr;
    check(api().EpAssignedSubgraph_GetEpName(parts[i], &ep));
    const OrtEpAssignedNode* const* nodes = nullptr;
    size_t node_count = 0;
    check(api().EpAssignedSubgraph_GetNodes(parts[i], &nodes, &node_count));
    nb::list members;
    for (size_t k = 0; k < node_count; ++k) {
      const char* name = nullptr;
      const char* domain = nullptr;
      const char* type = nullptr;
      check(api().EpAssignedNode_GetName(nodes[k], &name));
      check(api().EpAssignedNode_GetDomain(nodes[k], &domain));
      check(api().EpAssignedNode_GetOperatorType(nodes[k], &type));
      members.append(nb::make_tuple(name, domain, type));
    }
    result.append(nb::make_tuple(ep, members));
  }
  return result;
}

nb::list memory_infos(const Session& session, bool inputs) {
  std::vector<const OrtMemoryInfo*> infos(inputs ? session.inputs.size() : session.outputs.size());
  const OrtSession* raw_session = session.handle.get();
  check(inputs ? api().SessionGetMemoryInfoForInputs(raw_session, infos.data(), infos.size())
               : api().SessionGetMemoryInfoForOutputs(raw_session, infos.data(), infos.size()));
  nb::list result;
  for (const OrtMemoryInfo* info : infos) result.append(info ? make_memory(info) : nb::none());
  return result;
}

nb::list ep_devices(const Session& session, bool inputs) {
  std::vector<const OrtEpDevice*> devices(inputs ? session.inputs.size() : session.outputs.size());
  const OrtSession* raw_session = session.handle.get();
  check(inputs ? api().SessionGetEpDeviceForInputs(raw_session, devices.data(), devices.size())
               : api().SessionGetEpDeviceForOutputs(raw_session, devices.data(), devices.size()));
  nb::list result;
  for (const auto* device : devices) result.append(device ? make_device(device) : nb::none());
  return result;
}

std::string end_profiling(Session& session) {
  char* path = nullptr;
  check(api().SessionEndProfiling(session.handle.get(), cpu_allocator(), &path));
  return take_string(path);
}

void refit(Session& session, const std::vector<std::string>& names, nb::list values) {
  if (!own_api()) throw nb::value_error("refit() needs the library of Sardonyx itself");
  std::vector<const char*> texts;
  for (const std::string& name : names) texts.push_back(name.c_str());
  std::vector<const OrtValue*> weights;
  for (nb::handle value : values) {
    const Value* inside = value_in(value);
    weights.push_back(inside == nullptr ? nullptr : inside->handle.get());
  }
  OrtSession* handle = session.handle.get();
  OrtStatus* status = nullptr;
  {
    const nb::gil_scoped_release release;
    status = own_api()->SessionRefit(handle, texts.data(), weights.data(), weights.size());
  }
  check(status);
}

nb::object describe_session(const Session& session) {
  if (!own_api()) return nb::none();
  char* json = nullptr;
  check(own_api()->DescribeSession(session.handle.get(), cpu_allocator(), &json));
  return nb::str(take_string(json).c_str());
}

nb::object session_placement(const Session& session) {
  if (!own_api()) return nb::none();
  char* json = nullptr;
  check(own_api()->DescribePlacement(session.handle.get(), cpu_allocator(), &json));
  return nb::str(take_string(json).c_str());
}

}  // namespace

const Port* Session::find_feed(const char* name) const {
  for (const Port& port : inputs) {
    if (port.name == name) return &port;
  }
  for (const Port& port : initializers) {
    if (port.name == name) return &port;
  }
  return nullptr;
}

void bind_session(nb::module_& module) {
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(&wait_for_pending_runs));
  nb::class_<Session>(module, "Session")
      .def("__init__", &make_session, nb::arg("options"), nb::arg("path").none(),
           nb::arg("bytes").none())
      .def("run", [](nb::handle self, nb::object names, nb::object feeds, nb::object options) {
             return run(self, names, feeds, options, false);
           }, nb::arg("output_names").none(), nb::arg("feeds"), nb::arg("options").none())
      .def("run_values", [](nb::handle self, nb::object names, nb::object feeds,
                            nb::object options) { return run(self, names, feeds, options, true); },
           nb::arg("output_names").none(), nb::arg("feeds"), nb::arg("options").none())
      .def("run_async", &run_async, nb::arg("output_names").none(), nb::arg("feeds"),
           nb::arg("callback"), nb::arg("user_data").none(), nb::arg("options").none())
      .def("inputs", [](const Session& self) { return describe_ports(self.inputs); })
      .def("outputs", [](const Session& self) { return describe_ports(self.outputs); })
      .def("initializers", [](const Session& self) { return describe_ports(self.initializers); })
      .def("metadata", &metadata_of)
      .def("assignment", &assignment_of)
      .def("memory_infos", &memory_infos)
      .def("ep_devices", &ep_devices)
      .def("end_profiling", &end_profiling)
      .def("describe", &describe_session)
      .def("placement", &session_placement)
      .def("refit", &refit, nb::arg("names"), nb::arg("values"))
      .def("profiling_start_ns", [](const Session& self) {
        uint64_t start = 0;
        check(api().SessionGetProfilingStartTimeNs(self.handle.get(), &start));
        return start;
      })
      .def("set_ep_dynamic_options", [](Session& self, nb::object options) {
        const Pairs pairs(options);
        check(api().SetEpDynamicOptions(self.handle.get(), pairs.keys.data(), pairs.values.data(),
                                        pairs.keys.size()));
      })
      .def("release_captured_graph", [](Session& self, int id) {
        check(api().SessionReleaseCapturedGraph(self.handle.get(), id));
      });
}

}  // namespace sardonyx::python
