#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/text.h"
#include "capi/status.h"
#include "sardonyx/c_api.h"

namespace sardonyx::plugin_host {

/// Longest text that is taken from a plugin.
inline constexpr std::size_t kTextLengthMax = 4096;

/// A member that API version `since` added to a plugin's struct, or null when the struct says that
/// it is older, and nothing behind its end is read.
template <typename Struct, typename Function>
Function callback(const Struct& self, Function Struct::* member, std::uint32_t since) {
  return self.ort_version_supported >= since ? self.*member : nullptr;
}

/// Runs `body`, which calls into a plugin and returns what that returned; whatever it throws
/// becomes a failure.
/// Errors   those of the plugin, with the name of the library and of the callback.
template <typename Body>
Status guarded_call(std::string_view library, std::string_view name, Body&& body) {
  const auto fault = [&](Code code, std::string_view what) {
    return failure(code, "plugin library '{}': {} failed: {}", library, name, what);
  };
  try {
    const Status status = capi::take_status(std::forward<Body>(body)());
    if (status.ok()) return {};
    return fault(status.code(), status.message());
  } catch (const std::exception& error) {
    return fault(Code::Internal, fmt::format("it threw an exception: {}", error.what()));
  } catch (...) {
    return fault(Code::Internal, "it threw an exception of unknown type");
  }
}

/// As guarded_call for a callback that returns nothing; a failure is logged.
void guarded_void(std::string_view library, std::string_view name, FunctionRef<void()> body);

/// The text that a callback returned, copied.
/// Errors   null, empty (unless allowed) or longer than kTextLengthMax.
Result<std::string> read_text(std::string_view library, std::string_view name,
                              FunctionRef<const char*()> body, bool may_be_empty = false);

/// A callback that has to be there.
Status require_callback(std::string_view library, std::string_view name, bool is_there);

/// An allocator that a library made for CreateAllocator.
Status require_complete(std::string_view library, const OrtAllocator* allocator);

}  // namespace sardonyx::plugin_host
