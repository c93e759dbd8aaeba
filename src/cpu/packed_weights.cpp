#include "cpu/packed_weights.h"

#include <algorithm>
#include <utility>

namespace sardonyx {

std::shared_ptr<const PackedBlob> PackedWeights::pack(const Tensor& source, std::string layout,
                                                      std::size_t size_bytes, Fill fill) {
  used_bytes_ += size_bytes;
  auto blob = std::make_shared<PackedBlob>(PackedBlob{nullptr, size_bytes});
  wanted_.push_back({source, std::move(layout), std::move(fill), blob});
  return blob;
}

Status PackedWeights::make(Wanted& wanted) const {
  PackedBlob& blob = *wanted.blob;
  SDX_ASSIGN(const auto made,
             store_.get(wanted.source, wanted.layout, blob.size_bytes, wanted.fill));
  blob.bytes = std::shared_ptr<const std::byte>(made, made->bytes.get());
  return {};
}

Status PackedWeights::make_all(ThreadPool* pool) {
  // The large ones first: threads end together.
  std::stable_sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) {
    return a.blob->size_bytes > b.blob->size_bytes;
  });
  const auto count = static_cast<std::int64_t>(wanted_.size());
  std::vector<Status> statuses(wanted_.size());
  const auto make_some = [&](std::int64_t begin, std::int64_t end) {
    for (auto i = static_cast<std::size_t>(begin); i < static_cast<std::size_t>(end); ++i) {
      statuses[i] = make(wanted_[i]);
    }
  };
  pool == nullptr ? make_some(0, count) : pool->parallel_for(count, 1, make_some);
  wanted_.clear();
  for (Status& status : statuses) SDX_TRY(std::move(status));
  return {};
}

}  // namespace sardonyx
