#include "cpu/packed_weights.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace sardonyx {

bool PackedWeights::answer(bool fresh) {
  if (!is_replay_) {
    record_.answers.push_back(fresh);
    return fresh;
  }
  if (next_answer_ == record_.answers.size()) {
    is_other_ = true;
    return false;
  }
  return record_.answers[next_answer_++];
}

bool PackedWeights::may_pack_spare(std::size_t bytes) {
  return answer(spare_bytes_ + bytes <= bounds_.spare_bytes &&
                used_bytes_ + bytes <= bounds_.needed_bytes);
}

bool PackedWeights::may_pack_product(std::size_t bytes) {
  if (bounds_.packs_all_products) return answer(true);
  return may_pack_spare(bytes);
}

bool PackedWeights::may_pack(std::size_t bytes) {
  return answer(bounds_.packs_all_products || used_bytes_ + bytes <= bounds_.needed_bytes);
}

std::shared_ptr<const PackedBlob> PackedWeights::recorded_blob(std::string_view layout,
                                                               std::size_t size_bytes) {
  auto blob = std::make_shared<PackedBlob>(PackedBlob{nullptr, size_bytes});
  const bool fits = next_blob_ < record_.blobs.size() &&
                    record_.blobs[next_blob_].layout == layout &&
                    record_.blobs[next_blob_].size_bytes == size_bytes;
  if (fits) {
    blob->bytes = std::move(record_.blobs[next_blob_++].bytes);
  } else {
    is_other_ = true;
  }
  return blob;
}

PackingRecord PackedWeights::record() const {
  PackingRecord record = record_;
  for (const Wanted& wanted : wanted_) {
    record.blobs.push_back({wanted.layout, wanted.blob->size_bytes, nullptr});
  }
  return record;
}

std::shared_ptr<const PackedBlob> PackedWeights::pack(const Tensor& source, std::string layout,
                                                      std::size_t size_bytes, Fill fill) {
  used_bytes_ += size_bytes;
  if (is_replay_) return recorded_blob(layout, size_bytes);
  auto blob = std::make_shared<PackedBlob>(PackedBlob{nullptr, size_bytes});
  wanted_.push_back({source, std::move(layout), std::move(fill), blob});
  return blob;
}

Status PackedWeights::make(Wanted& wanted) const {
  PackedBlob& blob = *wanted.blob;
  SDX_ASSIGN(const auto made,
             store_->get(wanted.source, wanted.layout, blob.size_bytes, wanted.fill));
  blob.bytes = std::shared_ptr<const std::byte>(made, made->bytes.get());
  return {};
}

Status PackedWeights::make_all(ThreadPool* pool) {
  if (is_replay_) {
    const bool is_same = !is_other_ && next_answer_ == record_.answers.size() &&
                         next_blob_ == record_.blobs.size();
    if (is_same) return {};
    return Status(Code::InvalidModel, "its packed weights are not those that its program needs");
  }
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

Status PackedWeights::pretend_all() const {
  std::size_t most_bytes = 1;
  for (const Wanted& wanted : wanted_) {
    most_bytes = std::max(most_bytes, wanted.blob->size_bytes);
  }
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* zeros = ::mmap(nullptr, most_bytes, PROT_READ, kFlags, -1, 0);
  if (zeros == MAP_FAILED) {
    return failure(Code::OutOfMemory, "no addresses for a region of {} bytes", most_bytes);
  }
  const std::shared_ptr<const std::byte> shared(
      static_cast<const std::byte*>(zeros), [most_bytes](const std::byte* region) {
        ::munmap(const_cast<std::byte*>(region), most_bytes);
      });
  for (const Wanted& wanted : wanted_) wanted.blob->bytes = shared;
  return {};
}

}  // namespace sardonyx
