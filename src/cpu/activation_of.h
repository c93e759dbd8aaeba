#pragma once

#include <optional>

#include "ir/attribute.h"
#include "kernels/activation.h"

namespace sardonyx {

/// The kernels' activation for the attributes `activation` and `activation_params` of fused
/// operators; nothing when no kernel has it.
std::optional<kernels::Activation> activation_of(const Attributes& attributes);

}  // namespace sardonyx
