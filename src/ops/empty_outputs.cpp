#include "ops/empty_outputs.h"

#include <algorithm>

namespace sardonyx {

namespace {

bool is_empty_tensor(const Type& type) {
  return type.is_tensor() && type.dtype != DType::Undefined && type.shape &&
         type.shape->is_static() &&
         std::find(type.shape->begin(), type.shape->end(), 0) != type.shape->end();
}

}  // namespace

bool has_no_elements(const Node& node, const OpSchema& schema, std::span<const Type> types) {
  if (schema.has(kDataDependentShape)) return false;
  bool is_any_wanted = false;
  for (std::size_t i = 0; i < types.size(); ++i) {
    if (node.outputs[i] == kNoValue) continue;
    if (!is_empty_tensor(types[i])) return false;
    is_any_wanted = true;
  }
  return is_any_wanted;
}

}  // namespace sardonyx
