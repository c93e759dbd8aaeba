#include "session/weightless.h"

#include "base/log.h"
#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::string_view kModeKey = "ep.enable_weightless_mode";
constexpr std::string_view kBooleanKey = "ep.enable_weightless";
constexpr std::string_view kOldKey = "ep.enable_weightless_ep_context_nodes";
constexpr std::string_view kSourceKey = "ep.context_source_model_path";

const std::string* entry_of(const SessionOptions& options, std::string_view key) {
  const auto found = options.entries.find(std::string(key));
  return found == options.entries.end() ? nullptr : &found->second;
}

bool is_on(const SessionOptions& options, std::string_view key) {
  const std::string* value = entry_of(options, key);
  return value != nullptr && *value == "1";
}

}  // namespace

Result<WeightlessRequest> weightless_request(const SessionOptions& options) {
  if (const std::string* mode = entry_of(options, kModeKey)) {
    if (*mode == "0") return WeightlessRequest{Weightless::None, kModeKey};
    if (*mode == "1") return WeightlessRequest{Weightless::ExternalOnly, kModeKey};
    if (*mode == "2") return WeightlessRequest{Weightless::All, kModeKey};
    return failure(Code::InvalidArgument,
                   "Invalid value '{}' for ep.enable_weightless_mode. Valid values are: \"0\" "
                   "(OrtWeightlessSupport_NONE), \"1\" (OrtWeightlessSupport_EXTERNAL_ONLY), and "
                   "\"2\" (OrtWeightlessSupport_ALL).",
                   *mode);
  }
  if (entry_of(options, kBooleanKey) != nullptr) {
    if (!is_on(options, kBooleanKey)) return WeightlessRequest{Weightless::None, kBooleanKey};
    return WeightlessRequest{Weightless::All, kBooleanKey, /*takes_less=*/true};
  }
  if (is_on(options, kOldKey) && is_on(options, "ep.context_enable")) {
    return WeightlessRequest{Weightless::ExternalOnly, kOldKey, false, /*is_optional=*/true};
  }
  return WeightlessRequest{};
}

Result<Weightless> requested_weightless(const SessionOptions& options) {
  SDX_ASSIGN(const WeightlessRequest request, weightless_request(options));
  return request.mode;
}

void warn_of_old_weightless_entries(const SessionOptions& options) {
  if (entry_of(options, kOldKey) == nullptr) return;
  log(Severity::Warning,
      "session config key '{}' is deprecated: set '{}' to \"1\" (external data only) or \"2\" "
      "(all weights)",
      kOldKey, kModeKey);
}

std::string_view weightless_name(Weightless mode) {
  switch (mode) {
    case Weightless::None: return "none";
    case Weightless::ExternalOnly: return "external_only";
    case Weightless::All: return "all";
  }
  return "none";
}

WeightlessSource weightless_source(const SessionOptions& options) {
  WeightlessSource source{options.weightless_source, {}};
  if (const std::string* path = entry_of(options, kSourceKey)) source.path = *path;
  return source;
}

}  // namespace sardonyx
