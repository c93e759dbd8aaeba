#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "placement/rule_matcher.h"
#include "report/plan_layers.h"
#include "report/plan_memory.h"
#include "report/plan_options.h"
#include "report/report.h"

using namespace sardonyx;

namespace {

using Json = nlohmann::json;

PlacedDevice gpu(std::uint32_t ordinal) {
  PlacedDevice device;
  device.provider = "FakeExecutionProvider";
  device.devices = {{DeviceType::Gpu, "", 0, ordinal, 0}};
  return device;
}

PlacedDevice cpu() {
  PlacedDevice device;
  device.provider = "CPUExecutionProvider";
  device.devices = {{DeviceType::Cpu, "", 0, std::nullopt, 0}};
  return device;
}

void add(Placement& placement, const std::string& name, std::uint32_t device) {
  PlacedNode node;
  node.name = name;
  node.op_type = "Relu";
  node.device = device;
  node.weight_bytes = 10;
  placement.nodes.push_back(std::move(node));
  ++placement.devices[device].node_count;
}

/// Layers 0 to 11 of three nodes: the first half on gpu:0, the others on gpu:1; a head on the CPU.
Placement layered() {
  Placement placement;
  placement.devices = {gpu(0), gpu(1), cpu()};
  for (int layer = 0; layer < 12; ++layer) {
    for (const char* op : {"MatMul", "Add", "Relu"}) {
      add(placement, "/model/layers." + std::to_string(layer) + "/" + op, layer < 6 ? 0 : 1);
    }
  }
  add(placement, "/lm_head/MatMul", 2);
  return placement;
}

PlanView view_of(const Placement& placement) {
  static const PlacementDetails kNone;
  return {placement, kNone};
}

/// How many nodes the option puts elsewhere.
std::size_t wrong_count(const Placement& placement, const std::string& option) {
  auto rules = parse_rules({option, "", ""});
  REQUIRE_MESSAGE(rules.ok(), option);
  std::vector<ProviderDevices> devices;
  for (const PlacedDevice& device : placement.devices) {
    devices.push_back({device.provider, device.devices});
  }
  auto matcher = RuleMatcher::create(*std::move(rules), devices);
  REQUIRE(matcher.ok());
  std::size_t count = 0;
  for (std::size_t i = 0; i < placement.nodes.size(); ++i) {
    const auto provider = matcher->match(view_of(placement).names(i)).provider;
    if (provider != placement.nodes[i].device) ++count;
  }
  return count;
}

}  // namespace

TEST_CASE("layers are found by the names of nodes, with what each has where") {
  Placement placement = layered();
  placement.nodes[1].device = 2;
  const PlanLayers layers = find_layers(view_of(placement));
  REQUIRE(layers.layers.size() == 13);
  CHECK(layers.layers[0].pattern == "/model/layers.0/");
  CHECK(layers.layers[0].node_count == 3);
  CHECK(layers.layers[0].weight_bytes == 30);
  CHECK(layers.layers[0].nodes_by_device == std::vector<std::uint64_t>{2, 0, 1});
  CHECK(layers.layers[0].only_device() == -1);
  CHECK(layers.layers[11].only_device() == 1);
  CHECK(layers.layers[12].pattern == "/lm_head/");
  CHECK(layers.layer_of[3 * 11 + 2] == 11);
}

TEST_CASE("whole layers become ranges, and the device with the most nodes takes the rest") {
  Placement placement = layered();
  add(placement, "/model/layers.0/Mul", 0);
  const PlanOption option = placement_option(view_of(placement), find_layers(view_of(placement)));
  CHECK(option.text == "gpu:1(/model/layers.[6-11]/); cpu(/lm_head/); gpu:0(*)");
  CHECK(option.lost_count == 0);
  CHECK(wrong_count(placement, option.text) == 0);
}

TEST_CASE("any placement is reproduced by its option") {
  const std::vector<std::string> names = {"/model/layers.0/a", "/model/layers.0/b",
                                          "/model/layers.1/a", "/model/layers.10/a",
                                          "layers.1/x",        "with (parentheses)",
                                          "with \"quotes\"",   "a;b",
                                          "range [0-3]",       "=~@*",
                                          "back\\slash",       "plain",
                                          "/model/layers.1/",  "x/model/layers.0/y",
                                          " blanks "};
  for (std::uint32_t seed = 1; seed <= 60; ++seed) {
    Placement placement;
    placement.devices = {gpu(0), gpu(1), cpu()};
    std::uint32_t state = seed * 2654435761U;
    for (const std::string& name : names) {
      state = state * 1664525U + 1013904223U;
      add(placement, name, (state >> 16) % 3);
    }
    const PlanOption option = placement_option(view_of(placement), find_layers(view_of(placement)));
    CAPTURE(option.text);
    CHECK(option.lost_count == 0);
    CHECK(wrong_count(placement, option.text) == 0);
  }
}

TEST_CASE("nodes of one name on two devices are counted as lost") {
  Placement placement;
  placement.devices = {gpu(0), cpu()};
  add(placement, "same", 0);
  add(placement, "same", 1);
  CHECK(placement_option(view_of(placement), find_layers(view_of(placement))).lost_count == 1);
}

TEST_CASE("memory over time is the sum of what lives on each device") {
  Placement placement;
  placement.devices = {gpu(0), cpu()};
  for (const char* name : {"a", "b", "c", "d"}) add(placement, name, 0);
  PlacementDetails details;
  details.lives = {{0, 0, 2, 100}, {0, 1, 1, 50}, {1, 2, 3, 7}, {1, 3, 3, 0}};
  const PlanMemory memory = memory_over_time(placement, details, 600);
  CHECK(memory.step == 1);
  CHECK(memory.devices[0].points == std::vector<double>{100, 150, 100, 0});
  CHECK(memory.devices[0].peak_bytes == 150);
  CHECK(memory.devices[0].peak_node == 1);
  CHECK(memory.devices[1].points == std::vector<double>{0, 0, 7, 7});
  CHECK(memory.devices[1].unsized_count == 1);
  CHECK(memory_over_time(placement, details, 2).devices[0].points == std::vector<double>{150, 100});
}

TEST_CASE("the JSON of a placement has the documented fields") {
  const Json json = Json::parse(describe_placement(layered()));
  const auto keys = [](const Json& row) {
    std::string text;
    for (const auto& [key, value] : row.items()) text += key + " ";
    return text;
  };
  CHECK(keys(json) ==
        "copies devices format layers memory nodes options rules shared_weights "
        "unreproduced_nodes warnings ");
  CHECK(keys(json["devices"][0]) ==
        "activation_peak_bytes activation_peak_node devices estimated_bytes limit_bytes name "
        "need_bytes node_count provider unsized_values weight_bytes ");
  CHECK(keys(json["layers"][0]) == "devices node_count output_bytes pattern weight_bytes ");
  CHECK(keys(json["nodes"][0]) ==
        "device device_index domain layer name op_type output_bytes part reason rule "
        "weight_bytes why_not ");
  CHECK(json["format"] == 1);
  CHECK(json["options"]["sardonyx.placement"].is_string());
}

TEST_CASE("names cannot leave the data of the page") {
  Placement placement = layered();
  placement.nodes[0].name = "</script><script>alert(1)</script>\"'&\xff";
  const auto page = plan_to_html(describe_placement(placement));
  REQUIRE(page.ok());
  CHECK(page->find("alert(1)</script>") == std::string::npos);
  CHECK(page->find("\\u003c/script\\u003e\\u003cscript\\u003ealert(1)") != std::string::npos);
  CHECK(page->find("/*PLAN*/") == std::string::npos);
  CHECK(page->find("http-equiv=\"Content-Security-Policy\"") != std::string::npos);
  CHECK_FALSE(plan_to_html("{}").ok());
  CHECK_FALSE(plan_to_html("nothing").ok());
}
