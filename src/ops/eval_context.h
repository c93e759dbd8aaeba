#pragma once

#include <fmt/core.h>

#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

/// What an EvaluateFn sees of one node: inputs, inferred output types, and ways to make outputs.
///
/// Before it is called, the signature was checked and the row's InferFn ran on the real shapes and
/// data, so that allocate(i) knows the shape of every output whose shape does not depend on
/// evaluation.
class EvalContext {
 public:
  struct Operands {
    /// Null where an input is left out.
    std::span<const Datum* const> inputs;
    /// Types as inferred; outputs to fill.
    std::span<const Type> output_types;
    std::span<Datum> outputs;
  };
  EvalContext(const Node& node, const OpSchema& schema, Operands operands)
      : node_(node), schema_(schema), operands_(operands) {}
  virtual ~EvalContext() = default;
  EvalContext(const EvalContext&) = delete;
  EvalContext& operator=(const EvalContext&) = delete;

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  int version() const { return schema_.since; }

  std::size_t input_count() const { return operands_.inputs.size(); }
  bool has_input(std::size_t i) const { return input(i) != nullptr; }
  /// The input, or null when it is left out.
  const Datum* input(std::size_t i) const {
    return i < operands_.inputs.size() ? operands_.inputs[i] : nullptr;
  }
  /// A tensor input that is there (the signature says T, U, V, I, B, F or S).
  const Tensor& tensor(std::size_t i) const { return *operands_.inputs[i]->tensor(); }
  /// A tensor input, or null when it is left out or is no tensor.
  const Tensor* tensor_or_null(std::size_t i) const {
    return has_input(i) ? input(i)->tensor() : nullptr;
  }
  /// All elements of an int32 or int64 input as int64; empty when it is left out.
  std::vector<std::int64_t> ints(std::size_t i) const;

  std::size_t output_count() const { return operands_.outputs.size(); }
  bool has_output(std::size_t i) const {
    return i < node_.outputs.size() && node_.outputs[i] != kNoValue;
  }
  const Type& output_type(std::size_t i) const { return operands_.output_types[i]; }

  /// Makes output i by its inferred type and shape; its elements are to be filled in. Null when
  /// nobody wants output i.
  Result<Tensor*> allocate(std::size_t i);
  /// The same with a shape that only evaluation could tell.
  Result<Tensor*> allocate(std::size_t i, const Shape& shape);
  Result<Tensor*> allocate(std::size_t i, DType dtype, const Shape& shape);
  /// Makes output i this datum: a sequence, map, optional, or a tensor that shares memory with an
  /// input (Identity). Does nothing when nobody wants it.
  void set_output(std::size_t i, Datum datum);

  /// Runs the subgraph in that attribute; `inputs` are its graph inputs in order. What it captures
  /// comes from around the node.
  virtual Result<std::vector<Datum>> run_subgraph(std::string_view attribute,
                                                  std::span<const Datum> inputs) = 0;
  /// Whether the caller asked to stop; loops ask at every turn.
  virtual bool cancelled() const = 0;
  /// Fails once the caller asked to stop, in the words of every stopped run.
  Status check_cancelled() const {
    if (!cancelled()) return {};
    return Status(Code::Cancelled, "the run was stopped: its terminate flag is set");
  }
  /// Random numbers of this node when its seed attribute does not give a generator of its own.
  virtual std::mt19937_64& random() = 0;

  /// A Runtime failure; the caller adds which node it is.
  template <typename... Args>
  Status error(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(Code::Runtime, fmt::vformat(format, fmt::make_format_args(args...)));
  }

 protected:
  /// Memory for output i.
  virtual Result<Tensor> make_tensor(std::size_t i, DType dtype, const Shape& shape) = 0;

 private:
  const Node& node_;
  const OpSchema& schema_;
  Operands operands_;
};

}  // namespace sardonyx
