#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace sardonyx {

inline constexpr std::uint32_t kNoRank = 0xffffffffU;

/// Finds many texts inside another one in one pass over it, whatever their number.
///
/// Source   A. Aho, M. Corasick: Efficient string matching (1975), as a complete table.
class TextAutomaton {
 public:
  struct Text {
    /// Not empty.
    std::string_view text;
    /// Of several texts that are found, the one of the smallest rank counts.
    std::uint32_t rank = 0;
    /// No digit may follow.
    bool ends_with_number = false;
  };
  enum class Where : std::uint8_t { Anywhere, AtStart };
  /// What was met in all searches so far: one entry per state.
  using Visits = std::vector<std::uint8_t>;

  TextAutomaton() = default;
  /// Errors   InvalidArgument for texts that need a table of more than 32 MiB.
  static Result<TextAutomaton> create(std::span<const Text> texts, Where where);

  bool empty() const { return ranks_.size() <= 1; }
  /// The smallest rank of the texts in `name`, or kNoRank. `visits` grows as needed.
  std::uint32_t search(std::string_view name, Visits& visits) const;
  /// Whether each of the texts that the automaton was made of was found in any search.
  std::vector<bool> found(const Visits& visits) const;

 private:
  std::uint32_t add_text(const Text& text);
  void link();

  Where where_ = Where::Anywhere;
  /// Byte to column; bytes that no text has share column 0.
  std::array<std::uint8_t, 256> column_{};
  std::size_t width_ = 1;
  /// [state][column]; 0 is the state of the start.
  std::vector<std::uint32_t> table_;
  /// Per state the smallest rank of what ends there: when no digit follows, and when one does.
  std::vector<std::array<std::uint32_t, 2>> ranks_;
  /// Per state the longest other one that ends the same way; states in order of length.
  std::vector<std::uint32_t> fallback_;
  std::vector<std::uint32_t> order_;
  /// Per text its last state.
  std::vector<std::uint32_t> ends_;
  std::vector<bool> whole_numbers_;
};

}  // namespace sardonyx
