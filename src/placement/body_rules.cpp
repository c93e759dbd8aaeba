#include "placement/body_rules.h"

#include <map>
#include <optional>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

/// Nodes in bodies that a rule takes without effect.
struct Unkept {
  std::uint64_t count = 0;
  std::string example;
  std::string around;
};

class BodyReader {
 public:
  explicit BodyReader(RuleMatcher matcher) : matcher_(std::move(matcher)) {}

  /// `provider` runs the node of the outermost graph that the body belongs to.
  void read(const Graph& body, std::uint32_t inherited, std::uint32_t provider,
            const std::string& around) {
    const auto matches = match_graph(matcher_, body, inherited);
    for (NodeId id = 0; id < body.node_count(); ++id) {
      const Node& node = body.node(id);
      if (node.is_removed) continue;
      const NodeMatch& match = matches[id];
      if (match.provider && *match.provider != provider) note(match.rule, body, node, around);
      for (const Graph* inner : subgraphs(node)) read(*inner, match.inherited, provider, around);
    }
  }

  std::vector<Finding> findings() const {
    std::vector<Finding> found;
    for (const auto& [index, unkept] : unkept_) {
      const Rule& rule = matcher_.rules().rules[index];
      found.push_back(
          {FindingKind::InsideBody, index, rule.is_strict,
           fmt::format("{}: rule '{}' takes {} nodes inside bodies, such as {}: they run where {} "
                       "runs",
                       option_of(rule.source), clip(rule.to_string()), unkept.count,
                       clip(unkept.example), clip(unkept.around))});
    }
    return found;
  }

 private:
  void note(std::uint32_t rule, const Graph& body, const Node& node, const std::string& around) {
    Unkept& unkept = unkept_[rule];
    if (unkept.count++ == 0) unkept = {1, node.describe(body), around};
  }

  RuleMatcher matcher_;
  std::map<std::uint32_t, Unkept> unkept_;
};

}  // namespace

Result<std::vector<Finding>> find_body_rules(const RuleMatcher& matcher, const Graph& graph,
                                             const std::vector<NodeMatch>& matches,
                                             const Assignment& assignment) {
  std::optional<BodyReader> reader;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed || subgraphs(node).empty()) continue;
    if (!reader) {
      SDX_ASSIGN(auto own, RuleMatcher::create(matcher.rules(), matcher.providers()));
      reader.emplace(std::move(own));
    }
    const std::uint32_t inherited = id < matches.size() ? matches[id].inherited : kNoRule;
    for (const Graph* body : subgraphs(node)) {
      reader->read(*body, inherited, assignment[id].provider, node.describe(graph));
    }
  }
  if (!reader) return std::vector<Finding>();
  return reader->findings();
}

}  // namespace sardonyx
