// sardonyx cache: what a folder of compiled models holds, and what of it nobody uses.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/context_text.h"
#include "cli/summary.h"

namespace sardonyx::cli {

namespace {

void print_models(const Json& report) {
  fmt::print("models ({})\n", report["models"].size());
  for (const Json& model : report["models"]) {
    fmt::print("  {}  {}, {} compiled parts, {}\n", printable(model["path"].get<std::string>()),
               bytes_text(model["bytes"].get<double>()), model["compiled_nodes"].size(),
               model["verdict"].get<std::string>());
  }
  for (const Json& file : report["unreadable"]) {
    fmt::print("  {}  cannot be read: {}\n", printable(file["path"].get<std::string>()),
               printable(file["message"].get<std::string>()));
  }
}

void print_unused(const Json& report) {
  for (const Json& container : report["containers"]) {
    if (container.value("unused_graph_count", 0) == 0) continue;
    const std::string doubt = container["doubt"].get<std::string>();
    fmt::print("{} unused graphs, {}, in {}{}\n", container["unused_graph_count"].dump(),
               bytes_text(container["unused_bytes"].get<double>()),
               printable(container["path"].get<std::string>()),
               doubt.empty() ? ": \"sardonyx cache gc\" drops them" : "; " + doubt);
  }
}

Result<Json> describe_folder(const CacheCommand& command) {
  SDX_ASSIGN(Json report, describe_context(command.folder, command.full));
  if (report["kind"] == "folder") return report;
  return failure("'{}' is no folder", command.folder);
}

}  // namespace

Status list_cache(const CacheCommand& command) {
  SDX_ASSIGN(const Json report, describe_folder(command));
  if (command.json) {
    print_json(report);
    return {};
  }
  print_models(report);
  fmt::print("{}", containers_text(report));
  print_unused(report);
  if (!report["problems"].empty()) fmt::print("{}", verdict_text(report));
  return {};
}

Status verify_cache(const CacheCommand& command) {
  SDX_ASSIGN(const Json report, describe_folder(command));
  const std::size_t problem_count = report["problems"].size() + report["unreadable"].size();
  if (command.json) {
    print_json(report);
  } else {
    print_models(report);
    fmt::print("{}", verdict_text(report));
  }
  if (problem_count == 0) return {};
  return failure("{} problems in '{}'", problem_count, command.folder);
}

Status collect_cache(const CacheCommand& command) {
  SDX_ASSIGN(const Json report,
             describe(own_api().CollectContexts, command.folder.c_str(), command.dry_run ? 1 : 0));
  if (command.json) {
    print_json(report);
    return {};
  }
  for (const Json& container : report["containers"]) {
    const std::string path = printable(container["path"].get<std::string>());
    if (container.contains("skipped")) {
      fmt::print("{}: left alone: {}\n", path, printable(container["skipped"].get<std::string>()));
      continue;
    }
    std::vector<std::string> names;
    for (const Json& name : container["dropped"]) {
      names.push_back(printable(name.get<std::string>()));
    }
    if (names.empty()) {
      fmt::print("{}: all of it is in use\n", path);
      continue;
    }
    fmt::print("{}: {} the graphs of {}; {} {} {}\n", path,
               command.dry_run ? "would drop" : "dropped", join(names, ", "),
               bytes_text(container["bytes_before"].get<double>()),
               command.dry_run ? "would become about" : "became",
               bytes_text(container["bytes_after"].get<double>()));
  }
  if (report["containers"].empty()) fmt::print("no containers in '{}'\n", command.folder);
  return {};
}

}  // namespace sardonyx::cli
