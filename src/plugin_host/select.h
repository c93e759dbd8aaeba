#pragma once

#include <vector>

#include "capi/devices.h"
#include "ir/graph.h"

namespace sardonyx::plugin_host {

/// The devices of a policy, by preference; the built-in provider comes last.
///
/// PREFER_x takes the providers of that kind of device, MAX_PERFORMANCE graphics before neural
/// processors, MAX_EFFICIENCY and MIN_OVERALL_POWER the other way round, DEFAULT the processor's.
/// Of each kind the first provider that was registered is taken.
std::vector<const OrtEpDevice*> select_by_policy(const std::vector<const OrtEpDevice*>& devices,
                                                 OrtExecutionProviderDevicePolicy policy);

/// What the caller's function chooses, which sees the model's metadata.
/// Errors   those of the function; InvalidArgument for devices that were not offered.
Result<std::vector<const OrtEpDevice*>> select_by_delegate(
    const std::vector<const OrtEpDevice*>& devices, const Model* model,
    EpSelectionDelegate delegate, void* state);

}  // namespace sardonyx::plugin_host
