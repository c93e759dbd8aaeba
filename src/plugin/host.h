#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "sardonyx/c_api.h"

namespace sardonyx::plugin {

/// The oldest interface that this library can work with, and why it asks for it.
inline constexpr std::uint32_t kApiVersion_least = 23;

/// The functions of the runtime that loaded us, and how far its tables go: what was added in a
/// version above `version` is not there, and must not even be looked at.
struct Host {
  const OrtApi* api = nullptr;
  const OrtEpApi* ep = nullptr;
  std::uint32_t version = 0;

  /// Takes the newest tables that both sides know.
  /// Errors   Unsupported for a runtime that is too old, naming both versions.
  static Result<Host> open(const OrtApiBase& base);

  /// The answer of one of the host's functions as ours; releases it. Null is success.
  Status take(OrtStatus* status) const;
  /// Our answer as the host's; null on success.
  OrtStatus* give(const Status& status) const noexcept;

  /// Runs `body`, which returns a Status, so that nothing but an OrtStatus* crosses the boundary.
  template <typename Body>
  OrtStatus* guarded(const char* callback, Body&& body) const noexcept {
    try {
      return give(std::forward<Body>(body)().with(callback));
    } catch (const std::bad_alloc&) {
      return give(Status(Code::OutOfMemory, "out of memory").with(callback));
    } catch (const std::exception& error) {
      return give(Status(Code::Internal, error.what()).with(callback));
    } catch (...) {
      return give(Status(Code::Internal, "an exception of unknown type").with(callback));
    }
  }
};

/// Pairs of texts that the host keeps, released with this object.
class Pairs {
 public:
  explicit Pairs(const Host& host) : host_(host) { host.api->CreateKeyValuePairs(&pairs_); }
  Pairs(const Host& host, OrtKeyValuePairs* pairs) : host_(host), pairs_(pairs) {}
  ~Pairs() { host_.api->ReleaseKeyValuePairs(pairs_); }
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  void add(const std::string& key, const std::string& value) {
    host_.api->AddKeyValuePair(pairs_, key.c_str(), value.c_str());
  }
  const OrtKeyValuePairs* get() const { return pairs_; }
  std::vector<std::pair<std::string, std::string>> entries() const;

 private:
  const Host& host_;
  OrtKeyValuePairs* pairs_ = nullptr;
};

}  // namespace sardonyx::plugin
