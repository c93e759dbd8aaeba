#include "base/hash.h"

#include <xxhash.h>

namespace sardonyx {

Hash128 hash_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

}  // namespace sardonyx
