#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "context/container.h"
#include "ep/artifact.h"
#include "plugin/graph_reader.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

/// What a session says about compiled models: entries of its configuration, and, from hosts of
/// version 31 on, functions that take the place of files.
struct ContextOptions {
  bool is_wanted = false;
  bool embeds = false;
  std::string output_path;
  std::string node_prefix;
  Weightless weightless = Weightless::None;
  std::string source_path;
  std::span<const std::byte> source_bytes;
  bool ignores_stale_source = false;
  OrtReadNamedBufferFunc read = nullptr;
  void* read_state = nullptr;
  OrtWriteNamedBufferFunc write = nullptr;
  void* write_state = nullptr;
};

Result<ContextOptions> read_context_options(
    const Host& host, const OrtSessionOptions& session,
    const std::vector<std::pair<std::string, std::string>>& entries);

/// Whether the node stands for a part that this provider compiled.
bool is_own_context(const Node& node);

/// Compiles a graph into its container, and makes the node that stands for it.
/// `model_path` is the model's; `fused` the host's node for the graph.
Result<OrtNode*> keep_part(const Host& host, const ContextOptions& options,
                           const ArtifactProvider& provider, const CompileOptions& compile_options,
                           ReadGraph read, const std::string& model_path, const OrtNode& fused);

/// Loads the part that the graph's one node stands for.
Result<std::unique_ptr<Compiled>> load_part(const Host& host, const ContextOptions& options,
                                            const ArtifactProvider& provider,
                                            const CompileOptions& compile_options,
                                            const Graph& graph, const std::string& model_path);

}  // namespace sardonyx::plugin
