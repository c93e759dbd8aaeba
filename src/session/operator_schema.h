#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sardonyx {

/// Element types that go together: all its inputs and outputs have the same one.
struct OperatorConstraint {
  std::string name;
  /// "tensor(float)".
  std::vector<std::string> types;
  std::vector<std::size_t> inputs;
  std::vector<std::size_t> outputs;
};

/// One input or output.
struct OperatorPort {
  /// "input0", "output1": the operator rows know places, not names.
  std::string name;
  /// Index of its constraint; nothing where there is one type only.
  std::optional<std::size_t> constraint;
};

/// An operator's row as those outside see it.
struct OperatorSchema {
  int since = 1;
  /// Any number of the last one counts once.
  std::vector<OperatorPort> inputs;
  std::vector<OperatorPort> outputs;
  std::vector<OperatorConstraint> constraints;
};

/// The newest version of an operator up to `version`; nothing when there is none or it was
/// withdrawn.
std::optional<OperatorSchema> operator_schema(std::string_view domain, std::string_view name,
                                              int version);

}  // namespace sardonyx
