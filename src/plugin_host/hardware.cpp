#include "plugin_host/hardware.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/text.h"

namespace sardonyx::plugin_host {

namespace {

/// PCI vendor numbers, and how /proc/cpuinfo names the makers of processors.
struct Vendor {
  std::uint32_t id;
  const char* name;
  const char* cpuinfo;
};
constexpr Vendor kVendors[] = {{0x8086, "Intel", "GenuineIntel"}, {0x1022, "AMD", "AuthenticAMD"},
                               {0x13B5, "ARM", "0x41"},           {0x106B, "Apple", "0x61"},
                               {0x5143, "Qualcomm", "0x51"},      {0x1002, "AMD", nullptr},
                               {0x10DE, "NVIDIA", nullptr}};

const char* vendor_name(std::uint32_t id) {
  for (const Vendor& vendor : kVendors) {
    if (vendor.id == id) return vendor.name;
  }
  return "Unknown";
}

std::unique_ptr<OrtHardwareDevice> detect_processor() {
  auto device = std::make_unique<OrtHardwareDevice>();
  device->vendor = "Unknown";
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    if (!line.starts_with("vendor_id") && !line.starts_with("CPU implementer")) continue;
    for (const Vendor& vendor : kVendors) {
      if (vendor.cpuinfo == nullptr || line.find(vendor.cpuinfo) == std::string::npos) continue;
      device->vendor = vendor.name;
      device->vendor_id = vendor.id;
      break;
    }
    break;
  }
  return device;
}

/// The number that a file of sysfs holds ("0x10de"), or 0.
std::uint32_t number_in(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return static_cast<std::uint32_t>(std::strtoul(text.c_str(), nullptr, 16));
}

// Classes of the PCI standard: 0x03 are display controllers, 0x12 are processing accelerators.
void add_pci_devices(HardwareList& devices) {
  std::error_code error;
  std::vector<std::filesystem::path> folders;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/bus/pci/devices", error)) {
    folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  for (const auto& folder : folders) {
    const std::uint32_t kind = number_in(folder / "class") >> 16U;
    if (kind != 0x03 && kind != 0x12) continue;
    auto device = std::make_unique<OrtHardwareDevice>();
    device->type = kind == 0x03 ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_NPU;
    device->vendor_id = number_in(folder / "vendor");
    device->device_id = number_in(folder / "device");
    device->vendor = vendor_name(device->vendor_id);
    device->metadata.entries["pci_bus_id"] = folder.filename().string();
    device->metadata.refresh();
    devices.push_back(std::move(device));
  }
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// Takes what stands before the separator off the front.
std::string_view take(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return trimmed(part);
}

Status wrong(std::string_view part, std::string_view expected) {
  return failure(Code::InvalidArgument, "hardware devices: expected {}, found '{}'", expected,
                 part);
}

Result<std::uint64_t> read_number(std::string_view text) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = is_hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, is_hex ? 16 : 10);
  if (error != std::errc() || stop != end) return wrong(text, "a number such as 12 or 0x8086");
  return value;
}

Status set_field(std::string_view field, OrtHardwareDevice& device, bool& is_named) {
  std::string_view value = field;
  const std::string_view key = take(value, '=');
  value = trimmed(value);
  if (key == "name") {
    device.vendor = value;
    is_named = true;
    return {};
  }
  if (key != "vendor" && key != "device" && key != "ordinal" && key != "memory") {
    return wrong(field, "vendor=, device=, name=, ordinal= or memory=");
  }
  SDX_ASSIGN(const std::uint64_t number, read_number(value));
  if (key == "vendor") device.vendor_id = static_cast<std::uint32_t>(number);
  if (key == "device") device.device_id = static_cast<std::uint32_t>(number);
  if (key == "ordinal") device.metadata.entries["ordinal"] = std::to_string(number);
  if (key == "memory") {
    device.memory_bytes = number;
    device.metadata.entries["memory_bytes"] = std::to_string(number);
  }
  return {};
}

}  // namespace

HardwareList detect_hardware() {
  HardwareList devices;
  devices.push_back(detect_processor());
  add_pci_devices(devices);
  return devices;
}

Status apply_device_text(std::string_view text, HardwareList& devices) {
  while (!text.empty()) {
    std::string_view entry = take(text, ';');
    if (entry.empty()) continue;
    if (entry == "none") {
      std::erase_if(devices,
                    [](const auto& device) { return device->type != OrtHardwareDeviceType_CPU; });
      continue;
    }
    const std::string_view kind = take(entry, ':');
    OrtHardwareDevice* device = nullptr;
    if (kind == "cpu") {
      device = devices.front().get();
    } else if (kind == "gpu" || kind == "npu") {
      device = devices.emplace_back(std::make_unique<OrtHardwareDevice>()).get();
      device->type = kind == "gpu" ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_NPU;
    } else {
      return wrong(kind, "cpu, gpu, npu or none");
    }
    bool is_named = false;
    while (!entry.empty()) SDX_TRY(set_field(take(entry, ','), *device, is_named));
    if (!is_named) device->vendor = vendor_name(device->vendor_id);
    device->metadata.refresh();
  }
  return {};
}

}  // namespace sardonyx::plugin_host
