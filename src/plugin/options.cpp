#include "plugin/options.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "base/log.h"
#include "base/text.h"

namespace sardonyx::plugin {

namespace {

/// Options of a provider stand in a session's entries under its name in small letters.
constexpr std::string_view kPrefix = "ep.sardonyxexecutionprovider.";
constexpr std::string_view kThreads = "threads";
/// A list of processors for the workers of the session's own pool, which the caller is not one of.
constexpr std::string_view kAffinities = "session.intra_op_thread_affinities";
constexpr int kThreads_most = 1024;

Result<int> read_thread_count(const std::string& text) {
  int count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error != std::errc() || stop != end || count < 0 || count > kThreads_most) {
    return failure(Code::InvalidArgument, "option '{}': expected a number from 0 to {}, found '{}'",
                   kThreads, kThreads_most, text);
  }
  return count;
}

}  // namespace

Result<EpOptions> read_options(const Host& host, const OrtSessionOptions& session) {
  OrtKeyValuePairs* made = nullptr;
  SDX_TRY(host.take(host.api->GetSessionOptionsConfigEntries(&session, &made)));
  EpOptions options;
  options.entries = Pairs(host, made).entries();
  for (const auto& [key, value] : options.entries) {
    if (key == kAffinities && options.thread_count == 0) {
      options.thread_count = static_cast<int>(std::count(value.begin(), value.end(), ';')) + 2;
    }
  }
  for (const auto& [key, value] : options.entries) {
    if (!key.starts_with(kPrefix)) continue;
    if (key.substr(kPrefix.size()) == kThreads) {
      SDX_ASSIGN(options.thread_count, read_thread_count(value));
    } else {
      log(Severity::Warning, "{}: option '{}' is not known and has no effect; known is '{}'",
          kEpName, key, kThreads);
    }
  }
  return options;
}

}  // namespace sardonyx::plugin
