#include "placement/node_names.h"

#include <algorithm>

#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kScopesMax = 256;
constexpr std::size_t kScopeTextMax = 65536;

std::string_view metadata_of(const Node& node, std::string_view key) {
  for (const auto& [name, value] : node.metadata) {
    if (name == key) return value;
  }
  return {};
}

/// A list as Python prints it: ['', 'layer1', 'layer1.0', 'conv2d']. Empty if it is none.
std::vector<std::string> read_list(std::string_view text) {
  std::vector<std::string> items;
  text = trim(text);
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return {};
  text = text.substr(1, text.size() - 2);
  std::size_t at = 0;
  while (items.size() < kScopesMax) {
    at = text.find_first_of("'\"", at);
    if (at == std::string_view::npos) return items;
    const char quote = text[at++];
    std::string item;
    while (at < text.size() && text[at] != quote) {
      if (text[at] == '\\' && at + 1 < text.size()) ++at;
      item += text[at++];
    }
    if (at >= text.size()) return {};
    ++at;
    items.push_back(std::move(item));
  }
  return {};
}

/// ": ResNet/layer1: Sequential/layer1.0: Bottleneck/conv2d: aten.conv2d": the names before colons.
std::vector<std::string> read_namespace(std::string_view text) {
  std::vector<std::string> items;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('/', begin), text.size());
    const std::string_view part = text.substr(begin, end - begin);
    const std::size_t colon = part.find(':');
    if (colon == std::string_view::npos || items.size() >= kScopesMax) return {};
    items.emplace_back(trim(part.substr(0, colon)));
    begin = end + 1;
  }
  return items;
}

bool is_number(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_digit);
}

/// The part of a scope that its parent has not: "0" of "layer1.0" is spelled "layer1.0", as the
/// containers of modules are.
std::string component(std::string_view parent, std::string_view scope) {
  if (parent.empty() || !scope.starts_with(parent) || scope.size() <= parent.size() ||
      scope[parent.size()] != '.') {
    return std::string(scope);
  }
  const std::string_view rest = scope.substr(parent.size() + 1);
  if (!is_number(rest)) return std::string(rest);
  const std::size_t dot = parent.rfind('.');
  std::string_view last = dot == std::string_view::npos ? parent : parent.substr(dot + 1);
  return std::string(last) + '.' + std::string(rest);
}

}  // namespace

ModuleNames module_names(const Node& node) {
  std::string_view text = metadata_of(node, "pkg.torch.onnx.name_scopes");
  std::vector<std::string> scopes;
  if (text.size() <= kScopeTextMax) scopes = read_list(text);
  if (scopes.empty()) {
    text = metadata_of(node, "namespace");
    if (text.size() <= kScopeTextMax) scopes = read_namespace(text);
  }
  ModuleNames names;
  std::string_view parent;
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const std::string& scope = scopes[i];
    if (scope.empty()) continue;
    names.path += '/';
    // The last one is the operation, not a module.
    const bool is_module = i + 1 < scopes.size();
    names.path += is_module ? component(parent, scope) : scope;
    if (names.path.size() > kScopeTextMax) return {};
    if (!is_module) break;
    names.name = scope;
    parent = scope;
  }
  return names;
}

std::string_view annotation_of(const Node& node) { return metadata_of(node, "layer_ann"); }

NodeNames names_of(const Graph& graph, const Node& node, ModuleNames& modules) {
  NodeNames names;
  names.name = node.name;
  modules = node.metadata.empty() ? ModuleNames{} : module_names(node);
  names.module_path = modules.path;
  names.module_name = modules.name;
  for (const ValueId output : node.outputs) {
    if (output == kNoValue) continue;
    names.output = graph.value(output).name;
    break;
  }
  names.annotation = annotation_of(node);
  return names;
}

}  // namespace sardonyx
