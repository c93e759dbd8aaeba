#pragma once

#include <string>
#include <vector>

namespace sardonyx::cli {

/// Rows of texts with their columns aligned.
void print_table(const std::vector<std::vector<std::string>>& rows);

}  // namespace sardonyx::cli
