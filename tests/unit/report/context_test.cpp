#include "report/context.h"

#include <doctest/doctest.h>

#include <cstring>

#include "context/known_files.h"
#include "onnx/writer.h"
#include "report/report.h"
#include "session/max_size.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;

namespace {

constexpr std::size_t kBlob_bytes = 4000;

std::vector<std::byte> bytes_of(unsigned seed) {
  std::vector<std::byte> bytes(kBlob_bytes);
  for (std::byte& byte : bytes) {
    seed = seed * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(seed >> 24);
  }
  return bytes;
}

SourceFile source_of(const std::string& path) {
  const auto file = MappedFile::open(path);
  REQUIRE(file.ok());
  wait_until_distinct((*file)->identity());
  return {(*file)->path(), (*file)->identity(), hash_bytes((*file)->bytes()), true};
}

/// Adds a graph with one blob per seed to the container; its key.
std::string store_graph(const std::string& container, const std::string& model,
                        const std::vector<unsigned>& seeds, std::vector<SourceFile> sources) {
  auto writer = ContainerWriter::extend(container, nullptr);
  REQUIRE_MESSAGE(writer.ok(), writer.status().to_string());
  ArtifactWriter& part = (*writer)->begin_graph(model, std::move(sources));
  for (const unsigned seed : seeds) {
    const auto bytes = bytes_of(seed);
    const auto number = part.add_blob({hash_bytes(bytes), bytes.size(), "source"}, bytes.size(),
                                      [&](std::span<std::byte> target) {
                                        std::memcpy(target.data(), bytes.data(), bytes.size());
                                        return Status();
                                      });
    REQUIRE(number.ok());
  }
  part.set_program(bytes_of(seeds.front() + 100));
  auto key = (*writer)->finish_graph();
  REQUIRE(key.ok());
  const Status status = (*writer)->commit();
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return *key;
}

/// One node of a compiled part, as attributes.
struct Part {
  std::string key;
  std::string data = std::string(kContainerName);
  std::string source = "SardonyxExecutionProvider";
  std::int64_t main_context = 1;
  std::optional<std::int64_t> max_size = 0;
};

/// A model of EPContext nodes, one after the other.
void write_compiled(const std::string& path, const std::vector<Part>& parts) {
  Model model;
  model.ir_version = 10;
  model.opset_imports = {{"", 21}, {"com.microsoft", 1}};
  model.metadata = {{"author", "somebody"}};
  Graph& graph = model.graph;
  graph.name = "graph";
  ValueId value = graph.add_value("x", Type::tensor(DType::Float32, Shape{2}));
  graph.add_input(value);
  for (const Part& part : parts) {
    Node node;
    node.domain = "com.microsoft";
    node.op_type = "EPContext";
    node.opset = 1;
    node.name = graph.unique_name("part");
    node.attributes.set("main_context", part.main_context);
    node.attributes.set("embed_mode", std::int64_t{0});
    node.attributes.set("ep_cache_context", part.data);
    node.attributes.set("source", part.source);
    node.attributes.set("partition_name", "prefix_" + part.key);
    if (part.max_size) node.attributes.set("max_size", *part.max_size);
    node.inputs = {value};
    value = graph.add_value(graph.unique_name("y"), Type::tensor(DType::Float32, Shape{2}));
    node.outputs = {value};
    graph.add_node(std::move(node));
  }
  graph.add_output(value);
  const Status status = write_model(model, path);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

/// Two compiled models, a and b, with one blob in common; their sources are a.onnx and b.onnx.
struct Pair {
  TemporaryFolder folder;
  std::string container = folder / kContainerName;
  std::string key_a;
  std::string key_b;

  Pair() {
    write_text(folder / "a.onnx.source", "the source of a");
    write_text(folder / "b.onnx.source", "the source of b");
    key_a = store_graph(container, "a_ctx.onnx", {1, 2}, {source_of(folder / "a.onnx.source")});
    write_compiled(folder / "a_ctx.onnx", {{key_a}});
    key_b = store_graph(container, "b_ctx.onnx", {2, 3}, {source_of(folder / "b.onnx.source")});
    write_compiled(folder / "b_ctx.onnx", {{key_b}});
  }
};

Json report_of(const std::string& path, bool checks_all = false) {
  const auto text = describe_context(path, checks_all);
  REQUIRE_MESSAGE(text.ok(), text.status().to_string());
  return Json::parse(*text);
}

Json collect(const std::string& path, bool only_looks = false) {
  const auto text = collect_contexts(path, only_looks);
  REQUIRE_MESSAGE(text.ok(), text.status().to_string());
  return Json::parse(*text);
}

void flip_byte(const std::string& path, std::uint64_t offset) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekg(static_cast<std::streamoff>(offset));
  const int byte = file.get();
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(static_cast<char>(byte ^ 1));
}

}  // namespace

TEST_CASE("a compiled model says what it holds and with whom it shares") {
  const Pair pair;
  const Json report = report_of(pair.folder / "a_ctx.onnx");
  CHECK(report["verdict"] == "usable");
  CHECK(report["problems"].empty());
  CHECK(report["checked"] == "index");
  REQUIRE(report["compiled_nodes"].size() == 1);
  CHECK(report["compiled_nodes"][0]["graph"] == pair.key_a);
  REQUIRE(report["containers"].size() == 1);
  const Json& container = report["containers"][0];
  CHECK(container["blob_count"] == 3);
  CHECK(container["blob_bytes"] == 3 * kBlob_bytes);
  CHECK(container["saved_bytes"] == kBlob_bytes);
  REQUIRE(container["graphs"].size() == 2);
  const Json& graph = container["graphs"][0];
  CHECK(graph["model"] == "a_ctx.onnx");
  CHECK(graph["blob_bytes"] == 2 * kBlob_bytes);
  CHECK(graph["shared_bytes"] == kBlob_bytes);
  CHECK(graph["shared_with"] == Json::array({"b_ctx.onnx"}));
  CHECK(graph["sources"][0]["state"] == "unchanged");
}

TEST_CASE("a source that has changed is named") {
  const Pair pair;
  write_text(pair.folder / "a.onnx.source", "another source");
  for (const bool checks_all : {false, true}) {
    const Json report = report_of(pair.folder / "a_ctx.onnx", checks_all);
    CHECK(report["verdict"] == "unusable");
    REQUIRE(report["problems"].size() == 1);
    CHECK(report["problems"][0]["kind"] == "stale");
    CHECK(report["problems"][0]["message"].get<std::string>().find("changed") != std::string::npos);
    CHECK(report_of(pair.folder / "b_ctx.onnx", checks_all)["verdict"] == "usable");
  }
}

TEST_CASE("a source that is gone and not needed is no problem") {
  const Pair pair;
  std::filesystem::remove(pair.folder / "a.onnx.source");
  for (const bool checks_all : {false, true}) {
    const Json report = report_of(pair.folder / "a_ctx.onnx", checks_all);
    CHECK(report["verdict"] == "usable");
    CHECK(report["containers"][0]["graphs"][0]["sources"][0]["state"] == "missing");
  }
}

TEST_CASE("a damaged blob is found, and who uses it is named") {
  const Pair pair;
  const Json before = report_of(pair.folder / "a_ctx.onnx", true);
  CHECK(before["verdict"] == "usable");
  flip_byte(pair.container, before["containers"][0]["blobs"][1]["offset"].get<std::uint64_t>());
  CHECK(report_of(pair.folder / "a_ctx.onnx")["verdict"] == "unusable");
  const Json report = report_of(pair.folder / "a_ctx.onnx", true);
  REQUIRE(report["problems"].size() == 1);
  CHECK(report["problems"][0]["kind"] == "damaged");
  const std::string message = report["problems"][0]["message"];
  CHECK(message.find("blob 1") != std::string::npos);
  CHECK(message.find("a_ctx.onnx, b_ctx.onnx") != std::string::npos);
}

TEST_CASE("a damaged header, a missing container and another's container are told apart") {
  const Pair pair;
  SUBCASE("damaged") {
    std::filesystem::resize_file(pair.container, 4200);
    CHECK(report_of(pair.folder / "a_ctx.onnx")["problems"][0]["kind"] == "damaged");
  }
  SUBCASE("missing") {
    std::filesystem::remove(pair.container);
    CHECK(report_of(pair.folder / "a_ctx.onnx")["problems"][0]["kind"] == "missing");
  }
  SUBCASE("of other models") {
    std::filesystem::remove(pair.container);
    store_graph(pair.container, "c_ctx.onnx", {7}, {});
    CHECK(report_of(pair.folder / "a_ctx.onnx")["problems"][0]["kind"] == "stale");
  }
}

TEST_CASE("a container and a plain model are described, too") {
  const Pair pair;
  const Json container = report_of(pair.container, true);
  CHECK(container["kind"] == "container");
  CHECK(container["verdict"] == "usable");
  CHECK(container["containers"][0]["graphs"].size() == 2);
  Model model;
  model.ir_version = 10;
  model.opset_imports = {{"", 21}};
  model.graph.name = "graph";
  const ValueId x = model.graph.add_value("x", Type::tensor(DType::Float32, Shape{2}));
  model.graph.add_input(x);
  model.graph.add_output(x);
  REQUIRE(write_model(model, pair.folder / "plain.onnx").ok());
  CHECK(report_of(pair.folder / "plain.onnx")["verdict"] == "not compiled");
  CHECK(!describe_context(pair.folder / "none.onnx", false).ok());
}

TEST_CASE("parts of other providers are listed with their data") {
  const TemporaryFolder folder;
  write_compiled(folder / "m_ctx.onnx", {{"abc", "m_qnn.bin", "QNN"}});
  CHECK(report_of(folder / "m_ctx.onnx")["problems"][0]["kind"] == "missing");
  write_text(folder / "m_qnn.bin", "12345");
  const Json report = report_of(folder / "m_ctx.onnx");
  CHECK(report["verdict"] == "usable");
  CHECK(report["compiled_nodes"][0]["data_bytes"] == 5);
  CHECK(report["compiled_nodes"][0]["graph"].is_null());
}

TEST_CASE("a folder lists its models and what of its container is unused") {
  const Pair pair;
  const Json before = report_of(pair.folder.path().string());
  CHECK(before["verdict"] == "usable");
  CHECK(before["models"].size() == 2);
  CHECK(before["containers"][0]["unused_graph_count"] == 0);
  std::filesystem::remove(pair.folder / "b_ctx.onnx");
  const Json after = report_of(pair.folder.path().string());
  CHECK(after["containers"][0]["unused_graph_count"] == 1);
  // Its own blob and its program; the other blob is shared.
  CHECK(after["containers"][0]["unused_bytes"] == 2 * kBlob_bytes);
}

TEST_CASE("collecting drops graphs that no model names, and only those") {
  const Pair pair;
  const std::string folder = pair.folder.path().string();
  CHECK(collect(folder)["containers"][0]["dropped"].empty());
  std::filesystem::remove(pair.folder / "b_ctx.onnx");
  const auto size = std::filesystem::file_size(pair.container);
  CHECK(collect(folder, true)["containers"][0]["dropped"] == Json::array({"b_ctx.onnx"}));
  CHECK(std::filesystem::file_size(pair.container) == size);
  const auto reader = Container::open(pair.container, Container::Check::UnlessKnown);
  REQUIRE(reader.ok());
  CHECK(collect(folder)["containers"][0]["dropped"] == Json::array({"b_ctx.onnx"}));
  CHECK(std::filesystem::file_size(pair.container) < size);
  const Json report = report_of(pair.folder / "a_ctx.onnx", true);
  CHECK(report["verdict"] == "usable");
  CHECK(report["containers"][0]["blob_count"] == 2);
  // Who had the old file open is not disturbed.
  CHECK((*reader)->check_all().ok());
  CHECK((*reader)->find(pair.key_b).ok());
}

TEST_CASE("a container that nobody uses any more is removed") {
  const Pair pair;
  std::filesystem::remove(pair.folder / "a_ctx.onnx");
  std::filesystem::remove(pair.folder / "b_ctx.onnx");
  const Json report = collect(pair.folder.path().string());
  CHECK(report["containers"][0]["is_removed"] == true);
  CHECK(!std::filesystem::exists(pair.container));
}

TEST_CASE("nothing is collected when it cannot be told what is in use") {
  const Pair pair;
  std::filesystem::remove(pair.folder / "b_ctx.onnx");
  const auto size = std::filesystem::file_size(pair.container);
  SUBCASE("a model cannot be read") {
    write_text(pair.folder / "broken_ctx.onnx", "no model");
    const auto done = collect_contexts(pair.folder.path().string(), false);
    REQUIRE(!done.ok());
    CHECK(done.status().message().find("broken_ctx.onnx") != std::string::npos);
  }
  SUBCASE("the container may belong to models of another folder") {
    const std::string named = pair.folder / "other_sardonyx.bin";
    store_graph(named, "elsewhere_ctx.onnx", {9}, {});
    const Json report = collect(pair.folder.path().string(), true);
    for (const Json& row : report["containers"]) {
      CHECK(row.contains("skipped") == (row["path"] == named));
    }
  }
  SUBCASE("the model went to no file") {
    store_graph(pair.container, "", {8}, {});
    const Json report = collect(pair.folder.path().string(), true);
    CHECK(report["containers"][0]["dropped"] == Json::array({"b_ctx.onnx"}));
  }
  CHECK(std::filesystem::file_size(pair.container) >= size);
}

TEST_CASE("max_size is set in main nodes alone, and nothing else changes") {
  const TemporaryFolder folder;
  const std::string path = folder / "m_ctx.onnx";
  write_compiled(path, {{"a", "m.bin", "QNN", 1, std::nullopt},
                        {"b", "m.bin", "QNN", 0, 5},
                        {"c", "m.bin", "QNN", 1, 7}});
  const auto before = read_compiled_file(path);
  REQUIRE(before.ok());
  const auto count = set_max_size(path, 4096);
  REQUIRE_MESSAGE(count.ok(), count.status().to_string());
  CHECK(*count == 2);
  const auto after = read_compiled_file(path);
  REQUIRE(after.ok());
  REQUIRE(after->nodes.size() == 3);
  const std::int64_t expected[] = {4096, 5, 4096};
  for (std::size_t i = 0; i < 3; ++i) {
    const Node& node = after->node(after->nodes[i]);
    const Node& former = before->node(before->nodes[i]);
    CHECK(node.attributes.get_int("max_size", -1) == expected[i]);
    CHECK(node.name == former.name);
    for (const auto& [name, value] : former.attributes) {
      if (name == "max_size") continue;
      const auto* text = std::get_if<std::string>(&value);
      const auto* number = std::get_if<std::int64_t>(&value);
      if (text != nullptr) CHECK(node.attributes.get_string(name, "?") == *text);
      if (number != nullptr) CHECK(node.attributes.get_int(name, -1) == *number);
    }
  }
  CHECK(after->model.metadata == before->model.metadata);
  CHECK(after->model.opset_imports == before->model.opset_imports);
}

TEST_CASE("a model without main nodes is not touched") {
  const TemporaryFolder folder;
  const std::string path = folder / "m_ctx.onnx";
  write_compiled(path, {{"b", "m.bin", "QNN", 0, 5}});
  const std::string before = read_text(path);
  const auto count = set_max_size(path, 4096);
  REQUIRE(count.ok());
  CHECK(*count == 0);
  CHECK(read_text(path) == before);
}
