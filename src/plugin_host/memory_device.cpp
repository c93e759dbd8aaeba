// Memory devices: where memory lies, without the name of who allocates it. A device has no storage
// of its own: it is the memory info that it was asked of, seen without its name.
#include "capi/api_declarations.h"
#include "capi/handles.h"

namespace sardonyx::capi::ep_api {

namespace {

/// For null the processor's memory: these functions have no way to say that they were misused.
const OrtMemoryInfo& info(const OrtMemoryDevice* device) {
  return device == nullptr ? cpu_memory_info() : *reinterpret_cast<const OrtMemoryInfo*>(device);
}

const OrtMemoryDevice* device_of(const OrtMemoryInfo& memory) {
  return reinterpret_cast<const OrtMemoryDevice*>(&memory);
}

}  // namespace

const OrtMemoryDevice* MemoryInfo_GetMemoryDevice(const OrtMemoryInfo* memory_info) noexcept {
  return memory_info == nullptr ? nullptr : device_of(*memory_info);
}

const OrtMemoryDevice* Value_GetMemoryDevice(const OrtValue* value) noexcept {
  return value == nullptr || value->datum.tensor() == nullptr ? nullptr : device_of(value->memory);
}

bool MemoryDevice_AreEqual(const OrtMemoryDevice* a, const OrtMemoryDevice* b) noexcept {
  if (a == b || a == nullptr || b == nullptr) return a == b;
  return info(a).device_type == info(b).device_type && info(a).vendor_id == info(b).vendor_id &&
         info(a).id == info(b).id && info(a).device_memory == info(b).device_memory;
}

OrtMemoryInfoDeviceType MemoryDevice_GetDeviceType(const OrtMemoryDevice* memory_device) noexcept {
  return info(memory_device).device_type;
}

OrtDeviceMemoryType MemoryDevice_GetMemoryType(const OrtMemoryDevice* memory_device) noexcept {
  return info(memory_device).device_memory;
}

uint32_t MemoryDevice_GetVendorId(const OrtMemoryDevice* memory_device) noexcept {
  return info(memory_device).vendor_id;
}

uint32_t MemoryDevice_GetDeviceId(const OrtMemoryDevice* memory_device) noexcept {
  return static_cast<uint32_t>(info(memory_device).id);
}

}  // namespace sardonyx::capi::ep_api
