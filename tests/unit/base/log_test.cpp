#include "base/log_scope.h"

#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

using namespace sardonyx;

namespace {

LogSink into(std::vector<std::string>& texts) {
  return [&texts](Severity, std::string_view text) { texts.emplace_back(text); };
}

}  // namespace

TEST_CASE("a scoped sink hears its thread only, and only while it lives") {
  std::vector<std::string> all;
  std::vector<std::string> own;
  set_log_sink(into(all));
  const LogSink sink = into(own);
  {
    const ScopedLogSink scope(&sink);
    log(Severity::Error, "inside");
    const ScopedLogSink none(nullptr);
    log(Severity::Error, "inside again");
    std::thread([] { log(Severity::Error, "elsewhere"); }).join();
  }
  log(Severity::Error, "after");
  set_log_sink({});
  CHECK(own == std::vector<std::string>{"inside", "inside again"});
  CHECK(all == std::vector<std::string>{"elsewhere", "after"});
}

TEST_CASE("a held sink goes with its holder, unless another took its place") {
  std::vector<std::string> first;
  std::vector<std::string> second;
  auto held = hold_log_sink(into(first));
  log(Severity::Error, "one");
  auto later = hold_log_sink(into(second));
  held.reset();
  log(Severity::Error, "two");
  later.reset();
  CHECK(first == std::vector<std::string>{"one"});
  CHECK(second == std::vector<std::string>{"two"});
}
