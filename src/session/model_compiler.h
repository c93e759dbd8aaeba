#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "session/context_options.h"
#include "session/session.h"

namespace sardonyx {

/// A model to compile: the one in a file, or, without a path, in bytes, or else one that was built.
struct ModelInput {
  std::string path;
  std::span<const std::byte> bytes;
  const Model* model = nullptr;
};

/// Compiles a model ahead of time and writes what is to be loaded later: the parts that providers
/// compile become nodes that name compiled data, everything else stays as it is. Makes no session.
/// The options' progress function and flag are heard; nothing is left when they stop the work.
/// Cost     memory for the model's largest weight beyond the mapped files.
/// Errors   those of reading, checking and placing; those of write_context_model().
Status compile_to_model(Environment& environment, const ModelInput& input,
                        const SessionOptions& options, const ContextOptions& context);

}  // namespace sardonyx
