#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/outcome.h"

namespace sardonyx::cli::ctx_gen {

/// Whose provider a name of -e means.
struct Vendor {
  const char* name;
  /// The provider's name; libraries are registered under it.
  const char* provider;
  /// File names of the library, one after the other.
  std::vector<const char*> libraries;
  /// How to get it.
  const char* advice;
};

/// The vendor of that name, or null.
const Vendor* find_vendor(std::string_view name);

/// Path of the vendor's library, from the first of: SARDONYX_PLUGIN_PATH (folders or libraries,
/// separated by colons); packages of the Python that `python3` is; LD_LIBRARY_PATH; the system's
/// folders of libraries.
/// Errors   when it is nowhere: what was looked for, and how to get it.
Result<std::string> find_library(const Vendor& vendor);

}  // namespace sardonyx::cli::ctx_gen
