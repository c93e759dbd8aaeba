#include "session/context_parts.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "context/container.h"
#include "context/source.h"
#include "session/compiled_model.h"
#include "session/weightless.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

constexpr const char* kIgnoreStaleEntry = "sardonyx.context_ignore_stale_source";

std::string entry_of(const SessionOptions& options, const char* key) {
  const auto found = options.entries.find(key);
  return found == options.entries.end() ? std::string() : found->second;
}

/// The folder that the node's file is relative to: the model's, or for one from memory that of the
/// path that the options give it.
fs::path folder_of(const CompileOptions& compile_options, const SessionOptions& options) {
  const std::string& path = compile_options.model->path;
  return fs::path(path.empty() ? entry_of(options, "ep.context_file_path") : path).parent_path();
}

/// Errors   InvalidModel for a name that leads out of the folder.
Result<std::string> data_path(const Node& node, const fs::path& folder) {
  const fs::path name(node.attributes.get_string("ep_cache_context", ""));
  const bool leads_out = std::find(name.begin(), name.end(), "..") != name.end();
  if (name.empty() || name.is_absolute() || leads_out) {
    return failure(Code::InvalidModel,
                   "its attribute ep_cache_context is '{}', expected the name of a file in the "
                   "folder of the compiled model",
                   name.string());
  }
  return (folder / name).string();
}

Result<std::shared_ptr<const Container>> container_in_node(const Node& node) {
  const std::string* text = node.attributes.get_if<std::string>("ep_cache_context");
  if (text == nullptr) {
    return failure(Code::InvalidModel, "it has no attribute ep_cache_context");
  }
  auto owner = std::make_shared<const std::string>(*text);
  return Container::from_bytes(std::as_bytes(std::span(*owner)), owner, "in the model itself");
}

Result<std::shared_ptr<const Container>> container_of(const Node& node,
                                                      const CompileOptions& compile_options,
                                                      const SessionOptions& options) {
  if (node.attributes.get_int("embed_mode", 1) != 0) return container_in_node(node);
  if (options.read_context_data) {
    const std::string name = node.attributes.get_string("ep_cache_context", "");
    SDX_ASSIGN(std::vector<std::byte> bytes, options.read_context_data(name));
    auto owner = std::make_shared<const std::vector<std::byte>>(std::move(bytes));
    return Container::from_bytes(*owner, owner, "'" + name + "' that the caller read");
  }
  SDX_ASSIGN(const std::string path, data_path(node, folder_of(compile_options, options)));
  return Container::open(path, Container::Check::UnlessKnown);
}

/// The key of the stored graph ends the name of the partition.
std::string_view key_of(const std::string& partition) {
  constexpr std::size_t kKey_chars = 32;
  const std::string_view text(partition);
  return text.size() <= kKey_chars ? text : text.substr(text.size() - kKey_chars);
}

Result<LoadedContext> load(const Graph& graph, const Node& node, const ArtifactProvider& provider,
                           const CompileOptions& compile_options, const SessionOptions& options) {
  SDX_ASSIGN(auto container, container_of(node, compile_options, options));
  const std::string partition = node.attributes.get_string("partition_name", "");
  SDX_ASSIGN(const StoredGraph* stored, container->find(key_of(partition)));
  const WeightlessSource source = weightless_source(options);
  SourceLookup lookup;
  lookup.buffer = source.bytes;
  lookup.model_path = source.path;
  lookup.refuses_stale = entry_of(options, kIgnoreStaleEntry) != "1";
  SDX_ASSIGN(const Artifact artifact, open_artifact(container, *stored, lookup));
  SDX_ASSIGN(auto compiled, provider.load(artifact, compile_options));
  const auto [inputs, outputs] = compiled->end_counts();
  if (inputs != graph.inputs().size() || outputs != graph.outputs().size()) {
    return failure(Code::InvalidModel,
                   "the node has {} inputs and {} outputs, but its stored graph has {} and {}",
                   graph.inputs().size(), graph.outputs().size(), inputs, outputs);
  }
  return LoadedContext{std::move(compiled), artifact.files};
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
