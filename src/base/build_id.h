#pragma once

#include <string_view>

namespace sardonyx {

/// Version and a hash of the sources that compiled models depend on, "0.1.0-9f2c...": artefacts of
/// one build are not for another.
std::string_view build_id();

/// The instruction set that weights are packed for in this process, "avx512+amx".
std::string_view packing_isa();

}  // namespace sardonyx
