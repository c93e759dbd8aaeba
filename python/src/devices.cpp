// Devices, memory infos, allocators, plugin libraries, adapters.
#include "devices.h"

#include <nanobind/stl/string.h>

#include "value.h"

namespace sardonyx::python {
namespace {

struct Device {
  const OrtEpDevice* handle;
};

struct Hardware {
  const OrtHardwareDevice* handle;
};

struct Stream {
  Handle<OrtSyncStream, &OrtApi::ReleaseSyncStream> handle;
};

struct Adapter {
  Handle<OrtLoraAdapter, &OrtApi::ReleaseLoraAdapter> handle;
};

struct Memory {
  const OrtMemoryInfo* handle = nullptr;
  MemoryHandle owner;
};

Memory own(OrtMemoryInfo* made) {
  Memory memory;
  memory.owner.reset(made);
  memory.handle = made;
  return memory;
}

Memory make_memory_info(const std::string& name, int allocator, int id, int memory_type) {
  OrtMemoryInfo* made = nullptr;
  check(api().CreateMemoryInfo(name.c_str(), static_cast<OrtAllocatorType>(allocator), id,
                               static_cast<OrtMemType>(memory_type), &made));
  return own(made);
}

Memory make_memory_info_v2(const std::string& name, int device, uint32_t vendor, int id,
                           int memory_type, size_t alignment, int allocator) {
  OrtMemoryInfo* made = nullptr;
  check(api().CreateMemoryInfo_V2(name.c_str(), static_cast<OrtMemoryInfoDeviceType>(device),
                                  vendor, id, static_cast<OrtDeviceMemoryType>(memory_type),
                                  alignment, static_cast<OrtAllocatorType>(allocator), &made));
  return own(made);
}

std::string memory_name(const Memory& self) {
  const char* name = nullptr;
  check(api().MemoryInfoGetName(self.handle, &name));
  return name ? name : "";
}

int memory_id(const Memory& self) {
  int id = 0;
  check(api().MemoryInfoGetId(self.handle, &id));
  return id;
}

int memory_type(const Memory& self) {
  OrtMemType type = OrtMemTypeDefault;
  check(api().MemoryInfoGetMemType(self.handle, &type));
  return type;
}

int allocator_type(const Memory& self) {
  OrtAllocatorType type = OrtInvalidAllocator;
  check(api().MemoryInfoGetType(self.handle, &type));
  return type;
}

nb::object device_memory(const Device& self, int type) {
  const auto wanted = static_cast<OrtDeviceMemoryType>(type);
  const auto* memory = api().EpDevice_MemoryInfo(self.handle, wanted);
  return memory ? make_memory(memory) : nb::none();
}

nb::list list_devices() {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  check(api().GetEpDevices(environment(), &devices, &count));
  nb::list result;
  for (size_t i = 0; i < count; ++i) result.append(make_device(devices[i]));
  return result;
}

nb::list list_hardware() {
  size_t count = 0;
  check(api().GetNumHardwareDevices(environment(), &count));
  std::vector<const OrtHardwareDevice*> devices(count);
  check(api().GetHardwareDevices(environment(), devices.data(), count));
  nb::list result;
  for (const OrtHardwareDevice* device : devices) result.append(nb::cast(Hardware{device}));
  return result;
}

ArenaHandle make_arena(nb::object settings) {
  if (settings.is_none()) return {};
  std::vector<std::string> names;
  std::vector<size_t> values;
  for (auto [key, value] : as_dict(settings)) {
    names.emplace_back(nb::str(key).c_str());
    values.push_back(nb::cast<size_t>(value));
  }
  Strings keys(std::move(names));
  OrtArenaCfg* made = nullptr;
  check(api().CreateArenaCfgV2(keys.data(), values.data(), values.size(), &made));
  return ArenaHandle(made);
}

void register_allocator(nb::handle memory, nb::object arena) {
  ArenaHandle settings = make_arena(arena);
  check(api().CreateAndRegisterAllocator(environment(), memory_in(memory), settings.get()));
}

void register_allocator_v2(const std::string& provider, nb::handle memory, nb::object options,
                           nb::object arena) {
  ArenaHandle settings = make_arena(arena);
  const Pairs pairs(options);
  check(api().CreateAndRegisterAllocatorV2(environment(), provider.c_str(), memory_in(memory),
                                           settings.get(), pairs.keys.data(), pairs.values.data(),
                                           pairs.keys.size()));
}

void copy_tensors(nb::list sources, nb::list targets, nb::object stream) {
  std::vector<const OrtValue*> from;
  std::vector<OrtValue*> to;
  for (nb::handle value : sources) {
    if (!value_in(value)) throw nb::type_error("copy_tensors takes OrtValues");
    from.push_back(value_in(value)->handle.get());
  }
  for (nb::handle value : targets) {
    if (!value_in(value)) throw nb::type_error("copy_tensors takes OrtValues");
    to.push_back(value_in(value)->handle.get());
  }
  if (from.size() != to.size()) throw nb::value_error("there must be one target for each source");
  OrtSyncStream* on = stream.is_none() ? nullptr : nb::cast<Stream&>(stream).handle.get();
  check(api().CopyTensors(environment(), from.data(), to.data(), on, from.size()));
}

nb::list available_providers() {
  char** names = nullptr;
  int count = 0;
  check(api().GetAvailableProviders(&names, &count));
  nb::list result;
  for (int i = 0; i < count; ++i) result.append(nb::str(names[i]));
  check(api().ReleaseAvailableProviders(names, count));
  return result;
}

std::string model_compatibility(nb::object path, nb::object bytes, const std::string& ep_type) {
  char* text = nullptr;
  if (!path.is_none()) {
    const auto name = nb::cast<std::string>(path);
    check(api().GetCompatibilityInfoFromModel(name.c_str(), ep_type.c_str(), cpu_allocator(),
                                              &text));
  } else {
    const auto data = nb::cast<nb::bytes>(bytes);
    check(api().GetCompatibilityInfoFromModelBytes(data.c_str(), data.size(), ep_type.c_str(),
                                                   cpu_allocator(), &text));
  }
  return take_string(text);
}

int device_compatibility(nb::list devices, const std::string& info) {
  std::vector<const OrtEpDevice*> pointers;
  for (nb::handle device : devices) pointers.push_back(device_in(device));
  OrtCompiledModelCompatibility verdict = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  check(api().GetModelCompatibilityForEpDevices(pointers.data(), pointers.size(), info.c_str(),
                                                &verdict));
  return verdict;
}

void bind_memory(nb::module_& module) {
  nb::class_<Memory>(module, "MemoryInfo")
      .def_static("make", &make_memory_info)
      .def_static("make_v2", &make_memory_info_v2)
      .def_prop_ro("name", &memory_name)
      .def_prop_ro("device_id", &memory_id)
      .def_prop_ro("mem_type", &memory_type)
      .def_prop_ro("allocator_type", &allocator_type)
      .def_prop_ro("device_mem_type",
                   [](const Memory& self) {
                     return static_cast<int>(api().MemoryInfoGetDeviceMemType(self.handle));
                   })
      .def_prop_ro("device_vendor_id", [](const Memory& self) {
        return api().MemoryInfoGetVendorId(self.handle);
      });
}

void bind_device_classes(nb::module_& module) {
  nb::class_<Hardware>(module, "HardwareDevice")
      .def_prop_ro("type",
                   [](const Hardware& self) {
                     return static_cast<int>(api().HardwareDevice_Type(self.handle));
                   })
      .def_prop_ro("vendor_id",
                   [](const Hardware& self) { return api().HardwareDevice_VendorId(self.handle); })
      .def_prop_ro("device_id",
                   [](const Hardware& self) { return api().HardwareDevice_DeviceId(self.handle); })
      .def_prop_ro("vendor",
                   [](const Hardware& self) {
                     const char* text = api().HardwareDevice_Vendor(self.handle);
                     return std::string(text ? text : "");
                   })
      .def_prop_ro("metadata", [](const Hardware& self) {
        return to_dict(api().HardwareDevice_Metadata(self.handle));
      });
  nb::class_<Device>(module, "EpDevice")
      .def_prop_ro("ep_name", [](const Device& self) {
        return std::string(api().EpDevice_EpName(self.handle));
      })
      .def_prop_ro("ep_vendor", [](const Device& self) {
        return std::string(api().EpDevice_EpVendor(self.handle));
      })
      .def_prop_ro("ep_metadata", [](const Device& self) {
        return to_dict(api().EpDevice_EpMetadata(self.handle));
      })
      .def_prop_ro("ep_options", [](const Device& self) {
        return to_dict(api().EpDevice_EpOptions(self.handle));
      })
      .def_prop_ro("device",
                   [](const Device& self) {
                     return nb::cast(Hardware{api().EpDevice_Device(self.handle)});
                   })
      .def("memory_info", &device_memory)
      .def("create_sync_stream", [](const Device& self) {
        OrtSyncStream* made = nullptr;
        check(api().CreateSyncStreamForEpDevice(self.handle, nullptr, &made));
        Stream stream;
        stream.handle.reset(made);
        return nb::cast(std::move(stream));
      });
  nb::class_<Stream>(module, "SyncStream").def("get_handle", [](const Stream& self) {
    return reinterpret_cast<size_t>(api().SyncStream_GetHandle(self.handle.get()));
  });
}

}  // namespace

const OrtEpDevice* device_in(nb::handle object) {
  nb::object inner = nb::borrow(object);
  if (nb::hasattr(object, "_native")) inner = object.attr("_native");
  return nb::cast<Device&>(inner).handle;
}

nb::object make_device(const OrtEpDevice* device) {
  return nb::module_::import_("sardonyx.devices").attr("OrtEpDevice")(nb::cast(Device{device}));
}

const OrtLoraAdapter* adapter_in(nb::handle object) {
  nb::object inner = nb::borrow(object);
  if (nb::hasattr(object, "_native")) inner = object.attr("_native");
  return nb::cast<Adapter&>(inner).handle.get();
}

const OrtMemoryInfo* memory_in(nb::handle object) {
  nb::object inner = nb::borrow(object);
  if (nb::hasattr(object, "_native")) inner = object.attr("_native");
  return nb::cast<Memory&>(inner).handle;
}

nb::object make_memory(const OrtMemoryInfo* memory) {
  Memory borrowed;
  borrowed.handle = memory;
  nb::object inner = nb::cast(std::move(borrowed));
  return nb::module_::import_("sardonyx.devices").attr("OrtMemoryInfo").attr("_from_native")(inner);
}

void bind_devices(nb::module_& module) {
  bind_memory(module);
  bind_device_classes(module);
  nb::class_<Adapter>(module, "Adapter").def_static("load", [](const std::string& path) {
    OrtLoraAdapter* made = nullptr;
    check(api().CreateLoraAdapter(path.c_str(), nullptr, &made));
    Adapter adapter;
    adapter.handle.reset(made);
    return nb::cast(std::move(adapter));
  });
  module.def("get_ep_devices", &list_devices);
  module.def("get_hardware_devices", &list_hardware);
  module.def("get_available_providers", &available_providers);
  module.def("register_allocator", &register_allocator, nb::arg("memory"), nb::arg("arena").none());
  module.def("register_allocator_v2", &register_allocator_v2, nb::arg("provider"),
             nb::arg("memory"), nb::arg("options"), nb::arg("arena").none());
  module.def("copy_tensors", &copy_tensors, nb::arg("sources"), nb::arg("targets"),
             nb::arg("stream").none());
  module.def("model_compatibility", &model_compatibility, nb::arg("path").none(),
             nb::arg("bytes").none(), nb::arg("ep_type"));
  module.def("device_compatibility", &device_compatibility);
  module.def("register_library", [](const std::string& name, const std::string& path) {
    check(api().RegisterExecutionProviderLibrary(environment(), name.c_str(), path.c_str()));
  });
  module.def("unregister_library", [](const std::string& name) {
    check(api().UnregisterExecutionProviderLibrary(environment(), name.c_str()));
  });
}

}  // namespace sardonyx::python
