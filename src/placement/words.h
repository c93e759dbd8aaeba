#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sardonyx {

/// The text without white space around it.
inline std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\r\f\v";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

/// Equal but for the case of ASCII letters.
inline bool same_word(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (lower(a[i]) != lower(b[i])) return false;
  }
  return true;
}

/// The beginning of a text that may be megabytes long, for a message.
inline std::string clip(std::string_view text, std::size_t bytes_max = 160) {
  if (text.size() <= bytes_max) return std::string(text);
  // Not in the middle of a character of UTF-8.
  std::size_t end = bytes_max;
  while (end > bytes_max - 4 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  return std::string(text.substr(0, end)) + "…";
}

}  // namespace sardonyx
