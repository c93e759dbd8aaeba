// Allocators of the program that it offers to all sessions.
#include <algorithm>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/places.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtAllocator* ProcessState::find_allocator(const OrtMemoryInfo& memory) {
  for (OrtAllocator* allocator : allocators) {
    if (is_same_memory(*allocator->Info(allocator), memory)) return allocator;
  }
  return nullptr;
}

OrtStatus* RegisterAllocator(OrtEnv* env, OrtAllocator* allocator) noexcept {
  return guarded("RegisterAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(allocator, "allocator"));
    const OrtMemoryInfo* memory = allocator->Info != nullptr ? allocator->Info(allocator) : nullptr;
    SDX_TRY(require(memory, "what the allocator says of its memory"));
    if (memory->allocator_type == OrtArenaAllocator) {
      return failure(Code::InvalidArgument,
                     "an allocator of the arena type cannot be registered: expected a device "
                     "allocator");
    }
    const std::lock_guard lock(env->process->mutex);
    auto& allocators = env->process->allocators;
    std::erase(allocators, env->process->find_allocator(*memory));
    allocators.push_back(allocator);
    return {};
  });
}

OrtStatus* UnregisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info) noexcept {
  return guarded("UnregisterAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(mem_info, "mem_info"));
    const std::lock_guard lock(env->process->mutex);
    OrtAllocator* registered = env->process->find_allocator(*mem_info);
    if (registered == nullptr) {
      return failure(Code::InvalidArgument, "no allocator is registered for memory '{}'",
                     mem_info->name);
    }
    std::erase(env->process->allocators, registered);
    return {};
  });
}

// Arenas are planned per session, so that a shared one would hold nothing: what is registered is
// the library's own allocator.
OrtStatus* CreateAndRegisterAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                                      const OrtArenaCfg*) noexcept {
  return guarded("CreateAndRegisterAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(mem_info, "mem_info"));
    if (mem_info->device_type != OrtMemoryInfoDeviceType_CPU) {
      return failure(Code::InvalidArgument,
                     "only memory of the processor can be allocated here, not '{}'",
                     mem_info->name);
    }
    const std::lock_guard lock(env->process->mutex);
    auto& allocators = env->process->allocators;
    std::erase(allocators, env->process->find_allocator(*mem_info));
    allocators.push_back(default_allocator());
    return {};
  });
}

OrtStatus* CreateAndRegisterAllocatorV2(OrtEnv* env, const char* provider_type,
                                        const OrtMemoryInfo* mem_info, const OrtArenaCfg*,
                                        const char* const*, const char* const*, size_t) noexcept {
  return guarded("CreateAndRegisterAllocatorV2", [&]() -> Status {
    SDX_TRY(require(provider_type, "provider_type"));
    if (std::string_view(provider_type) != "CPUExecutionProvider") {
      return failure(Code::InvalidArgument,
                     "provider '{}' is not built in: CreateSharedAllocator makes allocators of "
                     "plugins",
                     provider_type);
    }
    return take_status(CreateAndRegisterAllocator(env, mem_info, nullptr));
  });
}

}  // namespace sardonyx::capi
