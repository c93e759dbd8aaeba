#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/status.h"
#include "ep/provider.h"

namespace sardonyx {

/// What tells one stored weight from another: its source's content and the layout it is in.
struct BlobKey {
  Hash128 source;
  std::uint64_t source_bytes = 0;
  /// "source" for bytes as the model has them, else as in WeightStore::get.
  std::string layout;
  friend auto operator<=>(const BlobKey&, const BlobKey&) = default;
};

/// Takes one compiled part. Blobs are numbered from 0 in the order they are added.
class ArtifactWriter {
 public:
  virtual ~ArtifactWriter() = default;

  /// Adds a blob. One with the same key that is stored already is used again, without a call of
  /// `fill`, which must write all bytes.
  /// Errors   of `fill`; of the file, naming it; Cancelled.
  virtual Result<std::uint32_t> add_blob(const BlobKey& key, std::size_t size_bytes,
                                         FunctionRef<Status(std::span<std::byte>)> fill) = 0;
  /// Adds a blob whose bytes are there already.
  virtual Result<std::uint32_t> add_bytes(const BlobKey& key, std::span<const std::byte> bytes) {
    return add_blob(key, bytes.size(), [&](std::span<std::byte> target) {
      if (!bytes.empty()) std::memcpy(target.data(), bytes.data(), bytes.size());
      return Status();
    });
  }
  /// Adds a weight that stays where its source has it: only the place and a hash are stored.
  /// Errors   Unsupported for a tensor whose bytes stand in no file and that is not small.
  virtual Result<std::uint32_t> add_source(const Tensor& weight, const WeightOrigin& origin,
                                           std::string_view name) = 0;
  /// The bytes that load() gets back.
  virtual void set_program(std::vector<std::byte> program) = 0;
};

/// One blob of a part that is read back: 64-byte aligned, unless it is a weight of a source.
struct ArtifactBlob {
  const std::byte* data = nullptr;
  std::size_t size_bytes = 0;
};

/// A compiled part as it is read back.
struct Artifact {
  std::span<const std::byte> program;
  /// In the order they were added.
  std::vector<ArtifactBlob> blobs;
  /// Keeps program and blobs where they are.
  std::shared_ptr<const void> owner;
  /// The mapped files that they lie in.
  std::vector<std::shared_ptr<const void>> files;
};

/// A provider whose compiled parts can be kept in files.
class ArtifactProvider : public Provider {
 public:
  /// What the EPContext nodes of its parts have in their attribute `source`.
  virtual std::string_view context_source() const = 0;
  /// Compiles without running: what compile() would make goes to `writer`, weight by weight.
  /// Cost     memory for the largest weight, not for all.
  virtual Status save(Graph graph, const CompileOptions& options, ArtifactWriter& writer) const = 0;
  /// A part that save() wrote. Nothing in it is believed.
  /// Errors   InvalidModel for what is damaged or made by another build.
  virtual Result<std::unique_ptr<Compiled>> load(const Artifact& artifact,
                                                 const CompileOptions& options) const = 0;
};

/// The provider as one whose parts can be kept, or null.
inline const ArtifactProvider* as_artifact(const Provider& provider) {
  return dynamic_cast<const ArtifactProvider*>(&provider);
}

}  // namespace sardonyx
