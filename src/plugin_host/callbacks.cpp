#include "plugin_host/callbacks.h"

#include <cstring>

#include "base/log.h"

namespace sardonyx::plugin_host {

void guarded_void(std::string_view library, std::string_view name, FunctionRef<void()> body) {
  const Status status = guarded_call(library, name, [&]() -> OrtStatus* {
    body();
    return nullptr;
  });
  if (!status.ok()) log(Severity::Error, "{}", status.message());
}

Result<std::string> read_text(std::string_view library, std::string_view name,
                              FunctionRef<const char*()> body, bool may_be_empty) {
  const char* text = nullptr;
  SDX_TRY(guarded_call(library, name, [&]() -> OrtStatus* {
    text = body();
    return nullptr;
  }));
  const char* fault = nullptr;
  if (text == nullptr) {
    fault = "a null pointer";
  } else if (*text == '\0' && !may_be_empty) {
    fault = "an empty text";
  } else if (strnlen(text, kTextLengthMax + 1) > kTextLengthMax) {
    fault = "a text that is too long";
  }
  if (fault == nullptr) return std::string(text);
  return failure(Code::InvalidArgument,
                 "plugin library '{}': {} returned {}, expected a text of 1 to {} characters",
                 library, name, fault, kTextLengthMax);
}

Status require_callback(std::string_view library, std::string_view name, bool is_there) {
  if (is_there) return {};
  return failure(Code::InvalidArgument, "plugin library '{}' has no {}, which it needs to have",
                 library, name);
}

Status require_complete(std::string_view library, const OrtAllocator* allocator) {
  const bool is_complete = allocator != nullptr && allocator->Alloc != nullptr &&
                           allocator->Free != nullptr && allocator->Info != nullptr;
  if (is_complete) return {};
  return failure(Code::Internal,
                 "plugin library '{}': CreateAllocator returned {}, expected an allocator with "
                 "Alloc, Free and Info",
                 library, allocator == nullptr ? "a null pointer" : "an incomplete one");
}

}  // namespace sardonyx::plugin_host
