#include "placement/suggest.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "placement/node_names.h"
#include "placement/rule_matcher.h"

using namespace sardonyx;

namespace {

Node node_with(std::string key, std::string value) {
  Node node;
  node.name = "node_Conv_126";
  node.metadata.emplace_back(std::move(key), std::move(value));
  return node;
}

std::vector<NodeNames> named(const std::vector<std::string>& names) {
  std::vector<NodeNames> nodes(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) nodes[i].name = names[i];
  return nodes;
}
/// The nodes look at the names.
std::vector<NodeNames> named(std::vector<std::string>&&) = delete;

/// Checks that each pattern takes as many nodes as it says, when all of them are rules.
void check_counts(const Suggestions& suggestions, const std::vector<NodeNames>& nodes) {
  std::vector<SuggestedPattern> all = suggestions.others;
  for (const SuggestedLayers& group : suggestions.groups) {
    all.insert(all.end(), group.layers.begin(), group.layers.end());
  }
  std::string option = "cpu(";
  for (const SuggestedPattern& one : all) option += one.pattern + ",";
  auto rules = parse_rules({option + ")", "", ""});
  REQUIRE_MESSAGE(rules.ok(), rules.status().to_string());
  DeviceDescription cpu;
  cpu.type = DeviceType::Cpu;
  auto matcher = RuleMatcher::create(std::move(rules).value(), {{"CPUExecutionProvider", {cpu}}});
  REQUIRE(matcher.ok());
  for (const NodeNames& node : nodes) matcher->match(node);
  const auto outcomes = matcher->outcomes();
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(all[i].pattern);
    CHECK(outcomes[i].taken == all[i].node_count);
    taken += outcomes[i].taken;
  }
  CHECK(taken + suggestions.unnamed_count == nodes.size());
}

}  // namespace

TEST_CASE("layers of a model are suggested with their separators and as a range") {
  std::vector<std::string> names = {"/model/embed_tokens/Gather",
                                    "/model/norm/Mul",
                                    "/lm_head/MatMul",
                                    "Identity_648",
                                    "/Unsqueeze_3",
                                    "/Unsqueeze_4"};
  for (int i = 0; i < 12; ++i) {
    for (const char* part : {"/self_attn/MatMul", "/self_attn/MatMul_1", "/mlp/Mul"}) {
      names.push_back("/model/layers." + std::to_string(i) + part);
    }
  }
  const auto nodes = named(names);
  const Suggestions found = suggest_patterns(nodes);
  CHECK(found.origin == NameOrigin::NodeNames);
  REQUIRE(found.groups.size() == 1);
  CHECK(found.groups[0].range == "/model/layers.[0-11]/");
  CHECK(found.groups[0].node_count == 36);
  REQUIRE(found.groups[0].layers.size() == 12);
  CHECK(found.groups[0].layers[2].pattern == "/model/layers.2/");
  CHECK(found.groups[0].layers[10].pattern == "/model/layers.10/");
  CHECK(found.groups[0].layers[10].node_count == 3);
  REQUIRE(found.others.size() == 3);
  CHECK(found.others[0].pattern == "/lm_head/");
  CHECK(found.others[1].pattern == "/model/embed_tokens/");
  CHECK(found.unnamed_count == 3);
  check_counts(found, nodes);
  CHECK(parse_rules({"cpu(" + found.groups[0].range + ")", "", ""})->rules[0].expansion.size() ==
        12);
}

TEST_CASE("several groups of layers, gaps and other separators") {
  std::vector<std::string> names;
  for (const int i : {0, 1, 2, 5, 7, 8}) {
    names.push_back("encoder_layer_" + std::to_string(i) + "_attention/MatMul");
    names.push_back("encoder_layer_" + std::to_string(i) + "_mlp/MatMul");
  }
  for (int i = 0; i < 2; ++i) names.push_back("decoder.blocks." + std::to_string(i) + ".Mul");
  const auto nodes = named(names);
  const Suggestions found = suggest_patterns(nodes);
  REQUIRE(found.groups.size() == 2);
  CHECK(found.groups[0].range == "encoder_layer_[0-2,5,7-8]_");
  CHECK(found.groups[1].range == "decoder.blocks.[0-1].");
  check_counts(found, nodes);
}

TEST_CASE("numbers that tell nodes of one kind apart are no layers") {
  const std::vector<std::string> names = {"/Add_1_output", "/Add_2_output", "/Mul_3", "MatMul_4"};
  const auto nodes = named(names);
  CHECK(suggest_patterns(nodes).groups.empty());
  CHECK(suggest_patterns(nodes).unnamed_count == 4);
  CHECK(suggest_patterns(std::vector<NodeNames>{}).origin == NameOrigin::None);
}

TEST_CASE("modules are suggested when names carry no layers, values when there is nothing else") {
  const std::vector<std::string> names = {"node_Conv_1", "node_Conv_2", "node_Add_3"};
  std::vector<NodeNames> nodes = named(names);
  nodes[0].module_path = "/layer1/layer1.0/conv2d";
  nodes[1].module_path = "/layer2/layer2.0/conv2d_1";
  nodes[2].module_path = "/fc/linear";
  const Suggestions modules = suggest_patterns(nodes);
  CHECK(modules.origin == NameOrigin::ModulePaths);
  REQUIRE(modules.groups.size() == 1);
  CHECK(modules.groups[0].range == "/layer[1-2]/");
  check_counts(modules, nodes);
  std::vector<NodeNames> nameless(4);
  nameless[0].output = "h.0.a";
  nameless[1].output = "h.0.b";
  nameless[2].output = "h.1.a";
  nameless[3].output = "out";
  const Suggestions values = suggest_patterns(nameless);
  CHECK(values.origin == NameOrigin::ValueNames);
  REQUIRE(values.groups.size() == 1);
  CHECK(values.groups[0].range == "h.[0-1].");
  check_counts(values, nameless);
}

TEST_CASE("names that no option can write are left out") {
  const std::vector<std::string> names = {"f(0.a", "f(1.a", "f(2.a"};
  const auto nodes = named(names);
  const Suggestions found = suggest_patterns(nodes);
  CHECK(found.groups.empty());
  CHECK(found.unnamed_count == 3);
}

TEST_CASE("long and many names are bounded") {
  std::string huge(1U << 20, '1');
  for (std::size_t i = 0; i < huge.size(); i += 2) huge[i] = 'a';
  std::vector<std::string> names(64, huge);
  for (int i = 0; i < 50000; ++i) names.push_back("x" + std::to_string(i) + "/y");
  const auto nodes = named(names);
  const Suggestions found = suggest_patterns(nodes);
  CHECK(found.groups[0].layers.size() == 50000);
  CHECK(found.unnamed_count == 64);
}

TEST_CASE("the module of a node is read from what PyTorch's exporter wrote") {
  const Node scopes = node_with("pkg.torch.onnx.name_scopes",
                                "['', 'layer1', 'layer1.0', 'layer1.0.conv1', 'conv2d_3']");
  CHECK(module_names(scopes).path == "/layer1/layer1.0/conv1/conv2d_3");
  CHECK(module_names(scopes).name == "layer1.0.conv1");
  const Node lists =
      node_with("pkg.torch.onnx.name_scopes",
                "['', 'model', 'model.layers.3', \"model.layers.3.self_attn\", 'linear']");
  CHECK(module_names(lists).path == "/model/layers.3/self_attn/linear");
  CHECK(module_names(lists).name == "model.layers.3.self_attn");
  const Node spaces =
      node_with("namespace",
                ": torchvision.models.resnet.ResNet/layer1: torch.nn.Sequential/layer1.0: "
                "Bottleneck/conv2d_3: aten.conv2d.default");
  CHECK(module_names(spaces).path == "/layer1/layer1.0/conv2d_3");
  CHECK(module_names(spaces).name == "layer1.0");
}

TEST_CASE("metadata of another form names no module") {
  for (const char* text : {"", "[", "[]", "['", "['a", "nonsense", "['a\\", "[\"a']"}) {
    CAPTURE(text);
    CHECK(module_names(node_with("pkg.torch.onnx.name_scopes", text)).path.empty());
  }
  CHECK(module_names(node_with("namespace", "no colon/here")).path.empty());
  CHECK(module_names(node_with("namespace", std::string(1U << 20, ':'))).path.empty());
  std::string deep = "[";
  for (int i = 0; i < 5000; ++i) deep += "'a', ";
  CHECK(module_names(node_with("pkg.torch.onnx.name_scopes", deep + "'b']")).path.empty());
}
