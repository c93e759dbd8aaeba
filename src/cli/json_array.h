#pragma once

#include <string>

#include "cli/array.h"

namespace sardonyx::cli {

/// The array of a type from nested lists, numbers, texts and booleans; `name` is for messages.
/// Errors   InvalidArgument for lists of uneven lengths and elements that do not fit the type.
Result<Array> array_from_json(const Json& nested, const ElementType& type, const std::string& name);

}  // namespace sardonyx::cli
