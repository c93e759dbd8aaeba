#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/graph.h"

namespace sardonyx {

/// The largest shape that an input will have.
struct MaxShape {
  std::string input;
  std::vector<Dim> dims;
};

/// Reads `session.max_shape_override`: "input:[d,d];input2:[d]"; "" has none.
/// Errors   Internal (the FAIL of ONNX Runtime, with its texts), naming the entry at fault.
Result<std::vector<MaxShape>> parse_max_shapes(std::string_view text);

/// A copy of the graph, under the same ids, in which inputs have these shapes and everything else
/// the sizes that follow: for estimates. A symbol that one input gives a size has it everywhere.
/// Errors   Internal for a name that is no input's, another rank or another size where the model
///          has one; those of inference.
Result<Graph> with_max_shapes(const Graph& graph, const std::vector<MaxShape>& shapes);

/// The types of a graph's values by id, with the sizes that nodes compute from shapes. The graph
/// itself keeps them open: what providers make of it depends on what they know.
Result<std::vector<Type>> computed_types(const Graph& graph);

}  // namespace sardonyx
