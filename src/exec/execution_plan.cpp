#include "exec/execution_plan.h"

#include <algorithm>
#include <limits>

#include "exec/executor.h"
#include "exec/run_heap.h"
#include "plan/memory_plan.h"

namespace sardonyx {

namespace {

/// Results of shape arithmetic are small; anything larger is computed by every run.
constexpr std::size_t kKnown_bytes_max = std::size_t{64} << 10;
constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kNoRequest = std::numeric_limits<std::uint32_t>::max();

bool is_static(const Type& type) {
  return type.kind == Type::Kind::Tensor && type.dtype != DType::Undefined && type.shape &&
         type.shape->is_static();
}

std::size_t static_bytes(const Type& type) {
  const auto count = type.shape->element_count();
  return dtype_bytes(type.dtype, count.value_or(0)).value_or(0);
}

/// Whether the memory of such a tensor can be planned.
bool is_plannable(const Type& type) {
  return is_static(type) && type.dtype != DType::String && type.shape->element_count() &&
         dtype_bytes(type.dtype, *type.shape->element_count());
}

class Planner {
 public:
  Planner(const Program& program, RunState& run)
      : program_(program),
        run_(run),
        plan_(std::make_shared<ExecutionPlan>()),
        data_(program.slot_count),
        root_(program.slot_count),
        last_use_(program.slot_count, 0) {
    plan_->slots.resize(program.slot_count);
    for (SlotId slot = 0; slot < program.slot_count; ++slot) root_[slot] = slot;
  }

  Result<std::shared_ptr<const ExecutionPlan>> make(std::span<const Datum> inputs,
                                                    std::span<const Datum> captures) {
    enter(program_.inputs, inputs);
    enter(program_.captures, captures);
    for (const auto& [slot, datum] : program_.constants) {
      plan_->slots[slot].type = datum.type();
      if (datum.tensor() != nullptr) data_[slot] = *datum.tensor();
    }
    for (std::uint32_t i = 0; i < program_.instructions.size(); ++i) {
      Status status = add_step(i);
      if (!status.ok()) {
        return std::move(status).with("preparing " + program_.instructions[i].description);
      }
    }
    choose_outputs();
    find_last_uses();
    lay_out();
    list_releases();
    return std::shared_ptr<const ExecutionPlan>(plan_);
  }

 private:
  void enter(const std::vector<SlotId>& slots, std::span<const Datum> data) {
    for (std::size_t i = 0; i < slots.size(); ++i) {
      Type type = data[i].has_value() ? data[i].type() : Type{};
      plan_->key.push_back(type);
      plan_->slots[slots[i]].type = std::move(type);
    }
  }

  Status add_step(std::uint32_t index) {
    const Instruction& instruction = program_.instructions[index];
    types_.clear();
    operands_.clear();
    bool all_static = true;
    bool all_known = true;
    for (const SlotId slot : instruction.inputs) {
      const bool is_there = slot != kNoSlot;
      types_.push_back(is_there ? &plan_->slots[slot].type : nullptr);
      operands_.push_back(is_there && data_[slot] ? &*data_[slot] : nullptr);
      all_static = all_static && (!is_there || is_static(plan_->slots[slot].type));
      all_known = all_known && (!is_there || data_[slot].has_value());
    }
    outputs_.assign(instruction.outputs.size(), Type{});
    if (all_static) SDX_TRY(instruction.kernel->infer(types_, operands_, outputs_));
    bool is_planned = all_static;
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      if (instruction.outputs[i] == kNoSlot) continue;
      is_planned = is_planned && is_plannable(outputs_[i]);
      if (is_planned) bytes += static_bytes(outputs_[i]);
    }
    const bool can_be_known = !instruction.has(Instruction::kNeverKnown) &&
                              (all_known || instruction.has(Instruction::kShapesOnly));
    if (is_planned && can_be_known && bytes <= kKnown_bytes_max) return compute_now(instruction);
    record_step(index, is_planned);
    return {};
  }

  /// Runs an instruction whose result every run with these shapes would repeat.
  Status compute_now(const Instruction& instruction) {
    std::vector<Datum> inputs(instruction.inputs.size());
    std::vector<Datum*> input_pointers(instruction.inputs.size(), nullptr);
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const SlotId slot = instruction.inputs[i];
      if (slot == kNoSlot) continue;
      // Operators that look at shapes only never touch the missing elements.
      inputs[i] = data_[slot]
                      ? *data_[slot]
                      : Tensor::view(plan_->slots[slot].type.dtype, *plan_->slots[slot].type.shape,
                                     static_cast<void*>(nullptr));
      input_pointers[i] = &inputs[i];
    }
    std::vector<Datum> results(outputs_.size());
    std::vector<Datum*> output_pointers(outputs_.size(), nullptr);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (instruction.outputs[i] == kNoSlot) continue;
      SDX_ASSIGN(Tensor made, Tensor::allocate(outputs_[i].dtype, *outputs_[i].shape));
      results[i] = std::move(made);
      output_pointers[i] = &results[i];
    }
    if (instruction.has(Instruction::kView)) {
      SDX_ASSIGN(results[0], owned(Datum(inputs[0].tensor()->reshaped(*outputs_[0].shape))));
    } else {
      RunHeap heap;
      std::vector<std::byte> scratch(instruction.kernel->scratch_bytes(types_, outputs_) + 64);
      auto address = reinterpret_cast<std::uintptr_t>(scratch.data());
      KernelContext context{input_pointers, output_pointers,
                            scratch.data() + (64 - address % 64) % 64, run_, &heap};
      SDX_TRY(instruction.kernel->run(context));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      const SlotId slot = instruction.outputs[i];
      if (slot == kNoSlot) continue;
      plan_->slots[slot].storage = Storage::Known;
      plan_->slots[slot].type = outputs_[i];
      data_[slot] = *results[i].tensor();
      plan_->known.emplace_back(slot, *results[i].tensor());
    }
    return {};
  }

  void record_step(std::uint32_t index, bool is_planned) {
    const Instruction& instruction = program_.instructions[index];
    const auto step = static_cast<std::uint32_t>(plan_->steps.size());
    plan_->steps.push_back({index, !is_planned, 0, 0, 0});
    scratch_.push_back(is_planned && !instruction.has(Instruction::kView)
                           ? instruction.kernel->scratch_bytes(types_, outputs_)
                           : 0);
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const SlotId slot = instruction.outputs[i];
      if (slot == kNoSlot) continue;
      SlotPlan& planned = plan_->slots[slot];
      planned.storage = is_planned ? Storage::Arena : Storage::Dynamic;
      planned.type = is_planned ? outputs_[i] : Type{};
      last_use_[slot] = step;
    }
    if (instruction.has(Instruction::kView)) {
      const SlotId slot = instruction.outputs[0];
      root_[slot] = root_[instruction.inputs[0]];
      if (is_planned) {
        plan_->slots[slot].storage = Storage::View;
        plan_->slots[slot].target = instruction.inputs[0];
      }
    }
  }

  /// Results are written where the caller wants them, when one buffer can serve.
  void choose_outputs() {
    plan_->is_own_output.assign(program_.outputs.size(), false);
    for (std::uint32_t k = 0; k < program_.outputs.size(); ++k) {
      SlotId slot = program_.outputs[k];
      while (plan_->slots[slot].storage == Storage::View) slot = plan_->slots[slot].target;
      // A view whose shape only the run tells leaves its owner where it is.
      const bool is_dynamic = plan_->slots[slot].storage == Storage::Dynamic;
      SlotPlan& owner = plan_->slots[is_dynamic ? root_[slot] : slot];
      if (owner.storage == Storage::Dynamic && !owner.escapes) {
        owner.escapes = true;
        plan_->is_own_output[k] = true;
      }
      if (is_dynamic || owner.storage != Storage::Arena) continue;
      owner.storage = Storage::Output;
      owner.target = k;
      plan_->is_own_output[k] = true;
    }
  }

  void find_last_uses() {
    for (std::uint32_t step = 0; step < plan_->steps.size(); ++step) {
      for (const SlotId slot : program_.instructions[plan_->steps[step].instruction].inputs) {
        if (slot != kNoSlot) last_use_[root_[slot]] = std::max(last_use_[root_[slot]], step);
      }
    }
    for (const SlotId slot : program_.outputs) last_use_[root_[slot]] = kNever;
  }

  void lay_out() {
    std::vector<BufferRequest> requests;
    std::vector<std::uint32_t> request_of(program_.slot_count, kNoRequest);
    std::vector<std::uint32_t> scratch_request(plan_->steps.size(), kNoRequest);
    for (std::uint32_t step = 0; step < plan_->steps.size(); ++step) {
      const Instruction& instruction = program_.instructions[plan_->steps[step].instruction];
      for (const SlotId slot : instruction.outputs) {
        if (slot == kNoSlot || plan_->slots[slot].storage != Storage::Arena) continue;
        const std::uint32_t reused = reusable_request(instruction, slot, step, request_of);
        if (reused != kNoRequest) {
          request_of[slot] = reused;
          requests[reused].last = last_use_[slot];
          continue;
        }
        request_of[slot] = static_cast<std::uint32_t>(requests.size());
        requests.push_back({static_bytes(plan_->slots[slot].type), step, last_use_[slot]});
      }
      if (scratch_[step] != 0) {
        scratch_request[step] = static_cast<std::uint32_t>(requests.size());
        requests.push_back({scratch_[step], step, step});
      }
    }
    const MemoryPlan memory = plan_memory(requests);
    plan_->arena_bytes = memory.arena_bytes;
    for (SlotId slot = 0; slot < program_.slot_count; ++slot) {
      if (request_of[slot] != kNoRequest) {
        plan_->slots[slot].offset = memory.offsets[request_of[slot]];
      }
    }
    for (std::size_t step = 0; step < plan_->steps.size(); ++step) {
      if (scratch_request[step] != kNoRequest) {
        plan_->steps[step].scratch_offset = memory.offsets[scratch_request[step]];
      }
    }
  }

  /// The buffer of an input that this step is the last to need and may overwrite.
  std::uint32_t reusable_request(const Instruction& instruction, SlotId output, std::uint32_t step,
                                 const std::vector<std::uint32_t>& request_of) const {
    if (!instruction.has(Instruction::kInPlace) || output != instruction.outputs[0]) {
      return kNoRequest;
    }
    for (std::size_t k = 0; k < std::min<std::size_t>(2, instruction.inputs.size()); ++k) {
      if (instruction.inputs[k] == kNoSlot) continue;
      const SlotId root = root_[instruction.inputs[k]];
      if (request_of[root] != kNoRequest && last_use_[root] == step &&
          static_bytes(plan_->slots[root].type) == static_bytes(plan_->slots[output].type)) {
        return request_of[root];
      }
    }
    return kNoRequest;
  }

  void list_releases() {
    std::vector<std::vector<SlotId>> by_step(plan_->steps.size());
    for (SlotId slot = 0; slot < program_.slot_count; ++slot) {
      if (plan_->slots[slot].storage == Storage::Dynamic && last_use_[root_[slot]] != kNever &&
          root_[slot] == slot) {
        by_step[last_use_[slot]].push_back(slot);
      }
    }
    for (std::size_t step = 0; step < by_step.size(); ++step) {
      plan_->steps[step].release_begin = static_cast<std::uint32_t>(plan_->releases.size());
      plan_->releases.insert(plan_->releases.end(), by_step[step].begin(), by_step[step].end());
      plan_->steps[step].release_end = static_cast<std::uint32_t>(plan_->releases.size());
    }
  }

  const Program& program_;
  RunState& run_;
  std::shared_ptr<ExecutionPlan> plan_;
  std::vector<std::optional<Tensor>> data_;
  std::vector<SlotId> root_;
  std::vector<std::uint32_t> last_use_;
  std::vector<std::size_t> scratch_;
  std::vector<const Type*> types_;
  std::vector<const Tensor*> operands_;
  std::vector<Type> outputs_;
};

bool same_type(const Type& type, const Datum& datum) {
  const Tensor* tensor = datum.tensor();
  if (tensor == nullptr) return type.kind != Type::Kind::Tensor && !is_static(type);
  return type.kind == Type::Kind::Tensor && type.dtype == tensor->dtype() &&
         *type.shape == tensor->shape();
}

}  // namespace

bool ExecutionPlan::fits(std::span<const Datum> inputs, std::span<const Datum> captures) const {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!same_type(key[i], inputs[i])) return false;
  }
  for (std::size_t i = 0; i < captures.size(); ++i) {
    if (!same_type(key[inputs.size() + i], captures[i])) return false;
  }
  return true;
}

Result<std::shared_ptr<const ExecutionPlan>> make_plan(const Program& program,
                                                       std::span<const Datum> inputs,
                                                       std::span<const Datum> captures,
                                                       RunState& run) {
  return Planner(program, run).make(inputs, captures);
}

}  // namespace sardonyx
