// Texts that steer placement: rules, designators, budgets, statistics, plans. Whatever they are,
// the answer is a value or an error with words.
//
// The first byte says what the rest is. Lines after an empty one are names of nodes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "placement/budget.h"
#include "placement/plan_file.h"
#include "placement/rule_matcher.h"
#include "placement/statistics.h"
#include "placement/suggest.h"

namespace {

using namespace sardonyx;

DeviceDescription device(DeviceType type, std::uint32_t ordinal) {
  DeviceDescription made;
  made.type = type;
  made.vendor = "NVIDIA Corporation";
  made.ordinal = ordinal;
  return made;
}

std::vector<ProviderDevices> devices() {
  return {{"VirtualGpu", {device(DeviceType::Gpu, 0)}},
          {"VirtualGpu", {device(DeviceType::Gpu, 1)}},
          {"CPUExecutionProvider", {device(DeviceType::Cpu, 0)}}};
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// Whether what an answer says can be believed: an error has words, a rule is read again as it was
/// written.
bool check_rules(const RuleOptions& options, std::string_view names) {
  auto rules = parse_rules(options);
  if (!rules.ok()) return !rules.status().message().empty();
  for (const Rule& rule : rules->rules) {
    if (rule.source != RuleSource::Placement) continue;
    const auto again = parse_rules({rule.to_string(), "", ""});
    if (!again.ok() || again->rules.size() != 1) return false;
    if (again->rules[0].pattern != rule.pattern || again->rules[0].expansion != rule.expansion) {
      return false;
    }
  }
  auto matcher = RuleMatcher::create(std::move(rules).value(), devices());
  if (!matcher.ok()) return !matcher.status().message().empty();
  const std::vector<std::string_view> lines = lines_of(names);
  std::uint32_t inherited = kNoRule;
  std::vector<NodeNames> nodes;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    NodeNames node;
    node.name = lines[i];
    node.annotation = i % 3 == 0 ? lines[lines.size() - 1 - i] : std::string_view();
    if (i % 4 == 0)
      node.originals.assign(
          lines.begin(), lines.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(i, 8)));
    const NodeMatch match = matcher->match(node, inherited);
    inherited = match.inherited;
    if (match.rule != kNoRule && !match.provider) return false;
    nodes.push_back(std::move(node));
  }
  const auto findings = matcher->findings([&](RuleMatcher::NameVisitor visit) {
    for (const std::string_view line : lines) visit(line);
  });
  suggest_patterns(nodes);
  const Status status = RuleMatcher::strict_status(findings);
  return status.ok() || !status.message().empty();
}

/// Suggested ranges are rules.
bool check_suggestions(std::string_view names) {
  std::vector<NodeNames> nodes;
  for (const std::string_view line : lines_of(names)) nodes.emplace_back().name = line;
  for (const SuggestedLayers& group : suggest_patterns(nodes).groups) {
    if (!parse_rules({"cpu(" + group.range + ")", "", ""}).ok()) return false;
  }
  return true;
}

bool check_metadata(std::string_view text) {
  Node node;
  node.metadata.emplace_back("pkg.torch.onnx.name_scopes", text);
  module_names(node);
  node.metadata[0].first = "namespace";
  module_names(node);
  return true;
}

template <typename T>
bool has_words(const Result<T>& result) {
  return result.ok() || !result.status().message().empty();
}

bool check_designator(std::string_view text) {
  for (const DesignatorMode mode : {DesignatorMode::Compatible, DesignatorMode::Extended}) {
    const DesignatorMatch match = resolve_designator(text, devices(), mode);
    if (match.provider.has_value() != match.why_not.empty()) return false;
  }
  return true;
}

bool check_plan(std::string_view text, std::string_view names) {
  const auto plan = read_plan(text);
  if (!plan.ok()) return has_words(plan);
  Rules rules;
  rules.rules = plan->rules;
  auto matcher = RuleMatcher::create(std::move(rules), devices());
  if (!matcher.ok()) return has_words(matcher);
  Graph graph;
  for (const std::string_view line : lines_of(names)) {
    Node node;
    node.op_type = "Op";
    node.name = line;
    graph.add_node(std::move(node));
  }
  plan_findings(*plan, graph, match_graph(*matcher, graph));
  findings_of(*matcher, graph);
  return true;
}

bool check(std::uint8_t kind, std::string_view text, std::string_view names) {
  // '0' to '9' are 0 to 9.
  switch (kind % 16) {
    case 1: return check_rules({"", text, ""}, names);
    case 2: return check_rules({"", "", text}, names);
    case 3: return check_suggestions(names) && check_metadata(text);
    case 4: return has_words(parse_budget(text));
    case 5: return has_words(parse_cuda_budget(text)) && has_words(parse_bytes(text));
    case 6: return has_words(NodeStatistics::parse(text, "fuzz"));
    case 7: return check_designator(text);
    case 8: return check_plan(text, names);
    default: return check_rules({text, "", ""}, names);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t gap = all.find("\n\n");
  const std::string_view text = all.substr(0, gap);
  const std::string_view names = gap == std::string_view::npos ? all : all.substr(gap + 2);
  if (!check(data[0], text, names)) __builtin_trap();
  return 0;
}
