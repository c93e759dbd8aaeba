#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

#include "base/atomic_file.h"
#include "base/build_id.h"
#include "base/bytes.h"
#include "base/cpu_features.h"
#include "base/memory.h"
#include "base/text.h"
#include "context/container.h"
#include "context/container_index.h"
#include "context/known_files.h"

namespace sardonyx {

namespace {

/// Blobs from this size on begin at a page; smaller ones at a cache line.
constexpr std::size_t kPaged_bytes = std::size_t{1} << 20;
constexpr std::uint64_t kPage_bytes = 4096;

std::string hex(const Hash128& hash) { return fmt::format("{:016x}{:016x}", hash.high, hash.low); }

/// What graphs and blobs make of a container, wherever its bytes go.
class Writer : public ContainerWriter, private ArtifactWriter {
 public:
  ArtifactWriter& begin_graph(std::string model_name, std::vector<SourceFile> sources) override {
    graph_ = {};
    graph_.model_name = std::move(model_name);
    graph_.sources = std::move(sources);
    program_.clear();
    return *this;
  }

  Result<std::string> finish_graph() override {
    for (SourceFile& source : graph_.sources) source.path = stored_path(source.path);
    SDX_ASSIGN(graph_.program_offset, append(program_, kBlockAlignmentBytes));
    graph_.program_bytes = program_.size();
    graph_.program_content = hash_bytes(program_);
    graph_.key = key_of(graph_);
    const auto same = [&](const StoredGraph& other) { return other.key == graph_.key; };
    std::erase_if(index_.graphs, same);
    index_.graphs.push_back(graph_);
    return graph_.key;
  }

 protected:
  /// How the index names a source.
  virtual std::string stored_path(const std::string& path) const { return path; }
  /// Appends bytes at a multiple of the alignment; their offset.
  virtual Result<std::uint64_t> append(std::span<const std::byte> bytes,
                                       std::uint64_t alignment_bytes) = 0;

  void adopt(ContainerIndex index) {
    index_ = std::move(index);
    for (std::size_t i = 0; i < index_.blobs.size(); ++i) {
      numbers_.emplace(index_.blobs[i].key, static_cast<std::uint32_t>(i));
    }
  }
  ContainerIndex& index() { return index_; }

 private:
  Result<std::uint32_t> add_blob(const BlobKey& key, std::size_t size_bytes,
                                 FunctionRef<Status(std::span<std::byte>)> fill) override {
    if (numbers_.contains(key)) return use(key);
    SDX_TRY(make_scratch(size_bytes));
    const std::span<std::byte> bytes(scratch_.get(), size_bytes);
    SDX_TRY(fill(bytes));
    return add_bytes(key, bytes);
  }

  /// One block for all blobs: allocators do not find room for the next one where the last one was.
  Status make_scratch(std::size_t size_bytes) {
    if (size_bytes <= scratch_bytes_ && scratch_ != nullptr) return {};
    scratch_.reset();
    scratch_.reset(static_cast<std::byte*>(allocate_aligned(size_bytes)));
    scratch_bytes_ = size_bytes;
    if (scratch_ != nullptr) return {};
    return failure(Code::OutOfMemory, "no memory for a weight of {} bytes", size_bytes);
  }

  Result<std::uint32_t> add_bytes(const BlobKey& key, std::span<const std::byte> bytes) override {
    if (numbers_.contains(key)) return use(key);
    StoredBlob blob{key, 0, bytes.size(), hash_bytes(bytes)};
    SDX_ASSIGN(blob.offset,
               append(bytes, bytes.size() >= kPaged_bytes ? kPage_bytes : kBlockAlignmentBytes));
    numbers_.emplace(key, static_cast<std::uint32_t>(index_.blobs.size()));
    index_.blobs.push_back(std::move(blob));
    return use(key);
  }

  /// The graph's number for a blob that is stored.
  std::uint32_t use(const BlobKey& key) {
    graph_.blobs.push_back({false, numbers_.at(key)});
    return static_cast<std::uint32_t>(graph_.blobs.size() - 1);
  }

  Result<std::uint32_t> add_source(const Tensor& weight, const WeightOrigin& origin,
                                   std::string_view name) override {
    const auto file = std::find_if(graph_.sources.begin(), graph_.sources.end(),
                                   [&](const SourceFile& it) { return it.path == origin.file; });
    if (file == graph_.sources.end()) {
      return failure(Code::Internal, "weight '{}' comes from '{}', which is no source of the model",
                     name, origin.file);
    }
    SourceWeight stored;
    stored.name = name;
    stored.file = static_cast<std::uint32_t>(file - graph_.sources.begin());
    stored.offset = origin.offset;
    stored.size_bytes = origin.length;
    stored.content = hash_bytes({weight.data(), weight.byte_size()});
    graph_.source_weights.push_back(std::move(stored));
    graph_.blobs.push_back({true, static_cast<std::uint32_t>(graph_.source_weights.size() - 1)});
    return static_cast<std::uint32_t>(graph_.blobs.size() - 1);
  }

  void set_program(std::vector<std::byte> program) override { program_ = std::move(program); }

  std::string key_of(const StoredGraph& graph) const {
    ByteWriter all;
    // Equal graphs of two models are renewed and dropped each on its own.
    all.text(graph.model_name);
    all.text(build_id());
    all.hash(graph.program_content);
    for (const SourceFile& source : graph.sources) all.hash(source.content);
    for (const GraphBlob& blob : graph.blobs) {
      all.number(blob.is_source ? 1 : 0);
      all.hash(blob.is_source ? graph.source_weights[blob.number].content
                              : index_.blobs[blob.number].content);
    }
    return hex(hash_bytes(all.bytes()));
  }

  ContainerIndex index_;
  std::map<BlobKey, std::uint32_t> numbers_;
  StoredGraph graph_;
  std::vector<std::byte> program_;
  std::unique_ptr<std::byte, decltype(&std::free)> scratch_{nullptr, &std::free};
  std::size_t scratch_bytes_ = 0;
};

class MemoryWriter final : public Writer {
 public:
  MemoryWriter() {
    bytes_.resize(kHeader_bytes);
    index().build = build_id();
    index().isa = packing_isa();
  }

  Status commit() override {
    const std::vector<std::byte> index_bytes = encode_index(index());
    ContainerSlot slot;
    slot.generation = 1;
    SDX_ASSIGN(slot.index_offset, append(index_bytes, kBlockAlignmentBytes));
    slot.index_bytes = index_bytes.size();
    slot.index_content = hash_bytes(index_bytes);
    const std::vector<std::byte> header = encode_header(slot);
    std::memcpy(bytes_.data(), header.data(), header.size());
    return {};
  }
  std::string take_bytes() override { return std::move(bytes_); }

 private:
  Result<std::uint64_t> append(std::span<const std::byte> bytes,
                               std::uint64_t alignment_bytes) override {
    const std::uint64_t offset =
        (bytes_.size() + alignment_bytes - 1) / alignment_bytes * alignment_bytes;
    bytes_.resize(offset);
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return offset;
  }

  std::string bytes_;
};

/// Whether the compiled model at `path` still names the graph. One that cannot be read may.
bool names_graph(const std::filesystem::path& path, const std::string& key) {
  const auto model = MappedFile::open(path.string());
  if (!model.ok()) return true;
  const auto bytes = (*model)->bytes();
  return ::memmem(bytes.data(), bytes.size(), key.data(), key.size()) != nullptr;
}

/// Graphs of a model that names a later one instead. One that is later than all that the model
/// names belongs to a model that is being written.
void drop_superseded(ContainerIndex& index, const std::filesystem::path& folder) {
  std::set<std::string> renewed;
  std::vector<StoredGraph> kept;
  std::for_each(index.graphs.rbegin(), index.graphs.rend(), [&](StoredGraph& graph) {
    if (names_graph(folder / graph.model_name, graph.key)) {
      renewed.insert(graph.model_name);
    } else if (renewed.contains(graph.model_name)) {
      return;
    }
    kept.push_back(std::move(graph));
  });
  std::reverse(kept.begin(), kept.end());
  index.graphs = std::move(kept);
}

/// Blobs that the graphs use keep their order; others go.
void drop_unused_blobs(ContainerIndex& index) {
  constexpr std::uint32_t kNone = 0xffffffffU;
  std::vector<std::uint32_t> number(index.blobs.size(), kNone);
  for (const StoredGraph& graph : index.graphs) {
    for (const GraphBlob& blob : graph.blobs) {
      if (!blob.is_source) number[blob.number] = 0;
    }
  }
  std::vector<StoredBlob> kept;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] == kNone) continue;
    number[i] = static_cast<std::uint32_t>(kept.size());
    kept.push_back(std::move(index.blobs[i]));
  }
  index.blobs = std::move(kept);
  for (StoredGraph& graph : index.graphs) {
    for (GraphBlob& blob : graph.blobs) {
      if (!blob.is_source) blob.number = number[blob.number];
    }
  }
}

std::uint64_t used_bytes(const ContainerIndex& index) {
  std::uint64_t total = 0;
  for (const StoredBlob& blob : index.blobs) total += blob.size_bytes;
  for (const StoredGraph& graph : index.graphs) total += graph.program_bytes;
  return total;
}

class FileWriter final : public Writer {
 public:
  FileWriter(std::string path, FolderLock lock) : path_(std::move(path)), lock_(std::move(lock)) {}

  /// Goes on where the container's last generation ends, or begins a new file.
  Status begin() {
    remove_unfinished(path_);
    const auto container = Container::open(path_, Container::Check::UnlessKnown);
    if (!container.ok() || !(*container)->check_build().ok()) return begin_new();
    ContainerIndex index = (*container)->index();
    const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
    drop_superseded(index, folder);
    drop_unused_blobs(index);
    generation_ = (*container)->generation();
    // Rather a new file than one that is for the larger part remains.
    if (used_bytes(index) < (*container)->end() / 2) return begin_with(**container, index);
    SDX_ASSIGN(file_, AtomicFile::extend(path_, (*container)->end()));
    adopt(std::move(index));
    return {};
  }

  /// Begins anew with some of the container's graphs; false when those are all it has, or none.
  Result<bool> begin_with_some(
      FunctionRef<Result<std::set<std::string>>(const ContainerIndex& index)> kept) {
    remove_unfinished(path_);
    SDX_ASSIGN(const auto container, Container::open(path_, Container::Check::UnlessKnown));
    ContainerIndex index = container->index();
    SDX_ASSIGN(const std::set<std::string> keys, kept(index));
    const std::size_t dropped = std::erase_if(
        index.graphs, [&](const StoredGraph& graph) { return !keys.contains(graph.key); });
    if (dropped == 0) return false;
    if (index.graphs.empty()) {
      std::error_code ignored;
      std::filesystem::remove(path_, ignored);
      std::filesystem::remove(path_ + ".seen", ignored);
      return false;
    }
    drop_unused_blobs(index);
    generation_ = container->generation();
    SDX_TRY(begin_with(*container, index));
    return true;
  }

  Status commit() override {
    const std::vector<std::byte> bytes = encode_index(index());
    ContainerSlot slot;
    slot.generation = generation_ + 1;
    SDX_ASSIGN(slot.index_offset, append(bytes, kBlockAlignmentBytes));
    slot.index_bytes = bytes.size();
    slot.index_content = hash_bytes(bytes);
    if (file_.is_new()) {
      SDX_TRY(file_.overwrite(0, encode_header(slot)));
    } else {
      SDX_TRY(file_.sync());
      SDX_TRY(file_.overwrite(slot_offset(slot.generation), encode_slot(slot)));
    }
    SDX_TRY(file_.commit());
    SDX_ASSIGN(const FileIdentity identity, identify_file(path_));
    wait_until_distinct(identity);
    KnownFiles known = KnownFiles::beside(path_);
    known.add(identity, slot.index_content);
    known.save();
    return {};
  }

  std::string take_bytes() override { return {}; }

 private:
  /// Models that lie below the container's folder are found when all of it is moved.
  std::string stored_path(const std::string& path) const override {
    std::error_code error;
    const auto folder = std::filesystem::weakly_canonical(path_, error).parent_path();
    const auto relative = std::filesystem::path(path).lexically_relative(folder);
    const bool is_below = !error && !relative.empty() && *relative.begin() != "..";
    return is_below ? relative.string() : path;
  }

  Status begin_new() {
    SDX_ASSIGN(file_, AtomicFile::create(path_));
    const std::vector<std::byte> header(kHeader_bytes);
    SDX_TRY(file_.append(header));
    ContainerIndex index;
    index.build = build_id();
    index.isa = packing_isa();
    adopt(std::move(index));
    return {};
  }

  /// A new file with what is in use of the old one.
  Status begin_with(const Container& old, ContainerIndex& index) {
    SDX_TRY(begin_new());
    for (StoredBlob& blob : index.blobs) {
      const auto bytes = old.blob(blob);
      SDX_ASSIGN(blob.offset,
                 append(bytes, bytes.size() >= kPaged_bytes ? kPage_bytes : kBlockAlignmentBytes));
    }
    for (StoredGraph& graph : index.graphs) {
      SDX_ASSIGN(const auto program, old.program(graph));
      SDX_ASSIGN(graph.program_offset, append(program, kBlockAlignmentBytes));
    }
    adopt(std::move(index));
    return {};
  }

  Result<std::uint64_t> append(std::span<const std::byte> bytes,
                               std::uint64_t alignment_bytes) override {
    SDX_TRY(file_.pad_to(alignment_bytes));
    const std::uint64_t offset = file_.size();
    SDX_TRY(file_.append(bytes));
    return offset;
  }

  std::string path_;
  FolderLock lock_;
  AtomicFile file_;
  std::uint64_t generation_ = 0;
};

}  // namespace

Result<std::unique_ptr<ContainerWriter>> ContainerWriter::extend(const std::string& path,
                                                                 const std::atomic<bool>* cancel) {
  SDX_ASSIGN(FolderLock lock, FolderLock::take(path, cancel));
  auto writer = std::make_unique<FileWriter>(path, std::move(lock));
  SDX_TRY(writer->begin());
  return std::unique_ptr<ContainerWriter>(std::move(writer));
}

Status ContainerWriter::collect(
    const std::string& path,
    FunctionRef<Result<std::set<std::string>>(const ContainerIndex& index)> kept) {
  SDX_ASSIGN(FolderLock lock, FolderLock::take(path, nullptr));
  FileWriter writer(path, std::move(lock));
  SDX_ASSIGN(const bool has_changed, writer.begin_with_some(kept));
  return has_changed ? writer.commit() : Status();
}

std::unique_ptr<ContainerWriter> ContainerWriter::in_memory() {
  return std::make_unique<MemoryWriter>();
}

}  // namespace sardonyx
