#include "placement/rule_table.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/text.h"

namespace sardonyx {

namespace {

/// Whether a longer text goes first; others go in the order of writing.
bool longest_first(RuleSource source, PatternKind kind) {
  switch (kind) {
    case PatternKind::Text: return true;
    case PatternKind::AnnotationPrefix: return source == RuleSource::Placement;
    default: return false;
  }
}

/// The options of ONNX Runtime take prefixes before exact annotations.
int kind_order(RuleSource source, PatternKind kind) {
  if (source == RuleSource::Annotations) return kind == PatternKind::AnnotationPrefix ? 0 : 1;
  return static_cast<int>(kind);
}

}  // namespace

void RuleTable::rank(const std::vector<Rule>& rules, RuleSource source,
                     FunctionRef<bool(std::uint32_t rule)> takes) {
  has_.assign(rules.size(), false);
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    const Rule& rule = rules[i];
    if (rule.source != source || !takes(i)) continue;
    has_[i] = true;
    if (rule.expansion.empty()) order_.push_back({i, &rule.pattern});
    for (const std::string& text : rule.expansion) order_.push_back({i, &text});
  }
  const auto key = [&](const Ranked& one) {
    const Rule& rule = rules[one.rule];
    const std::size_t length = longest_first(source, rule.kind) ? one.text->size() : 0;
    // A text of its own goes before a range: it is an exception from it.
    return std::tuple(kind_order(source, rule.kind), ~length, length != 0 && rule.has_range(),
                      one.rule);
  };
  std::stable_sort(order_.begin(), order_.end(),
                   [&](const Ranked& a, const Ranked& b) { return key(a) < key(b); });
}

Result<RuleTable> RuleTable::create(const std::vector<Rule>& rules, RuleSource source,
                                    FunctionRef<bool(std::uint32_t rule)> takes) {
  RuleTable made;
  made.rank(rules, source, takes);
  std::vector<TextAutomaton::Text> names;
  std::vector<TextAutomaton::Text> annotations;
  std::vector<std::string> regexes;
  for (std::uint32_t rank = 0; rank < made.order_.size(); ++rank) {
    const Rule& rule = rules[made.order_[rank].rule];
    const std::string& text = *made.order_[rank].text;
    switch (rule.kind) {
      case PatternKind::ExactName: made.exact_names_.emplace(text, rank); break;
      case PatternKind::ExactAnnotation: made.exact_annotations_.emplace(text, rank); break;
      case PatternKind::Everything: made.everything_ = std::min(made.everything_, rank); break;
      case PatternKind::Regex:
        regexes.push_back(text);
        made.regex_ranks_.push_back(rank);
        break;
      case PatternKind::Text:
        names.push_back({text, rank, rule.ends_with_number});
        made.name_ranks_.push_back(rank);
        break;
      case PatternKind::AnnotationPrefix:
        annotations.push_back({text, rank, rule.ends_with_number});
        made.annotation_ranks_.push_back(rank);
        break;
    }
  }
  SDX_ASSIGN(made.names_, TextAutomaton::create(names, TextAutomaton::Where::Anywhere));
  SDX_ASSIGN(made.annotations_, TextAutomaton::create(annotations, TextAutomaton::Where::AtStart));
  auto compiled = RegexSet::create(regexes);
  if (!compiled.ok()) {
    return failure(compiled.status().code(), "{}: {}", option_of(source),
                   compiled.status().message());
  }
  made.regexes_ = std::move(compiled).value();
  return made;
}

std::uint32_t RuleTable::by_name(std::string_view name, Marks& marks) {
  if (name.empty()) return kNoRank;
  std::uint32_t best = names_.search(name, marks.names);
  if (!exact_names_.empty()) {
    if (const auto exact = exact_names_.find(name); exact != exact_names_.end()) {
      marks.others.resize(order_.size());
      marks.others[exact->second] = true;
      best = std::min(best, exact->second);
    }
  }
  if (!regex_ranks_.empty()) {
    marks.regexes.resize(regex_ranks_.size());
    const std::size_t first = regexes_.search(name, marks.regexes);
    if (first != RegexSet::kNoMatch) best = std::min(best, regex_ranks_[first]);
  }
  return best;
}

std::uint32_t RuleTable::by_annotation(std::string_view annotation, Marks& marks) const {
  if (annotation.empty()) return kNoRank;
  std::uint32_t best = annotations_.search(annotation, marks.annotations);
  const auto exact = exact_annotations_.find(annotation);
  if (exact != exact_annotations_.end()) {
    marks.others.resize(order_.size());
    marks.others[exact->second] = true;
    best = std::min(best, exact->second);
  }
  return best;
}

void RuleTable::for_each_found(const Marks& marks,
                               FunctionRef<void(std::uint32_t rule)> visit) const {
  const auto visit_ranks = [&](const std::vector<bool>& found,
                               const std::vector<std::uint32_t>& ranks) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i]) visit(rule_at(ranks[i]));
    }
  };
  visit_ranks(names_.found(marks.names), name_ranks_);
  visit_ranks(annotations_.found(marks.annotations), annotation_ranks_);
  visit_ranks(marks.regexes, regex_ranks_);
  for (std::uint32_t rank = 0; rank < marks.others.size(); ++rank) {
    if (marks.others[rank]) visit(rule_at(rank));
  }
}

}  // namespace sardonyx
