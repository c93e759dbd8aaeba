#pragma once

#include <memory>

#include "ir/datum.h"

namespace sardonyx {

/// A dictionary of its own memory, in the order of its keys; of equal keys the first one counts.
/// Shapes   keys and values have the same number of elements.
/// Errors   OutOfMemory; InvalidArgument when the keys are not int64 or string.
Result<std::shared_ptr<const Map>> make_map(const Tensor& keys, const Tensor& values);

}  // namespace sardonyx
