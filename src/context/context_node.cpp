#include "context/context_node.h"

#include <algorithm>
#include <utility>

#include "base/build_id.h"
#include "base/memory.h"
#include "base/text.h"

namespace sardonyx {

bool is_context_node(const Node& node) {
  return node.domain == "com.microsoft" && node.op_type == "EPContext";
}

std::string stored_key(const Node& node) {
  constexpr std::size_t kKey_chars = 32;
  const std::string partition = node.attributes.get_string("partition_name", "");
  return partition.substr(partition.size() - std::min(partition.size(), kKey_chars));
}

Attributes attributes_of(StoredNode node) {
  Attributes attributes;
  attributes.set("main_context", std::int64_t{1});
  attributes.set("embed_mode", std::int64_t{node.is_embedded ? 1 : 0});
  attributes.set("ep_cache_context", std::move(node.data));
  attributes.set("source", std::string(node.source));
  attributes.set("partition_name", std::move(node.partition_name));
  attributes.set("ep_sdk_version", std::string(build_id()));
  attributes.set("hardware_architecture", std::string(packing_isa()));
  attributes.set("onnx_model_filename", std::move(node.model_name));
  attributes.set("notes", std::string());
  attributes.set("max_size", std::int64_t{0});
  return attributes;
}

Result<std::shared_ptr<const Container>> named_container(const Node& node,
                                                         const std::filesystem::path& folder) {
  const std::filesystem::path name(node.attributes.get_string("ep_cache_context", ""));
  const bool leads_out = std::find(name.begin(), name.end(), "..") != name.end();
  if (name.empty() || name.is_absolute() || leads_out) {
    return failure(Code::InvalidModel,
                   "its attribute ep_cache_context is '{}', expected the name of a file in the "
                   "folder of the compiled model",
                   name.string());
  }
  return Container::open((folder / name).string(), Container::Check::UnlessKnown);
}

Result<std::shared_ptr<const Container>> embedded_container(const Node& node) {
  const std::string* text = node.attributes.get_if<std::string>("ep_cache_context");
  if (text == nullptr) {
    return failure(Code::InvalidModel, "it has no attribute ep_cache_context");
  }
  constexpr const char* kName = "in the model itself";
  const auto bytes = std::as_bytes(std::span(*text));
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment_bytes == 0;
  // What is not aligned is copied to where it is; the node goes before the container.
  if (!is_aligned) return Container::from_bytes(bytes, nullptr, kName);
  auto owner = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  return Container::from_bytes(*owner, owner, kName);
}

Result<LoadedContext> load_stored(std::shared_ptr<const Container> container, const Graph& graph,
                                  const Node& node, const ArtifactProvider& provider,
                                  const CompileOptions& options, const SourceLookup& lookup) {
  SDX_ASSIGN(const StoredGraph* stored, container->find(stored_key(node)));
  SDX_ASSIGN(const Artifact artifact, open_artifact(container, *stored, lookup));
  SDX_ASSIGN(auto compiled, provider.load(artifact, options));
  const auto [inputs, outputs] = compiled->end_counts();
  if (inputs != graph.inputs().size() || outputs != graph.outputs().size()) {
    return failure(Code::InvalidModel,
                   "the node has {} inputs and {} outputs, but its stored graph has {} and {}",
                   graph.inputs().size(), graph.outputs().size(), inputs, outputs);
  }
  return LoadedContext{std::move(compiled), artifact.files};
}

}  // namespace sardonyx
