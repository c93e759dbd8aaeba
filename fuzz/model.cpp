// Model bytes all the way: read, load, and run with feeds made from the declared inputs. Whatever
// the bytes are, the answer is results or an error, soon and without much memory.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "fuzz/feeds.h"
#include "session/environment.h"
#include "session/session.h"

namespace {

using namespace sardonyx;

void run_once(Session& session) {
  std::vector<std::string_view> input_names;
  std::vector<Datum> inputs;
  for (const SessionValue& input : session.inputs()) {
    auto feed = make_feed(input.type, inputs.size() + 1);
    if (!feed.ok()) return;
    input_names.push_back(input.name);
    inputs.push_back(std::move(feed).value());
  }
  std::vector<std::string_view> output_names;
  for (const SessionValue& output : session.outputs()) output_names.push_back(output.name);
  std::vector<Datum> outputs(output_names.size());
  const Watchdog watchdog;
  RunOptions options;
  options.terminate = &watchdog.expired();
  const Status status = session.run(input_names, inputs, output_names, outputs, options);
  if (!status.ok() && status.to_string().empty()) __builtin_trap();
}

void load_and_run(std::span<const std::byte> bytes) {
  static const std::shared_ptr<Environment> environment = [] {
    set_log_level(Severity::Fatal);
    return make_environment();
  }();
  SessionOptions options;
  options.thread_count = 1 + static_cast<int>(bytes.size() % 2);
  options.read.borrow_bytes = true;
  const auto session = Session::load_bytes(environment, bytes, options);
  if (session.ok()) {
    run_once(**session);
  } else if (session.status().to_string().empty()) {
    __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    load_and_run({reinterpret_cast<const std::byte*>(data), size});
  } catch (const std::bad_alloc&) {
    // The C interface answers so too.
  }
  return 0;
}
