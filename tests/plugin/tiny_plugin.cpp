// A plugin library for tests: it multiplies float tensors. What follows the dot of its registration
// name makes it go wrong in one place ("tiny.create_ep_throw"), or work in another way:
//
//   .far       in memory of its own, at addresses that fault when the processor touches them
//   .kernels   by a kernel per node, instead of by compiling
//   .stream    on streams (with .far)
//   .profile   with a profiler; what follows it is the callback of that which goes wrong
//   .last      with channels last: it has a kernel for GlobalAveragePool then
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "plugin/tiny_profiler.h"
#include "sardonyx/c_api.h"

namespace {

const OrtApi* g_api = nullptr;

/// Whether a registration name asks for that fault.
bool has(const std::string& name, const char* fault) {
  const auto dot = name.find('.');
  return dot != std::string::npos && name.substr(dot + 1) == fault;
}

bool is(const std::string& name, const char* way) {
  return name.find(std::string(".") + way) != std::string::npos;
}

#define TRY(expression)                                    \
  do {                                                     \
    if (OrtStatus* status_ = (expression)) return status_; \
  } while (false)

/// Memory that only the plugin reads: its addresses have a bit that no address has.
constexpr uintptr_t kFarBit = uintptr_t{1} << 62;

template <typename T>
T* near_address(T* address) {
  return reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(address) & ~kFarBit);
}

OrtStatus* error(const char* text) { return g_api->CreateStatus(ORT_EP_FAIL, text); }

/// What a function leaves in its output although it fails: nobody may touch it.
template <typename T>
OrtStatus* leave_and_fail(T** out) {
  *out = reinterpret_cast<T*>(uintptr_t{8});
  return error("failed, but left something");
}

const char* const kLongText = [] {
  static std::string text(100000, 'x');
  return text.c_str();
}();

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
  out.data = near_address(static_cast<const float*>(data));
  return nullptr;
}

/// Counters of what the host did, read by tests through the library's own exports.
struct Counters {
  int live_blocks = 0;
  int allocations = 0;
  int copies = 0;
  int streams = 0;
  int waits = 0;
  int packed = 0;
  int on_stream = 0;
  int transfers = 0;
};
Counters g_counters;

const std::string& registration_of(const OrtEpFactory* self);

struct FarAllocator : OrtAllocator {
  OrtMemoryInfo* info = nullptr;
};

void* ORT_API_CALL far_alloc(OrtAllocator*, size_t size) {
  ++g_counters.live_blocks;
  ++g_counters.allocations;
  return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(std::malloc(size)) | kFarBit);
}

void* ORT_API_CALL far_alloc_on_stream(OrtAllocator* self, size_t size, OrtSyncStream*) {
  ++g_counters.on_stream;
  return far_alloc(self, size);
}

void ORT_API_CALL far_free(OrtAllocator*, void* memory) {
  --g_counters.live_blocks;
  std::free(near_address(memory));
}

const OrtMemoryInfo* ORT_API_CALL far_info(const OrtAllocator* self) {
  return static_cast<const FarAllocator*>(self)->info;
}

OrtStatus* new_far_info(OrtMemoryInfo** out) {
  return g_api->CreateMemoryInfo_V2("Far", OrtMemoryInfoDeviceType_NPU, 0x7e57, 0,
                                    OrtDeviceMemoryType_DEFAULT, 0, OrtDeviceAllocator, out);
}

OrtStatus* ORT_API_CALL create_allocator(OrtEpFactory* self, const OrtMemoryInfo*,
                                         const OrtKeyValuePairs*, OrtAllocator** allocator) {
  if (has(registration_of(self), "far.allocator_left")) return leave_and_fail(allocator);
  auto made = std::make_unique<FarAllocator>();
  made->version = 1;
  if (is(registration_of(self), "stream")) {
    made->version = ORT_API_VERSION;
    made->AllocOnStream = far_alloc_on_stream;
  }
  made->Alloc = far_alloc;
  made->Free = far_free;
  made->Info = far_info;
  TRY(new_far_info(&made->info));
  *allocator = made.release();
  return nullptr;
}

void ORT_API_CALL release_allocator(OrtEpFactory*, OrtAllocator* allocator) {
  auto* far = static_cast<FarAllocator*>(allocator);
  g_api->ReleaseMemoryInfo(far->info);
  delete far;
}

struct Transfer : OrtDataTransferImpl {};

void ORT_API_CALL release_transfer(OrtDataTransferImpl* self) {
  --g_counters.transfers;
  delete static_cast<Transfer*>(self);
}

bool ORT_API_CALL can_copy(const OrtDataTransferImpl*, const OrtMemoryDevice* from,
                           const OrtMemoryDevice* to) {
  const OrtEpApi* api = g_api->GetEpApi();
  const bool is_from = api->MemoryDevice_GetVendorId(from) == 0x7e57;
  const bool is_to = api->MemoryDevice_GetVendorId(to) == 0x7e57;
  const bool from_cpu = api->MemoryDevice_GetDeviceType(from) == OrtMemoryInfoDeviceType_CPU;
  const bool to_cpu = api->MemoryDevice_GetDeviceType(to) == OrtMemoryInfoDeviceType_CPU;
  return (is_from || is_to) && (is_from || from_cpu) && (is_to || to_cpu);
}

OrtStatus* ORT_API_CALL copy_tensors(OrtDataTransferImpl*, const OrtValue** from, OrtValue** to,
                                     OrtSyncStream**, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    size_t bytes = 0;
    const void* source = nullptr;
    void* target = nullptr;
    TRY(g_api->GetTensorSizeInBytes(from[i], &bytes));
    TRY(g_api->GetTensorData(from[i], &source));
    TRY(g_api->GetTensorMutableData(to[i], &target));
    std::memcpy(near_address(target), near_address(source), bytes);
    ++g_counters.copies;
  }
  return nullptr;
}

OrtStatus* ORT_API_CALL create_transfer(OrtEpFactory* self, OrtDataTransferImpl** out) {
  auto made = std::make_unique<Transfer>();
  ++g_counters.transfers;
  made->ort_version_supported = ORT_API_VERSION;
  made->Release = release_transfer;
  if (!has(registration_of(self), "far.transfer_incomplete")) made->CanCopy = can_copy;
  made->CopyTensors = copy_tensors;
  *out = made.release();
  return nullptr;
}

struct Notification : OrtSyncNotificationImpl {};
struct Stream : OrtSyncStreamImpl {};

OrtStatus* ORT_API_CALL activate(OrtSyncNotificationImpl*) { return nullptr; }
OrtStatus* ORT_API_CALL wait_on_host(OrtSyncNotificationImpl*) {
  ++g_counters.waits;
  return nullptr;
}
OrtStatus* ORT_API_CALL wait_on_device(OrtSyncNotificationImpl*, OrtSyncStream*) {
  ++g_counters.waits;
  return nullptr;
}
void ORT_API_CALL release_notification(OrtSyncNotificationImpl* self) {
  delete static_cast<Notification*>(self);
}

OrtStatus* ORT_API_CALL create_notification(OrtSyncStreamImpl*, OrtSyncNotificationImpl** out) {
  auto made = std::make_unique<Notification>();
  made->ort_version_supported = ORT_API_VERSION;
  made->Release = release_notification;
  made->Activate = activate;
  made->WaitOnDevice = wait_on_device;
  made->WaitOnHost = wait_on_host;
  *out = made.release();
  return nullptr;
}

void* ORT_API_CALL stream_handle(OrtSyncStreamImpl* self) { return self; }
OrtStatus* ORT_API_CALL stream_done(OrtSyncStreamImpl*) { return nullptr; }
void ORT_API_CALL release_stream(OrtSyncStreamImpl* self) {
  --g_counters.streams;
  delete static_cast<Stream*>(self);
}

bool ORT_API_CALL is_stream_aware(const OrtEpFactory*) { return true; }

OrtStatus* ORT_API_CALL create_stream(OrtEpFactory* self, const OrtMemoryDevice*,
                                      const OrtKeyValuePairs*, OrtSyncStreamImpl** out) {
  if (is(registration_of(self), "stream_left")) return leave_and_fail(out);
  auto made = std::make_unique<Stream>();
  made->ort_version_supported = ORT_API_VERSION;
  made->Release = release_stream;
  made->GetHandle = stream_handle;
  made->CreateNotification = create_notification;
  made->Flush = stream_done;
  made->OnSessionRunEnd = stream_done;
  ++g_counters.streams;
  *out = made.release();
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
  auto* product = near_address(static_cast<float*>(data));
  for (size_t i = 0; i < a.count; ++i) product[i] = a.data[i] * b.data[i];
  return nullptr;
}

/// A kernel for one Mul node; it keeps its second factor when that is constant.
struct MulKernel : OrtKernelImpl {
  std::string name;
  std::vector<float> kept;
};

OrtStatus* ORT_API_CALL mul_compute(OrtKernelImpl* self, OrtKernelContext* context) {
  const MulKernel& kernel = *static_cast<MulKernel*>(self);
  if (has(kernel.name, "kernels.compute_error")) return error("computed nothing");
  if (has(kernel.name, "kernels.no_output")) return nullptr;
  const OrtValue* value = nullptr;
  Factor a;
  Factor b;
  TRY(g_api->KernelContext_GetInput(context, 0, &value));
  TRY(read(value, a));
  TRY(g_api->KernelContext_GetInput(context, 1, &value));
  if (value != nullptr) {
    TRY(read(value, b));
  } else {
    b.data = kernel.kept.data();
    b.count = kernel.kept.size();
  }
  if (a.count != b.count) return error("the factors differ in size");
  if (is(kernel.name, "stream")) {
    void* stream = nullptr;
    TRY(g_api->KernelContext_GetGPUComputeStream(context, &stream));
    if (stream == nullptr) return error("there is no stream");
  }
  OrtValue* output = nullptr;
  TRY(g_api->KernelContext_GetOutput(context, 0, a.shape.data(), a.shape.size(), &output));
  void* data = nullptr;
  TRY(g_api->GetTensorMutableData(output, &data));
  auto* product = near_address(static_cast<float*>(data));
  for (size_t i = 0; i < a.count; ++i) product[i] = a.data[i] * b.data[i];
  return nullptr;
}

OrtStatus* ORT_API_CALL mul_pack(OrtKernelImpl* self, const OrtValue* tensor, int,
                                 OrtAllocator*, OrtSharedPrePackedWeightCache*, bool* is_packed) {
  MulKernel& kernel = *static_cast<MulKernel*>(self);
  Factor factor;
  TRY(read(tensor, factor));
  kernel.kept.assign(factor.data, factor.data + factor.count);
  ++g_counters.packed;
  *is_packed = true;
  return nullptr;
}

void ORT_API_CALL mul_release(OrtKernelImpl* self) { delete static_cast<MulKernel*>(self); }

OrtStatus* ORT_API_CALL create_mul(void* state, const OrtKernelInfo* info, OrtKernelImpl** out) {
  const OrtEp* ep = nullptr;
  TRY(g_api->GetEpApi()->KernelInfo_GetEp(info, &ep));
  if (ep == nullptr) return error("the kernel has no provider");
  const std::string name = *static_cast<const std::string*>(state);
  if (has(name, "kernels.create_error")) return error("makes no kernel");
  if (has(name, "kernels.create_left")) return leave_and_fail(out);
  if (has(name, "kernels.create_null")) return nullptr;
  auto made = std::make_unique<MulKernel>();
  made->ort_version_supported = ORT_API_VERSION;
  made->Compute = mul_compute;
  made->Release = mul_release;
  if (is(name, "pack")) made->PrePackWeight = mul_pack;
  made->name = name;
  *out = made.release();
  return nullptr;
}

/// The mean over all but the first and the last axis, which must have the channels.
OrtStatus* ORT_API_CALL pool_compute(OrtKernelImpl*, OrtKernelContext* context) {
  const OrtValue* value = nullptr;
  Factor x;
  TRY(g_api->KernelContext_GetInput(context, 0, &value));
  TRY(read(value, x));
  const auto channels = static_cast<size_t>(x.shape.back());
  const auto batch = static_cast<size_t>(x.shape.front());
  const size_t places = x.count / (channels * batch);
  std::vector<int64_t> shape(x.shape.size(), 1);
  shape.front() = x.shape.front();
  shape.back() = x.shape.back();
  OrtValue* output = nullptr;
  TRY(g_api->KernelContext_GetOutput(context, 0, shape.data(), shape.size(), &output));
  void* data = nullptr;
  TRY(g_api->GetTensorMutableData(output, &data));
  auto* mean = near_address(static_cast<float*>(data));
  for (size_t n = 0; n < batch; ++n) {
    for (size_t c = 0; c < channels; ++c) {
      float sum = 0;
      for (size_t i = 0; i < places; ++i) sum += x.data[(n * places + i) * channels + c];
      mean[n * channels + c] = sum / static_cast<float>(places);
    }
  }
  return nullptr;
}

OrtStatus* ORT_API_CALL create_pool(void*, const OrtKernelInfo*, OrtKernelImpl** out) {
  auto made = std::make_unique<MulKernel>();
  made->ort_version_supported = ORT_API_VERSION;
  made->Compute = pool_compute;
  made->Release = mul_release;
  *out = made.release();
  return nullptr;
}

struct Ep : OrtEp {
  std::string registration;
  std::string name;
  int run_depth = 0;
  OrtKernelRegistry* kernels = nullptr;
};

OrtStatus* ORT_API_CALL create_profiler(OrtEp* self, OrtEpProfilerImpl** profiler) {
  const std::string& name = static_cast<Ep*>(self)->registration;
  return create_tiny_profiler(g_api, name.substr(name.rfind('.') + 1), profiler);
}

OrtStatus* add_kernel(Ep& ep, const char* op, const char* domain, int first, int last,
                      OrtKernelCreateFunc create) {
  const OrtEpApi* api = g_api->GetEpApi();
  OrtKernelDefBuilder* builder = nullptr;
  TRY(api->CreateKernelDefBuilder(&builder));
  const OrtDataType* type = nullptr;
  TRY(api->GetTensorDataType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &type));
  TRY(api->KernelDefBuilder_SetOperatorType(builder, op));
  TRY(api->KernelDefBuilder_SetDomain(builder, domain));
  TRY(api->KernelDefBuilder_SetSinceVersion(builder, first, last));
  TRY(api->KernelDefBuilder_AddTypeConstraint(builder, "T", &type, 1));
  OrtKernelDef* def = nullptr;
  TRY(api->KernelDefBuilder_Build(builder, &def));
  TRY(api->KernelRegistry_AddKernel(ep.kernels, def, create, &ep.registration));
  api->ReleaseKernelDef(def);
  api->ReleaseKernelDefBuilder(builder);
  return nullptr;
}

OrtStatus* ORT_API_CALL get_kernels(OrtEp* self, const OrtKernelRegistry** out) {
  *out = static_cast<Ep*>(self)->kernels;
  return nullptr;
}

OrtStatus* ORT_API_CALL preferred_layout(OrtEp*, OrtEpDataLayout* layout) {
  *layout = OrtEpDataLayout_NHWC;
  return nullptr;
}

OrtStatus* take_kernels(const OrtGraph* graph, OrtEpGraphSupportInfo* info) {
  size_t count = 0;
  TRY(g_api->Graph_GetNumNodes(graph, &count));
  std::vector<const OrtNode*> nodes(count);
  TRY(g_api->Graph_GetNodes(graph, nodes.data(), count));
  for (const OrtNode* node : nodes) {
    const OrtKernelDef* def = nullptr;
    TRY(g_api->GetEpApi()->EpGraphSupportInfo_LookUpKernel(info, node, &def));
    if (def != nullptr) TRY(g_api->GetEpApi()->EpGraphSupportInfo_AddSingleNode(info, node));
  }
  return nullptr;
}

const char* ORT_API_CALL ep_name(const OrtEp* self) {
  return static_cast<const Ep*>(self)->name.c_str();
}

OrtStatus* ORT_API_CALL get_capability(OrtEp* self, const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* info) {
  const Ep& ep = *static_cast<Ep*>(self);
  if (has(ep.registration, "capability_throw")) throw 7;
  if (has(ep.registration, "capability_error")) return error("knows nothing");
  if (is(ep.registration, "kernels")) return take_kernels(graph, info);
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
    options.drop_constant_initializers = !is(ep.registration, "keep");
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
  if (has(ep.registration, "compile_left")) return leave_and_fail(infos);
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
  return ++static_cast<Ep*>(self)->run_depth == 1 ? nullptr : error("a run that began did not end");
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

const std::string& registration_of(const OrtEpFactory* self) {
  return static_cast<const Factory*>(self)->registration;
}

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
    OrtEpDevice*& made = ep_devices[(*ep_device_count)++];
    OrtStatus* status =
        g_api->GetEpApi()->CreateEpDevice(self, devices[i], nullptr, options, &made);
    if (status != nullptr) return status;
    if (!is(factory.registration, "far")) continue;
    OrtMemoryInfo* memory = nullptr;
    TRY(new_far_info(&memory));
    TRY(g_api->GetEpApi()->EpDevice_AddAllocatorInfo(made, memory));
    g_api->ReleaseMemoryInfo(memory);
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
  if (has(factory.registration, "create_ep_left")) return leave_and_fail(ep);
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
  if (is(factory.registration, "profile")) made->CreateProfiler = create_profiler;
  if (is(factory.registration, "kernels")) {
    TRY(g_api->GetEpApi()->CreateKernelRegistry(&made->kernels));
    TRY(add_kernel(*made, "Mul", "", 7, 14, create_mul));
    made->GetKernelRegistry = get_kernels;
    if (is(factory.registration, "last")) {
      TRY(add_kernel(*made, "GlobalAveragePool", "", 1, 22, create_pool));
      TRY(add_kernel(*made, "GlobalAveragePool", "com.ms.internal.nhwc", 1, 22, create_pool));
      made->GetPreferredDataLayout = preferred_layout;
    }
  }
  *ep = made.release();
  return nullptr;
}

void ORT_API_CALL release_ep(OrtEpFactory*, OrtEp* ep) {
  auto* own = static_cast<Ep*>(ep);
  if (own->kernels != nullptr) g_api->GetEpApi()->ReleaseKernelRegistry(own->kernels);
  delete own;
}

}  // namespace

extern "C" {

ORT_EXPORT OrtStatus* CreateEpFactories(const char* registered_name, const OrtApiBase* base,
                                        const OrtLogger*, OrtEpFactory** factories,
                                        size_t max_factories, size_t* factory_count) {
  g_api = base->GetApi(ORT_API_VERSION);
  const std::string name = registered_name;
  if (has(name, "newer_api") && base->GetApi(ORT_API_VERSION + 1) == nullptr) {
    return error("needs an API that is not there");
  }
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
  if (is(name, "far")) {
    made->CreateAllocator = create_allocator;
    made->ReleaseAllocator = release_allocator;
    made->CreateDataTransfer = has(name, "far.no_transfer") ? nullptr : create_transfer;
  }
  if (is(name, "stream")) {
    made->IsStreamAware = is_stream_aware;
    made->CreateSyncStreamForDevice = create_stream;
  }
  factories[0] = made.release();
  *factory_count = 1;
  return nullptr;
}

/// Values of the counters: live blocks, allocations, copies, live streams, waits, packed weights,
/// allocations on streams, live transfers.
ORT_EXPORT void tiny_counters(int* out) {
  const int values[] = {g_counters.live_blocks, g_counters.allocations, g_counters.copies,
                        g_counters.streams,     g_counters.waits,       g_counters.packed,
                        g_counters.on_stream,   g_counters.transfers};
  std::memcpy(out, values, sizeof values);
}

ORT_EXPORT OrtStatus* ReleaseEpFactory(OrtEpFactory* factory) {
  delete static_cast<Factory*>(factory);
  return nullptr;
}

}  // extern "C"
