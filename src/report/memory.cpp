#include <fstream>
#include <string_view>

#include "base/text.h"
#include "report/json.h"
#include "report/report.h"

namespace sardonyx {

namespace {

struct Row {
  std::string_view label;
  const char* key;
};

constexpr Row kRows[] = {{"Rss:", "rss_bytes"},
                         {"Pss:", "pss_bytes"},
                         {"Anonymous:", "anonymous_bytes"},
                         {"Private_Clean:", "private_clean_bytes"},
                         {"Private_Dirty:", "private_dirty_bytes"},
                         {"Shared_Clean:", "shared_clean_bytes"}};

}  // namespace

Result<std::string> describe_memory() {
  static constexpr const char* kPath = "/proc/self/smaps_rollup";
  std::ifstream file(kPath);
  if (!file) return failure(Code::Unsupported, "this system has no {}", kPath);
  Json process = Json::object();
  for (std::string line; std::getline(file, line);) {
    for (const Row& row : kRows) {
      if (!line.starts_with(row.label)) continue;
      process[row.key] = std::strtoull(line.c_str() + row.label.size(), nullptr, 10) * 1024;
    }
  }
  return to_text({{"process", process}});
}

}  // namespace sardonyx
