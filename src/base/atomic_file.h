#pragma once

#include <atomic>
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
  /// Goes on at byte `end` of a file that stands at `path`: what lies beyond is cut off. Without
  /// commit() the file ends there again. What else it holds can be overwritten at once, not
  /// atomically: callers sync() before they make something old point to something new.
  static Result<AtomicFile> extend(const std::string& path, std::uint64_t end);
  AtomicFile() = default;
  AtomicFile(AtomicFile&& other) noexcept;
  AtomicFile& operator=(AtomicFile&& other) noexcept;
  ~AtomicFile();

  Status append(std::span<const std::byte> bytes);
  /// Appends zeros until the size is a multiple of `alignment_bytes` (at least 1).
  Status pad_to(std::size_t alignment_bytes);
  /// Brings what was appended to the disk.
  Status sync();
  /// Replaces bytes that were appended before; the range must lie within size().
  Status overwrite(std::uint64_t offset, std::span<const std::byte> bytes);
  /// Bytes appended so far.
  std::uint64_t size() const { return size_bytes_; }

  /// Whether the file is made anew, and not extended.
  bool is_new() const { return !temporary_.empty(); }
  /// Makes the file appear at `path`, or what was appended last. Nothing may be called afterwards.
  Status commit();

 private:
  AtomicFile(std::string path, std::string temporary, int descriptor);
  Status flush();
  void discard();

  std::string path_;
  std::string temporary_;
  int descriptor_ = -1;
  std::uint64_t size_bytes_ = 0;
  /// Where a file that is extended ended before.
  std::uint64_t former_bytes_ = 0;
  /// Whether all of it was brought to the disk.
  bool is_synced_ = false;
  /// Small appends are gathered here.
  std::vector<std::byte> buffer_;
};

/// Removes what writers of `path` left that were ended before they were done. Only for who knows
/// that nobody else writes there.
void remove_unfinished(const std::string& path);

/// The right to write into a folder, which one process and thread has at a time. Given back when
/// it is destroyed, or the process ends.
class FolderLock {
 public:
  /// Waits for the lock of the folder that `path` lies in; `cancel` may be null.
  /// Errors   InvalidArgument when there is no such folder; Cancelled.
  static Result<FolderLock> take(const std::string& path, const std::atomic<bool>* cancel);
  FolderLock(FolderLock&& other) noexcept;
  FolderLock& operator=(FolderLock&& other) noexcept;
  ~FolderLock();

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_ = -1;
};

}  // namespace sardonyx
