#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "ep/run_state.h"
#include "ir/datum.h"
#include "ir/type.h"

namespace sardonyx {

class RunHeap;

/// What a kernel gets at each run: operands, scratch memory, threads.
struct KernelContext {
  /// One per input of the instruction; null where it is left out.
  std::span<Datum* const> inputs;
  /// One per output. Planned outputs already hold a tensor of the inferred type and shape; the
  /// others are empty and are made with make_output or by assigning a datum that owns its memory.
  std::span<Datum* const> outputs;
  /// scratch_bytes() bytes, 64-byte aligned.
  std::byte* scratch = nullptr;
  RunState& run;
  RunHeap* heap = nullptr;

  bool has_input(std::size_t i) const { return i < inputs.size() && inputs[i] != nullptr; }
  bool has_output(std::size_t i) const { return i < outputs.size() && outputs[i] != nullptr; }
  const Tensor& input(std::size_t i) const { return *inputs[i]->tensor(); }
  /// An output that is planned or made.
  Tensor& output(std::size_t i) const { return *outputs[i]->tensor(); }
  ThreadPool& pool() const { return run.pool; }

  /// Makes output i, whose shape planning could not know. Null when nobody wants it.
  Result<Tensor*> make_output(std::size_t i, DType dtype, const Shape& shape) const;
};

/// The work of one instruction with its own, constant parameters (attributes, packed weights).
/// Kernels are immutable after creation and run from several threads at once.
class Kernel {
 public:
  virtual ~Kernel() = default;

  /// What happens to the types of outputs. `types` and `data` hold one entry per input, null where
  /// it is left out or not known; `outputs` come in with Kind::Unknown.
  /// Errors   what cannot fit; the executor adds the node.
  virtual Status infer(std::span<const Type* const> types, std::span<const Tensor* const> data,
                       std::span<Type> outputs) const = 0;

  /// Scratch memory for operands of these types, all of them known.
  virtual std::size_t scratch_bytes(std::span<const Type* const> /*types*/,
                                    std::span<const Type> /*outputs*/) const {
    return 0;
  }

  /// Whether running looks at the elements of an input, or only at its type and shape (a weight
  /// that was packed).
  virtual bool reads(std::size_t /*input*/) const { return true; }

  virtual Status run(KernelContext& context) const = 0;
};

}  // namespace sardonyx
