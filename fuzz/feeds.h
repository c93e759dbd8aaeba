#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "ir/datum.h"

namespace sardonyx {

inline constexpr std::int64_t kFeedElementsMax = 1 << 16;
inline constexpr auto kRunTime = std::chrono::milliseconds(500);

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
inline Result<Datum> make_feed(const Type& type, std::uint64_t seed) {
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

}  // namespace sardonyx
