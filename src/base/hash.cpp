#include "base/hash.h"

// The state's type is complete with this only.
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>

namespace sardonyx {

namespace {

XXH3_state_t* state_of(std::byte* bytes) { return reinterpret_cast<XXH3_state_t*>(bytes); }

}  // namespace

Hash128 hash_bytes(std::span<const std::byte> bytes) {
  const XXH128_hash_t hash = XXH3_128bits(bytes.data(), bytes.size());
  return {hash.low64, hash.high64};
}

Hasher::Hasher() {
  static_assert(sizeof(XXH3_state_t) <= sizeof(state_) && alignof(XXH3_state_t) <= 64);
  XXH3_INITSTATE(state_of(state_));
  XXH3_128bits_reset(state_of(state_));
}

void Hasher::add(std::span<const std::byte> bytes) {
  XXH3_128bits_update(state_of(state_), bytes.data(), bytes.size());
}

Hash128 Hasher::result() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(reinterpret_cast<const XXH3_state_t*>(state_));
  return {hash.low64, hash.high64};
}

}  // namespace sardonyx
