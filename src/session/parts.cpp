#include "session/parts.h"

#include <algorithm>
#include <unordered_map>

#include "exec/executor.h"

namespace sardonyx {

namespace {

using Slot = std::uint32_t;

/// A part by slots, and the slots that nobody needs after it.
struct Step {
  CompiledPart part;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Slot> released;
};

class JoinedParts final : public Compiled {
 public:
  JoinedParts(const Graph& whole, std::vector<CompiledPart> parts) {
    for (const ValueId input : whole.inputs()) (void)slot(input);
    for (CompiledPart& part : parts) {
      Step step;
      for (const ValueId input : part.inputs) step.inputs.push_back(slot(input));
      for (const ValueId output : part.outputs) step.outputs.push_back(slot(output));
      step.part = std::move(part);
      steps_.push_back(std::move(step));
    }
    for (const ValueId output : whole.outputs()) {
      const Value& value = whole.value(output);
      if (value.constant) constants_.emplace_back(slot(output), *value.constant);
      outputs_.push_back(slot(output));
    }
    plan_releases();
  }

  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& state) override {
    std::vector<Datum> slots(slot_of_.size());
    std::copy(inputs.begin(), inputs.end(), slots.begin());
    for (const auto& [constant, value] : constants_) slots[constant] = value;
    std::vector<Datum> part_inputs;
    std::vector<Datum> part_outputs;
    for (const Step& step : steps_) {
      part_inputs.clear();
      part_outputs.clear();
      for (const Slot input : step.inputs) part_inputs.push_back(slots[input]);
      for (const Slot output : step.outputs) part_outputs.push_back(given(output, outputs));
      SDX_TRY(step.part.compiled->run(part_inputs, part_outputs, state));
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        slots[step.outputs[i]] = std::move(part_outputs[i]);
      }
      for (const Slot released : step.released) slots[released] = Datum();
    }
    return hand_out(slots, outputs);
  }

  CompiledMemory memory() const override {
    CompiledMemory total;
    for (const Step& step : steps_) {
      const CompiledMemory memory = step.part.compiled->memory();
      total.packed_bytes += memory.packed_bytes;
      total.folded_bytes += memory.folded_bytes;
      total.arena_bytes += memory.arena_bytes;
    }
    return total;
  }

  void shrink() override {
    for (Step& step : steps_) step.part.compiled->shrink();
  }

 private:
  Slot slot(ValueId value) {
    return slot_of_.emplace(value, static_cast<Slot>(slot_of_.size())).first->second;
  }

  void plan_releases() {
    std::vector<std::size_t> last_use(slot_of_.size(), steps_.size());
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      for (const Slot input : steps_[i].inputs) last_use[input] = i;
      for (const Slot output : steps_[i].outputs) last_use[output] = i;
    }
    for (const Slot output : outputs_) last_use[output] = steps_.size();
    for (Slot i = 0; i < last_use.size(); ++i) {
      if (last_use[i] < steps_.size()) steps_[last_use[i]].released.push_back(i);
    }
  }

  /// What the caller gave for that output of the whole, if it is one.
  Datum given(Slot slot, std::span<const Datum> outputs) const {
    const auto found = std::find(outputs_.begin(), outputs_.end(), slot);
    return found == outputs_.end() ? Datum()
                                   : outputs[static_cast<std::size_t>(found - outputs_.begin())];
  }

  /// Outputs that no part wrote are inputs, constants or repeated outputs: they get a copy.
  Status hand_out(std::span<const Datum> slots, std::span<Datum> outputs) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      const Datum& result = slots[outputs_[i]];
      const Tensor* tensor = result.tensor();
      Tensor* target = outputs[i].tensor();
      const bool fits = tensor != nullptr && target != nullptr &&
                        tensor->dtype() == target->dtype() && tensor->shape() == target->shape();
      if (fits && tensor->data() == target->data()) continue;
      if (fits && tensor->dtype() != DType::String) {
        std::copy_n(tensor->data(), tensor->byte_size(), target->mutable_data());
        continue;
      }
      SDX_ASSIGN(outputs[i], owned(result));
    }
    return {};
  }

  std::unordered_map<ValueId, Slot> slot_of_;
  std::vector<Step> steps_;
  std::vector<std::pair<Slot, Datum>> constants_;
  std::vector<Slot> outputs_;
};

}  // namespace

std::unique_ptr<Compiled> join_parts(const Graph& whole, std::vector<CompiledPart> parts) {
  return std::make_unique<JoinedParts>(whole, std::move(parts));
}

}  // namespace sardonyx
