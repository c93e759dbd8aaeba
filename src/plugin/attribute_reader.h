#pragma once

#include "ir/attribute.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

/// The attributes of a node of the host, but for its subgraphs.
/// Errors   Unsupported for a kind of attribute that the interface does not show, naming it.
Status read_attributes(const Host& host, const OrtNode& node, Attributes& attributes);

}  // namespace sardonyx::plugin
