#pragma once

#include <span>
#include <string>

#include "cli/array.h"

namespace sardonyx::cli {

/// The array in the bytes of a .npy file, of either element order. `wanted` (may be null) tells
/// what raw bytes ("V1", "V2": bfloat16, float8) are, and packs integers of 4 and 2 bits, which
/// numpy keeps in bytes.
/// Errors   InvalidArgument saying what is wrong; Unsupported for objects, structures, dates and
///          big-endian elements.
Result<Array> parse_npy(std::span<const std::byte> bytes, const ElementType* wanted);

/// The bytes of a .npy file, format 1.0 (2.0 when the header is long). Elements that numpy lacks
/// are raw bytes (bfloat16, float8) or one element a byte (4 and 2 bits).
Result<std::string> format_npy(const Array& array);

}  // namespace sardonyx::cli
