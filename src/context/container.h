#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/status.h"
#include "ep/artifact.h"

namespace sardonyx {

/// A file that a compiled graph comes from.
struct SourceFile {
  /// Absolute and without links when it was compiled; stored relative to the container's folder
  /// where that is a prefix.
  std::string path;
  /// What it was when the graph was compiled.
  FileIdentity identity;
  Hash128 content;
  /// The model itself, not a file with its external data.
  bool is_model = false;
};

/// A weight that stays in one of the graph's sources.
struct SourceWeight {
  std::string name;
  /// Index among the graph's sources.
  std::uint32_t file = 0;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  Hash128 content;
};

/// A stored blob, as far as the index tells.
struct StoredBlob {
  BlobKey key;
  std::uint64_t offset = 0;
  std::uint64_t size_bytes = 0;
  Hash128 content;
};

/// One blob of a graph: stored, or in a source.
struct GraphBlob {
  bool is_source = false;
  /// Among the container's blobs, or among the graph's source weights.
  std::uint32_t number = 0;
};

/// A stored graph, as far as the index tells.
struct StoredGraph {
  /// Names it: made from the hash of all that it consists of.
  std::string key;
  /// File name of the compiled model that it was made for.
  std::string model_name;
  std::vector<SourceFile> sources;
  std::vector<SourceWeight> source_weights;
  std::vector<GraphBlob> blobs;
  std::uint64_t program_offset = 0;
  std::uint64_t program_bytes = 0;
  Hash128 program_content;
};

/// What a container holds and who wrote it.
struct ContainerIndex {
  /// Of the library that wrote it (build_id()), and the instruction set it packed weights for.
  std::string build;
  std::string isa;
  std::vector<StoredBlob> blobs;
  std::vector<StoredGraph> graphs;
};

/// Numbers of the format, which docs/compatibility.md describes.
inline constexpr std::uint32_t kContainerVersion = 1;
/// Size of the header, which holds two slots: the one of the later generation counts.
inline constexpr std::size_t kHeader_bytes = 4096;
/// A name by which a folder's models share weights.
inline constexpr std::string_view kContainerName = "sardonyx_weights.bin";

/// Where in a container its index stands: one of the header's two slots.
struct ContainerSlot {
  std::uint64_t generation = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  Hash128 index_content;

  std::uint64_t end() const { return index_offset + index_bytes; }
};

/// An open container: mapped, read-only, its index checked against its hash. Nothing in it is
/// believed beyond what was checked.
class Container {
  struct Private {};

 public:
  /// How much of the blobs is checked on opening.
  enum class Check : std::uint8_t {
    /// Nothing: for looking at the index.
    Index,
    /// All of them, unless the file is in a state that was checked before (see KnownFiles).
    UnlessKnown,
    /// All of them.
    All,
  };

  /// Errors   NoSuchFile; InvalidModel for what is damaged, cut short or of another version, with
  ///          what was expected and found. Cost: microseconds for a known file, else a pass over
  ///          it.
  static Result<std::shared_ptr<const Container>> open(const std::string& path, Check check);
  /// A container that is held in memory; `name` is for messages. Bytes at an address that is no
  /// multiple of 64 are copied.
  static Result<std::shared_ptr<const Container>> from_bytes(std::span<const std::byte> bytes,
                                                             std::shared_ptr<const void> owner,
                                                             const std::string& name);

  Container(Private, std::string name) : name_(std::move(name)) {}

  /// The path, or what stands for it in messages.
  const std::string& name() const { return name_; }
  const ContainerIndex& index() const { return index_; }
  std::uint64_t generation() const { return slot_.generation; }
  /// Bytes of the file that the index and what it names end at.
  std::uint64_t end() const { return slot_.end(); }
  /// The file, unless the container is held in memory.
  const std::shared_ptr<const MappedFile>& file() const { return file_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  /// Errors   InvalidModel, naming the container and what graphs it has.
  Result<const StoredGraph*> find(std::string_view key) const;
  std::span<const std::byte> blob(const StoredBlob& blob) const {
    return bytes_.subspan(blob.offset, blob.size_bytes);
  }
  /// The program of a graph.
  /// Errors   InvalidModel when it does not have its hash.
  Result<std::span<const std::byte>> program(const StoredGraph& graph) const;
  /// Whether the file is in a state in which somebody checked all blobs before.
  bool is_known() const;
  /// Checks the hashes of all blobs and programs.
  /// Errors   InvalidModel, naming the first that differs.
  Status check_all() const;
  /// Errors   Unsupported when another build or for another instruction set wrote it.
  Status check_build() const;

 private:
  Status read(std::span<const std::byte> bytes);

  std::string name_;
  std::shared_ptr<const MappedFile> file_;
  std::shared_ptr<const void> owner_;
  std::span<const std::byte> bytes_;
  ContainerSlot slot_;
  ContainerIndex index_;
};

/// Adds graphs to a container. What is written counts once commit() has succeeded; readers of the
/// former generation live on, and who stops before leaves it as it was.
///
/// One writer at a time works in a folder; others wait.
class ContainerWriter {
 public:
  /// The container at `path`, made if there is none; one that is damaged or of another build is
  /// replaced. `cancel` may be null.
  /// Errors   InvalidArgument, with the path and the system's reason, when it cannot be written.
  static Result<std::unique_ptr<ContainerWriter>> extend(const std::string& path,
                                                         const std::atomic<bool>* cancel);
  /// A container to be embedded: bytes() has it after commit().
  static std::unique_ptr<ContainerWriter> in_memory();
  /// Writes the container anew without the graphs whose keys `kept` does not give, and without the
  /// blobs that only they used; one that keeps no graph is removed. `kept` is asked while nobody
  /// else writes into the folder.
  /// Errors   those of opening it and of `kept`; the file is as it was then.
  static Status collect(
      const std::string& path,
      FunctionRef<Result<std::set<std::string>>(const ContainerIndex& index)> kept);
  virtual ~ContainerWriter() = default;

  /// Begins the next graph. The writer that it returns is good until finish_graph().
  virtual ArtifactWriter& begin_graph(std::string model_name, std::vector<SourceFile> sources) = 0;
  /// Its key.
  virtual Result<std::string> finish_graph() = 0;
  /// Errors   of the file; nothing has changed then.
  virtual Status commit() = 0;
  /// In a string, since models hold it as one.
  virtual std::string take_bytes() = 0;
};

}  // namespace sardonyx
