#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "placement/regex_set.h"
#include "placement/rules.h"
#include "placement/text_automaton.h"

namespace sardonyx {

/// Rules of one option, made ready to be looked up. Each of their texts has a rank: the smaller,
/// the sooner its rule takes a node.
class RuleTable {
 public:
  /// What lookups found, whether or not it took a node.
  struct Marks {
    TextAutomaton::Visits names;
    TextAutomaton::Visits annotations;
    /// By rank, for what no automaton looks up.
    std::vector<bool> others;
    std::vector<bool> regexes;
  };

  /// The rules of `source` that `takes` says true for, by index.
  /// Errors   InvalidArgument for patterns that are too large together and bad expressions.
  static Result<RuleTable> create(const std::vector<Rule>& rules, RuleSource source,
                                  FunctionRef<bool(std::uint32_t rule)> takes);

  bool empty() const { return order_.empty(); }
  /// The rank of the best rule for a name or an annotation alone; kNoRank if none.
  std::uint32_t by_name(std::string_view name, Marks& marks);
  std::uint32_t by_annotation(std::string_view annotation, Marks& marks) const;
  /// The rank of the rule that takes all that is left.
  std::uint32_t everything() const { return everything_; }

  std::uint32_t rule_at(std::uint32_t rank) const { return order_[rank].rule; }
  const std::string& text_at(std::uint32_t rank) const { return *order_[rank].text; }
  /// Whether the table has the rule.
  bool has(std::uint32_t rule) const { return rule < has_.size() && has_[rule]; }
  /// Calls back with every rule of which a text was found, maybe repeatedly.
  void for_each_found(const Marks& marks, FunctionRef<void(std::uint32_t rule)> visit) const;
  bool gave_up() const { return regexes_.gave_up(); }

 private:
  struct Ranked {
    std::uint32_t rule = 0;
    const std::string* text = nullptr;
  };
  void rank(const std::vector<Rule>& rules, RuleSource source,
            FunctionRef<bool(std::uint32_t rule)> takes);

  std::vector<Ranked> order_;
  std::vector<bool> has_;
  TextAutomaton names_;
  TextAutomaton annotations_;
  /// Ranks in the order of the automata's texts, and of the expressions.
  std::vector<std::uint32_t> name_ranks_;
  std::vector<std::uint32_t> annotation_ranks_;
  std::vector<std::uint32_t> regex_ranks_;
  std::unordered_map<std::string_view, std::uint32_t> exact_names_;
  std::unordered_map<std::string_view, std::uint32_t> exact_annotations_;
  RegexSet regexes_;
  std::uint32_t everything_ = kNoRank;
};

}  // namespace sardonyx
