#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fault_guard.h"
#include "base/hash.h"
#include "base/status.h"

namespace sardonyx {

/// What tells one state of one file from another: a changed or replaced file gets a new one.
struct FileIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  friend bool operator==(const FileIdentity&, const FileIdentity&) = default;
  friend auto operator<=>(const FileIdentity&, const FileIdentity&) = default;
};

/// The bytes of a regular file, mapped for reading. Pages are read when they are touched and belong
/// to the system's file cache: they are not memory of this process. A file that is cut short while
/// it is mapped reads as zeros there, and the mapping says so (see FaultGuard).
///
/// Errors   NoSuchFile when there is no such file or it may not be read, InvalidArgument for what
///          is no regular file (folder, device, pipe), OutOfMemory when it cannot be mapped.
class MappedFile {
  struct Private {};

 public:
  /// One mapping per file in this process: who opens a file of equal identity while it is mapped
  /// gets the same object. An empty file is fine.
  static Result<std::shared_ptr<const MappedFile>> open(const std::string& path);

  /// The mapping that holds `address`, or null. Tells where the bytes of a tensor come from.
  static std::shared_ptr<const MappedFile> containing(const void* address);

  /// Those of the objects that are mapped files.
  static std::vector<std::shared_ptr<const MappedFile>> among(
      std::span<const std::shared_ptr<const void>> objects);

  MappedFile(Private, std::string path, FileIdentity identity, std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  /// The hash of all bytes. Pages that are read for it are let go: a large file does not stay in
  /// this process's memory.
  Hash128 hash() const;
  /// Lets the pages of a range of a mapping go, until they are touched again.
  static void release(std::span<const std::byte> range);

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  /// Absolute and without links, as it was when the file was opened.
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }
  /// Whether somebody read bytes that the file had lost. No system call.
  bool is_damaged() const { return guard_.has_value() && guard_->is_damaged(); }
  /// Whether the file lost bytes, read or not: the one at path() is the same file, but shorter.
  bool is_cut() const;

 private:
  std::string path_;
  FileIdentity identity_;
  std::span<const std::byte> bytes_;
  /// Goes before the mapping.
  std::optional<FaultGuard> guard_;
};

/// Why nothing that was made of the file's bytes can be trusted: InvalidModel, naming it.
Status cut_file(const MappedFile& file);

/// Identity of the regular file at `path`, without opening it. Errors as MappedFile::open.
Result<FileIdentity> identify_file(const std::string& path);

}  // namespace sardonyx
