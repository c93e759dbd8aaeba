#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/text.h"
#include "report/context.h"
#include "report/report.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

/// A model file that cannot be read.
struct Unreadable {
  std::string path;
  std::string reason;
};

/// What lies in a folder of compiled models; those of other folders are not looked at.
struct Folder {
  std::vector<CompiledFile> models;
  std::vector<Unreadable> unreadable;
  std::vector<std::string> containers;

  /// The graphs that the models name.
  std::set<std::string> keys() const {
    std::set<std::string> keys;
    for (const CompiledFile& model : models) {
      for (const CompiledNode& node : model.nodes) {
        if (!node.key.empty()) keys.insert(node.key);
      }
    }
    return keys;
  }
  bool names(const std::string& container) const {
    for (const CompiledFile& model : models) {
      for (const CompiledNode& node : model.nodes) {
        if (node.data_path == container) return true;
      }
    }
    return false;
  }
};

void read_into(Folder& folder, const std::string& path) {
  auto model = read_compiled_file(path);
  if (!model.ok()) {
    folder.unreadable.push_back({path, model.status().message()});
  } else if (!model->nodes.empty()) {
    folder.models.push_back(*std::move(model));
  }
}

/// Models may have any name: containers tell which.
void read_named_models(Folder& folder, const fs::path& path) {
  std::set<std::string> names;
  for (const std::string& name : folder.containers) {
    const auto container = Container::open(name, Container::Check::Index);
    if (!container.ok()) continue;
    for (const StoredGraph& graph : (*container)->index().graphs) {
      const fs::path model = fs::path(graph.model_name).filename();
      if (!model.empty() && model.extension() != ".onnx") names.insert((path / model).string());
    }
  }
  std::error_code error;
  for (const std::string& name : names) {
    if (fs::is_regular_file(name, error)) read_into(folder, name);
  }
}

Result<Folder> read_folder(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entries(path, error);
  if (error) {
    return failure(Code::NoSuchFile, "cannot read the folder '{}': {}", path, error.message());
  }
  std::vector<std::string> files;
  for (const fs::directory_iterator end; entries != end; entries.increment(error)) {
    if (entries->is_regular_file(error)) files.push_back(entries->path().string());
    if (error) break;
  }
  std::sort(files.begin(), files.end());
  Folder folder;
  for (const std::string& file : files) {
    if (fs::path(file).extension() == ".onnx") {
      read_into(folder, file);
    } else if (is_container_file(file)) {
      folder.containers.push_back(file);
    }
  }
  read_named_models(folder, path);
  return folder;
}

/// The graphs of a container that somebody names, or may name.
std::set<std::string> kept_keys(const ContainerIndex& index, const std::set<std::string>& named) {
  std::set<std::string> kept;
  for (const StoredGraph& graph : index.graphs) {
    // A model that went to no file can be anywhere.
    if (graph.model_name.empty() || named.contains(graph.key)) kept.insert(graph.key);
  }
  return kept;
}

/// Why graphs of the container cannot be told to be unused; "" when they can.
std::string doubt_about(const Folder& folder, const std::string& container) {
  if (fs::path(container).filename() == kContainerName || folder.names(container)) return "";
  return "no model in this folder names it; models in other folders may";
}

Json describe_folder_container(const Folder& folder, const std::string& path, bool checks_all,
                               Problems& problems) {
  const auto container = Container::open(path, Container::Check::Index);
  if (!container.ok()) {
    problems.add(path, container.status());
    return {{"path", path}, {"graphs", Json::array()}};
  }
  if (checks_all) check_container(**container, {}, true, problems);
  const ContainerIndex& index = (*container)->index();
  const std::set<std::string> kept = kept_keys(index, folder.keys());
  Json row = describe_container(**container);
  for (Json& graph : row["graphs"]) graph["is_used"] = kept.contains(graph["key"]);
  row["unused_graph_count"] = index.graphs.size() - kept.size();
  row["unused_bytes"] = used_bytes(index, nullptr) - used_bytes(index, &kept);
  row["doubt"] = doubt_about(folder, path);
  return row;
}

/// Whether anything of a container would go, as seen now.
struct Change {
  std::vector<std::string> dropped;
  std::uint64_t bytes_before = 0;
  std::uint64_t bytes_after = 0;
};

Result<Change> plan_change(const Folder& folder, const std::string& path) {
  SDX_ASSIGN(const auto container, Container::open(path, Container::Check::Index));
  const ContainerIndex& index = container->index();
  const std::set<std::string> kept = kept_keys(index, folder.keys());
  Change change;
  for (const StoredGraph& graph : index.graphs) {
    if (!kept.contains(graph.key)) change.dropped.push_back(graph.model_name);
  }
  change.bytes_before = container->bytes().size();
  change.bytes_after = change.dropped.empty() ? change.bytes_before : used_bytes(index, &kept);
  return change;
}

/// Errors   Unsupported when it cannot be told what is in use.
Result<Folder> read_whole_folder(const std::string& path) {
  SDX_ASSIGN(Folder folder, read_folder(path));
  if (folder.unreadable.empty()) return folder;
  const Unreadable& first = folder.unreadable.front();
  return failure(Code::Unsupported,
                 "cannot tell which graphs are in use, as '{}' cannot be read: {}. Nothing was "
                 "changed: remove or mend that file first",
                 first.path, first.reason);
}

Result<Json> collect_container(const std::string& folder_path, const Folder& folder,
                               const std::string& path, bool only_looks) {
  Json row = {{"path", path}};
  const std::string doubt = doubt_about(folder, path);
  if (!doubt.empty()) {
    row["skipped"] = doubt;
    return row;
  }
  auto change = plan_change(folder, path);
  if (!change.ok()) {
    row["skipped"] = change.status().to_string();
    return row;
  }
  if (!only_looks && !change->dropped.empty()) {
    // Only what is read under the lock is sure.
    SDX_TRY(ContainerWriter::collect(
        path, [&](const ContainerIndex& index) -> Result<std::set<std::string>> {
          SDX_ASSIGN(const Folder now, read_whole_folder(folder_path));
          return kept_keys(index, now.keys());
        }));
    const auto identity = identify_file(path);
    change->bytes_after = identity.ok() ? identity->size_bytes : 0;
    row["is_removed"] = !identity.ok();
  }
  row["dropped"] = change->dropped;
  row["bytes_before"] = change->bytes_before;
  row["bytes_after"] = change->bytes_after;
  return row;
}

}  // namespace

Result<Json> describe_context_folder(const std::string& path, bool checks_all) {
  SDX_ASSIGN(const Folder folder, read_folder(path));
  Json models = Json::array();
  Problems all;
  for (const CompiledFile& file : folder.models) {
    Problems problems;
    Json row = describe_compiled_file(file, checks_all, problems);
    for (const Json& problem : problems.rows()) {
      all.add(problem["kind"].get_ref<const std::string&>().c_str(), problem["file"],
              problem["message"]);
    }
    row.erase("containers");
    row.erase("kind");
    models.push_back(std::move(row));
  }
  Json containers = Json::array();
  for (const std::string& container : folder.containers) {
    containers.push_back(describe_folder_container(folder, container, checks_all, all));
  }
  Json unreadable = Json::array();
  for (const Unreadable& file : folder.unreadable) {
    unreadable.push_back({{"path", file.path}, {"message", file.reason}});
  }
  return Json({{"kind", "folder"},
               {"path", path},
               {"models", models},
               {"containers", containers},
               {"unreadable", unreadable},
               {"verdict", !all.empty()            ? "unusable"
                           : folder.models.empty() ? "not compiled"
                                                   : "usable"},
               {"problems", all.rows()}});
}

Result<std::string> collect_contexts(const std::string& path, bool only_looks) {
  SDX_ASSIGN(const Folder folder, read_whole_folder(path));
  Json rows = Json::array();
  for (const std::string& container : folder.containers) {
    SDX_ASSIGN(Json row, collect_container(path, folder, container, only_looks));
    rows.push_back(std::move(row));
  }
  return to_text({{"folder", path}, {"is_done", !only_looks}, {"containers", rows}});
}

}  // namespace sardonyx
