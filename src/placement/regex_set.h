#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

/// Searches names for regular expressions (RE2's syntax, on bytes), all of them in one pass.
///
/// Cost     linear in the bytes of a name, whatever the expressions.
class RegexSet {
 public:
  static constexpr std::size_t kCountMax = 256;
  static constexpr std::size_t kPatternBytesMax = 16384;

  RegexSet();
  RegexSet(RegexSet&&) noexcept;
  RegexSet& operator=(RegexSet&&) noexcept;
  ~RegexSet();
  /// Errors   InvalidArgument for what is no expression, too many and too large ones.
  static Result<RegexSet> create(const std::vector<std::string>& patterns);

  /// Sets hits[i] for each expression i that the name has a match of; returns the first or
  /// kNoMatch.
  std::size_t search(std::string_view name, std::vector<bool>& hits);
  static constexpr std::size_t kNoMatch = static_cast<std::size_t>(-1);
  /// Names were left out, as the expressions are too costly for a model of this size.
  bool gave_up() const;

 private:
  struct Compiled;
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace sardonyx
