#pragma once

#include <map>
#include <random>

#include "cli/model.h"

namespace sardonyx::cli {

/// An array for the input, as make_feeds says.
Result<Array> generate(const Port& port, const std::map<std::string, std::int64_t>& size_of,
                       std::mt19937_64& random);

}  // namespace sardonyx::cli
