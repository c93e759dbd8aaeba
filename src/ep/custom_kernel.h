#pragma once

#include <span>

#include "base/status.h"
#include "ep/run_state.h"
#include "ir/datum.h"

namespace sardonyx {

/// What a kernel from outside gets at each run.
struct CustomRun {
  /// One per input of the node; null where it is left out.
  std::span<Datum* const> inputs;
  /// One per output, empty; null where it is left out. Filled with data that own their memory.
  std::span<Datum* const> outputs;
  RunState& state;
};

/// A node of a CustomOperator made ready to run. Runs from several threads at once.
class CustomKernel {
 public:
  virtual ~CustomKernel() = default;
  virtual Status run(CustomRun& run) const = 0;
};

}  // namespace sardonyx
