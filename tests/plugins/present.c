/* A plugin library before a vendor's: the vendor's library runs as it is, but the processor is
 * presented to it as other hardware. For runtimes that have no option for that.
 *
 *   PRESENT_LIBRARY  path of the vendor's library
 *   PRESENT_TYPE     gpu or npu; default: as it is
 *   PRESENT_VENDOR   PCI number of the vendor, for example 0x8086; default: as it is
 *
 * The vendor's library gets a copy of the runtime's table with two functions of this file in it, so
 * the runtime must have at least the functions that sardonyx/c_api.h declares.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "sardonyx/c_api.h"

typedef OrtStatus* (*CreateFactories)(const char* registration_name, const OrtApiBase* base,
                                      const OrtLogger* logger, OrtEpFactory** factories,
                                      size_t max_factories, size_t* factory_count);
typedef OrtStatus* (*ReleaseFactory)(OrtEpFactory* factory);

static const OrtApiBase* runtime_base;
static const OrtApi* runtime;
static OrtApi presented;
static void* vendor_library;

static OrtHardwareDeviceType present_type(const OrtHardwareDevice* device) {
  const OrtHardwareDeviceType type = runtime->HardwareDevice_Type(device);
  const char* wanted = getenv("PRESENT_TYPE");
  if (type != OrtHardwareDeviceType_CPU || wanted == NULL) return type;
  return strcmp(wanted, "gpu") == 0 ? OrtHardwareDeviceType_GPU : OrtHardwareDeviceType_NPU;
}

static uint32_t present_vendor(const OrtHardwareDevice* device) {
  const char* wanted = getenv("PRESENT_VENDOR");
  if (runtime->HardwareDevice_Type(device) != OrtHardwareDeviceType_CPU || wanted == NULL) {
    return runtime->HardwareDevice_VendorId(device);
  }
  return (uint32_t)strtoul(wanted, NULL, 0);
}

static const OrtApi* present_api(uint32_t version) {
  return runtime_base->GetApi(version) == NULL ? NULL : &presented;
}

static const char* present_version(void) { return runtime_base->GetVersionString(); }

static const OrtApiBase presented_base = {present_api, present_version};

__attribute__((visibility("default"))) OrtStatus* CreateEpFactories(
    const char* registration_name, const OrtApiBase* base, const OrtLogger* logger,
    OrtEpFactory** factories, size_t max_factories, size_t* factory_count) {
  runtime_base = base;
  runtime = base->GetApi(ORT_API_VERSION);
  if (runtime == NULL) return base->GetApi(1)->CreateStatus(ORT_FAIL, "the runtime is too old");
  presented = *runtime;
  presented.HardwareDevice_Type = present_type;
  presented.HardwareDevice_VendorId = present_vendor;
  const char* path = getenv("PRESENT_LIBRARY");
  vendor_library = path == NULL ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (vendor_library == NULL) {
    return runtime->CreateStatus(ORT_FAIL, path == NULL ? "PRESENT_LIBRARY is empty" : dlerror());
  }
  CreateFactories create = NULL;
  *(void**)&create = dlsym(vendor_library, "CreateEpFactories");
  if (create == NULL) return runtime->CreateStatus(ORT_FAIL, "the library is not a plugin");
  return create(registration_name, &presented_base, logger, factories, max_factories,
                factory_count);
}

__attribute__((visibility("default"))) OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  ReleaseFactory release = NULL;
  *(void**)&release = dlsym(vendor_library, "ReleaseEpFactory");
  return release == NULL ? NULL : release(factory);
}
