// Events that providers record while a session is profiled.
#include "plugin_host/profiling.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <mutex>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"

namespace sardonyx::plugin_host {

namespace {

constexpr std::uint32_t kProfilerSince = 25;

std::int64_t microseconds(Profiler::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

std::string_view category_name(OrtProfilingEventCategory category) {
  constexpr std::array<std::string_view, 4> names = {"Session", "Node", "Kernel", "Api"};
  const auto index = static_cast<std::size_t>(category);
  return index < names.size() ? names[index] : "Kernel";
}

ProviderEvent taken(OrtProfilingEvent& event) {
  ProviderEvent made{std::string(category_name(event.category)),
                     std::move(event.name),
                     event.process_id,
                     event.thread_id,
                     event.timestamp_us,
                     event.duration_us,
                     {}};
  made.arguments.assign(event.arguments.begin(), event.arguments.end());
  return made;
}

}  // namespace

bool PluginProfiler::succeeds(std::string_view callback, FunctionRef<OrtStatus*()> body) const {
  const Status status = guarded_call(library_, callback, body);
  if (!status.ok()) log(Severity::Error, "{}", status.message());
  return status.ok();
}

PluginProfiler::PluginProfiler(std::string library, OrtEpProfilerImpl& impl,
                               Clock::time_point profile_start)
    : library_(std::move(library)),
      impl_(impl),
      profile_start_(profile_start),
      next_id_(static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::microseconds>(
                                              std::chrono::system_clock::now().time_since_epoch())
                                              .count())) {}

std::unique_ptr<PluginProfiler> PluginProfiler::start(std::string library, OrtEp& ep,
                                                      Clock::time_point profile_start) {
  const auto create = callback(ep, &OrtEp::CreateProfiler, kProfilerSince);
  if (create == nullptr) return nullptr;
  OrtEpProfilerImpl* impl = nullptr;
  const Status made = guarded_call(library, "CreateProfiler", [&] { return create(&ep, &impl); });
  if (!made.ok()) {
    log(Severity::Error, "{}", made.message());
    return nullptr;
  }
  if (impl == nullptr) return nullptr;
  if (impl->ort_version_supported < kProfilerSince || impl->Release == nullptr ||
      impl->StartProfiling == nullptr || impl->EndProfiling == nullptr) {
    log(Severity::Error,
        "plugin library '{}': CreateProfiler returned an incomplete profiler, expected version {} "
        "or later with Release, StartProfiling and EndProfiling",
        library, kProfilerSince);
    return nullptr;
  }
  std::unique_ptr<PluginProfiler> profiler(
      new PluginProfiler(std::move(library), *impl, profile_start));
  const std::int64_t offset_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - profile_start).count();
  const bool is_started = profiler->succeeds("OrtEpProfilerImpl::StartProfiling",
                                             [&] { return impl->StartProfiling(impl, offset_ns); });
  return is_started ? std::move(profiler) : nullptr;
}

PluginProfiler::~PluginProfiler() {
  guarded_void(library_, "OrtEpProfilerImpl::Release", [&] { impl_.Release(&impl_); });
}

std::uint64_t PluginProfiler::begin_node() {
  const std::uint64_t id = next_id_.fetch_add(1, std::memory_order_relaxed);
  const std::shared_lock lock(mutex_);
  if (is_on_ && impl_.StartEvent != nullptr) {
    succeeds("OrtEpProfilerImpl::StartEvent", [&] { return impl_.StartEvent(&impl_, id); });
  }
  return id;
}

void PluginProfiler::end_node(std::uint64_t id, std::string_view node_name,
                              std::string_view op_type, std::string_view provider,
                              Clock::time_point start, Clock::time_point end) {
  const std::shared_lock lock(mutex_);
  if (!is_on_ || impl_.StopEvent == nullptr) return;
  OrtProfilingEvent event{OrtProfilingEventCategory_NODE,
                          getpid(),
                          static_cast<std::int32_t>(syscall(SYS_gettid)),
                          fmt::format("{}_kernel_time", node_name),
                          microseconds(start - profile_start_),
                          microseconds(end - start),
                          {}};
  event.arguments = {{"op_name", std::string(op_type)}, {"provider", std::string(provider)}};
  succeeds("OrtEpProfilerImpl::StopEvent", [&] { return impl_.StopEvent(&impl_, id, &event); });
}

std::vector<ProviderEvent> PluginProfiler::end() {
  const std::unique_lock lock(mutex_);
  std::vector<ProviderEvent> events;
  if (!std::exchange(is_on_, false)) return events;
  OrtProfilingEventsContainer container;
  const bool is_ended = succeeds("OrtEpProfilerImpl::EndProfiling",
                                 [&] { return impl_.EndProfiling(&impl_, &container); });
  if (!is_ended) return events;
  for (OrtProfilingEvent& event : container.events) events.push_back(taken(event));
  return events;
}

}  // namespace sardonyx::plugin_host

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
