#include "plugin_host/packed_weights.h"

#include <map>
#include <mutex>

#include "base/hash.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::plugin_host {

namespace {

struct Known {
  std::mutex mutex;
  std::map<std::pair<std::string, Hash128>, std::weak_ptr<const SharedPacked>> weights;
};

Known& known() {
  static Known* const instance = new Known;
  return *instance;
}

Hash128 hash_of(const OrtSharedPrePackedWeightCache& packed) {
  std::vector<Hash128> parts;
  for (size_t i = 0; i < packed.buffers.size(); ++i) {
    const auto* bytes = static_cast<const std::byte*>(packed.buffers[i]);
    parts.push_back(hash_bytes({bytes, packed.sizes[i]}));
  }
  return hash_bytes(std::as_bytes(std::span(parts)));
}

void free_all(OrtAllocator& allocator, const OrtSharedPrePackedWeightCache& packed) {
  for (void* buffer : packed.buffers) {
    if (buffer != nullptr) allocator.Free(&allocator, buffer);
  }
}

}  // namespace

SharedPacked::~SharedPacked() { free_all(allocator_, buffers_); }
PackedWeights::~PackedWeights() { free_all(allocator_, given_); }

std::shared_ptr<const SharedPacked> PackedWeights::shared(const std::string& kind) {
  const std::pair<std::string, Hash128> key(kind, hash_of(given_));
  Known& all = known();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.weights, [](const auto& entry) { return entry.second.expired(); });
  auto& entry = all.weights[key];
  if (auto found = entry.lock()) return found;
  auto made = std::make_shared<const SharedPacked>(allocator_, std::move(given_));
  given_ = {};
  entry = made;
  return made;
}

}  // namespace sardonyx::plugin_host

namespace sardonyx::capi::ep_api {

OrtStatus* SharedPrePackedWeightCache_StoreWeightData(
    OrtSharedPrePackedWeightCache* prepacked_weight_cache, void** buffer_data_ptrs,
    size_t* buffer_data_sizes, size_t buffer_count) noexcept {
  return guarded("SharedPrePackedWeightCache_StoreWeightData", [&]() -> Status {
    SDX_TRY(require(prepacked_weight_cache, "prepacked_weight_cache"));
    SDX_TRY(require(buffer_data_ptrs, "buffer_data_ptrs"));
    SDX_TRY(require(buffer_data_sizes, "buffer_data_sizes"));
    if (buffer_count == 0) return failure(Code::InvalidArgument, "there are no buffers to store");
    if (!prepacked_weight_cache->buffers.empty()) {
      return failure(Code::InvalidArgument, "the buffers of this weight were stored before");
    }
    for (size_t i = 0; i < buffer_count; ++i) {
      if (buffer_data_sizes[i] != 0) SDX_TRY(require(buffer_data_ptrs[i], "a buffer"));
    }
    prepacked_weight_cache->buffers.assign(buffer_data_ptrs, buffer_data_ptrs + buffer_count);
    prepacked_weight_cache->sizes.assign(buffer_data_sizes, buffer_data_sizes + buffer_count);
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
