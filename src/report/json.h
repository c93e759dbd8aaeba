#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "ir/shape.h"
#include "ir/type.h"

namespace sardonyx {

using Json = nlohmann::ordered_json;

/// The text of a report: names in models need not be UTF-8.
inline std::string to_text(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

/// {"name", "type", "shape"} of a value; `symbol_of` names a symbolic dimension or returns "".
template <typename SymbolOf>
Json describe_value(const std::string& name, const Type& type, const SymbolOf& symbol_of) {
  Json shape;
  if (type.shape) {
    shape = Json::array();
    for (int axis = 0; axis < type.shape->rank(); ++axis) {
      const Dim dim = (*type.shape)[axis];
      const std::string symbol = is_known(dim) ? std::string() : symbol_of(axis, dim);
      shape.push_back(is_known(dim) ? Json(dim) : symbol.empty() ? Json() : Json(symbol));
    }
  }
  return {{"name", name}, {"type", type.to_string()}, {"shape", std::move(shape)}};
}

}  // namespace sardonyx
