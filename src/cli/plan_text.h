#pragma once

#include <string>

#include "cli/api.h"

namespace sardonyx::cli {

/// What the library says of a model's placement (see ExplainModel), for people; `with_nodes`: every
/// node, too.
void print_plan(const std::string& path, const Json& plan, bool with_nodes);

/// Patterns that rules can use (see SuggestPatterns).
void print_suggestions(const std::string& path, const Json& report);

}  // namespace sardonyx::cli
