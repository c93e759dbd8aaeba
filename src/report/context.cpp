#include "report/context.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/build_id.h"
#include "base/text.h"
#include "context/container_index.h"
#include "context/source.h"
#include "report/report.h"
#include "session/compiled_model.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

/// What the nodes of parts say that are kept in containers (ArtifactProvider::context_source).
constexpr std::string_view kContainerSource = "SardonyxExecutionProvider";
/// So many weights that differ are named.
constexpr std::size_t kNamed_max = 8;

std::string hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

std::uint64_t size_of(const std::string& path) {
  const auto identity = identify_file(path);
  return identity.ok() ? identity->size_bytes : 0;
}

/// A graph by the model it was made for.
std::string name_of(const StoredGraph& graph) {
  return graph.model_name.empty() ? graph.key : graph.model_name;
}

/// Which graphs use each blob, by number.
std::vector<std::vector<std::size_t>> users_of(const ContainerIndex& index) {
  std::vector<std::vector<std::size_t>> users(index.blobs.size());
  for (std::size_t i = 0; i < index.graphs.size(); ++i) {
    for (const GraphBlob& blob : index.graphs[i].blobs) {
      if (blob.is_source) continue;
      auto& list = users[blob.number];
      if (list.empty() || list.back() != i) list.push_back(i);
    }
  }
  return users;
}

std::string source_path(const Container& container, const SourceFile& source) {
  if (container.file() == nullptr) return source.path;
  return (fs::path(container.name()).parent_path() / source.path).string();
}

/// "unchanged", "touched" (another state of the file; its bytes may be the same) or "missing".
const char* state_of(const std::string& path, const SourceFile& source) {
  const auto identity = identify_file(path);
  if (!identity.ok()) return "missing";
  return *identity == source.identity ? "unchanged" : "touched";
}

Json describe_sources(const Container& container, const StoredGraph& graph) {
  Json rows = Json::array();
  for (const SourceFile& source : graph.sources) {
    const std::string path = source_path(container, source);
    rows.push_back({{"path", path},
                    {"is_model", source.is_model},
                    {"bytes", source.identity.size_bytes},
                    {"hash", hex(source.content)},
                    {"state", state_of(path, source)}});
  }
  return rows;
}

Json describe_graph(const Container& container, std::size_t number,
                    const std::vector<std::vector<std::size_t>>& users) {
  const ContainerIndex& index = container.index();
  const StoredGraph& graph = index.graphs[number];
  std::uint64_t bytes = 0;
  std::uint64_t shared_bytes = 0;
  std::uint64_t source_bytes = 0;
  std::set<std::uint32_t> blobs;
  std::set<std::string> shared_with;
  for (const GraphBlob& blob : graph.blobs) {
    if (blob.is_source || !blobs.insert(blob.number).second) continue;
    const std::uint64_t size = index.blobs[blob.number].size_bytes;
    bytes += size;
    if (users[blob.number].size() < 2) continue;
    shared_bytes += size;
    for (const std::size_t other : users[blob.number]) {
      if (other != number) shared_with.insert(name_of(index.graphs[other]));
    }
  }
  for (const SourceWeight& weight : graph.source_weights) source_bytes += weight.size_bytes;
  return {{"key", graph.key},
          {"model", graph.model_name},
          {"program_bytes", graph.program_bytes},
          {"blob_count", blobs.size()},
          {"blob_bytes", bytes},
          {"shared_bytes", shared_bytes},
          {"shared_with", shared_with},
          {"source_weight_count", graph.source_weights.size()},
          {"source_weight_bytes", source_bytes},
          {"sources", describe_sources(container, graph)}};
}

Json describe_blobs(const ContainerIndex& index,
                    const std::vector<std::vector<std::size_t>>& users) {
  Json rows = Json::array();
  for (std::size_t i = 0; i < index.blobs.size(); ++i) {
    const StoredBlob& blob = index.blobs[i];
    Json names = Json::array();
    for (const std::size_t user : users[i]) names.push_back(name_of(index.graphs[user]));
    rows.push_back({{"layout", blob.key.layout},
                    {"offset", blob.offset},
                    {"bytes", blob.size_bytes},
                    {"source_bytes", blob.key.source_bytes},
                    {"hash", hex(blob.content)},
                    {"used_by", names}});
  }
  return rows;
}

Json describe_layouts(const ContainerIndex& index) {
  struct Sum {
    std::size_t count = 0;
    std::uint64_t bytes = 0;
    std::uint64_t source_bytes = 0;
  };
  std::map<std::string, Sum> sums;
  for (const StoredBlob& blob : index.blobs) {
    Sum& sum = sums[blob.key.layout];
    ++sum.count;
    sum.bytes += blob.size_bytes;
    sum.source_bytes += blob.key.source_bytes;
  }
  Json rows = Json::array();
  for (const auto& [layout, sum] : sums) {
    rows.push_back({{"layout", layout},
                    {"count", sum.count},
                    {"bytes", sum.bytes},
                    {"source_bytes", sum.source_bytes}});
  }
  return rows;
}

void check_bytes(const Container& container, Problems& problems) {
  const ContainerIndex& index = container.index();
  const auto users = users_of(index);
  for (std::size_t i = 0; i < index.blobs.size(); ++i) {
    const StoredBlob& blob = index.blobs[i];
    if (hash_bytes(container.blob(blob)) == blob.content) continue;
    std::vector<std::string> names;
    for (const std::size_t user : users[i]) names.push_back(name_of(index.graphs[user]));
    problems.add("damaged", container.name(),
                 fmt::format("blob {} ({}, {} bytes at {}, used by {}) does not have its hash", i,
                             blob.key.layout, blob.size_bytes, blob.offset,
                             names.empty() ? "none" : join(names, ", ")));
  }
  for (const StoredGraph& graph : index.graphs) {
    const Status status = container.program(graph).take_status();
    if (!status.ok()) problems.add("damaged", container.name(), status.message());
  }
}

/// Which weights of a source differ that has another content.
std::string describe_difference(const StoredGraph& graph, std::size_t file,
                                std::span<const std::byte> bytes) {
  std::vector<std::string> names;
  std::size_t weight_count = 0;
  std::size_t count = 0;
  for (const SourceWeight& weight : graph.source_weights) {
    if (weight.file != file) continue;
    ++weight_count;
    const bool is_inside =
        weight.offset <= bytes.size() && weight.size_bytes <= bytes.size() - weight.offset;
    const bool is_same =
        is_inside && hash_bytes(bytes.subspan(weight.offset, weight.size_bytes)) == weight.content;
    if (is_same) continue;
    if (++count <= kNamed_max) names.push_back("'" + weight.name + "'");
  }
  if (weight_count == 0) return "its bytes are others";
  if (count == 0)
    return "its bytes are others, but those of the weights that are used are the same";
  return fmt::format("{} of {} weights differ: {}{}", count, weight_count, join(names, ", "),
                     count > kNamed_max ? ", ..." : "");
}

void check_all_sources(const Container& container, const StoredGraph& graph, Problems& problems) {
  std::vector<bool> is_needed(graph.sources.size(), false);
  for (const SourceWeight& weight : graph.source_weights) is_needed[weight.file] = true;
  for (std::size_t i = 0; i < graph.sources.size(); ++i) {
    const SourceFile& source = graph.sources[i];
    const std::string path = source_path(container, source);
    const auto file = MappedFile::open(path);
    if (!file.ok()) {
      if (is_needed[i]) {
        problems.add(
            "missing", path,
            fmt::format("'{}' leaves weights in it: {}", name_of(graph), file.status().message()));
      }
      continue;
    }
    const auto bytes = (*file)->bytes();
    if (hash_bytes(bytes) == source.content) continue;
    problems.add("stale", path,
                 fmt::format("it has changed since '{}' was compiled: {}", name_of(graph),
                             describe_difference(graph, i, bytes)));
  }
}

}  // namespace

void Problems::add(const char* kind, const std::string& file, const std::string& message) {
  Json row = {{"kind", kind}, {"file", file}, {"message", message}};
  // Nodes of one model mostly share their files.
  if (std::find(rows_.begin(), rows_.end(), row) == rows_.end()) rows_.push_back(std::move(row));
}

void Problems::add(const std::string& file, const Status& status) {
  const char* kind = status.code() == Code::NoSuchFile    ? "missing"
                     : status.code() == Code::Unsupported ? "foreign"
                                                          : "damaged";
  add(kind, file, status.message());
}

bool is_container_file(const std::string& path) {
  const auto file = MappedFile::open(path);
  return file.ok() && begins_as_container((*file)->bytes());
}

Result<CompiledFile> read_compiled_file(const std::string& path) {
  CompiledFile file;
  file.path = path;
  SDX_ASSIGN(file.model, read_model(path));
  const Graph& graph = file.model.graph;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed || !is_context_node(node)) continue;
    CompiledNode compiled{id, {}, {}};
    if (node.attributes.get_string("source", "") == kContainerSource) {
      compiled.key = stored_key(node);
    }
    if (node.attributes.get_int("embed_mode", 1) == 0) {
      const std::string name = node.attributes.get_string("ep_cache_context", "");
      compiled.data_path = (fs::path(path).parent_path() / name).string();
    }
    file.nodes.push_back(std::move(compiled));
  }
  return file;
}

void check_container(const Container& container, const std::vector<const StoredGraph*>& graphs,
                     bool checks_all, Problems& problems) {
  const Status build = container.check_build();
  if (!build.ok()) problems.add("foreign", container.name(), build.message());
  // A file in a state that nobody has checked is checked when it is loaded, too.
  const bool is_unknown = container.file() != nullptr && !container.is_known();
  if (checks_all || is_unknown) check_bytes(container, problems);
  for (const StoredGraph* graph : graphs) {
    if (checks_all) {
      check_all_sources(container, *graph, problems);
      continue;
    }
    const Status status = bind_sources(container, *graph, {}).take_status();
    if (status.ok()) continue;
    problems.add(status.code() == Code::NoSuchFile ? "missing" : "stale", container.name(),
                 status.to_string());
  }
}

std::uint64_t used_bytes(const ContainerIndex& index, const std::set<std::string>* keys) {
  std::set<std::uint32_t> blobs;
  std::uint64_t bytes = 0;
  for (const StoredGraph& graph : index.graphs) {
    if (keys != nullptr && !keys->contains(graph.key)) continue;
    bytes += graph.program_bytes;
    for (const GraphBlob& blob : graph.blobs) {
      if (!blob.is_source && blobs.insert(blob.number).second) {
        bytes += index.blobs[blob.number].size_bytes;
      }
    }
  }
  return bytes;
}

Json describe_container(const Container& container) {
  const ContainerIndex& index = container.index();
  const auto users = users_of(index);
  Json graphs = Json::array();
  for (std::size_t i = 0; i < index.graphs.size(); ++i) {
    graphs.push_back(describe_graph(container, i, users));
  }
  std::uint64_t blob_bytes = 0;
  std::uint64_t separate_bytes = 0;
  for (std::size_t i = 0; i < index.blobs.size(); ++i) {
    blob_bytes += index.blobs[i].size_bytes;
    separate_bytes += index.blobs[i].size_bytes * users[i].size();
  }
  const bool is_file = container.file() != nullptr;
  return {{"path", is_file ? Json(container.name()) : Json()},
          {"bytes", container.bytes().size()},
          {"generation", container.generation()},
          {"build", index.build},
          {"isa", index.isa},
          {"graphs", graphs},
          {"blob_count", index.blobs.size()},
          {"blob_bytes", blob_bytes},
          {"saved_bytes", separate_bytes > blob_bytes ? separate_bytes - blob_bytes : 0},
          {"layouts", describe_layouts(index)},
          {"blobs", describe_blobs(index, users)}};
}

namespace {

Json describe_node(const CompiledFile& file, const CompiledNode& compiled) {
  const Node& node = file.node(compiled);
  const Attributes& attributes = node.attributes;
  const auto* max_size = attributes.get_if<std::int64_t>("max_size");
  const bool is_embedded = compiled.data_path.empty();
  const std::string payload = attributes.get_string("ep_cache_context", "");
  return {{"name", node.name},
          {"source", attributes.get_string("source", "")},
          {"partition_name", attributes.get_string("partition_name", "")},
          {"main_context", attributes.get_int("main_context", 1) != 0},
          {"is_embedded", is_embedded},
          {"data_path", is_embedded ? Json() : Json(compiled.data_path)},
          {"data_bytes", is_embedded ? payload.size() : size_of(compiled.data_path)},
          {"graph", compiled.key.empty() ? Json() : Json(compiled.key)},
          {"max_size", max_size == nullptr ? Json() : Json(*max_size)},
          {"ep_sdk_version", attributes.get_string("ep_sdk_version", "")},
          {"hardware_architecture", attributes.get_string("hardware_architecture", "")},
          {"onnx_model_filename", attributes.get_string("onnx_model_filename", "")}};
}

/// The graphs of one container that a model names.
struct UsedContainer {
  std::shared_ptr<const Container> container;
  std::vector<const StoredGraph*> graphs;
};

Result<std::shared_ptr<const Container>> open_container(const CompiledFile& file,
                                                        const CompiledNode& compiled) {
  if (!compiled.data_path.empty()) {
    return Container::open(compiled.data_path, Container::Check::Index);
  }
  const auto* payload = file.node(compiled).attributes.get_if<std::string>("ep_cache_context");
  if (payload == nullptr) {
    return failure(Code::InvalidModel, "{} has no attribute ep_cache_context",
                   file.node(compiled).describe(file.model.graph));
  }
  return Container::from_bytes(std::as_bytes(std::span(*payload)), nullptr,
                               "in '" + file.path + "'");
}

/// Containers by the place of their data; embedded ones by the node.
std::map<std::string, UsedContainer> open_containers(const CompiledFile& file, Problems& problems) {
  std::map<std::string, UsedContainer> used;
  for (const CompiledNode& compiled : file.nodes) {
    if (compiled.key.empty()) {
      if (compiled.data_path.empty()) continue;
      const Status status = identify_file(compiled.data_path).take_status();
      if (!status.ok()) problems.add(compiled.data_path, status);
      continue;
    }
    const std::string place =
        compiled.data_path.empty() ? fmt::format("\n{}", compiled.id) : compiled.data_path;
    auto found = used.find(place);
    if (found == used.end()) {
      auto container = open_container(file, compiled);
      if (!container.ok()) {
        problems.add(compiled.data_path.empty() ? file.path : compiled.data_path,
                     container.status());
        continue;
      }
      found = used.emplace(place, UsedContainer{*std::move(container), {}}).first;
    }
    const auto graph = found->second.container->find(compiled.key);
    if (graph.ok()) {
      found->second.graphs.push_back(*graph);
    } else {
      problems.add("stale", found->second.container->name(), graph.status().message());
    }
  }
  return used;
}

const char* verdict(const CompiledFile& file, const Problems& problems) {
  if (!problems.empty()) return "unusable";
  return file.nodes.empty() ? "not compiled" : "usable";
}

Json describe_build_here() {
  return {{"build", std::string(build_id())}, {"isa", std::string(packing_isa())}};
}

}  // namespace

Json describe_compiled_file(const CompiledFile& file, bool checks_all, Problems& problems) {
  Json nodes = Json::array();
  for (const CompiledNode& compiled : file.nodes) nodes.push_back(describe_node(file, compiled));
  Json containers = Json::array();
  for (const auto& [place, used] : open_containers(file, problems)) {
    check_container(*used.container, used.graphs, checks_all, problems);
    containers.push_back(describe_container(*used.container));
  }
  Json metadata = Json::object();
  for (const auto& [key, value] : file.model.metadata) metadata[key] = value;
  return {{"kind", "model"},
          {"path", file.path},
          {"bytes", size_of(file.path)},
          {"metadata", metadata},
          {"compiled_nodes", nodes},
          {"containers", containers},
          {"verdict", verdict(file, problems)},
          {"problems", problems.rows()}};
}

Result<std::string> describe_context(const std::string& path, bool checks_all) {
  std::error_code error;
  Json report;
  if (fs::is_directory(path, error)) {
    SDX_ASSIGN(report, describe_context_folder(path, checks_all));
  } else if (is_container_file(path)) {
    Problems problems;
    const auto container = Container::open(path, Container::Check::Index);
    report = {{"kind", "container"}, {"path", path}, {"containers", Json::array()}};
    if (container.ok()) {
      std::vector<const StoredGraph*> graphs;
      for (const StoredGraph& graph : (*container)->index().graphs) graphs.push_back(&graph);
      check_container(**container, graphs, checks_all, problems);
      report["containers"].push_back(describe_container(**container));
    } else {
      problems.add(path, container.status());
    }
    report["verdict"] = problems.empty() ? "usable" : "unusable";
    report["problems"] = problems.rows();
  } else {
    SDX_ASSIGN(const CompiledFile file, read_compiled_file(path));
    Problems problems;
    report = describe_compiled_file(file, checks_all, problems);
  }
  report["checked"] = checks_all ? "all" : "index";
  report["here"] = describe_build_here();
  return to_text(report);
}

}  // namespace sardonyx
