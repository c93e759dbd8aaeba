#include "plugin_host/weightless.h"

#include <optional>

#include "base/log.h"
#include "base/text.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"

namespace sardonyx::plugin_host {

namespace {

constexpr const char* kModesKey = "weightless_supported_modes";
constexpr const char* kSupportKey = "weightless_support";
constexpr const char* kProposedKey = "WeightlessSupport";

struct Row {
  std::string_view text;
  WeightlessSupport support;
};
/// In the order of OrtWeightlessSupport.
constexpr Row kRows[] = {{"none", {}},
                         {"external_only", {true, false}},
                         {"all", {false, true}},
                         {"all_or_external_only", {true, true}}};

std::optional<WeightlessSupport> parse(std::string_view text) {
  for (const Row& row : kRows) {
    if (row.text == text) return row.support;
  }
  return std::nullopt;
}

std::string_view mode_text(Weightless mode) { return kRows[static_cast<std::size_t>(mode)].text; }

std::string_view type_text(OrtHardwareDeviceType type) {
  switch (type) {
    case OrtHardwareDeviceType_GPU: return "GPU";
    case OrtHardwareDeviceType_NPU: return "NPU";
    default: return "CPU";
  }
}

std::string describe(const OrtHardwareDevice& device) {
  return fmt::format("OrtHardwareDevice{{type={}, vendor_id={}, device_id={}, vendor=\"{}\"}}",
                     type_text(device.type), device.vendor_id, device.device_id, device.vendor);
}

/// "EP metadata 'weightless_support' = none", or that there is none.
std::string describe(const WeightlessMetadata& metadata, const OrtEpDevice& device) {
  if (metadata.key.empty()) return "no weightless EP metadata";
  return fmt::format("EP metadata '{}' = {}", metadata.key,
                     device.metadata.entries.at(metadata.key));
}

/// What may be granted of what a provider supports.
std::optional<Weightless> granted(WeightlessSupport support, const WeightlessRequest& request) {
  if (support.has(request.mode)) return request.mode;
  if (request.takes_less && support.external_only) return Weightless::ExternalOnly;
  if (request.is_optional) return Weightless::None;
  return std::nullopt;
}

/// What the entry says.
int entry_value(const WeightlessRequest& request) {
  return request.takes_less || request.is_optional ? 1 : static_cast<int>(request.mode);
}

Status refusal(std::string_view ep_name, WeightlessSupport support,
               const WeightlessRequest& request) {
  return failure(
      capi::kProviderFailed,
      "Weightless mode requested ({}={}) but EP '{}' does not support it on this device. "
      "Supported weightless modes: '{}'.",
      request.entry, entry_value(request), ep_name, weightless_text(support));
}

}  // namespace

std::string_view weightless_text(WeightlessSupport support) {
  for (const Row& row : kRows) {
    if (row.support == support) return row.text;
  }
  return "none";
}

WeightlessMetadata weightless_metadata(const OrtEpDevice& device) {
  for (const char* key : {kModesKey, kSupportKey, kProposedKey}) {
    const auto found = device.metadata.entries.find(key);
    if (found == device.metadata.entries.end()) continue;
    // Words of a later version say nothing to this one.
    return {parse(found->second).value_or(WeightlessSupport{}), key, key == kProposedKey};
  }
  return {};
}

Status check_weightless_metadata(std::string_view ep_name,
                                 const std::vector<const OrtEpDevice*>& devices,
                                 const WeightlessRequest& request) {
  if (request.mode == Weightless::None || request.takes_less || request.is_optional) return {};
  for (const OrtEpDevice* device : devices) {
    const WeightlessMetadata metadata = weightless_metadata(*device);
    if (metadata.support.has(request.mode)) continue;
    return failure(capi::kProviderFailed,
                   "Weightless mode '{}' requested ({}={}) but EP '{}' does not support it on {} "
                   "({}).",
                   mode_text(request.mode), request.entry, static_cast<int>(request.mode), ep_name,
                   describe(*device->device), describe(metadata, *device));
  }
  return {};
}

Result<WeightlessGrant> ask_weightless(const std::string& library, const OrtEp& ep,
                                       std::string_view ep_name,
                                       const std::vector<const OrtEpDevice*>& devices,
                                       const WeightlessRequest& request) {
  WeightlessGrant grant;
  if (request.mode == Weightless::None) return grant;
  const WeightlessMetadata metadata = weightless_metadata(*devices.front());
  constexpr std::uint32_t kSince = 29;
  if (ep.ort_version_supported < kSince) {
    log(Severity::Info,
        "EP '{}' was compiled with API version {}, which predates GetWeightlessSupport (version "
        "{}): whether it is weightless cannot be verified",
        ep_name, ep.ort_version_supported, kSince);
    grant.mode = request.mode;
    return grant;
  }
  if (ep.GetWeightlessSupport == nullptr) {
    if (request.is_optional) return grant;
    return failure(Code::Unsupported,
                   "Weightless mode requested ({}={}) but EP '{}' does not implement "
                   "GetWeightlessSupport.",
                   request.entry, entry_value(request), ep_name);
  }
  OrtWeightlessSupport answer = OrtWeightlessSupport_NONE;
  SDX_TRY(guarded_call(library, "GetWeightlessSupport",
                       [&] { return ep.GetWeightlessSupport(&ep, &answer); }));
  const auto index = static_cast<std::size_t>(answer);
  if (index >= std::size(kRows)) {
    return failure(capi::kProviderFailed,
                   "plugin library '{}': GetWeightlessSupport answered {}, expected 0 to {}",
                   library, index, std::size(kRows) - 1);
  }
  const WeightlessSupport support = kRows[index].support;
  if (!metadata.key.empty() && metadata.support != support) {
    log(Severity::Warning,
        "EP '{}': GetWeightlessSupport() returns '{}', but the EP metadata of the EP's devices "
        "supports '{}'",
        ep_name, weightless_text(support), weightless_text(metadata.support));
  }
  const auto mode = granted(support, request);
  if (!mode) return refusal(ep_name, support, request);
  grant.mode = *mode;
  grant.keeps_constants = *mode == Weightless::All && metadata.is_proposal;
  return grant;
}

}  // namespace sardonyx::plugin_host
