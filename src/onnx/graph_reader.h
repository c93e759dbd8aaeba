#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "onnx/tensor_reader.h"

namespace sardonyx::onnx {

/// The names of one graph while it is read, and those around it. Names are views into the file.
struct Scope {
  Graph* graph = nullptr;
  Scope* outer = nullptr;
  std::unordered_map<std::string_view, ValueId> names;
};

/// What is the same for all graphs of a model, or for one function.
struct GraphContext {
  Source source;
  const ReadOptions* options = nullptr;
  std::int64_t ir_version = 0;
  /// Null in functions, whose named dimensions differ from call to call.
  SymbolTable* symbols = nullptr;
  /// Takes those of the main graph's inputs; null when nobody wants them.
  std::vector<DimDenotation>* denotations = nullptr;
  std::unordered_map<std::string, std::int64_t> opsets;
  bool in_function = false;
};

/// A GraphProto. `outer` is the graph around a subgraph, whose names are all known; values that are
/// used from there become captures. `depth` counts the graphs around it.
/// Errors   InvalidModel, Unsupported; the message names node, operator and tensor. Throws what
///          Fields throws.
Result<std::shared_ptr<Graph>> read_graph(std::string_view message, const GraphContext& context,
                                          Scope* outer, int depth);

/// A FunctionProto; `context` holds what the model says, the function's own imports replace its.
Result<Function> read_function(std::string_view message, GraphContext context);

/// Refuses two functions of one name and functions that call themselves, however indirectly.
Status check_functions(const std::vector<Function>& functions);

/// An OperatorSetIdProto, added to `opsets` and `imports`.
Status read_opset_import(std::string_view message,
                         std::vector<std::pair<std::string, std::int64_t>>& imports,
                         std::unordered_map<std::string, std::int64_t>& opsets);

/// A StringStringEntryProto.
std::pair<std::string, std::string> read_entry(std::string_view message);

/// An AttributeProto of a node in `scope`.
Result<Attributes::Entry> read_attribute(std::string_view message, const GraphContext& context,
                                         Scope& scope, int depth);

}  // namespace sardonyx::onnx
