#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/status.h"
#include "context/container.h"
#include "ir/graph.h"
#include "report/json.h"

namespace sardonyx {

/// A node that stands for a compiled part.
struct CompiledNode {
  NodeId id = kNoNode;
  /// Of the graph in a container; "" for a part that another provider keeps in its own way.
  std::string key;
  /// Where its data lies, as seen from this process; "" when the model has it inside.
  std::string data_path;
};

/// A model file and its compiled parts.
struct CompiledFile {
  std::string path;
  Model model;
  std::vector<CompiledNode> nodes;

  const Node& node(const CompiledNode& compiled) const { return model.graph.node(compiled.id); }
};

/// Errors   those of reading a model.
Result<CompiledFile> read_compiled_file(const std::string& path);

/// Whether a file begins as a container does; not when it cannot be read.
bool is_container_file(const std::string& path);

/// What is wrong with artefacts, as it is found.
class Problems {
 public:
  /// `kind`: "missing", "damaged", "foreign" (another build or instruction set) or "stale" (the
  /// source has changed).
  void add(const char* kind, const std::string& file, const std::string& message);
  void add(const std::string& file, const Status& status);
  bool empty() const { return rows_.empty(); }
  const Json& rows() const { return rows_; }

 private:
  Json rows_ = Json::array();
};

/// Checks a container for use by this process: its build, and that the sources of `graphs` are
/// those they were compiled from; with `checks_all` also all its bytes, and all bytes of the
/// sources. Names everything that differs.
/// Cost     microseconds, or with `checks_all` a pass over the files.
void check_container(const Container& container, const std::vector<const StoredGraph*>& graphs,
                     bool checks_all, Problems& problems);

/// Who wrote it, its graphs with their sources and what they share, its blobs.
Json describe_container(const Container& container);

/// Bytes of blobs and programs that the graphs with these keys use; those of all for null.
std::uint64_t used_bytes(const ContainerIndex& index, const std::set<std::string>* keys);

/// What describe_context() says of a model; `problems` gets what is wrong.
Json describe_compiled_file(const CompiledFile& file, bool checks_all, Problems& problems);

/// What it says of a folder.
Result<Json> describe_context_folder(const std::string& folder, bool checks_all);

}  // namespace sardonyx
