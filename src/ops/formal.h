#pragma once

#include <cstddef>
#include <string_view>

#include "ir/graph.h"

namespace sardonyx {

/// How the standard (or ONNX Runtime, for its own operators) names the types of an operator's
/// inputs and outputs, and what its attributes are when a node leaves them out.
struct FormalRow {
  std::string_view domain;
  std::string_view name;
  int since;
  /// "T T1 ->T*": one word per input before the '>', outputs after it; '-' where the type is fixed,
  /// '*' behind the last one for any number.
  std::string_view types;
  /// "axis:i=-1 mode:s=linear": kinds as in schema.h.
  std::string_view defaults;
};

/// The row for the node's operator and version, or null. A row holds until the next one of its
/// operator, whatever versions lie between.
const FormalRow* find_formal_row(const Node& node);

/// The type parameter of an input or output, "T1"; "" where it has none.
std::string_view type_parameter(const Node& node, bool is_output, std::size_t index);

/// The node's attributes and, for those that it leaves out, the values that they then have.
Attributes attributes_with_defaults(const Node& node);

}  // namespace sardonyx
