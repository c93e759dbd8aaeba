#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "context/container.h"
#include "ir/graph.h"

namespace sardonyx {

/// The files that a model consists of, with what tells whether they change: the model itself, if it
/// was read from a file, and those that its initializers lie in.
/// Cost     a pass over the files.
Result<std::vector<SourceFile>> sources_of(const Graph& graph, const std::string& model_path);
inline Result<std::vector<SourceFile>> sources_of(const Model& model) {
  return sources_of(model.graph, model.path);
}

/// One of them.
Result<SourceFile> describe_source(const std::string& path, bool is_model);

/// Where a compiled model's sources are looked for.
struct SourceLookup {
  /// Bytes of the source model, before all paths; they have to live as long as what is bound.
  std::span<const std::byte> buffer;
  /// The source model; "": where it was when it was compiled, as seen from the container.
  std::string model_path;
  /// Whether sources that are not needed, but there, have to be those that were compiled.
  bool refuses_stale = true;
};

/// The weights of a stored graph that lie in its sources, in their order.
struct BoundSources {
  std::vector<ArtifactBlob> weights;
  std::vector<std::shared_ptr<const void>> keep_alive;
};

/// Finds the sources of a graph and checks that they are those it was compiled from: by the state
/// of the files, or else by their content.
/// Errors   NoSuchFile for a needed source that is missing; InvalidModel for one that differs,
///          naming the file and the first tensor that does.
/// Cost     microseconds for files in a known state, else a pass over them.
Result<BoundSources> bind_sources(const Container& container, const StoredGraph& graph,
                                  const SourceLookup& lookup);

/// All that a provider needs to load a stored graph.
Result<Artifact> open_artifact(std::shared_ptr<const Container> container, const StoredGraph& graph,
                               const SourceLookup& lookup);

}  // namespace sardonyx
