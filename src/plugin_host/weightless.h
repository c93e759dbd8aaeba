#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "capi/devices.h"
#include "ep/provider.h"
#include "sardonyx/c_api.h"

namespace sardonyx::plugin_host {

/// Which weights a provider can leave where their source has them.
struct WeightlessSupport {
  bool external_only = false;
  bool all = false;

  bool has(Weightless mode) const {
    return mode == Weightless::None || (mode == Weightless::All ? all : external_only);
  }
  friend bool operator==(const WeightlessSupport&, const WeightlessSupport&) = default;
};

/// "none", "external_only", "all" or "all_or_external_only".
std::string_view weightless_text(WeightlessSupport support);

/// What the devices of a provider say before it is made.
struct WeightlessMetadata {
  WeightlessSupport support;
  /// The key that says it, "" when there is none.
  std::string key;
  /// The key is that of the interface as it was proposed. A provider of that time always asks that
  /// its constants be dropped, and is given them as inputs when all weights stay in the source; one
  /// of the released interface decides by what it asks.
  bool is_proposal = false;
};
WeightlessMetadata weightless_metadata(const OrtEpDevice& device);

/// What a provider was granted.
struct WeightlessGrant {
  Weightless mode = Weightless::None;
  /// Constants are inputs of its parts whatever it asks.
  bool keeps_constants = false;
};

/// Refuses a provider whose devices do not have the mode that is asked for by number, before it is
/// made.
/// Errors   EP_FAIL, with the device.
Status check_weightless_metadata(std::string_view ep_name,
                                 const std::vector<const OrtEpDevice*>& devices,
                                 const WeightlessRequest& request);

/// Asks the provider itself, once, when the session wants something of it. An answer that differs
/// from the metadata is reported; a provider of an interface without the question is believed.
/// Errors   Unsupported for a provider that should answer and cannot; EP_FAIL for one that answers
///          less than what is asked for.
Result<WeightlessGrant> ask_weightless(const std::string& library, const OrtEp& ep,
                                       std::string_view ep_name,
                                       const std::vector<const OrtEpDevice*>& devices,
                                       const WeightlessRequest& request);

}  // namespace sardonyx::plugin_host
