#include "session/profile.h"

#include <unistd.h>

#include <chrono>
#include <ctime>
#include <functional>
#include <thread>

#include "base/atomic_file.h"
#include "base/text.h"

namespace sardonyx {

namespace {

std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      result += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      result += c;
    }
  }
  return result;
}

std::int64_t microseconds(Profiler::Clock::duration duration) {
  return std::chrono::duration_cast<std::chrono::microseconds>(duration).count();
}

}  // namespace

TraceProfiler::TraceProfiler() : start_(Clock::now()) {}

std::uint64_t TraceProfiler::start_ns() const {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(start_.time_since_epoch()).count());
}

void TraceProfiler::add(std::string_view category, std::string_view name,
                        std::string_view arguments, Clock::time_point start,
                        Clock::time_point end) {
  const auto thread = std::hash<std::thread::id>{}(std::this_thread::get_id()) % 1000000;
  const std::string event = fmt::format(
      R"({{"cat":"{}","pid":{},"tid":{},"dur":{},"ts":{},"ph":"X","name":"{}","args":{{{}}}}})",
      category, getpid(), thread, microseconds(end - start), microseconds(start - start_),
      escaped(name), arguments);
  append(event);
}

void TraceProfiler::append(const std::string& event) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return;
  if (!events_.empty()) events_ += ",\n";
  events_ += event;
}

void TraceProfiler::record(std::string_view node_name, std::string_view op_type,
                           Clock::time_point start, Clock::time_point end) {
  add("Node", fmt::format("{}_kernel_time", node_name),
      fmt::format(R"("op_name":"{}","provider":"CPUExecutionProvider")", escaped(op_type)), start,
      end);
}

void TraceProfiler::record_session(std::string_view event, Clock::time_point start,
                                   Clock::time_point end) {
  add("Session", event, "", start, end);
}

void TraceProfiler::record_event(const ProviderEvent& event) {
  std::string arguments;
  for (const auto& [key, value] : event.arguments) {
    if (!arguments.empty()) arguments += ',';
    arguments += fmt::format(R"("{}":"{}")", escaped(key), escaped(value));
  }
  append(fmt::format(
      R"({{"cat":"{}","pid":{},"tid":{},"dur":{},"ts":{},"ph":"X","name":"{}","args":{{{}}}}})",
      event.category, event.process_id, event.thread_id, event.duration_us, event.start_us,
      escaped(event.name), arguments));
}

Result<std::string> TraceProfiler::end(const std::string& prefix) {
  const std::lock_guard lock(mutex_);
  if (has_ended_) return std::string();
  has_ended_ = true;
  std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  std::strftime(date, sizeof(date), "%Y-%m-%d_%H-%M-%S", &local);
  // Several traces of one second, as of short runs, get numbers.
  std::string path = fmt::format("{}_{}.json", prefix, date);
  for (int i = 1; access(path.c_str(), F_OK) == 0 && i < 10000; ++i) {
    path = fmt::format("{}_{}_{}.json", prefix, date, i);
  }
  const std::string text = "[\n" + events_ + "\n]\n";
  SDX_ASSIGN(AtomicFile file, AtomicFile::create(path));
  SDX_TRY(file.append(std::as_bytes(std::span(text.data(), text.size()))));
  SDX_TRY(file.commit());
  events_.clear();
  return path;
}

}  // namespace sardonyx
