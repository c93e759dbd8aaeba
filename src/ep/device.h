#pragma once

#include "ep/provider.h"

namespace sardonyx {

/// A memory that the processor cannot read, where tensors of a device lie. There is one object per
/// memory, which lives as long as the process: places are compared by address. The processor's
/// memory is a null pointer.
class Place {
 public:
  virtual ~Place() = default;
  /// Who allocates there, for messages.
  virtual const char* name() const = 0;
};

/// Frees a block of a device's memory; the type of such an owner's deleter is what tells where a
/// tensor lies.
class PlacedOwner {
 public:
  /// `free_block` may be empty, for memory of the caller.
  PlacedOwner(const Place* place, std::function<void(void*)> free_block)
      : place_(place), free_block_(std::move(free_block)) {}
  const Place* place() const { return place_; }
  bool frees() const { return static_cast<bool>(free_block_); }
  void operator()(void* block) const {
    if (free_block_) free_block_(block);
  }

 private:
  const Place* place_;
  std::function<void(void*)> free_block_;
};

/// A tensor over memory at a place (null: the processor's). Its data() is what the device's
/// provider calls an address: only parts that ask for inputs at that place, and the provider
/// itself, read it. Errors of size are the caller's; `free_block` gets `data` with the last handle.
Tensor tensor_at(const Place* place, DType dtype, const Shape& shape, void* data,
                 std::function<void(void*)> free_block = nullptr);

/// Where the tensor lies; null: in the processor's memory.
inline const Place* place_of(const Tensor& tensor) {
  if (tensor.owner() == nullptr) return nullptr;
  const auto* owner = std::get_deleter<PlacedOwner>(tensor.owner());
  return owner == nullptr ? nullptr : owner->place();
}

/// Whether the tensor keeps its memory alive, which memory of the caller is not.
inline bool keeps_memory(const Tensor& tensor) {
  if (tensor.owner() == nullptr) return false;
  const auto* owner = std::get_deleter<PlacedOwner>(tensor.owner());
  return owner == nullptr || owner->frees();
}

/// A part that reads or writes tensors in a device's memory.
class DeviceCompiled : public Compiled {
 public:
  /// Where input i has to lie, and where output i can be written if the caller gives it. Outputs
  /// that are not given may lie anywhere.
  virtual const Place* input_place(std::size_t i) const = 0;
  virtual const Place* output_place(std::size_t i) const = 0;
};

/// A provider whose devices have memory of their own.
class DeviceProvider : public Provider {
 public:
  /// Whether it moves tensors from one memory to the other, null being the processor's.
  virtual bool can_copy(const Place* from, const Place* to) const = 0;
  /// Copies the elements; types and shapes are equal, and can_copy() was asked.
  virtual Status copy(const Tensor& from, Tensor& to) const = 0;
  /// A tensor in a memory of this provider.
  /// Errors   InvalidArgument for a place that is not its own; OutOfMemory.
  virtual Result<Tensor> allocate(const Place& place, DType dtype, const Shape& shape) const = 0;

  /// Whether tensors at that place are made by this provider.
  virtual bool has_place(const Place& place) const = 0;
  /// Waits, in this run, for what the provider has queued: in the queue of `consumer`, or, when
  /// that is null, on the calling thread.
  virtual Status settle(const DeviceProvider* consumer) const = 0;

  /// Does a run again that was captured, in the memory that it was captured with, instead of
  /// running the parts; false when there is none.
  virtual Result<bool> replay(const void* caller_options) const = 0;
  /// Whether the provider captures such a run and needs another one for it.
  virtual bool wants_another_run(const void* caller_options) const = 0;

  /// The nodes of `free` that it would run only with channels last: the session rewrites them as
  /// nodes of the domain com.ms.internal.nhwc before it asks what the provider offers.
  virtual Result<std::vector<NodeId>> wants_channels_last(const Model& model,
                                                          std::span<const NodeId> free) const = 0;
};

/// The provider as one with memory of its own, or null.
inline const DeviceProvider* as_device(const Provider& provider) {
  return dynamic_cast<const DeviceProvider*>(&provider);
}

}  // namespace sardonyx
