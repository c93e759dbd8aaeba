#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "base/status.h"
#include "session/session.h"

namespace sardonyx {

/// Where a session keeps compiled models of its own accord: the folder that the entry
/// sardonyx.cache_dir names. A model's file in it is named after the hash of all that the compiled
/// model depends on: the bytes of the model and of its external data, the session's options, this
/// build and the instruction set. Several processes may use a folder at once.
class CompiledCache {
 public:
  /// None when the session has no such folder, or when what it compiles depends on more than the
  /// model and options: on other providers, own operators, or weights that the caller gives.
  /// `bytes` are those of a model that was read from memory.
  /// Errors   those of reading the model's files.
  static Result<std::optional<CompiledCache>> of(const Model& model,
                                                 std::span<const std::byte> bytes,
                                                 const SessionOptions& options);

  /// The compiled model: the one in the folder, or, when there is none or with `rebuilds`, one that
  /// is compiled into it.
  /// Errors   those of compiling and of the folder.
  Result<Model> open(Environment& environment, const Model& model, const SessionOptions& options,
                     bool rebuilds) const;
  /// What a session that runs the compiled model has to be told instead.
  void adapt(SessionOptions& options) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::string source_path_;
};

}  // namespace sardonyx
