#include "plugin_host/select.h"

#include <algorithm>

#include "base/text.h"
#include "capi/graph_view.h"
#include "capi/status.h"

namespace sardonyx::plugin_host {

namespace {

/// Devices that a selection may have.
constexpr std::size_t kSelectedMax = 8;

using Policy = OrtExecutionProviderDevicePolicy;

std::vector<OrtHardwareDeviceType> kinds_of(Policy policy) {
  constexpr auto kCpu = OrtHardwareDeviceType_CPU;
  constexpr auto kGpu = OrtHardwareDeviceType_GPU;
  constexpr auto kNpu = OrtHardwareDeviceType_NPU;
  switch (policy) {
    case OrtExecutionProviderDevicePolicy_PREFER_GPU: return {kGpu, kCpu};
    case OrtExecutionProviderDevicePolicy_PREFER_NPU: return {kNpu, kCpu};
    case OrtExecutionProviderDevicePolicy_MAX_PERFORMANCE: return {kGpu, kNpu, kCpu};
    case OrtExecutionProviderDevicePolicy_MAX_EFFICIENCY:
    case OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER: return {kNpu, kGpu, kCpu};
    default: return {kCpu};
  }
}

}  // namespace

std::vector<const OrtEpDevice*> select_by_policy(const std::vector<const OrtEpDevice*>& devices,
                                                 Policy policy) {
  std::vector<const OrtEpDevice*> selected;
  for (const OrtHardwareDeviceType kind : kinds_of(policy)) {
    const OrtEpDevice* first = nullptr;
    for (const OrtEpDevice* device : devices) {
      if (device->device->type != kind) continue;
      // On the processor the built-in provider serves everything: a plugin has to be asked for.
      const bool is_plugin = device->factory != nullptr;
      const bool prefers_cpu = policy == OrtExecutionProviderDevicePolicy_PREFER_CPU;
      if (is_plugin && kind == OrtHardwareDeviceType_CPU && !prefers_cpu) continue;
      if (!is_plugin) continue;
      if (first == nullptr) first = device;
      if (device->factory == first->factory) selected.push_back(device);
    }
    if (first != nullptr) break;
  }
  selected.push_back(devices.front());
  return selected;
}

Result<std::vector<const OrtEpDevice*>> select_by_delegate(
    const std::vector<const OrtEpDevice*>& devices, const Model* model,
    EpSelectionDelegate delegate, void* state) {
  OrtKeyValuePairs metadata;
  if (model != nullptr) {
    for (const auto& [key, value] : model->metadata) metadata.entries.emplace(key, value);
  }
  metadata.refresh();
  OrtKeyValuePairs runtime;
  std::vector<const OrtEpDevice*> offered = devices;
  const OrtEpDevice* selected[kSelectedMax] = {};
  std::size_t count = 0;
  SDX_TRY(capi::take_status(delegate(offered.data(), offered.size(), &metadata, &runtime, selected,
                                     kSelectedMax, &count, state))
              .with("choosing devices by the caller's function"));
  if (count > kSelectedMax || count == 0) {
    return failure(Code::InvalidArgument,
                   "the function that chooses devices should choose 1 to {}, it chose {}",
                   kSelectedMax, count);
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (std::find(devices.begin(), devices.end(), selected[i]) == devices.end()) {
      return failure(Code::InvalidArgument,
                     "the function that chooses devices chose one (number {}) that it was not "
                     "offered",
                     i);
    }
  }
  return std::vector<const OrtEpDevice*>(selected, selected + count);
}

}  // namespace sardonyx::plugin_host
