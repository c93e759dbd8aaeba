// sardonyx run: one run of a model, its outputs to files or as a summary.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>

#include "cli/commands.h"
#include "cli/files.h"
#include "cli/interrupt.h"
#include "cli/npy.h"
#include "cli/summary.h"

namespace sardonyx::cli {

namespace {

/// A name that is safe as the name of a file.
std::string file_name(const std::string& name) {
  std::string safe = name.empty() ? "output" : name;
  for (char& letter : safe) {
    const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                          (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' ||
                          letter == '.' || letter == '[' || letter == ']';
    if (!is_plain) letter = '_';
  }
  if (safe[0] == '.') safe[0] = '_';
  return safe;
}

/// A path per output, none twice; that none exists is checked before the model runs as well.
Result<std::vector<std::string>> output_paths(const RunCommand& command,
                                              const std::vector<std::string>& names) {
  std::vector<std::string> paths;
  for (const std::string& name : names) {
    const std::string stem = (std::filesystem::path(command.folder) / file_name(name)).string();
    std::string path = stem + ".npy";
    for (int i = 2; std::find(paths.begin(), paths.end(), path) != paths.end(); ++i) {
      path = fmt::format("{}_{}.npy", stem, i);
    }
    if (!command.force && std::filesystem::exists(path)) {
      return failure("'{}' exists; --force overwrites it", path);
    }
    paths.push_back(path);
  }
  return paths;
}

Status write_outputs(const RunCommand& command, const std::vector<NamedArray>& outputs,
                     std::vector<std::string>* written) {
  std::vector<std::string> names;
  for (const NamedArray& output : outputs) names.push_back(output.name);
  SDX_ASSIGN(*written, output_paths(command, names));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    SDX_ASSIGN(const std::string bytes, format_npy(outputs[i].array));
    SDX_TRY(write_file((*written)[i], bytes));
  }
  return {};
}

Status prepare_folder(const RunCommand& command, const Model& model) {
  std::error_code error;
  std::filesystem::create_directories(command.folder, error);
  if (error || !std::filesystem::is_directory(command.folder)) {
    return failure("cannot make the folder '{}': {}", command.folder,
                   error ? error.message() : "it is no folder");
  }
  std::vector<std::string> names;
  for (const Port& port : model.outputs) names.push_back(port.name);
  SDX_ASSIGN([[maybe_unused]] const auto paths, output_paths(command, names));
  return {};
}

void print_json(const Model& model, const Feeds& feeds, const std::vector<NamedArray>& outputs,
                const std::vector<std::string>& written, double run_ms) {
  Json report = {{"model", model.path}, {"load_ms", model.load_ms}, {"run_ms", run_ms}};
  report["inputs"] = Json::array();
  for (std::size_t i = 0; i < feeds.names.size(); ++i) {
    report["inputs"].push_back({{"name", feeds.names[i]},
                                {"type", feeds.arrays[i].type_name()},
                                {"shape", feeds.arrays[i].dims},
                                {"source", feeds.sources[i]}});
  }
  report["outputs"] = Json::array();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    Json row = summary_json(outputs[i].name, outputs[i].array);
    if (i < written.size()) row["file"] = written[i];
    report["outputs"].push_back(std::move(row));
  }
  fmt::print("{}\n", report.dump(2, ' ', false, Json::error_handler_t::replace));
}

void print_text(const Model& model, const Feeds& feeds, const std::vector<NamedArray>& outputs,
                const std::vector<std::string>& written, double run_ms) {
  fmt::print("{}: load {:.1f} ms, run {:.1f} ms\ninputs\n", model.path, model.load_ms, run_ms);
  for (std::size_t i = 0; i < feeds.names.size(); ++i) {
    fmt::print("  {}  {} {}  {}\n", printable(feeds.names[i]), feeds.arrays[i].type_name(),
               feeds.arrays[i].shape_text(), feeds.sources[i]);
  }
  fmt::print("outputs\n");
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    fmt::print("{}", summary_text(outputs[i].name, outputs[i].array));
    if (i < written.size()) fmt::print("    written to {}\n", written[i]);
  }
}

}  // namespace

Status run(const RunCommand& command) {
  SDX_TRY(check(own_api().SetRandomSeed(command.feeds.seed)));
  SDX_ASSIGN(Env env, make_env());
  SDX_ASSIGN(const Model model, load_model(std::move(env), command.path, command.threads));
  if (!command.folder.empty()) SDX_TRY(prepare_folder(command, model));
  SDX_ASSIGN(const Feeds feeds, make_feeds(model, command.feeds));
  OrtRunOptions* raw = nullptr;
  SDX_TRY(check(api().CreateRunOptions(&raw)));
  const RunOptions options(raw);
  const InterruptScope scope(raw);
  const double start = now_ms();
  auto results = run_model(model, feeds.names, feeds.values, raw);
  const double run_ms = now_ms() - start;
  if (!results.ok()) {
    return std::move(results).take_status().with(
        fmt::format("running '{}'{}", command.path, explain_generated(model, feeds)));
  }
  std::vector<NamedArray> outputs;
  for (std::size_t i = 0; i < model.outputs.size(); ++i) {
    SDX_TRY(append_arrays(model.outputs[i].name, (*results)[i].get(), &outputs));
  }
  std::vector<std::string> written;
  if (!command.folder.empty()) SDX_TRY(write_outputs(command, outputs, &written));
  (command.json ? print_json : print_text)(model, feeds, outputs, written, run_ms);
  return {};
}

}  // namespace sardonyx::cli
