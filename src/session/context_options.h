#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "onnx/writer.h"
#include "session/session.h"

namespace sardonyx {

/// Where a compiled model goes, and what it holds.
struct ContextOptions {
  /// The file of the compiled model; "" = it goes to `take`.
  std::string model_path;
  /// Gets a model that goes to no file.
  std::function<Status(const StagedModel&)> take;
  /// The compiled data stands in the model, not in a file beside it.
  bool embeds = false;
  /// Begins the names of the nodes that stand for compiled parts.
  std::string name_prefix;
  /// Folder and name that the file of compiled data is named after; "" = as other models beside
  /// this one.
  std::string data_folder;
  std::string data_name;
  /// Takes compiled data by name in place of a file; may be empty.
  std::function<Status(const std::string& name, std::span<const std::byte> bytes)> write_data;
  /// Called when everything is written, before anything appears; may be empty.
  std::function<Status()> before_commit;
  /// A model of which nothing was compiled: an error, nothing is written, or else a plain copy.
  bool needs_compiled_nodes = false;
  bool skips_plain_copy = false;
  /// The built-in provider's parts are optimized in full, whatever the session's level is: that
  /// says what other providers see.
  bool optimizes_parts = false;
  /// A file at `model_path` is an error, not overwritten.
  bool keeps_existing = false;
  /// How the rest of the model is written.
  WriteOptions write;
};

/// "folder/name.onnx" as "folder/name_ctx.onnx": "_ctx" before the last dot of the file name, which
/// gets the ending ".onnx".
std::string context_path_of(const std::string& model_path);

/// How initializers are laid out in a file of their own unless the caller says otherwise: those
/// above 1 MiB by pages, so that they can be mapped alone, others by cache lines.
WriteOptions default_layout();

/// What the entries of a session say (ep.context_enable and others); none when it is to write no
/// compiled model. `model_path` is "" for a model that comes from memory.
/// Errors   Internal for a model from memory without ep.context_file_path.
Result<std::optional<ContextOptions>> context_options_of(const SessionOptions& options,
                                                         const std::string& model_path);

/// Looks at the place of the compiled model before any work is done.
/// Errors   InvalidArgument for a folder, or a file in a folder that is not there; Internal for a
///          file that is to be kept.
Status check_context_output(const ContextOptions& options);

/// Errors   InvalidArgument when a file that is to be written is one of `sources`, by whatever
///          name; it says which.
Status check_not_source(const std::string& output, std::span<const std::string> sources);

}  // namespace sardonyx
