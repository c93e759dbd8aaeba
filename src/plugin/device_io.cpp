#include "plugin/device_io.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace sardonyx::plugin {

namespace {

struct Allocator : OrtAllocator {
  Host host;
  VirtualDevice* device;
};

void* ORT_API_CALL allocate(OrtAllocator* self, size_t size) noexcept {
  return static_cast<Allocator*>(self)->device->memory().allocate(size);
}

void ORT_API_CALL release_memory(OrtAllocator* self, void* memory) noexcept {
  static_cast<Allocator*>(self)->device->memory().release(memory);
}

const OrtMemoryInfo* ORT_API_CALL allocator_info(const OrtAllocator* self) noexcept {
  return static_cast<const Allocator*>(self)->device->memory_info();
}

OrtStatus* ORT_API_CALL allocator_stats(const OrtAllocator* self, OrtKeyValuePairs** out) noexcept {
  const Allocator& allocator = *static_cast<const Allocator*>(self);
  const DeviceMemory& memory = allocator.device->memory();
  const OrtApi& api = *allocator.host.api;
  api.CreateKeyValuePairs(out);
  api.AddKeyValuePair(*out, "Limit", std::to_string(memory.size_bytes()).c_str());
  api.AddKeyValuePair(*out, "InUse", std::to_string(memory.used_bytes()).c_str());
  api.AddKeyValuePair(*out, "MaxInUse", std::to_string(memory.peak_bytes()).c_str());
  return nullptr;
}

struct DataTransfer : OrtDataTransferImpl {
  Host host;
  const VirtualDevices* devices;
};

/// Ordinary memory, or that of one of the devices.
bool is_reachable(const DataTransfer& transfer, const OrtMemoryDevice* place) {
  const OrtEpApi& api = *transfer.host.ep;
  if (api.MemoryDevice_GetDeviceType(place) == OrtMemoryInfoDeviceType_CPU) return true;
  return std::any_of(transfer.devices->begin(), transfer.devices->end(), [&](const auto& device) {
    return api.MemoryDevice_AreEqual(place, device->memory_device());
  });
}

void ORT_API_CALL release_transfer(OrtDataTransferImpl* self) noexcept {
  delete static_cast<DataTransfer*>(self);
}

bool ORT_API_CALL can_copy(const OrtDataTransferImpl* self, const OrtMemoryDevice* source,
                           const OrtMemoryDevice* target) noexcept {
  const DataTransfer& transfer = *static_cast<const DataTransfer*>(self);
  const OrtEpApi& api = *transfer.host.ep;
  const bool is_device = api.MemoryDevice_GetDeviceType(source) != OrtMemoryInfoDeviceType_CPU ||
                         api.MemoryDevice_GetDeviceType(target) != OrtMemoryInfoDeviceType_CPU;
  return is_device && is_reachable(transfer, source) && is_reachable(transfer, target);
}

OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl* self, const OrtValue** sources,
                                     OrtValue** targets, OrtSyncStream**, size_t count) noexcept {
  const DataTransfer& transfer = *static_cast<DataTransfer*>(self);
  return transfer.host.guarded("CopyTensors", [&]() -> Status {
    for (size_t i = 0; i < count; ++i) {
      SDX_TRY(copy_value(transfer.host, *transfer.devices, *sources[i], *targets[i]));
    }
    return {};
  });
}

struct Notification : OrtSyncNotificationImpl {};

void ORT_API_CALL release_notification(OrtSyncNotificationImpl* self) noexcept {
  delete static_cast<Notification*>(self);
}
OrtStatus* ORT_API_CALL activate(OrtSyncNotificationImpl*) noexcept { return nullptr; }
OrtStatus* ORT_API_CALL wait_on_device(OrtSyncNotificationImpl*, OrtSyncStream*) noexcept {
  return nullptr;
}

struct Stream : OrtSyncStreamImpl {};

void ORT_API_CALL release_stream(OrtSyncStreamImpl* self) noexcept {
  delete static_cast<Stream*>(self);
}
void* ORT_API_CALL stream_handle(OrtSyncStreamImpl* self) noexcept { return self; }
OrtStatus* ORT_API_CALL finish(OrtSyncStreamImpl*) noexcept { return nullptr; }

OrtStatus* ORT_API_CALL create_notification(OrtSyncStreamImpl* self,
                                            OrtSyncNotificationImpl** out) noexcept {
  auto* made = new Notification{};
  made->ort_version_supported = self->ort_version_supported;
  made->Release = release_notification;
  made->Activate = activate;
  made->WaitOnDevice = wait_on_device;
  made->WaitOnHost = activate;
  *out = made;
  return nullptr;
}

}  // namespace

Status copy_value(const Host& host, const VirtualDevices& devices, const OrtValue& source,
                  OrtValue& target) {
  std::size_t size = 0;
  std::size_t room = 0;
  SDX_TRY(host.take(host.api->GetTensorSizeInBytes(&source, &size)));
  SDX_TRY(host.take(host.api->GetTensorSizeInBytes(&target, &room)));
  if (size != room) {
    return failure(Code::InvalidArgument, "a copy of {} bytes into a tensor of {}", size, room);
  }
  const void* from = nullptr;
  void* to = nullptr;
  SDX_TRY(host.take(host.api->GetTensorData(&source, &from)));
  SDX_TRY(host.take(host.api->GetTensorMutableData(&target, &to)));
  if (size == 0) return {};
  if (from == nullptr || to == nullptr) {
    return failure(Code::OutOfMemory, "a copy of {} bytes from or to memory that was not had",
                   size);
  }
  std::memcpy(open_memory(devices, to), open_memory(devices, const_cast<void*>(from)), size);
  return {};
}

OrtAllocator* make_allocator(const Host& host, VirtualDevice& device) {
  auto* allocator = new Allocator{};
  allocator->version = host.version;
  allocator->Alloc = allocate;
  allocator->Free = release_memory;
  allocator->Info = allocator_info;
  allocator->Reserve = allocate;
  allocator->GetStats = allocator_stats;
  allocator->host = host;
  allocator->device = &device;
  return allocator;
}

void release_allocator(OrtAllocator* allocator) { delete static_cast<Allocator*>(allocator); }

OrtDataTransferImpl* make_data_transfer(const Host& host, const VirtualDevices& devices) {
  auto* transfer = new DataTransfer{};
  transfer->ort_version_supported = host.version;
  transfer->Release = release_transfer;
  transfer->CanCopy = can_copy;
  transfer->CopyTensors = copy_tensors;
  transfer->host = host;
  transfer->devices = &devices;
  return transfer;
}

OrtSyncStreamImpl* make_stream(const Host& host) {
  auto* stream = new Stream{};
  stream->ort_version_supported = host.version;
  stream->Release = release_stream;
  stream->GetHandle = stream_handle;
  stream->CreateNotification = create_notification;
  stream->Flush = finish;
  stream->OnSessionRunEnd = finish;
  return stream;
}

}  // namespace sardonyx::plugin
