#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sardonyx {

/// Keeps the process alive when a mapped file is cut short while its bytes are read.
///
/// Reading a page that a file no longer has raises SIGBUS, which ends a process. While there is a
/// guard, a handler of the library answers that signal for the guarded bytes: from the touched page
/// to the end it puts zeros in their place, and marks the guard. Every other SIGBUS goes to the
/// handler that was there before; one that is installed later and does not call ours wins.
///
/// The handler is installed with the first guard and removed with the last. If somebody put a
/// handler above it in the meantime, it stays, and the library stays in memory with it. The
/// environment variable SARDONYX_NO_SIGBUS=1 switches all of it off.
///
/// Cost     a few hundred nanoseconds for the first and the last guard of the process.
/// Errors   none: bytes that cannot be guarded are as they would be without the guard. What a file
///          loses inside its last page reads as zeros without a signal and is not noticed.
class FaultGuard {
 public:
  /// Bytes of a mapping of a file, from the begin of a page on. They are mapped until the guard is
  /// gone.
  explicit FaultGuard(std::span<const std::byte> bytes);
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
  FaultGuard& operator=(const FaultGuard&) = delete;

  /// Whether zeros stand in the place of some of the bytes.
  bool is_damaged() const;
  /// Whether any guard of the process is damaged. One load.
  static bool any_damaged();

  struct Range;

 private:
  Range* range_ = nullptr;
};

}  // namespace sardonyx
