#include "capi/status.h"

#include <string>

#include "capi/api_declarations.h"

/// What the caller of the C interface holds as an error.
struct OrtStatus {
  OrtErrorCode code;
  std::string message;
};

namespace sardonyx::capi {
namespace {

/// Returned when there is no memory for a status; short enough to need none itself.
OrtStatus* out_of_memory() noexcept {
  static OrtStatus status{ORT_FAIL, "out of memory"};
  return &status;
}

OrtErrorCode ort_code(Code code) noexcept {
  if (code == kProviderFailed) return ORT_EP_FAIL;
  switch (code) {
    case Code::InvalidArgument: return ORT_INVALID_ARGUMENT;
    case Code::InvalidModel: return ORT_INVALID_GRAPH;
    case Code::InvalidProtobuf: return ORT_INVALID_PROTOBUF;
    case Code::NoSuchFile: return ORT_NO_SUCHFILE;
    case Code::Unsupported: return ORT_NOT_IMPLEMENTED;
    case Code::OutOfMemory: return ORT_FAIL;
    case Code::Cancelled: return ORT_FAIL;
    case Code::NeedsCompiling: return ORT_MODEL_REQUIRES_COMPILATION;
    case Code::Runtime: return ORT_RUNTIME_EXCEPTION;
    case Code::Internal: return ORT_FAIL;
  }
  return ORT_FAIL;
}

Code code_of(OrtErrorCode code) noexcept {
  switch (code) {
    case ORT_INVALID_ARGUMENT: return Code::InvalidArgument;
    case ORT_NO_SUCHFILE: return Code::NoSuchFile;
    case ORT_INVALID_PROTOBUF: return Code::InvalidProtobuf;
    case ORT_NOT_IMPLEMENTED: return Code::Unsupported;
    case ORT_INVALID_GRAPH: return Code::InvalidModel;
    case ORT_RUNTIME_EXCEPTION: return Code::Runtime;
    case ORT_EP_FAIL: return kProviderFailed;
    case ORT_MODEL_REQUIRES_COMPILATION: return Code::NeedsCompiling;
    default: return Code::Internal;
  }
}

/// A zero byte, which a name in a model may hold, would end the text for the caller.
std::string without_zeros(const std::string& text) {
  std::string result;
  for (const char c : text) c == '\0' ? result += "\\0" : result += c;
  return result;
}

}  // namespace

OrtStatus* make_status(OrtErrorCode code, const char* message) noexcept {
  try {
    return new OrtStatus{code, message ? message : ""};
  } catch (...) {
    return out_of_memory();
  }
}

Status take_status(OrtStatus* status) {
  if (status == nullptr) return {};
  Status taken;
  if (status->code != ORT_OK) taken = Status(code_of(status->code), status->message);
  ReleaseStatus(status);
  return taken;
}

OrtStatus* to_ort(const Status& status) noexcept {
  if (status.ok()) return nullptr;
  try {
    return new OrtStatus{ort_code(status.code()), without_zeros(status.to_string())};
  } catch (...) {
    return out_of_memory();
  }
}

OrtStatus* not_implemented(const char* function) noexcept {
  try {
    std::string message = std::string(function) + " is not implemented by this build of Sardonyx";
    return new OrtStatus{ORT_NOT_IMPLEMENTED, std::move(message)};
  } catch (...) {
    return out_of_memory();
  }
}

OrtStatus* CreateStatus(OrtErrorCode code, const char* message) noexcept {
  return make_status(code, message);
}

OrtErrorCode GetErrorCode(const OrtStatus* status) noexcept {
  return status ? status->code : ORT_OK;
}

const char* GetErrorMessage(const OrtStatus* status) noexcept {
  return status ? status->message.c_str() : "";
}

void ReleaseStatus(OrtStatus* object) noexcept {
  if (object != out_of_memory()) delete object;
}

}  // namespace sardonyx::capi
