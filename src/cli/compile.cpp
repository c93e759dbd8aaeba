// sardonyx compile: models compiled ahead of time into one folder, where they share their weights.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/commands.h"
#include "cli/context_text.h"
#include "cli/interrupt.h"
#include "cli/model.h"
#include "cli/plugins.h"
#include "cli/progress.h"
#include "cli/summary.h"

namespace sardonyx::cli {

namespace {

namespace fs = std::filesystem;

const OrtCompileApi& compile_api() { return *api().GetCompileApi(); }

struct ReleaseOptions {
  void operator()(OrtModelCompilationOptions* options) const {
    compile_api().ReleaseModelCompilationOptions(options);
  }
};
using CompilationOptions = std::unique_ptr<OrtModelCompilationOptions, ReleaseOptions>;

/// A compiled model for each path, none twice.
Result<std::vector<std::string>> output_paths(const CompileCommand& command) {
  std::map<std::string, std::string> sources;
  std::vector<std::string> outputs;
  for (const std::string& path : command.paths) {
    const std::string name = fs::path(path).stem().string() + "_ctx.onnx";
    const auto [other, is_new] = sources.try_emplace(name, path);
    if (!is_new) {
      return failure("'{}' and '{}' would both become '{}': compile them into two folders",
                     other->second, path, name);
    }
    outputs.push_back((fs::path(command.folder) / name).string());
    std::error_code error;
    if (!command.force && fs::exists(outputs.back(), error)) {
      return failure("'{}' exists; --force overwrites it", outputs.back());
    }
  }
  return outputs;
}

/// The folder that was made for the outputs; goes again when nothing was written into it.
class OutputFolder {
 public:
  Status make(const std::string& path) {
    std::error_code error;
    is_new_ = fs::create_directories(path, error);
    path_ = path;
    if (!error && fs::is_directory(path, error)) return {};
    return failure("cannot make the folder '{}': {}", path,
                   error ? error.message() : "it is no folder");
  }
  OutputFolder() = default;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  ~OutputFolder() {
    std::error_code error;
    if (is_new_ && fs::is_empty(path_, error)) fs::remove(path_, error);
  }

 private:
  std::string path_;
  bool is_new_ = false;
};

GraphOptimizationLevel level_of(const CompileCommand& command, const Target& target) {
  static const std::map<std::string, GraphOptimizationLevel> kLevels = {
      {"none", ORT_DISABLE_ALL},
      {"basic", ORT_ENABLE_BASIC},
      {"extended", ORT_ENABLE_EXTENDED},
      {"all", ORT_ENABLE_ALL}};
  if (!command.level.empty()) return kLevels.at(command.level);
  // Vendors' compilers want the model as it is.
  return target.devices.empty() ? ORT_ENABLE_ALL : ORT_DISABLE_ALL;
}

/// Shows a stage; asks it to stop after Ctrl-C. The last one takes most of the time.
int report_stage(void* state, const char* stage, double done, double total) {
  constexpr double kEarlier = 0.1;
  const double earlier = total > 1 ? std::min(done / (total - 1), 1.0) : 1;
  const double last = std::max(done - (total - 1), 0.0);
  static_cast<Progress*>(state)->update(kEarlier * earlier + (1 - kEarlier) * last, stage);
  return interrupted() ? 1 : 0;
}

Result<SessionOptions> session_options(const CompileCommand& command, OrtEnv* env,
                                       const Target& target, bool is_last) {
  OrtSessionOptions* raw = nullptr;
  SDX_TRY(check(api().CreateSessionOptions(&raw)));
  SessionOptions options(raw);
  // Providers of vendors share among the models of a group.
  if (!target.devices.empty() && command.paths.size() > 1 && !command.embed) {
    SDX_TRY(add_entries(raw, {{"ep.share_ep_contexts", "1"}}));
    if (is_last) SDX_TRY(add_entries(raw, {{"ep.stop_share_ep_contexts", "1"}}));
  }
  SDX_TRY(add_entries(raw, split_entries(command.entries)));
  for (const Devices& devices : target.devices) {
    SDX_TRY(append_devices(raw, env, devices, split_entries(command.provider_options)));
  }
  return options;
}

Status compile_one(const CompileCommand& command, OrtEnv* env, const Target& target,
                   std::size_t index, const std::string& output) {
  const std::string& path = command.paths[index];
  const std::size_t count = command.paths.size();
  SDX_ASSIGN(const SessionOptions session,
             session_options(command, env, target, index + 1 == count));
  Progress progress(fmt::format("compiling {} ({}/{})", path, index + 1, count));
  SDX_TRY(
      check(own_api().SessionOptionsSetProgressFunction(session.get(), &report_stage, &progress)));
  const InterruptScope scope(session.get());
  const OrtCompileApi& compiler = compile_api();
  OrtModelCompilationOptions* raw = nullptr;
  SDX_TRY(
      check(compiler.CreateModelCompilationOptionsFromSessionOptions(env, session.get(), &raw)));
  const CompilationOptions options(raw);
  SDX_TRY(check(compiler.ModelCompilationOptions_SetInputModelPath(raw, path.c_str())));
  SDX_TRY(check(compiler.ModelCompilationOptions_SetOutputModelPath(raw, output.c_str())));
  SDX_TRY(check(compiler.ModelCompilationOptions_SetEpContextEmbedMode(raw, command.embed)));
  SDX_TRY(check(
      compiler.ModelCompilationOptions_SetGraphOptimizationLevel(raw, level_of(command, target))));
  if (!command.weightless.empty()) {
    SDX_TRY(check(compiler.ModelCompilationOptions_SetWeightlessMode(
        raw, command.weightless == "all" ? OrtWeightlessSupport_ALL
                                         : OrtWeightlessSupport_EXTERNAL_ONLY)));
  }
  std::uint32_t flags = OrtCompileApiFlags_ERROR_IF_NO_NODES_COMPILED;
  if (!command.force) flags |= OrtCompileApiFlags_ERROR_IF_OUTPUT_FILE_EXISTS;
  SDX_TRY(check(compiler.ModelCompilationOptions_SetFlags(raw, flags)));
  return check(compiler.CompileModel(env, raw));
}

/// The data files of compiled models, each once, with what the library says of them.
void add_data(const Json& model, std::map<std::string, Json>& data) {
  for (const Json& node : model["compiled_nodes"]) {
    if (!node["data_path"].is_string()) continue;
    data[node["data_path"].get<std::string>()] = {{"bytes", node["data_bytes"]}};
  }
  for (const Json& container : model["containers"]) {
    if (!container["path"].is_string()) continue;
    data[container["path"].get<std::string>()] = {{"bytes", container["bytes"]},
                                                  {"saved_bytes", container["saved_bytes"]}};
  }
}

Status report_outputs(const CompileCommand& command, const std::vector<std::string>& outputs,
                      const std::vector<double>& times_ms) {
  std::map<std::string, Json> data;
  Json models = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    SDX_ASSIGN(const Json model, describe_context(outputs[i], false));
    add_data(model, data);
    models.push_back({{"model", command.paths[i]},
                      {"output", outputs[i]},
                      {"bytes", model["bytes"]},
                      {"compiled_parts", model["compiled_nodes"].size()},
                      {"compile_ms", times_ms[i]}});
  }
  if (command.json) {
    Json rows = Json::array();
    for (auto& [path, row] : data) {
      row["path"] = path;
      rows.push_back(row);
    }
    print_json({{"models", models}, {"data", rows}});
    return {};
  }
  for (const Json& model : models) {
    fmt::print("{}  {}, {:.0f} ms\n", model["output"].get<std::string>(),
               bytes_text(model["bytes"].get<double>()), model["compile_ms"].get<double>());
  }
  for (const auto& [path, row] : data) {
    const double saved = row.value("saved_bytes", 0.0);
    fmt::print("{}  {}{}\n", path, bytes_text(row["bytes"].get<double>()),
               saved > 0 ? fmt::format(", {} saved by sharing", bytes_text(saved)) : "");
  }
  return {};
}

}  // namespace

Status compile(const CompileCommand& command) {
  SDX_ASSIGN(const std::vector<std::string> outputs, output_paths(command));
  SDX_ASSIGN(const Env env, make_env());
  SDX_ASSIGN(const Target target, make_target(env.get(), split_entries(command.plugins),
                                                 command.providers));
  OutputFolder folder;
  SDX_TRY(folder.make(command.folder));
  std::vector<double> times_ms;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const double start = now_ms();
    SDX_TRY(compile_one(command, env.get(), target, i, outputs[i]));
    times_ms.push_back(now_ms() - start);
  }
  return report_outputs(command, outputs, times_ms);
}

}  // namespace sardonyx::cli
