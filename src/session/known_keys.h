#pragma once

#include <string>
#include <string_view>

namespace sardonyx {

/// The session configuration key that `key` is probably a misspelling of: one that programs written
/// for ONNX Runtime use, whether it has an effect here or not, at most three letters away, or the
/// same without its first word ("disable_prepacking"). "" for a key that is known or like none.
std::string intended_session_key(std::string_view key);

/// Whether the key's values are "0" and "1".
bool is_switch(std::string_view key);

}  // namespace sardonyx
