#pragma once

#include <string>
#include <vector>

#include "placement/parts.h"
#include "placement/rule_matcher.h"

namespace sardonyx {

/// Nodes in bodies of If, Loop and Scan run where the node around them does. What is found here are
/// rules that ask otherwise, each once. `matches` and `assignment` are those of the graph, by
/// NodeId.
/// Errors   those of RuleMatcher::create().
Result<std::vector<Finding>> find_body_rules(const RuleMatcher& matcher, const Graph& graph,
                                             const std::vector<NodeMatch>& matches,
                                             const Assignment& assignment);

}  // namespace sardonyx
