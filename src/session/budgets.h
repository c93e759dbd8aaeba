#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"
#include "placement/budget.h"
#include "placement/rule_matcher.h"
#include "session/place.h"

namespace sardonyx {

/// Where budgets put a node.
struct BudgetedNode {
  /// Index into the session's providers; 0xffffffff for a node that budgets do not speak of.
  std::uint32_t provider = 0xffffffffU;
  /// Why not where it was wanted; "" when it is there.
  std::string why_not;
};

/// The budgets that a session's options ask for, with what they may hold.
/// Errors   InvalidArgument and Internal for options that cannot be read, naming them.
Result<std::vector<BudgetSettings>> budgets_of(const SessionOptions& options);

/// Spreads the nodes of a model over the session's providers so that each has no more than it may;
/// by NodeId. Devices that are not there are warned about. Empty without budgets.
/// Errors   InvalidArgument, naming the first node that no device has room for; those of a file of
///          statistics; those of the providers.
Result<std::vector<BudgetedNode>> spread_by_budget(PlacedModel& placed,
                                                   const std::vector<BudgetSettings>& budgets,
                                                   const std::vector<NodeMatch>& matches);

}  // namespace sardonyx
