#pragma once

#include <exception>
#include <new>
#include <utility>

#include "base/status.h"
#include "sardonyx/c_api.h"

namespace sardonyx::capi {

/// Where ONNX Runtime answers ORT_FAIL and so callers may look for it, whatever went wrong.
inline constexpr Code kPlainFailure = Code::Internal;

/// A failure of a plugin that it gives no other code. Only the C interface tells it from other
/// faults, so that the library's own codes do not list it.
inline constexpr auto kProviderFailed = static_cast<Code>(0xff);

/// An OrtStatus with the code that belongs to `status`, and its whole text; null on success.
/// Errors: without memory for it, a status of the library that says so; releasing that is harmless.
OrtStatus* to_ort(const Status& status) noexcept;

/// As to_ort, for codes that only the C interface knows (ORT_EP_FAIL, ORT_NOT_FOUND, ...).
OrtStatus* make_status(OrtErrorCode code, const char* message) noexcept;

/// The Status that a callback's answer stands for; releases it. Null and ORT_OK are success.
Status take_status(OrtStatus* status);

/// What a function of a table that has no body yet returns: ORT_NOT_IMPLEMENTED and its own name.
OrtStatus* not_implemented(const char* function) noexcept;

/// Runs `body`, which returns a Status, so that nothing but an OrtStatus* crosses the C boundary.
/// A failure says in which function of the interface it happened.
template <typename Body>
OrtStatus* guarded(const char* function, Body&& body) noexcept {
  try {
    return to_ort(std::forward<Body>(body)());
  } catch (const std::bad_alloc&) {
    return make_status(ORT_FAIL, "out of memory");
  } catch (const std::exception& error) {
    return to_ort(Status(Code::Internal, error.what()).with(function));
  } catch (...) {
    return to_ort(Status(Code::Internal, "an exception of unknown type").with(function));
  }
}

}  // namespace sardonyx::capi
