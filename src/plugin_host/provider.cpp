#include "plugin_host/provider.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "capi/graph_view.h"
#include "capi/kernel_info.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/compiled.h"
#include "plugin_host/graph_support.h"

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

bool has_layout(const Node& node) {
  return std::find(kLayoutOps.begin(), kLayoutOps.end(), node.op_type) != kLayoutOps.end();
}

/// A number of the names in the graph, so that a model's parts are called alike in every session.
std::uint64_t name_hash(const Graph& graph) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  const auto add = [&](const std::string& text) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  };
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
    const std::vector<const OrtEpDevice*>& devices, const OrtSessionOptions& options) {
  const OrtEpDevice& first = *devices.front();
  auto library = first.library.lock();
  if (library == nullptr || first.is_retired) {
    return failure(Code::InvalidArgument,
                   "the plugin library of provider '{}' was unregistered before the session was "
                   "made",
                   first.ep_name);
  }
  std::shared_ptr<PluginProvider> provider(new PluginProvider(std::move(library)));
  provider->factory_ = first.factory;
  provider->options_ = std::make_unique<OrtSessionOptions>(options);
  provider->options_->at_creation.clear();
  SDX_TRY(provider->start(devices));
  return std::shared_ptr<const Provider>(std::move(provider));
}

Status PluginProvider::start(const std::vector<const OrtEpDevice*>& devices) {
  std::vector<const OrtHardwareDevice*> hardware;
  std::vector<const OrtKeyValuePairs*> metadata;
  for (const OrtEpDevice* device : devices) {
    hardware.push_back(device->plugin_device);
    metadata.push_back(&device->metadata);
  }
  SDX_TRY(guarded_call(library(), "CreateEp", [&] {
    return factory_->CreateEp(factory_, hardware.data(), metadata.data(), hardware.size(),
                              options_.get(), &capi::default_logger(), &ep_);
  }));
  if (ep_ == nullptr) {
    return failure(Code::Internal, "plugin library '{}': CreateEp returned a null pointer",
                   library());
  }
  SDX_TRY(require_callback(library(), "OrtEp::GetName", ep_->GetName != nullptr));
  SDX_ASSIGN(name_, read_text(library(), "GetName", [&] { return ep_->GetName(ep_); }));
  SDX_TRY(require_callback(library(), "OrtEp::GetCapability",
                           callback(*ep_, &OrtEp::GetCapability, 23) != nullptr));
  if (const auto ask = callback(*ep_, &OrtEp::IsConcurrentRunSupported, 24)) {
    SDX_TRY(guarded_call(library(), "IsConcurrentRunSupported",
                         [&] { return ask(ep_, &is_concurrent_); }));
  }
  return {};
}

PluginProvider::~PluginProvider() {
  if (ep_ == nullptr) return;
  guarded_void(library(), "ReleaseEp", [&] { factory_->ReleaseEp(factory_, ep_); });
}

bool PluginProvider::can_run(const Graph&, NodeId, std::string* why_not) const {
  if (why_not != nullptr) *why_not = fmt::format("provider '{}' did not take the node", name_);
  return false;
}

Result<std::vector<NodeId>> PluginProvider::wanted(const Graph& graph,
                                                   std::span<const NodeId> free) const {
  std::vector<NodeId> nodes(free.begin(), free.end());
  const auto get_layout = callback(*ep_, &OrtEp::GetPreferredDataLayout, 23);
  if (get_layout == nullptr) return nodes;
  OrtEpDataLayout layout = OrtEpDataLayout_Default;
  SDX_TRY(
      guarded_call(library(), "GetPreferredDataLayout", [&] { return get_layout(ep_, &layout); }));
  if (layout == OrtEpDataLayout_NCHW) return nodes;
  // Such a plugin expects that these operators were rewritten for its layout; they stay with the
  // providers that take them as they are.
  const auto should = callback(*ep_, &OrtEp::ShouldConvertDataLayoutForOp, 23);
  Status status;
  std::erase_if(nodes, [&](NodeId id) {
    const Node& node = graph.node(id);
    if (!status.ok()) return false;
    int answer = -1;
    if (should != nullptr && node.domain.empty()) {
      status = guarded_call(library(), "ShouldConvertDataLayoutForOp", [&] {
        return should(ep_, node.domain.c_str(), node.op_type.c_str(), layout, &answer);
      });
    }
    return has_layout(node) && answer != 0;
  });
  if (!status.ok()) return status;
  return nodes;
}

Result<std::vector<NodeGroup>> PluginProvider::offer(const Model& model,
                                                     std::span<const NodeId> free) const {
  std::vector<NodeGroup> groups;
  SDX_ASSIGN(const std::vector<NodeId> nodes, wanted(model.graph, free));
  if (nodes.empty()) return groups;
  SDX_ASSIGN(const auto view, view_for(model, nodes));
  OrtEpGraphSupportInfo info(*view, nullptr);
  SDX_TRY(guarded_call(library(), "GetCapability",
                       [&] { return ep_->GetCapability(ep_, view.get(), &info); }));
  const std::uint64_t hash = name_hash(model.graph);
  for (std::size_t i = 0; i < info.groups.size(); ++i) {
    const auto& group = info.groups[i];
    groups.push_back({group.nodes, group.is_fused});
    groups_[first_output(model.graph, group.nodes)] = {fmt::format("{}_{}_{}_0", name_, hash, i),
                                                       group.drops_constants};
  }
  return groups;
}

Result<std::unique_ptr<Compiled>> PluginProvider::compile(Graph graph,
                                                          const CompileOptions& options) const {
  SDX_ASSIGN(const auto order, graph.topological_order());
  const Group* group = nullptr;
  for (const NodeId id : order) {
    const auto found = groups_.find(first_output(graph, {id}));
    if (found != groups_.end()) group = &found->second;
    if (group != nullptr) break;
  }
  if (group == nullptr || options.model == nullptr) {
    return failure(Code::Internal, "provider '{}' was given nodes that it did not take", name_);
  }
  auto compiled =
      std::make_unique<CompiledPlugin>(library(), *ep_, std::move(graph), group->drops_constants);
  SDX_TRY(compiled->prepare(group->name, *options.model));
  return std::unique_ptr<Compiled>(std::move(compiled));
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
    if (const auto ready = callback(*ep_, &OrtEp::OnSessionInitializationEnd, 27)) {
      status = guarded_call(library(), "OnSessionInitializationEnd", [&] { return ready(ep_); });
    }
  });
  if (!status.ok()) return status;
  if (!is_concurrent_) run_mutex_.lock();
  if (const auto start = callback(*ep_, &OrtEp::OnRunStart, 23)) {
    status = guarded_call(library(), "OnRunStart",
                          [&] { return start(ep_, &run_options(caller_options)); });
  }
  if (!status.ok() && !is_concurrent_) run_mutex_.unlock();
  return status;
}

Status PluginProvider::end_run(const void* caller_options) const {
  Status status;
  if (const auto end = callback(*ep_, &OrtEp::OnRunEnd, 23)) {
    status = guarded_call(library(), "OnRunEnd",
                          [&] { return end(ep_, &run_options(caller_options), true); });
  }
  if (!is_concurrent_) run_mutex_.unlock();
  return status;
}

Status PluginProvider::change_options(
    std::span<const std::pair<std::string, std::string>> entries) const {
  const auto set = callback(*ep_, &OrtEp::SetDynamicOptions, 23);
  if (set == nullptr) return Provider::change_options(entries);
  std::vector<const char*> keys;
  std::vector<const char*> values;
  for (const auto& [key, value] : entries) {
    keys.push_back(key.c_str());
    values.push_back(value.c_str());
  }
  return guarded_call(library(), "SetDynamicOptions",
                      [&] { return set(ep_, keys.data(), values.data(), keys.size()); });
}

}  // namespace sardonyx::plugin_host
