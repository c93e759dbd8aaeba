#include "placement/suggest.h"
#include "report/json.h"
#include "report/report.h"

namespace sardonyx {

namespace {

const char* origin_name(NameOrigin origin) {
  switch (origin) {
    case NameOrigin::NodeNames: return "node names";
    case NameOrigin::ModulePaths: return "module paths";
    case NameOrigin::ValueNames: return "value names";
    case NameOrigin::None: break;
  }
  return "none";
}

Json pattern_row(const SuggestedPattern& pattern) {
  return {{"pattern", pattern.pattern}, {"node_count", pattern.node_count}};
}

}  // namespace

std::string describe_suggestions(const Model& model) {
  const Suggestions suggestions = suggest_patterns(model.graph);
  Json groups = Json::array();
  for (const SuggestedLayers& group : suggestions.groups) {
    Json layers = Json::array();
    for (const SuggestedPattern& layer : group.layers) layers.push_back(pattern_row(layer));
    groups.push_back(
        {{"range", group.range}, {"node_count", group.node_count}, {"layers", std::move(layers)}});
  }
  Json others = Json::array();
  for (const SuggestedPattern& other : suggestions.others) others.push_back(pattern_row(other));
  return to_text({{"format", 1},
                  {"from", origin_name(suggestions.origin)},
                  {"groups", std::move(groups)},
                  {"others", std::move(others)},
                  {"unnamed_nodes", suggestions.unnamed_count}});
}

}  // namespace sardonyx
