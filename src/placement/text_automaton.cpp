#include "placement/text_automaton.h"

#include <algorithm>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kTableEntriesMax = std::size_t{8} << 20;
constexpr std::uint8_t kMetBeforeOther = 1;
constexpr std::uint8_t kMetBeforeDigit = 2;

}  // namespace

Result<TextAutomaton> TextAutomaton::create(std::span<const Text> texts, Where where) {
  TextAutomaton made;
  made.where_ = where;
  std::array<bool, 256> is_used{};
  std::size_t state_count = 1;
  for (const Text& text : texts) {
    state_count += text.text.size();
    for (const char c : text.text) is_used[static_cast<std::uint8_t>(c)] = true;
  }
  // Column 0 is for all other bytes; 256 columns need none for them.
  const auto used = static_cast<std::size_t>(std::count(is_used.begin(), is_used.end(), true));
  std::size_t next_column = used == is_used.size() ? 0 : 1;
  for (std::size_t byte = 0; byte < is_used.size(); ++byte) {
    if (is_used[byte]) made.column_[byte] = static_cast<std::uint8_t>(next_column++);
  }
  made.width_ = std::max<std::size_t>(next_column, 1);
  if (state_count > kTableEntriesMax / made.width_) {
    return failure(Code::InvalidArgument,
                   "placement rules: {} bytes of patterns with {} different characters; at most {} "
                   "can be looked for at once",
                   state_count - 1, used, kTableEntriesMax / made.width_);
  }
  made.table_.assign(made.width_, 0);
  made.ranks_.assign(1, {kNoRank, kNoRank});
  for (const Text& text : texts) {
    const std::uint32_t end = made.add_text(text);
    made.ends_.push_back(end);
    made.whole_numbers_.push_back(text.ends_with_number);
    auto& [other, digit] = made.ranks_[end];
    other = std::min(other, text.rank);
    if (!text.ends_with_number) digit = std::min(digit, text.rank);
  }
  if (where == Where::Anywhere) made.link();
  return made;
}

std::uint32_t TextAutomaton::add_text(const Text& text) {
  std::uint32_t state = 0;
  for (const char c : text.text) {
    const std::size_t edge = state * width_ + column_[static_cast<std::uint8_t>(c)];
    if (table_[edge] == 0) {
      table_[edge] = static_cast<std::uint32_t>(ranks_.size());
      table_.resize(table_.size() + width_, 0);
      ranks_.push_back({kNoRank, kNoRank});
    }
    state = table_[edge];
  }
  return state;
}

/// Completes the table: where a text ends or goes on otherwise, the search continues in the longest
/// beginning of a text that is still possible.
void TextAutomaton::link() {
  fallback_.assign(ranks_.size(), 0);
  order_.reserve(ranks_.size());
  for (std::size_t column = 0; column < width_; ++column) {
    if (table_[column] != 0) order_.push_back(table_[column]);
  }
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t state = order_[i];
    const std::uint32_t fallback = fallback_[state];
    for (std::size_t next = 0; next < 2; ++next) {
      ranks_[state][next] = std::min(ranks_[state][next], ranks_[fallback][next]);
    }
    for (std::size_t column = 0; column < width_; ++column) {
      std::uint32_t& target = table_[state * width_ + column];
      const std::uint32_t other = table_[fallback * width_ + column];
      if (target == 0) {
        target = other;
      } else {
        fallback_[target] = other;
        order_.push_back(target);
      }
    }
  }
}

std::uint32_t TextAutomaton::search(std::string_view name, Visits& visits) const {
  if (empty()) return kNoRank;
  visits.resize(ranks_.size(), 0);
  std::uint32_t best = kNoRank;
  std::uint32_t state = 0;
  const std::size_t size = name.size();
  for (std::size_t i = 0; i < size; ++i) {
    state = table_[state * width_ + column_[static_cast<std::uint8_t>(name[i])]];
    if (state == 0) {
      if (where_ == Where::AtStart) break;
      continue;
    }
    const bool digit_follows = i + 1 < size && is_digit(name[i + 1]);
    visits[state] |= digit_follows ? kMetBeforeDigit : kMetBeforeOther;
    best = std::min(best, ranks_[state][digit_follows ? 1 : 0]);
  }
  return best;
}

std::vector<bool> TextAutomaton::found(const Visits& visits) const {
  Visits met = visits;
  met.resize(ranks_.size(), 0);
  // What ends in a state also ends in all that it falls back to.
  for (std::size_t i = order_.size(); i-- > 0;) met[fallback_[order_[i]]] |= met[order_[i]];
  std::vector<bool> result(ends_.size());
  for (std::size_t i = 0; i < ends_.size(); ++i) {
    const std::uint8_t counts =
        whole_numbers_[i] ? kMetBeforeOther : std::uint8_t{kMetBeforeOther | kMetBeforeDigit};
    result[i] = (met[ends_[i]] & counts) != 0;
  }
  return result;
}

}  // namespace sardonyx
