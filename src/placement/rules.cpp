#include "placement/rules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "placement/placement_grammar.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

/// What an upstream message shows of an entry.
std::string shown(std::string_view entry) { return clip(entry, 1024); }

/// An entry of the options of ONNX Runtime, cut at its first parentheses.
struct Entry {
  std::string_view text;
  std::string_view device;
  std::string_view list;
  std::string_view rest;
};

Result<Entry> cut_entry(std::string_view text) {
  const auto broken = [&](std::string_view what) {
    return failure(Code::InvalidArgument, "Invalid layering config: {} in entry: {}", what,
                   shown(text));
  };
  const std::size_t open = text.find('(');
  if (open == std::string_view::npos) return broken("Missing '('");
  const std::size_t close = text.find(')');
  if (close == std::string_view::npos) return broken("Missing ')'");
  if (close < open) return broken("')' comes before '('");
  Entry entry{text, trim(text.substr(0, open)), text.substr(open + 1, close - open - 1),
              trim(text.substr(close + 1))};
  if (entry.device.empty()) return broken("Empty device name");
  if (entry.device.size() > kDeviceBytesMax) return broken("Device name too long");
  return entry;
}

/// Reads one of the two options of ONNX Runtime.
class LayeringParser {
 public:
  LayeringParser(RuleSource source, Rules& rules) : source_(source), rules_(rules) {}

  Status parse(std::string_view config) {
    for (std::size_t begin = 0; begin <= config.size();) {
      const std::size_t end = std::min(config.find(';', begin), config.size());
      const std::string_view text = trim(config.substr(begin, end - begin));
      if (!text.empty()) SDX_TRY(parse_entry(text));
      begin = end + 1;
    }
    // ONNX Runtime says this last, after all that can be wrong with the entries.
    if (!exact_in_names_.has_value()) return {};
    return failure(Code::InvalidArgument,
                   "Name-based layer assignment does not support the '=' (exact-match) qualifier. "
                   "All patterns are treated as substrings. Remove the '=' prefix from pattern: "
                   "'{}'",
                   shown(*exact_in_names_));
  }

 private:
  Status parse_entry(std::string_view text) {
    SDX_ASSIGN(const Entry entry, cut_entry(text));
    const std::size_t count_before = rules_.rules.size();
    for (std::size_t begin = 0; begin <= entry.list.size();) {
      const std::size_t end = std::min(entry.list.find(',', begin), entry.list.size());
      SDX_TRY(parse_item(entry, trim(entry.list.substr(begin, end - begin))));
      begin = end + 1;
    }
    warn(entry, rules_.rules.size() == count_before);
    return {};
  }

  Status parse_item(const Entry& entry, std::string_view item) {
    const bool is_exact = !item.empty() && item.front() == '=';
    if (is_exact) item = trim(item.substr(1));
    if (item.empty()) return {};
    auto& seen = is_exact ? exact_ : inexact_;
    if (!seen.insert(item).second) {
      return failure(Code::InvalidArgument,
                     "Invalid layering config: Duplicate {} match annotation '{}' found in entry: "
                     "{}",
                     is_exact ? "exact" : "prefix", shown(item), shown(entry.text));
    }
    if (rules_.rules.size() >= kRuleCountMax) {
      return failure(Code::InvalidArgument, "{}: more than {} patterns", option_of(source_),
                     kRuleCountMax);
    }
    if (is_exact && source_ == RuleSource::Names && !exact_in_names_) exact_in_names_ = item;
    Rule rule;
    rule.source = source_;
    rule.kind = source_ == RuleSource::Names ? PatternKind::Text
                : is_exact                   ? PatternKind::ExactAnnotation
                                             : PatternKind::AnnotationPrefix;
    rule.device = entry.device;
    rule.pattern = item;
    rule.expansion = {rule.pattern};
    rules_.rules.push_back(std::move(rule));
    return {};
  }

  void warn(const Entry& entry, bool is_empty) {
    constexpr std::size_t kWarningsMax = 32;
    if (rules_.warnings.size() >= kWarningsMax) return;
    const auto add = [&](std::string what) {
      rules_.warnings.push_back(
          fmt::format("{}: entry '{}': {}", option_of(source_), clip(entry.text), what));
    };
    if (entry.list.find('(') != std::string_view::npos) {
      add(fmt::format("the list ends at the first ')' and is taken as '{}'", clip(entry.list)));
    }
    if (!entry.rest.empty()) {
      add(fmt::format("'{}' after the ')' is ignored; entries are separated by ';'",
                      clip(entry.rest)));
    }
    if (is_empty) add("has no pattern and takes nothing");
  }

  RuleSource source_;
  Rules& rules_;
  std::unordered_set<std::string_view> exact_;
  std::unordered_set<std::string_view> inexact_;
  std::optional<std::string_view> exact_in_names_;
};

std::string quoted(std::string_view text, bool is_regex) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || (c == '\\' && !is_regex)) result += '\\';
    result += c;
  }
  return result + '"';
}

bool needs_quotes(const Rule& rule) {
  const std::string_view text = rule.pattern;
  if (rule.kind == PatternKind::Regex) {
    return text.find_first_of(",();\"") != std::string_view::npos || trim(text) != text;
  }
  // A range cannot be written in quotes.
  if (rule.expansion != std::vector<std::string>{rule.pattern}) return false;
  return text.find_first_of(",();\"[]*") != std::string_view::npos || trim(text) != text ||
         text.find_first_of("=~@") == 0;
}

std::string_view mark_of(PatternKind kind) {
  switch (kind) {
    case PatternKind::ExactName: return "=";
    case PatternKind::Regex: return "~";
    case PatternKind::ExactAnnotation: return "@=";
    case PatternKind::AnnotationPrefix: return "@";
    case PatternKind::Text:
    case PatternKind::Everything: break;
  }
  return "";
}

}  // namespace

std::string_view option_of(RuleSource source) {
  switch (source) {
    case RuleSource::Placement: return kPlacementOption;
    case RuleSource::Names: return kNamesOption;
    case RuleSource::Annotations: break;
  }
  return kAnnotationsOption;
}

std::string Rule::to_string() const {
  if (is_planned && kind == PatternKind::ExactName) {
    return fmt::format("{}({})", device, kPlannedNames);
  }
  if (source != RuleSource::Placement) {
    return fmt::format("{}({}{})", device, kind == PatternKind::ExactAnnotation ? "=" : "",
                       pattern);
  }
  if (kind == PatternKind::Everything) return fmt::format("{}{}(*)", device, is_strict ? "!" : "");
  return fmt::format("{}{}({}{})", device, is_strict ? "!" : "", mark_of(kind),
                     needs_quotes(*this) ? quoted(pattern, kind == PatternKind::Regex) : pattern);
}

Result<Rules> parse_rules(const RuleOptions& options) {
  if (!options.names.empty() && !options.annotations.empty()) {
    return failure(Code::InvalidArgument,
                   "Cannot set both '{}' and '{}'. These options are mutually exclusive. Use "
                   "annotation-based matching for models with explicit layer annotations, or "
                   "name-based matching for models with structured node names.",
                   kAnnotationsOption, kNamesOption);
  }
  Rules rules;
  const struct {
    RuleSource source;
    std::string_view text;
  } inputs[] = {{RuleSource::Placement, options.placement},
                {RuleSource::Names, options.names},
                {RuleSource::Annotations, options.annotations}};
  for (const auto& [source, text] : inputs) {
    if (text.size() > kRuleTextBytesMax) {
      return failure(Code::InvalidArgument, "{}: {} bytes of text; at most {} are taken",
                     option_of(source), text.size(), kRuleTextBytesMax);
    }
    if (source == RuleSource::Placement) {
      SDX_ASSIGN(rules.rules, parse_placement(text));
    } else {
      SDX_TRY(LayeringParser(source, rules).parse(text));
    }
  }
  return rules;
}

}  // namespace sardonyx
