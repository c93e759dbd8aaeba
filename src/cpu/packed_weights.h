#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
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
  /// Products are packed however large they are: for weights that are written to a file.
  bool packs_all_products = false;
};

/// What kernels asked of PackedWeights and were told, in order: what has to be told again when the
/// same graph is compiled with weights that are packed already.
struct PackingRecord {
  std::vector<bool> answers;
  struct Blob {
    std::string layout;
    std::size_t size_bytes = 0;
    /// Where the bytes are, when they are there.
    std::shared_ptr<const std::byte> bytes;
  };
  std::vector<Blob> blobs;
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

  PackedWeights(WeightStore& store, PackingBounds bounds) : store_(&store), bounds_(bounds) {}
  /// Weights that were packed before: answers and blobs are those of the record.
  explicit PackedWeights(PackingRecord record) : record_(std::move(record)), is_replay_(true) {}

  /// Whether a kernel with a fast path from the source may pack `bytes` more.
  bool may_pack_spare(std::size_t bytes);
  /// The same for a product, whose packed form is as large as its source.
  bool may_pack_product(std::size_t bytes);
  /// Whether a kernel that needs packed weights to be fast may pack `bytes` more.
  bool may_pack(std::size_t bytes);

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
  /// The same for a product, which counts as spare unless all of them are packed.
  std::shared_ptr<const PackedBlob> pack_product(const Tensor& source, std::string layout,
                                                 std::size_t size_bytes, Fill fill) {
    if (!bounds_.packs_all_products) spare_bytes_ += size_bytes;
    return pack(source, std::move(layout), size_bytes, std::move(fill));
  }

  /// Makes what was asked for, on the threads of the pool; a null pool: on the caller's.
  /// Errors   no memory for one of them; InvalidModel when not all that was recorded was asked for
  ///          again, or something else was.
  Status make_all(ThreadPool* pool);

  struct Wanted {
    Tensor source;
    std::string layout;
    Fill fill;
    std::shared_ptr<PackedBlob> blob;
  };
  /// Lets all that was asked for share one region of zeros, which takes no memory: for who wants to
  /// know what kernels need, but not run them.
  /// Errors   OutOfMemory when there are no addresses for it.
  Status pretend_all() const;
  /// What was asked for so far and is not made, in order; for who stores it instead.
  const std::vector<Wanted>& wanted() const { return wanted_; }
  /// What was answered so far; its blobs are those of wanted(), without bytes.
  PackingRecord record() const;

  std::size_t used_bytes() const { return used_bytes_; }

 private:
  Status make(Wanted& wanted) const;
  /// Notes an answer, or gives the recorded one instead.
  bool answer(bool fresh);
  std::shared_ptr<const PackedBlob> recorded_blob(std::string_view layout, std::size_t size_bytes);

  WeightStore* store_ = nullptr;
  PackingBounds bounds_;
  PackingRecord record_;
  bool is_replay_ = false;
  bool is_other_ = false;
  std::size_t next_answer_ = 0;
  std::size_t next_blob_ = 0;
  std::size_t used_bytes_ = 0;
  std::size_t spare_bytes_ = 0;
  std::vector<Wanted> wanted_;
};

}  // namespace sardonyx
