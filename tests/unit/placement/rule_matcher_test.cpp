#include "placement/rule_matcher.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <random>
#include <string>
#include <vector>

using namespace sardonyx;

namespace {

DeviceDescription device(DeviceType type, std::optional<std::uint32_t> ordinal = {}) {
  DeviceDescription made;
  made.type = type;
  made.ordinal = ordinal;
  return made;
}

/// Two virtual GPUs and the CPU: providers 0, 1 and 2.
std::vector<ProviderDevices> devices() {
  return {{"VirtualGpu", {device(DeviceType::Gpu, 0)}},
          {"VirtualGpu", {device(DeviceType::Gpu, 1)}},
          {"CPUExecutionProvider", {device(DeviceType::Cpu)}}};
}

RuleMatcher matcher(const RuleOptions& options) {
  auto rules = parse_rules(options);
  REQUIRE_MESSAGE(rules.ok(), rules.status().to_string());
  auto made = RuleMatcher::create(std::move(rules).value(), devices());
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  return std::move(made).value();
}
RuleMatcher by_names(std::string_view text) { return matcher({"", text, ""}); }
RuleMatcher by_annotations(std::string_view text) { return matcher({"", "", text}); }
RuleMatcher own(std::string_view text) { return matcher({text, "", ""}); }

NodeNames named(std::string_view name, std::string_view annotation = "") {
  NodeNames names;
  names.name = name;
  names.annotation = annotation;
  return names;
}

/// The index of the rule that takes a node of the name, or -1.
int rule(RuleMatcher&& rules, std::string_view name) {
  return static_cast<int>(rules.match(named(name)).rule);
}
int rule_of_annotation(RuleMatcher&& rules, std::string_view annotation) {
  return static_cast<int>(rules.match(named("", annotation)).rule);
}

std::vector<Finding> findings(const RuleMatcher& rules, std::vector<std::string> names = {}) {
  return rules.findings([&](RuleMatcher::NameVisitor visit) {
    for (const std::string& name : names) visit(name);
  });
}
std::vector<std::string> texts(const std::vector<Finding>& all, FindingKind kind) {
  std::vector<std::string> result;
  for (const Finding& finding : all) {
    if (finding.kind == kind) result.push_back(finding.text);
  }
  return result;
}
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("names: the longest pattern wins, ties go by order, others are free") {
  CHECK(rule(by_names("cpu(layers.1, layers.10)"), "/model/layers.10/x") == 1);
  CHECK(rule(by_names("cpu(layers.10, layers.1)"), "/model/layers.10/x") == 0);
  CHECK(rule(by_names("cpu(layers.1); gpu:0(layers.10)"), "/model/layers.1/x") == 0);
  CHECK(rule(by_names("cpu(ab, bc)"), "abc") == 0);
  CHECK(rule(by_names("cpu(bc, ab)"), "abc") == 0);
  CHECK(rule(by_names("cpu(layers.1)"), "/model/norm/x") == -1);
  CHECK(rule(by_names("cpu(layers.1)"), "") == -1);
  CHECK(rule(by_names("cpu(layers.1)"), "Layers.1") == -1);
  // Text that looks like a range or an expression is text.
  CHECK(rule(by_names("cpu(layers.[0-9]/)"), "layers.1/") == -1);
  CHECK(rule(by_names("cpu(~a)"), "a") == -1);
  CHECK(rule(by_names("cpu(a(b),c)"), "xa(bx") == 0);
}

TEST_CASE("names: the longest pattern keeps its nodes when its device is missing") {
  RuleMatcher rules = by_names("cpu(layers.); npu(layers.1/)");
  const NodeMatch match = rules.match(named("/layers.1/a"));
  CHECK(match.rule == kNoRule);
  CHECK(!match.provider);
  CHECK(match.missed == 1);
  CHECK(rules.match(named("/layers.2/a")).provider == 2U);
  CHECK(rules.outcomes()[1].missed == 1);
}

TEST_CASE("annotations: the first rule whose text begins them wins, then exact ones") {
  CHECK(rule_of_annotation(by_annotations("cpu(Prefix1, Pre)"), "Prefix1Suffix") == 0);
  CHECK(rule_of_annotation(by_annotations("cpu(Prefix1, Pre)"), "PreSuffix") == 1);
  CHECK(rule_of_annotation(by_annotations("cpu(Prefix1, Pre)"), "Other") == -1);
  CHECK(rule_of_annotation(by_annotations("cpu(A, =AB)"), "AB") == 0);
  CHECK(rule_of_annotation(by_annotations("cpu(=AB, A)"), "AB") == 1);
  CHECK(rule_of_annotation(by_annotations("cpu(A, AB)"), "ABC") == 0);
  CHECK(rule_of_annotation(by_annotations("cpu(AB, A)"), "ABC") == 0);
  CHECK(rule_of_annotation(by_annotations("cpu(=A)"), "A") == 0);
  CHECK(rule_of_annotation(by_annotations("cpu(=A)"), "AB") == -1);
  CHECK(rule_of_annotation(by_annotations("cpu(B)"), "AB") == -1);
  // Names do not count.
  CHECK(rule(by_annotations("cpu(layers.1/)"), "/layers.1/") == -1);
}

TEST_CASE("annotations are inherited by the nodes of subgraphs, names are not") {
  RuleMatcher rules = by_annotations("gpu:0(A); cpu(B)");
  const NodeMatch outer = rules.match(named("if", "A"));
  CHECK(outer.inherited == 0);
  CHECK(rules.match(named("inner"), outer.inherited).provider == 0U);
  // An annotation of its own goes before, also one that no rule knows.
  CHECK(rules.match(named("inner", "B"), outer.inherited).provider == 2U);
  CHECK(rules.match(named("inner", "C"), outer.inherited).rule == kNoRule);
  CHECK(rules.match(named("inner", "C"), outer.inherited).inherited == kNoRule);
  // Deeper, and from a node that has none.
  const NodeMatch middle = rules.match(named("if2"), outer.inherited);
  CHECK(middle.inherited == 0);
  CHECK(rules.match(named("deep"), middle.inherited).provider == 0U);
  CHECK(rules.match(named("free")).rule == kNoRule);
  RuleMatcher names = by_names("gpu:0(if)");
  CHECK(names.match(named("if")).inherited == kNoRule);
}

TEST_CASE("annotations without device leave their nodes free") {
  RuleMatcher rules = by_annotations("npu(A); cpu(AB)");
  const NodeMatch match = rules.match(named("if", "ABC"));
  CHECK(match.rule == kNoRule);
  CHECK(match.missed == 0);
  CHECK(rules.match(named("inner"), match.inherited).missed == 0);
}

TEST_CASE("own rules: exact names, expressions, texts, annotations, everything") {
  const char* text = "gpu:0(*, @ann, l.1, ~l\\.1.*x); gpu:1(=/l.1/x, @=ann1)";
  CHECK(rule(own(text), "/l.1/x") == 4);
  CHECK(rule(own(text), "/l.1/yx") == 3);
  CHECK(rule(own(text), "/l.1/y") == 2);
  CHECK(rule(own(text), "/z") == 0);
  RuleMatcher rules = own(text);
  CHECK(rules.match(named("/z", "ann1")).rule == 5);
  CHECK(rules.match(named("/z", "ann2")).rule == 1);
  CHECK(rules.match(named("/l.1/y", "ann1")).rule == 2);
  CHECK(rules.match(named("/l.1/y", "ann1")).inherited == 5);
  CHECK(rules.match(named("/q"), 5).rule == 5);
  // Expressions go by order, texts by length, prefixes of annotations by length.
  CHECK(rule(own("cpu(~a.c, ~abc)"), "abc") == 0);
  CHECK(rule(own("cpu(ab, abc)"), "abc") == 1);
  CHECK(own("cpu(@a, @ab)").match(named("", "abc")).rule == 1);
}

TEST_CASE("own rules: ranges take whole numbers, a text of its own is an exception") {
  const char* text = "gpu:0(layers.[0-7]/); gpu:1(layers.[8-15]/, layers.3/); cpu(end[1-2])";
  CHECK(rule(own(text), "/model/layers.0/x") == 0);
  CHECK(rule(own(text), "/model/layers.12/x") == 1);
  CHECK(rule(own(text), "/model/layers.3/x") == 2);
  CHECK(rule(own(text), "/model/layers.16/x") == -1);
  CHECK(rule(own(text), "/end1") == 3);
  CHECK(rule(own(text), "/end1/") == 3);
  CHECK(rule(own(text), "/end12") == -1);
}

TEST_CASE("own rules: a missing device leaves its nodes to the next shorter pattern") {
  RuleMatcher rules = own("cpu(layers.); npu(layers.1/); gpu:7(layers.1/mlp)");
  const NodeMatch match = rules.match(named("/layers.1/mlp/a"));
  CHECK(match.rule == 0);
  CHECK(match.provider == 2U);
  CHECK(match.missed == 2);
  const auto outcomes = rules.outcomes();
  CHECK(outcomes[0].taken == 1);
  CHECK(outcomes[2].missed == 1);
  CHECK(outcomes[1].was_found);
}

TEST_CASE("own rules go before those of the other options") {
  RuleMatcher rules = matcher({"gpu:0(a)", "cpu(ab, c)", ""});
  CHECK(rules.match(named("ab")).rule == 0);
  CHECK(rules.match(named("c")).rule == 2);
  // It was found all the same.
  CHECK(rules.outcomes()[1].was_found);
  RuleMatcher annotated = matcher({"gpu:0(a)", "", "cpu(b)"});
  CHECK(annotated.match(named("a", "b")).rule == 0);
  CHECK(annotated.match(named("x", "b")).rule == 1);
  CHECK(annotated.match(named("a", "b")).inherited == 1);
}

TEST_CASE("a node is known by its new name, by those that it was made from and by its module") {
  RuleMatcher rules = by_names("gpu:0(layers.1/); gpu:1(layers.1/mlp); cpu(Fusion)");
  NodeNames fused = named("Attention");
  fused.originals = {"/layers.1/q", "/layers.1/mlp/k"};
  CHECK(rules.match(fused).rule == 1);
  CHECK(rules.match(fused).originals_disagree);
  fused.originals = {"/layers.1/q", "/free"};
  CHECK(rules.match(fused).rule == 0);
  CHECK(!rules.match(fused).originals_disagree);
  NodeNames renamed = named("MatMulAddFusion");
  renamed.originals = {"/x", "/y"};
  CHECK(rules.match(renamed).rule == 2);
  NodeNames numbered = named("node_Conv_126");
  numbered.module_path = "/model/layers.1/conv2d_3";
  numbered.module_name = "model.layers.1";
  CHECK(rules.match(numbered).rule == 0);
  const auto told = texts(findings(rules), FindingKind::OriginalsDisagree);
  REQUIRE(told.size() == 1);
  CHECK(told[0] ==
        "placement rules: 2 nodes are made of nodes that belong to different providers, as "
        "'Attention' made of '/layers.1/q', '/layers.1/mlp/k'; the longest pattern decides");
}

TEST_CASE("own rules know a node without name by its output") {
  NodeNames nameless;
  nameless.output = "/layers.1/out";
  CHECK(own("cpu(layers.1/)").match(nameless).rule == 0);
  CHECK(by_names("cpu(layers.1/)").match(nameless).rule == kNoRule);
  nameless.name = "a";
  CHECK(own("cpu(layers.1/)").match(nameless).rule == kNoRule);
}

TEST_CASE("a rule without device is told with the devices that there are") {
  RuleMatcher rules = by_names("cpu(a); gpu:5(b)");
  rules.match(named("a"));
  rules.match(named("b"));
  CHECK(texts(findings(rules), FindingKind::NoDevice) ==
        Texts{"Layering rule 1 (device='gpu:5', annotation='b') could not be mapped to any "
              "available Execution Provider: gpu number 5 is not in the session, but 0, 1; which "
              "device VirtualGpu takes is set by its option 'device_id'"});
  const RuleMatcher npu = own("npu(a)");
  CHECK(texts(findings(npu), FindingKind::NoDevice) ==
        Texts{"sardonyx.placement: rule 'npu(a)' is skipped: no provider of the session is a npu; "
              "there is VirtualGpu (gpu:0), VirtualGpu (gpu:1), CPUExecutionProvider (cpu)"});
}

TEST_CASE("a pattern that matches nothing is told with what comes near") {
  std::vector<std::string> names;
  for (int i = 0; i < 32; ++i) names.push_back("/model/layers." + std::to_string(i) + "/mlp/Mul");
  names.push_back("/lm_head/MatMul");
  const auto told = [&](std::string_view text) {
    RuleMatcher rules = by_names(text);
    for (const std::string& name : names) rules.match(named(name));
    const auto found = texts(findings(rules, names), FindingKind::MatchedNothing);
    return found.empty() ? std::string() : found[0];
  };
  CHECK(told("cpu(layers.99/)") ==
        "session.name_based_layer_assignment: pattern 'layers.99/' of 'cpu' matches no node; in "
        "the model's names the number of 'layers.N/' goes from 0 to 31");
  CHECK(told("cpu(layer.5/)").ends_with("nearest: 'layers.5/'"));
  CHECK(told("cpu(/modle/layers.5/)").ends_with("nearest: '/model/layers.5/'"));
  CHECK(told("cpu(lmhead)").ends_with("nearest: 'lm_head'"));
  CHECK(told("cpu(encoder.block)").ends_with("names are like '/model/layers.0/mlp/Mul'"));
  CHECK(told("cpu(layers.5/)").empty());
  RuleMatcher annotated = by_annotations("cpu(x)");
  CHECK(texts(findings(annotated, names), FindingKind::MatchedNothing)[0].ends_with(
      "matches no node; no node has an annotation (layer_ann)"));
  annotated.match(named("", "a1"));
  CHECK(texts(findings(annotated, names), FindingKind::MatchedNothing)[0].ends_with(
      "matches no node; annotations are 'a1'"));
  CHECK(texts(findings(own("cpu(*)")), FindingKind::MatchedNothing).empty());
}

TEST_CASE("patterns whose nodes others take are told") {
  RuleMatcher rules = by_names("cpu(layers.1); gpu:0(layers.1/)");
  rules.match(named("/layers.1/a"));
  CHECK(texts(findings(rules), FindingKind::TookNothing) ==
        Texts{"session.name_based_layer_assignment: other rules take all nodes that pattern "
              "'layers.1' of 'cpu' matches"});
}

TEST_CASE("a match that goes on with another digit is told once per rule") {
  RuleMatcher rules = by_names("cpu(layers.1); gpu:0(layers.12)");
  for (const char* name : {"/layers.1/a", "/layers.10/a", "/layers.11/b", "/layers.12/c"}) {
    rules.match(named(name));
  }
  CHECK(texts(findings(rules), FindingKind::FollowedByDigit) ==
        Texts{"session.name_based_layer_assignment: pattern 'layers.1' of 'cpu' takes nodes in "
              "which another digit follows (2 of 3, as '/layers.10/a'); end it with the separator "
              "that names have"});
  RuleMatcher own_rules = own("cpu(layers.[0-1])");
  own_rules.match(named("/layers.10/a"));
  CHECK(texts(findings(own_rules), FindingKind::FollowedByDigit).empty());
}

TEST_CASE("strict rules turn what cannot be kept into an error") {
  RuleMatcher rules = own("strict; npu(a); cpu(b)");
  rules.match(named("a"));
  const Status status = RuleMatcher::strict_status(findings(rules));
  REQUIRE(!status.ok());
  CHECK(status.code() == Code::InvalidArgument);
  CHECK(status.message().starts_with("a strict placement rule cannot be kept: "));
  CHECK(status.message().find("(and 1 more)") != std::string::npos);
  RuleMatcher kept = own("cpu!(b); npu(a)");
  kept.match(named("b"));
  CHECK(RuleMatcher::strict_status(findings(kept)).ok());
  RuleMatcher empty = own("cpu!(b)");
  CHECK(!RuleMatcher::strict_status(findings(empty)).ok());
}

TEST_CASE("thousands of findings become a few and a number") {
  std::string text = "npu(";
  for (int i = 0; i < 5000; ++i) text += "x" + std::to_string(i) + "y,";
  const RuleMatcher rules = by_names(text + "z)");
  const auto all = findings(rules, {"/model/a"});
  CHECK(all.size() < 64);
  CHECK(std::any_of(all.begin(), all.end(), [](const Finding& finding) {
    return finding.text == "placement rules: 4985 more like this";
  }));
}

namespace {

/// The rule of the name option for a name, by trying one pattern after the other.
std::uint32_t naive(const std::vector<Rule>& rules, std::string_view name) {
  std::uint32_t best = kNoRule;
  for (std::uint32_t i = 0; i < rules.size(); ++i) {
    if (name.find(rules[i].pattern) == std::string_view::npos) continue;
    if (best == kNoRule || rules[i].pattern.size() > rules[best].pattern.size()) best = i;
  }
  return best;
}

}  // namespace

TEST_CASE("random patterns take the same nodes as by trying one after the other") {
  std::mt19937 random(11);
  const auto text = [&](std::size_t least, std::size_t most) {
    std::string made(least + random() % (most - least + 1), ' ');
    for (char& c : made) c = "ab1./"[random() % 5];
    return made;
  };
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> patterns;
    for (std::size_t i = 0; i < 1 + random() % 8; ++i) patterns.push_back(text(1, 4));
    std::sort(patterns.begin(), patterns.end());
    patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
    std::shuffle(patterns.begin(), patterns.end(), random);
    std::string option;
    for (const std::string& pattern : patterns) {
      option += (random() % 2 == 0 ? "cpu(" : "gpu:1(") + pattern + ");";
    }
    for (const bool is_own : {false, true}) {
      RuleMatcher rules = is_own ? own(option) : by_names(option);
      for (int i = 0; i < 20; ++i) {
        const std::string name = text(0, 12);
        CAPTURE(option);
        CAPTURE(name);
        REQUIRE(rules.match(named(name)).rule == naive(rules.rules().rules, name));
      }
    }
  }
}

TEST_CASE("64 patterns and 40,000 nodes take milliseconds") {
  std::string option = "gpu:0(";
  for (int i = 0; i < 64; ++i) option += "/model/layers." + std::to_string(i) + "/,";
  std::vector<std::string> names;
  for (int i = 0; i < 40000; ++i) {
    names.push_back("/model/layers." + std::to_string(i % 80) + "/self_attn/q_proj/MatMul_" +
                    std::to_string(i));
  }
  for (const bool is_own : {false, true}) {
    double best_ms = 1e9;
    for (int round = 0; round < 5; ++round) {
      RuleMatcher rules = is_own ? own(option + "~layers\\.9\\d/)") : by_names(option + "x)");
      // Of the processor, as other programs may run as well.
      const std::clock_t start = std::clock();
      std::size_t taken = 0;
      for (const std::string& name : names) taken += rules.match(named(name)).rule != kNoRule;
      const double time_ms = 1000.0 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
      best_ms = std::min(best_ms, time_ms);
      CHECK(taken == 32000);
    }
    MESSAGE(std::string(is_own ? "own rules with an expression: " : "names: ") << best_ms << " ms");
  }
}

TEST_CASE("hostile expressions and names are bounded") {
  for (const char* text : {"cpu(~a{1000}{1000})", "cpu(~\"((((a{9}){9}){9}){9})\")", "cpu(~\"(\")",
                           "cpu(~\\8)", "cpu(~a**)"}) {
    CAPTURE(text);
    auto rules = parse_rules({text, "", ""});
    REQUIRE_MESSAGE(rules.ok(), rules.status().to_string());
    const auto made = RuleMatcher::create(std::move(rules).value(), devices());
    REQUIRE(!made.ok());
    CHECK(made.status().code() == Code::InvalidArgument);
    CHECK(made.status().message().starts_with("sardonyx.placement: "));
    CHECK(made.status().message().find("regular expression") != std::string::npos);
  }
  // Exponential for engines that backtrack; more states than fit for those that do not.
  RuleMatcher rules = own("cpu(~\"(a*)*b\", ~\"(x+x+)+y\", ~\"[ab]*a[ab]{200}c\")");
  std::string name(std::size_t{1} << 18, 'a');
  for (std::size_t i = 0; i < name.size(); i += 3) name[i] = 'b';
  CHECK(rules.match(named(name)).rule == 0);
  CHECK(rules.match(named(std::string(100000, 'x'))).rule == kNoRule);
  std::string nested(20000, '(');
  auto deep = parse_rules({"cpu(~\"" + nested.substr(0, 10000) + "\")", "", ""});
  REQUIRE(deep.ok());
  CHECK(!RuleMatcher::create(std::move(deep).value(), devices()).ok());
}

TEST_CASE("a long name of digits takes linear time") {
  RuleMatcher rules = by_names("cpu(" + std::string(100000, '1') + ")");
  CHECK(rules.match(named(std::string(std::size_t{4} << 20, '1'))).rule == 0);
  CHECK(texts(findings(rules), FindingKind::FollowedByDigit).empty());
}

TEST_CASE("patterns that contain each other take linear time") {
  std::string option = "cpu(";
  std::string pattern;
  for (int i = 0; i < 400; ++i) option += (pattern += 'a') + ",";
  RuleMatcher rules = by_names(option + "b)");
  CHECK(rules.match(named(std::string(std::size_t{4} << 20, 'a'))).rule == 399);
  CHECK(rules.outcomes()[0].was_found);
  CHECK(rules.outcomes()[399].was_found);
  CHECK(!rules.outcomes()[400].was_found);
}
