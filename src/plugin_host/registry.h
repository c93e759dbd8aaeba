#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "capi/devices.h"
#include "plugin_host/hardware.h"
#include "plugin_host/library.h"

namespace sardonyx::plugin_host {

/// A plugin's allocator for a memory of one of its devices.
struct SharedAllocator {
  std::shared_ptr<const Library> library;
  OrtEpFactory* factory = nullptr;
  const OrtMemoryInfo* memory = nullptr;
  OrtAllocator* allocator = nullptr;

  SharedAllocator() = default;
  ~SharedAllocator();
  SharedAllocator(const SharedAllocator&) = delete;
  SharedAllocator& operator=(const SharedAllocator&) = delete;
};

/// The plugin libraries and devices of a process. Addresses of devices, and lists that were handed
/// out, stay valid as long as the registry: an unregistered library's devices are only retired, and
/// the library itself is closed when the last session or options that use it go.
class Registry {
 public:
  /// The registry that all environments and sessions of the process share; it lives as long as one
  /// of them. The entries of the environment that makes it hold.
  /// Errors   InvalidArgument for a wrong list of hardware devices.
  static Result<std::shared_ptr<Registry>> of(const OrtEnv& env);
  static Result<std::shared_ptr<Registry>> of(const OrtSession& session);
  /// The one that lives, or null.
  static std::shared_ptr<Registry> current();

  /// Loads a library and asks its factories for their devices. A name that ends in ".virtual" lets
  /// the library offer devices that are not there.
  /// Errors   InvalidArgument for a name in use; those of Library::load and of the factories.
  Status add_library(const std::string& name, const std::string& path);
  /// Errors   InvalidArgument for a name that is not registered.
  Status remove_library(const std::string& name);

  /// Devices of all providers, the built-in one's first.
  const std::vector<const OrtEpDevice*>& ep_devices() const;
  const std::vector<const OrtHardwareDevice*>& hardware_devices() const { return hardware_list_; }
  /// Configuration entries of the environment, as plugins read them.
  std::map<std::string, std::string> entries() const;
  /// The factories of a provider's libraries.
  std::vector<std::pair<std::shared_ptr<const Library>, OrtEpFactory*>> factories_of(
      std::string_view ep_name) const;

  /// Allocators that all sessions may use, by memory; null when there is none.
  OrtAllocator* shared_allocator(const OrtMemoryInfo& memory) const;
  Result<OrtAllocator*> create_allocator(const OrtEpDevice& device, const OrtMemoryInfo& memory,
                                         const OrtKeyValuePairs* options);
  void release_allocator(const OrtMemoryInfo& memory);

  /// Copies a tensor by the first library that moves tensors between the two memories.
  /// Errors   InvalidArgument when none does.
  Status copy(const OrtValue& from, OrtValue& to, OrtSyncStream* stream) const;

 private:
  using DeviceList = std::vector<const OrtEpDevice*>;

  Registry() = default;
  static Result<std::shared_ptr<Registry>> in(std::shared_ptr<void>& slot,
                                              const std::map<std::string, std::string>& entries,
                                              const Environment& environment);
  Status start(const std::map<std::string, std::string>& entries, const Environment& environment);
  Status add_devices(const std::shared_ptr<Library>& library, OrtEpFactory& factory,
                     std::vector<std::unique_ptr<OrtEpDevice>>& devices);
  /// Makes the current list anew; under the lock.
  void refresh();

  /// Held while a library is loaded or closed; its callbacks may ask the registry.
  std::mutex registering_;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> entries_;
  HardwareList hardware_;
  std::vector<const OrtHardwareDevice*> hardware_list_;
  std::map<std::string, std::shared_ptr<Library>> libraries_;
  std::vector<std::unique_ptr<OrtEpDevice>> devices_;
  /// Copies of devices that plugins made themselves.
  HardwareList plugin_hardware_;
  std::vector<std::unique_ptr<SharedAllocator>> allocators_;
  /// The current list is the last; former ones stay for those who hold them.
  std::vector<std::unique_ptr<DeviceList>> lists_;
};

}  // namespace sardonyx::plugin_host
