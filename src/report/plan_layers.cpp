#include "report/plan_layers.h"

#include <unordered_map>

#include "placement/words.h"

namespace sardonyx {

namespace {

std::string_view name_by(const NodeNames& node, NameOrigin origin) {
  switch (origin) {
    case NameOrigin::NodeNames: return node.name;
    case NameOrigin::ModulePaths: return node.module_path;
    case NameOrigin::ValueNames:
      return node.name.empty() && node.module_path.empty() ? node.output : std::string_view();
    case NameOrigin::None: break;
  }
  return {};
}

/// The pattern that takes a name: the first one with a number, else the longest of the others.
std::string_view pattern_of(std::string_view name,
                            const std::unordered_map<std::string_view, bool>& patterns) {
  std::string_view other;
  for (std::size_t end = 1; end <= name.size(); ++end) {
    const char last = name[end - 1];
    if (last != '/' && last != '.' && last != '_' && last != ':' && last != '-') continue;
    const auto found = patterns.find(name.substr(0, end));
    if (found == patterns.end()) continue;
    if (found->second) return found->first;
    other = found->first;
  }
  return other;
}

}  // namespace

int PlanLayer::only_device() const {
  for (std::size_t i = 0; i < nodes_by_device.size(); ++i) {
    if (nodes_by_device[i] == node_count) return static_cast<int>(i);
  }
  return -1;
}

NodeNames PlanView::names(std::size_t node) const {
  NodeNames names;
  names.name = placement.nodes[node].name;
  if (node >= details.names.size()) return names;
  names.module_path = details.names[node].module_path;
  names.module_name = details.names[node].module_name;
  names.output = details.names[node].output;
  return names;
}

PlanLayers find_layers(const PlanView& view) {
  const Placement& placement = view.placement;
  std::vector<NodeNames> names;
  names.reserve(placement.nodes.size());
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) names.push_back(view.names(i));
  const Suggestions suggestions = suggest_patterns(names);
  std::unordered_map<std::string_view, bool> patterns;
  for (const SuggestedLayers& group : suggestions.groups) {
    for (const SuggestedPattern& layer : group.layers) patterns.emplace(layer.pattern, true);
  }
  for (const SuggestedPattern& other : suggestions.others) patterns.emplace(other.pattern, false);
  PlanLayers found;
  found.origin = suggestions.origin;
  std::unordered_map<std::string_view, std::uint32_t> number_of;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const PlacedNode& node = placement.nodes[i];
    const std::string_view pattern = pattern_of(name_by(names[i], found.origin), patterns);
    const auto [place, is_new] =
        number_of.try_emplace(pattern, static_cast<std::uint32_t>(found.layers.size()));
    if (is_new) {
      PlanLayer& layer = found.layers.emplace_back();
      layer.pattern = pattern;
      layer.nodes_by_device.resize(placement.devices.size());
    }
    PlanLayer& layer = found.layers[place->second];
    ++layer.nodes_by_device[node.device];
    ++layer.node_count;
    layer.weight_bytes += node.weight_bytes;
    layer.output_bytes += node.output_bytes;
    found.layer_of.push_back(place->second);
  }
  return found;
}

NumberedPattern split_number(std::string_view pattern) {
  if (pattern.empty() || is_digit(pattern.back())) return {};
  const std::size_t end = pattern.size() - 1;
  std::size_t begin = end;
  while (begin > 0 && is_digit(pattern[begin - 1])) --begin;
  if (begin == end) return {};
  return {pattern.substr(0, begin), pattern.substr(begin, end - begin), pattern.substr(end)};
}

}  // namespace sardonyx
