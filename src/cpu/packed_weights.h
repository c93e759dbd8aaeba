#pragma once

#include <memory>
#include <string_view>

#include "weights/store.h"

namespace sardonyx {

/// The transformed weights of one compiled part, within a bound.
///
/// Packing trades memory for speed: a kernel asks whether it may, packs if so, and otherwise reads
/// the weight in its source layout.
class PackedWeights {
 public:
  PackedWeights(WeightStore& store, std::size_t bytes_max)
      : store_(store), bytes_max_(bytes_max) {}

  /// Whether `bytes` more fit into the bound.
  bool may_pack(std::size_t bytes) const { return used_bytes_ + bytes <= bytes_max_; }

  /// See WeightStore::get; counts towards the bound.
  Result<std::shared_ptr<const PackedBlob>> pack(const Tensor& source, std::string_view layout,
                                                 std::size_t size_bytes,
                                                 FunctionRef<void(std::byte*)> fill) {
    used_bytes_ += size_bytes;
    return store_.get(source, layout, size_bytes, fill);
  }

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  WeightStore& store_;
  std::size_t bytes_max_;
  std::size_t used_bytes_ = 0;
};

}  // namespace sardonyx
