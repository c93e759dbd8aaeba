#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "ep/provider.h"
#include "session/session.h"

namespace sardonyx {

/// Which weights a session is to leave where its source has them, by the first of these entries
/// that is set:
///   ep.enable_weightless_mode                  0 none, 1 external data only, 2 all
///   ep.enable_weightless                       1: all, or as many as the provider can leave
///   ep.enable_weightless_ep_context_nodes      1: external data, in compiled models only
/// Errors   InvalidArgument for another value of the first.
Result<WeightlessRequest> weightless_request(const SessionOptions& options);

/// The mode of the request alone.
Result<Weightless> requested_weightless(const SessionOptions& options);

/// Says once that an entry is of old, and which one took its place.
void warn_of_old_weightless_entries(const SessionOptions& options);

/// "none", "external_only", "all".
std::string_view weightless_name(Weightless mode);

/// Where the source model of a weightless compiled one is, as far as the options say: its bytes,
/// or else its path; neither: by the name that the compiled model has for it.
struct WeightlessSource {
  std::span<const std::byte> bytes;
  std::string path;
};
WeightlessSource weightless_source(const SessionOptions& options);

}  // namespace sardonyx
