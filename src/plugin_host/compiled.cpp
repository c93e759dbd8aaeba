#include "plugin_host/compiled.h"

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/graph_view.h"
#include "capi/kernel_info.h"
#include "plugin_host/callbacks.h"
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

void release_node(OrtNode* node) {
  if (node != nullptr) capi::ReleaseNode(node);
}

}  // namespace

Status CompiledPlugin::compile(const std::string& name, const Model& model) {
  const auto compile = callback(ep_, &OrtEp::Compile, 23);
  SDX_TRY(require_callback(library_, "OrtEp::Compile", compile != nullptr));
  SDX_TRY(require_callback(library_, "OrtEp::ReleaseNodeComputeInfos",
                           ep_.ReleaseNodeComputeInfos != nullptr));
  SDX_ASSIGN(auto order, graph_.topological_order());
  capi::GraphPart part{std::move(order), graph_.inputs(), graph_.outputs()};
  if (!drops_constants_) {
    for (const ValueId id : capi::part_of(graph_, part.nodes, true).inputs) {
      if (!graph_.value(id).constant) continue;
      part.inputs.push_back(id);
      SDX_ASSIGN(Tensor constant,
                 provider_.constant_at(provider_.place(), *graph_.value(id).constant));
      constants_.emplace_back(std::move(constant));
    }
  }
  const auto facts = capi::model_facts(model);
  SDX_ASSIGN(const auto view, capi::GraphView::of_part(graph_, facts, part));
  const Graph around = fused_graph(graph_, part, name);
  SDX_ASSIGN(const auto fused, capi::GraphView::whole(around, facts));
  const OrtGraph* graphs[] = {view.get()};
  const OrtNode* nodes[] = {&fused->nodes().front()};
  OrtNode* context_nodes[] = {nullptr};
  OrtNodeComputeInfo* infos[] = {nullptr};
  const Status status = guarded_call(
      library_, "Compile", [&] { return compile(&ep_, graphs, nodes, 1, infos, context_nodes); });
  if (!status.ok()) return Status(status.code(), status.message());
  release_node(context_nodes[0]);
  info_ = infos[0];
  if (info_ == nullptr) {
    return failure(Code::Internal,
                   "plugin library '{}': Compile left the node compute info a null pointer",
                   library_);
  }
  return require_callback(library_, "OrtNodeComputeInfo::Compute", info_->Compute != nullptr);
}

Status CompiledPlugin::prepare(const std::string& name, const Model& model) {
  SDX_TRY(compile(name, model));
  if (info_->CreateState == nullptr) return {};
  OrtNodeComputeContext context{name};
  SDX_TRY(guarded_call(library_, "CreateState",
                       [&] { return info_->CreateState(info_, &context, &state_); }));
  has_state_ = true;
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
  SDX_TRY(guarded_call(library_, "Compute",
                       [&] { return info_->Compute(info_, state_, &call.context()); }));
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
