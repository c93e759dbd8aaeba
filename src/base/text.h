#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// A failed Status whose message is formatted as by fmt::format.
template <typename... Args>
Status failure(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return Status(code, fmt::vformat(format, fmt::make_format_args(args...)));
}

/// The parts with `separator` between them.
std::string join(const std::vector<std::string>& parts, std::string_view separator);

/// The candidate nearest to `word` by edit distance, or "" when none is near enough to be a
/// misspelling (more than a third of the letters differ).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace sardonyx
