// What devices tell about themselves.
#include "capi/devices.h"

#include "capi/api_declarations.h"

namespace sardonyx::capi {

OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice* device) noexcept {
  if (device == nullptr) return {};
  return device->type;
}
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice* device) noexcept {
  if (device == nullptr) return {};
  return device->vendor_id;
}
const char* HardwareDevice_Vendor(const OrtHardwareDevice* device) noexcept {
  if (device == nullptr) return {};
  return device->vendor.c_str();
}
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice* device) noexcept {
  if (device == nullptr) return {};
  return device->device_id;
}
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) noexcept {
  if (device == nullptr) return {};
  return &device->metadata;
}

const char* EpDevice_EpName(const OrtEpDevice* ep_device) noexcept {
  if (ep_device == nullptr) return {};
  return ep_device->ep_name.c_str();
}
const char* EpDevice_EpVendor(const OrtEpDevice* ep_device) noexcept {
  if (ep_device == nullptr) return {};
  return ep_device->ep_vendor.c_str();
}
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* ep_device) noexcept {
  if (ep_device == nullptr) return {};
  return &ep_device->metadata;
}
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* ep_device) noexcept {
  if (ep_device == nullptr) return {};
  return &ep_device->options;
}
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* ep_device) noexcept {
  if (ep_device == nullptr) return {};
  return ep_device->device;
}
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice* ep_device,
                                         OrtDeviceMemoryType memory_type) noexcept {
  if (ep_device == nullptr) return {};
  const auto& memory = memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? ep_device->host_memory
                                                                          : ep_device->memory;
  return memory ? &*memory : nullptr;
}

}  // namespace sardonyx::capi
