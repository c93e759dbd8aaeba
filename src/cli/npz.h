#pragma once

#include <span>
#include <string>
#include <vector>

#include "cli/outcome.h"

namespace sardonyx::cli {

struct NpzMember {
  /// Without ".npy".
  std::string name;
  std::vector<std::byte> bytes;
};

/// The members of a .npz file (numpy.savez, numpy.savez_compressed), unpacked and checked.
/// Errors   InvalidArgument for what is no zip file or damaged; Unsupported for members that are
///          encrypted, compressed in another way than deflate, or 4 GiB and larger.
Result<std::vector<NpzMember>> read_npz(std::span<const std::byte> bytes);

}  // namespace sardonyx::cli
