#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/mapped_file.h"
#include "ir/datum.h"

namespace sardonyx {

/// Files that a session reads while it runs.
using MappedFiles = std::vector<std::shared_ptr<const MappedFile>>;

/// Those of the objects that are mapped files.
/// Errors   InvalidModel for one that was cut short since it was opened.
Result<MappedFiles> whole_files(std::span<const std::shared_ptr<const void>> objects);

/// After a run: whether it may have read what a file had lost, one of the session's or one that a
/// feed lies in. One load when no file of the process is damaged.
/// Errors   InvalidModel, naming the file.
Status check_undamaged(const MappedFiles& files, std::span<const Datum> feeds);

}  // namespace sardonyx
