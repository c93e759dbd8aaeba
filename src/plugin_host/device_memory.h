#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "capi/handles.h"
#include "plugin_host/ep_handle.h"

namespace sardonyx::plugin_host {

/// An allocator of a plugin for one of its memories. Tensors that it makes keep it alive. Freed
/// blocks are kept for tensors of about the same size on the same stream, unless the plugin says
/// that it keeps an arena itself: what the stream has queued may still use a block that nobody
/// holds any more, and what it gets to do later comes after that.
class DeviceMemory : public std::enable_shared_from_this<DeviceMemory> {
 public:
  /// Asks the provider for the allocator, or its factory when the provider makes none.
  /// Errors   those of CreateAllocator; Internal when it returns none.
  static Result<std::shared_ptr<DeviceMemory>> create(std::shared_ptr<const EpHandle> ep,
                                                      const OrtMemoryInfo& memory);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// `stream`: what will use the tensor, null for use by the calling thread.
  /// Errors   OutOfMemory, naming library and size.
  Result<Tensor> allocate(DType dtype, const Shape& shape, OrtSyncStream* stream = nullptr);
  /// Gives kept blocks back.
  void shrink();

  OrtAllocator& allocator() const { return *allocator_; }
  const OrtMemoryInfo& info() const { return info_; }
  /// Null for memory that the processor reads.
  const Place* place() const { return place_; }

 private:
  /// A block of at most this much more than is needed is taken instead of a new one.
  static constexpr std::size_t kSlackDivisor = 8;
  static constexpr std::size_t kKeptBlocksMax = 64;

  DeviceMemory(std::shared_ptr<const EpHandle> ep, const OrtMemoryInfo& memory);
  /// Of a kept block: the stream's id, 0 for none, and the size.
  using Key = std::pair<std::uint64_t, std::size_t>;

  void* take(std::size_t bytes, OrtSyncStream* stream);
  void give(void* block, Key key);
  void free_block(void* block);

  std::shared_ptr<const EpHandle> ep_;
  OrtMemoryInfo info_;
  const Place* place_;
  OrtAllocator* allocator_ = nullptr;
  bool keeps_blocks_ = true;
  std::mutex mutex_;
  std::multimap<Key, void*> kept_;
};

}  // namespace sardonyx::plugin_host
