#include "cli/plugins.h"

#include <cstdio>
#include <filesystem>
#include <utility>

namespace sardonyx::cli {

PluginLibrary& PluginLibrary::operator=(PluginLibrary&& other) noexcept {
  std::swap(env_, other.env_);
  std::swap(name_, other.name_);
  return *this;
}

PluginLibrary::~PluginLibrary() {
  if (env_ == nullptr) return;
  const Status status = check(api().UnregisterExecutionProviderLibrary(env_, name_.c_str()));
  if (!status.ok()) {
    fmt::print(stderr, "Failed to unregister EP library with name {}: {}\n", name_, status.text());
  }
}

Result<PluginLibrary> PluginLibrary::load(OrtEnv* env, const std::string& name,
                                          const std::string& path) {
  SDX_TRY(check(api().RegisterExecutionProviderLibrary(env, name.c_str(), path.c_str())));
  PluginLibrary library;
  library.env_ = env;
  library.name_ = name;
  return library;
}

Result<Devices> all_devices(const OrtEnv* env) {
  const OrtEpDevice* const* devices = nullptr;
  std::size_t count = 0;
  SDX_TRY(check(api().GetEpDevices(env, &devices, &count)));
  return Devices(devices, devices + count);
}

Devices devices_of(const Devices& devices, const std::string& provider) {
  Devices found;
  for (const OrtEpDevice* device : devices) {
    if (provider == api().EpDevice_EpName(device)) found.push_back(device);
  }
  return found;
}

std::string list_devices(const Devices& devices) {
  static constexpr const char* kTypes[] = {"CPU", "GPU", "NPU"};
  std::string text;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const OrtHardwareDevice* hardware = api().EpDevice_Device(devices[i]);
    const auto type = static_cast<std::size_t>(api().HardwareDevice_Type(hardware));
    text += fmt::format("{:>3}  {}  {}, vendor 0x{:04x} {}\n", i, api().EpDevice_EpName(devices[i]),
                        type < 3 ? kTypes[type] : "?", api().HardwareDevice_VendorId(hardware),
                        api().HardwareDevice_Vendor(hardware));
  }
  return text;
}

Status append_devices(OrtSessionOptions* options, OrtEnv* env, const Devices& devices,
                      const Entries& provider_options) {
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : provider_options) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  return check(api().SessionOptionsAppendExecutionProvider_V2(
      options, env, devices.data(), devices.size(), keys.data(), values.data(), keys.size()));
}

Entries split_entries(const std::vector<std::string>& texts) {
  Entries entries;
  for (const std::string& text : texts) {
    const std::size_t at = text.find('=');
    entries.emplace_back(text.substr(0, at), text.substr(at + 1));
  }
  return entries;
}

Result<Target> make_target(OrtEnv* env, const Entries& plugins,
                           std::vector<std::string> providers) {
  Target target;
  const bool takes_plugins = providers.empty();
  for (const auto& [name, path] : plugins) {
    SDX_ASSIGN(PluginLibrary library,
               PluginLibrary::load(env, name, std::filesystem::absolute(path).string()));
    target.libraries.push_back(std::move(library));
    if (takes_plugins) providers.push_back(name);
  }
  SDX_ASSIGN(const Devices all, all_devices(env));
  for (const std::string& name : providers) {
    if (name == "CPUExecutionProvider") continue;
    target.devices.push_back(devices_of(all, name));
    if (!target.devices.back().empty()) continue;
    return failure("no device of a provider '{}'; there are:\n{}", name, list_devices(all));
  }
  return target;
}

Status add_entries(OrtSessionOptions* options, const Entries& entries) {
  for (const auto& [key, value] : entries) {
    SDX_TRY(check(api().AddSessionConfigEntry(options, key.c_str(), value.c_str())));
  }
  return {};
}

}  // namespace sardonyx::cli
