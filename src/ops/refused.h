#pragma once

#include <string_view>

namespace sardonyx {

/// Why an operator that other runtimes know is not supported here; "" for every other name. For
/// the message when a model uses one.
std::string_view refusal_reason(std::string_view domain, std::string_view name);

}  // namespace sardonyx
