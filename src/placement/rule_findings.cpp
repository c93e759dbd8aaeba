// What there is to tell after matching: mistakes that would otherwise pass in silence.
#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "placement/nearest_names.h"
#include "placement/rule_matcher.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

/// Findings of one kind that are told one by one; the others are counted.
constexpr std::size_t kToldMax = 16;

class Findings {
 public:
  explicit Findings(const RuleMatcher& matcher)
      : matcher_(matcher), rules_(matcher.rules().rules), outcomes_(matcher.outcomes()) {}

  void no_device() {
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      const RuleOutcome& outcome = outcomes_[i];
      if (outcome.provider) continue;
      const Rule& rule = rules_[i];
      if (rule.source == RuleSource::Placement) {
        add(FindingKind::NoDevice, i,
            fmt::format("{}: rule '{}' is skipped: {}",
                        rule.is_planned ? kPlanOption : kPlacementOption, clip(rule.to_string()),
                        outcome.why_not));
        continue;
      }
      add(FindingKind::NoDevice, i,
          fmt::format("Layering rule {} (device='{}', annotation='{}') could not be mapped to any "
                      "available Execution Provider: {}",
                      i - first_of(rule.source), clip(rule.device), clip(rule.pattern),
                      outcome.why_not));
    }
  }

  void matched_nothing(FunctionRef<void(RuleMatcher::NameVisitor)> for_each_name) {
    std::vector<std::uint32_t> told;
    std::vector<std::string> patterns;
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      if (is_found(i)) continue;
      if (told.size() < kToldMax) {
        told.push_back(i);
        const Rule& rule = rules_[i];
        patterns.push_back(rule.expansion.empty() ? rule.pattern : rule.expansion.back());
      }
    }
    if (told.empty()) return;
    NearestNames near(std::move(patterns));
    for_each_name([&](std::string_view name) { near.add(name); });
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      if (is_found(i)) continue;
      const auto place = std::find(told.begin(), told.end(), i);
      const std::string hint = place == told.end() ? ""
                               : is_of_annotations(i)
                                   ? annotations()
                                   : near.hint(static_cast<std::size_t>(place - told.begin()));
      add(FindingKind::MatchedNothing, i,
          fmt::format("{}: pattern '{}' of '{}' matches no node; {}", option_of(rules_[i].source),
                      clip(rules_[i].pattern), clip(rules_[i].device), hint));
    }
  }

  void took_nothing() {
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      const RuleOutcome& outcome = outcomes_[i];
      if (!outcome.was_found || outcome.taken != 0 || outcome.missed != 0 || !outcome.provider) {
        continue;
      }
      add(FindingKind::TookNothing, i,
          fmt::format("{}: other rules take all nodes that pattern '{}' of '{}' matches",
                      option_of(rules_[i].source), clip(rules_[i].pattern),
                      clip(rules_[i].device)));
    }
  }

  void before_digits() {
    for (std::uint32_t i = 0; i < rules_.size(); ++i) {
      const RuleOutcome& outcome = outcomes_[i];
      if (outcome.before_digit == 0) continue;
      add(FindingKind::FollowedByDigit, i,
          fmt::format("{}: pattern '{}' of '{}' takes nodes in which another digit follows ({} of "
                      "{}, as '{}'); end it with the separator that names have",
                      option_of(rules_[i].source), clip(rules_[i].pattern), clip(rules_[i].device),
                      outcome.before_digit, outcome.taken, outcome.before_digit_example));
    }
  }

  void totals() {
    const MatchTotals& totals = matcher_.totals();
    if (totals.disagreeing_count != 0) {
      add(FindingKind::OriginalsDisagree, kNoRule,
          fmt::format("placement rules: {} nodes are made of nodes that belong to different "
                      "providers, as {}; the longest pattern decides",
                      totals.disagreeing_count, totals.disagreeing_example));
    }
    if (totals.gave_up) {
      add(FindingKind::TooCostly, kNoRule,
          fmt::format("{}: the regular expressions are too costly for the names of this model; "
                      "some nodes were not compared",
                      kPlacementOption));
    }
  }

  std::vector<Finding> take() {
    for (std::size_t kind = 0; kind < hidden_.size(); ++kind) {
      if (hidden_[kind] == 0) continue;
      found_.push_back({static_cast<FindingKind>(kind), kNoRule, hidden_error_[kind],
                        fmt::format("placement rules: {} more like this", hidden_[kind])});
    }
    return std::move(found_);
  }

 private:
  static constexpr std::size_t kKinds = static_cast<std::size_t>(FindingKind::TooCostly) + 1;

  void add(FindingKind kind, std::uint32_t rule, std::string text) {
    const auto index = static_cast<std::size_t>(kind);
    const bool is_strict = rule != kNoRule && rules_[rule].is_strict;
    const bool is_error =
        is_strict && (kind == FindingKind::NoDevice || kind == FindingKind::MatchedNothing);
    if (told_[index]++ < kToldMax) {
      found_.push_back({kind, rule, is_error, std::move(text)});
    } else {
      ++hidden_[index];
      hidden_error_[index] = hidden_error_[index] || is_error;
    }
  }

  bool is_found(std::uint32_t i) const {
    const RuleOutcome& outcome = outcomes_[i];
    return outcome.was_found || outcome.taken != 0 || outcome.missed != 0 ||
           rules_[i].kind == PatternKind::Everything || is_of_plan_names(i);
  }

  /// Names of a plan are told about one by one, elsewhere.
  bool is_of_plan_names(std::uint32_t i) const {
    return rules_[i].is_planned && rules_[i].kind == PatternKind::ExactName;
  }

  bool is_of_annotations(std::uint32_t i) const {
    const PatternKind kind = rules_[i].kind;
    return kind == PatternKind::ExactAnnotation || kind == PatternKind::AnnotationPrefix;
  }

  std::string annotations() const {
    const auto& known = matcher_.totals().annotations;
    if (known.empty()) return "no node has an annotation (layer_ann)";
    return fmt::format("annotations are '{}'", join(known, "', '"));
  }

  std::uint32_t first_of(RuleSource source) const {
    const auto found = std::find_if(rules_.begin(), rules_.end(),
                                    [&](const Rule& rule) { return rule.source == source; });
    return static_cast<std::uint32_t>(found - rules_.begin());
  }

  const RuleMatcher& matcher_;
  const std::vector<Rule>& rules_;
  std::vector<RuleOutcome> outcomes_;
  std::vector<Finding> found_;
  std::array<std::size_t, kKinds> told_{};
  std::array<std::size_t, kKinds> hidden_{};
  std::array<bool, kKinds> hidden_error_{};
};

}  // namespace

std::vector<Finding> RuleMatcher::findings(FunctionRef<void(NameVisitor)> for_each_name) const {
  Findings found(*this);
  found.no_device();
  found.matched_nothing(for_each_name);
  found.took_nothing();
  found.before_digits();
  found.totals();
  return found.take();
}

Status RuleMatcher::strict_status(const std::vector<Finding>& findings) {
  std::size_t count = 0;
  const Finding* first = nullptr;
  for (const Finding& finding : findings) {
    if (!finding.is_error) continue;
    if (count++ == 0) first = &finding;
  }
  if (first == nullptr) return {};
  const std::string more = count == 1 ? "" : fmt::format(" (and {} more)", count - 1);
  return failure(Code::InvalidArgument, "a strict placement rule cannot be kept: {}{}", first->text,
                 more);
}

}  // namespace sardonyx
