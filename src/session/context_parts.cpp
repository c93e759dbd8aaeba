#include "session/context_parts.h"

#include <filesystem>
#include <utility>

#include "context/container.h"
#include "session/weightless.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

/// The folder that the node's file is relative to: the model's, or for one from memory that of the
/// path that the options give it.
fs::path folder_of(const CompileOptions& compile_options, const SessionOptions& options) {
  const std::string& path = compile_options.model->path;
  return fs::path(path.empty() ? options.entry("ep.context_file_path") : path).parent_path();
}

Result<std::shared_ptr<const Container>> container_of(const Node& node,
                                                      const CompileOptions& compile_options,
                                                      const SessionOptions& options) {
  if (node.attributes.get_int("embed_mode", 1) != 0) return embedded_container(node);
  if (options.read_context_data) {
    const std::string name = node.attributes.get_string("ep_cache_context", "");
    SDX_ASSIGN(std::vector<std::byte> bytes, options.read_context_data(name));
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return Container::from_bytes(*owner, owner, "'" + name + "' that the caller read");
  }
  return named_container(node, folder_of(compile_options, options));
}

Result<LoadedContext> load(const Graph& graph, const Node& node, const ArtifactProvider& provider,
                           const CompileOptions& compile_options, const SessionOptions& options) {
  SDX_ASSIGN(auto container, container_of(node, compile_options, options));
  const WeightlessSource source = weightless_source(options);
  SourceLookup lookup;
  lookup.buffer = source.bytes;
  lookup.model_path = source.path;
  lookup.refuses_stale = options.entry(kIgnoreStaleEntry) != "1";
  return load_stored(std::move(container), graph, node, provider, compile_options, lookup);
}

}  // namespace

const ArtifactProvider* keeper_of(const Node& node, const Providers& providers) {
  if (!is_context_node(node)) return nullptr;
  const std::string source = node.attributes.get_string("source", "");
  for (const auto& provider : providers) {
    const ArtifactProvider* keeper = as_artifact(*provider);
    if (keeper != nullptr && keeper->context_source() == source) return keeper;
  }
  return nullptr;
}

Result<LoadedContext> load_context(const Graph& graph, const ArtifactProvider& provider,
                                   const CompileOptions& compile_options,
                                   const SessionOptions& options) {
  NodeId id = 0;
  while (graph.node(id).is_removed) ++id;
  const Node& node = graph.node(id);
  auto loaded = load(graph, node, provider, compile_options, options);
  if (loaded.ok()) return loaded;
  return std::move(loaded).take_status().with("loading what " + node.describe(graph) +
                                              " stands for");
}

}  // namespace sardonyx
