#include "capi/devices.h"

#include <cstdio>
#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

/// PCI vendor numbers of the makers that /proc/cpuinfo names.
struct Vendor {
  const char* cpuinfo;
  const char* name;
  uint32_t id;
};
constexpr Vendor kVendors[] = {{"GenuineIntel", "Intel", 0x8086},
                               {"AuthenticAMD", "AMD", 0x1022},
                               {"0x41", "ARM", 0x13B5},
                               {"0x61", "Apple", 0x106B},
                               {"0x51", "Qualcomm", 0x5143}};

OrtHardwareDevice detect_processor() {
  OrtHardwareDevice device;
  device.vendor = "Unknown";
  std::FILE* file = std::fopen("/proc/cpuinfo", "r");
  if (file == nullptr) return device;
  char line[512];
  while (std::fgets(line, sizeof(line), file) != nullptr) {
    const bool names_vendor =
        std::strncmp(line, "vendor_id", 9) == 0 || std::strncmp(line, "CPU implementer", 15) == 0;
    if (!names_vendor) continue;
    for (const Vendor& vendor : kVendors) {
      if (std::strstr(line, vendor.cpuinfo) == nullptr) continue;
      device.vendor = vendor.name;
      device.vendor_id = vendor.id;
    }
    break;
  }
  std::fclose(file);
  return device;
}

const OrtHardwareDevice& processor() {
  static const OrtHardwareDevice device = detect_processor();
  return device;
}

const OrtEpDevice& processor_provider() {
  static const OrtEpDevice device{"CPUExecutionProvider", "Sardonyx",       {}, {},
                                  &processor(),           cpu_memory_info()};
  return device;
}

}  // namespace

const std::vector<const OrtEpDevice*>& ep_devices() {
  static const std::vector<const OrtEpDevice*> devices{&processor_provider()};
  return devices;
}

const std::vector<const OrtHardwareDevice*>& hardware_devices() {
  static const std::vector<const OrtHardwareDevice*> devices{&processor()};
  return devices;
}

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** out,
                        size_t* ep_device_count) noexcept {
  return guarded("GetEpDevices", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    *out = ep_devices().data();
    *ep_device_count = ep_devices().size();
    return {};
  });
}

OrtStatus* GetNumHardwareDevices(const OrtEnv*, size_t* num_devices) noexcept {
  *num_devices = hardware_devices().size();
  return nullptr;
}

OrtStatus* GetHardwareDevices(const OrtEnv*, const OrtHardwareDevice** devices,
                              size_t num_devices) noexcept {
  const auto& known = hardware_devices();
  for (size_t i = 0; i < std::min(num_devices, known.size()); ++i) devices[i] = known[i];
  return nullptr;
}

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice* device) noexcept {
  return device->type;
}
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice* device) noexcept {
  return device->vendor_id;
}
const char* HardwareDevice_Vendor(const OrtHardwareDevice* device) noexcept {
  return device->vendor.c_str();
}
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice* device) noexcept {
  return device->device_id;
}
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) noexcept {
  return &device->metadata;
}

const char* EpDevice_EpName(const OrtEpDevice* ep_device) noexcept {
  return ep_device->ep_name.c_str();
}
const char* EpDevice_EpVendor(const OrtEpDevice* ep_device) noexcept {
  return ep_device->ep_vendor.c_str();
}
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* ep_device) noexcept {
  return &ep_device->metadata;
}
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* ep_device) noexcept {
  return &ep_device->options;
}
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* ep_device) noexcept {
  return ep_device->device;
}
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice* ep_device,
                                         OrtDeviceMemoryType memory_type) noexcept {
  return memory_type == OrtDeviceMemoryType_DEFAULT ? &ep_device->memory : nullptr;
}

OrtStatus* SessionGetEpDeviceForInputs(const OrtSession*, const OrtEpDevice** devices,
                                       size_t input_count) noexcept {
  for (size_t i = 0; i < input_count; ++i) devices[i] = ep_devices().front();
  return nullptr;
}

OrtStatus* SessionGetEpDeviceForOutputs(const OrtSession*, const OrtEpDevice** devices,
                                        size_t output_count) noexcept {
  for (size_t i = 0; i < output_count; ++i) devices[i] = ep_devices().front();
  return nullptr;
}

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* session_options, OrtEnv*,
                                                    const OrtEpDevice* const* devices,
                                                    size_t ep_device_count, const char* const*,
                                                    const char* const*, size_t) noexcept {
  return guarded("SessionOptionsAppendExecutionProvider_V2", [&]() -> Status {
    for (size_t i = 0; i < ep_device_count; ++i) {
      SDX_TRY(require(devices[i], "an execution provider device"));
      session_options->options.providers.push_back(devices[i]->ep_name);
    }
    return {};
  });
}

OrtStatus* GetSharedAllocator(OrtEnv*, const OrtMemoryInfo* mem_info,
                              OrtAllocator** allocator) noexcept {
  return guarded("GetSharedAllocator", [&]() -> Status {
    SDX_TRY(require(mem_info, "mem_info"));
    *allocator =
        mem_info->device_type == OrtMemoryInfoDeviceType_CPU ? default_allocator() : nullptr;
    return {};
  });
}

}  // namespace sardonyx::capi
