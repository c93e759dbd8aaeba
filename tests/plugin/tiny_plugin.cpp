// A plugin library for tests: it multiplies float tensors. What follows the dot of its registration
// name makes it go wrong in one place ("tiny.create_ep_throw"), see Fault.
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "sardonyx/c_api.h"

namespace {

const OrtApi* g_api = nullptr;

/// Whether a registration name asks for that fault.
bool has(const std::string& name, const char* fault) {
  const auto dot = name.find('.');
  return dot != std::string::npos && name.substr(dot + 1) == fault;
}

OrtStatus* error(const char* text) { return g_api->CreateStatus(ORT_EP_FAIL, text); }

const char* const kLongText = [] {
  static std::string text(100000, 'x');
  return text.c_str();
}();

#define TRY(expression)                                    \
  do {                                                     \
    if (OrtStatus* status_ = (expression)) return status_; \
  } while (false)

struct Kernel : OrtNodeComputeInfo {
  std::string name;
  /// The constant second factor, when the plugin keeps it.
  std::vector<float> kept;
};

OrtStatus* ORT_API_CALL create_state(OrtNodeComputeInfo* self, OrtNodeComputeContext* context,
                                     void** state) {
  const char* node = g_api->GetEpApi()->NodeComputeContext_NodeName(context);
  if (node == nullptr || *node == '\0') return error("the node has no name");
  if (has(static_cast<Kernel*>(self)->name, "state_error")) return error("no state today");
  *state = new std::string(node);
  return nullptr;
}

void ORT_API_CALL release_state(OrtNodeComputeInfo*, void* state) {
  delete static_cast<std::string*>(state);
}

struct Factor {
  const float* data = nullptr;
  std::vector<int64_t> shape;
  size_t count = 0;
};

OrtStatus* read(const OrtValue* value, Factor& out) {
  OrtTensorTypeAndShapeInfo* info = nullptr;
  TRY(g_api->GetTensorTypeAndShape(value, &info));
  size_t rank = 0;
  OrtStatus* status = g_api->GetDimensionsCount(info, &rank);
  out.shape.resize(rank);
  if (status == nullptr) status = g_api->GetDimensions(info, out.shape.data(), rank);
  if (status == nullptr) status = g_api->GetTensorShapeElementCount(info, &out.count);
  g_api->ReleaseTensorTypeAndShapeInfo(info);
  if (status != nullptr) return status;
  const void* data = nullptr;
  TRY(g_api->GetTensorData(value, &data));
  out.data = static_cast<const float*>(data);
  return nullptr;
}

OrtStatus* ORT_API_CALL compute(OrtNodeComputeInfo* self, void*, OrtKernelContext* context) {
  const Kernel& kernel = *static_cast<Kernel*>(self);
  if (has(kernel.name, "compute_throw")) throw std::runtime_error("thrown by Compute");
  if (has(kernel.name, "compute_error")) return error("computed nothing");
  if (has(kernel.name, "no_output")) return nullptr;
  size_t input_count = 0;
  TRY(g_api->KernelContext_GetInputCount(context, &input_count));
  const OrtValue* value = nullptr;
  Factor a;
  Factor b;
  TRY(g_api->KernelContext_GetInput(context, 0, &value));
  TRY(read(value, a));
  if (input_count > 1) {
    TRY(g_api->KernelContext_GetInput(context, 1, &value));
    TRY(read(value, b));
  } else {
    b.data = kernel.kept.empty() ? a.data : kernel.kept.data();
    b.count = a.count;
  }
  if (a.count != b.count) return error("the factors differ in size");
  OrtValue* output = nullptr;
  TRY(g_api->KernelContext_GetOutput(context, 0, a.shape.data(), a.shape.size(), &output));
  void* data = nullptr;
  TRY(g_api->GetTensorMutableData(output, &data));
  for (size_t i = 0; i < a.count; ++i) static_cast<float*>(data)[i] = a.data[i] * b.data[i];
  return nullptr;
}

struct Ep : OrtEp {
  std::string registration;
  std::string name;
  int run_depth = 0;
};

const char* ORT_API_CALL ep_name(const OrtEp* self) {
  return static_cast<const Ep*>(self)->name.c_str();
}

OrtStatus* ORT_API_CALL get_capability(OrtEp* self, const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* info) {
  const Ep& ep = *static_cast<Ep*>(self);
  if (has(ep.registration, "capability_throw")) throw 7;
  if (has(ep.registration, "capability_error")) return error("knows nothing");
  size_t count = 0;
  TRY(g_api->Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  TRY(g_api->Graph_GetNodes(graph, nodes.data(), count));
  for (const OrtNode* node : nodes) {
    const char* op = nullptr;
    TRY(g_api->Node_GetOperatorType(node, &op));
    if (std::strcmp(op, "Mul") != 0) continue;
    OrtNodeFusionOptions options{};
    options.ort_version_supported = ORT_API_VERSION;
    options.drop_constant_initializers = !has(ep.registration, "keep");
    TRY(g_api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, &options));
    if (has(ep.registration, "twice")) {
      TRY(g_api->GetEpApi()->EpGraphSupportInfo_AddNodesToFuse(info, &node, 1, &options));
    }
  }
  return nullptr;
}

/// The graph's one initializer, if it has one.
OrtStatus* keep_constant(const OrtGraph* graph, Kernel& kernel) {
  size_t count = 0;
  TRY(g_api->Graph_GetNumInitializers(graph, &count));
  if (count == 0) return nullptr;
  std::vector<const OrtValueInfo*> initializers(count);
  TRY(g_api->Graph_GetInitializers(graph, initializers.data(), count));
  const OrtValue* value = nullptr;
  TRY(g_api->ValueInfo_GetInitializerValue(initializers[0], &value));
  Factor factor;
  TRY(read(value, factor));
  kernel.kept.assign(factor.data, factor.data + factor.count);
  return nullptr;
}

OrtStatus* ORT_API_CALL compile(OrtEp* self, const OrtGraph** graphs, const OrtNode** fused_nodes,
                                size_t count, OrtNodeComputeInfo** infos, OrtNode**) {
  const Ep& ep = *static_cast<Ep*>(self);
  if (has(ep.registration, "compile_throw")) throw std::runtime_error("thrown by Compile");
  if (has(ep.registration, "compile_error")) return error("cannot compile");
  if (has(ep.registration, "compile_null")) return nullptr;
  for (size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    TRY(g_api->Node_GetName(fused_nodes[i], &name));
    auto made = std::make_unique<Kernel>();
    made->ort_version_supported = ORT_API_VERSION;
    made->CreateState = create_state;
    made->Compute = compute;
    made->ReleaseState = release_state;
    made->name = ep.registration;
    TRY(keep_constant(graphs[i], *made));
    infos[i] = made.release();
  }
  return nullptr;
}

void ORT_API_CALL release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) {
  for (size_t i = 0; i < count; ++i) delete static_cast<Kernel*>(infos[i]);
}

OrtStatus* ORT_API_CALL run_start(OrtEp* self, const OrtRunOptions*) {
  ++static_cast<Ep*>(self)->run_depth;
  return nullptr;
}

OrtStatus* ORT_API_CALL run_end(OrtEp* self, const OrtRunOptions*, bool) {
  return --static_cast<Ep*>(self)->run_depth == 0 ? nullptr : error("runs overlap");
}

OrtStatus* ORT_API_CALL one_at_a_time(OrtEp*, bool* is_supported) {
  *is_supported = false;
  return nullptr;
}

OrtStatus* ORT_API_CALL set_options(OrtEp*, const char* const* keys, const char* const*, size_t) {
  return std::strcmp(keys[0], "speed") == 0 ? nullptr : error("no such option");
}

struct Factory : OrtEpFactory {
  std::string registration;
};

const char* ORT_API_CALL factory_name(const OrtEpFactory* self) {
  const auto& factory = *static_cast<const Factory*>(self);
  if (has(factory.registration, "name_null")) return nullptr;
  if (has(factory.registration, "name_empty")) return "";
  if (has(factory.registration, "name_long")) return kLongText;
  if (has(factory.registration, "name_throw")) throw std::runtime_error("thrown by GetName");
  return factory.registration.c_str();
}

const char* ORT_API_CALL factory_vendor(const OrtEpFactory*) { return "Tests"; }
const char* ORT_API_CALL factory_version(const OrtEpFactory*) { return "1.2.3"; }

OrtStatus* ORT_API_CALL supported_devices(OrtEpFactory* self,
                                          const OrtHardwareDevice* const* devices,
                                          size_t device_count, OrtEpDevice** ep_devices,
                                          size_t max_ep_devices, size_t* ep_device_count) {
  const auto& factory = *static_cast<Factory*>(self);
  *ep_device_count = 0;
  if (has(factory.registration, "devices_throw")) throw std::runtime_error("thrown");
  if (has(factory.registration, "devices_error")) return error("no devices today");
  if (has(factory.registration, "devices_many")) *ep_device_count = max_ep_devices + 5;
  if (has(factory.registration, "devices_null")) *ep_device_count = 1;
  if (*ep_device_count != 0 || has(factory.registration, "devices_none")) return nullptr;
  OrtKeyValuePairs* options = nullptr;
  g_api->CreateKeyValuePairs(&options);
  g_api->AddKeyValuePair(options, "threads", "1");
  for (size_t i = 0; i < device_count && *ep_device_count < max_ep_devices; ++i) {
    const bool is_cpu = g_api->HardwareDevice_Type(devices[i]) == OrtHardwareDeviceType_CPU;
    if (!is_cpu && !has(factory.registration, "all_devices")) continue;
    OrtStatus* status = g_api->GetEpApi()->CreateEpDevice(self, devices[i], nullptr, options,
                                                          &ep_devices[(*ep_device_count)++]);
    if (status != nullptr) return status;
  }
  g_api->ReleaseKeyValuePairs(options);
  return nullptr;
}

OrtStatus* ORT_API_CALL create_ep(OrtEpFactory* self, const OrtHardwareDevice* const*,
                                  const OrtKeyValuePairs* const*, size_t,
                                  const OrtSessionOptions* options, const OrtLogger*, OrtEp** ep) {
  const auto& factory = *static_cast<Factory*>(self);
  if (has(factory.registration, "create_ep_throw")) throw std::runtime_error("thrown by CreateEp");
  if (has(factory.registration, "create_ep_error")) return error("refused by CreateEp");
  if (has(factory.registration, "create_ep_null")) return nullptr;
  int has_threads = 0;
  const std::string key = "ep." + factory.registration + ".threads";
  TRY(g_api->HasSessionConfigEntry(options, key.c_str(), &has_threads));
  if (has_threads == 0) return error("the default option is missing");
  auto made = std::make_unique<Ep>();
  made->ort_version_supported = ORT_API_VERSION;
  if (has(factory.registration, "newer")) made->ort_version_supported = 99;
  if (has(factory.registration, "older")) made->ort_version_supported = 22;
  made->registration = factory.registration;
  made->name = factory.registration;
  made->GetName = ep_name;
  made->GetCapability = get_capability;
  made->Compile = compile;
  made->ReleaseNodeComputeInfos = release_infos;
  made->OnRunStart = run_start;
  made->OnRunEnd = run_end;
  made->SetDynamicOptions = set_options;
  made->IsConcurrentRunSupported = one_at_a_time;
  *ep = made.release();
  return nullptr;
}

void ORT_API_CALL release_ep(OrtEpFactory*, OrtEp* ep) { delete static_cast<Ep*>(ep); }

}  // namespace

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                        const OrtLogger*, OrtEpFactory** factories,
                                        size_t max_factories, size_t* factory_count) {
  g_api = base->GetApi(ORT_API_VERSION);
  const std::string name = registered_name;
  if (has(name, "create_throw")) throw std::runtime_error("thrown by CreateEpFactories");
  if (has(name, "create_error")) return error("made no factory");
  if (has(name, "create_none")) return nullptr;
  if (has(name, "create_many")) *factory_count = max_factories + 1;
  if (has(name, "create_null")) *factory_count = 1;
  if (*factory_count != 0) return nullptr;
  auto made = std::make_unique<Factory>();
  made->ort_version_supported = has(name, "newer") ? 99 : ORT_API_VERSION;
  made->registration = name;
  made->GetName = factory_name;
  made->GetVendor = factory_vendor;
  made->GetVersion = factory_version;
  made->GetSupportedDevices = supported_devices;
  made->CreateEp = has(name, "no_create_ep") ? nullptr : create_ep;
  made->ReleaseEp = release_ep;
  factories[0] = made.release();
  *factory_count = 1;
  return nullptr;
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
