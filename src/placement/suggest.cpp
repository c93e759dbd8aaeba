#include "placement/suggest.h"

#include <algorithm>
#include <charconv>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/text.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

constexpr std::size_t kNameBytesMax = 512;
constexpr std::size_t kRunsMax = 8;
constexpr std::size_t kDigitsMax = 9;
constexpr std::size_t kOthersMax = 64;

/// A number in a name with a separator after it: "/model/layers." 12 '/'.
struct NumberPlace {
  std::string_view prefix;
  std::string_view digits;
  char separator = 0;
};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::vector<NumberPlace> numbers_of(std::string_view name) {
  std::vector<NumberPlace> found;
  name = name.substr(0, kNameBytesMax);
  bool has_letter = false;
  for (std::size_t i = 0; i < name.size() && found.size() < kRunsMax; ++i) {
    if (!is_digit(name[i])) {
      has_letter = has_letter || is_letter(name[i]);
      continue;
    }
    const std::size_t begin = i;
    while (i < name.size() && is_digit(name[i])) ++i;
    const std::size_t count = i - begin;
    // A number at the end only tells nodes apart.
    if (i == name.size()) break;
    constexpr std::string_view kSeparators = "/._:-";
    if (has_letter && count <= kDigitsMax && kSeparators.find(name[i]) != std::string_view::npos) {
      found.push_back({name.substr(0, begin), name.substr(begin, count), name[i]});
    }
  }
  return found;
}

/// Whether patterns of the text can be written in every option.
bool is_plain(std::string_view text) {
  return text.find_first_of(",();\"[]*\\") == std::string_view::npos && trim(text) == text &&
         text.find_first_of("=~@") != 0;
}

struct Prefix {
  std::unordered_set<std::string_view> numbers;
  std::uint64_t node_count = 0;
  bool is_loose = false;

  /// Names with underscores also number nodes of one kind: there a layer has more than one node.
  bool is_layers() const {
    return numbers.size() >= 2 && node_count >= numbers.size() * (is_loose ? 2 : 1);
  }
};

struct Layer {
  std::uint64_t number = 0;
  std::uint64_t node_count = 0;
};

/// Layers with one prefix and separator, by the digits of their number.
using Layers = std::map<std::string_view, Layer>;

std::string range_of(const std::vector<std::pair<std::uint64_t, std::string>>& numbers) {
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1].first == numbers[last].first + 1 &&
           (numbers[i].second.front() != '0' || numbers[i].second.size() == 1 ||
            numbers[last + 1].second.size() == numbers[i].second.size())) {
      ++last;
    }
    parts.push_back(last == i ? numbers[i].second
                              : fmt::format("{}-{}", numbers[i].second, numbers[last].second));
    i = last + 1;
  }
  return join(parts, ",");
}

SuggestedLayers describe(std::string_view prefix, char separator, const Layers& layers) {
  SuggestedLayers group;
  std::vector<std::pair<std::uint64_t, std::string>> numbers;
  for (const auto& [digits, layer] : layers) numbers.emplace_back(layer.number, digits);
  std::sort(numbers.begin(), numbers.end());
  for (const auto& [number, digits] : numbers) {
    const Layer& layer = layers.find(digits)->second;
    group.layers.push_back({fmt::format("{}{}{}", prefix, digits, separator), layer.node_count});
    group.node_count += layer.node_count;
  }
  group.range = fmt::format("{}[{}]{}", prefix, range_of(numbers), separator);
  return group;
}

/// "/model/embed/" of "/model/embed/Gather", when "/model/" is where the layers are.
std::string_view part_of(std::string_view name, const std::unordered_set<std::string_view>& roots) {
  name = name.substr(0, kNameBytesMax);
  std::size_t end = name.find('/', 1);
  if (end == std::string_view::npos) return {};
  if (roots.contains(name.substr(0, end + 1))) end = name.find('/', end + 1);
  if (end == std::string_view::npos) return {};
  return name.substr(0, end + 1);
}

class Suggester {
 public:
  explicit Suggester(std::vector<std::string_view> names) : names_(std::move(names)) {}

  Suggestions suggest(NameOrigin origin) {
    count_prefixes();
    std::vector<std::string_view> left;
    for (const std::string_view name : names_) {
      if (!take(name)) left.push_back(name);
    }
    Suggestions result;
    result.origin = origin;
    std::unordered_set<std::string_view> roots;
    for (const auto& [key, layers] : groups_) {
      result.groups.push_back(describe(key.first, key.second, layers));
      const std::size_t end = key.first.find('/', 1);
      if (end != std::string_view::npos) roots.insert(key.first.substr(0, end + 1));
    }
    std::stable_sort(result.groups.begin(), result.groups.end(),
                     [](const auto& a, const auto& b) { return a.node_count > b.node_count; });
    add_others(left, roots, result);
    return result;
  }

 private:
  void count_prefixes() {
    for (const std::string_view name : names_) {
      for (const NumberPlace& place : numbers_of(name)) {
        Prefix& prefix = prefixes_[place.prefix];
        prefix.numbers.insert(place.digits);
        ++prefix.node_count;
        prefix.is_loose = prefix.is_loose || place.separator == '_';
      }
    }
  }

  bool take(std::string_view name) {
    for (const NumberPlace& place : numbers_of(name)) {
      if (!prefixes_.find(place.prefix)->second.is_layers() || !is_plain(place.prefix)) continue;
      Layer& layer = groups_[{place.prefix, place.separator}][place.digits];
      std::from_chars(place.digits.data(), place.digits.data() + place.digits.size(), layer.number);
      ++layer.node_count;
      return true;
    }
    return false;
  }

  static void add_others(const std::vector<std::string_view>& left,
                         const std::unordered_set<std::string_view>& roots, Suggestions& result) {
    std::map<std::string_view, std::uint64_t> counts;
    for (const std::string_view name : left) {
      const std::string_view part = part_of(name, roots);
      if (part.empty() || !is_plain(part)) {
        ++result.unnamed_count;
      } else {
        ++counts[part];
      }
    }
    for (const auto& [part, count] : counts) result.others.push_back({std::string(part), count});
    std::stable_sort(result.others.begin(), result.others.end(),
                     [](const auto& a, const auto& b) { return a.node_count > b.node_count; });
    while (result.others.size() > kOthersMax) {
      result.unnamed_count += result.others.back().node_count;
      result.others.pop_back();
    }
  }

  std::vector<std::string_view> names_;
  std::unordered_map<std::string_view, Prefix> prefixes_;
  std::map<std::pair<std::string_view, char>, Layers> groups_;
};

std::uint64_t layer_nodes(const Suggestions& suggestions) {
  std::uint64_t count = 0;
  for (const SuggestedLayers& group : suggestions.groups) count += group.node_count;
  return count;
}

std::string_view name_by(const NodeNames& node, NameOrigin origin) {
  switch (origin) {
    case NameOrigin::NodeNames: return node.name;
    case NameOrigin::ModulePaths: return node.module_path;
    case NameOrigin::ValueNames:
      // Rules know a node by its output only when it has nothing else.
      return node.name.empty() && node.module_path.empty() ? node.output : std::string_view();
    case NameOrigin::None: break;
  }
  return {};
}

}  // namespace

Suggestions suggest_patterns(std::span<const NodeNames> nodes) {
  Suggestions best;
  best.unnamed_count = nodes.size();
  for (const NameOrigin origin :
       {NameOrigin::NodeNames, NameOrigin::ModulePaths, NameOrigin::ValueNames}) {
    std::vector<std::string_view> names;
    names.reserve(nodes.size());
    for (const NodeNames& node : nodes) names.push_back(name_by(node, origin));
    Suggestions found = Suggester(std::move(names)).suggest(origin);
    const bool is_better = best.origin == NameOrigin::None ||
                           layer_nodes(found) > layer_nodes(best) ||
                           (best.groups.empty() && found.unnamed_count < best.unnamed_count);
    const bool has_any = !found.groups.empty() || !found.others.empty();
    if (has_any && is_better) best = std::move(found);
    // Names of nodes are what every option can use.
    if (layer_nodes(best) * 4 >= nodes.size() && !best.groups.empty()) break;
  }
  return best;
}

namespace {

void collect(const Graph& graph, std::deque<ModuleNames>& texts, std::vector<NodeNames>& nodes) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    nodes.push_back(names_of(graph, node, texts.emplace_back()));
    for (const Graph* inner : subgraphs(node)) collect(*inner, texts, nodes);
  }
}

}  // namespace

Suggestions suggest_patterns(const Graph& graph) {
  std::deque<ModuleNames> texts;
  std::vector<NodeNames> nodes;
  collect(graph, texts, nodes);
  return suggest_patterns(nodes);
}

}  // namespace sardonyx
