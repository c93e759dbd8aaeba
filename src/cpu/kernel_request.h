#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "exec/kernel.h"
#include "exec/program.h"
#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

class PackedWeights;

/// What a kernel's factory may look at: the node, the types and constants around it, and the place
/// where packed weights live. Types are as inferred at load: shapes may be unknown or partial.
class KernelRequest {
 public:
  KernelRequest(const Graph& graph, const Node& node, const OpSchema& schema,
                PackedWeights& weights, int thread_count)
      : graph_(graph),
        node_(node),
        schema_(schema),
        weights_(weights),
        thread_count_(thread_count) {}

  const Graph& graph() const { return graph_; }
  const Node& node() const { return node_; }
  const OpSchema& schema() const { return schema_; }
  const Attributes& attributes() const { return node_.attributes; }
  int version() const { return schema_.since; }
  PackedWeights& weights() const { return weights_; }
  int thread_count() const { return thread_count_; }

  std::size_t input_count() const { return node_.inputs.size(); }
  bool has_input(std::size_t i) const {
    return i < node_.inputs.size() && node_.inputs[i] != kNoValue;
  }
  bool has_output(std::size_t i) const {
    return i < node_.outputs.size() && node_.outputs[i] != kNoValue;
  }
  /// Kind::Unknown for an input that is left out.
  const Type& type(std::size_t i) const {
    static const Type kUnknown;
    return has_input(i) ? graph_.value(node_.inputs[i]).type : kUnknown;
  }
  DType dtype(std::size_t i) const { return type(i).dtype; }
  /// Null when the rank is not known at load.
  const Shape* shape(std::size_t i) const { return type(i).shape ? &*type(i).shape : nullptr; }
  /// The elements of a constant input, or null.
  const Tensor* constant(std::size_t i) const {
    if (!has_input(i)) return nullptr;
    const Value& value = graph_.value(node_.inputs[i]);
    return value.constant ? &*value.constant : nullptr;
  }

 private:
  const Graph& graph_;
  const Node& node_;
  const OpSchema& schema_;
  PackedWeights& weights_;
  int thread_count_;
};

/// Makes the kernel of a node, or null when this row cannot serve it (types, attributes, ranks).
using CreateKernelFn = Result<std::unique_ptr<Kernel>> (*)(const KernelRequest&);

/// One row per kernel and operator version; a version holds until the operator's next row of the
/// same table. Rows that answer null are passed over; the plain evaluator serves the rest.
struct KernelRow {
  std::string_view domain;
  std::string_view name;
  int since;
  CreateKernelFn create;
  /// Instruction::Flags.
  unsigned flags = Instruction::kPlain;
};

}  // namespace sardonyx
