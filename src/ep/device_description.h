#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace sardonyx {

/// What kind of device a provider runs on.
enum class DeviceType : std::uint8_t { Unknown, Cpu, Gpu, Npu, Fpga };

/// A device as rules, budgets and reports see it.
struct DeviceDescription {
  DeviceType type = DeviceType::Unknown;
  /// As the provider or the operating system has it: "NVIDIA Corporation".
  std::string vendor;
  /// The vendor's number on the PCI bus; 0: not known.
  std::uint32_t vendor_id = 0;
  /// The device's number among those of its provider, as device_memory_info has it.
  std::optional<std::uint32_t> ordinal;
  /// 0: not known.
  std::uint64_t memory_bytes = 0;
};

}  // namespace sardonyx
