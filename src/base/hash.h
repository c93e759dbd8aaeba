#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace sardonyx {

/// 128-bit content hash.
struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Hash128&, const Hash128&) = default;
  friend auto operator<=>(const Hash128&, const Hash128&) = default;
};

/// XXH3-128 of the bytes. Cost: one pass, about memory speed.
Hash128 hash_bytes(std::span<const std::byte> bytes);

/// The same of bytes that come in pieces.
class Hasher {
 public:
  Hasher();

  void add(std::span<const std::byte> bytes);
  Hash128 result() const;

 private:
  /// Of the library that hashes; its size is checked there.
  alignas(64) std::byte state_[576];
};

}  // namespace sardonyx
