#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "capi/devices.h"

namespace sardonyx::plugin_host {

/// Environment variable and environment configuration entry that change the list of devices.
inline constexpr const char* kDevicesVariable = "SARDONYX_HARDWARE_DEVICES";
inline constexpr const char* kDevicesEntry = "sardonyx.hardware_devices";

using HardwareList = std::vector<std::unique_ptr<OrtHardwareDevice>>;

/// The processor, and the graphics and neural processors on the PCI bus.
HardwareList detect_hardware();

/// Changes the list as a text says, for tests of plugins whose hardware is not there:
///
///     cpu:vendor=0x8086; gpu:vendor=0x10de,device=0x2684,ordinal=1,memory=8589934592; none
///
/// `cpu` changes the processor, `gpu` and `npu` add a device, `none` drops the graphics and neural
/// processors that stand before it. Fields: vendor and device (PCI numbers), name (of the vendor),
/// ordinal (which of several), memory (bytes).
/// Errors   InvalidArgument that quotes the part that is wrong.
Status apply_device_text(std::string_view text, HardwareList& devices);

}  // namespace sardonyx::plugin_host
