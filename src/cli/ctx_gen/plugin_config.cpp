#include "cli/ctx_gen/plugin_config.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace sardonyx::cli::ctx_gen {

namespace {

namespace fs = std::filesystem;

constexpr const char* kSample = R"({
  "ep_library_registration_name": "example_ep",
  "ep_library_path": "libexample_plugin_ep.so",
  "selected_ep_name": "example_ep",
  "default_ep_options": { "key": "value" }
})";

Status json_error(const std::string& message) {
  return failure("ERROR: JSON parse error: {}\nThis is an example valid JSON configuration:\n{}",
                 message, kSample);
}

/// Errors   when the key is missing or holds something else.
Status read_text(const Json& json, const char* key, std::string* text) {
  const auto found = json.find(key);
  if (found == json.end()) return json_error(fmt::format("key '{}' is missing", key));
  if (!found->is_string()) {
    return json_error(fmt::format("'{}' should be a text, found {}", key, found->dump()));
  }
  *text = found->get<std::string>();
  if (text->empty()) return json_error(fmt::format("'{}' is empty", key));
  return {};
}

Status read_selection(const Json& json, PluginConfig& config) {
  const bool has_name = json.contains("selected_ep_name");
  if (has_name == json.contains("selected_ep_device_indices")) {
    return failure(
        "ERROR: Plugin EP configuration must specify exactly one of 'selected_ep_name' or "
        "'selected_ep_device_indices'");
  }
  if (has_name) return read_text(json, "selected_ep_name", &config.ep_name.emplace());
  const Json& indices = json["selected_ep_device_indices"];
  if (!indices.is_array()) {
    return json_error(
        fmt::format("'selected_ep_device_indices' should be a list of numbers, found "
                    "{}",
                    indices.dump()));
  }
  for (const Json& index : indices) {
    if (!index.is_number_integer()) {
      return json_error(
          fmt::format("'selected_ep_device_indices' should hold whole numbers, found "
                      "{}",
                      index.dump()));
    }
    config.device_indices.push_back(index.get<std::int64_t>());
  }
  return {};
}

Status read_options(const Json& json, PluginConfig& config) {
  const auto found = json.find("default_ep_options");
  if (found == json.end()) return {};
  if (!found->is_object()) {
    return json_error(
        fmt::format("'default_ep_options' should be an object, found {}", found->dump()));
  }
  for (const auto& [key, value] : found->items()) {
    if (!value.is_string()) {
      return json_error(fmt::format("option '{}' should be a text, found {}", key, value.dump()));
    }
    config.ep_options.emplace_back(key, value.get<std::string>());
  }
  return {};
}

/// Other keys are fine, unless they look like misspelt ones.
Status check_keys(const Json& json) {
  const std::vector<std::string> known = {"ep_library_registration_name", "ep_library_path",
                                          "selected_ep_name", "selected_ep_device_indices",
                                          "default_ep_options"};
  for (const auto& [key, value] : json.items()) {
    const bool is_known = std::find(known.begin(), known.end(), key) != known.end();
    if (is_known || nearest(key, known).empty()) continue;
    return json_error(fmt::format("key '{}' is not known{}", key, hint(key, known)));
  }
  return {};
}

}  // namespace

Result<PluginConfig> read_plugin_config(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || !text) {
    return failure("ERROR: Failed to open plugin EP configuration file at path: {}", path);
  }
  Json json;
  try {
    json = Json::parse(text.str());
  } catch (const Json::parse_error& error) {
    return json_error(error.what());
  }
  if (!json.is_object()) return json_error("the file should hold one object");
  SDX_TRY(check_keys(json));
  PluginConfig config;
  SDX_TRY(read_text(json, "ep_library_registration_name", &config.registration_name));
  SDX_TRY(read_text(json, "ep_library_path", &config.library_path));
  SDX_TRY(read_selection(json, config));
  SDX_TRY(read_options(json, config));
  const fs::path beside = fs::path(path).parent_path() / config.library_path;
  std::error_code error;
  for (const fs::path& place : {beside, fs::path(config.library_path)}) {
    if (!fs::is_regular_file(place, error)) continue;
    config.library_path = fs::absolute(place).string();
    break;
  }
  return config;
}

Result<Devices> select_devices(const PluginConfig& config, const Devices& devices) {
  Devices selected;
  if (config.ep_name) selected = devices_of(devices, *config.ep_name);
  for (const std::int64_t index : config.device_indices) {
    if (index < 0 || index >= static_cast<std::int64_t>(devices.size())) {
      return failure("ERROR: Selected EP device index is out of range (max is {}): {}",
                     static_cast<std::int64_t>(devices.size()) - 1, index);
    }
    selected.push_back(devices[static_cast<std::size_t>(index)]);
  }
  if (!selected.empty()) return selected;
  return failure("ERROR: No EP devices were selected{}. There are:\n{}",
                 config.ep_name ? fmt::format(": '{}' has none", *config.ep_name) : "",
                 list_devices(devices));
}

}  // namespace sardonyx::cli::ctx_gen
