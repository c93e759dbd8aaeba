#include "context/origins.h"

#include <cstring>
#include <unordered_map>

#include "onnx/reader.h"

namespace sardonyx {

Status find_origins(Graph& graph, const std::string& model_path) {
  SDX_ASSIGN(const Model model, read_model(model_path));
  std::unordered_map<std::string_view, const Value*> by_name;
  for (ValueId id = 0; id < model.graph.value_count(); ++id) {
    const Value& value = model.graph.value(id);
    if (value.constant && value.origin != nullptr) by_name.emplace(value.name, &value);
  }
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    Value& value = graph.value(id);
    if (!value.constant || value.origin != nullptr) continue;
    const auto found = by_name.find(value.name);
    if (found == by_name.end()) continue;
    const Tensor& there = *found->second->constant;
    const Tensor& here = *value.constant;
    const bool is_same = there.dtype() == here.dtype() && there.shape() == here.shape() &&
                         std::memcmp(there.data(), here.data(), here.byte_size()) == 0;
    if (!is_same) continue;
    value.origin = found->second->origin;
    graph.set_constant(id, there);
  }
  return {};
}

}  // namespace sardonyx
