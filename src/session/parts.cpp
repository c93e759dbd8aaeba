#include "session/parts.h"

#include <algorithm>
#include <unordered_map>

#include "exec/executor.h"
#include "session/borders.h"

namespace sardonyx {

namespace {

using Slot = std::uint32_t;

/// A part by slots, and the slots that nobody needs after it.
struct Step {
  CompiledPart part;
  std::vector<Slot> inputs;
  std::vector<Slot> outputs;
  std::vector<Slot> released;
  /// The part, if it works in a device's memory.
  const DeviceCompiled* device = nullptr;
  /// Its provider, if that has devices, and others with devices whose results it reads as they are.
  const DeviceProvider* provider = nullptr;
  std::vector<const DeviceProvider*> makers;

  const Place* input_place(std::size_t i) const {
    return device == nullptr ? nullptr : device->input_place(i);
  }
  const Place* output_place(std::size_t i) const {
    return device == nullptr ? nullptr : device->output_place(i);
  }
};

/// A value in the memory of a part that needs it elsewhere than it was made.
struct Copy {
  Slot slot;
  Datum datum;
};

class JoinedParts final : public DeviceCompiled {
 public:
  JoinedParts(const Graph& whole, std::vector<CompiledPart> parts, Providers movers)
      : movers_(std::move(movers)) {
    for (const ValueId input : whole.inputs()) (void)slot(input);
    for (CompiledPart& part : parts) {
      Step step;
      for (const ValueId input : part.inputs) step.inputs.push_back(slot(input));
      for (const ValueId output : part.outputs) step.outputs.push_back(slot(output));
      step.part = std::move(part);
      step.device = dynamic_cast<const DeviceCompiled*>(step.part.compiled.get());
      if (step.part.provider != nullptr) step.provider = as_device(*step.part.provider);
      steps_.push_back(std::move(step));
    }
    find_makers();
    for (const ValueId output : whole.outputs()) {
      const Value& value = whole.value(output);
      if (value.constant) constants_.emplace_back(slot(output), *value.constant);
      outputs_.push_back(slot(output));
    }
    plan_releases();
    names_.resize(slot_of_.size());
    for (const auto& [value, slot] : slot_of_) names_[slot] = whole.value(value).name;
  }

  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& state) override {
    std::vector<Datum> slots(slot_of_.size());
    std::copy(inputs.begin(), inputs.end(), slots.begin());
    for (const auto& [constant, value] : constants_) slots[constant] = value;
    std::vector<Copy> copies;
    std::vector<Datum> part_inputs;
    std::vector<Datum> part_outputs;
    for (const Step& step : steps_) {
      part_inputs.clear();
      part_outputs.clear();
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        SDX_ASSIGN(Datum input, input_of(step, i, slots, copies, state.profiler));
        part_inputs.push_back(std::move(input));
      }
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        part_outputs.push_back(given(step, i, outputs));
      }
      // Devices work on their own time: what others make comes before the part, and what the part
      // reads is not made anew before it is done.
      for (const DeviceProvider* maker : step.makers) SDX_TRY(maker->settle(step.provider));
      SDX_TRY(step.part.compiled->run(part_inputs, part_outputs, state));
      for (const DeviceProvider* maker : step.makers) {
        if (step.provider != nullptr) SDX_TRY(step.provider->settle(maker));
      }
      for (std::size_t i = 0; i < step.outputs.size(); ++i) {
        slots[step.outputs[i]] = std::move(part_outputs[i]);
      }
      release(step, slots, copies);
    }
    return hand_out(slots, outputs);
  }

  /// Where the first part that uses the input needs it.
  const Place* input_place(std::size_t i) const override {
    for (const Step& step : steps_) {
      const auto found = std::find(step.inputs.begin(), step.inputs.end(), static_cast<Slot>(i));
      if (found != step.inputs.end()) {
        return step.input_place(static_cast<std::size_t>(found - step.inputs.begin()));
      }
    }
    return nullptr;
  }

  const Place* output_place(std::size_t i) const override {
    for (const Step& step : steps_) {
      const auto found = std::find(step.outputs.begin(), step.outputs.end(), outputs_[i]);
      if (found != step.outputs.end()) {
        return step.output_place(static_cast<std::size_t>(found - step.outputs.begin()));
      }
    }
    return nullptr;
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

  /// Copies settle by themselves; what stays where it is has to be settled here.
  void find_makers() {
    std::unordered_map<Slot, std::pair<const DeviceProvider*, const Place*>> made;
    for (Step& step : steps_) {
      auto& makers = step.makers;
      for (std::size_t i = 0; i < step.inputs.size(); ++i) {
        const auto found = made.find(step.inputs[i]);
        if (found == made.end()) continue;
        const auto [maker, place] = found->second;
        const bool is_new = std::find(makers.begin(), makers.end(), maker) == makers.end();
        if (maker != step.provider && place == step.input_place(i) && is_new) {
          makers.push_back(maker);
        }
      }
      for (std::size_t i = 0; i < step.outputs.size() && step.provider != nullptr; ++i) {
        made[step.outputs[i]] = {step.provider, step.output_place(i)};
      }
    }
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

  /// The value where the part needs it. Parts that need it at one place share one copy.
  Result<Datum> input_of(const Step& step, std::size_t i, std::span<const Datum> slots,
                         std::vector<Copy>& copies, Profiler* profiler) const {
    const Slot slot = step.inputs[i];
    const Tensor* tensor = slots[slot].tensor();
    const Place* place = step.input_place(i);
    if (tensor == nullptr || place_of(*tensor) == place) return slots[slot];
    for (const Copy& copy : copies) {
      if (copy.slot == slot && place_of(*copy.datum.tensor()) == place) return copy.datum;
    }
    const auto start = Profiler::Clock::now();
    SDX_ASSIGN(Tensor copy, moved(movers_, *tensor, place));
    if (profiler != nullptr) {
      profiler->record(names_[slot], place == nullptr ? "MemcpyToHost" : "MemcpyFromHost", start,
                       Profiler::Clock::now());
    }
    copies.push_back({slot, Datum(std::move(copy))});
    return copies.back().datum;
  }

  static void release(const Step& step, std::span<Datum> slots, std::vector<Copy>& copies) {
    for (const Slot released : step.released) {
      slots[released] = Datum();
      std::erase_if(copies, [&](const Copy& copy) { return copy.slot == released; });
    }
  }

  /// What the caller gave for that output of the whole, if it is one and the part can write there.
  Datum given(const Step& step, std::size_t i, std::span<const Datum> outputs) const {
    const auto found = std::find(outputs_.begin(), outputs_.end(), step.outputs[i]);
    if (found == outputs_.end()) return {};
    const Datum& output = outputs[static_cast<std::size_t>(found - outputs_.begin())];
    const Tensor* tensor = output.tensor();
    const bool fits = tensor != nullptr && tensor->dtype() != DType::Undefined &&
                      place_of(*tensor) == step.output_place(i);
    return fits ? output : Datum();
  }

  Status hand_out(std::span<const Datum> slots, std::span<Datum> outputs) const {
    for (std::size_t i = 0; i < outputs_.size(); ++i) {
      SDX_TRY(hand_out_one(slots[outputs_[i]], outputs[i]));
    }
    return {};
  }

  /// Outputs that no part wrote are inputs, constants or repeated outputs, or lie elsewhere than
  /// they are wanted: they get a copy.
  Status hand_out_one(const Datum& result, Datum& output) const {
    const Tensor* tensor = result.tensor();
    Tensor* target = output.tensor();
    const bool fits = tensor != nullptr && target != nullptr &&
                      tensor->dtype() == target->dtype() && tensor->shape() == target->shape();
    if (fits && tensor->data() == target->data()) return {};
    if (fits && tensor->dtype() != DType::String) return copy_across(movers_, *tensor, *target);
    const Place* wanted = target != nullptr ? place_of(*target) : nullptr;
    const bool is_there = tensor == nullptr || (place_of(*tensor) == wanted &&
                                                (wanted == nullptr || keeps_memory(*tensor)));
    if (is_there) {
      SDX_ASSIGN(output, owned(result));
    } else {
      SDX_ASSIGN(output, moved(movers_, *tensor, wanted));
    }
    return {};
  }

  std::unordered_map<ValueId, Slot> slot_of_;
  /// By slot: what a profile calls the copy of a value.
  std::vector<std::string> names_;
  std::vector<Step> steps_;
  std::vector<std::pair<Slot, Datum>> constants_;
  std::vector<Slot> outputs_;
  Providers movers_;
};

}  // namespace

std::unique_ptr<Compiled> join_parts(const Graph& whole, std::vector<CompiledPart> parts,
                                     Providers movers) {
  return std::make_unique<JoinedParts>(whole, std::move(parts), std::move(movers));
}

}  // namespace sardonyx
