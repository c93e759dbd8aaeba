#pragma once

#include <string>
#include <vector>

#include "cli/outcome.h"

namespace sardonyx::cli {

/// The bytes of a regular file.
Result<std::vector<std::byte>> read_file(const std::string& path);

/// Writes a file that appears whole or not at all: under a temporary name first, then renamed.
Status write_file(const std::string& path, const std::string& bytes);

}  // namespace sardonyx::cli
