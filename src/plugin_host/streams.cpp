#include "plugin_host/streams.h"

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/devices.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"

using sardonyx::Code;
using sardonyx::failure;
using sardonyx::Result;
using sardonyx::Status;
using sardonyx::plugin_host::callback;
using sardonyx::plugin_host::guarded_call;
using sardonyx::plugin_host::guarded_void;
using sardonyx::plugin_host::require_callback;

namespace {

std::uint64_t next_stream_id() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

}  // namespace

OrtSyncStream::OrtSyncStream(std::shared_ptr<const sardonyx::plugin_host::Library> the_library,
                             const OrtMemoryInfo& the_memory)
    : library(std::move(the_library)), memory(the_memory), id(next_stream_id()) {}

OrtSyncStream::~OrtSyncStream() {
  if (impl == nullptr || impl->Release == nullptr) return;
  guarded_void(library->name(), "OrtSyncStreamImpl::Release", [&] { impl->Release(impl); });
}

Status OrtSyncStream::flush() {
  if (impl->Flush == nullptr) return {};
  return guarded_call(library->name(), "OrtSyncStreamImpl::Flush",
                      [&] { return impl->Flush(impl); });
}

Status OrtSyncStream::end_run() {
  if (impl->OnSessionRunEnd == nullptr) return {};
  return guarded_call(library->name(), "OrtSyncStreamImpl::OnSessionRunEnd",
                      [&] { return impl->OnSessionRunEnd(impl); });
}

Status OrtSyncStream::wait_in(OrtSyncStream* consumer) {
  if (consumer == this) return {};
  if (impl->CreateNotification == nullptr) return flush();
  OrtSyncNotificationImpl* made = nullptr;
  SDX_TRY(guarded_call(library->name(), "OrtSyncStreamImpl::CreateNotification",
                       [&] { return impl->CreateNotification(impl, &made); }));
  const auto release = [&](OrtSyncNotificationImpl* notification) {
    if (notification->Release == nullptr) return;
    guarded_void(library->name(), "OrtSyncNotificationImpl::Release",
                 [&] { notification->Release(notification); });
  };
  const std::unique_ptr<OrtSyncNotificationImpl, decltype(release)> notification(made, release);
  const bool is_complete = made != nullptr && made->Activate != nullptr &&
                           made->WaitOnHost != nullptr && made->WaitOnDevice != nullptr;
  SDX_TRY(require_callback(
      library->name(), "complete OrtSyncNotificationImpl from CreateNotification", is_complete));
  SDX_TRY(guarded_call(library->name(), "OrtSyncNotificationImpl::Activate",
                       [&] { return made->Activate(made); }));
  const std::uint64_t reached = ++sync_id;
  if (consumer == nullptr || consumer->library != library) {
    return guarded_call(library->name(), "OrtSyncNotificationImpl::WaitOnHost",
                        [&] { return made->WaitOnHost(made); });
  }
  SDX_TRY(guarded_call(library->name(), "OrtSyncNotificationImpl::WaitOnDevice",
                       [&] { return made->WaitOnDevice(made, consumer); }));
  const std::lock_guard lock(consumer->mutex);
  consumer->waits[this] = reached;
  return {};
}

namespace sardonyx::plugin_host {

bool has_streams(const Library& library, const OrtEpFactory& factory) {
  const auto ask = callback(factory, &OrtEpFactory::IsStreamAware, 23);
  if (ask == nullptr) return false;
  bool is_aware = false;
  guarded_void(library.name(), "IsStreamAware", [&] { is_aware = ask(&factory); });
  return is_aware;
}

Result<std::unique_ptr<OrtSyncStream>> make_stream(std::shared_ptr<const Library> library,
                                                   OrtEpFactory& factory,
                                                   std::shared_ptr<const EpHandle> ep,
                                                   const OrtMemoryInfo& memory,
                                                   const OrtKeyValuePairs* options) {
  auto made = std::make_unique<OrtSyncStream>(std::move(library), memory);
  made->ep = std::move(ep);
  const std::string& name = made->library->name();
  const auto* device = reinterpret_cast<const OrtMemoryDevice*>(&made->memory);
  const auto own = made->ep == nullptr
                       ? nullptr
                       : callback(*made->ep->ep, &OrtEp::CreateSyncStreamForDevice, 23);
  const auto shared = callback(factory, &OrtEpFactory::CreateSyncStreamForDevice, 23);
  if (own == nullptr && shared == nullptr) {
    return failure(Code::Unsupported, "plugin library '{}' makes no streams", name);
  }
  OrtSyncStreamImpl* impl = nullptr;
  SDX_TRY(guarded_call(name, "CreateSyncStreamForDevice", [&] {
    return own != nullptr ? own(made->ep->ep, device, &impl)
                          : shared(&factory, device, options, &impl);
  }));
  made->impl = impl;
  if (made->impl != nullptr) return made;
  return failure(Code::Internal,
                 "plugin library '{}': CreateSyncStreamForDevice returned a null pointer", name);
}

}  // namespace sardonyx::plugin_host

namespace sardonyx::capi {

OrtStatus* CreateSyncStreamForEpDevice(const OrtEpDevice* ep_device,
                                       const OrtKeyValuePairs* stream_options,
                                       OrtSyncStream** stream) noexcept {
  return guarded("CreateSyncStreamForEpDevice", [&]() -> Status {
    SDX_TRY(require(ep_device, "ep_device"));
    SDX_TRY(require(stream, "stream"));
    const auto library = ep_device->library.lock();
    if (library == nullptr || ep_device->factory == nullptr || !ep_device->memory) {
      return failure(Code::InvalidArgument, "provider '{}' has no streams on this device",
                     ep_device->ep_name);
    }
    if (!plugin_host::has_streams(*library, *ep_device->factory)) {
      return failure(Code::InvalidArgument, "provider '{}' does not work on streams",
                     ep_device->ep_name);
    }
    SDX_ASSIGN(auto made, plugin_host::make_stream(library, *ep_device->factory, nullptr,
                                                   *ep_device->memory, stream_options));
    *stream = made.release();
    return {};
  });
}

void* SyncStream_GetHandle(OrtSyncStream* stream) noexcept {
  if (stream == nullptr || stream->impl->GetHandle == nullptr) return nullptr;
  void* handle = nullptr;
  guarded_void(stream->library->name(), "OrtSyncStreamImpl::GetHandle",
               [&] { handle = stream->impl->GetHandle(stream->impl); });
  return handle;
}

void ReleaseSyncStream(OrtSyncStream* object) noexcept { delete object; }

void RunOptionsSetSyncStream(OrtRunOptions* options, OrtSyncStream* sync_stream) noexcept {
  if (options != nullptr) options->sync_stream = sync_stream;
}

}  // namespace sardonyx::capi

namespace sardonyx::capi::ep_api {

const OrtSyncStreamImpl* SyncStream_GetImpl(const OrtSyncStream* stream) noexcept {
  return stream == nullptr ? nullptr : stream->impl;
}

uint64_t SyncStream_GetSyncId(const OrtSyncStream* stream) noexcept {
  return stream == nullptr ? 0 : stream->sync_id.load();
}

uint64_t GetSyncIdForLastWaitOnSyncStream(const OrtSyncStream* producer_stream,
                                          const OrtSyncStream* consumer_stream) noexcept {
  if (producer_stream == nullptr || consumer_stream == nullptr) return 0;
  const std::lock_guard lock(consumer_stream->mutex);
  const auto found = consumer_stream->waits.find(producer_stream);
  return found == consumer_stream->waits.end() ? 0 : found->second;
}

}  // namespace sardonyx::capi::ep_api
