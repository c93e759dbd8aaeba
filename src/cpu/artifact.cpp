#include "cpu/artifact.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"
#include "base/mapped_file.h"
#include "cpu/lower.h"
#include "ir/graph_bytes.h"
#include "ops/infer.h"
#include "passes/pass.h"

namespace sardonyx {

namespace {

constexpr std::string_view kSourceLayout = "source";
/// Smaller constants go into the program itself; kernels may look at their elements.
constexpr std::size_t kInside_bytes = 64;
/// Up to this size an element is kept even if only a packed form is read when it runs: kernels may
/// look at it when they are made.
constexpr std::size_t kLookedAt_bytes = 4096;
/// A weight of a source at an odd place is copied if it is no larger.
constexpr std::size_t kCopied_bytes = std::size_t{64} << 10;
/// A model's file is searched for weights of which nothing else tells the place up to this size.
constexpr std::size_t kSearched_bytes = std::size_t{256} << 20;
/// Stands for elements that are not stored.
constexpr std::uint32_t kNotStored = 0;

/// One constant that is numbered in the program.
struct Constant {
  Tensor tensor;
  std::string name;
  std::shared_ptr<const WeightOrigin> origin;
  /// Its blob + 1, or kNotStored.
  std::uint32_t blob = kNotStored;
  bool is_needed = true;
  /// Of a subgraph.
  bool is_inner = false;
};

class Saver {
 public:
  Saver(const CompileOptions& options, ArtifactWriter& writer)
      : options_(options), writer_(writer) {}

  Status save(const Graph& graph) {
    whole_ = &graph;
    SDX_ASSIGN(const std::vector<std::byte> bytes,
               encode_graph(graph, [&](const Graph& in, ValueId id) { return number(in, id); }));
    // What is packed is recorded from the graph as it will be read.
    SDX_ASSIGN(const Graph again, reread(bytes));
    const bool is_weightless = options_.weightless != Weightless::None;
    PackingRecord record;
    std::vector<std::uint32_t> packed;
    if (!is_weightless) SDX_TRY(pack(again, record, packed));
    for (Constant& constant : constants_) {
      if (constant.is_needed) SDX_TRY(store(constant));
    }
    writer_.set_program(program(bytes, record, packed, is_weightless));
    return {};
  }

 private:
  Result<std::optional<std::uint32_t>> number(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    const Tensor& tensor = *value.constant;
    if (tensor.dtype() == DType::String || tensor.dtype() == DType::Undefined ||
        tensor.byte_size() < kInside_bytes) {
      return std::optional<std::uint32_t>();
    }
    constants_.push_back({tensor, value.name, value.origin, kNotStored, true, &graph != whole_});
    if (options_.weightless != Weightless::None && value.origin == nullptr) {
      constants_.back().origin = find_in_model(tensor);
    }
    return std::optional(static_cast<std::uint32_t>(constants_.size() - 1));
  }

  /// Where the model's file has these elements: attributes of Constant nodes say nothing of it.
  std::shared_ptr<const WeightOrigin> find_in_model(const Tensor& tensor) const {
    if (options_.model == nullptr || options_.model->path.empty()) return nullptr;
    const auto file = MappedFile::open(options_.model->path);
    if (!file.ok() || (*file)->size() > kSearched_bytes) return nullptr;
    const auto bytes = (*file)->bytes();
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const std::string_view wanted(reinterpret_cast<const char*>(tensor.data()), tensor.byte_size());
    const std::size_t found = text.find(wanted);
    if (found == std::string_view::npos) return nullptr;
    return std::make_shared<const WeightOrigin>(
        WeightOrigin{(*file)->path(), found, tensor.byte_size()});
  }

  Result<Graph> reread(std::span<const std::byte> bytes) {
    const auto find = [&](std::uint32_t number, DType, const Shape&) -> Result<Tensor> {
      return constants_[number].tensor;
    };
    SDX_ASSIGN(Graph graph, decode_graph(bytes, find));
    SDX_TRY(infer_types(graph));
    return graph;
  }

  /// Stores what kernels pack, and finds out which constants they do not read then.
  Status pack(const Graph& graph, PackingRecord& record, std::vector<std::uint32_t>& blobs) {
    // The store is for weights of running sessions: nothing is made in it here.
    WeightStore unused;
    constexpr std::size_t kSpare_bytes = std::size_t{48} << 20;
    PackedWeights weights(unused, {kSpare_bytes, SIZE_MAX, true});
    SDX_ASSIGN(const Program program, lower(graph, weights, options_.thread_count));
    record = weights.record();
    for (const PackedWeights::Wanted& wanted : weights.wanted()) {
      SDX_ASSIGN(const std::uint32_t blob, store_packed(wanted));
      blobs.push_back(blob);
    }
    mark_unread(graph, program);
    return {};
  }

  Result<std::uint32_t> store_packed(const PackedWeights::Wanted& wanted) {
    SDX_TRY(check_cancelled());
    const BlobKey key{hash_of(wanted.source), wanted.source.byte_size(), wanted.layout};
    SDX_ASSIGN(const std::uint32_t blob,
               writer_.add_blob(key, wanted.blob->size_bytes, [&](std::span<std::byte> target) {
                 wanted.fill(target.data());
                 return Status();
               }));
    release_pages(wanted.source);
    return blob;
  }

  Status store(Constant& constant) {
    SDX_TRY(check_cancelled());
    const Tensor& tensor = constant.tensor;
    if (stays(constant)) {
      SDX_ASSIGN(constant.blob, writer_.add_source(tensor, *constant.origin, constant.name));
    } else {
      const BlobKey key{hash_of(tensor), tensor.byte_size(), std::string(kSourceLayout)};
      SDX_ASSIGN(constant.blob, writer_.add_bytes(key, {tensor.data(), tensor.byte_size()}));
    }
    ++constant.blob;
    release_pages(tensor);
    return {};
  }

  /// Whether the weight is left where its source has it.
  bool stays(const Constant& constant) const {
    if (options_.weightless == Weightless::None || constant.origin == nullptr) return false;
    if (!is_at_origin(constant.tensor, *constant.origin)) return false;
    const bool is_in_model = options_.model != nullptr && is_model_file(constant.origin->file);
    return options_.weightless == Weightless::All || !is_in_model;
  }

  /// Whether the origin has these elements: a pass may have put others in their place.
  static bool is_at_origin(const Tensor& tensor, const WeightOrigin& origin) {
    const auto file = MappedFile::open(origin.file);
    if (!file.ok() || tensor.byte_size() != origin.length) return false;
    const auto bytes = (*file)->bytes();
    if (origin.offset > bytes.size() || origin.length > bytes.size() - origin.offset) return false;
    const std::byte* stored = bytes.data() + origin.offset;
    return stored == tensor.data() || std::memcmp(stored, tensor.data(), origin.length) == 0;
  }

  bool is_model_file(const std::string& file) const {
    std::error_code error;
    return std::filesystem::weakly_canonical(options_.model->path, error) == file;
  }

  static Hash128 hash_of(const Tensor& tensor) {
    return hash_bytes({tensor.data(), tensor.byte_size()});
  }

  /// Pages of a file that are not looked at any more need not count as this process's.
  static void release_pages(const Tensor& tensor) {
    if (MappedFile::containing(tensor.data()) == nullptr) return;
    MappedFile::release({tensor.data(), tensor.byte_size()});
  }

  Status check_cancelled() const {
    if (options_.cancel == nullptr || !options_.cancel->load()) return {};
    return {Code::Cancelled, "compiling was cancelled"};
  }

  /// Constants of the graph itself that are read in packed forms alone. Those of subgraphs stay.
  void mark_unread(const Graph& graph, const Program& program) {
    std::unordered_map<const std::byte*, bool> is_read;
    for (const auto& [slot, datum] : program.constants) {
      if (datum.tensor() == nullptr) continue;
      is_read[graph.value(slot).constant->data()] |= datum.tensor()->data() != nullptr;
    }
    for (Constant& constant : constants_) {
      const auto found = is_read.find(constant.tensor.data());
      if (constant.is_inner || found == is_read.end() || found->second) continue;
      constant.is_needed = constant.tensor.byte_size() <= kLookedAt_bytes;
    }
  }

  std::vector<std::byte> program(std::span<const std::byte> graph, const PackingRecord& record,
                                 const std::vector<std::uint32_t>& packed, bool is_weightless) {
    ByteWriter writer;
    writer.number(is_weightless ? 1 : 0);
    writer.number(constants_.size());
    for (const Constant& constant : constants_) writer.number(constant.blob);
    writer.number(record.answers.size());
    for (const bool answer : record.answers) writer.number(answer ? 1 : 0);
    writer.number(packed.size());
    for (std::size_t i = 0; i < packed.size(); ++i) {
      writer.number(packed[i]);
      writer.text(record.blobs[i].layout);
    }
    writer.raw(graph);
    return writer.take();
  }

  const CompileOptions& options_;
  ArtifactWriter& writer_;
  const Graph* whole_ = nullptr;
  std::vector<Constant> constants_;
};

/// A numbered constant of a stored graph, over its blob or without elements.
Result<Tensor> constant_of(const Artifact& artifact, std::uint32_t blob, DType dtype,
                           const Shape& shape) {
  const auto count = shape.element_count();
  const auto bytes = count ? dtype_bytes(dtype, *count) : std::nullopt;
  const bool is_plain = dtype != DType::String && dtype != DType::Undefined;
  if (!bytes || !shape.is_static() || !is_plain) {
    return failure(Code::InvalidModel, "the program is damaged: a constant of type {} and shape {}",
                   dtype_name(dtype), shape.to_string());
  }
  if (blob == kNotStored) return Tensor::view(dtype, shape, static_cast<const void*>(nullptr));
  const ArtifactBlob& found = artifact.blobs[blob - 1];
  if (found.size_bytes != *bytes) {
    return failure(Code::InvalidModel,
                   "the program is damaged: a constant of {} bytes has a blob of {} bytes", *bytes,
                   found.size_bytes);
  }
  Tensor tensor = Tensor::view(dtype, shape, static_cast<const void*>(found.data), artifact.owner);
  // As the reader does: only large weights stay at odd places.
  return *bytes <= kCopied_bytes ? aligned(tensor) : Result<Tensor>(std::move(tensor));
}

}  // namespace

std::vector<ValueId> unread_constants(const Program& program) {
  std::vector<ValueId> unread;
  for (const auto& [slot, datum] : program.constants) {
    const Tensor* tensor = datum.tensor();
    if (tensor != nullptr && tensor->data() == nullptr) unread.push_back(slot);
  }
  return unread;
}

Status save_graph(const Graph& graph, const CompileOptions& options, ArtifactWriter& writer) {
  return Saver(options, writer).save(graph);
}

Result<SavedGraph> read_graph(const Artifact& artifact) {
  ByteReader reader(artifact.program, "program");
  SavedGraph saved;
  saved.is_weightless = reader.below(2, "flag") == 1;
  std::vector<std::uint32_t> constants(reader.count());
  for (std::uint32_t& blob : constants) {
    blob = static_cast<std::uint32_t>(reader.below(artifact.blobs.size() + 1, "blob"));
  }
  const std::size_t answer_count = reader.count();
  for (std::size_t i = 0; i < answer_count && reader.ok(); ++i) {
    saved.packing.answers.push_back(reader.below(2, "answer") == 1);
  }
  const std::size_t packed_count = reader.count();
  for (std::size_t i = 0; i < packed_count && reader.ok(); ++i) {
    const std::size_t number = reader.below(artifact.blobs.size(), "blob");
    const std::string_view layout = reader.text();
    if (!reader.ok()) break;
    const ArtifactBlob& blob = artifact.blobs[number];
    saved.packing.blobs.push_back({std::string(layout), blob.size_bytes,
                                   std::shared_ptr<const std::byte>(artifact.owner, blob.data)});
  }
  const std::size_t begin = reader.position();
  SDX_TRY(reader.take_status());
  const auto find = [&](std::uint32_t number, DType dtype, const Shape& shape) -> Result<Tensor> {
    if (number >= constants.size()) {
      return failure(Code::InvalidModel, "the program is damaged: it has no constant {}", number);
    }
    return constant_of(artifact, constants[number], dtype, shape);
  };
  SDX_ASSIGN(saved.graph, decode_graph(artifact.program.subspan(begin), find));
  SDX_TRY(infer_types(saved.graph));
  return saved;
}

}  // namespace sardonyx
