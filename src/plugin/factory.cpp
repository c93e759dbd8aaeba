#include "plugin/factory.h"

#include "cpu/provider.h"
#include "plugin/device_io.h"
#include "plugin/ep.h"

namespace sardonyx::plugin {

namespace {

const char* ORT_API_CALL get_name(const OrtEpFactory*) noexcept { return kEpName; }
const char* ORT_API_CALL get_vendor(const OrtEpFactory*) noexcept { return "Sardonyx"; }
const char* ORT_API_CALL get_version(const OrtEpFactory*) noexcept { return SARDONYX_VERSION; }
uint32_t ORT_API_CALL get_vendor_id(const OrtEpFactory*) noexcept { return 0; }

Factory& self_of(OrtEpFactory* self) { return *static_cast<Factory*>(self); }

OrtStatus* ORT_API_CALL supported_devices(OrtEpFactory* self,
                                          const OrtHardwareDevice* const* devices, size_t count,
                                          OrtEpDevice** ep_devices, size_t count_max,
                                          size_t* found) noexcept {
  return self_of(self).host().guarded("GetSupportedDevices", [&] {
    return self_of(self).find_devices(devices, count, ep_devices, count_max, found);
  });
}

OrtStatus* ORT_API_CALL make_ep(OrtEpFactory* self, const OrtHardwareDevice* const* devices,
                                const OrtKeyValuePairs* const*, size_t count,
                                const OrtSessionOptions* options, const OrtLogger*,
                                OrtEp** ep) noexcept {
  return self_of(self).host().guarded(
      "CreateEp", [&] { return self_of(self).create_ep(devices, count, *options, ep); });
}

void ORT_API_CALL release_ep(OrtEpFactory*, OrtEp* ep) noexcept { delete static_cast<Ep*>(ep); }

OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* self, const OrtMemoryInfo* info,
                                         const OrtKeyValuePairs*,
                                         OrtAllocator** allocator) noexcept {
  return self_of(self).host().guarded("CreateAllocator", [&]() -> Status {
    VirtualDevice* device = self_of(self).device_of(info);
    // Null stands for the runtime's own allocator of ordinary memory.
    *allocator = device == nullptr ? nullptr : make_allocator(self_of(self).host(), *device);
    return {};
  });
}

void ORT_API_CALL free_allocator(OrtEpFactory*, OrtAllocator* allocator) noexcept {
  release_allocator(allocator);
}

OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* self,
                                        OrtDataTransferImpl** transfer) noexcept {
  return self_of(self).host().guarded("CreateDataTransfer", [&]() -> Status {
    const Factory& factory = self_of(self);
    const bool has_devices = !factory.devices().empty();
    *transfer = has_devices ? make_data_transfer(factory.host(), factory.devices()) : nullptr;
    return {};
  });
}

OrtStatus* ORT_API_CALL create_stream(OrtEpFactory* self, const OrtMemoryDevice*,
                                      const OrtKeyValuePairs*,
                                      OrtSyncStreamImpl** stream) noexcept {
  return self_of(self).host().guarded("CreateSyncStreamForDevice", [&]() -> Status {
    const Factory& factory = self_of(self);
    *stream = factory.devices().empty() ? nullptr : make_stream(factory.host());
    return {};
  });
}

OrtStatus* ORT_API_CALL memory_capacity(OrtEpFactory* self, const OrtHardwareDevice* hardware,
                                        OrtDeviceMemoryType, uint64_t* total,
                                        uint64_t* available) noexcept {
  return self_of(self).host().guarded("GetDeviceMemoryCapacity", [&]() -> Status {
    const VirtualDevice* device = self_of(self).device_of(hardware);
    if (device == nullptr) {
      return Status(Code::Unsupported, "ordinary memory has no capacity of its own");
    }
    *total = device->memory().size_bytes();
    *available = *total - device->memory().used_bytes();
    return {};
  });
}

OrtStatus* ORT_API_CALL judge_compiled(OrtEpFactory* self, const OrtHardwareDevice* const*, size_t,
                                       const char* info,
                                       OrtCompiledModelCompatibility* verdict) noexcept {
  return self_of(self).host().guarded("ValidateCompiledModelCompatibilityInfo", [&]() -> Status {
    SDX_ASSIGN(const Compatibility found,
               self_of(self).provider().check_compatibility(info == nullptr ? "" : info));
    // The host's enumerators have the same order.
    *verdict = static_cast<OrtCompiledModelCompatibility>(found);
    return {};
  });
}

bool ORT_API_CALL is_stream_aware(const OrtEpFactory* self) noexcept {
  return !static_cast<const Factory*>(self)->devices().empty();
}

}  // namespace

Factory::Factory(const Host& host)
    : OrtEpFactory{},
      host_(host),
      weights_(std::make_shared<WeightStore>()),
      provider_(make_cpu_provider(weights_)) {
  ort_version_supported = host.version;
  GetName = get_name;
  GetVendor = get_vendor;
  GetVendorId = get_vendor_id;
  GetVersion = get_version;
  GetSupportedDevices = supported_devices;
  CreateEp = make_ep;
  ReleaseEp = release_ep;
  // ONNX Runtime asks for these whether they are there or not.
  CreateAllocator = create_allocator;
  ReleaseAllocator = free_allocator;
  CreateDataTransfer = create_transfer;
  CreateSyncStreamForDevice = create_stream;
  GetDeviceMemoryCapacity = memory_capacity;
  ValidateCompiledModelCompatibilityInfo = judge_compiled;
  IsStreamAware = is_stream_aware;
}

Result<std::unique_ptr<Factory>> Factory::create(const Host& host) {
  std::unique_ptr<Factory> factory(new Factory(host));
  SDX_ASSIGN(const std::string text, wanted_devices(host));
  SDX_ASSIGN(const auto wishes, parse_devices(text));
  for (const DeviceWish& wish : wishes) {
    SDX_ASSIGN(auto device, VirtualDevice::create(host, wish, factory->devices_.size()));
    factory->devices_.push_back(std::move(device));
  }
  if (wishes.empty()) return factory;
  SDX_ASSIGN(factory->copy_kernels_, CopyKernels::create(host, factory->devices_));
  return factory;
}

Status Factory::add_device(const OrtHardwareDevice& hardware, const OrtMemoryInfo* memory,
                           OrtEpDevice** ep_device) {
  Pairs metadata(host_);
  metadata.add("weightless_support", "all");
  metadata.add("weightless_supported_modes", "all_or_external_only");
  const Pairs options(host_);
  SDX_TRY(host_.take(
      host_.ep->CreateEpDevice(this, &hardware, metadata.get(), options.get(), ep_device)));
  if (memory == nullptr) return {};
  return host_.take(host_.ep->EpDevice_AddAllocatorInfo(*ep_device, memory));
}

Status Factory::find_devices(const OrtHardwareDevice* const* devices, std::size_t count,
                             OrtEpDevice** ep_devices, std::size_t count_max, std::size_t* found) {
  *found = 0;
  for (std::size_t i = 0; i < count && *found < count_max; ++i) {
    if (host_.api->HardwareDevice_Type(devices[i]) != OrtHardwareDeviceType_CPU) continue;
    SDX_TRY(add_device(*devices[i], nullptr, &ep_devices[*found]));
    ++*found;
  }
  for (const auto& device : devices_) {
    if (*found == count_max) break;
    SDX_TRY(add_device(*device->hardware(), device->memory_info(), &ep_devices[*found]));
    ++*found;
  }
  return {};
}

VirtualDevice* Factory::device_of(const OrtHardwareDevice* hardware) const {
  for (const auto& device : devices_) {
    if (device->hardware() == hardware) return device.get();
  }
  return nullptr;
}

VirtualDevice* Factory::device_of(const OrtMemoryInfo* info) const {
  const OrtMemoryDevice* wanted = host_.ep->MemoryInfo_GetMemoryDevice(info);
  for (const auto& device : devices_) {
    if (host_.ep->MemoryDevice_AreEqual(wanted, device->memory_device())) return device.get();
  }
  return nullptr;
}

Status Factory::create_ep(const OrtHardwareDevice* const* devices, std::size_t count,
                          const OrtSessionOptions& session, OrtEp** ep) const {
  SDX_ASSIGN(EpOptions options, read_options(host_, session));
  ThreadPoolOptions pool_options;
  pool_options.thread_count = options.thread_count;
  PartContext context;
  context.host = host_;
  context.provider = provider_;
  context.pool = std::make_shared<ThreadPool>(pool_options);
  SDX_ASSIGN(context.compiled_models, read_context_options(host_, session, options.entries));
  context.entries = std::move(options.entries);
  context.devices = &devices_;
  context.device = count == 0 ? nullptr : device_of(devices[0]);
  if (copy_kernels_ != nullptr) context.copy_kernels = copy_kernels_->registry();
  *ep = new Ep(std::move(context));
  return {};
}

}  // namespace sardonyx::plugin
