#pragma once

#include <string>

#include "capi/handles.h"

namespace sardonyx::capi {

/// Sets the option that a typed configuration key stands for; false for any other key, which is
/// to be stored as it is.
/// Errors   InvalidArgument in ONNX Runtime's words for a value that does not fit.
Result<bool> set_typed_entry(OrtSessionOptions& options, const std::string& key,
                             const std::string& value);

}  // namespace sardonyx::capi
