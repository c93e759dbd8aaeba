#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ep/device_description.h"

namespace sardonyx {

/// A provider of a session, or one instance of it, with the devices that it runs on.
struct ProviderDevices {
  /// "CPUExecutionProvider".
  std::string provider;
  std::vector<DeviceDescription> devices;
};

/// Whose meaning a designator has where the two differ.
enum class DesignatorMode : std::uint8_t {
  /// As ONNX Runtime, with the differences that docs/placement.md lists.
  Compatible,
  /// Numbers for devices of every kind and of a provider named in full ("npu:1",
  /// "OpenVINOExecutionProvider:0"); devices without an ordinal count in the session's order.
  Extended,
};

/// What a designator stands for.
struct DesignatorMatch {
  /// Index of the provider in the session's order of preference.
  std::optional<std::uint32_t> provider;
  /// Without a provider: why, and which devices there are instead.
  std::string why_not;
};

/// The first provider that "cpu", "gpu", "gpu:1", "gpu:nvidia", "cuda", "dml", "npu", "fpga",
/// "accelerator" or a provider's name stands for. Case counts in names of providers only.
DesignatorMatch resolve_designator(std::string_view designator,
                                   std::span<const ProviderDevices> providers,
                                   DesignatorMode mode = DesignatorMode::Compatible);

/// "CPUExecutionProvider (cpu), CUDAExecutionProvider (gpu:0 of NVIDIA)": for messages.
std::string describe_devices(std::span<const ProviderDevices> providers);

/// "gpu", or "device" for one of unknown type.
std::string_view device_word(DeviceType type);

}  // namespace sardonyx
