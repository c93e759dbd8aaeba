// sardonyx explain: which nodes of a model would run where, and why; nothing is compiled or run.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

#include "cli/commands.h"
#include "cli/context_text.h"
#include "cli/files.h"
#include "cli/model.h"
#include "cli/plan_text.h"
#include "cli/plugins.h"

namespace sardonyx::cli {

namespace {

namespace fs = std::filesystem;

/// What is said about rules is in the report; the log repeats it.
Result<Env> make_quiet_env() {
  OrtEnv* env = nullptr;
  SDX_TRY(check(api().CreateEnv(ORT_LOGGING_LEVEL_ERROR, "sardonyx", &env)));
  return Env(env);
}

/// Errors   for files that models or what was given stand in, and without --force for all others.
Status check_output(const ExplainCommand& command, const std::string& path) {
  std::error_code error;
  if (path.empty() || !fs::exists(path, error)) return {};
  static const std::set<std::string> kModels = {".onnx", ".ort", ".bin", ".data"};
  for (const std::string& given : {command.path, command.devices}) {
    if (!given.empty() && fs::equivalent(path, given, error)) {
      return failure("'{}' is what is read; it is not overwritten", path);
    }
  }
  if (kModels.contains(fs::path(path).extension().string())) {
    return failure("'{}' is there, and may belong to a model; it is not overwritten", path);
  }
  if (command.force && fs::is_regular_file(path, error)) return {};
  return failure("'{}' exists; --force overwrites it", path);
}

Status check_outputs(const ExplainCommand& command) {
  SDX_TRY(check_output(command, command.html));
  SDX_TRY(check_output(command, command.save_plan));
  if (!command.html.empty() && command.html == command.save_plan) {
    return failure("--html and --save-plan name one file, '{}'", command.html);
  }
  return {};
}

Result<SessionOptions> session_options(const ExplainCommand& command, OrtEnv* env,
                                       const Target& target) {
  OrtSessionOptions* raw = nullptr;
  SDX_TRY(check(api().CreateSessionOptions(&raw)));
  SessionOptions options(raw);
  const Entries placement = {{"sardonyx.placement", command.rules},
                             {"session.name_based_layer_assignment", command.names},
                             {"session.layer_assignment_settings", command.annotations},
                             {"session.resource_partitioning_settings", command.budget},
                             {"sardonyx.placement_file", command.plan}};
  for (const auto& [key, value] : placement) {
    if (!value.empty()) SDX_TRY(add_entries(raw, {{key, value}}));
  }
  SDX_TRY(add_entries(raw, split_entries(command.entries)));
  for (const auto& [symbol, size] : split_entries(command.dims)) {
    SDX_TRY(check(api().AddFreeDimensionOverrideByName(raw, symbol.c_str(), std::stoll(size))));
  }
  for (const Devices& devices : target.devices) {
    SDX_TRY(append_devices(raw, env, devices, split_entries(command.provider_options)));
  }
  return options;
}

Result<Json> make_plan(const ExplainCommand& command) {
  std::string devices;
  if (!command.devices.empty()) {
    SDX_ASSIGN(const auto bytes, read_file(command.devices));
    devices.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  SDX_ASSIGN(const Env env, make_quiet_env());
  SDX_ASSIGN(const Target target,
             make_target(env.get(), split_entries(command.plugins), command.providers));
  SDX_ASSIGN(const SessionOptions options, session_options(command, env.get(), target));
  char* text = nullptr;
  SDX_TRY(check(own_api().ExplainModel(env.get(), command.path.c_str(), options.get(),
                                       command.devices.empty() ? nullptr : devices.c_str(),
                                       allocator(), &text)));
  return Json::parse(take_text(text), nullptr, false);
}

/// The plan as a file that a session can load.
std::string saved_plan(const ExplainCommand& command, const Json& plan) {
  std::map<std::string, std::string> device_of;
  Json nodes = Json::array();
  std::size_t lost_count = 0;
  for (const Json& node : plan["nodes"]) {
    const bool is_nameless = node["name"].get_ref<const std::string&>().empty();
    const char* key = is_nameless ? "output" : "name";
    const std::string name = node.value(key, "");
    const std::string device = node["device"].get<std::string>();
    const auto [former, is_new] = device_of.try_emplace(name, device);
    if (!is_new && former->second != device) ++lost_count;
    if (is_new) nodes.push_back({{key, name}, {"device", device}});
  }
  if (lost_count != 0) {
    fmt::print(stderr,
               "sardonyx: {} nodes have the name of another one that runs elsewhere; the plan has "
               "the first of each\n",
               lost_count);
  }
  const Json file = {
      {"format", 1}, {"model", command.path}, {"strict", false}, {"nodes", std::move(nodes)}};
  return file.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Status write_outputs(const ExplainCommand& command, const Json& plan) {
  if (!command.save_plan.empty()) {
    SDX_TRY(write_file(command.save_plan, saved_plan(command, plan)));
  }
  if (command.html.empty()) return {};
  Json shown = plan;
  shown["model"] = command.path;
  char* text = nullptr;
  SDX_TRY(check(own_api().PlanToHtml(
      shown.dump(-1, ' ', false, Json::error_handler_t::replace).c_str(), allocator(), &text)));
  return write_file(command.html, take_text(text));
}

Status suggest(const ExplainCommand& command) {
  SDX_ASSIGN(const Json report, describe(own_api().SuggestPatterns, command.path.c_str()));
  if (command.json) {
    print_json(report);
  } else {
    print_suggestions(command.path, report);
  }
  return {};
}

}  // namespace

Status explain(const ExplainCommand& command) {
  if (command.suggest) return suggest(command);
  SDX_TRY(check_outputs(command));
  SDX_ASSIGN(const Json plan, make_plan(command));
  SDX_TRY(write_outputs(command, plan));
  if (command.json) {
    print_json(plan);
  } else {
    print_plan(command.path, plan, command.nodes);
  }
  return {};
}

}  // namespace sardonyx::cli
