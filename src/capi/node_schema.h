#pragma once

#include <cstddef>
#include <string_view>

#include "ir/graph.h"

namespace sardonyx::capi {

/// Version of its operator set in which the operator of a node began to mean what it means there.
int since_version(const Node& node);

/// What the standard calls the type of an input or output, "T1"; "" where it is fixed.
std::string_view operand_type_name(const Node& node, bool is_output, std::size_t index);

}  // namespace sardonyx::capi
