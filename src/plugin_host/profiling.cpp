// Events that providers record while a session is profiled.
#include <map>
#include <string>
#include <vector>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

struct OrtProfilingEvent {
  OrtProfilingEventCategory category = OrtProfilingEventCategory_SESSION;
  int32_t process_id = 0;
  int32_t thread_id = 0;
  std::string name;
  int64_t timestamp_us = 0;
  int64_t duration_us = 0;
  std::map<std::string, std::string> arguments;
};

struct OrtProfilingEventsContainer {
  std::vector<OrtProfilingEvent> events;
};

namespace sardonyx::capi::ep_api {

namespace {

template <typename T, typename Get>
Status read_event(const OrtProfilingEvent* event, T* out, Get get) {
  SDX_TRY(require(event, "event"));
  SDX_TRY(require(out, "out"));
  *out = get(*event);
  return {};
}

}  // namespace

OrtStatus* CreateProfilingEvent(OrtProfilingEventCategory category, int32_t process_id,
                                int32_t thread_id, const char* event_name, int64_t timestamp_us,
                                int64_t duration_us, const char* const* arg_keys,
                                const char* const* arg_values, size_t arg_count,
                                OrtProfilingEvent** out) noexcept {
  return guarded("CreateProfilingEvent", [&]() -> Status {
    SDX_TRY(require(event_name, "event_name"));
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtProfilingEvent>(OrtProfilingEvent{
        category, process_id, thread_id, event_name, timestamp_us, duration_us, {}});
    for (size_t i = 0; i < arg_count; ++i) {
      SDX_TRY(require(arg_keys, "arg_keys"));
      SDX_TRY(require(arg_values, "arg_values"));
      SDX_TRY(require(arg_keys[i], "an argument's key"));
      SDX_TRY(require(arg_values[i], "an argument's value"));
      made->arguments[arg_keys[i]] = arg_values[i];
    }
    *out = made.release();
    return {};
  });
}

void ReleaseProfilingEvent(OrtProfilingEvent* object) noexcept { delete object; }

OrtStatus* ProfilingEvent_GetCategory(const OrtProfilingEvent* event,
                                      OrtProfilingEventCategory* out) noexcept {
  return guarded("ProfilingEvent_GetCategory",
                 [&] { return read_event(event, out, [](const auto& e) { return e.category; }); });
}

OrtStatus* ProfilingEvent_GetName(const OrtProfilingEvent* event, const char** out) noexcept {
  return guarded("ProfilingEvent_GetName", [&] {
    return read_event(event, out, [](const auto& e) { return e.name.c_str(); });
  });
}

OrtStatus* ProfilingEvent_GetTimestampUs(const OrtProfilingEvent* event, int64_t* out) noexcept {
  return guarded("ProfilingEvent_GetTimestampUs", [&] {
    return read_event(event, out, [](const auto& e) { return e.timestamp_us; });
  });
}

OrtStatus* ProfilingEvent_GetDurationUs(const OrtProfilingEvent* event, int64_t* out) noexcept {
  return guarded("ProfilingEvent_GetDurationUs", [&] {
    return read_event(event, out, [](const auto& e) { return e.duration_us; });
  });
}

OrtStatus* ProfilingEvent_GetArgValue(const OrtProfilingEvent* event, const char* key,
                                      const char** out) noexcept {
  return guarded("ProfilingEvent_GetArgValue", [&]() -> Status {
    SDX_TRY(require(key, "key"));
    return read_event(event, out, [&](const auto& e) -> const char* {
      const auto found = e.arguments.find(key);
      return found == e.arguments.end() ? nullptr : found->second.c_str();
    });
  });
}

OrtStatus* ProfilingEventsContainer_AddEvents(OrtProfilingEventsContainer* events_container,
                                              const OrtProfilingEvent* const* events,
                                              size_t event_count) noexcept {
  return guarded("ProfilingEventsContainer_AddEvents", [&]() -> Status {
    SDX_TRY(require(events_container, "events_container"));
    SDX_TRY(require(events, "events"));
    for (size_t i = 0; i < event_count; ++i) {
      SDX_TRY(require(events[i], "an event"));
      events_container->events.push_back(*events[i]);
    }
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
