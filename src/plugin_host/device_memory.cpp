#include "plugin_host/device_memory.h"

#include <algorithm>

#include "base/text.h"
#include "capi/places.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/streams.h"

namespace sardonyx::plugin_host {

EpHandle::~EpHandle() {
  if (ep == nullptr) return;
  guarded_void(library->name(), "ReleaseEp", [&] { factory.ReleaseEp(&factory, ep); });
}

DeviceMemory::DeviceMemory(std::shared_ptr<const EpHandle> ep, const OrtMemoryInfo& memory)
    : ep_(std::move(ep)), info_(memory), place_(capi::place_of(memory)) {}

Result<std::shared_ptr<DeviceMemory>> DeviceMemory::create(std::shared_ptr<const EpHandle> ep,
                                                           const OrtMemoryInfo& memory) {
  std::shared_ptr<DeviceMemory> made(new DeviceMemory(std::move(ep), memory));
  const EpHandle& handle = *made->ep_;
  const std::string& library = handle.library->name();
  OrtAllocator* allocator = nullptr;
  if (const auto own = callback(*handle.ep, &OrtEp::CreateAllocator, 23)) {
    SDX_TRY(guarded_call(library, "OrtEp::CreateAllocator",
                         [&] { return own(handle.ep, &made->info_, &allocator); }));
  } else {
    const auto shared = callback(handle.factory, &OrtEpFactory::CreateAllocator, 23);
    SDX_TRY(require_callback(library, "OrtEpFactory::CreateAllocator", shared != nullptr));
    SDX_TRY(guarded_call(library, "CreateAllocator", [&] {
      return shared(&handle.factory, &made->info_, nullptr, &allocator);
    }));
  }
  SDX_TRY(require_complete(library, allocator));
  made->allocator_ = allocator;
  const OrtMemoryInfo* said = nullptr;
  guarded_void(library, "OrtAllocator::Info", [&] { said = allocator->Info(allocator); });
  made->keeps_blocks_ = said == nullptr || said->allocator_type != OrtArenaAllocator;
  return made;
}

DeviceMemory::~DeviceMemory() {
  if (allocator_ == nullptr) return;
  shrink();
  const auto release = callback(ep_->factory, &OrtEpFactory::ReleaseAllocator, 23);
  if (release == nullptr) return;
  guarded_void(ep_->library->name(), "ReleaseAllocator",
               [&] { release(&ep_->factory, allocator_); });
}

void DeviceMemory::free_block(void* block) {
  guarded_void(ep_->library->name(), "OrtAllocator::Free",
               [&] { allocator_->Free(allocator_, block); });
}

void* DeviceMemory::take(std::size_t bytes, OrtSyncStream* stream) {
  const std::uint64_t stream_id = stream == nullptr ? 0 : stream->id;
  if (keeps_blocks_) {
    const std::lock_guard lock(mutex_);
    const auto found = kept_.lower_bound({stream_id, bytes});
    if (found != kept_.end() && found->first.first == stream_id &&
        found->first.second - bytes <= bytes / kSlackDivisor) {
      void* block = found->second;
      kept_.erase(found);
      return block;
    }
  }
  void* block = nullptr;
  // A stream of another library would mean nothing to the allocator.
  const bool is_known = stream != nullptr && stream->library == ep_->library;
  const auto on_stream =
      allocator_->version >= 23 && is_known ? allocator_->AllocOnStream : nullptr;
  guarded_void(ep_->library->name(), "OrtAllocator::Alloc", [&] {
    block = on_stream != nullptr ? on_stream(allocator_, bytes, stream)
                                 : allocator_->Alloc(allocator_, bytes);
  });
  return block;
}

void DeviceMemory::give(void* block, Key key) {
  void* dropped = block;
  if (keeps_blocks_) {
    const std::lock_guard lock(mutex_);
    kept_.emplace(key, block);
    if (kept_.size() <= kKeptBlocksMax) return;
    const auto by_size = [](const auto& a, const auto& b) {
      return a.first.second < b.first.second;
    };
    const auto largest = std::max_element(kept_.begin(), kept_.end(), by_size);
    dropped = largest->second;
    kept_.erase(largest);
  }
  free_block(dropped);
}

void DeviceMemory::shrink() {
  std::multimap<Key, void*> dropped;
  {
    const std::lock_guard lock(mutex_);
    dropped.swap(kept_);
  }
  for (const auto& [key, block] : dropped) free_block(block);
}

Result<Tensor> DeviceMemory::allocate(DType dtype, const Shape& shape, OrtSyncStream* stream) {
  const auto count = shape.element_count();
  const auto bytes = count ? dtype_bytes(dtype, *count) : std::nullopt;
  if (dtype == DType::String || dtype == DType::Undefined || !bytes) {
    return failure(Code::InvalidArgument, "no tensor({}) of shape {} can lie in '{}' memory",
                   dtype_name(dtype), shape.to_string(), info_.name);
  }
  // Something that keeps the memory alive also where there are no bytes.
  if (*bytes == 0)
    return tensor_at(place_, dtype, shape, nullptr, [self = shared_from_this()](void*) {});
  void* block = take(*bytes, stream);
  if (block == nullptr) {
    return failure(Code::OutOfMemory,
                   "plugin library '{}': OrtAllocator::Alloc has no '{}' memory for {} bytes",
                   ep_->library->name(), info_.name, *bytes);
  }
  return tensor_at(place_, dtype, shape, block,
                   [self = shared_from_this(),
                    key = Key(stream == nullptr ? 0 : stream->id, *bytes)](void* freed) mutable {
                     self->give(freed, key);
                     // Weak references to the tensor keep this function: it lets go of the memory
                     // itself.
                     self.reset();
                   });
}

}  // namespace sardonyx::plugin_host
