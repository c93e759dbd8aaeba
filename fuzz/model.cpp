// Model bytes all the way: read, load, and run with feeds made from the declared inputs. Whatever
// the bytes are, the answer is results or an error, soon and without much memory.
#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/log.h"
#include "ir/element.h"
#include "session/environment.h"
#include "session/session.h"

namespace {

using namespace sardonyx;

constexpr std::int64_t kFeedElementsMax = 1 << 16;
constexpr auto kRunTime = std::chrono::milliseconds(500);

/// Stops a run that takes long: a loop of 2^62 turns is a valid model.
class Watchdog {
 public:
  Watchdog() : thread_([this] { wait(); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  const std::atomic<bool>& expired() const { return expired_; }

 private:
  void wait() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, kRunTime, [this] { return done_; })) expired_ = true;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::atomic<bool> expired_{false};
  std::thread thread_;
};

/// A tensor of small numbers; dimensions that are not known become 2.
Result<Datum> make_feed(const Type& type, std::uint64_t seed) {
  if (type.kind == Type::Kind::Sequence) {
    auto sequence = std::make_shared<Sequence>();
    if (type.element != nullptr) sequence->element = *type.element;
    return Datum(std::shared_ptr<const Sequence>(std::move(sequence)));
  }
  if (!type.is_tensor()) return Datum();
  Shape shape;
  if (type.shape) {
    for (const Dim dim : type.shape->dims()) shape.push_back(is_known(dim) ? dim : 2);
  }
  const auto count = shape.element_count();
  if (!count || *count > kFeedElementsMax) {
    return Status(Code::InvalidArgument, "the input is too large to be made up");
  }
  SDX_ASSIGN(Tensor tensor, Tensor::allocate(type.dtype, shape));
  if (type.dtype != DType::String) {
    for (std::size_t i = 0; i < tensor.byte_size(); ++i) {
      seed = seed * 6364136223846793005U + 1442695040888963407U;
      // Mostly small values: 0, 1, 2 and some sign bits, so that indices and floats make sense.
      const auto byte = static_cast<std::uint8_t>(seed >> 56);
      const std::size_t element = std::max<std::size_t>(
          tensor.byte_size() / std::max<std::size_t>(static_cast<std::size_t>(*count), 1), 1);
      const bool is_low = i % element == 0;
      const int bound = type.dtype == DType::Bool ? 2 : 3;
      tensor.mutable_data()[i] = static_cast<std::byte>(is_low || byte > 250 ? byte % bound : 0);
    }
  }
  return Datum(std::move(tensor));
}

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
