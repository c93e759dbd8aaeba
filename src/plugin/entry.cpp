// The two functions that libsardonyx_ep.so exports.
#include "base/log.h"
#include "plugin/factory.h"

namespace sardonyx::plugin {

namespace {

OrtLoggingLevel level_of(Severity severity) {
  switch (severity) {
    case Severity::Verbose: return ORT_LOGGING_LEVEL_VERBOSE;
    case Severity::Info: return ORT_LOGGING_LEVEL_INFO;
    case Severity::Warning: return ORT_LOGGING_LEVEL_WARNING;
    case Severity::Error: return ORT_LOGGING_LEVEL_ERROR;
    case Severity::Fatal: break;
  }
  return ORT_LOGGING_LEVEL_FATAL;
}

/// What the library has to say goes where the host's own messages go.
void log_through(const Host& host, const OrtLogger& logger) {
  set_log_sink([host, &logger](Severity severity, std::string_view message) {
    const std::string text(message);
    OrtStatus* status =
        host.api->Logger_LogMessage(&logger, level_of(severity), text.c_str(), "sardonyx", 0, "");
    if (status != nullptr) host.api->ReleaseStatus(status);
  });
}

Status create_factories(const Host& host, const OrtLogger* logger, OrtEpFactory** factories,
                        std::size_t count_max, std::size_t* count) {
  *count = 0;
  if (count_max == 0) {
    return Status(Code::InvalidArgument, "expected room for one factory, found none");
  }
  if (logger != nullptr) log_through(host, *logger);
  SDX_ASSIGN(auto factory, Factory::create(host));
  factories[0] = factory.release();
  *count = 1;
  return {};
}

}  // namespace

}  // namespace sardonyx::plugin

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char*, const OrtApiBase* base,
                                        const OrtLogger* default_logger, OrtEpFactory** factories,
                                        size_t max_factories, size_t* factory_count) noexcept {
  using namespace sardonyx;
  auto host = plugin::Host::open(*base);
  if (!host.ok()) {
    // A runtime that is too old for the rest can still make a status.
    const OrtApi* oldest = base->GetApi(1);
    if (oldest == nullptr) return nullptr;
    return oldest->CreateStatus(ORT_NOT_IMPLEMENTED, host.status().message().c_str());
  }
  return host->guarded("CreateEpFactories", [&] {
    return plugin::create_factories(*host, default_logger, factories, max_factories, factory_count);
  });
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) noexcept {
  sardonyx::set_log_sink({});
  delete static_cast<sardonyx::plugin::Factory*>(factory);
  return nullptr;
}

}  // extern "C"
