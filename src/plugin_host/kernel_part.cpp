#include "plugin_host/kernel_part.h"

#include <algorithm>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/node_schema.h"
#include "capi/places.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/packed_weights.h"

namespace sardonyx::plugin_host {

namespace {

bool is_cpu(const std::map<std::size_t, OrtMemType>& memory, std::size_t index) {
  const auto found = memory.find(index);
  return found != memory.end() && found->second != OrtMemTypeDefault;
}

int alias_of(const OrtKernelDef& def, std::size_t output) {
  for (const auto& [from, to] : def.aliases) {
    if (to == static_cast<int>(output)) return from;
  }
  return -1;
}

int position(const std::vector<ValueId>& values, ValueId value) {
  const auto found = std::find(values.begin(), values.end(), value);
  return found == values.end() ? -1 : static_cast<int>(found - values.begin());
}

}  // namespace

KernelPart::KernelPart(const PluginProvider& provider, Graph graph, const CompileOptions& options)
    : provider_(provider), graph_(std::move(graph)) {
  auto session = std::make_shared<capi::KernelSession>();
  session->entries = {options.entries.begin(), options.entries.end()};
  session_ = std::move(session);
}

KernelPart::~KernelPart() {
  for (Step& step : steps_) {
    if (step.kernel == nullptr || step.kernel->Release == nullptr) continue;
    guarded_void(provider_.library(), "OrtKernelImpl::Release",
                 [&] { step.kernel->Release(step.kernel); });
  }
}

Status KernelPart::prepare(const CompileOptions&) {
  SDX_ASSIGN(const auto order, graph_.topological_order());
  steps_.reserve(order.size());
  for (const NodeId id : order) SDX_TRY(add_node(id));
  for (const ValueId output : graph_.outputs()) {
    const Place* place = nullptr;
    for (const Step& step : steps_) {
      for (const Output& made : step.outputs) {
        if (made.value == output) place = made.operand.place;
      }
    }
    output_places_.push_back(place);
    const Value& value = graph_.value(output);
    if (value.constant) output_constants_.emplace_back(output, Datum(*value.constant));
  }
  for (const ValueId input : graph_.inputs()) {
    const Place* place = nullptr;
    bool is_found = false;
    for (const Step& step : steps_) {
      for (const Input& used : step.inputs) {
        if (used.value != input || is_found) continue;
        place = used.place;
        is_found = true;
      }
    }
    input_places_.push_back(place);
  }
  plan_releases();
  return {};
}

Status KernelPart::add_node(NodeId id) {
  const Node& node = graph_.node(id);
  const auto* entry = provider_.kernels()->find(graph_, node);
  if (entry == nullptr) {
    return failure(Code::InvalidArgument,
                   "plugin library '{}': GetCapability took {}, for which the provider has no "
                   "kernel",
                   provider_.library(), node.describe(graph_));
  }
  const OrtKernelDef& def = entry->def;
  Step step;
  step.description = node.describe(graph_);
  step.node_name = node.name;
  step.op_type = node.op_type;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    Input input{node.inputs[i], is_cpu(def.input_memory, i) ? nullptr : provider_.place(), false,
                Datum()};
    if (input.value != kNoValue && graph_.value(input.value).constant) {
      input.is_constant = true;
      SDX_ASSIGN(Tensor constant,
                 provider_.constant_at(input.place, *graph_.value(input.value).constant));
      input.constant = Datum(std::move(constant));
    }
    step.inputs.push_back(std::move(input));
  }
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    Output output;
    output.value = node.outputs[i];
    output.operand.is_there = output.value != kNoValue;
    output.operand.place = is_cpu(def.output_memory, i) ? nullptr : provider_.place();
    output.operand.alias = alias_of(def, i);
    if (output.operand.is_there) {
      const Value& value = graph_.value(output.value);
      if (value.type.is_tensor()) output.operand.dtype = value.type.dtype;
      output.part_output = position(graph_.outputs(), output.value);
      output.is_used = value.use_count != 0 || value.is_output;
      // The caller may write into what it gets: it shares no memory with inputs and constants.
      if (output.part_output >= 0) output.operand.alias = -1;
    }
    step.outputs.push_back(output);
  }
  steps_.push_back(std::move(step));
  SDX_TRY(create_kernel(*entry, node, steps_.back()));
  return pack_weights(steps_.back());
}

Status KernelPart::create_kernel(const OrtKernelRegistry::Entry& entry, const Node& node,
                                 Step& step) {
  SDX_ASSIGN(auto described,
             capi::describe_kernel_node(graph_, node, capi::since_version(node), session_));
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (!step.inputs[i].is_constant) continue;
    described->inputs[i].constant.reset(capi::new_value(step.inputs[i].constant));
  }
  step.info = std::make_unique<OrtKernelInfo>(OrtKernelInfo{std::move(described), this});
  OrtKernelImpl* made = nullptr;
  const Status status = guarded_call(provider_.library(), "OrtKernelCreateFunc", [&] {
    return entry.create(entry.state, step.info.get(), &made);
  });
  if (!status.ok()) return Status(status.code(), status.message()).with(step.description);
  step.kernel = made;
  if (step.kernel != nullptr && step.kernel->Compute != nullptr) return {};
  return failure(Code::Internal,
                 "plugin library '{}': the kernel for {} is {}, expected one with Compute",
                 provider_.library(), step.description,
                 step.kernel == nullptr ? "a null pointer" : "incomplete");
}

Status KernelPart::pack_weights(Step& step) {
  if (callback(*step.kernel, &OrtKernelImpl::PrePackWeight, 24) == nullptr) return {};
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    if (step.inputs[i].is_constant) SDX_TRY(pack_weight(step, i));
  }
  return {};
}

Status KernelPart::pack_weight(Step& step, std::size_t i) {
  OrtKernelImpl& kernel = *step.kernel;
  Input& input = step.inputs[i];
  std::shared_ptr<DeviceMemory> memory;
  if (input.place != nullptr) {
    SDX_ASSIGN(memory, provider_.constant_memory());
  }
  OrtAllocator* allocator = memory != nullptr ? &memory->allocator() : capi::default_allocator();
  const auto share = callback(kernel, &OrtKernelImpl::SetSharedPrePackedWeight, 24);
  const bool can_share = share != nullptr && input.place == nullptr;
  PackedWeights packed(*allocator);
  const std::unique_ptr<OrtValue> value(capi::new_value(input.constant));
  bool is_packed = false;
  SDX_TRY(guarded_call(provider_.library(), "OrtKernelImpl::PrePackWeight", [&] {
    return kernel.PrePackWeight(&kernel, value.get(), static_cast<int>(i), allocator,
                                can_share ? packed.handle() : nullptr, &is_packed);
  }));
  if (!is_packed) return {};
  if (packed.has_buffers()) {
    const auto shared = packed.shared(provider_.library() + ' ' + step.op_type);
    SDX_TRY(guarded_call(provider_.library(), "OrtKernelImpl::SetSharedPrePackedWeight", [&] {
      return share(&kernel, shared->data(), shared->sizes(), shared->count(), static_cast<int>(i));
    }));
    packed_.push_back(shared);
  }
  input.constant = Datum();
  return {};
}

void KernelPart::plan_releases() {
  std::vector<std::size_t> last(graph_.value_count(), steps_.size());
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    for (const Input& input : steps_[i].inputs) {
      if (input.value != kNoValue) last[input.value] = i;
    }
    for (const Output& output : steps_[i].outputs) {
      if (output.value != kNoValue) last[output.value] = i;
    }
  }
  for (const ValueId output : graph_.outputs()) last[output] = steps_.size();
  for (ValueId value = 0; value < last.size(); ++value) {
    if (last[value] < steps_.size()) steps_[last[value]].released.push_back(value);
  }
}

const Place* KernelPart::input_place(std::size_t i) const { return input_places_[i]; }
const Place* KernelPart::output_place(std::size_t i) const { return output_places_[i]; }

Result<Datum> KernelPart::input_at(const Input& input, std::span<const Datum> slots) const {
  if (input.value == kNoValue) return Datum();
  if (input.is_constant) return input.constant;
  const Datum& datum = slots[input.value];
  const Tensor* tensor = datum.tensor();
  if (tensor == nullptr || place_of(*tensor) == input.place) return datum;
  SDX_ASSIGN(Tensor copy, provider_.allocate_at(input.place, tensor->dtype(), tensor->shape()));
  if (tensor->byte_size() != 0) SDX_TRY(provider_.copy(*tensor, copy));
  return Datum(std::move(copy));
}

Status KernelPart::run_step(const Step& step, std::span<Datum> slots, std::span<const Datum> given,
                            RunState& run) const {
  PluginCall call(provider_, run);
  call.reserve(step.inputs.size(), step.outputs.size());
  for (const Input& input : step.inputs) {
    SDX_ASSIGN(Datum datum, input_at(input, slots));
    call.add_input(std::move(datum));
  }
  for (const Output& output : step.outputs) {
    const bool is_given = output.part_output >= 0;
    call.add_output(output.operand,
                    is_given ? given[static_cast<std::size_t>(output.part_output)] : Datum());
  }
  SDX_TRY(guarded_call(provider_.library(), "OrtKernelImpl::Compute",
                       [&] { return step.kernel->Compute(step.kernel, &call.context()); }));
  for (std::size_t i = 0; i < step.outputs.size(); ++i) {
    const Output& output = step.outputs[i];
    if (output.value == kNoValue) continue;
    if (!call.is_made(i) && output.is_used) {
      return failure(Code::Runtime, "plugin library '{}': the kernel did not make output '{}'",
                     provider_.library(), graph_.value(output.value).name);
    }
    slots[output.value] = std::move(call.result(i));
  }
  return {};
}

Status KernelPart::run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& run) {
  std::vector<Datum> slots(graph_.value_count());
  for (std::size_t i = 0; i < inputs.size(); ++i) slots[graph_.inputs()[i]] = inputs[i];
  for (const auto& [value, constant] : output_constants_) slots[value] = constant;
  for (const Step& step : steps_) {
    if (run.is_cancelled()) return Status(Code::Cancelled, "the run was stopped");
    TimedNode timed(run.profiler, provider_.profiler());
    Status status = run_step(step, slots, outputs, run);
    if (!status.ok()) return std::move(status).with("running " + step.description);
    timed.end(step.node_name, step.op_type, provider_.name());
    for (const ValueId released : step.released) slots[released] = Datum();
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) outputs[i] = slots[graph_.outputs()[i]];
  return {};
}

Result<OrtAllocator*> KernelPart::allocator(OrtMemType mem_type) {
  if (mem_type != OrtMemTypeDefault || provider_.place() == nullptr) {
    return capi::new_allocator(*capi::default_allocator());
  }
  SDX_ASSIGN(const auto memory, provider_.memory(*provider_.place()));
  return capi::new_allocator(memory->allocator(), memory);
}

}  // namespace sardonyx::plugin_host

namespace sardonyx::capi::ep_api {

OrtStatus* KernelInfo_GetEp(const OrtKernelInfo* info, const OrtEp** ep) noexcept {
  return guarded("KernelInfo_GetEp", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(ep, "ep"));
    if (info->maker == nullptr) {
      return failure(Code::InvalidArgument, "the kernel is of no plugin's provider");
    }
    *ep = info->maker->ep();
    return {};
  });
}

}  // namespace sardonyx::capi::ep_api
