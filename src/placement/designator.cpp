#include "placement/designator.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <initializer_list>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::string_view kCpuProvider = "CPUExecutionProvider";
constexpr std::array kCudaProviders = {std::string_view("CUDAExecutionProvider"),
                                       std::string_view("CudaPluginExecutionProvider")};
constexpr std::string_view kDmlProvider = "DmlExecutionProvider";

struct Vendor {
  std::string_view word;
  std::uint32_t id;
};
constexpr std::array kVendors = {Vendor{"nvidia", 0x10de}, Vendor{"amd", 0x1002},
                                 Vendor{"intel", 0x8086}};

bool is_cuda(const ProviderDevices& provider) {
  return std::find(kCudaProviders.begin(), kCudaProviders.end(), provider.provider) !=
         kCudaProviders.end();
}

bool is_named(const ProviderDevices& provider, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), provider.provider) != names.end();
}

bool has_type(const ProviderDevices& provider, DeviceType type) {
  return std::any_of(provider.devices.begin(), provider.devices.end(),
                     [&](const DeviceDescription& device) { return device.type == type; });
}

bool is_of_vendor(const DeviceDescription& device, std::string_view vendor) {
  if (same_word(device.vendor, vendor)) return true;
  const std::string_view first =
      std::string_view(device.vendor).substr(0, device.vendor.find_first_of(" ,("));
  if (same_word(first, vendor)) return true;
  return std::any_of(kVendors.begin(), kVendors.end(), [&](const Vendor& known) {
    return known.id == device.vendor_id && same_word(known.word, vendor);
  });
}

bool has_gpu_of(const ProviderDevices& provider, std::string_view vendor) {
  if (same_word(vendor, "nvidia") && is_cuda(provider)) return true;
  return std::any_of(provider.devices.begin(), provider.devices.end(),
                     [&](const DeviceDescription& device) {
                       return device.type == DeviceType::Gpu && is_of_vendor(device, vendor);
                     });
}

bool is_accelerator(const ProviderDevices& provider) {
  if (provider.provider == kCpuProvider) return false;
  return provider.devices.empty() || std::any_of(provider.devices.begin(), provider.devices.end(),
                                                 [](const DeviceDescription& device) {
                                                   return device.type != DeviceType::Cpu;
                                                 });
}

template <typename Predicate>
std::optional<std::uint32_t> first(std::span<const ProviderDevices> providers,
                                   const Predicate& takes) {
  const auto found = std::find_if(providers.begin(), providers.end(), takes);
  if (found == providers.end()) return std::nullopt;
  return static_cast<std::uint32_t>(found - providers.begin());
}

std::optional<std::uint32_t> number_in(std::string_view text) {
  std::uint32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return {};
  return number;
}

bool is_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A designator without number or vendor.
std::optional<std::uint32_t> resolve_word(std::string_view word,
                                          std::span<const ProviderDevices> providers,
                                          bool& is_known) {
  is_known = true;
  if (same_word(word, "cpu")) {
    // By name first: a provider of a plugin may sit on the same device.
    const auto by_name =
        first(providers, [](const ProviderDevices& one) { return one.provider == kCpuProvider; });
    if (by_name) return by_name;
    return first(providers, [](const auto& one) { return has_type(one, DeviceType::Cpu); });
  }
  if (same_word(word, "gpu")) {
    return first(providers, [](const auto& one) {
      return has_type(one, DeviceType::Gpu) || is_cuda(one) || is_named(one, {kDmlProvider});
    });
  }
  if (same_word(word, "cuda")) {
    const auto by_name = first(providers, is_cuda);
    if (by_name) return by_name;
    return first(providers, [](const auto& one) { return has_gpu_of(one, "nvidia"); });
  }
  if (same_word(word, "dml")) {
    return first(providers, [](const auto& one) { return is_named(one, {kDmlProvider}); });
  }
  if (same_word(word, "npu")) {
    return first(providers, [](const auto& one) {
      return has_type(one, DeviceType::Npu) ||
             is_named(one, {"QNNExecutionProvider", "VitisAIExecutionProvider"});
    });
  }
  if (same_word(word, "fpga")) {
    return first(providers, [](const auto& one) { return has_type(one, DeviceType::Fpga); });
  }
  if (same_word(word, "accelerator")) return first(providers, is_accelerator);
  is_known = false;
  return std::nullopt;
}

struct TypeWord {
  std::string_view word;
  DeviceType type;
};
constexpr std::array kTypeWords = {
    TypeWord{"cpu", DeviceType::Cpu}, TypeWord{"gpu", DeviceType::Gpu},
    TypeWord{"npu", DeviceType::Npu}, TypeWord{"fpga", DeviceType::Fpga}};

/// The devices that a number chooses among, with their numbers.
struct Numbered {
  std::uint32_t provider;
  std::optional<std::uint32_t> number;
};

template <typename Predicate>
std::vector<Numbered> numbered(std::span<const ProviderDevices> providers, DesignatorMode mode,
                               const Predicate& takes) {
  std::vector<Numbered> found;
  for (std::uint32_t i = 0; i < providers.size(); ++i) {
    for (const DeviceDescription& device : providers[i].devices) {
      if (takes(providers[i], device)) found.push_back({i, device.ordinal});
    }
  }
  const bool has_numbers = std::any_of(found.begin(), found.end(),
                                       [](const Numbered& one) { return one.number.has_value(); });
  if (mode == DesignatorMode::Extended && !has_numbers) {
    for (std::uint32_t i = 0; i < found.size(); ++i) found[i].number = i;
  }
  return found;
}

/// The option by which a provider is told which of its devices to take.
std::string_view device_option(std::string_view provider) {
  if (provider == "OpenVINOExecutionProvider") return "device_type";
  if (provider == "WebGpuExecutionProvider") return "deviceId";
  return "device_id";
}

DesignatorMatch resolve_number(std::string_view word, std::uint32_t number,
                               std::span<const ProviderDevices> providers,
                               const std::vector<Numbered>& devices) {
  const auto hit = std::find_if(devices.begin(), devices.end(),
                                [&](const Numbered& one) { return one.number == number; });
  if (hit != devices.end()) return {hit->provider, ""};
  if (devices.empty()) {
    return {{},
            fmt::format("no provider of the session runs on a {}; there is {}", word,
                        describe_devices(providers))};
  }
  std::vector<std::string> numbers;
  for (const Numbered& one : devices) {
    if (one.number) numbers.push_back(std::to_string(*one.number));
  }
  const std::string& provider = providers[devices.front().provider].provider;
  if (numbers.empty()) {
    return {{},
            fmt::format("{} does not report the number of its device (device_memory_info); "
                        "without a number, '{}' takes it",
                        clip(provider), word)};
  }
  return {{},
          fmt::format("{} number {} is not in the session, but {}; which device {} takes is "
                      "set by its option '{}'",
                      word, number, join(numbers, ", "), clip(provider), device_option(provider))};
}

/// "gpu:1", and in the extended mode "npu:0" and "NAME:0"; nothing for other words.
std::optional<DesignatorMatch> resolve_numbered(std::string_view word, std::string_view digits,
                                                std::span<const ProviderDevices> providers,
                                                DesignatorMode mode) {
  const auto number = number_in(digits);
  const bool is_gpu = same_word(word, "gpu");
  if (!number || (!is_gpu && mode == DesignatorMode::Compatible)) return std::nullopt;
  for (const TypeWord& known : kTypeWords) {
    if (!same_word(word, known.word)) continue;
    return resolve_number(known.word, *number, providers,
                          numbered(providers, mode, [&](const auto&, const auto& device) {
                            return device.type == known.type;
                          }));
  }
  const bool is_name =
      first(providers, [&](const auto& one) { return one.provider == word; }).has_value();
  if (!is_name) return std::nullopt;
  return resolve_number(word, *number, providers,
                        numbered(providers, mode, [&](const auto& one, const auto&) {
                          return one.provider == word;
                        }));
}

std::string why_no_such(std::string_view designator, std::span<const ProviderDevices> providers) {
  std::vector<std::string> words = {"cpu", "gpu", "cuda", "dml", "npu", "fpga", "accelerator"};
  for (const ProviderDevices& one : providers) words.push_back(one.provider);
  const std::string near = nearest(designator.substr(0, 64), words);
  return fmt::format(
      "'{}' is neither a kind of device nor a provider of the session{}; there is {}",
      clip(designator), near.empty() ? "" : fmt::format(" (nearest: '{}')", near),
      describe_devices(providers));
}

}  // namespace

std::string_view device_word(DeviceType type) {
  for (const auto& [word, known] : kTypeWords) {
    if (known == type) return word;
  }
  return "device";
}

std::string describe_devices(std::span<const ProviderDevices> providers) {
  constexpr std::size_t kShown = 8;
  std::vector<std::string> texts;
  for (const ProviderDevices& one : providers.subspan(0, std::min(kShown, providers.size()))) {
    std::vector<std::string> devices;
    for (const auto& device : std::span(one.devices).first(std::min(kShown, one.devices.size()))) {
      std::string text(device_word(device.type));
      if (device.ordinal) text += fmt::format(":{}", *device.ordinal);
      if (!device.vendor.empty()) text += fmt::format(" of {}", clip(device.vendor));
      devices.push_back(std::move(text));
    }
    texts.push_back(std::string(clip(one.provider)));
    if (!devices.empty()) texts.back() += fmt::format(" ({})", join(devices, ", "));
  }
  if (providers.size() > kShown) texts.push_back("…");
  return texts.empty() ? "none" : join(texts, ", ");
}

DesignatorMatch resolve_designator(std::string_view designator,
                                   std::span<const ProviderDevices> providers,
                                   DesignatorMode mode) {
  bool is_known = false;
  const auto by_word = resolve_word(designator, providers, is_known);
  if (by_word) return {by_word, ""};
  if (is_known) {
    return {{},
            fmt::format("no provider of the session is a {}; there is {}", designator,
                        describe_devices(providers))};
  }
  const auto by_name =
      first(providers, [&](const auto& one) { return one.provider == designator; });
  if (by_name) return {by_name, ""};
  const std::size_t colon = designator.rfind(':');
  if (colon == std::string_view::npos) return {{}, why_no_such(designator, providers)};
  const std::string_view word = designator.substr(0, colon);
  const std::string_view suffix = designator.substr(colon + 1);
  if (is_digits(suffix)) {
    if (auto match = resolve_numbered(word, suffix, providers, mode)) return *std::move(match);
  } else if (same_word(word, "gpu") && !suffix.empty()) {
    const auto by_vendor =
        first(providers, [&](const auto& one) { return has_gpu_of(one, suffix); });
    if (by_vendor) return {by_vendor, ""};
    return {{},
            fmt::format("no provider of the session runs on a gpu of '{}'; there is {}",
                        clip(suffix), describe_devices(providers))};
  }
  return {{}, why_no_such(designator, providers)};
}

}  // namespace sardonyx
