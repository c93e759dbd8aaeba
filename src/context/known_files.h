#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/hash.h"
#include "base/mapped_file.h"
#include "base/status.h"

namespace sardonyx {

/// Contents of files that were once hashed, by the state the files were in: kept beside a container
/// in a small file ("NAME.seen") so that the next process need not hash them again. It can be lost
/// or unwritable: then files are hashed again.
class KnownFiles {
 public:
  /// What is kept beside the container; nothing of it when that file is missing or damaged.
  static KnownFiles beside(const std::string& container_path);

  /// The content of a file in that state.
  std::optional<Hash128> content(const FileIdentity& identity) const;
  /// As above; hashes the file when it is not known, and keeps the result.
  /// Errors   NoSuchFile and those of mapping.
  Result<Hash128> content_of(const std::string& path);
  void add(const FileIdentity& identity, const Hash128& content);
  /// Keeps what was added. A folder that cannot be written to is no error.
  void save() const;

 private:
  std::string path_;
  std::map<FileIdentity, Hash128> contents_;
  bool is_changed_ = false;
};

/// Waits until a change of a file in that state would give it another one: systems tell times in
/// steps of some milliseconds.
void wait_until_distinct(const FileIdentity& identity);

}  // namespace sardonyx
