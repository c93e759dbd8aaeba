#include "placement/plan_file.h"

#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/mapped_file.h"
#include "base/text.h"
#include "placement/nearest_names.h"
#include "placement/words.h"

namespace sardonyx {

namespace {

using Json = nlohmann::json;

constexpr int kDepthMax = 8;
constexpr std::size_t kToldMax = 4;
constexpr int kFormat = 1;

class PlanReader {
 public:
  Result<PlanFile> read(const Json& json) {
    if (!json.is_object()) {
      return failure(Code::InvalidArgument, "a plan should be an object, found {}",
                     json.type_name());
    }
    SDX_TRY(read_head(json));
    const auto nodes = json.find("nodes");
    if (nodes == json.end() || !nodes->is_array()) {
      return Status(Code::InvalidArgument,
                    "a plan should have a list \"nodes\" of {\"name\", \"device\"}");
    }
    for (const Json& entry : *nodes) {
      SDX_TRY(read_entry(entry).with(fmt::format("reading entry {} of \"nodes\"", number_)));
      ++number_;
    }
    return std::move(plan_);
  }

 private:
  Status read_head(const Json& json) {
    const auto format = json.find("format");
    if (format == json.end() || *format != kFormat) {
      return failure(Code::InvalidArgument, "a plan should have \"format\": {}, found {}", kFormat,
                     format == json.end() ? "none" : clip(dump(*format)));
    }
    const auto strict = json.find("strict");
    if (strict == json.end()) return {};
    if (!strict->is_boolean()) {
      return failure(Code::InvalidArgument, "\"strict\" should be true or false, found {}",
                     clip(dump(*strict)));
    }
    plan_.is_strict = strict->get<bool>();
    return {};
  }

  static std::string dump(const Json& json) {
    return json.dump(-1, ' ', true, Json::error_handler_t::replace);
  }

  /// "" when it is not there.
  static Result<std::string> text_of(const Json& entry, const char* key) {
    const auto found = entry.find(key);
    if (found == entry.end()) return std::string();
    if (found->is_string()) return found->get<std::string>();
    return failure(Code::InvalidArgument, "\"{}\" should be a text, found {}", key,
                   clip(dump(*found)));
  }

  Status read_entry(const Json& entry) {
    if (!entry.is_object()) {
      return failure(Code::InvalidArgument,
                     "expected {{\"name\", \"device\"}} or {{\"pattern\", \"device\"}}, found {}",
                     clip(dump(entry)));
    }
    SDX_ASSIGN(const std::string device, text_of(entry, "device"));
    SDX_ASSIGN(std::string name, text_of(entry, "name"));
    SDX_ASSIGN(const std::string pattern, text_of(entry, "pattern"));
    if (name.empty()) {
      SDX_ASSIGN(name, text_of(entry, "output"));
    }
    if (device.empty() || device.size() > kDeviceBytesMax) {
      return failure(Code::InvalidArgument, "\"device\" should have 1 to {} bytes, found {}",
                     kDeviceBytesMax, device.size());
    }
    if (name.empty() == pattern.empty()) {
      return Status(Code::InvalidArgument,
                    "expected one of \"name\" (or \"output\") and \"pattern\"");
    }
    return name.empty() ? add_pattern(pattern, device) : add_name(std::move(name), device);
  }

  Status add_name(std::string name, const std::string& device) {
    const auto [former, is_new] = device_of_.emplace(name, device);
    if (!is_new) {
      if (former->second == device) return {};
      return failure(Code::InvalidArgument, "'{}' is on '{}' already, and cannot be on '{}', too",
                     clip(name), clip(former->second), clip(device));
    }
    const auto [place, is_first] = rule_of_.try_emplace(device, plan_.rules.size());
    if (is_first) {
      if (rule_of_.size() > kPlanDevicesMax) {
        return failure(Code::InvalidArgument, "more than {} devices", kPlanDevicesMax);
      }
      Rule rule;
      rule.kind = PatternKind::ExactName;
      rule.pattern = Rule::kPlannedNames;
      rule.device = device;
      add(std::move(rule));
    }
    plan_.rules[place->second].expansion.push_back(name);
    plan_.names.push_back(std::move(name));
    return {};
  }

  Status add_pattern(const std::string& pattern, const std::string& device) {
    if (pattern_count_++ == kRuleCountMax) {
      return failure(Code::InvalidArgument, "more than {} patterns", kRuleCountMax);
    }
    const std::string text = fmt::format("{}({})", device, pattern);
    SDX_ASSIGN(Rules rules, parse_rules({text, "", ""}));
    if (rules.rules.size() != 1 || rules.rules.front().is_strict) {
      return failure(Code::InvalidArgument, "'{}' is not one pattern", clip(pattern));
    }
    if (rules.rules.front().kind == PatternKind::ExactName) {
      return failure(Code::InvalidArgument, "use \"name\" instead of the pattern '{}'",
                     clip(pattern));
    }
    expanded_ += rules.rules.front().expansion.size();
    if (expanded_ > kRuleCountMax) {
      return failure(Code::InvalidArgument, "the patterns stand for more than {} texts",
                     kRuleCountMax);
    }
    add(std::move(rules.rules.front()));
    return {};
  }

  void add(Rule rule) {
    rule.is_planned = true;
    rule.is_strict = plan_.is_strict;
    plan_.rules.push_back(std::move(rule));
  }

  PlanFile plan_;
  std::size_t number_ = 0;
  std::size_t pattern_count_ = 0;
  std::size_t expanded_ = 0;
  std::unordered_map<std::string, std::string> device_of_;
  std::map<std::string, std::size_t> rule_of_;
};

/// Calls back with all that exact names are compared with, and once for every node.
template <typename Visit>
void visit_names(const Graph& graph, const Visit& visit) {
  ModuleNames modules;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    const NodeNames names = names_of(graph, node, modules);
    for (const std::string_view name : {names.name, names.module_path, names.module_name}) {
      if (!name.empty()) visit(name);
    }
    if (names.name.empty() && names.module_path.empty()) visit(names.output);
    for (const Graph* inner : subgraphs(node)) visit_names(*inner, visit);
  }
}

/// "'a', 'b' and 7 more".
std::string list(const std::vector<std::string>& told, std::size_t count) {
  const std::string more =
      count > told.size() ? fmt::format(" and {} more", count - told.size()) : "";
  return join(told, ", ") + more;
}

}  // namespace

Result<PlanFile> read_plan(std::string_view json) {
  if (json.size() > kPlanBytesMax) {
    return failure(Code::InvalidArgument, "a plan of {} bytes; at most {} are read", json.size(),
                   kPlanBytesMax);
  }
  const auto is_shallow = [](int depth, Json::parse_event_t, Json&) { return depth <= kDepthMax; };
  const Json parsed = Json::parse(json, is_shallow, false);
  if (parsed.is_discarded()) return Status(Code::InvalidArgument, "the plan is not JSON");
  return PlanReader().read(parsed);
}

Result<PlanFile> load_plan(const std::string& path) {
  SDX_ASSIGN(const auto file, MappedFile::open(path));
  const auto bytes = file->bytes();
  auto plan = read_plan({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (plan.ok()) return plan;
  return std::move(plan).take_status().with(fmt::format("reading the plan '{}'", path));
}

std::vector<Finding> plan_findings(const PlanFile& plan, const Graph& graph,
                                   const std::vector<NodeMatch>& matches) {
  std::vector<Finding> found;
  const auto add = [&](std::string text) {
    found.push_back({FindingKind::MatchedNothing, kNoRule, plan.is_strict, std::move(text)});
  };
  std::unordered_set<std::string_view> missing(plan.names.begin(), plan.names.end());
  visit_names(graph, [&](std::string_view name) { missing.erase(name); });
  if (!missing.empty()) {
    std::vector<std::string> told;
    for (const std::string& name : plan.names) {
      if (told.size() < kToldMax && missing.contains(name)) told.push_back(name);
    }
    NearestNames near(told);
    visit_names(graph, [&](std::string_view name) { near.add(name); });
    const std::string hint = near.hint(0);
    for (std::string& name : told) name = fmt::format("'{}'", clip(name));
    add(fmt::format("{}: {} of {} names are in no node that the model has to run: {}{}",
                    kPlanOption, missing.size(), plan.names.size(), list(told, missing.size()),
                    hint.empty() ? "" : fmt::format(" ({} to the first)", hint)));
  }
  std::vector<std::string> free;
  std::size_t free_count = 0;
  std::size_t node_count = 0;
  for (NodeId id = 0; id < matches.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    ++node_count;
    if (matches[id].rule != kNoRule || matches[id].missed != kNoRule) continue;
    if (free_count++ < kToldMax) free.push_back(node.describe(graph));
  }
  if (free_count != 0) {
    add(fmt::format("{}: the plan does not name {} of {} nodes: {}", kPlanOption, free_count,
                    node_count, list(free, free_count)));
  }
  return found;
}

}  // namespace sardonyx
