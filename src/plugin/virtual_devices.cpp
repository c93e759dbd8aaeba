#include "plugin/virtual_devices.h"

#include <charconv>
#include <cstdlib>

#include "base/text.h"

namespace sardonyx::plugin {

namespace {

constexpr const char* kVariable = "SARDONYX_VIRTUAL_DEVICES";
constexpr std::string_view kEntry = "sardonyx.virtual_devices";
/// What the runtime sets for registration names that end in ".virtual".
constexpr std::string_view kAllowEntry = "allow_virtual_devices";
constexpr const char* kDefault = "gpu; gpu; npu";

constexpr std::uint64_t kMemory_bytes = std::uint64_t{1} << 30;
constexpr std::uint64_t kMemory_bytes_most = std::uint64_t{1} << 40;
/// No vendor of the PCI list, so that nobody takes the memory for that of real hardware.
constexpr std::uint32_t kVendor = 0x5d5d;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

/// Takes what stands before the separator off the front.
std::string_view take_part(std::string_view& rest, char separator) {
  const auto end = rest.find(separator);
  const std::string_view part = rest.substr(0, end);
  rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
  return trimmed(part);
}

Status wrong(std::string_view found, std::string_view expected) {
  return failure(Code::InvalidArgument, "virtual devices: expected {}, found '{}'", expected,
                 found);
}

Result<std::uint64_t> read_number(std::string_view text, std::uint64_t most) {
  const bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = is_hex ? text.substr(2) : text;
  std::uint64_t value = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, is_hex ? 16 : 10);
  if (error != std::errc() || stop != end || value > most) {
    return wrong(text, fmt::format("a number from 0 to {}", most));
  }
  return value;
}

Status set_field(std::string_view field, DeviceWish& wish) {
  std::string_view value = field;
  const std::string_view key = take_part(value, '=');
  value = trimmed(value);
  if (key == "name") {
    wish.vendor = value;
    return {};
  }
  const bool is_memory = key == "memory";
  if (!is_memory && key != "vendor" && key != "device" && key != "ordinal") {
    return wrong(field, "vendor=, device=, name=, ordinal= or memory=");
  }
  SDX_ASSIGN(const std::uint64_t number,
             read_number(value, is_memory ? kMemory_bytes_most : 0x7fffffff));
  if (is_memory) wish.memory_bytes = number;
  if (key == "vendor") wish.vendor_id = static_cast<std::uint32_t>(number);
  if (key == "device") wish.device_id = static_cast<std::uint32_t>(number);
  if (key == "ordinal") wish.ordinal = static_cast<std::uint32_t>(number);
  return {};
}

std::string_view entry_of(const std::vector<std::pair<std::string, std::string>>& entries,
                          std::string_view key) {
  for (const auto& [name, value] : entries) {
    if (name == key) return value;
  }
  return {};
}

}  // namespace

Result<std::vector<DeviceWish>> parse_devices(std::string_view text) {
  std::vector<DeviceWish> wishes;
  std::uint32_t next_ordinal[3] = {};
  while (!text.empty()) {
    std::string_view entry = take_part(text, ';');
    if (entry.empty()) continue;
    const std::string_view kind = take_part(entry, ':');
    if (kind != "gpu" && kind != "npu") return wrong(kind, "gpu or npu");
    DeviceWish wish;
    wish.type = kind == "gpu" ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_NPU;
    wish.ordinal = next_ordinal[wish.type];
    wish.vendor_id = kVendor;
    wish.vendor = "Sardonyx (virtual)";
    wish.memory_bytes = kMemory_bytes;
    while (!entry.empty()) SDX_TRY(set_field(take_part(entry, ','), wish));
    next_ordinal[wish.type] = wish.ordinal + 1;
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

Result<std::string> wanted_devices(const Host& host) {
  // Devices can be made from this version of the interface on.
  if (host.version < 24) return std::string();
  OrtKeyValuePairs* pairs = nullptr;
  SDX_TRY(host.take(host.ep->GetEnvConfigEntries(&pairs)));
  const auto entries = Pairs(host, pairs).entries();
  if (const auto text = entry_of(entries, kEntry); !text.empty()) return std::string(text);
  if (const char* text = std::getenv(kVariable); text != nullptr) return std::string(text);
  return std::string(entry_of(entries, kAllowEntry) == "1" ? kDefault : "");
}

Result<std::unique_ptr<VirtualDevice>> VirtualDevice::create(const Host& host,
                                                             const DeviceWish& wish,
                                                             std::size_t number) {
  std::unique_ptr<VirtualDevice> device(new VirtualDevice(host, wish));
  SDX_ASSIGN(device->memory_, DeviceMemory::create(wish.memory_bytes));
  Pairs metadata(host);
  metadata.add("is_virtual", "1");
  metadata.add("ordinal", std::to_string(wish.ordinal));
  metadata.add("memory_bytes", std::to_string(wish.memory_bytes));
  SDX_TRY(host.take(host.ep->CreateHardwareDevice(wish.type, wish.vendor_id, wish.device_id,
                                                  wish.vendor.c_str(), metadata.get(),
                                                  &device->hardware_)));
  const bool is_gpu = wish.type == OrtHardwareDeviceType_GPU;
  const std::string name = fmt::format("Sardonyx{}{}", is_gpu ? "Gpu" : "Npu", number);
  SDX_TRY(host.take(host.api->CreateMemoryInfo_V2(
      name.c_str(), is_gpu ? OrtMemoryInfoDeviceType_GPU : OrtMemoryInfoDeviceType_NPU,
      wish.vendor_id, static_cast<int32_t>(wish.ordinal), OrtDeviceMemoryType_DEFAULT, 0,
      OrtDeviceAllocator, &device->memory_info_)));
  return device;
}

VirtualDevice::~VirtualDevice() {
  if (memory_info_ != nullptr) host_.api->ReleaseMemoryInfo(memory_info_);
  if (hardware_ != nullptr) host_.ep->ReleaseHardwareDevice(hardware_);
}

std::byte* open_memory(const VirtualDevices& devices, void* address) {
  for (const auto& device : devices) {
    if (device->memory().holds(address)) return device->memory().open(address);
  }
  return static_cast<std::byte*>(address);
}

}  // namespace sardonyx::plugin
