#pragma once

#include <memory>

#include "plugin/virtual_devices.h"

namespace sardonyx::plugin {

/// The kernels that copy what crosses from ordinary memory to a device and back inside a graph, for
/// the host to put between the parts of a model that run here and elsewhere.
class CopyKernels {
 public:
  /// `devices` must outlive the kernels.
  static Result<std::unique_ptr<CopyKernels>> create(const Host& host,
                                                     const VirtualDevices& devices);
  ~CopyKernels();
  CopyKernels(const CopyKernels&) = delete;
  CopyKernels& operator=(const CopyKernels&) = delete;

  const OrtKernelRegistry* registry() const { return registry_; }
  const Host& host() const { return host_; }
  const VirtualDevices& devices() const { return devices_; }

 private:
  CopyKernels(const Host& host, const VirtualDevices& devices) : host_(host), devices_(devices) {}
  Status add(bool is_from_host);

  Host host_;
  const VirtualDevices& devices_;
  OrtKernelRegistry* registry_ = nullptr;
};

}  // namespace sardonyx::plugin
