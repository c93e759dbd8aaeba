#include "cli/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

namespace sardonyx::cli {

void print_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line = " ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += i + 1 == row.size() ? " " + row[i] : fmt::format(" {:<{}} ", row[i], widths[i]);
    }
    fmt::print("{}\n", line);
  }
}

}  // namespace sardonyx::cli
