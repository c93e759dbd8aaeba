#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "base/status.h"

namespace sardonyx::plugin {

/// The memory of a device that is not there. Each address exists twice: the one that allocate()
/// gives faults when it is touched, as a pointer to a graphics card's memory would; open() leads to
/// the same byte where it can be read and written. Thread-safe.
class DeviceMemory {
  struct Private {};

 public:
  /// Errors   OutOfMemory when the addresses cannot be had. Pages are taken when they are used.
  static Result<std::unique_ptr<DeviceMemory>> create(std::uint64_t size_bytes);

  DeviceMemory(Private, std::byte* shown, std::byte* open, std::size_t size_bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// An address that nobody may touch; null when the device is full.
  void* allocate(std::size_t size_bytes);
  void release(void* address);

  bool holds(const void* address) const {
    const auto* byte = static_cast<const std::byte*>(address);
    return byte >= shown_ && byte < shown_ + size_bytes_;
  }
  /// The usable twin of an address that holds() is true for.
  std::byte* open(void* address) const {
    return open_ + (static_cast<std::byte*>(address) - shown_);
  }

  std::size_t size_bytes() const { return size_bytes_; }
  std::size_t used_bytes() const;
  std::size_t peak_bytes() const;

 private:
  std::byte* shown_;
  std::byte* open_;
  std::size_t size_bytes_;
  /// The pages are one for a process and its forked children: who made them manages them.
  pid_t maker_ = ::getpid();
  mutable std::mutex mutex_;
  /// Sizes by offset.
  std::map<std::size_t, std::size_t> free_;
  std::map<std::size_t, std::size_t> taken_;
  std::size_t used_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

}  // namespace sardonyx::plugin
