#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
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
/// the weight in its source layout. What is asked for is made when all of it is known, so that
/// threads share the work.
class PackedWeights {
 public:
  /// Writes all bytes of a blob. Holds what it needs by value: the kernel may be gone.
  using Fill = std::function<void(std::byte* target)>;

  PackedWeights(WeightStore& store, PackingBounds bounds) : store_(store), bounds_(bounds) {}

  /// Whether a kernel with a fast path from the source may pack `bytes` more.
  bool may_pack_spare(std::size_t bytes) const {
    return spare_bytes_ + bytes <= bounds_.spare_bytes && may_pack(bytes);
  }
  /// Whether a kernel that needs packed weights to be fast may pack `bytes` more.
  bool may_pack(std::size_t bytes) const { return used_bytes_ + bytes <= bounds_.needed_bytes; }

  /// A blob that has its bytes after make_all(), see WeightStore::get; counts towards the bound.
  /// The bytes of `source` stay where they are until then.
  std::shared_ptr<const PackedBlob> pack(const Tensor& source, std::string layout,
                                         std::size_t size_bytes, Fill fill);
  /// The same, counted as spare too.
  std::shared_ptr<const PackedBlob> pack_spare(const Tensor& source, std::string layout,
                                               std::size_t size_bytes, Fill fill) {
    spare_bytes_ += size_bytes;
    return pack(source, std::move(layout), size_bytes, std::move(fill));
  }

  /// Makes what was asked for, on the threads of the pool; a null pool: on the caller's.
  /// Errors   no memory for one of them.
  Status make_all(ThreadPool* pool);

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  struct Wanted {
    Tensor source;
    std::string layout;
    Fill fill;
    std::shared_ptr<PackedBlob> blob;
  };
  Status make(Wanted& wanted) const;

  WeightStore& store_;
  PackingBounds bounds_;
  std::size_t used_bytes_ = 0;
  std::size_t spare_bytes_ = 0;
  std::vector<Wanted> wanted_;
};

}  // namespace sardonyx
