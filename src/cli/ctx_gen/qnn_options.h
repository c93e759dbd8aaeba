#pragma once

#include <string>

#include "cli/outcome.h"
#include "cli/plugins.h"

namespace sardonyx::cli::ctx_gen {

/// Errors   a key that QNN's options do not have here, a value that is none of its values, both
///          ways of naming a backend.
Status check_qnn_options(const Entries& entries);

/// Meaning, values and default of each key.
std::string qnn_options_help();

}  // namespace sardonyx::cli::ctx_gen
