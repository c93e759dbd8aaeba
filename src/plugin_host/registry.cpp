#include "plugin_host/registry.h"

#include <algorithm>
#include <cstdlib>

#include "base/log.h"
#include "base/text.h"
#include "plugin_host/callbacks.h"

namespace sardonyx::plugin_host {

namespace {

/// Room for devices that a factory is offered.
constexpr std::size_t kDevicesMax = 8;
constexpr const char* kVirtualSuffix = ".virtual";
constexpr const char* kAllowVirtual = "allow_virtual_devices";

struct Current {
  std::mutex mutex;
  std::weak_ptr<Registry> registry;
};

Current& current_state() {
  static Current* const instance = new Current;
  return *instance;
}

}  // namespace

Result<std::shared_ptr<Registry>> Registry::in(std::shared_ptr<void>& slot,
                                               const std::map<std::string, std::string>& entries,
                                               const Environment& environment) {
  Current& state = current_state();
  const std::lock_guard lock(state.mutex);
  if (slot == nullptr) {
    auto registry = state.registry.lock();
    if (registry == nullptr) {
      registry.reset(new Registry);
      SDX_TRY(registry->start(entries, environment));
      state.registry = registry;
    }
    slot = registry;
  }
  return std::static_pointer_cast<Registry>(slot);
}

Result<std::shared_ptr<Registry>> Registry::of(const OrtEnv& env) {
  return in(env.process->plugins, env.entries, *env.environment);
}

Result<std::shared_ptr<Registry>> Registry::of(const OrtSession& session) {
  return in(session.process->plugins, {}, *session.environment);
}

std::shared_ptr<Registry> Registry::current() {
  Current& state = current_state();
  const std::lock_guard lock(state.mutex);
  return state.registry.lock();
}

Status Registry::start(const std::map<std::string, std::string>& entries,
                       const Environment& environment) {
  entries_ = entries;
  hardware_ = detect_hardware();
  if (const char* text = std::getenv(kDevicesVariable)) {
    SDX_TRY(apply_device_text(text, hardware_));
  }
  if (const auto entry = entries_.find(kDevicesEntry); entry != entries_.end()) {
    SDX_TRY(apply_device_text(entry->second, hardware_));
  }
  for (const auto& device : hardware_) hardware_list_.push_back(device.get());
  auto built_in = std::make_unique<OrtEpDevice>();
  built_in->ep_name = "CPUExecutionProvider";
  built_in->ep_vendor = "Sardonyx";
  for (const auto& provider : environment.providers()) {
    if (provider->name() == built_in->ep_name) built_in->provider = provider;
  }
  built_in->device = hardware_.front().get();
  built_in->memory = capi::cpu_memory_info();
  devices_.push_back(std::move(built_in));
  refresh();
  return {};
}

void Registry::refresh() {
  auto list = std::make_unique<DeviceList>();
  for (const auto& device : devices_) {
    if (!device->is_retired) list->push_back(device.get());
  }
  lists_.push_back(std::move(list));
}

const std::vector<const OrtEpDevice*>& Registry::ep_devices() const {
  const std::lock_guard lock(mutex_);
  return *lists_.back();
}

std::map<std::string, std::string> Registry::entries() const {
  const std::lock_guard lock(mutex_);
  return entries_;
}

Status Registry::add_devices(const std::shared_ptr<Library>& library, OrtEpFactory& factory,
                             std::vector<std::unique_ptr<OrtEpDevice>>& devices) {
  SDX_ASSIGN(const std::string name, library->factory_name(factory));
  SDX_ASSIGN(const std::string vendor, library->factory_vendor(factory));
  SDX_ASSIGN(const std::string version, library->factory_version(factory));
  OrtEpDevice* made[kDevicesMax] = {};
  std::size_t count = 0;
  const Status status = guarded_call(library->name(), "GetSupportedDevices", [&] {
    return factory.GetSupportedDevices(&factory, hardware_list_.data(), hardware_list_.size(), made,
                                       kDevicesMax, &count);
  });
  for (OrtEpDevice* device : made) {
    if (device != nullptr) devices.emplace_back(device);
  }
  if (!status.ok()) return Status(status.code(), status.message());
  const auto null = std::find(made, made + std::min(count, kDevicesMax), nullptr);
  if (count > kDevicesMax || null != made + count) {
    return failure(Code::InvalidArgument,
                   "plugin library '{}': GetSupportedDevices says that it made {} devices, but {} "
                   "are there",
                   library->name(), count, devices.size());
  }
  for (auto& device : devices) {
    if (device->factory != &factory) continue;
    device->ep_name = name;
    device->ep_vendor = vendor;
    if (!version.empty()) device->metadata.entries.emplace("version", version);
    device->metadata.refresh();
    device->library = library;
  }
  return {};
}

Status Registry::add_library(const std::string& name, const std::string& path) {
  if (name.empty() || name.size() > 256) {
    return failure(Code::InvalidArgument, "a registration name has 1 to 256 characters, found {}",
                   name.size());
  }
  const std::lock_guard registering(registering_);
  const bool is_virtual = name.ends_with(kVirtualSuffix);
  {
    const std::lock_guard lock(mutex_);
    if (libraries_.count(name) != 0) {
      return failure(Code::InvalidArgument, "a plugin library is already registered as '{}'", name);
    }
    if (is_virtual) entries_[kAllowVirtual] = "1";
  }
  std::vector<std::unique_ptr<OrtEpDevice>> devices;
  const auto add = [&]() -> Result<std::shared_ptr<Library>> {
    SDX_ASSIGN(auto library, Library::load(name, resolve_library_path(path)));
    for (OrtEpFactory* factory : library->factories()) {
      SDX_TRY(add_devices(library, *factory, devices));
    }
    return library;
  };
  auto library = add();
  const std::lock_guard lock(mutex_);
  if (is_virtual) entries_.erase(kAllowVirtual);
  if (!library.ok()) return std::move(library).take_status();
  if (devices.empty()) {
    log(Severity::Warning, "plugin library '{}' offers no device of this machine", name);
  }
  for (auto& device : devices) {
    const bool is_ours = std::find(hardware_list_.begin(), hardware_list_.end(),
                                   device->plugin_device) != hardware_list_.end();
    device->device = device->plugin_device;
    if (!is_ours) {
      // A device of the plugin's own making goes with the plugin.
      plugin_hardware_.push_back(std::make_unique<OrtHardwareDevice>(*device->plugin_device));
      plugin_hardware_.back()->metadata.refresh();
      device->device = plugin_hardware_.back().get();
    }
    devices_.push_back(std::move(device));
  }
  libraries_.emplace(name, std::move(library).value());
  refresh();
  return {};
}

Status Registry::remove_library(const std::string& name) {
  const std::lock_guard registering(registering_);
  std::shared_ptr<Library> closed;
  std::vector<std::unique_ptr<SharedAllocator>> released;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = libraries_.find(name); found != libraries_.end()) closed = found->second;
  }
  // Needs the library's devices as they are.
  if (closed != nullptr) closed->promised_files().finish();
  {
    const std::lock_guard lock(mutex_);
    const auto found = libraries_.find(name);
    if (found == libraries_.end()) {
      return failure(Code::InvalidArgument, "no plugin library is registered as '{}'", name);
    }
    closed = std::move(found->second);
    libraries_.erase(found);
    const auto& factories = closed->factories();
    for (const auto& device : devices_) {
      const auto factory = std::find(factories.begin(), factories.end(), device->factory);
      if (factory != factories.end()) device->is_retired = true;
    }
    for (auto& shared : allocators_) {
      if (shared->library == closed) released.push_back(std::move(shared));
    }
    std::erase(allocators_, nullptr);
    refresh();
  }
  released.clear();
  if (closed.use_count() > 1) {
    log(Severity::Info, "plugin library '{}' is closed when its last session goes", name);
  }
  return {};
}

std::vector<std::pair<std::shared_ptr<const Library>, OrtEpFactory*>> Registry::factories_of(
    std::string_view ep_name) const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<std::shared_ptr<const Library>, OrtEpFactory*>> found;
  for (const auto& [name, library] : libraries_) {
    for (OrtEpFactory* factory : library->factories()) {
      const auto factory_name = library->factory_name(*factory);
      if (factory_name.ok() && *factory_name == ep_name) found.emplace_back(library, factory);
    }
  }
  return found;
}

}  // namespace sardonyx::plugin_host
