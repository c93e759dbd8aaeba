#include "plugin/ep.h"

#include "base/text.h"
#include "plugin/capability.h"

namespace sardonyx::plugin {

namespace {

/// A later value of OrtWeightlessSupport, which only providers answer.
constexpr int kAllOrExternalOnly = 3;

const char* ORT_API_CALL get_name(const OrtEp*) noexcept { return kEpName; }

OrtStatus* ORT_API_CALL get_capability(OrtEp* self, const OrtGraph* graph,
                                       OrtEpGraphSupportInfo* info) noexcept {
  const Ep& ep = *static_cast<Ep*>(self);
  return ep.host().guarded("GetCapability", [&] { return ep.find_capability(*graph, *info); });
}

OrtStatus* ORT_API_CALL compile_graphs(OrtEp* self, const OrtGraph** graphs, const OrtNode** nodes,
                                       size_t count, OrtNodeComputeInfo** infos,
                                       OrtNode** context_nodes) noexcept {
  const Ep& ep = *static_cast<Ep*>(self);
  return ep.host().guarded(
      "Compile", [&] { return ep.compile(graphs, nodes, count, infos, context_nodes); });
}

OrtStatus* ORT_API_CALL weightless_support(const OrtEp*, OrtWeightlessSupport* support) noexcept {
  *support = static_cast<OrtWeightlessSupport>(kAllOrExternalOnly);
  return nullptr;
}

OrtStatus* ORT_API_CALL data_support(const OrtEp*, uint32_t* flags) noexcept {
  constexpr uint32_t kReadAndWrite = 3;
  *flags = kReadAndWrite;
  return nullptr;
}

const char* ORT_API_CALL compatibility_info(OrtEp* self, const OrtGraph*) noexcept {
  return static_cast<const Ep*>(self)->compatibility_info().c_str();
}

void ORT_API_CALL release_infos(OrtEp*, OrtNodeComputeInfo** infos, size_t count) noexcept {
  for (size_t i = 0; i < count; ++i) delete static_cast<Part*>(infos[i]);
}

OrtStatus* ORT_API_CALL is_concurrent(OrtEp*, bool* is_supported) noexcept {
  *is_supported = true;
  return nullptr;
}

OrtStatus* ORT_API_CALL kernel_registry(OrtEp* self, const OrtKernelRegistry** registry) noexcept {
  *registry = static_cast<Ep*>(self)->context().copy_kernels;
  return nullptr;
}

OrtStatus* ORT_API_CALL default_memory(const OrtEp* self, const OrtMemoryDevice** device) noexcept {
  *device = static_cast<const Ep*>(self)->context().device->memory_device();
  return nullptr;
}

}  // namespace

Ep::Ep(PartContext context) : OrtEp{}, context_(std::move(context)) {
  ort_version_supported = context_.host.version;
  GetName = get_name;
  GetCapability = get_capability;
  Compile = compile_graphs;
  ReleaseNodeComputeInfos = release_infos;
  IsConcurrentRunSupported = is_concurrent;
  GetWeightlessSupport = weightless_support;
  GetEpContextDataSupport = data_support;
  GetCompiledModelCompatibilityInfo = plugin::compatibility_info;
  if (auto info = context_.provider->compatibility_info({}); info.ok()) {
    compatibility_info_ = std::move(info).value();
  }
  if (context_.device != nullptr) {
    GetKernelRegistry = kernel_registry;
    GetDefaultMemoryDevice = default_memory;
  }
}

Status Ep::find_capability(const OrtGraph& graph, OrtEpGraphSupportInfo& info) const {
  SDX_ASSIGN(const auto groups, find_groups(host(), *context_.provider, graph));
  OrtNodeFusionOptions options{};
  options.ort_version_supported = host().version;
  options.drop_constant_initializers = true;
  for (const auto& nodes : groups) {
    SDX_TRY(host().take(
        host().ep->EpGraphSupportInfo_AddNodesToFuse(&info, nodes.data(), nodes.size(), &options)));
  }
  return {};
}

Status Ep::compile(const OrtGraph* const* graphs, const OrtNode* const* nodes, std::size_t count,
                   OrtNodeComputeInfo** infos, OrtNode** context_nodes) const {
  std::vector<std::unique_ptr<Part>> parts;
  for (std::size_t i = 0; i < count; ++i) {
    OrtNode** node = context_nodes == nullptr ? nullptr : &context_nodes[i];
    SDX_ASSIGN(auto part, Part::compile(context_, *graphs[i], *nodes[i], node));
    parts.push_back(std::move(part));
  }
  for (std::size_t i = 0; i < count; ++i) infos[i] = parts[i].release();
  return {};
}

}  // namespace sardonyx::plugin
