#pragma once

#include <memory>
#include <span>
#include <vector>

#include "exec/program.h"

namespace sardonyx {

/// Where the memory of a slot comes from during a run.
enum class Storage : std::uint8_t {
  /// Given from outside: an input, capture or constant; or nothing at all.
  External,
  /// Computed while planning: it depends on shapes only.
  Known,
  /// At an offset of the arena.
  Arena,
  /// In the tensor of a graph output.
  Output,
  /// The memory of another slot.
  View,
  /// Made while running, since its shape depends on data.
  Dynamic,
};

struct SlotPlan {
  Storage storage = Storage::External;
  /// Static for all storages but External and Dynamic.
  Type type;
  std::size_t offset = 0;
  /// View: the slot that owns the memory. Output: which output.
  std::uint32_t target = 0;
  /// Dynamic: it leaves the run and must own its memory.
  bool escapes = false;
};

struct StepPlan {
  std::uint32_t instruction = 0;
  bool is_dynamic = false;
  std::size_t scratch_offset = 0;
  /// Dynamic slots whose memory is free after this step: a range of ExecutionPlan::releases.
  std::uint32_t release_begin = 0;
  std::uint32_t release_end = 0;
};

/// A program made ready for inputs of certain types: what runs, and where everything lies.
struct ExecutionPlan {
  /// Types of inputs and captures, in order, that it was made for.
  std::vector<Type> key;
  std::vector<SlotPlan> slots;
  std::vector<StepPlan> steps;
  std::vector<SlotId> releases;
  std::vector<std::pair<SlotId, Tensor>> known;
  /// Per output: its memory is made in the run for it alone. Others are copied when handed out.
  std::vector<bool> is_own_output;
  std::size_t arena_bytes = 0;

  bool fits(std::span<const Datum> inputs, std::span<const Datum> captures) const;
};

/// Plans `program` for these inputs. Instructions that depend on shapes only are run here, once.
/// Errors   those of the kernels' infer and of what it runs, naming the node.
/// Cost     about a microsecond an instruction.
Result<std::shared_ptr<const ExecutionPlan>> make_plan(const Program& program,
                                                       std::span<const Datum> inputs,
                                                       std::span<const Datum> captures,
                                                       RunState& run);

}  // namespace sardonyx
