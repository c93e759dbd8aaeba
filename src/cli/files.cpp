#include "cli/files.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace sardonyx::cli {

Result<std::vector<std::byte>> read_file(const std::string& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  if (error) return failure("cannot read '{}': {}", path, error.message());
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(size);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) return failure("cannot read '{}': {}", path, std::strerror(errno));
  return bytes;
}

Status write_file(const std::string& path, const std::string& bytes) {
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  std::FILE* file = std::fopen(temporary.c_str(), "wbx");
  if (file == nullptr) return failure("cannot write '{}': {}", temporary, std::strerror(errno));
  const bool is_written = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() &&
                          std::fflush(file) == 0 && fsync(fileno(file)) == 0;
  const bool is_closed = std::fclose(file) == 0;
  if (is_written && is_closed && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
  Status failed = failure("cannot write '{}': {}", path, std::strerror(errno));
  std::remove(temporary.c_str());
  return failed;
}

}  // namespace sardonyx::cli
