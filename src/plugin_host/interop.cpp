// Memory and semaphores of graphics interfaces, which plugins import for their devices.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/devices.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/library.h"

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

template <typename Kind>
Status ask(const OrtExternalResourceImporter* importer, const char* name,
           bool (ORT_API_CALL* Impl::*member)(const Impl*, Kind), Kind kind, bool* out) {
  SDX_TRY(require(importer, "importer"));
  SDX_TRY(require(out, "out_supported"));
  *out = false;
  const auto function = importer->impl->*member;
  if (function == nullptr) return {};
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
    SDX_TRY(plugin_host::guarded_call(made->library->name(),
                                      "CreateExternalResourceImporterForDevice",
                                      [&] { return create(factory, ep_device, &made->impl); }));
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
    return ask(importer, "CanImportMemory", &Impl::CanImportMemory, handle_type, out_supported);
  });
}

OrtStatus* ImportMemory(OrtExternalResourceImporter* importer,
                        const OrtExternalMemoryDescriptor* descriptor,
                        OrtExternalMemoryHandle** out_handle) noexcept {
  return guarded("ImportMemory", [&]() -> Status {
    SDX_TRY(require(descriptor, "descriptor"));
    SDX_TRY(require(out_handle, "out_handle"));
    return call(importer, "ImportMemory", &Impl::ImportMemory, descriptor, out_handle);
  });
}

void ReleaseExternalMemoryHandle(OrtExternalMemoryHandle* object) noexcept {
  if (object != nullptr && object->Release != nullptr) object->Release(object);
}

OrtStatus* CreateTensorFromMemory(OrtExternalResourceImporter* importer,
                                  const OrtExternalMemoryHandle* memory_handle,
                                  const OrtExternalTensorDescriptor* tensor_descriptor,
                                  OrtValue** out_tensor) noexcept {
  return guarded("CreateTensorFromMemory", [&]() -> Status {
    SDX_TRY(require(memory_handle, "memory_handle"));
    SDX_TRY(require(tensor_descriptor, "tensor_descriptor"));
    SDX_TRY(require(out_tensor, "out_tensor"));
    return call(importer, "CreateTensorFromMemory", &Impl::CreateTensorFromMemory, memory_handle,
                tensor_descriptor, out_tensor);
  });
}

OrtStatus* CanImportSemaphore(const OrtExternalResourceImporter* importer,
                              OrtExternalSemaphoreType type, bool* out_supported) noexcept {
  return guarded("CanImportSemaphore", [&] {
    return ask(importer, "CanImportSemaphore", &Impl::CanImportSemaphore, type, out_supported);
  });
}

OrtStatus* ImportSemaphore(OrtExternalResourceImporter* importer,
                           const OrtExternalSemaphoreDescriptor* descriptor,
                           OrtExternalSemaphoreHandle** out_handle) noexcept {
  return guarded("ImportSemaphore", [&]() -> Status {
    SDX_TRY(require(descriptor, "descriptor"));
    SDX_TRY(require(out_handle, "out_handle"));
    return call(importer, "ImportSemaphore", &Impl::ImportSemaphore, descriptor, out_handle);
  });
}

void ReleaseExternalSemaphoreHandle(OrtExternalSemaphoreHandle* object) noexcept {
  if (object != nullptr && object->Release != nullptr) object->Release(object);
}

OrtStatus* WaitSemaphore(OrtExternalResourceImporter* importer,
                         OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                         uint64_t value) noexcept {
  return guarded("WaitSemaphore", [&]() -> Status {
    SDX_TRY(require(semaphore_handle, "semaphore_handle"));
    return call(importer, "WaitSemaphore", &Impl::WaitSemaphore, semaphore_handle, stream, value);
  });
}

OrtStatus* SignalSemaphore(OrtExternalResourceImporter* importer,
                           OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                           uint64_t value) noexcept {
  return guarded("SignalSemaphore", [&]() -> Status {
    SDX_TRY(require(semaphore_handle, "semaphore_handle"));
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
