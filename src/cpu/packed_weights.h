#pragma once

#include <memory>
#include <string_view>

#include "weights/store.h"

namespace sardonyx {

/// How much memory transformed weights may take, in bytes.
struct PackingBounds {
  /// For kernels that read the source layout nearly as fast: float products.
  std::size_t spare_bytes = 0;
  /// For kernels that would pack again at each run: convolutions and integer products. Counts
  /// everything that is packed.
  std::size_t needed_bytes = 0;
};

/// The transformed weights of one compiled part, within bounds.
///
/// Packing trades memory for speed: a kernel asks whether it may, packs if so, and otherwise reads
/// the weight in its source layout.
class PackedWeights {
 public:
  PackedWeights(WeightStore& store, PackingBounds bounds) : store_(store), bounds_(bounds) {}

  /// Whether a kernel with a fast path from the source may pack `bytes` more.
  bool may_pack_spare(std::size_t bytes) const {
    return spare_bytes_ + bytes <= bounds_.spare_bytes && may_pack(bytes);
  }
  /// Whether a kernel that needs packed weights to be fast may pack `bytes` more.
  bool may_pack(std::size_t bytes) const { return used_bytes_ + bytes <= bounds_.needed_bytes; }

  /// See WeightStore::get; counts towards the bound.
  Result<std::shared_ptr<const PackedBlob>> pack(const Tensor& source, std::string_view layout,
                                                 std::size_t size_bytes,
                                                 FunctionRef<void(std::byte*)> fill) {
    used_bytes_ += size_bytes;
    return store_.get(source, layout, size_bytes, fill);
  }
  /// The same, counted as spare too.
  Result<std::shared_ptr<const PackedBlob>> pack_spare(const Tensor& source,
                                                       std::string_view layout,
                                                       std::size_t size_bytes,
                                                       FunctionRef<void(std::byte*)> fill) {
    spare_bytes_ += size_bytes;
    return pack(source, layout, size_bytes, fill);
  }

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  WeightStore& store_;
  PackingBounds bounds_;
  std::size_t used_bytes_ = 0;
  std::size_t spare_bytes_ = 0;
};

}  // namespace sardonyx
