#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/device_memory.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

/// A device that is asked for by text.
struct DeviceWish {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_GPU;
  /// Which of the devices of its type; by default they are counted.
  std::uint32_t ordinal = 0;
  std::uint32_t vendor_id = 0;
  std::uint32_t device_id = 0;
  std::string vendor;
  std::uint64_t memory_bytes = 0;
};

/// Reads "gpu:memory=8589934592,vendor=0x10de; gpu; npu:name=Tests"; see docs/plugins.md.
/// Errors   InvalidArgument, saying what was expected and what was found.
Result<std::vector<DeviceWish>> parse_devices(std::string_view text);

/// The text that says which devices are wanted, from the runtime's environment entries or the
/// process's variables; "" for none.
Result<std::string> wanted_devices(const Host& host);

/// A device that is not there, as the host sees it. Its memory faults when it is touched.
class VirtualDevice {
 public:
  static Result<std::unique_ptr<VirtualDevice>> create(const Host& host, const DeviceWish& wish,
                                                       std::size_t number);
  ~VirtualDevice();
  VirtualDevice(const VirtualDevice&) = delete;
  VirtualDevice& operator=(const VirtualDevice&) = delete;

  const DeviceWish& wish() const { return wish_; }
  OrtHardwareDevice* hardware() const { return hardware_; }
  const OrtMemoryInfo* memory_info() const { return memory_info_; }
  const OrtMemoryDevice* memory_device() const {
    return host_.ep->MemoryInfo_GetMemoryDevice(memory_info_);
  }
  DeviceMemory& memory() const { return *memory_; }

 private:
  VirtualDevice(const Host& host, DeviceWish wish) : host_(host), wish_(std::move(wish)) {}
  Host host_;
  DeviceWish wish_;
  OrtHardwareDevice* hardware_ = nullptr;
  OrtMemoryInfo* memory_info_ = nullptr;
  std::unique_ptr<DeviceMemory> memory_;
};

using VirtualDevices = std::vector<std::unique_ptr<VirtualDevice>>;

/// The address that can be used for one that the host holds: the same for ordinary memory.
std::byte* open_memory(const VirtualDevices& devices, void* address);

}  // namespace sardonyx::plugin
