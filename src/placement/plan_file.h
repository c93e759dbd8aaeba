#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "placement/rule_matcher.h"
#include "placement/rules.h"

namespace sardonyx {

/// A plan that was saved, and perhaps edited: which nodes run on which device.
struct PlanFile {
  /// Names that the model lacks, nodes that the plan lacks and missing devices are errors.
  bool is_strict = false;
  /// One rule with all names of each device, and one for each pattern; all Rule::is_planned.
  std::vector<Rule> rules;
  /// All names.
  std::vector<std::string> names;
};

/// Bounds on what is read.
inline constexpr std::size_t kPlanBytesMax = std::size_t{32} << 20;
inline constexpr std::size_t kPlanDevicesMax = 256;

/// Reads {"format": 1, "strict": false, "nodes": [{"name": …, "device": …}, …]}; an entry may have
/// "pattern", as in sardonyx.placement, instead of "name", or "output" for a node without name.
/// What else is there is passed over: a report of placement is a plan, too.
/// Errors   InvalidArgument, saying which entry is wrong and how.
Result<PlanFile> read_plan(std::string_view json);
/// The same from a file.
/// Errors   also those of reading it.
Result<PlanFile> load_plan(const std::string& path);

/// Names of the plan that no node has, and nodes that the plan does not name: errors when it is
/// strict. `matches` are those of match_graph().
std::vector<Finding> plan_findings(const PlanFile& plan, const Graph& graph,
                                   const std::vector<NodeMatch>& matches);

}  // namespace sardonyx
