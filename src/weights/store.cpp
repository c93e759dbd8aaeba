#include "weights/store.h"

#include <cstdlib>

#include "base/memory.h"
#include "base/text.h"

namespace sardonyx {

Result<std::shared_ptr<const PackedBlob>> WeightStore::get(const Tensor& source,
                                                           std::string_view layout,
                                                           std::size_t size_bytes,
                                                           FunctionRef<void(std::byte*)> fill) {
  const Key key{hash_bytes({source.data(), source.byte_size()}), source.byte_size(),
                std::string(layout)};
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = blobs_.find(key); found != blobs_.end()) {
      if (auto blob = found->second.lock()) return blob;
      blobs_.erase(found);
    }
  }
  auto* memory = static_cast<std::byte*>(allocate_aligned(size_bytes));
  if (memory == nullptr) {
    return failure(Code::OutOfMemory, "no memory for a packed weight of {} bytes", size_bytes);
  }
  std::shared_ptr<const std::byte> bytes(memory, [](const std::byte* pointer) {
    std::free(const_cast<std::byte*>(pointer));
  });
  fill(memory);
  std::shared_ptr<const PackedBlob> made =
      std::make_shared<PackedBlob>(PackedBlob{std::move(bytes), size_bytes});
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const PackedBlob>& entry = blobs_[key];
  if (auto other = entry.lock()) return other;
  entry = made;
  return made;
}

std::size_t WeightStore::live_bytes() const {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0;
  for (const auto& [key, blob] : blobs_) {
    if (const auto live = blob.lock()) total += live->size_bytes;
  }
  return total;
}

}  // namespace sardonyx
