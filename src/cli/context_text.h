#pragma once

#include "cli/api.h"

namespace sardonyx::cli {

/// What the library says of compiled models (see DescribeContext).
Result<Json> describe_context(const std::string& path, bool checks_all);

/// The nodes of compiled parts in a model, a line each.
std::string compiled_nodes_text(const Json& report);
/// The containers of a report: who wrote them, their graphs, layouts and largest blobs.
std::string containers_text(const Json& report);
/// "usable", or what is wrong, a line each.
std::string verdict_text(const Json& report);

/// A JSON text for programs.
void print_json(const Json& report);

}  // namespace sardonyx::cli
