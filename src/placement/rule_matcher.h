#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/graph.h"
#include "placement/designator.h"
#include "placement/node_names.h"
#include "placement/rules.h"

namespace sardonyx {

inline constexpr std::uint32_t kNoRule = 0xffffffffU;

/// What the rules say about a node.
struct NodeMatch {
  /// Index into Rules::rules, or kNoRule: the node is free.
  std::uint32_t rule = kNoRule;
  /// The rule's provider; none for a free node.
  std::optional<std::uint32_t> provider;
  /// A rule that would have taken the node but has no device here, or kNoRule.
  std::uint32_t missed = kNoRule;
  /// The rule that subgraphs inherit: the one by annotation, the node's own or its parent's.
  std::uint32_t inherited = kNoRule;
  /// The names that it was made from belong to different providers.
  bool originals_disagree = false;
};

/// What one rule did.
struct RuleOutcome {
  std::optional<std::uint32_t> provider;
  /// Without a provider: why.
  std::string why_not;
  /// Nodes that it took, and that it would have taken if its device were there.
  std::uint64_t taken = 0;
  std::uint64_t missed = 0;
  /// Its pattern stands in a name, whoever took the node.
  bool was_found = false;
  /// Nodes that it took by a match that goes on with another digit, and the first one's name.
  std::uint64_t before_digit = 0;
  std::string before_digit_example;
};

/// What was met besides.
struct MatchTotals {
  std::uint64_t node_count = 0;
  std::uint64_t ruled_count = 0;
  std::uint64_t disagreeing_count = 0;
  /// Name and original names of the first node whose originals disagree.
  std::string disagreeing_example;
  /// Some of the annotations.
  std::vector<std::string> annotations;
  /// Regular expressions were too costly for some names.
  bool gave_up = false;
};

enum class FindingKind : std::uint8_t {
  NoDevice,           ///< a rule's device is not in the session
  MatchedNothing,     ///< a pattern stands in no name
  TookNothing,        ///< other rules took all that a pattern matches
  FollowedByDigit,    ///< layers.1 took layers.10
  InsideBody,         ///< nodes of bodies run where the node around them does
  OriginalsDisagree,  ///< a node made of nodes that belong to different providers
  TooCostly,          ///< regular expressions did not look at all names
};

/// Something to tell the user after matching.
struct Finding {
  FindingKind kind;
  /// Index into Rules::rules, or kNoRule.
  std::uint32_t rule = kNoRule;
  /// The rule is strict: this is an error.
  bool is_error = false;
  std::string text;
};

/// Assigns rules to nodes.
///
/// Cost     one pass over a node's names whatever the number of patterns; 64 patterns by 40,000
///          nodes in under 20 ms.
class RuleMatcher {
 public:
  /// Errors   InvalidArgument for rules that together are too large to be compiled.
  static Result<RuleMatcher> create(Rules rules, std::vector<ProviderDevices> providers);
  RuleMatcher(RuleMatcher&&) noexcept;
  RuleMatcher& operator=(RuleMatcher&&) noexcept;
  ~RuleMatcher();

  /// The rule for one node; `inherited` is NodeMatch::inherited of the node around its graph. What
  /// was found is kept for the report. Not from two threads at once.
  NodeMatch match(const NodeNames& names, std::uint32_t inherited = kNoRule);

  const Rules& rules() const;
  const std::vector<ProviderDevices>& providers() const;
  /// The provider of a rule; none when its device is not there.
  std::optional<std::uint32_t> provider_of(std::uint32_t rule) const;

  /// Outcome per rule of all match() calls so far.
  std::vector<RuleOutcome> outcomes() const;
  const MatchTotals& totals() const;
  /// What there is to tell, in the order of the rules. `for_each_name` calls back with the model's
  /// names, from which those near a pattern without match are taken; it may be called again.
  using NameVisitor = FunctionRef<void(std::string_view name)>;
  std::vector<Finding> findings(FunctionRef<void(NameVisitor)> for_each_name) const;
  /// The first finding that is an error, as one; with the number of others.
  static Status strict_status(const std::vector<Finding>& findings);

 private:
  struct State;
  explicit RuleMatcher(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// The rules for the nodes of one graph, by NodeId, by the names that they have now; entries of
/// removed nodes are empty. Subgraphs are counted for the report with the rules that they inherit;
/// their matches are not returned.
std::vector<NodeMatch> match_graph(RuleMatcher& matcher, const Graph& graph,
                                   std::uint32_t inherited = kNoRule);

/// findings() with the names of the graph's nodes and of its subgraphs'.
std::vector<Finding> findings_of(const RuleMatcher& matcher, const Graph& graph);

}  // namespace sardonyx
