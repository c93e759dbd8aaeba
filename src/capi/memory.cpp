#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string_view>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/places.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

void* allocate(OrtAllocator*, size_t size) {
  const size_t rounded = (size + 63) / 64 * 64;
  if (rounded < size) return nullptr;
  return std::aligned_alloc(64, rounded == 0 ? 64 : rounded);
}

void release(OrtAllocator*, void* memory) { std::free(memory); }

const OrtMemoryInfo* info(const OrtAllocator*) { return &cpu_memory_info(); }

/// A memory that programs name, whether or not anything here can use it.
struct MemoryKind {
  std::string_view name;
  OrtMemoryInfoDeviceType device;
  uint32_t vendor_id;
  OrtDeviceMemoryType memory;
};

constexpr MemoryKind kMemoryKinds[] = {
    {"Cpu", OrtMemoryInfoDeviceType_CPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"Cuda", OrtMemoryInfoDeviceType_GPU, 0x10DE, OrtDeviceMemoryType_DEFAULT},
    {"CudaPinned", OrtMemoryInfoDeviceType_GPU, 0x10DE, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"DML", OrtMemoryInfoDeviceType_GPU, 0x1414, OrtDeviceMemoryType_DEFAULT},
    {"Hip", OrtMemoryInfoDeviceType_GPU, 0x1002, OrtDeviceMemoryType_DEFAULT},
    {"HipPinned", OrtMemoryInfoDeviceType_GPU, 0x1002, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"OpenVINO_GPU", OrtMemoryInfoDeviceType_GPU, 0x8086, OrtDeviceMemoryType_DEFAULT},
    {"OpenVINO_RT_NPU", OrtMemoryInfoDeviceType_NPU, 0x8086, OrtDeviceMemoryType_DEFAULT},
    {"QnnHtpShared", OrtMemoryInfoDeviceType_CPU, 0x5143, OrtDeviceMemoryType_HOST_ACCESSIBLE},
    {"WebGPU_Buffer", OrtMemoryInfoDeviceType_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebGPU_Buf", OrtMemoryInfoDeviceType_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebNN_Tensor", OrtMemoryInfoDeviceType_GPU, 0, OrtDeviceMemoryType_DEFAULT},
    {"WebNN_Ten", OrtMemoryInfoDeviceType_GPU, 0, OrtDeviceMemoryType_DEFAULT},
};

/// Hands every call on: allocators of plugins are objects that know their own address.
struct HandedAllocator : OrtAllocator {
  OrtAllocator* target = nullptr;
  std::shared_ptr<const void> keep;
};

OrtAllocator* target_of(const OrtAllocator* self) {
  return static_cast<const HandedAllocator*>(self)->target;
}

void* hand_alloc(OrtAllocator* self, size_t size) {
  OrtAllocator* target = target_of(self);
  return target->Alloc(target, size);
}

void* hand_reserve(OrtAllocator* self, size_t size) {
  OrtAllocator* target = target_of(self);
  const bool reserves = target->version >= 18 && target->Reserve != nullptr;
  return reserves ? target->Reserve(target, size) : target->Alloc(target, size);
}

void hand_free(OrtAllocator* self, void* memory) {
  OrtAllocator* target = target_of(self);
  target->Free(target, memory);
}

const OrtMemoryInfo* hand_info(const OrtAllocator* self) {
  const OrtAllocator* target = target_of(self);
  return target->Info(target);
}

OrtStatus* hand_stats(const OrtAllocator* self, OrtKeyValuePairs** out) noexcept {
  return AllocatorGetStats(target_of(self), out);
}

}  // namespace

HeldAllocator hold(OrtAllocator* allocator) {
  if (allocator == nullptr || allocator->Free != hand_free) return {allocator, nullptr};
  const auto& handle = *static_cast<const HandedAllocator*>(allocator);
  return {handle.target, handle.keep};
}

void HeldAllocator::free(void* memory) const noexcept {
  const Status status = take_status(guarded("OrtAllocator::Free", [&]() -> Status {
    allocator->Free(allocator, memory);
    return {};
  }));
  if (!status.ok()) log(Severity::Error, "{}", status.to_string());
}

OrtAllocator* new_allocator(OrtAllocator& target, std::shared_ptr<const void> keep) {
  auto made = std::make_unique<HandedAllocator>();
  made->version = ORT_API_VERSION;
  made->Alloc = hand_alloc;
  made->Free = hand_free;
  made->Info = hand_info;
  made->Reserve = hand_reserve;
  made->GetStats = hand_stats;
  made->target = &target;
  made->keep = std::move(keep);
  return made.release();
}

const OrtMemoryInfo& cpu_memory_info() {
  static const OrtMemoryInfo instance;
  return instance;
}

OrtAllocator* default_allocator() {
  static OrtAllocator instance = [] {
    OrtAllocator made{};
    made.version = ORT_API_VERSION;
    made.Alloc = allocate;
    made.Free = release;
    made.Info = info;
    made.Reserve = allocate;
    return made;
  }();
  return &instance;
}

Status require(const void* pointer, const char* parameter) {
  if (pointer != nullptr) return {};
  return failure(Code::InvalidArgument, "{} should not be null", parameter);
}

Status copy_text(OrtAllocator* allocator, const std::string& text, char** out) {
  SDX_TRY(require(allocator, "allocator"));
  SDX_TRY(require(out, "the place for the text"));
  auto* memory = static_cast<char*>(allocator->Alloc(allocator, text.size() + 1));
  if (memory == nullptr) return failure(Code::OutOfMemory, "no memory for {} bytes", text.size());
  std::memcpy(memory, text.c_str(), text.size() + 1);
  *out = memory;
  return {};
}

namespace {

constexpr std::string_view kArenaKeys[] = {"max_mem",
                                           "arena_extend_strategy",
                                           "initial_chunk_size_bytes",
                                           "max_dead_bytes_per_chunk",
                                           "initial_growth_chunk_size_bytes",
                                           "max_power_of_two_extend_bytes",
                                           "use_cuda_mempool",
                                           "cuda_mempool_release_threshold",
                                           "cuda_mempool_bytes_to_keep_on_shrink"};

Status check_arena_key(const char* key) {
  SDX_TRY(require(key, "a key"));
  for (const std::string_view known : kArenaKeys) {
    if (known == key) return {};
  }
  return failure(Code::InvalidArgument, "Invalid key found: {}", key);
}

}  // namespace

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type,
                            OrtMemoryInfo** out) noexcept {
  return guarded("CreateMemoryInfo", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtMemoryInfo>();
    made->name = name;
    made->allocator_type = type;
    made->id = id;
    made->mem_type = mem_type;
    const auto* kind = std::find_if(std::begin(kMemoryKinds), std::end(kMemoryKinds),
                                    [&](const MemoryKind& known) { return known.name == name; });
    if (kind == std::end(kMemoryKinds)) {
      return failure(Code::InvalidArgument, "memory '{}' is not known: it should be Cpu, Cuda, ...",
                     name);
    }
    made->device_type = kind->device;
    made->vendor_id = kind->vendor_id;
    made->device_memory = kind->memory;
    *out = made.release();
    return {};
  });
}

OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device_type,
                               uint32_t vendor_id, int32_t device_id, OrtDeviceMemoryType mem_type,
                               size_t alignment, OrtAllocatorType allocator_type,
                               OrtMemoryInfo** out) noexcept {
  return guarded("CreateMemoryInfo_V2", [&]() -> Status {
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(out, "out"));
    *out = new OrtMemoryInfo{name,        allocator_type, OrtMemTypeDefault, device_id,
                             device_type, vendor_id,      mem_type,          alignment};
    return {};
  });
}

OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type,
                               OrtMemoryInfo** out) noexcept {
  return guarded("CreateCpuMemoryInfo", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtMemoryInfo>();
    made->allocator_type = type;
    made->mem_type = mem_type;
    *out = made.release();
    return {};
  });
}

void ReleaseMemoryInfo(OrtMemoryInfo* object) noexcept { delete object; }

OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* info1, const OrtMemoryInfo* info2,
                             int* out) noexcept {
  return guarded("CompareMemoryInfo", [&]() -> Status {
    SDX_TRY(require(info1, "info1"));
    SDX_TRY(require(info2, "info2"));
    SDX_TRY(require(out, "out"));
    const bool is_same = info1->name == info2->name && info1->id == info2->id &&
                         info1->mem_type == info2->mem_type &&
                         info1->allocator_type == info2->allocator_type;
    *out = is_same ? 0 : -1;
    return {};
  });
}

OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* ptr, const char** out) noexcept {
  return guarded("MemoryInfoGetName", [&]() -> Status {
    SDX_TRY(require(ptr, "ptr"));
    SDX_TRY(require(out, "out"));
    *out = ptr->name.c_str();
    return {};
  });
}

OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* ptr, int* out) noexcept {
  return guarded("MemoryInfoGetId", [&]() -> Status {
    SDX_TRY(require(ptr, "ptr"));
    SDX_TRY(require(out, "out"));
    *out = ptr->id;
    return {};
  });
}

OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* ptr, OrtMemType* out) noexcept {
  return guarded("MemoryInfoGetMemType", [&]() -> Status {
    SDX_TRY(require(ptr, "ptr"));
    SDX_TRY(require(out, "out"));
    *out = ptr->mem_type;
    return {};
  });
}

OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* ptr, OrtAllocatorType* out) noexcept {
  return guarded("MemoryInfoGetType", [&]() -> Status {
    SDX_TRY(require(ptr, "ptr"));
    SDX_TRY(require(out, "out"));
    *out = ptr->allocator_type;
    return {};
  });
}

void MemoryInfoGetDeviceType(const OrtMemoryInfo* ptr, OrtMemoryInfoDeviceType* out) noexcept {
  if (ptr == nullptr || out == nullptr) return;
  *out = ptr->device_type;
}

OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* ptr) noexcept {
  if (ptr == nullptr) return {};
  return ptr->device_memory;
}

uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* ptr) noexcept {
  if (ptr == nullptr) return {};
  return ptr->vendor_id;
}

OrtStatus* AllocatorAlloc(OrtAllocator* ort_allocator, size_t size, void** out) noexcept {
  return guarded("AllocatorAlloc", [&]() -> Status {
    SDX_TRY(require(ort_allocator, "ort_allocator"));
    SDX_TRY(require(out, "out"));
    *out = ort_allocator->Alloc(ort_allocator, size);
    if (*out != nullptr) return {};
    return failure(Code::Runtime, "no memory for {} bytes", size);
  });
}

OrtStatus* AllocatorFree(OrtAllocator* ort_allocator, void* memory) noexcept {
  return guarded("AllocatorFree", [&]() -> Status {
    SDX_TRY(require(ort_allocator, "ort_allocator"));
    if (memory != nullptr) ort_allocator->Free(ort_allocator, memory);
    return {};
  });
}

OrtStatus* AllocatorGetInfo(const OrtAllocator* ort_allocator, const OrtMemoryInfo** out) noexcept {
  return guarded("AllocatorGetInfo", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(ort_allocator, "ort_allocator"));
    *out = ort_allocator->Info(ort_allocator);
    return {};
  });
}

OrtStatus* AllocatorGetStats(const OrtAllocator* ort_allocator, OrtKeyValuePairs** out) noexcept {
  return guarded("AllocatorGetStats", [&]() -> Status {
    SDX_TRY(require(ort_allocator, "ort_allocator"));
    SDX_TRY(require(out, "out"));
    constexpr uint32_t kSinceVersion = 23;
    if (ort_allocator->version >= kSinceVersion && ort_allocator->GetStats != nullptr) {
      return take_status(ort_allocator->GetStats(ort_allocator, out));
    }
    *out = new OrtKeyValuePairs;
    return {};
  });
}

OrtStatus* GetAllocatorWithDefaultOptions(OrtAllocator** out) noexcept {
  return guarded("GetAllocatorWithDefaultOptions", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    *out = default_allocator();
    return {};
  });
}

void ReleaseAllocator(OrtAllocator* object) noexcept {
  if (object != default_allocator()) delete static_cast<HandedAllocator*>(object);
}

OrtStatus* CreateArenaCfg(size_t max_mem, int arena_extend_strategy, int initial_chunk_size_bytes,
                          int max_dead_bytes_per_chunk, OrtArenaCfg** out) noexcept {
  return guarded("CreateArenaCfg", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtArenaCfg>();
    made->entries = {{"max_mem", max_mem},
                     {"arena_extend_strategy", static_cast<size_t>(arena_extend_strategy)},
                     {"initial_chunk_size_bytes", static_cast<size_t>(initial_chunk_size_bytes)},
                     {"max_dead_bytes_per_chunk", static_cast<size_t>(max_dead_bytes_per_chunk)}};
    *out = made.release();
    return {};
  });
}

OrtStatus* CreateArenaCfgV2(const char* const* arena_config_keys, const size_t* arena_config_values,
                            size_t key_count, OrtArenaCfg** out) noexcept {
  return guarded("CreateArenaCfgV2", [&]() -> Status {
    if (key_count != 0) SDX_TRY(require(arena_config_keys, "arena_config_keys"));
    if (key_count != 0) SDX_TRY(require(arena_config_values, "arena_config_values"));
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtArenaCfg>();
    for (size_t i = 0; i < key_count; ++i) {
      SDX_TRY(check_arena_key(arena_config_keys[i]));
      made->entries[arena_config_keys[i]] = arena_config_values[i];
    }
    *out = made.release();
    return {};
  });
}

void ReleaseArenaCfg(OrtArenaCfg* object) noexcept { delete object; }

}  // namespace sardonyx::capi
