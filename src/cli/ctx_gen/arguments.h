#pragma once

#include <string>
#include <vector>

#include "cli/outcome.h"
#include "cli/plugins.h"

namespace sardonyx::cli::ctx_gen {

/// What the command line says.
struct Arguments {
  /// -e: a vendor's name, or "cpu".
  std::string provider = "qnn";
  bool names_provider = false;
  /// -p: path of a plugin configuration; goes before -e and -i.
  std::string plugin_config;
  /// -i, for the provider.
  Entries provider_options;
  /// -C, for the sessions; what the tool itself sets is not among them.
  Entries session_entries;
  /// What is to be said about entries that were left out.
  std::vector<std::string> notes;
  std::vector<std::string> warnings;
  bool is_verbose = false;
  bool wants_help = false;
  std::vector<std::string> models;
};

/// Errors   what is wrong, as the user is told.
Result<Arguments> parse_arguments(int argument_count, char** arguments);

/// "a|1 b|2" as entries.
/// Errors   an entry without '|', an empty field, a key twice; it is named.
Result<Entries> parse_entries(const std::string& text);

/// The text of -h.
std::string usage();

}  // namespace sardonyx::cli::ctx_gen
