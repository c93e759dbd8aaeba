#pragma once

#include <memory>
#include <span>

#include "exec/program.h"

namespace sardonyx {

/// Sizes of the memory that an executor holds at the moment.
struct ExecutorMemory {
  std::size_t arena_bytes = 0;
  std::size_t plan_count = 0;
};

/// Runs a program, from several threads at once if need be.
///
/// Each run takes a frame (slots and an arena); there are at most as many frames as processors,
/// and further callers wait. Plans are made per set of input shapes and kept in a bounded cache. A
/// run with the shapes of the frame's last one and with given outputs takes no lock and allocates
/// nothing, unless shapes depend on data.
class Executor {
 public:
  explicit Executor(Program program);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// One datum per input of the program (without value: the default, or an absent optional), and
  /// per capture. `outputs` has one entry per output; an entry that holds a tensor of the right
  /// type and shape is written into, others are filled with new data.
  /// Errors   those of kernels, naming the node; Cancelled.
  Status run(std::span<const Datum> inputs, std::span<const Datum> captures,
             std::span<Datum> outputs, RunState& run);

  /// The types of the outputs of a run with these operands, as far as shapes tell: an output whose
  /// type is that of a tensor with a static shape can be given memory before the run. Others are
  /// left as they come in.
  /// Errors   those of planning, naming the node.
  Status output_types(std::span<const Datum> inputs, std::span<const Datum> captures,
                      std::span<Type> outputs, RunState& run);

  const Program& program() const;
  ExecutorMemory memory() const;
  /// Gives memory of idle frames back.
  void shrink();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The datum itself if all its memory is its own, else a copy that owns it.
Result<Datum> owned(const Datum& datum);

}  // namespace sardonyx
