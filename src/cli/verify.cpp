// sardonyx verify: whether compiled models can be used here, without loading them.
#include <fmt/format.h>

#include <cstdio>

#include "cli/commands.h"
#include "cli/context_text.h"
#include "cli/model.h"

namespace sardonyx::cli {

Status verify(const VerifyCommand& command) {
  std::size_t bad_count = 0;
  Json reports = Json::array();
  for (const std::string& path : command.paths) {
    const double start = now_ms();
    SDX_ASSIGN(Json report, describe_context(path, command.full));
    const double ms = now_ms() - start;
    if (report["verdict"] != "usable") ++bad_count;
    if (command.json) {
      report["ms"] = ms;
      reports.push_back(std::move(report));
    } else {
      fmt::print("{}: {}", path, verdict_text(report));
      fmt::print("  {} in {:.2f} ms\n",
                 command.full
                     ? "all bytes and sources checked"
                     : "header, index, build and sources' states checked; --full reads all",
                 ms);
    }
  }
  if (command.json) print_json(command.paths.size() == 1 ? reports[0] : reports);
  if (bad_count == 0) return {};
  return failure("{} of {} cannot be used", bad_count, command.paths.size());
}

}  // namespace sardonyx::cli
