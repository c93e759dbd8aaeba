#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"

namespace sardonyx {

/// Sets the attribute max_size of the nodes of a compiled model that refer to contexts themselves
/// (main_context = 1), in the file; everything else stays as it is. Other nodes are left alone. The
/// file is replaced whole or not at all.
/// Returns  the number of nodes that were set; 0: the file was not touched.
/// Errors   those of reading and writing a model.
Result<std::size_t> set_max_size(const std::string& path, std::int64_t max_size);

}  // namespace sardonyx
