#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "base/function_ref.h"
#include "base/hash.h"
#include "base/status.h"
#include "ir/tensor.h"

namespace sardonyx {

/// A weight in a layout other than its source's; 64-byte aligned, never changed.
struct PackedBlob {
  std::shared_ptr<const std::byte> bytes;
  std::size_t size_bytes = 0;
};

/// Transformed weights of all sessions of an environment, one copy per content and layout.
///
/// A blob lives as long as somebody holds it. Thread-safe; two threads that ask for the same blob
/// at once may both fill one, of which one is kept.
class WeightStore {
 public:
  /// The blob of `source` in `layout`, made by `fill` (which must write all `size_bytes` bytes)
  /// unless it exists.
  /// Cost     hashes the source; fills at most once per content while a holder lives.
  Result<std::shared_ptr<const PackedBlob>> get(const Tensor& source, std::string_view layout,
                                                std::size_t size_bytes,
                                                FunctionRef<void(std::byte*)> fill);

  /// Bytes of all living blobs.
  std::size_t live_bytes() const;

 private:
  struct Key {
    Hash128 content;
    std::size_t source_bytes;
    std::string layout;
    auto operator<=>(const Key&) const = default;
  };
  mutable std::mutex mutex_;
  std::map<Key, std::weak_ptr<const PackedBlob>> blobs_;
};

}  // namespace sardonyx
