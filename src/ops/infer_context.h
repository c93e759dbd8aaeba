#pragma once

#include <fmt/core.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/text.h"
#include "ir/graph.h"
#include "ops/schema.h"

namespace sardonyx {

/// Infers the outputs of a subgraph from the types of its inputs.
using SubgraphInferFn =
    FunctionRef<Result<std::vector<Type>>(const Graph& subgraph, std::span<const Type> inputs)>;

/// What an InferFn sees of one node.
class InferContext {
 public:
  /// `types[i]` and `data[i]` belong to input i; null where it is left out or not known. `outputs`
  /// has one Type per output of the node, whose tensor element types are already set as far as the
  /// signature tells.
  struct Operands {
    std::span<const Type* const> types;
    std::span<const Tensor* const> data;
    std::span<Type> outputs;
  };
  InferContext(const Node& node, const OpSchema& schema, const Graph* graph, Operands operands,
               const SubgraphInferFn* infer_subgraph = nullptr)
      : node_(node), schema_(schema), graph_(graph), operands_(operands),
        infer_subgraph_(infer_subgraph) {}

  const Node& node() const { return node_; }
  const Attributes& attributes() const { return node_.attributes; }
  /// `since` of the row in use: tells the versions apart that share a function.
  int version() const { return schema_.since; }

  /// Inputs as listed by the node; the last ones may be left out as well as those in between.
  std::size_t input_count() const { return node_.inputs.size(); }
  bool has_input(std::size_t i) const {
    return i < node_.inputs.size() && node_.inputs[i] != kNoValue;
  }
  /// Type of an input; Kind::Unknown when it is left out or nothing is known.
  const Type& type(std::size_t i) const;
  DType dtype(std::size_t i) const { return type(i).dtype; }
  /// Shape of a tensor input, or null when the rank is not known (or the input is left out).
  const Shape* shape(std::size_t i) const;
  /// The elements of an input, or null when they are not known (yet).
  const Tensor* data(std::size_t i) const;
  /// All elements of an int32 or int64 input as int64; nothing when not known.
  std::optional<std::vector<std::int64_t>> ints(std::size_t i) const;
  /// Name of the value at input i, for messages.
  std::string input_name(std::size_t i) const;

  std::size_t output_count() const { return node_.outputs.size(); }
  bool has_output(std::size_t i) const {
    return i < node_.outputs.size() && node_.outputs[i] != kNoValue;
  }
  /// Element type of an output as the signature (or set_dtype) gives it.
  DType output_dtype(std::size_t i) const {
    return i < operands_.outputs.size() ? operands_.outputs[i].dtype : DType::Undefined;
  }
  /// These do nothing when output i does not exist.
  void set_dtype(std::size_t i, DType dtype);
  void set_shape(std::size_t i, const Shape& shape);
  void set_type(std::size_t i, Type type);

  /// Types of the outputs of the subgraph in that attribute. Unknown types when it cannot tell.
  Result<std::vector<Type>> infer_subgraph(std::string_view attribute,
                                           std::span<const Type> inputs) const;

  /// An InvalidModel failure; the caller adds which node it is.
  template <typename... Args>
  Status error(fmt::format_string<Args...> format, Args&&... args) const {
    return Status(Code::InvalidModel, fmt::vformat(format, fmt::make_format_args(args...)));
  }

 private:
  const Node& node_;
  const OpSchema& schema_;
  const Graph* graph_;
  Operands operands_;
  const SubgraphInferFn* infer_subgraph_;
};

/// Checks the numbers and element types of inputs against the signature, and attributes against
/// the row; then fills the element types of outputs that the signature determines.
/// Errors   InvalidModel, naming the tensor (by position without a graph); the caller adds the
///          node.
Status check_signature(const Node& node, const OpSchema& schema, const Graph* graph,
                       std::span<const Type* const> types, std::span<Type> outputs);

/// Broadcast of two shapes as numpy does it, symbols included: nothing when they cannot fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b);

/// InferFns that many operators share. The first output has the shape of the first input.
Status infer_same_shape(InferContext& context);
/// The output is the broadcast of all inputs.
Status infer_broadcast(InferContext& context);
/// Nothing is known but the element types.
Status infer_nothing(InferContext& context);

}  // namespace sardonyx
