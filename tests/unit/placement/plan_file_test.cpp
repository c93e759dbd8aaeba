#include "placement/plan_file.h"

#include <string>

#include "base/text.h"
#include "unit/small_graph.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;

namespace {

ProviderDevices gpu(std::uint32_t ordinal) {
  return {"FakeExecutionProvider", {{DeviceType::Gpu, "", 0, ordinal, 0}}};
}

/// x -> "first" Relu -> "second" Neg.
Graph two_nodes() {
  SmallGraph small;
  const ValueId relu = small.node("Relu", {small.input("x", {2})});
  const ValueId neg = small.node("Neg", {relu});
  small.graph.node(small.graph.value(relu).producer).name = "first";
  small.graph.node(small.graph.value(neg).producer).name = "second";
  small.output(neg);
  return std::move(small.infer().graph);
}

struct Outcome {
  std::vector<NodeMatch> matches;
  std::vector<Finding> findings;
};

Outcome match_plan(const std::string& json, const Graph& graph) {
  auto plan = read_plan(json);
  REQUIRE_MESSAGE(plan.ok(), plan.status().to_string());
  auto matcher = RuleMatcher::create({plan->rules, {}}, {gpu(0), gpu(1)});
  REQUIRE(matcher.ok());
  Outcome outcome;
  outcome.matches = match_graph(*matcher, graph);
  outcome.findings = findings_of(*matcher, graph);
  for (Finding& more : plan_findings(*plan, graph, outcome.matches)) {
    outcome.findings.push_back(std::move(more));
  }
  return outcome;
}

std::string error_of(const std::string& json) {
  const auto plan = read_plan(json);
  return plan.ok() ? "" : plan.status().to_string();
}

}  // namespace

TEST_CASE("nodes go where a plan says, by their exact names") {
  const Graph graph = two_nodes();
  const Outcome outcome =
      match_plan(R"({"format": 1, "nodes": [{"name": "first", "device": "gpu:1"},
                                    {"name": "second", "device": "gpu:0", "more": [1, {}]}]})",
                 graph);
  CHECK(outcome.matches[0].provider == 1U);
  CHECK(outcome.matches[1].provider == 0U);
  CHECK(outcome.findings.empty());
}

TEST_CASE("patterns of a plan are those of rules, and names go before them") {
  const Graph graph = two_nodes();
  const Outcome outcome = match_plan(R"({"format": 1, "nodes": [{"pattern": "*", "device": "gpu:0"},
                                    {"name": "second", "device": "gpu:1"}]})",
                                     graph);
  CHECK(outcome.matches[0].provider == 0U);
  CHECK(outcome.matches[1].provider == 1U);
  CHECK(outcome.findings.empty());
}

TEST_CASE("names that the model lacks and nodes that the plan lacks are told") {
  const Graph graph = two_nodes();
  const std::string nodes = R"("nodes": [{"name": "frist", "device": "gpu:0"}]})";
  const Outcome loose = match_plan(R"({"format": 1, )" + nodes, graph);
  REQUIRE(loose.findings.size() == 2);
  CHECK(loose.findings[0].text.find("1 of 1 names are in no node") != std::string::npos);
  CHECK(loose.findings[0].text.find("'frist'") != std::string::npos);
  CHECK(loose.findings[1].text.find("does not name 2 of 2 nodes: node 'first' (Relu)") !=
        std::string::npos);
  CHECK(RuleMatcher::strict_status(loose.findings).ok());
  const Outcome strict = match_plan(R"({"format": 1, "strict": true, )" + nodes, graph);
  CHECK(RuleMatcher::strict_status(strict.findings).code() == Code::InvalidArgument);
}

TEST_CASE("a device of a plan that is not there is told once, whatever the number of its nodes") {
  const Graph graph = two_nodes();
  const Outcome outcome = match_plan(R"({"format": 1, "nodes": [{"name": "first", "device": "npu"},
                                    {"name": "second", "device": "npu"}]})",
                                     graph);
  REQUIRE(outcome.findings.size() == 1);
  CHECK(outcome.findings[0].kind == FindingKind::NoDevice);
  CHECK(outcome.findings[0].text.find("sardonyx.placement_file: rule 'npu(nodes of the plan)'") ==
        0);
}

TEST_CASE("what is no plan is an error that says where") {
  CHECK(error_of("").find("not JSON") != std::string::npos);
  CHECK(error_of("[]").find("should be an object, found array") != std::string::npos);
  CHECK(error_of("{}").find("\"format\": 1, found none") != std::string::npos);
  CHECK(error_of(R"({"format": 2, "nodes": []})").find("found 2") != std::string::npos);
  CHECK(error_of(R"({"format": 1})").find("a list \"nodes\"") != std::string::npos);
  CHECK(error_of(R"({"format": 1, "strict": 1, "nodes": []})").find("true or false") !=
        std::string::npos);
  const auto nodes = [](const std::string& rows) {
    return error_of(R"({"format": 1, "nodes": [)" + rows + "]}");
  };
  CHECK(nodes("7").find("found 7") != std::string::npos);
  CHECK(nodes(R"({"name": "a"})").find("\"device\" should have 1 to 1024 bytes") !=
        std::string::npos);
  CHECK(nodes(R"({"device": "cpu"})").find("expected one of") != std::string::npos);
  CHECK(nodes(R"({"name": 1, "device": "cpu"})").find("\"name\" should be a text, found 1") !=
        std::string::npos);
  const std::string twice =
      nodes(R"({"name": "a", "device": "cpu"}, {"name": "a", "device": "x"})");
  CHECK(twice.find("'a' is on 'cpu' already") != std::string::npos);
  CHECK(twice.find("entry 1") != std::string::npos);
  CHECK(nodes(R"({"pattern": "a); gpu(b", "device": "cpu"})").find("is not one pattern") !=
        std::string::npos);
  CHECK(nodes(R"({"pattern": "a[", "device": "cpu"})").find("range") != std::string::npos);
}

TEST_CASE("hostile plans end in errors") {
  CHECK_FALSE(read_plan(std::string(1 << 20, '[')).ok());
  CHECK_FALSE(read_plan("{\"format\": 1, \"nodes\": " + std::string(100000, '[') + "}").ok());
  CHECK_FALSE(read_plan(std::string(kPlanBytesMax + 1, ' ')).ok());
  CHECK_FALSE(load_plan("/dev/null").ok());
  std::string many = R"({"format": 1, "nodes": [)";
  for (int i = 0; i <= 300; ++i) {
    many += fmt::format(R"({{"name": "n{}", "device": "d{}"}},)", i, i);
  }
  many.back() = ']';
  CHECK(error_of(many + "}").find("more than 256 devices") != std::string::npos);
}
