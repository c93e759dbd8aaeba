#pragma once

#include <memory>
#include <string>
#include <vector>

#include "capi/handles.h"

/// A processor, or later a card, that providers can run on.
struct OrtHardwareDevice {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_CPU;
  uint32_t vendor_id = 0;
  uint32_t device_id = 0;
  std::string vendor;
  OrtKeyValuePairs metadata;
};

/// A provider on a device.
struct OrtEpDevice {
  std::string ep_name;
  std::string ep_vendor;
  OrtKeyValuePairs metadata;
  OrtKeyValuePairs options;
  const OrtHardwareDevice* device = nullptr;
  OrtMemoryInfo memory;
};

namespace sardonyx::capi {

/// The devices of this process: the processor with the built-in provider.
const std::vector<const OrtEpDevice*>& ep_devices();
const std::vector<const OrtHardwareDevice*>& hardware_devices();

}  // namespace sardonyx::capi
