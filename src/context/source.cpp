#include "context/source.h"

#include <filesystem>
#include <set>
#include <utility>

#include "base/text.h"
#include "context/known_files.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

void collect_files(const Graph& graph, std::set<std::string>& files) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const Value& value = graph.value(id);
    if (value.origin != nullptr && value.constant) files.insert(value.origin->file);
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    for (const Graph* subgraph : subgraphs(graph.node(id))) collect_files(*subgraph, files);
  }
}

/// The sources of one graph, being looked for.
class Binder {
 public:
  Binder(const Container& container, const StoredGraph& graph, const SourceLookup& lookup)
      : container_(container), graph_(graph), lookup_(lookup) {
    if (container.file() == nullptr) return;
    folder_ = fs::path(container.name()).parent_path();
    known_ = KnownFiles::beside(container.name());
  }

  Result<BoundSources> bind() {
    std::vector<bool> is_needed(graph_.sources.size(), false);
    for (const SourceWeight& weight : graph_.source_weights) is_needed[weight.file] = true;
    bytes_.resize(graph_.sources.size());
    for (std::size_t i = 0; i < graph_.sources.size(); ++i) {
      SDX_TRY(is_needed[i] ? bind_file(i) : check_unneeded(graph_.sources[i]));
    }
    known_.save();
    for (const SourceWeight& weight : graph_.source_weights) {
      const auto bytes = bytes_[weight.file];
      if (!is_inside(weight, bytes)) return cut_short(weight, bytes.size());
      bound_.weights.push_back(
          {bytes.data() + weight.offset, static_cast<std::size_t>(weight.size_bytes)});
    }
    return std::move(bound_);
  }

 private:
  static bool is_inside(const SourceWeight& weight, std::span<const std::byte> bytes) {
    return weight.offset <= bytes.size() && weight.size_bytes <= bytes.size() - weight.offset;
  }

  Status cut_short(const SourceWeight& weight, std::size_t size) const {
    return failure(Code::InvalidModel,
                   "weight '{}' should stand at bytes {} to {} of '{}', which has {} bytes",
                   weight.name, weight.offset, weight.offset + weight.size_bytes,
                   path_of(graph_.sources[weight.file]), size);
  }

  /// Where the source is now. External data lies beside a model that is given as it lay beside the
  /// one that was compiled.
  std::string path_of(const SourceFile& source) const {
    const fs::path stored = folder_ / source.path;
    if (lookup_.model_path.empty()) return stored.string();
    if (source.is_model) return lookup_.model_path;
    for (const SourceFile& model : graph_.sources) {
      if (!model.is_model) continue;
      const fs::path former = (folder_ / model.path).parent_path();
      const fs::path relative = stored.lexically_relative(former);
      if (relative.empty() || *relative.begin() == "..") break;
      return (fs::path(lookup_.model_path).parent_path() / relative).string();
    }
    return stored.string();
  }

  /// A source that is gone is not missed.
  Status check_unneeded(const SourceFile& source) {
    if (!lookup_.refuses_stale || !lookup_.buffer.empty()) return {};
    const std::string path = path_of(source);
    const auto identity = identify_file(path);
    if (!identity.ok() || *identity == source.identity) return {};
    SDX_ASSIGN(const Hash128 content, known_.content_of(path));
    if (content == source.content) return {};
    return failure(Code::InvalidModel,
                   "the compiled model '{}' is stale: '{}' has changed since it was compiled. "
                   "Compile it again, or set the session option "
                   "sardonyx.context_ignore_stale_source to 1 to use it all the same",
                   graph_.model_name, path);
  }

  Status bind_file(std::size_t index) {
    const SourceFile& source = graph_.sources[index];
    if (source.is_model && !lookup_.buffer.empty()) {
      bytes_[index] = lookup_.buffer;
      const bool is_same = hash_bytes(lookup_.buffer) == source.content;
      return is_same ? Status() : check_weights(index, "the source model in memory");
    }
    const std::string path = path_of(source);
    auto file = MappedFile::open(path);
    if (!file.ok()) {
      return std::move(file).take_status().with(fmt::format(
          "looking for the weights of '{}', which are kept in its source", graph_.model_name));
    }
    bytes_[index] = (*file)->bytes();
    bound_.keep_alive.push_back(*file);
    if ((*file)->identity() == source.identity) return {};
    SDX_ASSIGN(const Hash128 content, known_.content_of(path));
    if (content == source.content) return {};
    SDX_TRY(check_weights(index, "'" + path + "'"));
    // Other weights, or other data around them, may have changed in a file of external data.
    if (!source.is_model || !lookup_.model_path.empty()) return {};
    return failure(Code::InvalidModel,
                   "the compiled model '{}' is stale: '{}' has changed since it was compiled, "
                   "though not its weights. Compile it again",
                   graph_.model_name, path);
  }

  /// Each weight that lies in a file with another content.
  Status check_weights(std::size_t index, const std::string& where) const {
    const auto bytes = bytes_[index];
    for (const SourceWeight& weight : graph_.source_weights) {
      if (weight.file != index) continue;
      if (!is_inside(weight, bytes)) return cut_short(weight, bytes.size());
      if (hash_bytes(bytes.subspan(weight.offset, weight.size_bytes)) == weight.content) continue;
      return failure(Code::InvalidModel,
                     "weight '{}' in {} is not the one that '{}' was compiled with", weight.name,
                     where, graph_.model_name);
    }
    return {};
  }

  const Container& container_;
  const StoredGraph& graph_;
  const SourceLookup& lookup_;
  fs::path folder_;
  KnownFiles known_;
  std::vector<std::span<const std::byte>> bytes_;
  BoundSources bound_;
};

}  // namespace

Result<SourceFile> describe_source(const std::string& path, bool is_model) {
  SDX_ASSIGN(const auto file, MappedFile::open(path));
  SourceFile source{file->path(), file->identity(), file->hash(), is_model};
  wait_until_distinct(source.identity);
  return source;
}

Result<std::vector<SourceFile>> sources_of(const Graph& graph, const std::string& model_path) {
  std::set<std::string> files;
  collect_files(graph, files);
  std::vector<SourceFile> sources;
  if (!model_path.empty()) {
    SDX_ASSIGN(SourceFile source, describe_source(model_path, true));
    files.erase(source.path);
    sources.push_back(std::move(source));
  }
  for (const std::string& file : files) {
    SDX_ASSIGN(SourceFile source, describe_source(file, false));
    sources.push_back(std::move(source));
  }
  return sources;
}

Result<BoundSources> bind_sources(const Container& container, const StoredGraph& graph,
                                  const SourceLookup& lookup) {
  return Binder(container, graph, lookup).bind();
}

Result<Artifact> open_artifact(std::shared_ptr<const Container> container, const StoredGraph& graph,
                               const SourceLookup& lookup) {
  SDX_TRY(container->check_build());
  SDX_ASSIGN(BoundSources sources, bind_sources(*container, graph, lookup));
  Artifact artifact;
  SDX_ASSIGN(artifact.program, container->program(graph));
  for (const GraphBlob& blob : graph.blobs) {
    if (blob.is_source) {
      artifact.blobs.push_back(sources.weights[blob.number]);
      continue;
    }
    const auto bytes = container->blob(container->index().blobs[blob.number]);
    artifact.blobs.push_back({bytes.data(), bytes.size()});
  }
  artifact.files = sources.keep_alive;
  if (container->file() != nullptr) artifact.files.push_back(container->file());
  using Owners = std::pair<std::shared_ptr<const Container>, BoundSources>;
  artifact.owner = std::make_shared<const Owners>(std::move(container), std::move(sources));
  return artifact;
}

}  // namespace sardonyx
