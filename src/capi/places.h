#pragma once

#include "capi/handles.h"

namespace sardonyx::capi {

/// The place of tensors in that memory; null for memory that the processor reads. Equal devices
/// have one place, whatever names their memory goes by.
const Place* place_of(const OrtMemoryInfo& memory);

/// Whether both name the same memory of the same device.
inline bool is_same_memory(const OrtMemoryInfo& a, const OrtMemoryInfo& b) {
  return a.device_type == b.device_type && a.vendor_id == b.vendor_id && a.id == b.id &&
         a.device_memory == b.device_memory;
}

/// The memory info of tensors at a place.
const OrtMemoryInfo& memory_at(const Place* place);

/// A handle of a value, with the memory info of where it lies.
OrtValue* new_value(Datum datum);

/// A handle that ReleaseAllocator takes, for an allocator that `keep` keeps alive.
OrtAllocator* new_allocator(OrtAllocator& target, std::shared_ptr<const void> keep = nullptr);

}  // namespace sardonyx::capi
