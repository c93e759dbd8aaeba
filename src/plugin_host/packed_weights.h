#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

/// Where a kernel leaves the buffers of a weight that it packed, so that they can be shared.
struct OrtSharedPrePackedWeightCache {
  std::vector<void*> buffers;
  std::vector<size_t> sizes;
};

namespace sardonyx::plugin_host {

/// Buffers of one packed weight; given back to their allocator with the last user.
class SharedPacked {
 public:
  SharedPacked(OrtAllocator& allocator, OrtSharedPrePackedWeightCache buffers)
      : allocator_(allocator), buffers_(std::move(buffers)) {}
  ~SharedPacked();
  SharedPacked(const SharedPacked&) = delete;
  SharedPacked& operator=(const SharedPacked&) = delete;

  const void* const* data() const { return buffers_.buffers.data(); }
  const size_t* sizes() const { return buffers_.sizes.data(); }
  size_t count() const { return buffers_.buffers.size(); }

 private:
  OrtAllocator& allocator_;
  OrtSharedPrePackedWeightCache buffers_;
};

/// What one kernel packs of one weight, in memory of the processor.
class PackedWeights {
 public:
  explicit PackedWeights(OrtAllocator& allocator) : allocator_(allocator) {}
  ~PackedWeights();
  PackedWeights(const PackedWeights&) = delete;
  PackedWeights& operator=(const PackedWeights&) = delete;

  OrtSharedPrePackedWeightCache* handle() { return &given_; }
  bool has_buffers() const { return !given_.buffers.empty(); }
  /// The buffers; those that someone of the same `kind` packed before when their bytes are equal.
  std::shared_ptr<const SharedPacked> shared(const std::string& kind);

 private:
  OrtAllocator& allocator_;
  OrtSharedPrePackedWeightCache given_;
};

}  // namespace sardonyx::plugin_host
