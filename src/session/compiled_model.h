#pragma once

#include <string>

#include "base/status.h"
#include "context/context_node.h"
#include "ep/provider.h"
#include "ir/graph.h"
#include "session/session.h"

namespace sardonyx {

/// Lets providers judge what a compiled model says about them, before anything of it is loaded.
/// Warns of a model that would run better when it is compiled again, and of one that may not find
/// the source that has its weights.
/// Errors   Internal (ORT_FAIL), naming the provider, for a model that it cannot run, or, with
///          session.fail_on_suboptimal_compiled_model = 1, not at its best.
Status check_compiled_model(const Model& model, const Providers& providers,
                            const SessionOptions& options);

/// What to say of a node that stands for a compiled part and that no provider takes.
Status untaken_context_node(const Node& node, const Providers& providers);

}  // namespace sardonyx
