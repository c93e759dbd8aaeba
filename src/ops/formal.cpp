#include "ops/formal.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace sardonyx {

namespace {

constexpr FormalRow kRows[] = {
#include "ops/formal_rows.inc"
};

/// Operators in a layout of their own are those of the domain that they were taken from.
constexpr std::string_view kChannelsLast = "com.ms.internal.nhwc";

const FormalRow* find_in(std::string_view domain, const Node& node) {
  const FormalRow* found = nullptr;
  for (const FormalRow& row : kRows) {
    if (row.domain == domain && row.name == node.op_type && row.since <= node.opset) found = &row;
  }
  return found;
}

/// Cuts the first word off a text.
std::string_view next_word(std::string_view& text, char separator = ' ') {
  const std::size_t end = std::min(text.find(separator), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(text.size(), end + 1));
  return word;
}

template <typename T>
T number(std::string_view text) {
  T value{};
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

template <typename T, typename Read>
std::vector<T> list(std::string_view text, Read read) {
  std::vector<T> values;
  while (!text.empty()) values.push_back(read(next_word(text, ',')));
  return values;
}

Attribute parse_value(std::string_view kind, std::string_view text) {
  if (kind == "i") return number<std::int64_t>(text);
  if (kind == "f") return number<float>(text);
  if (kind == "is") return list<std::int64_t>(text, number<std::int64_t>);
  if (kind == "fs") return list<float>(text, number<float>);
  const auto copy = [](std::string_view word) { return std::string(word); };
  if (kind == "ss") return list<std::string>(text, copy);
  return std::string(text);
}

}  // namespace

const FormalRow* find_formal_row(const Node& node) {
  if (node.domain != kChannelsLast) return find_in(node.domain, node);
  const FormalRow* row = find_in("", node);
  return row != nullptr ? row : find_in("com.microsoft", node);
}

std::string_view type_parameter(const Node& node, bool is_output, std::size_t index) {
  const FormalRow* row = find_formal_row(node);
  if (row == nullptr) return {};
  const std::size_t middle = row->types.find('>');
  std::string_view side = is_output ? row->types.substr(middle + 1) : row->types.substr(0, middle);
  std::string_view word;
  for (std::size_t i = 0; i <= index && !side.empty(); ++i) {
    word = next_word(side);
    if (word.ends_with('*')) {
      word.remove_suffix(1);
      break;
    }
    if (i == index) break;
    if (side.empty()) return {};
  }
  return word == "-" ? std::string_view() : word;
}

Attributes attributes_with_defaults(const Node& node) {
  Attributes attributes = node.attributes;
  const FormalRow* row = find_formal_row(node);
  if (row == nullptr) return attributes;
  std::string_view rest = row->defaults;
  while (!rest.empty()) {
    std::string_view word = next_word(rest);
    const std::string_view name = next_word(word, ':');
    const std::string_view kind = next_word(word, '=');
    if (!attributes.has(name)) attributes.set(std::string(name), parse_value(kind, word));
  }
  return attributes;
}

}  // namespace sardonyx
