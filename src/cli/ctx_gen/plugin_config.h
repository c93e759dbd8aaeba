#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/outcome.h"
#include "cli/plugins.h"

namespace sardonyx::cli::ctx_gen {

/// A provider library and which of its devices to use.
struct PluginConfig {
  std::string registration_name;
  std::string library_path;
  /// Set: all devices of that provider. Else those at `device_indices`.
  std::optional<std::string> ep_name;
  std::vector<std::int64_t> device_indices;
  Entries ep_options;
};

/// The configuration in a JSON file. A library that lies beside the file may be named by its name
/// alone.
/// Errors   as the user is told; for text that is no such JSON with a sample.
Result<PluginConfig> read_plugin_config(const std::string& path);

/// The devices that the configuration means.
/// Errors   an index out of range; no device.
Result<Devices> select_devices(const PluginConfig& config, const Devices& devices);

}  // namespace sardonyx::cli::ctx_gen
