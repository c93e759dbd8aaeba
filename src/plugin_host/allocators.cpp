// Allocators of plugins for their devices' memory, which all sessions may use.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/places.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/provider.h"
#include "plugin_host/registry.h"
#include "plugin_host/streams.h"

namespace sardonyx::plugin_host {

SharedAllocator::~SharedAllocator() {
  if (allocator == nullptr) return;
  const auto release = callback(*factory, &OrtEpFactory::ReleaseAllocator, 23);
  if (release == nullptr) return;
  guarded_void(library->name(), "ReleaseAllocator", [&] { release(factory, allocator); });
}

OrtAllocator* Registry::shared_allocator(const OrtMemoryInfo& memory) const {
  const std::lock_guard lock(mutex_);
  for (const auto& shared : allocators_) {
    if (capi::is_same_memory(*shared->memory, memory)) return shared->allocator;
  }
  return nullptr;
}

Result<OrtAllocator*> Registry::create_allocator(const OrtEpDevice& device,
                                                 const OrtMemoryInfo& memory,
                                                 const OrtKeyValuePairs* options) {
  auto made = std::make_unique<SharedAllocator>();
  made->library = device.library.lock();
  if (made->library == nullptr) {
    return failure(Code::InvalidArgument, "the library of provider '{}' was unregistered",
                   device.ep_name);
  }
  made->factory = device.factory;
  made->memory = &memory;
  const auto create = callback(*device.factory, &OrtEpFactory::CreateAllocator, 23);
  SDX_TRY(
      require_callback(made->library->name(), "OrtEpFactory::CreateAllocator", create != nullptr));
  OrtAllocator* allocator = nullptr;
  SDX_TRY(guarded_call(made->library->name(), "CreateAllocator",
                       [&] { return create(device.factory, &memory, options, &allocator); }));
  SDX_TRY(require_complete(made->library->name(), allocator));
  made->allocator = allocator;
  const std::lock_guard lock(mutex_);
  allocators_.push_back(std::move(made));
  return allocator;
}

Status Registry::copy(const OrtValue& from, OrtValue& to, OrtSyncStream* stream) const {
  std::vector<std::shared_ptr<const Library>> libraries;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [name, library] : libraries_) libraries.push_back(library);
  }
  const auto* source_device = reinterpret_cast<const OrtMemoryDevice*>(&from.memory);
  const auto* target_device = reinterpret_cast<const OrtMemoryDevice*>(&to.memory);
  for (const auto& library : libraries) {
    // A library reads streams as its own.
    if (stream != nullptr && stream->library != library) continue;
    for (const OrtEpFactory* factory : library->factories()) {
      OrtDataTransferImpl* transfer = library->transfer(*factory);
      if (transfer == nullptr) continue;
      bool can = false;
      guarded_void(library->name(), "OrtDataTransferImpl::CanCopy",
                   [&] { can = transfer->CanCopy(transfer, source_device, target_device); });
      if (!can) continue;
      const OrtValue* sources[] = {&from};
      OrtValue* targets[] = {&to};
      OrtSyncStream* streams[] = {stream};
      return guarded_call(library->name(), "OrtDataTransferImpl::CopyTensors", [&] {
        return transfer->CopyTensors(transfer, sources, targets,
                                     stream != nullptr ? streams : nullptr, 1);
      });
    }
  }
  return failure(Code::InvalidArgument, "{} copies from '{}' to '{}' memory",
                 stream == nullptr ? "no plugin library"
                                   : fmt::format("plugin library '{}', whose stream was given, "
                                                 "does not say that it",
                                                 stream->library->name()),
                 from.memory.name, to.memory.name);
}

void Registry::release_allocator(const OrtMemoryInfo& memory) {
  std::vector<std::unique_ptr<SharedAllocator>> released;
  const std::lock_guard lock(mutex_);
  const auto first = std::stable_partition(
      allocators_.begin(), allocators_.end(),
      [&](const auto& shared) { return !capi::is_same_memory(*shared->memory, memory); });
  std::move(first, allocators_.end(), std::back_inserter(released));
  allocators_.erase(first, allocators_.end());
}

}  // namespace sardonyx::plugin_host

namespace sardonyx::capi {

using plugin_host::Registry;

namespace {

/// The memory of that kind that a plugin's device has.
Result<const OrtMemoryInfo*> memory_of(const OrtEpDevice* device, OrtDeviceMemoryType mem_type) {
  SDX_TRY(require(device, "ep_device"));
  const OrtMemoryInfo* memory = EpDevice_MemoryInfo(device, mem_type);
  if (memory == nullptr || device->factory == nullptr) {
    return failure(Code::InvalidArgument, "provider '{}' has no allocator for memory of kind {}",
                   device->ep_name, static_cast<int>(mem_type));
  }
  return memory;
}

/// A shared allocator of the registered device that has the memory; null when there is none.
Result<OrtAllocator*> allocator_of_device(OrtEnv& env, Registry& registry,
                                          const OrtMemoryInfo& wanted) {
  const OrtEpDevice* const* devices = nullptr;
  size_t count = 0;
  SDX_TRY(take_status(GetEpDevices(&env, &devices, &count)));
  for (size_t i = 0; i < count; ++i) {
    const OrtMemoryInfo* memory = EpDevice_MemoryInfo(devices[i], wanted.device_memory);
    if (memory == nullptr || devices[i]->factory == nullptr) continue;
    if (!is_same_memory(*memory, wanted)) continue;
    return registry.create_allocator(*devices[i], *memory, nullptr);
  }
  return nullptr;
}

}  // namespace

OrtStatus* CreateAllocator(const OrtSession* session, const OrtMemoryInfo* mem_info,
                           OrtAllocator** out) noexcept {
  return guarded("CreateAllocator", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(mem_info, "mem_info"));
    SDX_TRY(require(out, "out"));
    const Place* place = place_of(*mem_info);
    if (place == nullptr) {
      *out = new_allocator(*default_allocator());
      return {};
    }
    for (const auto& provider : session->session->own_providers()) {
      const auto* plugin = dynamic_cast<const plugin_host::PluginProvider*>(provider.get());
      if (plugin == nullptr || !plugin->has_place(*place)) continue;
      SDX_ASSIGN(const auto memory, plugin->memory(*place));
      *out = new_allocator(memory->allocator(), memory);
      return {};
    }
    return failure(Code::InvalidArgument, "no provider of this session allocates '{}' memory",
                   mem_info->name);
  });
}

OrtStatus* CreateSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                 OrtDeviceMemoryType mem_type, OrtAllocatorType allocator_type,
                                 const OrtKeyValuePairs* allocator_options,
                                 OrtAllocator** allocator) noexcept {
  return guarded("CreateSharedAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    if (allocator_type == OrtArenaAllocator) {
      return failure(Code::InvalidArgument,
                     "the provider decides itself whether it keeps an arena: ask for a device "
                     "allocator");
    }
    SDX_ASSIGN(const OrtMemoryInfo* memory, memory_of(ep_device, mem_type));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    registry->release_allocator(*memory);
    SDX_ASSIGN(OrtAllocator * made,
               registry->create_allocator(*ep_device, *memory, allocator_options));
    if (allocator != nullptr) *allocator = made;
    return {};
  });
}

OrtStatus* GetSharedAllocator(OrtEnv* env, const OrtMemoryInfo* mem_info,
                              OrtAllocator** allocator) noexcept {
  return guarded("GetSharedAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(mem_info, "mem_info"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    *allocator = registry->shared_allocator(*mem_info);
    if (*allocator == nullptr) {
      const std::lock_guard lock(env->process->mutex);
      *allocator = env->process->find_allocator(*mem_info);
    }
    const bool is_cpu = mem_info->device_type == OrtMemoryInfoDeviceType_CPU &&
                        mem_info->device_memory == OrtDeviceMemoryType_DEFAULT;
    if (*allocator == nullptr && is_cpu) *allocator = default_allocator();
    if (*allocator == nullptr) {
      SDX_ASSIGN(*allocator, allocator_of_device(*env, *registry, *mem_info));
    }
    return {};
  });
}

OrtStatus* ReleaseSharedAllocator(OrtEnv* env, const OrtEpDevice* ep_device,
                                  OrtDeviceMemoryType mem_type) noexcept {
  return guarded("ReleaseSharedAllocator", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_ASSIGN(const OrtMemoryInfo* memory, memory_of(ep_device, mem_type));
    SDX_ASSIGN(const auto registry, Registry::of(*env));
    registry->release_allocator(*memory);
    return {};
  });
}

}  // namespace sardonyx::capi
