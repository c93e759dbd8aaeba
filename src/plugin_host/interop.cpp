// Memory and semaphores of graphics interfaces, which plugins import for their devices.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/as_number.h"
#include "capi/devices.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/library.h"
#include "plugin_host/streams.h"

using sardonyx::plugin_host::Library;

struct OrtExternalResourceImporter {
  std::shared_ptr<const Library> library;
  OrtExternalResourceImporterImpl* impl = nullptr;

  OrtExternalResourceImporter() = default;
  ~OrtExternalResourceImporter() {
    if (impl == nullptr || impl->Release == nullptr) return;
    sardonyx::plugin_host::guarded_void(library->name(), "OrtExternalResourceImporterImpl::Release",
                                        [&] { impl->Release(impl); });
  }
  OrtExternalResourceImporter(const OrtExternalResourceImporter&) = delete;
  OrtExternalResourceImporter& operator=(const OrtExternalResourceImporter&) = delete;
};

namespace sardonyx::capi::interop_api {

namespace {

using Impl = OrtExternalResourceImporterImpl;

/// The library of a device that is still registered.
Result<std::shared_ptr<const Library>> library_of(const OrtEpDevice* device) {
  SDX_TRY(require(device, "ep_device"));
  auto library = device->library.lock();
  if (library != nullptr && device->factory != nullptr) return library;
  return failure(Code::InvalidArgument, "provider '{}' has no plugin library that is registered",
                 device->ep_name);
}

/// Calls one of the plugin's functions, which has to be there.
template <typename Function, typename... Arguments>
Status call(const OrtExternalResourceImporter* importer, const char* name, Function Impl::* member,
            Arguments... arguments) {
  SDX_TRY(require(importer, "importer"));
  const Function function = importer->impl->*member;
  SDX_TRY(plugin_host::require_callback(importer->library->name(), name, function != nullptr));
  return plugin_host::guarded_call(importer->library->name(), name,
                                   [&] { return function(importer->impl, arguments...); });
}

/// As call(), for a function that makes something as its last argument.
template <typename Made, typename Function, typename... Arguments>
Status make(const OrtExternalResourceImporter* importer, const char* name, Function Impl::* member,
            Made** out, Arguments... arguments) {
  *out = nullptr;
  Made* made = nullptr;
  SDX_TRY(call(importer, name, member, arguments..., &made));
  if (made == nullptr) {
    return failure(Code::Internal, "plugin library '{}': {} returned a null pointer",
                   importer->library->name(), name);
  }
  *out = made;
  return {};
}

/// Lets the plugin release what it made; which one it is the handle does not tell for sure.
template <typename Handle>
void release(Handle* handle, const char* name) {
  if (handle == nullptr || handle->Release == nullptr) return;
  plugin_host::guarded_void("of an importer", name, [&] { handle->Release(handle); });
}

/// Errors   InvalidArgument for the stream of another library.
Status check_stream(const OrtExternalResourceImporter* importer, const OrtSyncStream* stream) {
  SDX_TRY(require(importer, "importer"));
  if (stream == nullptr || stream->library == importer->library) return {};
  return failure(Code::InvalidArgument,
                 "the stream is of plugin library '{}', the importer of '{}'",
                 stream->library->name(), importer->library->name());
}

/// `kind` may be any number; what is above `last` no version knows.
template <typename Kind>
Status ask(const OrtExternalResourceImporter* importer, const char* name,
           bool (ORT_API_CALL* Impl::*member)(const Impl*, Kind), const Kind& kind, Kind last,
           bool* out) {
  SDX_TRY(require(importer, "importer"));
  SDX_TRY(require(out, "out_supported"));
  *out = false;
  const auto function = importer->impl->*member;
  const int number = as_number(kind);
  if (function == nullptr || number < 0 || number > static_cast<int>(last)) return {};
  return plugin_host::guarded_call(importer->library->name(), name, [&]() -> OrtStatus* {
    *out = function(importer->impl, kind);
    return nullptr;
  });
}

}  // namespace

OrtStatus* CreateExternalResourceImporterForDevice(
    const OrtEpDevice* ep_device, OrtExternalResourceImporter** out_importer) noexcept {
  return guarded("CreateExternalResourceImporterForDevice", [&]() -> Status {
    SDX_TRY(require(out_importer, "out_importer"));
    *out_importer = nullptr;
    auto made = std::make_unique<OrtExternalResourceImporter>();
    SDX_ASSIGN(made->library, library_of(ep_device));
    OrtEpFactory* factory = ep_device->factory;
    const auto create =
        plugin_host::callback(*factory, &OrtEpFactory::CreateExternalResourceImporterForDevice, 24);
    if (create == nullptr) {
      return failure(Code::Unsupported, "provider '{}' imports no external resources",
                     ep_device->ep_name);
    }
    OrtExternalResourceImporterImpl* impl = nullptr;
    SDX_TRY(plugin_host::guarded_call(made->library->name(),
                                      "CreateExternalResourceImporterForDevice",
                                      [&] { return create(factory, ep_device, &impl); }));
    made->impl = impl;
    if (made->impl == nullptr) {
      return failure(Code::Internal,
                     "plugin library '{}': CreateExternalResourceImporterForDevice returned a null "
                     "pointer",
                     made->library->name());
    }
    *out_importer = made.release();
    return {};
  });
}

void ReleaseExternalResourceImporter(OrtExternalResourceImporter* object) noexcept {
  delete object;
}

OrtStatus* CanImportMemory(const OrtExternalResourceImporter* importer,
                           OrtExternalMemoryHandleType handle_type, bool* out_supported) noexcept {
  return guarded("CanImportMemory", [&] {
    return ask(importer, "CanImportMemory", &Impl::CanImportMemory, handle_type,
               ORT_EXTERNAL_MEMORY_HANDLE_TYPE_VK_MEMORY_OPAQUE_FD, out_supported);
  });
}

OrtStatus* ImportMemory(OrtExternalResourceImporter* importer,
                        const OrtExternalMemoryDescriptor* descriptor,
                        OrtExternalMemoryHandle** out_handle) noexcept {
  return guarded("ImportMemory", [&]() -> Status {
    SDX_TRY(require(descriptor, "descriptor"));
    SDX_TRY(require(out_handle, "out_handle"));
    return make(importer, "ImportMemory", &Impl::ImportMemory, out_handle, descriptor);
  });
}

void ReleaseExternalMemoryHandle(OrtExternalMemoryHandle* object) noexcept {
  release(object, "OrtExternalMemoryHandle::Release");
}

OrtStatus* CreateTensorFromMemory(OrtExternalResourceImporter* importer,
                                  const OrtExternalMemoryHandle* memory_handle,
                                  const OrtExternalTensorDescriptor* tensor_descriptor,
                                  OrtValue** out_tensor) noexcept {
  return guarded("CreateTensorFromMemory", [&]() -> Status {
    SDX_TRY(require(memory_handle, "memory_handle"));
    SDX_TRY(require(tensor_descriptor, "tensor_descriptor"));
    SDX_TRY(require(out_tensor, "out_tensor"));
    return make(importer, "CreateTensorFromMemory", &Impl::CreateTensorFromMemory, out_tensor,
                memory_handle, tensor_descriptor);
  });
}

OrtStatus* CanImportSemaphore(const OrtExternalResourceImporter* importer,
                              OrtExternalSemaphoreType type, bool* out_supported) noexcept {
  return guarded("CanImportSemaphore", [&] {
    return ask(importer, "CanImportSemaphore", &Impl::CanImportSemaphore, type,
               ORT_EXTERNAL_SEMAPHORE_VK_TIMELINE_SEMAPHORE_OPAQUE_FD, out_supported);
  });
}

OrtStatus* ImportSemaphore(OrtExternalResourceImporter* importer,
                           const OrtExternalSemaphoreDescriptor* descriptor,
                           OrtExternalSemaphoreHandle** out_handle) noexcept {
  return guarded("ImportSemaphore", [&]() -> Status {
    SDX_TRY(require(descriptor, "descriptor"));
    SDX_TRY(require(out_handle, "out_handle"));
    return make(importer, "ImportSemaphore", &Impl::ImportSemaphore, out_handle, descriptor);
  });
}

void ReleaseExternalSemaphoreHandle(OrtExternalSemaphoreHandle* object) noexcept {
  release(object, "OrtExternalSemaphoreHandle::Release");
}

OrtStatus* WaitSemaphore(OrtExternalResourceImporter* importer,
                         OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                         uint64_t value) noexcept {
  return guarded("WaitSemaphore", [&]() -> Status {
    SDX_TRY(require(semaphore_handle, "semaphore_handle"));
    SDX_TRY(check_stream(importer, stream));
    return call(importer, "WaitSemaphore", &Impl::WaitSemaphore, semaphore_handle, stream, value);
  });
}

OrtStatus* SignalSemaphore(OrtExternalResourceImporter* importer,
                           OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                           uint64_t value) noexcept {
  return guarded("SignalSemaphore", [&]() -> Status {
    SDX_TRY(require(semaphore_handle, "semaphore_handle"));
    SDX_TRY(check_stream(importer, stream));
    return call(importer, "SignalSemaphore", &Impl::SignalSemaphore, semaphore_handle, stream,
                value);
  });
}

OrtStatus* InitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device,
                                          const OrtGraphicsInteropConfig* config) noexcept {
  return guarded("InitGraphicsInteropForEpDevice", [&]() -> Status {
    SDX_TRY(require(config, "config"));
    SDX_ASSIGN(const auto library, library_of(ep_device));
    OrtEpFactory* factory = ep_device->factory;
    const auto init = plugin_host::callback(*factory, &OrtEpFactory::InitGraphicsInterop, 25);
    if (init == nullptr) {
      return failure(Code::Unsupported, "provider '{}' works with no graphics interface",
                     ep_device->ep_name);
    }
    return plugin_host::guarded_call(library->name(), "InitGraphicsInterop",
                                     [&] { return init(factory, ep_device, config); });
  });
}

OrtStatus* DeinitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device) noexcept {
  return guarded("DeinitGraphicsInteropForEpDevice", [&]() -> Status {
    SDX_ASSIGN(const auto library, library_of(ep_device));
    OrtEpFactory* factory = ep_device->factory;
    const auto end = plugin_host::callback(*factory, &OrtEpFactory::DeinitGraphicsInterop, 25);
    if (end == nullptr) {
      return failure(Code::Unsupported, "provider '{}' works with no graphics interface",
                     ep_device->ep_name);
    }
    return plugin_host::guarded_call(library->name(), "DeinitGraphicsInterop",
                                     [&] { return end(factory, ep_device); });
  });
}

}  // namespace sardonyx::capi::interop_api
