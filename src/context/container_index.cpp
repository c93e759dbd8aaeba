#include "context/container_index.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "base/bytes.h"

namespace sardonyx {

namespace {

void write_identity(ByteWriter& writer, const FileIdentity& identity) {
  writer.number(identity.device);
  writer.number(identity.inode);
  writer.number(identity.size_bytes);
  writer.signed_number(identity.modified_ns);
  writer.signed_number(identity.changed_ns);
}

FileIdentity read_identity(ByteReader& reader) {
  FileIdentity identity;
  identity.device = reader.number();
  identity.inode = reader.number();
  identity.size_bytes = reader.number();
  identity.modified_ns = reader.signed_number();
  identity.changed_ns = reader.signed_number();
  return identity;
}

void write_graph(ByteWriter& writer, const StoredGraph& graph) {
  writer.text(graph.key);
  writer.text(graph.model_name);
  writer.number(graph.program_offset);
  writer.number(graph.program_bytes);
  writer.hash(graph.program_content);
  writer.number(graph.sources.size());
  for (const SourceFile& source : graph.sources) {
    writer.text(source.path);
    write_identity(writer, source.identity);
    writer.hash(source.content);
    writer.number(source.is_model ? 1 : 0);
  }
  writer.number(graph.source_weights.size());
  for (const SourceWeight& weight : graph.source_weights) {
    writer.text(weight.name);
    writer.number(weight.file);
    writer.number(weight.offset);
    writer.number(weight.size_bytes);
    writer.hash(weight.content);
  }
  writer.number(graph.blobs.size());
  for (const GraphBlob& blob : graph.blobs) {
    writer.number((std::uint64_t{blob.number} << 1) | (blob.is_source ? 1 : 0));
  }
}

/// A range of the container, whose end is known not to overflow.
void check_range(ByteReader& reader, std::uint64_t offset, std::uint64_t size, std::uint64_t end) {
  const bool is_inside = offset >= kHeader_bytes && offset <= end && size <= end - offset;
  if (!is_inside) reader.refuse(fmt::format("{} bytes at {} lie outside", size, offset));
}

StoredGraph read_graph(ByteReader& reader, std::size_t blob_count, std::uint64_t end) {
  StoredGraph graph;
  graph.key = reader.text();
  graph.model_name = reader.text();
  graph.program_offset = reader.number();
  graph.program_bytes = reader.number();
  check_range(reader, graph.program_offset, graph.program_bytes, end);
  graph.program_content = reader.hash();
  const std::size_t source_count = reader.count();
  for (std::size_t i = 0; i < source_count && reader.ok(); ++i) {
    SourceFile source;
    source.path = reader.text();
    source.identity = read_identity(reader);
    source.content = reader.hash();
    source.is_model = reader.below(2, "flag") == 1;
    graph.sources.push_back(std::move(source));
  }
  const std::size_t weight_count = reader.count();
  for (std::size_t i = 0; i < weight_count && reader.ok(); ++i) {
    SourceWeight weight;
    weight.name = reader.text();
    weight.file = static_cast<std::uint32_t>(reader.below(graph.sources.size(), "source"));
    weight.offset = reader.number();
    weight.size_bytes = reader.number();
    weight.content = reader.hash();
    graph.source_weights.push_back(std::move(weight));
  }
  const std::size_t count = reader.count();
  for (std::size_t i = 0; i < count && reader.ok(); ++i) {
    const std::uint64_t code = reader.number();
    const bool is_source = (code & 1) != 0;
    const std::size_t bound = is_source ? graph.source_weights.size() : blob_count;
    if ((code >> 1) >= bound) reader.refuse(fmt::format("there is no blob {}", code >> 1));
    graph.blobs.push_back({is_source, static_cast<std::uint32_t>(code >> 1)});
  }
  return graph;
}

StoredBlob read_blob(ByteReader& reader, const std::vector<std::string>& layouts,
                     std::uint64_t end) {
  StoredBlob blob;
  blob.key.source = reader.hash();
  blob.key.source_bytes = reader.number();
  const std::size_t layout = reader.below(layouts.size(), "layout");
  if (reader.ok()) blob.key.layout = layouts[layout];
  blob.offset = reader.number();
  blob.size_bytes = reader.number();
  check_range(reader, blob.offset, blob.size_bytes, end);
  blob.content = reader.hash();
  return blob;
}

}  // namespace

std::vector<std::byte> encode_index(const ContainerIndex& index) {
  std::map<std::string_view, std::uint64_t> layouts;
  std::vector<std::string_view> names;
  for (const StoredBlob& blob : index.blobs) {
    if (layouts.try_emplace(blob.key.layout, names.size()).second) names.push_back(blob.key.layout);
  }
  ByteWriter writer;
  writer.text(index.build);
  writer.text(index.isa);
  writer.number(names.size());
  for (const std::string_view name : names) writer.text(name);
  writer.number(index.blobs.size());
  for (const StoredBlob& blob : index.blobs) {
    writer.hash(blob.key.source);
    writer.number(blob.key.source_bytes);
    writer.number(layouts.at(blob.key.layout));
    writer.number(blob.offset);
    writer.number(blob.size_bytes);
    writer.hash(blob.content);
  }
  writer.number(index.graphs.size());
  for (const StoredGraph& graph : index.graphs) write_graph(writer, graph);
  return writer.take();
}

Result<ContainerIndex> decode_index(std::span<const std::byte> bytes, std::uint64_t end) {
  ByteReader reader(bytes, "index");
  ContainerIndex index;
  index.build = reader.text();
  index.isa = reader.text();
  std::vector<std::string> layouts;
  const std::size_t layout_count = reader.count();
  for (std::size_t i = 0; i < layout_count && reader.ok(); ++i) layouts.emplace_back(reader.text());
  const std::size_t blob_count = reader.count();
  for (std::size_t i = 0; i < blob_count && reader.ok(); ++i) {
    index.blobs.push_back(read_blob(reader, layouts, end));
  }
  const std::size_t graph_count = reader.count();
  for (std::size_t i = 0; i < graph_count && reader.ok(); ++i) {
    index.graphs.push_back(read_graph(reader, index.blobs.size(), end));
  }
  if (!reader.at_end()) reader.refuse("there are bytes after it");
  SDX_TRY(reader.take_status());
  return index;
}

namespace {

constexpr std::string_view kMagic("\x89SDXCTX\n", 8);
constexpr std::size_t kSlot_bytes = 512;

}  // namespace

bool begins_as_container(std::span<const std::byte> bytes) {
  return bytes.size() >= kMagic.size() &&
         std::memcmp(bytes.data(), kMagic.data(), kMagic.size()) == 0;
}

std::uint64_t slot_offset(std::uint64_t generation) { return (1 + generation % 2) * kSlot_bytes; }

std::vector<std::byte> encode_slot(ContainerSlot slot) {
  ByteWriter writer;
  for (const std::uint64_t number : {slot.generation, slot.index_offset, slot.index_bytes}) {
    writer.fixed(number);
  }
  writer.hash(slot.index_content);
  writer.hash(hash_bytes(writer.bytes()));
  return writer.take();
}

std::vector<std::byte> encode_header(const ContainerSlot& slot) {
  ByteWriter writer;
  writer.raw(std::as_bytes(std::span(kMagic)));
  writer.fixed(kContainerVersion);
  std::vector<std::byte> header = writer.take();
  header.resize(kHeader_bytes);
  const auto bytes = encode_slot(slot);
  std::memcpy(header.data() + slot_offset(slot.generation), bytes.data(), bytes.size());
  return header;
}

Result<ContainerSlot> decode_header(std::span<const std::byte> bytes, std::uint64_t end) {
  ByteReader reader(bytes.first(std::min(bytes.size(), kHeader_bytes)), "header");
  const auto magic = reader.raw(kMagic.size());
  SDX_TRY(reader.take_status());
  if (std::memcmp(magic.data(), kMagic.data(), kMagic.size()) != 0) {
    return failure(Code::InvalidModel, "it does not begin as a container of compiled models does");
  }
  const auto version = reader.fixed<std::uint32_t>();
  if (version != kContainerVersion) {
    return failure(Code::Unsupported, "its format has version {}, this build reads version {}",
                   version, kContainerVersion);
  }
  std::optional<ContainerSlot> latest;
  for (const std::uint64_t parity : {0U, 1U}) {
    if (bytes.size() < kHeader_bytes) break;
    ByteReader one(bytes.subspan(slot_offset(parity), kSlot_bytes), "header");
    ContainerSlot slot;
    slot.generation = one.fixed<std::uint64_t>();
    slot.index_offset = one.fixed<std::uint64_t>();
    slot.index_bytes = one.fixed<std::uint64_t>();
    slot.index_content = one.hash();
    const Hash128 expected = hash_bytes(bytes.subspan(slot_offset(parity), one.position()));
    const bool is_whole = one.hash() == expected && slot.index_offset >= kHeader_bytes &&
                          slot.index_offset <= end && slot.index_bytes <= end - slot.index_offset;
    if (is_whole && (!latest || slot.generation > latest->generation)) latest = slot;
  }
  if (!latest) return failure(Code::InvalidModel, "its header is damaged or it is cut short");
  return *latest;
}

}  // namespace sardonyx
