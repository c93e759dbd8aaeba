#include "plugin_host/provider.h"

#include <algorithm>
#include <array>

#include "base/log.h"
#include "base/text.h"
#include "capi/graph_view.h"
#include "capi/kernel_info.h"
#include "capi/places.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/compiled.h"
#include "plugin_host/graph_support.h"
#include "plugin_host/kernel_part.h"

namespace sardonyx::plugin_host {

namespace {

/// Operators whose tensors have channels, which some plugins want last.
constexpr std::array kLayoutOps = {"Conv",
                                   "ConvTranspose",
                                   "ConvInteger",
                                   "QLinearConv",
                                   "MaxPool",
                                   "AveragePool",
                                   "LpPool",
                                   "GlobalMaxPool",
                                   "GlobalAveragePool",
                                   "GlobalLpPool",
                                   "MaxUnpool",
                                   "MaxRoiPool",
                                   "LRN",
                                   "BatchNormalization",
                                   "Resize",
                                   "GridSample",
                                   "SpaceToDepth",
                                   "DepthToSpace",
                                   "InstanceNormalization",
                                   "Upsample",
                                   "RoiAlign",
                                   "AffineGrid",
                                   "Col2Im",
                                   "GroupNormalization",
                                   "DeformConv",
                                   "FusedConv",
                                   "NhwcConv",
                                   "QLinearAveragePool"};

DeviceType type_of(OrtHardwareDeviceType type) {
  switch (type) {
    case OrtHardwareDeviceType_CPU: return DeviceType::Cpu;
    case OrtHardwareDeviceType_GPU: return DeviceType::Gpu;
    case OrtHardwareDeviceType_NPU: return DeviceType::Npu;
    default: return DeviceType::Unknown;
  }
}

constexpr std::string_view kChannelsLast = "com.ms.internal.nhwc";

/// A memory device is the memory info that it was asked of.
const OrtMemoryInfo& memory_of(const OrtMemoryDevice& device) {
  return reinterpret_cast<const OrtMemoryInfo&>(device);
}

const OrtMemoryDevice* device_at(const Place* place) {
  return reinterpret_cast<const OrtMemoryDevice*>(&capi::memory_at(place));
}

bool has_layout(const Node& node) {
  return std::find(kLayoutOps.begin(), kLayoutOps.end(), node.op_type) != kLayoutOps.end();
}

/// A number of the model's path and the names in it, so that its parts are called alike in every
/// session, and those of models that share compiled data are told apart: such models often have the
/// same names.
std::uint64_t name_hash(const Model& model) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  };
  const Graph& graph = model.graph;
  add(model.path);
  add(graph.name);
  for (const ValueId id : graph.inputs()) add(graph.value(id).name);
  for (const ValueId id : graph.outputs()) add(graph.value(id).name);
  return hash;
}

/// The part of the graph that the plugin is asked about: all of it, or some of the nodes.
Result<std::unique_ptr<capi::GraphView>> view_for(const Model& model,
                                                  std::span<const NodeId> nodes) {
  SDX_ASSIGN(const auto all, model.graph.topological_order());
  if (nodes.size() == all.size()) {
    return capi::GraphView::whole(model.graph, capi::model_facts(model));
  }
  return capi::GraphView::of_part(model.graph, capi::model_facts(model),
                                  capi::part_of(model.graph, nodes, false));
}

/// y = Relu(x): what a provider is given that has to end a group of models without a last one.
Model smallest_model() {
  Model model;
  model.ir_version = 9;
  model.opset_imports = {{"", 17}};
  Graph& graph = model.graph;
  graph.name = "end_of_group";
  const Type type = Type::tensor(DType::Float32, Shape{1, 8});
  Node node;
  node.op_type = node.name = "Relu";
  node.opset = 17;
  node.inputs = {graph.add_value("x", type)};
  node.outputs = {graph.add_value("y", type)};
  graph.add_input(node.inputs[0]);
  graph.add_node(std::move(node));
  graph.add_output(1);
  return model;
}

const std::string& first_output(const Graph& graph, const std::vector<NodeId>& nodes) {
  static const std::string none;
  for (const NodeId id : nodes) {
    for (const ValueId output : graph.node(id).outputs) {
      if (output != kNoValue) return graph.value(output).name;
    }
  }
  return none;
}

}  // namespace

Result<std::shared_ptr<const Provider>> PluginProvider::create(
    const std::vector<const OrtEpDevice*>& devices, const OrtSessionOptions& options,
    const WeightlessRequest& request, std::size_t instance) {
  const OrtEpDevice& first = *devices.front();
  auto library = first.library.lock();
  if (library == nullptr || first.is_retired) {
    return failure(Code::InvalidArgument,
                   "the plugin library of provider '{}' was unregistered before the session was "
                   "made",
                   first.ep_name);
  }
  SDX_TRY(check_weightless_metadata(first.ep_name, devices, request));
  auto handle = std::make_shared<EpHandle>(std::move(library), *first.factory);
  std::shared_ptr<PluginProvider> provider(new PluginProvider(std::move(handle)));
  provider->instance_ = instance;
  provider->options_ = std::make_unique<OrtSessionOptions>(options);
  provider->options_->at_creation.clear();
  provider->options_->asks_context_data = std::make_shared<std::atomic<bool>>(false);
  provider->context_ = context_entries(options);
  SDX_TRY(check_context_entries(provider->context_));
  if (!request.entry.empty() && !request.is_optional) {
    // The spelling that providers of all versions know.
    provider->options_->options.entries["ep.enable_weightless"] =
        request.mode == Weightless::None ? "0" : "1";
  }
  SDX_TRY(provider->start(devices, request));
  return std::shared_ptr<const Provider>(std::move(provider));
}

Status PluginProvider::start(const std::vector<const OrtEpDevice*>& devices,
                             const WeightlessRequest& request) {
  std::vector<const OrtKeyValuePairs*> metadata;
  for (const OrtEpDevice* device : devices) {
    hardware_.push_back(device->plugin_device);
    devices_.push_back(device);
    metadata.push_back(&device->metadata);
  }
  OrtEpFactory& factory = handle_->factory;
  OrtEp* made = nullptr;
  SDX_TRY(guarded_call(library(), "CreateEp", [&] {
    return factory.CreateEp(&factory, hardware_.data(), metadata.data(), hardware_.size(),
                            options_.get(), &capi::default_logger(), &made);
  }));
  handle_->ep = made;
  if (handle_->ep == nullptr) {
    return failure(Code::Internal, "plugin library '{}': CreateEp returned a null pointer",
                   library());
  }
  SDX_TRY(require_callback(library(), "OrtEp::GetName", ep().GetName != nullptr));
  SDX_ASSIGN(name_, read_text(library(), "GetName", [&] { return ep().GetName(&ep()); }));
  SDX_TRY(require_callback(library(), "OrtEp::GetCapability",
                           callback(ep(), &OrtEp::GetCapability, 23) != nullptr));
  SDX_ASSIGN(grant_, ask_weightless(library(), ep(), name_, devices, request));
  if (const auto ask = callback(ep(), &OrtEp::IsConcurrentRunSupported, 24)) {
    SDX_TRY(guarded_call(library(), "IsConcurrentRunSupported",
                         [&] { return ask(&ep(), &is_concurrent_); }));
  }
  if (const auto get = callback(ep(), &OrtEp::GetKernelRegistry, 24)) {
    SDX_TRY(guarded_call(library(), "GetKernelRegistry", [&] { return get(&ep(), &kernels_); }));
  }
  if (const auto get = callback(ep(), &OrtEp::GetPreferredDataLayout, 23)) {
    OrtEpDataLayout layout = OrtEpDataLayout_Default;
    SDX_TRY(guarded_call(library(), "GetPreferredDataLayout", [&] { return get(&ep(), &layout); }));
    wants_channels_last_ = layout == OrtEpDataLayout_NHWC;
  }
  return find_memories(devices);
}

void PluginProvider::begin_profiling(Profiler::Clock::time_point start) const {
  profiler_ = PluginProfiler::start(library(), ep(), start);
}

std::vector<ProviderEvent> PluginProvider::end_profiling() const {
  return profiler_ == nullptr ? std::vector<ProviderEvent>() : profiler_->end();
}

Status PluginProvider::check_data_functions(bool loads) const {
  constexpr std::uint32_t kRead = 1;
  constexpr std::uint32_t kWrite = 2;
  const bool writes = context_.makes_context && context_.writes_by_callback;
  const bool reads = loads && context_.reads_by_callback;
  if (!writes && !reads) return {};
  // A provider of before the question asks for the functions when it is made, if it uses them.
  std::uint32_t flags = *options_->asks_context_data ? kRead | kWrite : 0;
  if (const auto get = callback(ep(), &OrtEp::GetEpContextDataSupport, 31)) {
    flags = 0;
    SDX_TRY(
        guarded_call(library(), "GetEpContextDataSupport", [&] { return get(&ep(), &flags); }));
  }
  if (flags > (kRead | kWrite)) {
    return failure(capi::kPlainFailure,
                   "OrtEp for {} returned unknown EPContext data support flags: {}.", name_, flags);
  }
  const bool lacks_write = writes && (flags & kWrite) == 0;
  const bool lacks_read = reads && (flags & kRead) == 0;
  if (!lacks_write && !lacks_read) return {};
  return failure(capi::kPlainFailure,
                 "EP '{}' does not support the registered EPContext data {} callback.", name_,
                 lacks_write ? "write" : "read");
}

Status PluginProvider::find_memories(const std::vector<const OrtEpDevice*>& devices) {
  for (const OrtEpDevice* device : devices) {
    if (device->memory) infos_.push_back(*device->memory);
    if (device->read_only_memory && !constant_info_) constant_info_ = device->read_only_memory;
  }
  if (!infos_.empty()) place_ = capi::place_of(infos_.front());
  if (const auto get = callback(ep(), &OrtEp::GetDefaultMemoryDevice, 27)) {
    const OrtMemoryDevice* device = nullptr;
    SDX_TRY(guarded_call(library(), "GetDefaultMemoryDevice", [&] { return get(&ep(), &device); }));
    if (device != nullptr) place_ = capi::place_of(memory_of(*device));
  }
  has_streams_ = place_ != nullptr && has_streams(*handle_->library, handle_->factory);
  if (place_ == nullptr || handle_->library->transfer(handle_->factory) != nullptr) return {};
  return failure(Code::InvalidArgument,
                 "plugin library '{}': provider '{}' works in '{}' memory, but its factory has no "
                 "CreateDataTransfer that tensors could be copied with",
                 library(), name_, place_->name());
}

std::vector<DeviceDescription> PluginProvider::devices() const {
  std::vector<DeviceDescription> described;
  for (const OrtEpDevice* device : devices_) {
    const OrtHardwareDevice& hardware = *device->device;
    DeviceDescription one{type_of(hardware.type), hardware.vendor, hardware.vendor_id,
                          std::nullopt, hardware.memory_bytes};
    if (device->memory && device->memory->id >= 0) {
      one.ordinal = static_cast<std::uint32_t>(device->memory->id);
    }
    described.push_back(std::move(one));
  }
  return described;
}

bool PluginProvider::can_run(const Graph&, NodeId, std::string* why_not) const {
  if (why_not != nullptr) *why_not = fmt::format("provider '{}' did not take the node", name_);
  return false;
}

Result<std::vector<NodeId>> PluginProvider::wanted(const Graph& graph,
                                                   std::span<const NodeId> free) const {
  std::vector<NodeId> nodes;
  for (const NodeId id : free) {
    // What the session could not rewrite with channels last stays with the providers that take it
    // as it is.
    SDX_ASSIGN(const bool is_refused, wants_layout(graph.node(id)));
    if (!is_refused) nodes.push_back(id);
  }
  return nodes;
}

Result<bool> PluginProvider::wants_layout(const Node& node) const {
  if (!wants_channels_last_ || !has_layout(node) || node.domain == kChannelsLast) return false;
  const auto should = callback(ep(), &OrtEp::ShouldConvertDataLayoutForOp, 23);
  if (should == nullptr) return true;
  int answer = -1;
  SDX_TRY(guarded_call(library(), "ShouldConvertDataLayoutForOp", [&] {
    return should(&ep(), node.domain.c_str(), node.op_type.c_str(), OrtEpDataLayout_NHWC, &answer);
  }));
  return answer != 0;
}

Status PluginProvider::ask(const Model& model, std::span<const NodeId> nodes,
                           const std::function<void(const OrtEpGraphSupportInfo&)>& take) const {
  if (nodes.empty()) return {};
  SDX_ASSIGN(const auto view, view_for(model, nodes));
  OrtEpGraphSupportInfo info(*view, kernels_);
  SDX_TRY(guarded_call(library(), "GetCapability",
                       [&] { return ep().GetCapability(&ep(), view.get(), &info); }));
  take(info);
  return {};
}

Result<std::vector<NodeId>> PluginProvider::wants_channels_last(
    const Model& model, std::span<const NodeId> free) const {
  std::vector<NodeId> wanted;
  bool has_some = false;
  for (const NodeId id : free) {
    SDX_ASSIGN(const bool wants, wants_layout(model.graph.node(id)));
    has_some = has_some || wants;
  }
  if (!has_some) return wanted;
  Status status;
  SDX_TRY(ask(model, free, [&](const OrtEpGraphSupportInfo& info) {
    for (const NodeId id : info.taken) {
      const auto wants = wants_layout(model.graph.node(id));
      if (!wants.ok()) status = Status(wants.status().code(), wants.status().message());
      if (wants.ok() && *wants) wanted.push_back(id);
    }
  }));
  if (!status.ok()) return status;
  std::sort(wanted.begin(), wanted.end());
  return wanted;
}

Result<std::vector<NodeGroup>> PluginProvider::offer(const Model& model,
                                                     std::span<const NodeId> free) const {
  std::vector<NodeGroup> groups;
  SDX_ASSIGN(const std::vector<NodeId> nodes, wanted(model.graph, free));
  const std::uint64_t hash = name_hash(model);
  std::size_t kept_nodes = 0;
  SDX_TRY(ask(model, nodes, [&](const OrtEpGraphSupportInfo& info) {
    for (std::size_t i = 0; i < info.groups.size(); ++i) {
      const auto& group = info.groups[i];
      groups.push_back({group.nodes, group.is_fused});
      const std::string& first = first_output(model.graph, group.nodes);
      // The session may ask stage by stage, and again: a group keeps its number.
      const auto number = groups_.try_emplace(first, Group{"", false, true, groups_.size()});
      Group& known = number.first->second;
      known.name = fmt::format("{}_{}_{}_{}", name_, hash, known.number, instance_);
      known.drops_constants = group.drops_constants && !grant_.keeps_constants;
      known.is_fused = group.is_fused;
      if (group.is_fused && !known.drops_constants) kept_nodes += group.nodes.size();
    }
  }));
  if (grant_.mode == Weightless::All && kept_nodes != 0) {
    log(Severity::Info, "EP '{}' is weightless: constant initializers stay inputs of {} nodes",
        name_, kept_nodes);
  }
  return groups;
}

const PluginProvider::Group* PluginProvider::group_of(const Graph& part) const {
  for (NodeId id = 0; id < part.node_count(); ++id) {
    if (part.node(id).is_removed) continue;
    const auto found = groups_.find(first_output(part, {id}));
    if (found != groups_.end()) return &found->second;
  }
  return nullptr;
}

Result<std::unique_ptr<Compiled>> PluginProvider::compile_kernels(
    Graph graph, const CompileOptions& options) const {
  if (kernels_ == nullptr) {
    return failure(Code::InvalidArgument,
                   "plugin library '{}': provider '{}' took single nodes, but has no kernels",
                   library(), name_);
  }
  auto part = std::make_unique<KernelPart>(*this, std::move(graph), options);
  SDX_TRY(part->prepare(options));
  return std::unique_ptr<Compiled>(std::move(part));
}

Result<std::unique_ptr<Compiled>> PluginProvider::compile(Graph graph,
                                                          const CompileOptions& options) const {
  std::vector<Graph> graphs;
  graphs.push_back(std::move(graph));
  SDX_ASSIGN(auto compiled, compile_all(std::move(graphs), options));
  return std::move(compiled.front());
}

Result<std::vector<std::unique_ptr<Compiled>>> PluginProvider::compile_all(
    std::vector<Graph> graphs, const CompileOptions& options) const {
  std::vector<std::unique_ptr<Compiled>> all;
  std::vector<CompiledPlugin*> fused;
  bool loads = false;
  for (Graph& graph : graphs) {
    const Group* group = group_of(graph);
    if (group == nullptr || options.model == nullptr) {
      return failure(Code::Internal, "provider '{}' was given nodes that it did not take", name_);
    }
    if (!group->is_fused) {
      SDX_ASSIGN(auto part, compile_kernels(std::move(graph), options));
      all.push_back(std::move(part));
      continue;
    }
    loads = loads || has_context_node(graph);
    SDX_TRY(check_loadable(name_, graph, *options.model, context_));
    const PartPlan plan{group->name, group->drops_constants};
    auto part = std::make_unique<CompiledPlugin>(*this, std::move(graph), plan);
    fused.push_back(part.get());
    all.push_back(std::move(part));
  }
  SDX_TRY(check_data_functions(loads));
  handle_->library->promised_files().begin(context_, options.model->path);
  if (!fused.empty()) SDX_TRY(CompiledPlugin::prepare_all(*this, fused, *options.model));
  return all;
}

Status PluginProvider::check_written(const ContextNode& node, const Model& model) const {
  // Holds nothing that keeps the library open: it is kept by the library itself.
  auto options = std::make_shared<OrtSessionOptions>(*options_);
  const auto end = [devices = devices_, options = std::move(options)] {
    return end_group(devices, *options);
  };
  return handle_->library->promised_files().check(name_, node, context_, model.path, made_at_,
                                                  end);
}

Status PluginProvider::end_group(const std::vector<const OrtEpDevice*>& devices,
                                 OrtSessionOptions& options) {
  options.options.entries["ep.stop_share_ep_contexts"] = "1";
  SDX_ASSIGN(const auto provider, create(devices, options, {}));
  const Model model = smallest_model();
  const NodeId nodes[] = {0};
  SDX_ASSIGN(const auto groups, provider->offer(model, nodes));
  if (groups.empty()) return {};
  CompileOptions compile_options;
  compile_options.model = &model;
  auto compiled = provider->compile(model.graph, compile_options);
  return std::move(compiled).take_status();
}

Result<std::string> PluginProvider::compatibility_info(const Model& model) const {
  const auto get = callback(ep(), &OrtEp::GetCompiledModelCompatibilityInfo, 23);
  if (get == nullptr) return std::string();
  SDX_ASSIGN(const auto view, capi::GraphView::whole(model.graph, capi::model_facts(model)));
  std::string info;
  SDX_TRY(guarded_call(library(), "GetCompiledModelCompatibilityInfo", [&]() -> OrtStatus* {
    if (const char* text = get(&ep(), view.get())) info = text;
    return nullptr;
  }));
  return info;
}

Result<Compatibility> PluginProvider::check_compatibility(const std::string& info) const {
  OrtEpFactory& factory = handle_->factory;
  const auto validate =
      callback(factory, &OrtEpFactory::ValidateCompiledModelCompatibilityInfo, 23);
  if (validate == nullptr) return Compatibility::NotApplicable;
  OrtCompiledModelCompatibility verdict = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  SDX_TRY(guarded_call(library(), "ValidateCompiledModelCompatibilityInfo", [&] {
    return validate(&factory, hardware_.data(), hardware_.size(), info.c_str(), &verdict);
  }));
  switch (verdict) {
    case OrtCompiledModelCompatibility_EP_NOT_APPLICABLE: return Compatibility::NotApplicable;
    case OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL: return Compatibility::Optimal;
    case OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION:
      return Compatibility::PreferRecompilation;
    case OrtCompiledModelCompatibility_EP_UNSUPPORTED: return Compatibility::Unsupported;
  }
  return failure(capi::kProviderFailed, "EP '{}' returned unknown compatibility status: {}", name_,
                 static_cast<int>(verdict));
}

bool PluginProvider::can_copy(const Place* from, const Place* to) const {
  OrtDataTransferImpl* transfer = handle_->library->transfer(handle_->factory);
  if (transfer == nullptr) return false;
  bool can = false;
  guarded_void(library(), "OrtDataTransferImpl::CanCopy",
               [&] { can = transfer->CanCopy(transfer, device_at(from), device_at(to)); });
  return can;
}

Status PluginProvider::copy(const Tensor& from, Tensor& to) const {
  OrtDataTransferImpl* transfer = handle_->library->transfer(handle_->factory);
  SDX_TRY(require_callback(library(), "CreateDataTransfer", transfer != nullptr));
  const OrtValue source{Datum(from), capi::memory_at(place_of(from))};
  OrtValue target{Datum(to), capi::memory_at(place_of(to))};
  const OrtValue* sources[] = {&source};
  OrtValue* targets[] = {&target};
  OrtSyncStream* streams[] = {current_stream()};
  SDX_TRY(guarded_call(library(), "OrtDataTransferImpl::CopyTensors", [&] {
    return transfer->CopyTensors(transfer, sources, targets,
                                 streams[0] != nullptr ? streams : nullptr, 1);
  }));
  // The processor's side is used, or gone, as soon as this returns.
  const bool is_near = place_of(from) == nullptr || place_of(to) == nullptr;
  return is_near && streams[0] != nullptr ? streams[0]->wait_in(nullptr) : Status();
}

Result<std::shared_ptr<DeviceMemory>> PluginProvider::memory(const Place& place) const {
  const std::lock_guard lock(memories_mutex_);
  auto& memory = memories_[&place];
  if (memory != nullptr) return memory;
  const auto is_there = [&](const OrtMemoryInfo& info) { return capi::place_of(info) == &place; };
  const auto info = std::find_if(infos_.begin(), infos_.end(), is_there);
  if (info == infos_.end() && &place != place_) {
    return failure(Code::InvalidArgument, "provider '{}' has no '{}' memory", name_, place.name());
  }
  const OrtMemoryInfo& said = info != infos_.end() ? *info : capi::memory_at(&place);
  SDX_ASSIGN(memory, DeviceMemory::create(handle_, said));
  return memory;
}

Result<std::shared_ptr<DeviceMemory>> PluginProvider::constant_memory() const {
  if (!constant_info_) return memory(*place_);
  const std::lock_guard lock(memories_mutex_);
  if (constant_memory_ == nullptr) {
    SDX_ASSIGN(constant_memory_, DeviceMemory::create(handle_, *constant_info_));
  }
  return constant_memory_;
}

Result<Tensor> PluginProvider::allocate(const Place& place, DType dtype, const Shape& shape) const {
  return allocate_at(&place, dtype, shape);
}

Result<Tensor> PluginProvider::allocate_on(OrtSyncStream* stream, const Place* place, DType dtype,
                                           const Shape& shape) const {
  if (place == nullptr) return Tensor::allocate(dtype, shape);
  SDX_ASSIGN(const auto found, memory(*place));
  return found->allocate(dtype, shape, stream);
}

Result<Tensor> PluginProvider::constant_at(const Place* place, const Tensor& constant) const {
  SDX_ASSIGN(const Tensor source, aligned(constant));
  if (place == nullptr || source.dtype() == DType::String) return source;
  SDX_ASSIGN(const auto memory, constant_memory());
  const auto make = [&]() -> Result<Tensor> {
    SDX_ASSIGN(Tensor made, memory->allocate(source.dtype(), source.shape()));
    if (source.byte_size() != 0) SDX_TRY(copy(source, made));
    return made;
  };
  // Memory of the provider's own allocator is for its session alone.
  if (callback(ep(), &OrtEp::CreateAllocator, 23) != nullptr || source.byte_size() == 0) {
    return make();
  }
  const Hash128 hash = hash_bytes({source.data(), source.byte_size()});
  return handle_->library->shared_constant(place, hash, source, make);
}

OrtSyncStream* PluginProvider::current_stream() const {
  if (!has_streams_) return nullptr;
  const std::lock_guard lock(streams_mutex_);
  const auto found = run_streams_.find(std::this_thread::get_id());
  return found == run_streams_.end() ? nullptr : found->second.stream;
}

bool PluginProvider::has_place(const Place& place) const {
  return &place == place_ || std::any_of(infos_.begin(), infos_.end(), [&](const auto& info) {
    return capi::place_of(info) == &place;
  });
}

Status PluginProvider::settle(const DeviceProvider* consumer) const {
  OrtSyncStream* stream = current_stream();
  if (stream == nullptr) return {};
  const auto* other = dynamic_cast<const PluginProvider*>(consumer);
  return stream->wait_in(other == nullptr ? nullptr : other->current_stream());
}

Status PluginProvider::take_stream(const OrtRunOptions& options) const {
  if (!has_streams_) return {};
  RunStream taken;
  OrtSyncStream* given = options.sync_stream;
  const bool is_here = given != nullptr && capi::place_of(given->memory) == place_;
  if (is_here && given->library == handle_->library) {
    taken.stream = given;
  } else {
    // Another library's stream on this device: what it has queued comes first.
    if (is_here) SDX_TRY(given->wait_in(nullptr));
    const std::lock_guard lock(streams_mutex_);
    if (!idle_streams_.empty()) {
      taken.own = std::move(idle_streams_.back());
      idle_streams_.pop_back();
    }
  }
  if (taken.stream == nullptr && taken.own == nullptr) {
    SDX_ASSIGN(taken.own, make_stream(handle_->library, handle_->factory, handle_,
                                      capi::memory_at(place_), nullptr));
  }
  if (taken.own != nullptr) taken.stream = taken.own.get();
  const std::lock_guard lock(streams_mutex_);
  run_streams_[std::this_thread::get_id()] = std::move(taken);
  return {};
}

Status PluginProvider::give_stream() const {
  if (!has_streams_) return {};
  RunStream taken;
  {
    const std::lock_guard lock(streams_mutex_);
    const auto found = run_streams_.find(std::this_thread::get_id());
    if (found == run_streams_.end()) return {};
    taken = std::move(found->second);
    run_streams_.erase(found);
  }
  // Who gave the stream waits himself.
  if (taken.own == nullptr) return {};
  SDX_TRY(taken.own->flush());
  SDX_TRY(taken.own->wait_in(nullptr));
  SDX_TRY(taken.own->end_run());
  const std::lock_guard lock(streams_mutex_);
  idle_streams_.push_back(std::move(taken.own));
  return {};
}

namespace {

constexpr const char* kCaptureEntry = "gpu_graph_id";
/// Runs with this number are not captured.
constexpr int kNotCaptured = -1;

int capture_id(const void* caller_options) {
  if (caller_options == nullptr) return 0;
  const auto& entries = static_cast<const OrtRunOptions*>(caller_options)->entries;
  const auto found = entries.find(kCaptureEntry);
  return found == entries.end() ? 0 : std::atoi(found->second.c_str());
}

}  // namespace

bool PluginProvider::captures(int id) const {
  const auto is_on = callback(ep(), &OrtEp::IsGraphCaptureEnabled, 26);
  if (id == kNotCaptured || is_on == nullptr) return false;
  bool captures = false;
  guarded_void(library(), "IsGraphCaptureEnabled", [&] { captures = is_on(&ep()); });
  return captures && ep().IsGraphCaptured != nullptr && ep().ReplayGraph != nullptr;
}

bool PluginProvider::is_captured(int id) const {
  bool is_there = false;
  guarded_void(library(), "IsGraphCaptured", [&] { is_there = ep().IsGraphCaptured(&ep(), id); });
  return is_there;
}

std::unique_lock<std::mutex> PluginProvider::lock_runs() const {
  return is_concurrent_ ? std::unique_lock<std::mutex>() : std::unique_lock(run_mutex_);
}

Result<bool> PluginProvider::replay(const void* caller_options) const {
  const auto lock = lock_runs();
  const int id = capture_id(caller_options);
  if (!captures(id) || !is_captured(id)) return false;
  SDX_TRY(guarded_call(library(), "ReplayGraph", [&] { return ep().ReplayGraph(&ep(), id); }));
  return true;
}

bool PluginProvider::wants_another_run(const void* caller_options) const {
  const auto lock = lock_runs();
  const int id = capture_id(caller_options);
  return captures(id) && !is_captured(id);
}

Status PluginProvider::release_captured(int id) const {
  const auto release = callback(ep(), &OrtEp::ReleaseCapturedGraph, 27);
  if (release == nullptr) return {};
  const auto lock = lock_runs();
  return guarded_call(library(), "ReleaseCapturedGraph", [&] { return release(&ep(), id); });
}

namespace {

const OrtRunOptions& run_options(const void* caller_options) {
  static const OrtRunOptions* const defaults = new OrtRunOptions;
  return caller_options == nullptr ? *defaults : *static_cast<const OrtRunOptions*>(caller_options);
}

}  // namespace

Status PluginProvider::begin_run(const void* caller_options) const {
  Status status;
  std::call_once(initialized_, [&] {
    if (const auto ready = callback(ep(), &OrtEp::OnSessionInitializationEnd, 27)) {
      status = guarded_call(library(), "OnSessionInitializationEnd", [&] { return ready(&ep()); });
    }
  });
  if (!status.ok()) return status;
  if (!is_concurrent_) run_mutex_.lock();
  if (const auto start = callback(ep(), &OrtEp::OnRunStart, 23)) {
    status = guarded_call(library(), "OnRunStart",
                          [&] { return start(&ep(), &run_options(caller_options)); });
  }
  if (status.ok()) {
    status = take_stream(run_options(caller_options));
    // What has started ends, whatever it says.
    const auto end = callback(ep(), &OrtEp::OnRunEnd, 23);
    if (!status.ok() && end != nullptr) {
      static_cast<void>(guarded_call(
          library(), "OnRunEnd", [&] { return end(&ep(), &run_options(caller_options), false); }));
    }
  }
  if (!status.ok() && !is_concurrent_) run_mutex_.unlock();
  return status;
}

Status PluginProvider::end_run(const void* caller_options) const {
  Status status = give_stream();
  if (const auto end = callback(ep(), &OrtEp::OnRunEnd, 23)) {
    Status ended = guarded_call(library(), "OnRunEnd",
                                [&] { return end(&ep(), &run_options(caller_options), true); });
    if (status.ok()) status = std::move(ended);
  }
  if (!is_concurrent_) run_mutex_.unlock();
  return status;
}

Status PluginProvider::change_options(
    std::span<const std::pair<std::string, std::string>> entries) const {
  const auto set = callback(ep(), &OrtEp::SetDynamicOptions, 23);
  if (set == nullptr) return Provider::change_options(entries);
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  return guarded_call(library(), "SetDynamicOptions",
                      [&] { return set(&ep(), keys.data(), values.data(), keys.size()); });
}

}  // namespace sardonyx::plugin_host
