#pragma once

#include <memory>
#include <string>

#include "ep/provider.h"
#include "plugin/copy_kernels.h"
#include "plugin/host.h"
#include "plugin/virtual_devices.h"
#include "weights/store.h"

namespace sardonyx::plugin {

/// What the library gives the host once: it makes a provider per session. All sessions share their
/// packed weights.
class Factory : public OrtEpFactory {
 public:
  /// With the virtual devices that somebody asked for, if any.
  static Result<std::unique_ptr<Factory>> create(const Host& host);

  Status find_devices(const OrtHardwareDevice* const* devices, std::size_t count,
                      OrtEpDevice** ep_devices, std::size_t count_max, std::size_t* found);
  /// The provider of a session that was given these devices; the first one counts.
  Status create_ep(const OrtHardwareDevice* const* devices, std::size_t count,
                   const OrtSessionOptions& options, OrtEp** ep) const;
  /// The virtual device of the host's handle or memory, or null.
  VirtualDevice* device_of(const OrtHardwareDevice* hardware) const;
  VirtualDevice* device_of(const OrtMemoryInfo* info) const;

  const Host& host() const { return host_; }
  const VirtualDevices& devices() const { return devices_; }
  const Provider& provider() const { return *provider_; }

 private:
  explicit Factory(const Host& host);
  Status add_device(const OrtHardwareDevice& hardware, const OrtMemoryInfo* memory,
                    OrtEpDevice** ep_device);

  Host host_;
  std::shared_ptr<WeightStore> weights_;
  std::shared_ptr<const Provider> provider_;
  VirtualDevices devices_;
  std::unique_ptr<CopyKernels> copy_kernels_;
};

}  // namespace sardonyx::plugin
