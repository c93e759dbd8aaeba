#include "placement/placement_grammar.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kExpansionBytesMax = std::size_t{4} << 20;
constexpr std::size_t kDigitsMax = 9;

/// A piece of a pattern: text, or the numbers of a range.
struct Piece {
  std::string text;
  /// As they are spelled.
  std::vector<std::string> numbers;
};

class PlacementParser {
 public:
  explicit PlacementParser(std::string_view text) : text_(text) {}

  Result<std::vector<Rule>> parse() {
    while (true) {
      skip_space();
      if (at_end()) break;
      if (text_[at_] == ';') {
        ++at_;
        continue;
      }
      SDX_TRY(parse_entry());
    }
    if (is_strict_) {
      for (Rule& rule : rules_) rule.is_strict = true;
    }
    return std::move(rules_);
  }

 private:
  bool at_end() const { return at_ >= text_.size(); }
  bool at(char c) const { return !at_end() && text_[at_] == c; }
  void skip_space() {
    while (!at_end() && trim(text_.substr(at_, 1)).empty()) ++at_;
  }
  /// "sardonyx.placement: …, at byte 12: 'gpu:0(a(b'".
  template <typename... Args>
  Status broken(std::size_t place, fmt::format_string<Args...> format, Args&&... args) const {
    return failure(Code::InvalidArgument, "{}: {}; at byte {}: '{}'", kPlacementOption,
                   fmt::vformat(format, fmt::make_format_args(args...)), place,
                   clip(text_.substr(place), 48));
  }

  Status parse_entry() {
    const std::size_t begin = at_;
    at_ = std::min(text_.find_first_of("();", at_), text_.size());
    std::string_view device = trim(text_.substr(begin, at_ - begin));
    if (!at('(')) {
      if (same_word(device, "strict") && !at(')')) {
        is_strict_ = true;
        return {};
      }
      return broken(begin, "expected a device and '(' with patterns");
    }
    ++at_;
    entry_is_strict_ = !device.empty() && device.back() == '!';
    if (entry_is_strict_) device = trim(device.substr(0, device.size() - 1));
    if (device.empty()) return broken(begin, "expected a device before '('");
    if (device.size() > kDeviceBytesMax)
      return broken(begin, "a device of {} bytes", device.size());
    if (same_word(device, "strict")) {
      return broken(begin, "'strict' is a word of its own: write \"strict; gpu(…)\"");
    }
    device_ = device;
    const std::size_t count_before = rules_.size();
    SDX_TRY(parse_list(begin));
    if (rules_.size() == count_before) {
      return broken(begin, "'{}' has no pattern; '*' takes all nodes", clip(device));
    }
    skip_space();
    if (!at_end() && !at(';')) return broken(at_, "expected ';' or the end after ')'");
    return {};
  }

  Status parse_list(std::size_t entry) {
    while (true) {
      skip_space();
      if (at_end() || at(';')) return broken(entry, "missing ')'");
      if (at(')')) break;
      if (at(',')) {
        ++at_;
        continue;
      }
      SDX_TRY(parse_item());
      skip_space();
      if (!at_end() && !at(',') && !at(')') && !at(';')) {
        return broken(at_, "expected ',' or ')' after a pattern{}",
                      at('(') ? "; one with parentheses has to stand in quotes" : "");
      }
    }
    ++at_;
    return {};
  }

  Status parse_item() {
    const std::size_t begin = at_;
    Rule rule;
    rule.is_strict = entry_is_strict_;
    rule.device = device_;
    rule.kind = parse_mark();
    skip_space();
    bool is_quoted = at('"');
    if (is_quoted) {
      SDX_ASSIGN(rule.pattern, parse_quoted(rule.kind == PatternKind::Regex));
    } else {
      SDX_ASSIGN(rule.pattern, parse_bare(rule.kind == PatternKind::Regex));
    }
    if (rule.pattern.empty()) return broken(begin, "a pattern is empty");
    if (rule.kind == PatternKind::Text && !is_quoted && rule.pattern == "*") {
      rule.kind = PatternKind::Everything;
    } else if (rule.kind != PatternKind::Regex) {
      SDX_TRY(expand(rule, is_quoted, begin));
    }
    return add(std::move(rule), begin);
  }

  PatternKind parse_mark() {
    if (at('~')) return ++at_, PatternKind::Regex;
    if (at('=')) return ++at_, PatternKind::ExactName;
    if (!at('@')) return PatternKind::Text;
    ++at_;
    if (at('=')) return ++at_, PatternKind::ExactAnnotation;
    return PatternKind::AnnotationPrefix;
  }

  Result<std::string> parse_quoted(bool is_regex) {
    const std::size_t begin = at_++;
    std::string result;
    for (; !at_end() && !at('"'); ++at_) {
      if (at('\\') && at_ + 1 < text_.size()) {
        const char next = text_[at_ + 1];
        // A regular expression keeps its own escapes.
        if (next == '"' || (next == '\\' && !is_regex)) {
          ++at_;
        } else if (is_regex) {
          result += text_[at_++];
        } else {
          return broken(at_, "only \\\" and \\\\ are escapes in quotes");
        }
      }
      result += text_[at_];
    }
    if (at_end()) return broken(begin, "missing '\"'");
    ++at_;
    return result;
  }

  Result<std::string> parse_bare(bool is_regex) {
    const std::size_t begin = at_;
    bool in_brackets = false;
    for (; !at_end(); ++at_) {
      const char c = text_[at_];
      if (c == '[') in_brackets = true;
      if (c == ']') in_brackets = false;
      if (c == '(' || c == ')' || c == ';' || c == '"') break;
      if (c == ',' && (!in_brackets || is_regex)) break;
    }
    return std::string(trim(text_.substr(begin, at_ - begin)));
  }

  Status expand(Rule& rule, bool is_quoted, std::size_t place) {
    if (is_quoted) {
      rule.expansion = {rule.pattern};
      return note_expansion(rule, place);
    }
    if (rule.pattern.find('*') != std::string::npos) {
      return broken(place,
                    "'*' inside a pattern means nothing: patterns match anywhere in a name; "
                    "~ begins a regular expression, quotes make it a letter");
    }
    std::vector<Piece> pieces;
    SDX_TRY(split(rule, pieces, place));
    rule.expansion = {""};
    for (const Piece& piece : pieces) {
      const std::size_t count = std::max<std::size_t>(piece.numbers.size(), 1);
      const std::size_t length =
          rule.expansion.back().size() + std::max<std::size_t>(piece.text.size(), kDigitsMax);
      if (count > kRuleCountMax / rule.expansion.size() ||
          count * rule.expansion.size() > kExpansionBytesMax / length) {
        return broken(place, "the ranges stand for too many texts; {} of {} bytes in all are taken",
                      kRuleCountMax, kExpansionBytesMax);
      }
      std::vector<std::string> longer;
      longer.reserve(rule.expansion.size() * count);
      for (const std::string& text : rule.expansion) {
        if (piece.numbers.empty()) longer.push_back(text + piece.text);
        for (const std::string& number : piece.numbers) longer.push_back(text + number);
      }
      rule.expansion = std::move(longer);
    }
    rule.ends_with_number = !pieces.back().numbers.empty();
    return note_expansion(rule, place);
  }

  Status note_expansion(const Rule& rule, std::size_t place) {
    text_count_ += rule.expansion.size();
    for (const std::string& text : rule.expansion) text_bytes_ += text.size();
    if (text_count_ > kRuleCountMax || text_bytes_ > kExpansionBytesMax) {
      return broken(place, "the patterns stand for more than {} texts or {} bytes", kRuleCountMax,
                    kExpansionBytesMax);
    }
    return {};
  }

  /// Cuts a bare pattern at its ranges.
  Status split(const Rule& rule, std::vector<Piece>& pieces, std::size_t place) const {
    const std::string_view text = rule.pattern;
    std::size_t number_count = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t bracket = std::min(text.find_first_of("[]", begin), text.size());
      if (bracket > begin) pieces.push_back({std::string(text.substr(begin, bracket - begin)), {}});
      if (bracket == text.size()) break;
      const std::size_t close = text.find(']', bracket);
      if (text[bracket] == ']' || close == std::string_view::npos) {
        return broken(place, "'[' and ']' enclose a range as [0-15]; in quotes they are letters");
      }
      const bool is_beside_number =
          (bracket > 0 && (is_digit(text[bracket - 1]) || text[bracket - 1] == ']')) ||
          (close + 1 < text.size() && is_digit(text[close + 1]));
      if (is_beside_number || (bracket == 0 && rule.kind == PatternKind::Text)) {
        return broken(place,
                      "a range stands for whole numbers: it needs text before it, and no "
                      "digit or other range beside it");
      }
      Piece piece;
      SDX_TRY(read_range(text.substr(bracket + 1, close - bracket - 1), piece.numbers, place));
      number_count += piece.numbers.size();
      if (number_count > kRuleCountMax) {
        return broken(place, "the ranges have more than {} numbers", kRuleCountMax);
      }
      pieces.push_back(std::move(piece));
      begin = close + 1;
    }
    return {};
  }

  /// "0-15", "0,2,4-7".
  Status read_range(std::string_view range, std::vector<std::string>& numbers,
                    std::size_t place) const {
    for (std::size_t begin = 0; begin <= range.size();) {
      const std::size_t end = std::min(range.find(',', begin), range.size());
      const std::string_view part = trim(range.substr(begin, end - begin));
      const std::size_t dash = part.find('-');
      const std::string_view low = trim(part.substr(0, dash));
      const std::string_view high =
          dash == std::string_view::npos ? low : trim(part.substr(dash + 1));
      std::uint32_t first = 0;
      std::uint32_t last = 0;
      if (!read_number(low, first) || !read_number(high, last) || last < first) {
        return broken(place, "expected a range as [0-15] or [0,2,4-7], found '[{}]'", clip(range));
      }
      if (last - first >= kRuleCountMax - numbers.size()) {
        return broken(place, "the range has more than {} numbers", kRuleCountMax);
      }
      const bool is_padded = low.size() > 1 && low.front() == '0';
      if (is_padded && low.size() != high.size()) {
        return broken(place, "both ends of a range with leading zeros need as many digits: '[{}]'",
                      clip(range));
      }
      for (std::uint32_t number = first; number <= last; ++number) {
        numbers.push_back(is_padded ? fmt::format("{:0{}}", number, low.size())
                                    : std::to_string(number));
      }
      begin = end + 1;
    }
    return {};
  }

  static bool read_number(std::string_view text, std::uint32_t& number) {
    if (text.empty() || text.size() > kDigitsMax) return false;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc() && end == text.data() + text.size();
  }

  Status add(Rule rule, std::size_t place) {
    if (rules_.size() >= kRuleCountMax) {
      return broken(place, "more than {} patterns", kRuleCountMax);
    }
    // A text of its own may be an exception from a range; both of one form are a mistake.
    std::string key{static_cast<char>('0' + static_cast<int>(rule.kind)),
                    rule.has_range() ? 'r' : 't'};
    const std::size_t stem = key.size();
    std::vector<std::string> whole;
    if (rule.expansion.empty()) whole.push_back(rule.pattern);
    for (const std::string& text : rule.expansion.empty() ? whole : rule.expansion) {
      key.resize(stem);
      key += text;
      const auto [former, is_new] = seen_.emplace(key, rules_.size());
      if (is_new) continue;
      const std::string own = rule.to_string();
      const std::string other =
          former->second == rules_.size() ? own : rules_[former->second].to_string();
      return broken(place, "'{}' stands in both {} and {}", clip(text), clip(other), clip(own));
    }
    rules_.push_back(std::move(rule));
    return {};
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool is_strict_ = false;
  bool entry_is_strict_ = false;
  std::string device_;
  std::vector<Rule> rules_;
  std::size_t text_count_ = 0;
  std::size_t text_bytes_ = 0;
  std::unordered_map<std::string, std::size_t> seen_;
};

}  // namespace

Result<std::vector<Rule>> parse_placement(std::string_view text) {
  return PlacementParser(text).parse();
}

}  // namespace sardonyx
