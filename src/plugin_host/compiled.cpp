#include "plugin_host/compiled.h"

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/graph_view.h"
#include "capi/kernel_info.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/context_node.h"
#include "plugin_host/plugin_call.h"

namespace sardonyx::plugin_host {

namespace {

/// A graph of one node, which stands for the whole part.
Graph fused_graph(const Graph& part, const capi::GraphPart& shown, const std::string& name) {
  Graph graph;
  graph.name = part.name;
  Node node;
  node.op_type = name;
  node.name = name;
  node.domain = "com.microsoft";
  node.opset = 1;
  for (const ValueId id : shown.inputs) {
    const Value& value = part.value(id);
    const ValueId input = graph.add_value(value.name, value.type);
    if (value.constant) {
      graph.set_constant(input, *value.constant);
    } else {
      graph.add_input(input);
    }
    node.inputs.push_back(input);
  }
  for (const ValueId id : shown.outputs) {
    node.outputs.push_back(graph.add_value(part.value(id).name, part.value(id).type));
  }
  const auto outputs = node.outputs;
  graph.add_node(std::move(node));
  for (const ValueId id : outputs) graph.add_output(id);
  return graph;
}

/// Nodes that a plugin made for the model; ours to release.
class MadeNodes {
 public:
  explicit MadeNodes(std::size_t count) : nodes_(count, nullptr) {}
  ~MadeNodes() {
    for (OrtNode* node : nodes_) {
      if (node != nullptr) capi::ReleaseNode(node);
    }
  }
  MadeNodes(const MadeNodes&) = delete;
  MadeNodes& operator=(const MadeNodes&) = delete;
  OrtNode** data() { return nodes_.data(); }
  void forget() { nodes_.clear(); }
  const OrtNode* operator[](std::size_t i) const { return nodes_[i]; }

 private:
  std::vector<OrtNode*> nodes_;
};

}  // namespace

CompiledPlugin::CompiledPlugin(const PluginProvider& provider, Graph graph, PartPlan plan)
    : provider_(provider),
      library_(provider.library()),
      ep_(provider.ep()),
      graph_(std::move(graph)),
      plan_(std::move(plan)) {}

Status CompiledPlugin::show(const Model& model) {
  SDX_ASSIGN(auto order, graph_.topological_order());
  capi::GraphPart part{std::move(order), graph_.inputs(), graph_.outputs()};
  if (!plan_.drops_constants) {
    for (const ValueId id : capi::part_of(graph_, part.nodes, true).inputs) {
      if (!graph_.value(id).constant) continue;
      part.inputs.push_back(id);
      SDX_ASSIGN(Tensor constant,
                 provider_.constant_at(provider_.place(), *graph_.value(id).constant));
      constants_.emplace_back(std::move(constant));
    }
  }
  shown_ = std::make_unique<Shown>();
  shown_->symbols = model.symbols;
  auto facts = std::make_shared<capi::ModelFacts>(*capi::model_facts(model));
  facts->symbols = &shown_->symbols;
  shown_->facts = std::move(facts);
  SDX_ASSIGN(shown_->view, capi::GraphView::of_part(graph_, shown_->facts, part));
  shown_->around = fused_graph(graph_, part, plan_.name);
  SDX_ASSIGN(shown_->fused, capi::GraphView::whole(shown_->around, shown_->facts));
  return {};
}

Status CompiledPlugin::take(OrtNodeComputeInfo* info, const OrtNode* context_node,
                            const Model& model) {
  if (info == nullptr) {
    return failure(Code::Internal,
                   "plugin library '{}': Compile left the node compute info a null pointer",
                   library_);
  }
  SDX_TRY(require_callback(library_, "OrtNodeComputeInfo::Compute", info->Compute != nullptr));
  if (!provider_.context().makes_context) return {};
  SDX_ASSIGN(context_, context_node_of(provider_.name(), context_node, graph_));
  return provider_.check_written(*context_, model);
}

Status CompiledPlugin::make_state() {
  if (info_->CreateState == nullptr) return {};
  OrtNodeComputeContext context{plan_.name};
  SDX_TRY(guarded_call(library_, "CreateState",
                       [&] { return info_->CreateState(info_, &context, &state_); }));
  has_state_ = true;
  return {};
}

void CompiledPlugin::settle() {
  // A provider that leaves all weights where they are may hold pointers to them.
  if (provider_.grant().mode == Weightless::All) return;
  shown_.reset();
  if (!plan_.drops_constants) return;
  for (ValueId id = 0; id < graph_.value_count(); ++id) graph_.value(id).constant.reset();
}

Status CompiledPlugin::prepare_all(const PluginProvider& provider,
                                   const std::vector<CompiledPlugin*>& parts, const Model& model) {
  OrtEp& ep = provider.ep();
  const std::string& library = provider.library();
  const auto compile = callback(ep, &OrtEp::Compile, 23);
  SDX_TRY(require_callback(library, "OrtEp::Compile", compile != nullptr));
  SDX_TRY(require_callback(library, "OrtEp::ReleaseNodeComputeInfos",
                           ep.ReleaseNodeComputeInfos != nullptr));
  std::vector<const OrtGraph*> graphs;
  std::vector<const OrtNode*> nodes;
  for (CompiledPlugin* part : parts) {
    SDX_TRY(part->show(model));
    graphs.push_back(part->shown_->view.get());
    nodes.push_back(&part->shown_->fused->nodes().front());
  }
  MadeNodes context_nodes(parts.size());
  std::vector<OrtNodeComputeInfo*> infos(parts.size(), nullptr);
  Status status = guarded_call(library, "Compile", [&] {
    return compile(&ep, graphs.data(), nodes.data(), parts.size(), infos.data(),
                   context_nodes.data());
  });
  if (!status.ok()) {
    // What a failed call has left behind may be anything.
    context_nodes.forget();
    return status;
  }
  // They are released with their parts, whatever else goes wrong.
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i]->info_ = infos[i];
  for (std::size_t i = 0; i < parts.size(); ++i) {
    SDX_TRY(parts[i]->take(infos[i], context_nodes[i], model));
    SDX_TRY(parts[i]->make_state());
    parts[i]->settle();
  }
  return {};
}

Status CompiledPlugin::run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) {
  PluginCall call(provider_, run);
  call.reserve(inputs.size() + constants_.size(), outputs.size());
  for (const Datum& input : inputs) call.add_input(input);
  for (const Datum& constant : constants_) call.add_input(constant);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Type& type = graph_.value(graph_.outputs()[i]).type;
    PluginCall::Output output;
    output.place = provider_.place();
    output.dtype = type.is_tensor() ? type.dtype : DType::Undefined;
    call.add_output(output, outputs[i]);
  }
  TimedNode timed(run.profiler, provider_.profiler());
  SDX_TRY(guarded_call(library_, "Compute",
                       [&] { return info_->Compute(info_, state_, &call.context()); }));
  timed.end(plan_.name, plan_.name, provider_.name());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!call.is_made(i)) {
      return failure(Code::Runtime, "plugin library '{}': Compute did not make output '{}'",
                     library_, graph_.value(graph_.outputs()[i]).name);
    }
    outputs[i] = std::move(call.result(i));
  }
  return {};
}

CompiledPlugin::~CompiledPlugin() {
  if (info_ == nullptr) return;
  if (has_state_ && info_->ReleaseState != nullptr) {
    guarded_void(library_, "ReleaseState", [&] { info_->ReleaseState(info_, state_); });
  }
  guarded_void(library_, "ReleaseNodeComputeInfos",
               [&] { ep_.ReleaseNodeComputeInfos(&ep_, &info_, 1); });
}

}  // namespace sardonyx::plugin_host

namespace sardonyx::capi::ep_api {

const char* NodeComputeContext_NodeName(const OrtNodeComputeContext* context) noexcept {
  return context == nullptr ? nullptr : context->node_name.c_str();
}

}  // namespace sardonyx::capi::ep_api
