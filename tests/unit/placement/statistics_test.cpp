#include "placement/statistics.h"

#include <limits>
#include <random>

#include "../small_graph.h"
#include "../temporary_folder.h"

using namespace sardonyx;

namespace {

constexpr std::string_view kHeader =
    "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n";

/// A node without types, by the names of its values; "" leaves one out.
NodeId add_node(Graph& graph, const std::string& name, const std::string& op,
                const std::vector<std::string>& inputs, const std::vector<std::string>& outputs) {
  Node node;
  node.name = name;
  node.op_type = op;
  node.opset = 18;
  const auto values = [&](const std::vector<std::string>& names) {
    std::vector<ValueId> ids;
    for (const std::string& each : names) {
      ids.push_back(each.empty() ? kNoValue : graph.add_value(each));
    }
    return ids;
  };
  node.inputs = values(inputs);
  node.outputs = values(outputs);
  return graph.add_node(std::move(node));
}

std::string key_of(const std::string& name, const std::string& op,
                   const std::vector<std::string>& inputs,
                   const std::vector<std::string>& outputs) {
  Graph graph;
  return statistics_key(graph, graph.node(add_node(graph, name, op, inputs, outputs)));
}

NodeStatistics parsed(std::string_view text) {
  auto statistics = NodeStatistics::parse(text, "stats.csv");
  REQUIRE_MESSAGE(statistics.ok(), statistics.status().to_string());
  return std::move(statistics).value();
}

std::string refusal(std::string_view text) {
  const auto statistics = NodeStatistics::parse(text, "stats.csv");
  REQUIRE(!statistics.ok());
  CHECK(statistics.status().code() == Code::InvalidArgument);
  return statistics.status().message();
}

}  // namespace

TEST_CASE("keys are those that ONNX Runtime 1.32.0 writes") {
  // Found by running these nodes there.
  CHECK(key_of("", "MatMul", {"x", "w"}, {"t"}) == "MatMul_8672213592328612708");
  CHECK(key_of("clip", "Clip", {"t", "", "hi"}, {"c"}) == "clip_3968325681640680175");
  CHECK(key_of("a,b", "Add", {"c", "c"}, {"y"}) == "a,b_9208193457126625879");
  CHECK(key_of("iff", "If", {"c"}, {"y"}) == "iff_7021312728286300029");
  CHECK(key_of("inner_then", "Mul", {"x", "x"}, {"p"}) == "inner_then_9175194878758138415");
  CHECK(key_of("/m/rs", "Resize", {"yy_yyyyyyyyyyyyyyyyyyyyyy", "", "s"}, {"y"}) ==
        "/m/rs_17386426927382414831");
  CHECK(key_of("ln", "LayerNormalization", {"xxxxxxxxxxxxxxxxxxxxxxxxxxxx", "scale"},
               {"yy_yyyyyyyyyyyyyyyyyyyyyy"}) == "ln_7525273111728625065");
  CHECK(key_of("ln\nq", "LayerNormalization", {"x", "scale", ""}, {"y", "", ""}) ==
        "ln q_13255530518705866319");
}

TEST_CASE("a statistics file is read as it was written, also with commas in names") {
  const TemporaryFolder folder;
  NodeStatistics written;
  CHECK(written.add("a,b_1", {1, 2, 3, 4}));
  CHECK(written.add("c_2", {0, 0, 0, std::numeric_limits<std::uint64_t>::max()}));
  REQUIRE(written.write(folder / "stats.csv").ok());
  CHECK(read_text(folder / "stats.csv") ==
        std::string(kHeader) + "a,b_1,1,2,3,4\nc_2,0,0,0,18446744073709551615\n");
  const auto read = NodeStatistics::read(folder / "stats.csv");
  REQUIRE(read.ok());
  REQUIRE(read->rows().size() == 2);
  CHECK(read->rows()[0].key == "a,b_1");
  CHECK(read->rows()[0].memory == NodeMemory{1, 2, 3, 4});
  CHECK(read->rows()[1].memory.scratch_bytes == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("several rows of one key keep the most of each number") {
  const auto statistics = parsed("a,1,20,3,40\na,10,2,30,4\n");
  REQUIRE(statistics.rows().size() == 1);
  CHECK(statistics.rows()[0].memory == NodeMemory{10, 20, 30, 40});
  NodeStatistics more = statistics;
  CHECK(!more.add("a", {10, 20, 30, 40}));
  CHECK(more.add("a", {11, 0, 0, 0}));
  CHECK(more.rows()[0].memory == NodeMemory{11, 20, 30, 40});
}

TEST_CASE("comments, empty lines, line ends of other systems and blanks are fine") {
  const auto statistics = parsed("# a comment, with commas\r\n\r\na_1, 1, 2, 3, 4\r\nb_2,5,6,7,8");
  REQUIRE(statistics.rows().size() == 2);
  CHECK(statistics.rows()[0].memory == NodeMemory{1, 2, 3, 4});
  CHECK(statistics.rows()[1].memory == NodeMemory{5, 6, 7, 8});
  CHECK(parsed("").rows().empty());
  CHECK(parsed(kHeader).rows().empty());
}

TEST_CASE("a row that is none is refused with its line") {
  CHECK(refusal("a,1,2,3,4\nb,1,2,3\n") ==
        "line 2 of 'stats.csv' should be a key and 4 numbers with commas between them, found 3 "
        "commas");
  CHECK(refusal("a,1,x,3,4\n") == "line 1 of 'stats.csv' should hold a number of bytes, found 'x'");
  CHECK(refusal("a,-1,2,3,4") == "line 1 of 'stats.csv' should hold a number of bytes, found '-1'");
  CHECK(refusal("a,18446744073709551616,2,3,4") ==
        "line 1 of 'stats.csv' should hold a number of bytes, found '18446744073709551616'");
  CHECK(refusal("a,,2,3,4") == "line 1 of 'stats.csv' should hold a number of bytes, found ''");
}

TEST_CASE("no text makes the reader fail otherwise than by a message") {
  std::mt19937 random(3);
  constexpr std::string_view kLetters = "ab_,19\n\r# \t-x";
  for (int turn = 0; turn < 2000; ++turn) {
    std::string text;
    for (int i = static_cast<int>(random() % 40); i > 0; --i) {
      text += kLetters[random() % kLetters.size()];
    }
    const auto statistics = NodeStatistics::parse(text, "f");
    if (!statistics.ok()) CHECK(statistics.status().message().starts_with("line "));
    if (statistics.ok()) CHECK(statistics->rows().size() <= text.size());
  }
}

TEST_CASE("a file that is not there or a folder is named") {
  const TemporaryFolder folder;
  const auto missing = NodeStatistics::read(folder / "no.csv");
  REQUIRE(!missing.ok());
  CHECK(missing.status().message() == "Failed to open file \"" + folder / "no.csv" + "\"");
  CHECK(!NodeStatistics::read(folder.path().string()).ok());
}

TEST_CASE("a relative path belongs to the model's folder, an absolute one to itself") {
  CHECK(statistics_path("s.csv", "/models/a/m.onnx") == "/models/a/s.csv");
  CHECK(statistics_path("../s.csv", "m/m.onnx") == "m/../s.csv");
  CHECK(statistics_path("s.csv", "m.onnx") == "s.csv");
  CHECK(statistics_path("s.csv", "") == "s.csv");
  CHECK(statistics_path("/tmp/s.csv", "/models/a/m.onnx") == "/tmp/s.csv");
}

TEST_CASE("a path that cannot be written is refused with its folder, and nothing is left there") {
  const TemporaryFolder folder;
  CHECK(check_statistics_path(folder / "s.csv").ok());
  CHECK(std::filesystem::is_empty(folder.path()));
  const Status missing = check_statistics_path("/no/such/folder/stats.csv");
  REQUIRE(!missing.ok());
  CHECK(
      missing.message().starts_with("no statistics can be written into folder '/no/such/folder'"));
  CHECK(!check_statistics_path(folder.path().string()).ok());
}

TEST_CASE("rows belong to nodes by key, then by a name that is used once") {
  Graph graph;
  const NodeId same = add_node(graph, "same", "MatMul", {"x", "w"}, {"t"});
  const NodeId moved = add_node(graph, "moved", "Add", {"t2", "b"}, {"u"});
  const NodeId fused = add_node(graph, "/l/mm", "MatMul", {"u2", "w2"}, {"v"});
  const NodeId twice = add_node(graph, "twice", "Relu", {"v2"}, {"y"});
  const NodeId lost = add_node(graph, "lost", "Relu", {"y2"}, {"z"});
  NodeStatistics statistics;
  statistics.add(statistics_key(graph, graph.node(same)), {1, 0, 0, 0});
  statistics.add("moved_12", {2, 0, 0, 0});
  statistics.add("/l/mm/MatMulAddFusion_77", {3, 0, 0, 0});
  statistics.add("twice_1", {4, 0, 0, 0});
  statistics.add("twice_2", {4, 0, 0, 0});
  const auto matched = match_statistics(graph, statistics);
  CHECK(matched.nodes[same] == NodeMemory{1, 0, 0, 0});
  CHECK(matched.nodes[moved] == NodeMemory{2, 0, 0, 0});
  CHECK(matched.nodes[fused] == NodeMemory{3, 0, 0, 0});
  CHECK(!matched.nodes[twice].has_value());
  CHECK(!matched.nodes[lost].has_value());
  CHECK(matched.matched_count == 3);
  CHECK(describe_mismatch(matched, "s.csv") ==
        "2 of 5 nodes have no row in 's.csv': node 'twice' (Relu), node 'lost' (Relu); 2 of its "
        "rows belong to no node: twice_1, twice_2");
}

TEST_CASE("two nodes of one name need their keys, and nothing is said when all fits") {
  Graph graph;
  const NodeId first = add_node(graph, "n", "Relu", {"a"}, {"b"});
  const NodeId second = add_node(graph, "n", "Relu", {"c"}, {"d"});
  NodeStatistics statistics;
  statistics.add(statistics_key(graph, graph.node(first)), {1, 0, 0, 0});
  CHECK(!match_statistics(graph, statistics).nodes[second].has_value());
  statistics.add(statistics_key(graph, graph.node(second)), {2, 0, 0, 0});
  const auto matched = match_statistics(graph, statistics);
  CHECK(matched.nodes[first] == NodeMemory{1, 0, 0, 0});
  CHECK(matched.nodes[second] == NodeMemory{2, 0, 0, 0});
  CHECK(describe_mismatch(matched, "s.csv").empty());
}

TEST_CASE("sums of sizes stop at the largest number") {
  constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();
  CHECK(NodeMemory{kMost, 1, 0, 0}.total_bytes() == kMost);
  CHECK((NodeMemory{kMost, 1, 2, 3} + NodeMemory{1, 1, 1, 1}) == NodeMemory{kMost, 2, 3, 4});
  CHECK(NodeMemory{1, 2, 3, 4}.total_bytes() == 10);
}
