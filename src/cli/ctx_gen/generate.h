#pragma once

#include "cli/ctx_gen/arguments.h"

namespace sardonyx::cli::ctx_gen {

/// Exit statuses, as those of the tool whose place this one takes.
inline constexpr int kDone = 0;
inline constexpr int kNoPlugin = 1;
inline constexpr int kFailed = 255;

/// Compiles all models and prints what it does; returns the exit status.
int generate(const Arguments& arguments);

/// "folder/name.onnx" as "folder/name_ctx.onnx": before the last dot of the file's name.
std::string context_path(const std::string& model_path);

}  // namespace sardonyx::cli::ctx_gen
