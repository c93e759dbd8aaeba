#include "onnx/external_data.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace sardonyx::onnx {

namespace {

namespace fs = std::filesystem;

bool is_inside(const fs::path& path, const fs::path& folder) {
  const auto [path_end, folder_end] =
      std::mismatch(path.begin(), path.end(), folder.begin(), folder.end());
  return folder_end == folder.end() && path_end != path.end();
}

Status refused(std::string_view location, std::string_view reason) {
  return failure(Code::InvalidModel, "external data at '{}' is refused: {}", location, reason);
}

Status check_location(std::string_view location) {
  if (location.empty()) return refused(location, "the location is empty");
  if (location.find('\0') != std::string_view::npos) {
    return refused(location, "the location holds a zero byte");
  }
  const fs::path path(location);
  if (path.is_absolute() || path.has_root_name() || path.has_root_directory()) {
    return refused(location, "the location is absolute; it must be relative to the model's folder");
  }
  if (std::find(path.begin(), path.end(), fs::path("..")) != path.end()) {
    return refused(location, "the location holds '..'; it must stay in the model's folder");
  }
  return {};
}

Result<std::string> real_folder(const fs::path& folder) {
  std::error_code error;
  const fs::path real = fs::canonical(folder.empty() ? fs::path(".") : folder, error);
  if (error) {
    return failure(Code::NoSuchFile, "cannot open the folder '{}': {}", folder.string(),
                   error.message());
  }
  return real.string();
}

}  // namespace

Status ExternalData::find_roots() {
  if (roots_) return {};
  Roots roots;
  if (model_path_.empty()) {
    roots.given = options_.external_data_folder;
    SDX_ASSIGN(roots.given_real, real_folder(roots.given));
  } else {
    const fs::path model(model_path_);
    roots.given = model.parent_path().string();
    SDX_ASSIGN(roots.given_real, real_folder(roots.given));
    std::error_code error;
    const fs::path target = fs::canonical(model, error);
    if (!error && fs::is_symlink(model, error) && !error) {
      roots.target_real = target.parent_path().string();
    }
  }
  roots_ = std::move(roots);
  return {};
}

Result<std::string> ExternalData::resolve(const std::string& location) {
  SDX_TRY(check_location(location));
  SDX_TRY(find_roots());
  std::error_code error;
  fs::path real = fs::canonical(fs::path(roots_->given) / location, error);
  if (error && !roots_->target_real.empty()) {
    real = fs::canonical(fs::path(roots_->target_real) / location, error);
  }
  if (error) {
    return failure(Code::NoSuchFile, "cannot open external data '{}' in '{}': {}", location,
                   roots_->given_real, error.message());
  }
  if (is_inside(real, roots_->given_real)) return real.string();
  if (!roots_->target_real.empty() && is_inside(real, roots_->target_real)) return real.string();
  if (real == roots_->given_real) return refused(location, "it is a folder");
  return refused(location, fmt::format("it leads to '{}', out of the model's folder '{}'",
                                       real.string(), roots_->given_real));
}

Result<std::shared_ptr<const MappedFile>> ExternalData::open(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  SDX_ASSIGN(const std::string real, resolve(location));
  SDX_ASSIGN(auto file, MappedFile::open(real));
  files_.emplace(location, file);
  return file;
}

Result<ExternalBytes> ExternalData::find(std::string_view location, std::uint64_t offset,
                                         std::uint64_t length_bytes) {
  ExternalBytes found;
  std::span<const std::byte> all;
  const auto memory =
      std::find_if(options_.memory_files.begin(), options_.memory_files.end(),
                   [&](const MemoryFile& file) { return file.location == location; });
  if (memory != options_.memory_files.end()) {
    all = memory->bytes;
    found.owner = memory->owner;
  } else {
    SDX_ASSIGN(auto file, open(std::string(location)));
    all = file->bytes();
    found.origin = std::make_shared<const WeightOrigin>(
        WeightOrigin{file->path(), offset, length_bytes});
    found.owner = std::move(file);
  }
  if (offset > all.size() || length_bytes > all.size() - offset) {
    return failure(Code::InvalidModel,
                   "external data '{}' has {} bytes, too few for {} bytes at offset {}", location,
                   all.size(), length_bytes, offset);
  }
  found.bytes = all.subspan(static_cast<std::size_t>(offset),
                            static_cast<std::size_t>(length_bytes));
  return found;
}

void ExternalData::add_files_to(std::vector<std::shared_ptr<const void>>& keep_alive) const {
  for (const auto& [location, file] : files_) keep_alive.push_back(file);
}

}  // namespace sardonyx::onnx
