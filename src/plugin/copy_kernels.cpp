#include "plugin/copy_kernels.h"

#include "plugin/device_io.h"
#include "plugin/options.h"
#include "plugin/values.h"

namespace sardonyx::plugin {

namespace {

struct CopyKernel : OrtKernelImpl {
  const CopyKernels* made_by;
};

OrtStatus* ORT_API_CALL compute_copy(OrtKernelImpl* self, OrtKernelContext* context) noexcept {
  const CopyKernels& kernels = *static_cast<CopyKernel*>(self)->made_by;
  const Host& host = kernels.host();
  return host.guarded("copying between devices", [&]() -> Status {
    const OrtValue* source = nullptr;
    SDX_TRY(host.take(host.api->KernelContext_GetInput(context, 0, &source)));
    if (source == nullptr) return {};
    SDX_ASSIGN(const TensorFacts facts, tensor_facts(host, *source));
    OrtValue* target = nullptr;
    SDX_TRY(host.take(host.api->KernelContext_GetOutput(
        context, 0, facts.shape.begin(), static_cast<std::size_t>(facts.shape.rank()), &target)));
    return copy_value(host, kernels.devices(), *source, *target);
  });
}

void ORT_API_CALL release_kernel(OrtKernelImpl* self) noexcept {
  delete static_cast<CopyKernel*>(self);
}

OrtStatus* ORT_API_CALL create_kernel(void* state, const OrtKernelInfo*,
                                      OrtKernelImpl** out) noexcept {
  auto* kernel = new CopyKernel{};
  kernel->made_by = static_cast<const CopyKernels*>(state);
  kernel->ort_version_supported = kernel->made_by->host().version;
  kernel->Compute = compute_copy;
  kernel->Release = release_kernel;
  *out = kernel;
  return nullptr;
}

/// All types that the host has a number for and that can be copied byte by byte.
Result<std::vector<const OrtDataType*>> copied_types(const Host& host) {
  std::vector<const OrtDataType*> types;
  for (int number = 1; number <= ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16; ++number) {
    const auto type = static_cast<ONNXTensorElementDataType>(number);
    const bool is_complex = type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64 ||
                            type == ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128;
    if (is_complex || type == ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING) continue;
    const OrtDataType* made = nullptr;
    SDX_TRY(host.take(host.ep->GetTensorDataType(type, &made)));
    types.push_back(made);
  }
  return types;
}

Status describe(const Host& host, OrtKernelDefBuilder& builder, bool is_from_host) {
  const OrtEpApi& api = *host.ep;
  SDX_ASSIGN(const auto types, copied_types(host));
  SDX_TRY(host.take(api.KernelDefBuilder_SetOperatorType(
      &builder, is_from_host ? "MemcpyFromHost" : "MemcpyToHost")));
  SDX_TRY(host.take(api.KernelDefBuilder_SetDomain(&builder, "")));
  SDX_TRY(host.take(api.KernelDefBuilder_SetSinceVersion(&builder, 1, 1)));
  SDX_TRY(host.take(api.KernelDefBuilder_SetExecutionProvider(&builder, kEpName)));
  SDX_TRY(
      host.take(api.KernelDefBuilder_AddTypeConstraint(&builder, "T", types.data(), types.size())));
  return host.take(is_from_host
                       ? api.KernelDefBuilder_SetInputMemType(&builder, 0, OrtMemTypeCPUInput)
                       : api.KernelDefBuilder_SetOutputMemType(&builder, 0, OrtMemTypeCPUOutput));
}

}  // namespace

Status CopyKernels::add(bool is_from_host) {
  const OrtEpApi& api = *host_.ep;
  OrtKernelDefBuilder* builder = nullptr;
  SDX_TRY(host_.take(api.CreateKernelDefBuilder(&builder)));
  OrtKernelDef* definition = nullptr;
  Status status = describe(host_, *builder, is_from_host);
  if (status.ok()) status = host_.take(api.KernelDefBuilder_Build(builder, &definition));
  api.ReleaseKernelDefBuilder(builder);
  if (!status.ok()) return status;
  status = host_.take(api.KernelRegistry_AddKernel(registry_, definition, create_kernel, this));
  api.ReleaseKernelDef(definition);
  return status;
}

Result<std::unique_ptr<CopyKernels>> CopyKernels::create(const Host& host,
                                                         const VirtualDevices& devices) {
  std::unique_ptr<CopyKernels> kernels(new CopyKernels(host, devices));
  SDX_TRY(host.take(host.ep->CreateKernelRegistry(&kernels->registry_)));
  SDX_TRY(kernels->add(true));
  SDX_TRY(kernels->add(false));
  return kernels;
}

CopyKernels::~CopyKernels() {
  if (registry_ != nullptr) host_.ep->ReleaseKernelRegistry(registry_);
}

}  // namespace sardonyx::plugin
