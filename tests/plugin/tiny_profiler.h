#pragma once

#include <unistd.h>

#include <mutex>
#include <stdexcept>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

/// The profiler of tiny_plugin: for every node that the host times it has an event of its own,
/// named after the node's, with the number that the host gave the node.
struct TinyProfiler : OrtEpProfilerImpl {
  const OrtApi* api = nullptr;
  std::string fault;
  int64_t offset_ns = -1;
  std::mutex mutex;
  std::vector<OrtProfilingEvent*> events;
  uint64_t open = 0;
};

inline TinyProfiler& tiny(OrtEpProfilerImpl* self) { return *static_cast<TinyProfiler*>(self); }

inline OrtStatus* ORT_API_CALL tiny_start_event(OrtEpProfilerImpl* self, uint64_t id) {
  if (id == 0) throw std::runtime_error("an event without a number");
  const std::lock_guard lock(tiny(self).mutex);
  tiny(self).open = id;
  return nullptr;
}

inline OrtStatus* ORT_API_CALL tiny_stop_event(OrtEpProfilerImpl* self, uint64_t id,
                                               const OrtProfilingEvent* node) {
  TinyProfiler& own = tiny(self);
  if (own.fault == "stop") throw std::runtime_error("thrown by StopEvent");
  const OrtEpApi& ep_api = *own.api->GetEpApi();
  const char* name = nullptr;
  int64_t time_us = 0;
  if (OrtStatus* status = ep_api.ProfilingEvent_GetName(node, &name)) return status;
  if (OrtStatus* status = ep_api.ProfilingEvent_GetTimestampUs(node, &time_us)) return status;
  const char* provider = nullptr;
  if (OrtStatus* status = ep_api.ProfilingEvent_GetArgValue(node, "provider", &provider)) {
    return status;
  }
  const std::lock_guard lock(own.mutex);
  const bool is_its = own.open == id && time_us >= own.offset_ns / 1000;
  const std::string own_name = (is_its ? "tiny \"" : "stray ") + std::string(name);
  const char* keys[] = {"parent_provider"};
  OrtProfilingEvent* event = nullptr;
  OrtStatus* status =
      ep_api.CreateProfilingEvent(OrtProfilingEventCategory_KERNEL, getpid(), 7, own_name.c_str(),
                                  time_us, 3, keys, &provider, 1, &event);
  if (status == nullptr) own.events.push_back(event);
  return status;
}

inline OrtStatus* ORT_API_CALL tiny_end_profiling(OrtEpProfilerImpl* self,
                                                  OrtProfilingEventsContainer* container) {
  TinyProfiler& own = tiny(self);
  if (own.fault == "end") return own.api->CreateStatus(ORT_EP_FAIL, "no end today");
  const std::lock_guard lock(own.mutex);
  return own.api->GetEpApi()->ProfilingEventsContainer_AddEvents(container, own.events.data(),
                                                                 own.events.size());
}

inline void ORT_API_CALL tiny_release_profiler(OrtEpProfilerImpl* self) {
  for (OrtProfilingEvent* event : tiny(self).events) {
    tiny(self).api->GetEpApi()->ReleaseProfilingEvent(event);
  }
  delete &tiny(self);
}

/// `fault` is the callback that goes wrong: "create", "incomplete", "start", "stop", "end".
inline OrtStatus* create_tiny_profiler(const OrtApi* api, const std::string& fault,
                                       OrtEpProfilerImpl** profiler) {
  if (fault == "create") return api->CreateStatus(ORT_EP_FAIL, "no profiler today");
  if (fault == "incomplete") {
    static OrtEpProfilerImpl incomplete{};
    incomplete.ort_version_supported = ORT_API_VERSION;
    *profiler = &incomplete;
    return nullptr;
  }
  auto* made = new TinyProfiler;
  made->ort_version_supported = ORT_API_VERSION;
  made->api = api;
  made->fault = fault;
  made->Release = tiny_release_profiler;
  made->StartEvent = tiny_start_event;
  made->StopEvent = tiny_stop_event;
  made->EndProfiling = tiny_end_profiling;
  made->StartProfiling = [](OrtEpProfilerImpl* self, int64_t offset_ns) -> OrtStatus* {
    if (tiny(self).fault == "start") throw std::runtime_error("thrown by StartProfiling");
    tiny(self).offset_ns = offset_ns;
    return nullptr;
  };
  *profiler = made;
  return nullptr;
}
