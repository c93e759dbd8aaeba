#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "context/container.h"
#include "session/compile.h"
#include "session/context_options.h"

namespace sardonyx {

/// Opens the container at a path, on top of what is there, or one in memory for "".
using ContainerOpener =
    FunctionRef<Result<std::unique_ptr<ContainerWriter>>(const std::string& path)>;

/// Opens containers of the library's own; their writers hear of the options' flag.
class ContainerFiles {
 public:
  explicit ContainerFiles(const SessionOptions& options) : cancel_(options.cancel.get()) {}
  Result<std::unique_ptr<ContainerWriter>> operator()(const std::string& path) const;

 private:
  const std::atomic<bool>* cancel_;
};

/// The files that a model was read from: its own, and those of external data.
std::vector<std::string> source_files(const Model& model);

/// Errors   InvalidModel for a model that has nodes of compiled parts already.
Status check_not_compiled(const Model& model);

/// Whether the part is stored by the session, not by its provider: the built-in provider's, in a
/// session that has no other, or with sardonyx.compile_cpu_parts = 1.
bool is_stored_part(const PlacedModel& placed, const PlannedPart& part);

/// Gives the values between parts names, where they have none: nodes refer to them by name.
void name_borders(Graph& graph);

/// Writes a model in which each compiled part is one node (EPContext), and everything else as it
/// is. `parts` belong to placed.parts; those that no provider compiled hold null. `sources` are
/// files that must stay as they are. Files appear whole or not at all, compiled data first.
/// Errors   InvalidArgument for files that cannot be written, or are sources; Internal when nothing
///          was compiled, and that is asked for; Cancelled; those of the providers.
Status write_context_model(const PlacedModel& placed, std::span<const CompiledPart> parts,
                           std::span<const std::string> sources, const ContextOptions& options,
                           ContainerOpener open);

}  // namespace sardonyx
