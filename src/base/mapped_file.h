#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

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
/// to the system's file cache: they are not memory of this process.
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

  MappedFile(Private, std::string path, FileIdentity identity, std::span<const std::byte> bytes);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  std::span<const std::byte> bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  /// Absolute and without links, as it was when the file was opened.
  const std::string& path() const { return path_; }
  const FileIdentity& identity() const { return identity_; }

 private:
  std::string path_;
  FileIdentity identity_;
  std::span<const std::byte> bytes_;
};

/// Identity of the regular file at `path`, without opening it. Errors as MappedFile::open.
Result<FileIdentity> identify_file(const std::string& path);

}  // namespace sardonyx
