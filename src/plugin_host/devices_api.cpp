// Functions about plugin libraries and the devices that they offer.
#include <algorithm>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/places.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/registry.h"

using sardonyx::plugin_host::Registry;

struct OrtDeviceEpIncompatibilityDetails {
  uint32_t reasons = 0;
  int32_t error_code = 0;
  std::string notes;
};

namespace sardonyx::capi {

OrtStatus* RegisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name,
                                            const ORTCHAR_T* path) noexcept {
  return guarded("RegisterExecutionProviderLibrary", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(registration_name, "registration_name"));
    SDX_TRY(require(path, "path"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    return registry->add_library(registration_name, path);
  });
}

OrtStatus* UnregisterExecutionProviderLibrary(OrtEnv* env, const char* registration_name) noexcept {
  return guarded("UnregisterExecutionProviderLibrary", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(registration_name, "registration_name"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    return registry->remove_library(registration_name);
  });
}

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** ep_devices,
                        size_t* ep_device_count) noexcept {
  return guarded("GetEpDevices", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(ep_devices, "ep_devices"));
    SDX_TRY(require(ep_device_count, "ep_device_count"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    const auto& devices = registry->ep_devices();
    *ep_devices = devices.data();
    *ep_device_count = devices.size();
    return {};
  });
}

OrtStatus* GetNumHardwareDevices(const OrtEnv* env, size_t* device_count) noexcept {
  return guarded("GetNumHardwareDevices", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(device_count, "device_count"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    *device_count = registry->hardware_devices().size();
    return {};
  });
}

OrtStatus* GetHardwareDevices(const OrtEnv* env, const OrtHardwareDevice** devices,
                              size_t device_count) noexcept {
  return guarded("GetHardwareDevices", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(devices, "devices"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    const auto& known = registry->hardware_devices();
    for (size_t i = 0; i < std::min(device_count, known.size()); ++i) devices[i] = known[i];
    return {};
  });
}

OrtStatus* GetHardwareDeviceEpIncompatibilityDetails(
    const OrtEnv* env, const char* ep_name, const OrtHardwareDevice* hardware_device,
    OrtDeviceEpIncompatibilityDetails** details) noexcept {
  return guarded("GetHardwareDeviceEpIncompatibilityDetails", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(ep_name, "ep_name"));
    SDX_TRY(require(hardware_device, "hardware_device"));
    SDX_TRY(require(details, "details"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    auto made = std::make_unique<OrtDeviceEpIncompatibilityDetails>();
    const auto factories = registry->factories_of(ep_name);
    if (factories.empty() && std::string_view(ep_name) != "CPUExecutionProvider") {
      return failure(Code::InvalidArgument, "no provider '{}' is registered", ep_name);
    }
    for (const auto& [library, factory] : factories) {
      const auto get = plugin_host::callback(
          *factory, &OrtEpFactory::GetHardwareDeviceIncompatibilityDetails, 24);
      if (get == nullptr) continue;
      SDX_TRY(plugin_host::guarded_call(
          library->name(), "GetHardwareDeviceIncompatibilityDetails",
          [&, asked = factory] { return get(asked, hardware_device, made.get()); }));
    }
    *details = made.release();
    return {};
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetReasonsBitmask(
    const OrtDeviceEpIncompatibilityDetails* details, uint32_t* reasons_bitmask) noexcept {
  return guarded("DeviceEpIncompatibilityDetails_GetReasonsBitmask", [&]() -> Status {
    SDX_TRY(require(details, "details"));
    SDX_TRY(require(reasons_bitmask, "reasons_bitmask"));
    *reasons_bitmask = details->reasons;
    return {};
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetNotes(const OrtDeviceEpIncompatibilityDetails* details,
                                                   const char** notes) noexcept {
  return guarded("DeviceEpIncompatibilityDetails_GetNotes", [&]() -> Status {
    SDX_TRY(require(details, "details"));
    SDX_TRY(require(notes, "notes"));
    *notes = details->notes.empty() ? nullptr : details->notes.c_str();
    return {};
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetErrorCode(
    const OrtDeviceEpIncompatibilityDetails* details, int32_t* error_code) noexcept {
  return guarded("DeviceEpIncompatibilityDetails_GetErrorCode", [&]() -> Status {
    SDX_TRY(require(details, "details"));
    SDX_TRY(require(error_code, "error_code"));
    *error_code = details->error_code;
    return {};
  });
}

void ReleaseDeviceEpIncompatibilityDetails(OrtDeviceEpIncompatibilityDetails* object) noexcept {
  delete object;
}

OrtStatus* EpDevice_GetMemoryCapacity(const OrtEpDevice* ep_device, OrtDeviceMemoryType memory_type,
                                      uint64_t* total_bytes, uint64_t* available_bytes) noexcept {
  return guarded("EpDevice_GetMemoryCapacity", [&]() -> Status {
    SDX_TRY(require(ep_device, "ep_device"));
    SDX_TRY(require(total_bytes, "total_bytes"));
    SDX_TRY(require(available_bytes, "available_bytes"));
    *total_bytes = *available_bytes = ep_device->device->memory_bytes;
    const auto library = ep_device->library.lock();
    if (library == nullptr) return {};
    const auto get =
        plugin_host::callback(*ep_device->factory, &OrtEpFactory::GetDeviceMemoryCapacity, 32);
    if (get == nullptr) return {};
    return plugin_host::guarded_call(library->name(), "GetDeviceMemoryCapacity", [&] {
      return get(ep_device->factory, ep_device->plugin_device, memory_type, total_bytes,
                 available_bytes);
    });
  });
}

namespace {

OrtCompiledModelCompatibility to_ort(Compatibility verdict) {
  switch (verdict) {
    case Compatibility::NotApplicable: break;
    case Compatibility::Optimal: return OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL;
    case Compatibility::PreferRecompilation:
      return OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION;
    case Compatibility::Unsupported: return OrtCompiledModelCompatibility_EP_UNSUPPORTED;
  }
  return OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
}

}  // namespace

OrtStatus* GetModelCompatibilityForEpDevices(const OrtEpDevice* const* ep_devices,
                                             size_t ep_device_count, const char* compatibility_info,
                                             OrtCompiledModelCompatibility* out_status) noexcept {
  return guarded("GetModelCompatibilityForEpDevices", [&]() -> Status {
    SDX_TRY(require(ep_devices, "ep_devices"));
    SDX_TRY(require(compatibility_info, "compatibility_info"));
    SDX_TRY(require(out_status, "out_status"));
    *out_status = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
    if (ep_device_count == 0) {
      return failure(Code::InvalidArgument, "expected at least one device, found none");
    }
    std::vector<const OrtHardwareDevice*> devices;
    for (size_t i = 0; i < ep_device_count; ++i) {
      SDX_TRY(require(ep_devices[i], "an execution provider device"));
      if (ep_devices[i]->ep_name != ep_devices[0]->ep_name) {
        return failure(Code::InvalidArgument,
                       "the devices are of '{}' and of '{}', not of one "
                       "provider",
                       ep_devices[0]->ep_name, ep_devices[i]->ep_name);
      }
      devices.push_back(ep_devices[i]->plugin_device);
    }
    if (const auto built_in = ep_devices[0]->provider.lock()) {
      SDX_ASSIGN(const Compatibility verdict, built_in->check_compatibility(compatibility_info));
      *out_status = to_ort(verdict);
      return {};
    }
    const auto library = ep_devices[0]->library.lock();
    if (library == nullptr) return {};
    OrtEpFactory* factory = ep_devices[0]->factory;
    const auto validate =
        plugin_host::callback(*factory, &OrtEpFactory::ValidateCompiledModelCompatibilityInfo, 23);
    if (validate == nullptr) return {};
    return plugin_host::guarded_call(
        library->name(), "ValidateCompiledModelCompatibilityInfo", [&] {
          return validate(factory, devices.data(), devices.size(), compatibility_info, out_status);
        });
  });
}

namespace {

/// The device of each value's memory; the built-in one's for the processor's.
template <typename PlaceAt>
Status put_devices(const OrtSession& session, const OrtEpDevice** out, size_t count,
                   PlaceAt place_at) {
  SDX_ASSIGN(const auto registry, Registry::of(session));
  const auto& devices = registry->ep_devices();
  for (size_t i = 0; i < count; ++i) {
    const Place* place = place_at(i);
    const auto found = std::find_if(devices.begin(), devices.end(), [&](const auto* device) {
      return place != nullptr && device->memory && place_of(*device->memory) == place;
    });
    out[i] = found == devices.end() ? devices.front() : *found;
  }
  return {};
}

}  // namespace

OrtStatus* SessionGetEpDeviceForInputs(const OrtSession* session,
                                       const OrtEpDevice** inputs_ep_devices,
                                       size_t input_count) noexcept {
  return guarded("SessionGetEpDeviceForInputs", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(inputs_ep_devices, "inputs_ep_devices"));
    const Session& own = *session->session;
    return put_devices(*session, inputs_ep_devices, input_count, [&](size_t i) {
      return i < own.inputs().size() ? own.input_place(i) : nullptr;
    });
  });
}

OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession* session,
                                        const OrtEpDevice** outputs_ep_devices,
                                        size_t output_count) noexcept {
  return guarded("SessionGetEpDeviceForOutputs", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(outputs_ep_devices, "outputs_ep_devices"));
    const Session& own = *session->session;
    return put_devices(*session, outputs_ep_devices, output_count, [&](size_t i) {
      return i < own.outputs().size() ? own.output_place(i) : nullptr;
    });
  });
}

}  // namespace sardonyx::capi

namespace sardonyx::capi::ep_api {

OrtStatus* CreateEpDevice(OrtEpFactory* ep_factory, const OrtHardwareDevice* hardware_device,
                          const OrtKeyValuePairs* ep_metadata, const OrtKeyValuePairs* ep_options,
                          OrtEpDevice** ep_device) noexcept {
  return guarded("CreateEpDevice", [&]() -> Status {
    SDX_TRY(require(ep_factory, "ep_factory"));
    SDX_TRY(require(hardware_device, "hardware_device"));
    SDX_TRY(require(ep_device, "ep_device"));
    auto made = std::make_unique<OrtEpDevice>();
    made->factory = ep_factory;
    made->plugin_device = hardware_device;
    made->device = hardware_device;
    if (ep_metadata != nullptr) made->metadata.entries = ep_metadata->entries;
    if (ep_options != nullptr) made->options.entries = ep_options->entries;
    made->metadata.refresh();
    made->options.refresh();
    *ep_device = made.release();
    return {};
  });
}

void ReleaseEpDevice(OrtEpDevice* object) noexcept { delete object; }

OrtStatus* EpDevice_AddAllocatorInfo(OrtEpDevice* ep_device,
                                     const OrtMemoryInfo* allocator_memory_info) noexcept {
  return guarded("EpDevice_AddAllocatorInfo", [&]() -> Status {
    SDX_TRY(require(ep_device, "ep_device"));
    SDX_TRY(require(allocator_memory_info, "allocator_memory_info"));
    const OrtMemoryInfo& memory = *allocator_memory_info;
    if (memory.allocator_type == OrtReadOnlyAllocator) {
      ep_device->read_only_memory = memory;
    } else if (memory.device_memory == OrtDeviceMemoryType_HOST_ACCESSIBLE) {
      ep_device->host_memory = memory;
    } else {
      ep_device->memory = memory;
    }
    return {};
  });
}

OrtStatus* CreateHardwareDevice(OrtHardwareDeviceType type, uint32_t vendor_id, uint32_t device_id,
                                const char* vendor_name, const OrtKeyValuePairs* metadata,
                                OrtHardwareDevice** hardware_device) noexcept {
  return guarded("CreateHardwareDevice", [&]() -> Status {
    SDX_TRY(require(hardware_device, "hardware_device"));
    auto made = std::make_unique<OrtHardwareDevice>();
    made->type = type;
    made->vendor_id = vendor_id;
    made->device_id = device_id;
    if (vendor_name != nullptr) made->vendor = vendor_name;
    if (metadata != nullptr) made->metadata.entries = metadata->entries;
    made->metadata.refresh();
    *hardware_device = made.release();
    return {};
  });
}

void ReleaseHardwareDevice(OrtHardwareDevice* object) noexcept { delete object; }

OrtStatus* GetEnvConfigEntries(OrtKeyValuePairs** config_entries) noexcept {
  return guarded("GetEnvConfigEntries", [&]() -> Status {
    SDX_TRY(require(config_entries, "config_entries"));
    auto made = std::make_unique<OrtKeyValuePairs>();
    if (const auto registry = Registry::current()) made->entries = registry->entries();
    made->refresh();
    *config_entries = made.release();
    return {};
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_SetDetails(OrtDeviceEpIncompatibilityDetails* details,
                                                     uint32_t reasons_bitmask, int32_t error_code,
                                                     const char* notes) noexcept {
  return guarded("DeviceEpIncompatibilityDetails_SetDetails", [&]() -> Status {
    SDX_TRY(require(details, "details"));
    details->reasons |= reasons_bitmask;
    details->error_code = error_code;
    if (notes != nullptr) details->notes = notes;
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
