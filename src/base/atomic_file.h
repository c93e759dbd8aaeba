#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// A file that appears whole or not at all: written under a temporary name in the same folder,
/// brought to the disk, then renamed. Without commit() the temporary file is removed and whatever
/// stood at `path` stays. Several writers of one path do not disturb each other: the last to commit
/// wins.
///
/// Errors   InvalidArgument, with the path and the system's reason, when the file cannot be made or
///          written.
class AtomicFile {
 public:
  static Result<AtomicFile> create(const std::string& path);
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status append(std::span<const std::byte> bytes);
  /// Appends zeros until the size is a multiple of `alignment_bytes` (at least 1).
  Status pad_to(std::size_t alignment_bytes);
  /// Replaces bytes that were appended before; the range must lie within size().
  Status overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Bytes appended so far.
  std::uint64_t size() const { return size_bytes_; }

  /// Makes the file appear at `path`. Nothing may be called afterwards.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor);
  Status flush();
  void discard();

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::uint64_t size_bytes_ = 0;
  /// Small appends are gathered here.
  std::vector<std::byte> buffer_;
};

}  // namespace sardonyx
