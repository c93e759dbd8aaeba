#include "cli/ctx_gen/generate.h"

#include <cstdio>
#include <filesystem>

#include "cli/ctx_gen/plugin_config.h"
#include "cli/ctx_gen/vendors.h"
#include "cli/interrupt.h"

namespace sardonyx::cli::ctx_gen {

namespace {

namespace fs = std::filesystem;

/// The devices that compile, and the options that their provider gets.
struct Target {
  std::optional<PluginLibrary> library;
  Devices devices;
  Entries options;
};

Status list_if_wanted(const Arguments& arguments, const Devices& devices) {
  if (!arguments.is_verbose) return {};
  fmt::print("Devices (positions for selected_ep_device_indices):\n{}", list_devices(devices));
  return {};
}

Result<Target> plugin_target(const Arguments& arguments, OrtEnv* env, const PluginConfig& config) {
  Target target;
  SDX_ASSIGN(target.library,
             PluginLibrary::load(env, config.registration_name, config.library_path));
  SDX_ASSIGN(const Devices devices, all_devices(env));
  SDX_TRY(list_if_wanted(arguments, devices));
  SDX_ASSIGN(target.devices, select_devices(config, devices));
  target.options = config.ep_options;
  return target;
}

Result<PluginConfig> vendor_config(const Arguments& arguments) {
  const Vendor& vendor = *find_vendor(arguments.provider);
  PluginConfig config;
  SDX_ASSIGN(config.library_path, find_library(vendor));
  config.registration_name = vendor.provider;
  config.ep_name = vendor.provider;
  config.ep_options = arguments.provider_options;
  return config;
}

/// The built-in provider. It is named only when it has options to refuse.
Result<Target> cpu_target(const Arguments& arguments, OrtEnv* env) {
  Target target;
  SDX_ASSIGN(const Devices devices, all_devices(env));
  SDX_TRY(list_if_wanted(arguments, devices));
  if (arguments.provider_options.empty()) return target;
  target.devices = devices_of(devices, "CPUExecutionProvider");
  target.options = arguments.provider_options;
  return target;
}

Result<SessionOptions> make_options(const Arguments& arguments, OrtEnv* env, const Target& target,
                                    const std::string& output, bool is_last) {
  OrtSessionOptions* raw = nullptr;
  SDX_TRY(check(api().CreateSessionOptions(&raw)));
  SessionOptions options(raw);
  SDX_TRY(check(api().SetSessionLogId(raw, "ep_weight_sharing_ctx_gen_session_logger")));
  SDX_TRY(check(api().SetSessionLogSeverityLevel(
      raw, arguments.is_verbose ? ORT_LOGGING_LEVEL_VERBOSE : ORT_LOGGING_LEVEL_ERROR)));
  SDX_TRY(add_entries(raw, arguments.session_entries));
  SDX_TRY(add_entries(raw, {{"ep.context_enable", "1"},
                            {"ep.context_embed_mode", "0"},
                            {"ep.context_file_path", output},
                            {"ep.share_ep_contexts", "1"}}));
  if (is_last) SDX_TRY(add_entries(raw, {{"ep.stop_share_ep_contexts", "1"}}));
  if (!target.devices.empty()) {
    SDX_TRY(append_devices(raw, env, target.devices, target.options));
  }
  return options;
}

Status compile(const Arguments& arguments, OrtEnv* env, const Target& target, std::size_t index) {
  const std::string& path = arguments.models[index];
  const std::string output = context_path(path);
  SDX_ASSIGN(const SessionOptions options,
             make_options(arguments, env, target, output, index + 1 == arguments.models.size()));
  const InterruptScope scope(options.get());
  OrtSession* session = nullptr;
  SDX_TRY(check(api().CreateSession(env, path.c_str(), options.get(), &session)));
  const Session owner(session);
  std::error_code error;
  if (fs::exists(output, error)) return {};
  return failure(
      "no part of '{}' was compiled, so that '{}' was not written: the provider took no node, or "
      "does not compile ahead of time",
      path, output);
}

/// The largest max_size of the nodes of a compiled model that refer to contexts themselves; 0 when
/// none has one.
Result<std::int64_t> max_size_of(const std::string& path) {
  SDX_ASSIGN(const Json report, describe(own_api().DescribeContext, path.c_str(), 0));
  std::int64_t max_size = 0;
  for (const Json& node : report["compiled_nodes"]) {
    if (!node["main_context"].get<bool>() || !node["max_size"].is_number_integer()) continue;
    max_size = std::max(max_size, node["max_size"].get<std::int64_t>());
  }
  return max_size;
}

/// Gives the earlier models the last one's max_size.
Status spread_max_size(const Arguments& arguments) {
  fmt::print("Start to update the generated Onnx model to reflect the max_size.\n");
  const std::string last = context_path(arguments.models.back());
  SDX_ASSIGN(const std::int64_t max_size, max_size_of(last));
  if (max_size == 0) {
    fmt::print("'{}' has no max_size: nothing was changed.\n", last);
    return {};
  }
  for (std::size_t i = 0; i + 1 < arguments.models.size(); ++i) {
    const std::string path = context_path(arguments.models[i]);
    std::size_t count = 0;
    SDX_TRY(check(own_api().SetContextMaxSize(path.c_str(), max_size, &count)));
    fmt::print("'{}': max_size {} in {} nodes.\n", path, max_size, count);
  }
  return {};
}

bool shares_spill_buffer(const Arguments& arguments) {
  if (!arguments.plugin_config.empty() || arguments.provider != "qnn") return false;
  for (const auto& [key, value] : arguments.provider_options) {
    if (key == "enable_htp_spill_fill_buffer") return value == "1";
  }
  return false;
}

Status compile_all(const Arguments& arguments, OrtEnv* env, const Target& target) {
  for (std::size_t i = 0; i < arguments.models.size(); ++i) {
    fmt::print("Generating context cache model for: {}\n", arguments.models[i]);
    std::fflush(stdout);
    SDX_TRY(compile(arguments, env, target, i));
  }
  return shares_spill_buffer(arguments) ? spread_max_size(arguments) : Status();
}

}  // namespace

std::string context_path(const std::string& model_path) {
  const fs::path path(model_path);
  return fs::path(path).replace_filename(path.stem().string() + "_ctx.onnx").string();
}

int generate(const Arguments& arguments) {
  for (const std::string& path : arguments.models) fmt::print("Model file path: {}\n", path);
  OrtEnv* raw = nullptr;
  const Status made = check(
      api().CreateEnv(arguments.is_verbose ? ORT_LOGGING_LEVEL_VERBOSE : ORT_LOGGING_LEVEL_ERROR,
                      "ep_weight_sharing", &raw));
  if (!made.ok()) {
    fmt::print(stderr, "Failed to generate context cache file: {}\n", made.text());
    return kFailed;
  }
  const Env env(raw);
  const bool is_plugin = !arguments.plugin_config.empty() || arguments.provider != "cpu";
  std::string library_path;
  auto target = [&]() -> Result<Target> {
    if (!is_plugin) return cpu_target(arguments, raw);
    SDX_ASSIGN(const PluginConfig config, arguments.plugin_config.empty()
                                              ? vendor_config(arguments)
                                              : read_plugin_config(arguments.plugin_config));
    library_path = config.library_path;
    return plugin_target(arguments, raw, config);
  }();
  if (!target.ok()) {
    fmt::print(stderr, "{}\n", target.status().text());
    if (!is_plugin) return kFailed;
    fmt::print(stderr, "ERROR: Failed to initialize session for plugin EP {}\n",
               library_path.empty() ? arguments.provider : library_path);
    return kNoPlugin;
  }
  const Status status = compile_all(arguments, raw, *target);
  if (!status.ok()) {
    fmt::print(stderr, "Failed to generate context cache file: {}\n",
               interrupted() ? "interrupted" : status.text());
    return kFailed;
  }
  fmt::print("Generation done!\n");
  return kDone;
}

}  // namespace sardonyx::cli::ctx_gen
