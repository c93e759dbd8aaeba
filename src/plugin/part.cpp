#include "plugin/part.h"

#include <cstring>
#include <random>
#include <unordered_map>

#include "base/text.h"
#include "context/origins.h"
#include "ops/infer.h"
#include "passes/pipeline.h"
#include "plugin/graph_reader.h"
#include "plugin/values.h"

namespace sardonyx::plugin {

namespace {

OrtStatus* ORT_API_CALL create_state(OrtNodeComputeInfo*, OrtNodeComputeContext*,
                                     void** state) noexcept {
  *state = nullptr;
  return nullptr;
}

OrtStatus* ORT_API_CALL compute(OrtNodeComputeInfo* self, void*,
                                OrtKernelContext* context) noexcept {
  Part& part = *static_cast<Part*>(self);
  return part.host().guarded("Compute", [&] { return part.run(*context); });
}

void ORT_API_CALL release_state(OrtNodeComputeInfo*, void*) noexcept {}

/// Position by name of the values on one side of a node.
using Positions = std::unordered_map<std::string, std::size_t>;

Result<Positions> positions(const Host& host, const std::vector<const OrtValueInfo*>& infos) {
  Positions found;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const char* name = nullptr;
    if (infos[i] == nullptr) continue;
    SDX_TRY(host.take(host.api->GetValueInfoName(infos[i], &name)));
    found.emplace(name, i);
  }
  return found;
}

Result<std::size_t> position_of(const Positions& all, const std::string& name) {
  const auto found = all.find(name);
  if (found != all.end()) return found->second;
  return failure(Code::Internal, "value '{}' of the graph is none of the fused node's", name);
}

bool has_own_context(const Graph& graph) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (is_own_context(graph.node(id))) return true;
  }
  return false;
}

bool is_plannable(const Type& type) {
  return type.is_tensor() && type.dtype != DType::String && type.shape && type.shape->is_static();
}

}  // namespace

Part::Part(const PartContext& context) : OrtNodeComputeInfo{}, context_(context) {
  ort_version_supported = context.host.version;
  CreateState = create_state;
  Compute = compute;
  ReleaseState = release_state;
}

Status Part::bind(const Graph& graph, const OrtNode& fused) {
  const Host& host = context_.host;
  std::size_t count = 0;
  SDX_TRY(host.take(host.api->Node_GetNumInputs(&fused, &count)));
  std::vector<const OrtValueInfo*> infos(count);
  SDX_TRY(host.take(host.api->Node_GetInputs(&fused, infos.data(), count)));
  SDX_ASSIGN(const Positions inputs, positions(host, infos));
  for (const ValueId id : graph.inputs()) {
    SDX_ASSIGN(const std::size_t index, position_of(inputs, graph.value(id).name));
    input_index_.push_back(index);
  }
  SDX_TRY(host.take(host.api->Node_GetNumOutputs(&fused, &count)));
  infos.resize(count);
  SDX_TRY(host.take(host.api->Node_GetOutputs(&fused, infos.data(), count)));
  SDX_ASSIGN(const Positions outputs, positions(host, infos));
  for (const ValueId id : graph.outputs()) {
    output_names_.push_back(graph.value(id).name);
    SDX_ASSIGN(const std::size_t index, position_of(outputs, output_names_.back()));
    output_index_.push_back(index);
  }
  return {};
}

Result<std::unique_ptr<Part>> Part::compile(const PartContext& context, const OrtGraph& graph,
                                            const OrtNode& fused, OrtNode** context_node) {
  std::unique_ptr<Part> part(new Part(context));
  SDX_ASSIGN(ReadGraph read, read_graph(context.host, graph, Weights::Take));
  SDX_TRY(part->bind(read.graph, fused));
  SDX_TRY(infer_types(read.graph));
  CompileOptions options;
  options.thread_count = context.pool->thread_count();
  options.entries = context.entries;
  options.pool = context.pool.get();
  const ContextOptions& wanted = context.compiled_models;
  const ArtifactProvider& keeper = *as_artifact(*context.provider);
  const ORTCHAR_T* path = nullptr;
  SDX_TRY(context.host.take(context.host.api->Graph_GetModelPath(&graph, &path)));
  const std::string model_path = path == nullptr ? "" : path;
  if (has_own_context(read.graph)) {
    SDX_ASSIGN(part->compiled_,
               load_part(context.host, wanted, keeper, options, read.graph, model_path));
    return part;
  }
  if (wanted.weightless == Weightless::All && !model_path.empty()) {
    SDX_TRY(find_origins(read.graph, model_path));
  }
  if (wanted.is_wanted && context_node != nullptr) {
    SDX_ASSIGN(*context_node,
               keep_part(context.host, wanted, keeper, options, read, model_path, fused));
  }
  options.weightless = wanted.weightless;
  PassOptions passes;
  passes.keeps_weights = options.weightless != Weightless::None;
  SDX_TRY(run_passes(PassStage::Common, read.graph, passes));
  SDX_ASSIGN(part->compiled_, context.provider->compile(std::move(read.graph), options));
  return part;
}

Status Part::read_inputs(const OrtKernelContext& context, std::vector<Datum>& inputs) const {
  const Host& host = context_.host;
  for (const std::size_t index : input_index_) {
    const OrtValue* value = nullptr;
    SDX_TRY(host.take(host.api->KernelContext_GetInput(&context, index, &value)));
    SDX_ASSIGN(Datum datum, borrow(host, value));
    if (Tensor* tensor = datum.tensor(); tensor != nullptr && context_.device != nullptr) {
      *tensor =
          Tensor::view(tensor->dtype(), tensor->shape(),
                       open_memory(*context_.devices, tensor->mutable_data()), tensor->owner());
    }
    inputs.push_back(std::move(datum));
  }
  return {};
}

Result<Datum> Part::make_output(OrtKernelContext& context, std::size_t i,
                                const Shape& shape) const {
  const Host& host = context_.host;
  OrtValue* value = nullptr;
  SDX_TRY(host.take(host.api->KernelContext_GetOutput(
      &context, output_index_[i], shape.begin(), static_cast<std::size_t>(shape.rank()), &value)));
  if (value == nullptr) return Datum();
  SDX_ASSIGN(const TensorFacts facts, tensor_facts(host, *value));
  void* data = nullptr;
  SDX_TRY(host.take(host.api->GetTensorMutableData(value, &data)));
  if (data == nullptr && shape.element_count().value_or(0) != 0) {
    return failure(Code::OutOfMemory, "no memory for output '{}' of shape {}", output_names_[i],
                   shape.to_string());
  }
  if (context_.device != nullptr) data = open_memory(*context_.devices, data);
  return Datum(Tensor::view(facts.dtype, shape, data));
}

Status Part::hand_out(OrtKernelContext& context, std::size_t i, const Datum& result) const {
  const Tensor* tensor = result.tensor();
  if (tensor == nullptr) {
    return failure(Code::Runtime, "output '{}' is no tensor: the runtime takes nothing else",
                   output_names_[i]);
  }
  const Host& host = context_.host;
  if (tensor->dtype() == DType::String) {
    OrtValue* value = nullptr;
    SDX_TRY(host.take(
        host.api->KernelContext_GetOutput(&context, output_index_[i], tensor->shape().begin(),
                                          static_cast<std::size_t>(tensor->rank()), &value)));
    return value == nullptr ? Status() : store_texts(host, *tensor, *value);
  }
  SDX_ASSIGN(Datum made, make_output(context, i, tensor->shape()));
  Tensor* target = made.tensor();
  if (target == nullptr) return {};
  if (target->dtype() != tensor->dtype()) {
    return failure(Code::Runtime, "output '{}' is {}, the runtime expects {}", output_names_[i],
                   dtype_name(tensor->dtype()), dtype_name(target->dtype()));
  }
  if (tensor->byte_size() != 0) {
    std::memcpy(target->mutable_data(), tensor->data(), tensor->byte_size());
  }
  return {};
}

Status Part::run(OrtKernelContext& context) {
  // One per thread: making one takes as long as a small model.
  thread_local std::mt19937_64 random{std::random_device{}()};
  RunState state{*context_.pool, nullptr, nullptr, &random};
  std::vector<Datum> inputs;
  inputs.reserve(input_index_.size());
  SDX_TRY(read_inputs(context, inputs));
  std::vector<Type> types(output_index_.size());
  SDX_TRY(compiled_->output_types(inputs, types, state));
  std::vector<Datum> outputs(types.size());
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (!is_plannable(types[i])) continue;
    SDX_ASSIGN(outputs[i], make_output(context, i, *types[i].shape));
  }
  std::vector<const std::byte*> given;
  for (const Datum& output : outputs) {
    given.push_back(output.tensor() == nullptr ? nullptr : output.tensor()->data());
  }
  const ThreadPool::RunScope scope(*context_.pool);
  SDX_TRY(compiled_->run(inputs, outputs, state));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Tensor* tensor = outputs[i].tensor();
    const bool is_there = is_plannable(types[i]) && tensor != nullptr && tensor->data() == given[i];
    if (!is_there) SDX_TRY(hand_out(context, i, outputs[i]));
  }
  return {};
}

}  // namespace sardonyx::plugin
