#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/shape.h"
#include "ir/type.h"

namespace sardonyx::onnx {

/// A TypeProto. Named dimensions become symbols of `symbols`, or unknown when that is null;
/// negative ones are unknown. An empty message is a type of kind Unknown.
/// Errors   Unsupported for an unknown element type, a rank above Shape::kMaxRank, types nested too
///          deeply.
Result<Type> read_type(std::string_view message, SymbolTable* symbols);

/// A ValueInfoProto.
struct NamedType {
  std::string_view name;
  Type type;
};
/// Errors   as read_type; the message names the value.
Result<NamedType> read_value_info(std::string_view message, SymbolTable* symbols);

/// The dimensions of a ValueInfoProto's tensor type that have a denotation: axis and text.
std::vector<std::pair<int, std::string>> read_denotations(std::string_view message);

}  // namespace sardonyx::onnx
