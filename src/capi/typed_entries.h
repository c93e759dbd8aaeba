#pragma once

#include <string>
#include <string_view>

#include "capi/handles.h"

namespace sardonyx::capi {

/// Errors   InvalidArgument in ONNX Runtime's words for a key or value that is too long, and for an
///          empty key.
Status check_entry(std::string_view key, std::string_view value);

/// Sets the option that a typed configuration key stands for; false for any other key, which is
/// to be stored as it is.
/// Errors   InvalidArgument in ONNX Runtime's words for a value that does not fit.
Result<bool> set_typed_entry(OrtSessionOptions& options, const std::string& key,
                             const std::string& value);

}  // namespace sardonyx::capi
