#include "session/mapped_files.h"

#include "ep/device.h"

namespace sardonyx {

Result<MappedFiles> whole_files(std::span<const std::shared_ptr<const void>> objects) {
  MappedFiles files = MappedFile::among(objects);
  for (const auto& file : files) {
    if (file->is_cut()) return cut_file(*file);
  }
  return files;
}

Status check_undamaged(const MappedFiles& files, std::span<const Datum> feeds) {
  if (!FaultGuard::any_damaged()) return {};
  for (const auto& file : files) {
    if (file->is_damaged()) return cut_file(*file);
  }
  for (const Datum& feed : feeds) {
    const Tensor* tensor = feed.tensor();
    if (tensor == nullptr || place_of(*tensor) != nullptr) continue;
    const auto file = MappedFile::containing(tensor->data());
    if (file != nullptr && file->is_damaged()) return cut_file(*file);
  }
  return {};
}

}  // namespace sardonyx
