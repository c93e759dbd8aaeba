#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "exec/kernel.h"
#include "ir/datum.h"

namespace sardonyx {

using SlotId = std::uint32_t;
inline constexpr SlotId kNoSlot = 0xffffffffU;

/// One step of a program.
struct Instruction {
  /// Facts about a kernel that planning uses.
  enum Flags : unsigned {
    kPlain = 0,
    /// Outputs depend on the shapes of inputs only (Shape, Size).
    kShapesOnly = 1U << 0,
    /// Output 0 is input 0 with another shape: no work, no memory (Reshape, Identity).
    kView = 1U << 1,
    /// Output 0 may take the memory of input 0 (or input 1) when that is no longer needed and has
    /// the same size: element i is read before it is written.
    kInPlace = 1U << 2,
    /// Runs again even if its inputs are known (random numbers, control flow).
    kNeverKnown = 1U << 3,
  };

  std::unique_ptr<Kernel> kernel;
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  unsigned flags = kPlain;
  /// "node 'conv1' (Conv)": for messages; the node's name and operator for profiles.
  std::string description;
  std::string node_name;
  std::string op_type;

  bool has(Flags flag) const { return (flags & flag) != 0; }
};

/// A flat list of kernel calls over numbered slots. A slot is written once in a run: by an input,
/// a capture, a constant or one instruction.
struct Program {
  std::vector<Instruction> instructions;
  std::uint32_t slot_count = 0;
  /// In the order of graph inputs, graph outputs and captures. Two outputs may be one slot.
  std::vector<SlotId> inputs;
  std::vector<SlotId> outputs;
  std::vector<SlotId> captures;
  std::vector<std::pair<SlotId, Datum>> constants;
  /// Results may share memory with inputs and constants that own theirs: nobody writes into them.
  bool shares_results = false;
};

}  // namespace sardonyx
