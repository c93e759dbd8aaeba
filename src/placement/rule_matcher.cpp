#include "placement/rule_matcher.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text.h"
#include "placement/rule_table.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kAnnotationsShown = 16;

/// Rules of one option and what was found by them.
struct Table {
  RuleTable rules;
  RuleTable::Marks marks;
};

/// The best rule of a table for a node.
struct Winner {
  std::uint32_t rule = kNoRule;
  /// Set when a pattern in a name won.
  std::uint32_t rank = kNoRank;
  /// The rule by annotation, whether or not it won.
  std::uint32_t by_annotation = kNoRule;
};

/// Calls back with every name of a node that patterns are compared with.
template <typename Visit>
void for_each_text(const NodeNames& names, RuleSource source, const Visit& visit) {
  visit(names.name);
  for (const std::string_view original : names.originals) visit(original);
  visit(names.module_path);
  visit(names.module_name);
  const bool is_nameless =
      names.name.empty() && names.originals.empty() && names.module_path.empty();
  if (is_nameless && source == RuleSource::Placement) visit(names.output);
}

Winner best_of(Table& table, RuleSource source, const std::vector<Rule>& rules,
               const NodeNames& names, std::uint32_t inherited) {
  Winner winner;
  if (table.rules.empty()) return winner;
  std::uint32_t rank = kNoRank;
  for_each_text(names, source, [&](std::string_view text) {
    rank = std::min(rank, table.rules.by_name(text, table.marks));
  });
  const std::uint32_t annotated = table.rules.by_annotation(names.annotation, table.marks);
  if (annotated != kNoRank) {
    winner.by_annotation = table.rules.rule_at(annotated);
  } else if (names.annotation.empty() && inherited != kNoRule &&
             rules[inherited].source == source && table.rules.has(inherited)) {
    winner.by_annotation = inherited;
  }
  if (rank != kNoRank) {
    winner.rule = table.rules.rule_at(rank);
    winner.rank = rank;
  } else if (winner.by_annotation != kNoRule) {
    winner.rule = winner.by_annotation;
  } else if (table.rules.everything() != kNoRank) {
    winner.rule = table.rules.rule_at(table.rules.everything());
  }
  return winner;
}

/// Whether the text stands in the name without a further digit after it; of long names, where each
/// place of a text would be compared, nothing is said.
bool stands_whole(std::string_view name, std::string_view text) {
  constexpr std::size_t kNameBytesMax = 4096;
  if (name.size() > kNameBytesMax) return true;
  for (std::size_t at = name.find(text); at != std::string_view::npos;
       at = name.find(text, at + 1)) {
    const std::size_t end = at + text.size();
    if (end == name.size() || !is_digit(name[end])) return true;
  }
  return false;
}

}  // namespace

struct RuleMatcher::State {
  Rules rules;
  std::vector<ProviderDevices> providers;
  std::vector<RuleOutcome> outcomes;
  MatchTotals totals;
  /// All rules of sardonyx.placement, and those whose devices are there.
  Table placement;
  Table available;
  Table names;
  Table annotations;

  void resolve();
  Status make_tables();
  std::optional<std::uint32_t> provider_by_name(std::string_view name);
  NodeMatch choose(const NodeNames& names, std::uint32_t inherited, Winner& by_name,
                   Table*& by_name_table);
  void note_digits(const NodeNames& names, RuleSource source, const Winner& winner,
                   const RuleTable& table);
  void note_originals(const NodeNames& node, NodeMatch& match);
  void note_annotation(std::string_view annotation);
};

void RuleMatcher::State::resolve() {
  std::map<std::pair<std::string_view, bool>, DesignatorMatch> known;
  outcomes.resize(rules.rules.size());
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    const Rule& rule = rules.rules[i];
    const bool is_own = rule.source == RuleSource::Placement;
    const auto [entry, is_new] = known.try_emplace({rule.device, is_own});
    if (is_new) {
      entry->second = resolve_designator(
          rule.device, providers, is_own ? DesignatorMode::Extended : DesignatorMode::Compatible);
    }
    outcomes[i].provider = entry->second.provider;
    outcomes[i].why_not = entry->second.why_not;
  }
}

Status RuleMatcher::State::make_tables() {
  const auto all = [](std::uint32_t) { return true; };
  const auto with_device = [&](std::uint32_t i) { return outcomes[i].provider.has_value(); };
  SDX_ASSIGN(placement.rules, RuleTable::create(rules.rules, RuleSource::Placement, all));
  SDX_ASSIGN(available.rules, RuleTable::create(rules.rules, RuleSource::Placement, with_device));
  SDX_ASSIGN(names.rules, RuleTable::create(rules.rules, RuleSource::Names, all));
  SDX_ASSIGN(annotations.rules, RuleTable::create(rules.rules, RuleSource::Annotations, all));
  return {};
}

/// Where the rules would send a node that has this name alone.
std::optional<std::uint32_t> RuleMatcher::State::provider_by_name(std::string_view name) {
  std::uint32_t rank = available.rules.by_name(name, available.marks);
  if (rank != kNoRank) return outcomes[available.rules.rule_at(rank)].provider;
  rank = names.rules.by_name(name, names.marks);
  return rank == kNoRank ? std::nullopt : outcomes[names.rules.rule_at(rank)].provider;
}

NodeMatch RuleMatcher::State::choose(const NodeNames& node, std::uint32_t inherited,
                                     Winner& by_name, Table*& by_name_table) {
  NodeMatch match;
  if (node.annotation.empty()) match.inherited = inherited;
  const auto take = [&](Table& table, const Winner& winner) {
    if (winner.by_annotation != kNoRule && match.inherited == kNoRule) {
      match.inherited = winner.by_annotation;
    }
    if (match.rule != kNoRule || winner.rule == kNoRule) return;
    if (!outcomes[winner.rule].provider) {
      if (match.missed == kNoRule) match.missed = winner.rule;
      return;
    }
    match.rule = winner.rule;
    match.provider = outcomes[winner.rule].provider;
    if (winner.rank != kNoRank) {
      by_name = winner;
      by_name_table = &table;
    }
  };
  const auto search = [&](Table& table, RuleSource source) {
    return best_of(table, source, rules.rules, node, inherited);
  };
  const Winner wanted = search(placement, RuleSource::Placement);
  if (wanted.rule != kNoRule && !outcomes[wanted.rule].provider) {
    match.missed = wanted.rule;
    take(available, search(available, RuleSource::Placement));
  } else {
    take(placement, wanted);
  }
  take(names, search(names, RuleSource::Names));
  // In the name option a pattern without device keeps its nodes from shorter ones; they are free.
  take(annotations, search(annotations, RuleSource::Annotations));
  return match;
}

void RuleMatcher::State::note_digits(const NodeNames& node, RuleSource source, const Winner& winner,
                                     const RuleTable& table) {
  const Rule& rule = rules.rules[winner.rule];
  const std::string& text = table.text_at(winner.rank);
  if (rule.kind != PatternKind::Text || rule.ends_with_number || !is_digit(text.back())) return;
  bool is_whole = false;
  std::string_view example;
  for_each_text(node, source, [&](std::string_view name) {
    is_whole = is_whole || stands_whole(name, text);
    if (is_whole || !example.empty()) return;
    if (name.find(text) != std::string_view::npos) example = name;
  });
  if (is_whole) return;
  RuleOutcome& outcome = outcomes[winner.rule];
  if (outcome.before_digit++ == 0) outcome.before_digit_example = clip(example);
}

void RuleMatcher::State::note_originals(const NodeNames& node, NodeMatch& match) {
  std::optional<std::uint32_t> first;
  for (const std::string_view original : node.originals) {
    const auto provider = provider_by_name(original);
    if (!provider) continue;
    match.originals_disagree = match.originals_disagree || (first && *first != *provider);
    if (!first) first = provider;
  }
  if (!match.originals_disagree || totals.disagreeing_count++ != 0) return;
  std::vector<std::string> texts;
  for (const std::string_view original : node.originals) {
    if (texts.size() < 4) texts.push_back(fmt::format("'{}'", clip(original)));
  }
  totals.disagreeing_example = fmt::format("'{}' made of {}", clip(node.name), join(texts, ", "));
}

void RuleMatcher::State::note_annotation(std::string_view annotation) {
  auto& known = totals.annotations;
  if (annotation.empty() || known.size() >= kAnnotationsShown) return;
  std::string text = clip(annotation);
  if (std::find(known.begin(), known.end(), text) == known.end()) known.push_back(std::move(text));
}

RuleMatcher::RuleMatcher(std::unique_ptr<State> state) : state_(std::move(state)) {}
RuleMatcher::RuleMatcher(RuleMatcher&&) noexcept = default;
RuleMatcher& RuleMatcher::operator=(RuleMatcher&&) noexcept = default;
RuleMatcher::~RuleMatcher() = default;

Result<RuleMatcher> RuleMatcher::create(Rules rules, std::vector<ProviderDevices> providers) {
  auto state = std::make_unique<State>();
  state->rules = std::move(rules);
  state->providers = std::move(providers);
  state->resolve();
  SDX_TRY(state->make_tables());
  return RuleMatcher(std::move(state));
}

NodeMatch RuleMatcher::match(const NodeNames& names, std::uint32_t inherited) {
  State& state = *state_;
  Winner by_name;
  Table* table = nullptr;
  NodeMatch match = state.choose(names, inherited, by_name, table);
  ++state.totals.node_count;
  if (match.rule != kNoRule) {
    ++state.totals.ruled_count;
    ++state.outcomes[match.rule].taken;
    if (table != nullptr) {
      state.note_digits(names, state.rules.rules[match.rule].source, by_name, table->rules);
    }
  }
  if (match.missed != kNoRule) ++state.outcomes[match.missed].missed;
  if (names.originals.size() > 1) state.note_originals(names, match);
  state.note_annotation(names.annotation);
  state.totals.gave_up = state.placement.rules.gave_up() || state.available.rules.gave_up();
  return match;
}

const Rules& RuleMatcher::rules() const { return state_->rules; }
const std::vector<ProviderDevices>& RuleMatcher::providers() const { return state_->providers; }
const MatchTotals& RuleMatcher::totals() const { return state_->totals; }

std::optional<std::uint32_t> RuleMatcher::provider_of(std::uint32_t rule) const {
  return rule < state_->outcomes.size() ? state_->outcomes[rule].provider : std::nullopt;
}

std::vector<RuleOutcome> RuleMatcher::outcomes() const {
  std::vector<RuleOutcome> result = state_->outcomes;
  for (const Table* table : {&state_->placement, &state_->names, &state_->annotations}) {
    table->rules.for_each_found(table->marks,
                                [&](std::uint32_t rule) { result[rule].was_found = true; });
  }
  return result;
}

std::vector<NodeMatch> match_graph(RuleMatcher& matcher, const Graph& graph,
                                   std::uint32_t inherited) {
  std::vector<NodeMatch> matches(graph.node_count());
  ModuleNames modules;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    matches[id] = matcher.match(names_of(graph, node, modules), inherited);
    for (const Graph* inner : subgraphs(node)) match_graph(matcher, *inner, matches[id].inherited);
  }
  return matches;
}

namespace {

void visit_names(const Graph& graph, FunctionRef<void(std::string_view)> visit) {
  ModuleNames modules;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    const NodeNames names = names_of(graph, node, modules);
    visit(names.module_path.empty() ? names.name : names.module_path);
    for (const Graph* inner : subgraphs(node)) visit_names(*inner, visit);
  }
}

}  // namespace

std::vector<Finding> findings_of(const RuleMatcher& matcher, const Graph& graph) {
  return matcher.findings([&](RuleMatcher::NameVisitor visit) { visit_names(graph, visit); });
}

}  // namespace sardonyx
