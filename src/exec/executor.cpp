#include "exec/executor.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "base/memory.h"
#include "base/text.h"
#include "exec/execution_plan.h"
#include "exec/run_heap.h"

namespace sardonyx {

namespace {

constexpr std::size_t kPlans_max = 32;
/// An idle arena this large is given back when the next run needs less than a quarter of it.
constexpr std::size_t kSpareArena_bytes = std::size_t{16} << 20;

struct FreeBytes {
  void operator()(std::byte* memory) const { std::free(memory); }
};

/// What one run needs: a value per slot, an arena, and operands as arrays of pointers.
struct Frame {
  std::atomic<bool> is_taken{false};
  std::shared_ptr<const ExecutionPlan> plan;
  std::vector<Datum> slots;
  std::vector<Datum*> operands;
  /// Per instruction: where its operands begin; outputs follow inputs.
  std::vector<std::uint32_t> operand_begin;
  std::unique_ptr<std::byte, FreeBytes> arena;
  std::size_t arena_bytes = 0;
  RunHeap heap;
  std::vector<Type> output_types;

  explicit Frame(const Program& program) : slots(program.slot_count) {
    for (const auto& [slot, datum] : program.constants) slots[slot] = datum;
    for (const Instruction& instruction : program.instructions) {
      operand_begin.push_back(static_cast<std::uint32_t>(operands.size()));
      for (const SlotId slot : instruction.inputs) operands.push_back(pointer(slot));
      for (const SlotId slot : instruction.outputs) operands.push_back(pointer(slot));
    }
  }

  Datum* pointer(SlotId slot) { return slot == kNoSlot ? nullptr : &slots[slot]; }

  Status reserve(std::size_t bytes) {
    const bool is_wasteful = arena_bytes > kSpareArena_bytes && bytes < arena_bytes / 4;
    if (bytes <= arena_bytes && !is_wasteful) return {};
    arena.reset();
    arena_bytes = (bytes + 63) / 64 * 64;
    arena.reset(arena_bytes == 0 ? nullptr
                                 : static_cast<std::byte*>(allocate_aligned(arena_bytes)));
    if (arena == nullptr && arena_bytes != 0) {
      arena_bytes = 0;
      plan.reset();
      return failure(Code::OutOfMemory, "no memory for an arena of {} bytes", bytes);
    }
    return {};
  }

  /// Lets go of what the plan put into the slots.
  void unbind() {
    if (plan == nullptr) return;
    for (std::size_t slot = 0; slot < slots.size(); ++slot) {
      if (plan->slots[slot].storage != Storage::External) slots[slot] = Datum();
    }
    plan.reset();
  }

  /// Points the slots of a plan at their memory.
  Status bind(std::shared_ptr<const ExecutionPlan> next) {
    unbind();
    SDX_TRY(reserve(next->arena_bytes));
    for (const auto& [slot, tensor] : next->known) slots[slot] = tensor;
    for (SlotId slot = 0; slot < slots.size(); ++slot) {
      const SlotPlan& planned = next->slots[slot];
      if (planned.storage == Storage::Arena) {
        slots[slot] =
            Tensor::view(planned.type.dtype, *planned.type.shape, arena.get() + planned.offset);
      }
    }
    plan = std::move(next);
    return {};
  }
};

bool owns_memory(const Datum& datum) {
  if (const Tensor* tensor = datum.tensor()) return tensor->owner() != nullptr;
  if (const Sequence* sequence = datum.sequence()) {
    return std::all_of(sequence->items.begin(), sequence->items.end(), owns_memory);
  }
  return true;
}

Status copy_elements(const Tensor& from, Tensor& to) {
  if (from.data() == to.data()) return {};
  if (from.dtype() == DType::String) {
    const auto source = from.values<std::string>();
    std::copy(source.begin(), source.end(), to.mutable_values<std::string>().begin());
  } else if (from.byte_size() != 0) {
    std::memcpy(to.mutable_data(), from.data(), from.byte_size());
  }
  return {};
}

bool takes(const Datum& bound, const Type& type) {
  const Tensor* tensor = bound.tensor();
  return tensor != nullptr && type.shape && tensor->dtype() == type.dtype &&
         tensor->shape() == *type.shape;
}

}  // namespace

Result<Tensor*> KernelContext::make_output(std::size_t i, DType dtype, const Shape& shape) const {
  if (!has_output(i)) return static_cast<Tensor*>(nullptr);
  Datum& slot = *outputs[i];
  if (Tensor* planned = slot.tensor();
      planned != nullptr && planned->dtype() == dtype && planned->shape() == shape) {
    return planned;
  }
  SDX_ASSIGN(Tensor made, Tensor::allocate(dtype, shape));
  slot = Datum(std::move(made));
  return slot.tensor();
}

Result<Datum> owned(const Datum& datum) {
  if (owns_memory(datum)) return datum;
  if (const Tensor* tensor = datum.tensor()) {
    SDX_ASSIGN(Tensor copy, clone(*tensor));
    return Datum(std::move(copy));
  }
  auto copy = std::make_shared<Sequence>();
  copy->element = datum.sequence()->element;
  for (const Datum& item : datum.sequence()->items) {
    SDX_ASSIGN(Datum own, owned(item));
    copy->items.push_back(std::move(own));
  }
  return Datum(std::shared_ptr<const Sequence>(std::move(copy)));
}

struct Executor::Impl {
  explicit Impl(Program given) : program(std::move(given)) {
    frames.resize(static_cast<std::size_t>(usable_processor_count()));
  }

  Program program;
  /// Grown on demand; a frame that exists stays.
  std::vector<std::unique_ptr<Frame>> frames;
  std::atomic<std::size_t> frame_count{0};
  std::mutex frame_mutex;
  std::condition_variable frame_free;
  std::atomic<int> waiting{0};
  std::mutex plan_mutex;
  std::vector<std::shared_ptr<const ExecutionPlan>> plans;

  Frame* try_take() {
    const std::size_t count = frame_count.load(std::memory_order_acquire);
    for (std::size_t i = 0; i < count; ++i) {
      if (!frames[i]->is_taken.exchange(true, std::memory_order_acquire)) return frames[i].get();
    }
    return nullptr;
  }

  Frame& take_frame() {
    if (Frame* frame = try_take()) return *frame;
    std::unique_lock lock(frame_mutex);
    const std::size_t count = frame_count.load();
    if (count < frames.size()) {
      frames[count] = std::make_unique<Frame>(program);
      frames[count]->is_taken.store(true);
      frame_count.store(count + 1, std::memory_order_release);
      return *frames[count];
    }
    waiting.fetch_add(1);
    Frame* frame = nullptr;
    frame_free.wait(lock, [&] { return (frame = try_take()) != nullptr; });
    waiting.fetch_sub(1);
    return *frame;
  }

  void give_frame(Frame& frame) {
    frame.is_taken.store(false);
    if (waiting.load() == 0) return;
    const std::lock_guard lock(frame_mutex);
    frame_free.notify_one();
  }

  Result<std::shared_ptr<const ExecutionPlan>> plan_for(std::span<const Datum> inputs,
                                                        std::span<const Datum> captures,
                                                        RunState& run) {
    {
      const std::lock_guard lock(plan_mutex);
      for (auto& plan : plans) {
        if (!plan->fits(inputs, captures)) continue;
        std::rotate(plans.begin(), plans.begin() + (&plan - plans.data()),
                    plans.begin() + (&plan - plans.data()) + 1);
        return plans.front();
      }
    }
    SDX_ASSIGN(auto made, make_plan(program, inputs, captures, run));
    const std::lock_guard lock(plan_mutex);
    plans.insert(plans.begin(), made);
    if (plans.size() > kPlans_max) plans.pop_back();
    return made;
  }
};

namespace {

/// One run over one frame.
class Runner {
 public:
  Runner(const Program& program, Frame& frame, std::span<Datum> outputs, RunState& run)
      : program_(program), frame_(frame), plan_(*frame.plan), outputs_(outputs), run_(run) {}

  Status go(std::span<const Datum> inputs, std::span<const Datum> captures) {
    enter(program_.inputs, inputs);
    enter(program_.captures, captures);
    Status status = place_outputs();
    for (std::size_t i = 0; status.ok() && i < plan_.steps.size(); ++i) {
      status = step(plan_.steps[i]);
    }
    if (status.ok()) status = hand_out();
    leave();
    return status;
  }

 private:
  void enter(const std::vector<SlotId>& slots, std::span<const Datum> data) {
    for (std::size_t i = 0; i < slots.size(); ++i) frame_.slots[slots[i]] = data[i];
  }

  Status place_outputs() {
    for (std::uint32_t k = 0; k < outputs_.size(); ++k) {
      SlotId slot = program_.outputs[k];
      while (plan_.slots[slot].storage == Storage::View) slot = plan_.slots[slot].target;
      const SlotPlan& planned = plan_.slots[slot];
      if (planned.storage != Storage::Output || planned.target != k) continue;
      const Type& wanted = plan_.slots[program_.outputs[k]].type;
      if (takes(outputs_[k], wanted)) {
        frame_.slots[slot] = outputs_[k].tensor()->reshaped(*planned.type.shape);
      } else {
        SDX_ASSIGN(Tensor made, Tensor::allocate(planned.type.dtype, *planned.type.shape));
        frame_.slots[slot] = std::move(made);
      }
    }
    return {};
  }

  Status step(const StepPlan& step) {
    const Instruction& instruction = program_.instructions[step.instruction];
    if (run_.is_cancelled()) {
      return failure(Code::Cancelled, "the run was stopped before {}: its terminate flag is set",
                     instruction.description);
    }
    Profiler::Clock::time_point start;
    if (run_.profiler != nullptr) start = Profiler::Clock::now();
    Status status =
        step.is_dynamic ? run_dynamic(step, instruction) : run_planned(step, instruction);
    if (!status.ok()) return std::move(status).with("running " + instruction.description);
    if (run_.profiler != nullptr) {
      run_.profiler->record(instruction.node_name, instruction.op_type, start,
                            Profiler::Clock::now());
    }
    if (run_.memory != nullptr) record_memory(instruction);
    for (std::uint32_t i = step.release_begin; i < step.release_end; ++i) {
      release(plan_.releases[i]);
    }
    return {};
  }

  /// Bytes of the elements of a value as it is now.
  std::size_t bytes_of(SlotId slot) const {
    if (slot == kNoSlot) return 0;
    const Tensor* tensor = frame_.slots[slot].tensor();
    return tensor == nullptr ? 0 : tensor->byte_size();
  }

  void record_memory(const Instruction& instruction) {
    std::size_t input_bytes = 0;
    std::size_t output_bytes = 0;
    bool are_tensors = true;
    std::vector<Type> types;
    std::vector<const Type*> pointers;
    types.reserve(instruction.inputs.size());
    for (const SlotId slot : instruction.inputs) {
      input_bytes += bytes_of(slot);
      types.push_back(slot == kNoSlot ? Type{} : frame_.slots[slot].type());
      pointers.push_back(slot == kNoSlot ? nullptr : &types.back());
      are_tensors = are_tensors && (slot == kNoSlot || is_whole(types.back()));
    }
    std::vector<Type> outputs;
    for (const SlotId slot : instruction.outputs) {
      output_bytes += bytes_of(slot);
      outputs.push_back(slot == kNoSlot ? Type{} : frame_.slots[slot].type());
      are_tensors = are_tensors && (slot == kNoSlot || is_whole(outputs.back()));
    }
    const bool has_scratch = are_tensors && !instruction.has(Instruction::kView);
    const std::size_t scratch_bytes =
        has_scratch ? instruction.kernel->scratch_bytes(pointers, outputs) : 0;
    run_.memory->record(instruction.node_name, instruction.description, input_bytes, output_bytes,
                        scratch_bytes);
  }

  KernelContext context(const StepPlan& step, const Instruction& instruction, std::byte* scratch) {
    Datum** begin = frame_.operands.data() + frame_.operand_begin[step.instruction];
    return {{begin, instruction.inputs.size()},
            {begin + instruction.inputs.size(), instruction.outputs.size()},
            scratch,
            run_,
            &frame_.heap};
  }

  Status run_planned(const StepPlan& step, const Instruction& instruction) {
    if (instruction.has(Instruction::kView)) {
      const SlotId output = instruction.outputs[0];
      frame_.slots[output] =
          frame_.slots[instruction.inputs[0]].tensor()->reshaped(*plan_.slots[output].type.shape);
      return {};
    }
    KernelContext kernel_context =
        context(step, instruction, frame_.arena.get() + step.scratch_offset);
    return instruction.kernel->run(kernel_context);
  }

  Status run_dynamic(const StepPlan& step, const Instruction& instruction) {
    KernelContext kernel_context = context(step, instruction, nullptr);
    std::vector<Type> types(instruction.inputs.size());
    std::vector<const Type*> type_pointers(types.size(), nullptr);
    std::vector<const Tensor*> data(types.size(), nullptr);
    for (std::size_t i = 0; i < types.size(); ++i) {
      if (kernel_context.inputs[i] == nullptr) continue;
      types[i] = kernel_context.inputs[i]->type();
      type_pointers[i] = &types[i];
      data[i] = kernel_context.inputs[i]->tensor();
    }
    std::vector<Type> outputs(instruction.outputs.size());
    SDX_TRY(instruction.kernel->infer(type_pointers, data, outputs));
    if (instruction.has(Instruction::kView) && is_whole(outputs[0]) && data[0] != nullptr) {
      *kernel_context.outputs[0] = data[0]->reshaped(*outputs[0].shape);
      return {};
    }
    bool all_whole = true;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (instruction.outputs[i] == kNoSlot) continue;
      if (!is_whole(outputs[i])) {
        all_whole = false;
        continue;
      }
      SDX_TRY(allocate(instruction.outputs[i], outputs[i]));
    }
    const std::size_t scratch_bytes =
        all_whole ? instruction.kernel->scratch_bytes(type_pointers, outputs) : 0;
    if (scratch_bytes != 0) {
      kernel_context.scratch = frame_.heap.allocate(scratch_bytes);
      if (kernel_context.scratch == nullptr) {
        return failure(Code::OutOfMemory, "no memory for {} bytes of scratch", scratch_bytes);
      }
    }
    Status status = instruction.kernel->run(kernel_context);
    if (scratch_bytes != 0) frame_.heap.release(kernel_context.scratch);
    return status;
  }

  static bool is_whole(const Type& type) {
    return type.kind == Type::Kind::Tensor && type.dtype != DType::Undefined && type.shape &&
           type.shape->is_static();
  }

  Status allocate(SlotId slot, const Type& type) {
    const auto count = type.shape->element_count();
    const auto bytes = count ? dtype_bytes(type.dtype, *count) : std::nullopt;
    if (plan_.slots[slot].escapes || type.dtype == DType::String || !bytes) {
      SDX_ASSIGN(Tensor made, Tensor::allocate(type.dtype, *type.shape));
      frame_.slots[slot] = std::move(made);
      return {};
    }
    std::byte* memory = frame_.heap.allocate(*bytes);
    if (memory == nullptr) {
      return failure(Code::OutOfMemory, "no memory for a tensor({}) of shape {}",
                     dtype_name(type.dtype), type.shape->to_string());
    }
    frame_.slots[slot] = Tensor::view(type.dtype, *type.shape, memory);
    return {};
  }

  void release(SlotId slot) {
    Datum& datum = frame_.slots[slot];
    if (Tensor* tensor = datum.tensor(); tensor != nullptr && tensor->owner() == nullptr) {
      frame_.heap.release(tensor->mutable_data());
    }
    datum = Datum();
  }

  Status hand_out() {
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      const Datum& result = frame_.slots[program_.outputs[k]];
      if (takes(outputs_[k], result.type())) {
        SDX_TRY(copy_elements(*result.tensor(), *outputs_[k].tensor()));
        continue;
      }
      // What is a constant's, an input's or another output's memory is copied: the caller may
      // write into what it gets.
      if (!plan_.is_own_output[k] && !program_.shares_results && result.tensor() != nullptr) {
        SDX_ASSIGN(Tensor copy, clone(*result.tensor()));
        outputs_[k] = Datum(std::move(copy));
      } else {
        SDX_ASSIGN(outputs_[k], owned(result));
      }
    }
    return {};
  }

  /// Lets go of everything that belongs to the caller or to this run alone.
  void leave() {
    for (const SlotId slot : program_.inputs) frame_.slots[slot] = Datum();
    for (const SlotId slot : program_.captures) frame_.slots[slot] = Datum();
    for (SlotId slot = 0; slot < plan_.slots.size(); ++slot) {
      const Storage storage = plan_.slots[slot].storage;
      if (storage == Storage::Dynamic) release(slot);
      if (storage == Storage::Output || storage == Storage::View) frame_.slots[slot] = Datum();
    }
    frame_.heap.trim();
  }

  const Program& program_;
  Frame& frame_;
  const ExecutionPlan& plan_;
  std::span<Datum> outputs_;
  RunState& run_;
};

}  // namespace

Executor::Executor(Program program) : impl_(std::make_unique<Impl>(std::move(program))) {}
Executor::~Executor() = default;

const Program& Executor::program() const { return impl_->program; }

Status Executor::run(std::span<const Datum> inputs, std::span<const Datum> captures,
                     std::span<Datum> outputs, RunState& run) {
  Frame& frame = impl_->take_frame();
  Status status;
  if (frame.plan == nullptr || !frame.plan->fits(inputs, captures)) {
    auto plan = impl_->plan_for(inputs, captures, run);
    status = plan.ok() ? frame.bind(std::move(plan).value()) : std::move(plan).take_status();
  }
  if (status.ok()) {
    status = Runner(impl_->program, frame, outputs, run).go(inputs, captures);
  }
  impl_->give_frame(frame);
  return status;
}

Status Executor::output_types(std::span<const Datum> inputs, std::span<const Datum> captures,
                              std::span<Type> outputs, RunState& run) {
  SDX_ASSIGN(const auto plan, impl_->plan_for(inputs, captures, run));
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const SlotPlan& slot = plan->slots[impl_->program.outputs[k]];
    const bool is_planned = slot.storage != Storage::Dynamic && slot.storage != Storage::External;
    if (is_planned) outputs[k] = slot.type;
  }
  return {};
}

ExecutorMemory Executor::memory() const {
  ExecutorMemory memory;
  for (std::size_t i = 0; i < impl_->frame_count.load(); ++i) {
    memory.arena_bytes += impl_->frames[i]->arena_bytes;
  }
  const std::lock_guard lock(impl_->plan_mutex);
  memory.plan_count = impl_->plans.size();
  return memory;
}

void Executor::shrink() {
  for (std::size_t i = 0; i < impl_->frame_count.load(); ++i) {
    Frame& frame = *impl_->frames[i];
    if (frame.is_taken.exchange(true)) continue;
    frame.unbind();
    frame.arena.reset();
    frame.arena_bytes = 0;
    frame.heap.trim();
    impl_->give_frame(frame);
  }
}

}  // namespace sardonyx
