#include <algorithm>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/as_number.h"
#include "capi/handles.h"
#include "capi/kernel_info.h"
#include "capi/status.h"

namespace sardonyx::capi {

const OrtLogger& default_logger() {
  static const OrtLogger instance{"sardonyx"};
  return instance;
}

Severity to_severity(int level) { return static_cast<Severity>(std::clamp(level, 0, 4)); }

LogSink log_sink_of(OrtLoggingFunction function, void* parameter, std::string id) {
  return [function, parameter, id = std::move(id)](Severity severity, std::string_view message) {
    const std::string text(message);
    function(parameter, static_cast<OrtLoggingLevel>(severity), "sardonyx", id.c_str(), "",
             text.c_str());
  };
}

OrtStatus* Logger_LogMessage(const OrtLogger* logger, OrtLoggingLevel log_severity_level,
                             const char* message, const ORTCHAR_T* file_path, int line_number,
                             const char* func_name) noexcept {
  return guarded("Logger_LogMessage", [&]() -> Status {
    SDX_TRY(require(logger, "logger"));
    SDX_TRY(require(message, "message"));
    const auto text = [](const char* given) { return given != nullptr ? given : ""; };
    log(to_severity(as_number(log_severity_level)), "[{}:{} {}] {}", text(file_path), line_number,
        text(func_name), message);
    return {};
  });
}

OrtStatus* Logger_GetLoggingSeverityLevel(const OrtLogger* logger, OrtLoggingLevel* out) noexcept {
  return guarded("Logger_GetLoggingSeverityLevel", [&]() -> Status {
    SDX_TRY(require(logger, "logger"));
    SDX_TRY(require(out, "out"));
    *out = static_cast<OrtLoggingLevel>(log_level());
    return {};
  });
}

}  // namespace sardonyx::capi
