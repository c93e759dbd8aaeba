#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "capi/handles.h"

namespace sardonyx::plugin_host {
class Library;
}

/// A processor or a card that providers can run on.
struct OrtHardwareDevice {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_CPU;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  std::string vendor;
  OrtKeyValuePairs metadata;
  /// Size of its own memory, 0 when it is not known.
  std::uint64_t memory_bytes = 0;
};

/// A provider on a device. Lives as long as the environment, also when its library does not.
struct OrtEpDevice {
  std::string ep_name;
  std::string ep_vendor;
  OrtKeyValuePairs metadata;
  OrtKeyValuePairs options;
  const OrtHardwareDevice* device = nullptr;
  /// Its memories by kind, where tensors may lie; none where it works on the processor's.
  std::optional<OrtMemoryInfo> memory;
  std::optional<OrtMemoryInfo> host_memory;
  std::optional<OrtMemoryInfo> read_only_memory;
  /// Null for the built-in provider.
  OrtEpFactory* factory = nullptr;
  /// The built-in provider, while an environment has it.
  std::weak_ptr<const sardonyx::Provider> provider;
  /// The device as the plugin gave it, which may be one of its own making.
  const OrtHardwareDevice* plugin_device = nullptr;
  std::weak_ptr<const sardonyx::plugin_host::Library> library;
  /// The library was unregistered: sessions that have the device go on, no new one may take it.
  std::atomic<bool> is_retired = false;
};
