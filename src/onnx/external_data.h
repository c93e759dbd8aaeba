#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/mapped_file.h"
#include "onnx/reader.h"

namespace sardonyx::onnx {

/// Bytes of a tensor in a file: where they are, who keeps them, where they came from (null for
/// memory).
struct ExternalBytes {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
  std::shared_ptr<const WeightOrigin> origin;
};

/// The files that a model's external data may lie in.
///
/// A location is a relative path without "..". It is looked for beside the model; links are
/// followed, but what they lead to must lie below that folder, or, when the model itself is a link
/// (as in caches that link from a snapshot to a folder of blobs), below the folder of its target.
class ExternalData {
 public:
  /// `model_path` is "" for a model from bytes, whose folder the options give.
  ExternalData(std::string model_path, const ReadOptions& options)
      : model_path_(std::move(model_path)), options_(options) {}

  /// The range of `length_bytes` bytes at `offset` of the file at `location`.
  Result<ExternalBytes> find(std::string_view location, std::uint64_t offset,
                             std::uint64_t length_bytes);

  /// The files mapped so far, for the model to keep.
  void add_files_to(std::vector<std::shared_ptr<const void>>& keep_alive) const;

 private:
  struct Roots {
    std::string given;
    std::string given_real;
    /// Folder of the file that the model's link leads to; "" when it is no link.
    std::string target_real;
  };
  Status find_roots();
  Result<std::string> resolve(const std::string& location);
  Result<std::shared_ptr<const MappedFile>> open(const std::string& location);

  std::string model_path_;
  const ReadOptions& options_;
  std::optional<Roots> roots_;
  std::unordered_map<std::string, std::shared_ptr<const MappedFile>> files_;
};

}  // namespace sardonyx::onnx
