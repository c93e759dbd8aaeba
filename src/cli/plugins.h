#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/api.h"

namespace sardonyx::cli {

/// Keys and values, as options of providers and sessions are given.
using Entries = std::vector<std::pair<std::string, std::string>>;

/// A provider library, registered as long as it lives.
class PluginLibrary {
 public:
  PluginLibrary() = default;
  PluginLibrary(PluginLibrary&& other) noexcept { *this = std::move(other); }
  PluginLibrary& operator=(PluginLibrary&& other) noexcept;
  ~PluginLibrary();

  static Result<PluginLibrary> load(OrtEnv* env, const std::string& name, const std::string& path);
  const std::string& name() const { return name_; }

 private:
  OrtEnv* env_ = nullptr;
  std::string name_;
};

using Devices = std::vector<const OrtEpDevice*>;

/// All devices of all providers, in the library's order.
Result<Devices> all_devices(const OrtEnv* env);
/// Those of the provider of that name.
Devices devices_of(const Devices& devices, const std::string& provider);
/// "0  example_ep  CPU, vendor 0x1022 AuthenticAMD", a line each.
std::string list_devices(const Devices& devices);

/// Makes sessions use these devices.
Status append_devices(OrtSessionOptions* options, OrtEnv* env, const Devices& devices,
                      const Entries& provider_options);
/// "KEY=VALUE" texts, which were checked.
Entries split_entries(const std::vector<std::string>& texts);

/// Libraries that were registered, and the devices of each provider that was asked for.
struct Target {
  std::vector<PluginLibrary> libraries;
  std::vector<Devices> devices;
};

/// Registers libraries by name and path. `providers` empty: those with the names of the libraries.
Result<Target> make_target(OrtEnv* env, const Entries& plugins, std::vector<std::string> providers);

Status add_entries(OrtSessionOptions* options, const Entries& entries);

}  // namespace sardonyx::cli
