#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "context/source.h"
#include "ep/artifact.h"
#include "ir/graph.h"

namespace sardonyx {

/// The configuration entry that lets a compiled model run although its source has changed.
inline constexpr const char* kIgnoreStaleEntry = "sardonyx.context_ignore_stale_source";

/// Whether the node stands for a part that a provider compiled.
bool is_context_node(const Node& node);

/// The key of the stored graph that a node of our provider stands for: the end of the name of its
/// partition.
std::string stored_key(const Node& node);

/// What a node of our provider says beside its inputs and outputs.
struct StoredNode {
  /// Ends with the key of the stored graph.
  std::string partition_name;
  /// The container: its bytes, or its name as seen from the compiled model.
  std::string data;
  bool is_embedded = false;
  /// Of the provider (ArtifactProvider::context_source).
  std::string_view source;
  /// The model that was compiled, as seen from the compiled one.
  std::string model_name;
};
Attributes attributes_of(StoredNode node);

/// The container that the node names, in the folder of its model.
/// Errors   InvalidModel for a name that leads out of the folder; those of Container::open().
Result<std::shared_ptr<const Container>> named_container(const Node& node,
                                                         const std::filesystem::path& folder);
/// The container that the node itself holds.
Result<std::shared_ptr<const Container>> embedded_container(const Node& node);

/// A part that was loaded, and the mapped files that it reads when it runs.
struct LoadedContext {
  std::unique_ptr<Compiled> compiled;
  std::vector<std::shared_ptr<const void>> files;
};

/// Loads the stored graph that the node of a graph stands for.
/// Errors   those of finding and binding it; InvalidModel when it has other numbers of inputs and
///          outputs than the graph.
Result<LoadedContext> load_stored(std::shared_ptr<const Container> container, const Graph& graph,
                                  const Node& node, const ArtifactProvider& provider,
                                  const CompileOptions& options, const SourceLookup& lookup);

}  // namespace sardonyx
