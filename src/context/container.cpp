#include "context/container.h"

#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/memory.h"
#include "base/text.h"
#include "base/build_id.h"
#include "context/container_index.h"
#include "context/known_files.h"

namespace sardonyx {

Result<std::shared_ptr<const Container>> Container::open(const std::string& path, Check check) {
  auto container = std::make_shared<Container>(Private{}, path);
  SDX_ASSIGN(container->file_, MappedFile::open(path));
  const std::string where = "opening the container '" + path + "' of compiled models";
  Status status = container->read(container->file_->bytes());
  if (!status.ok()) return std::move(status).with(where);
  if (check == Check::Index) return std::shared_ptr<const Container>(std::move(container));
  if (check == Check::All || !container->is_known()) {
    status = container->check_all();
    if (!status.ok()) return std::move(status).with(where);
    const FileIdentity& identity = container->file_->identity();
    wait_until_distinct(identity);
    KnownFiles known = KnownFiles::beside(path);
    known.add(identity, container->slot_.index_content);
    known.save();
  }
  return std::shared_ptr<const Container>(std::move(container));
}

Result<std::shared_ptr<const Container>> Container::from_bytes(std::span<const std::byte> bytes,
                                                               std::shared_ptr<const void> owner,
                                                               const std::string& name) {
  auto container = std::make_shared<Container>(Private{}, name);
  container->owner_ = std::move(owner);
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % kAlignment_bytes != 0) {
    auto* copy = static_cast<std::byte*>(allocate_aligned(bytes.size()));
    if (copy == nullptr) {
      return failure(Code::OutOfMemory, "no memory for the {} bytes of the container {}",
                     bytes.size(), name);
    }
    container->owner_ = std::shared_ptr<const void>(
        copy, [](const void* pointer) { std::free(const_cast<void*>(pointer)); });
    std::memcpy(copy, bytes.data(), bytes.size());
    bytes = {copy, bytes.size()};
  }
  Status status = container->read(bytes);
  if (status.ok()) status = container->check_all();
  if (!status.ok()) return std::move(status).with("opening the container " + name);
  return std::shared_ptr<const Container>(std::move(container));
}

Status Container::read(std::span<const std::byte> bytes) {
  bytes_ = bytes;
  SDX_ASSIGN(slot_, decode_header(bytes, bytes.size()));
  const auto index = bytes.subspan(slot_.index_offset, slot_.index_bytes);
  if (hash_bytes(index) != slot_.index_content) {
    return failure(Code::InvalidModel, "its index is damaged: the hash differs");
  }
  SDX_ASSIGN(index_, decode_index(index, slot_.index_offset));
  return {};
}

Result<const StoredGraph*> Container::find(std::string_view key) const {
  for (const StoredGraph& graph : index_.graphs) {
    if (graph.key == key) return &graph;
  }
  std::vector<std::string> names;
  for (const StoredGraph& graph : index_.graphs) names.push_back(graph.model_name);
  return failure(Code::InvalidModel,
                 "the container '{}' has no graph '{}'; it has those of {}. It may belong to other "
                 "models, or was written again since: compile the model again",
                 name_, key, names.empty() ? "no model" : join(names, ", "));
}

Result<std::span<const std::byte>> Container::program(const StoredGraph& graph) const {
  const auto program = bytes_.subspan(graph.program_offset, graph.program_bytes);
  if (hash_bytes(program) == graph.program_content) return program;
  return failure(Code::InvalidModel, "the program of '{}' in container '{}' is damaged",
                 graph.model_name, name_);
}

bool Container::is_known() const {
  return file_ != nullptr &&
         KnownFiles::beside(name_).content(file_->identity()) == slot_.index_content;
}

Status Container::check_all() const {
  for (std::size_t i = 0; i < index_.blobs.size(); ++i) {
    const StoredBlob& stored = index_.blobs[i];
    const bool is_right = hash_bytes(blob(stored)) == stored.content;
    if (file_ != nullptr) MappedFile::release(blob(stored));
    if (is_right) continue;
    return failure(Code::InvalidModel,
                   "weights are damaged: blob {} ({}, {} bytes at {}) does not have its hash", i,
                   stored.key.layout, stored.size_bytes, stored.offset);
  }
  for (const StoredGraph& graph : index_.graphs) SDX_TRY(program(graph).take_status());
  return {};
}

Status Container::check_build() const {
  const std::string_view isa = packing_isa();
  if (index_.isa != isa) {
    return failure(Code::Unsupported,
                   "the container '{}' has weights for the instruction set {}, but this process "
                   "uses {}: compile the model again here",
                   name_, index_.isa, isa);
  }
  if (index_.build == build_id()) return {};
  return failure(Code::Unsupported,
                 "the container '{}' was written by build {}, but this is build {}: compile the "
                 "model again",
                 name_, index_.build, build_id());
}

}  // namespace sardonyx
