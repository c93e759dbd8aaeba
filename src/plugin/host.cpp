#include "plugin/host.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/text.h"

namespace sardonyx::plugin {

namespace {

/// The number in the middle of "1.32.0", which is the newest version of the interface; 0 for
/// anything else.
std::uint32_t minor_version(const char* text) {
  if (text == nullptr || std::strncmp(text, "1.", 2) != 0) return 0;
  return static_cast<std::uint32_t>(std::strtoul(text + 2, nullptr, 10));
}

OrtErrorCode code_for(Code code) {
  switch (code) {
    case Code::InvalidArgument: return ORT_INVALID_ARGUMENT;
    case Code::InvalidModel: return ORT_INVALID_GRAPH;
    case Code::InvalidProtobuf: return ORT_INVALID_PROTOBUF;
    case Code::NoSuchFile: return ORT_NO_SUCHFILE;
    case Code::Unsupported: return ORT_NOT_IMPLEMENTED;
    case Code::Runtime: return ORT_RUNTIME_EXCEPTION;
    case Code::NeedsCompiling: return ORT_MODEL_REQUIRES_COMPILATION;
    case Code::OutOfMemory:
    case Code::Cancelled:
    case Code::Internal: break;
  }
  return ORT_EP_FAIL;
}

Code code_of(OrtErrorCode code) {
  switch (code) {
    case ORT_INVALID_ARGUMENT: return Code::InvalidArgument;
    case ORT_INVALID_GRAPH: return Code::InvalidModel;
    case ORT_NO_SUCHFILE: return Code::NoSuchFile;
    case ORT_NOT_IMPLEMENTED: return Code::Unsupported;
    default: return Code::Internal;
  }
}

}  // namespace

Result<Host> Host::open(const OrtApiBase& base) {
  const char* text = base.GetVersionString();
  Host host;
  host.version = std::min<std::uint32_t>(ORT_API_VERSION, minor_version(text));
  // Asked for more than it has, a runtime complains to its user.
  if (host.version >= kApiVersion_least) host.api = base.GetApi(host.version);
  if (host.api == nullptr) {
    return failure(Code::Unsupported,
                   "the Sardonyx provider needs a runtime with version {} of the interface or "
                   "later, found '{}'",
                   kApiVersion_least, text == nullptr ? "" : text);
  }
  host.ep = host.api->GetEpApi();
  if (host.ep == nullptr) {
    return failure(Code::Unsupported, "the runtime '{}' has no interface for providers", text);
  }
  return host;
}

Status Host::take(OrtStatus* status) const {
  if (status == nullptr) return {};
  Status taken(code_of(api->GetErrorCode(status)), api->GetErrorMessage(status));
  api->ReleaseStatus(status);
  return taken;
}

OrtStatus* Host::give(const Status& status) const noexcept {
  if (status.ok()) return nullptr;
  return api->CreateStatus(code_for(status.code()), status.to_string().c_str());
}

std::vector<std::pair<std::string, std::string>> Pairs::entries() const {
  const char* const* keys = nullptr;
  const char* const* values = nullptr;
  std::size_t count = 0;
  host_.api->GetKeyValuePairs(pairs_, &keys, &values, &count);
  std::vector<std::pair<std::string, std::string>> entries;
  for (std::size_t i = 0; i < count; ++i) entries.emplace_back(keys[i], values[i]);
  return entries;
}

}  // namespace sardonyx::plugin
