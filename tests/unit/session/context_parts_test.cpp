#include "session/context_parts.h"

#include <doctest/doctest.h>

#include <cstring>

#include "context/container.h"
#include "context/source.h"
#include "onnx/reader.h"
#include "onnx/writer.h"
#include "session/environment.h"
#include "unit/small_graph.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;

namespace {

constexpr Dim kSize = 96;

/// y = Relu(x W1) W2 with weights of its own, written to `path`; external data beside it if asked.
Model written_model(const std::string& path, unsigned seed, const std::string& external = "") {
  SmallGraph small;
  const ValueId x = small.input("x", Shape{kUnknownDim, kSize});
  const ValueId w1 = small.constant(random_floats(Shape{kSize, kSize}, 7));
  const ValueId w2 = small.constant(random_floats(Shape{kSize, kSize}, seed));
  const ValueId hidden = small.node("Relu", {small.node("MatMul", {x, w1})});
  small.output(small.node("MatMul", {hidden, w2}));
  small.infer();
  Model model;
  model.ir_version = 8;
  model.opset_imports = {{"", 18}};
  model.graph = small.graph;
  WriteOptions options;
  options.external_data_file = external;
  const Status status = write_model(model, path, options);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  auto read = read_model(path);
  REQUIRE_MESSAGE(read.ok(), read.status().to_string());
  return std::move(read).value();
}

/// A model whose one node stands for the part with that key.
void write_context_model(const Model& source, const std::string& key, const std::string& path) {
  Model model;
  model.ir_version = 8;
  model.opset_imports = {{"", 18}, {"com.microsoft", 1}};
  Node node;
  node.domain = "com.microsoft";
  node.op_type = "EPContext";
  node.name = "part";
  node.opset = 1;
  node.attributes.set("source", std::string("SardonyxExecutionProvider"));
  node.attributes.set("embed_mode", std::int64_t{0});
  node.attributes.set("ep_cache_context", std::string(kContainerName));
  node.attributes.set("partition_name", "part_" + key);
  for (const ValueId id : source.graph.inputs()) {
    const Value& value = source.graph.value(id);
    node.inputs.push_back(model.graph.add_value(value.name, value.type));
    model.graph.add_input(node.inputs.back());
  }
  for (const ValueId id : source.graph.outputs()) {
    const Value& value = source.graph.value(id);
    node.outputs.push_back(model.graph.add_value(value.name, value.type));
  }
  const std::vector<ValueId> outputs = node.outputs;
  model.graph.add_node(std::move(node));
  for (const ValueId id : outputs) model.graph.add_output(id);
  const Status status = write_model(model, path);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
}

/// Compiles a model into the folder's container.
void compile(const TemporaryFolder& folder, const Model& model, const std::string& name,
             Weightless weightless = Weightless::None) {
  const auto environment = make_environment();
  const ArtifactProvider* keeper = as_artifact(*environment->providers().front());
  REQUIRE(keeper != nullptr);
  CompileOptions options;
  options.model = &model;
  options.weightless = weightless;
  auto sources = sources_of(model);
  REQUIRE_MESSAGE(sources.ok(), sources.status().to_string());
  Model typed = model;
  REQUIRE(infer_types(typed.graph).ok());
  auto writer = ContainerWriter::extend(folder / kContainerName, nullptr);
  REQUIRE_MESSAGE(writer.ok(), writer.status().to_string());
  ArtifactWriter& part = (*writer)->begin_graph(name, std::move(sources).value());
  const Status status = keeper->save(typed.graph, options, part);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  const auto key = (*writer)->finish_graph();
  REQUIRE(key.ok());
  REQUIRE((*writer)->commit().ok());
  write_context_model(model, *key, folder / name);
}

Result<std::vector<float>> run(const std::string& path, SessionOptions options = {}) {
  SDX_ASSIGN(const auto session, Session::load(make_environment(), path, std::move(options)));
  const std::string_view input = session->inputs()[0].name;
  const std::string_view output = session->outputs()[0].name;
  const Datum x(random_floats(Shape{3, kSize}, 11));
  Datum y;
  SDX_TRY(session->run({&input, 1}, {&x, 1}, {&output, 1}, {&y, 1}));
  return values_of<float>(y);
}

std::vector<float> result_of(const std::string& path, SessionOptions options = {}) {
  auto result = run(path, std::move(options));
  REQUIRE_MESSAGE(result.ok(), result.status().to_string());
  return std::move(result).value();
}

std::string error_of(const std::string& path, SessionOptions options = {}) {
  const auto result = run(path, std::move(options));
  return result.ok() ? "" : result.status().to_string();
}

bool contains_text(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

SessionOptions with_entry(const std::string& key, const std::string& value) {
  SessionOptions options;
  options.entries[key] = value;
  return options;
}

void change_byte(const std::string& path, std::uint64_t position) {
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(static_cast<std::streamoff>(position));
  file.put('\x35');
}

}  // namespace

TEST_CASE("a compiled model gives what its source gives, without the source") {
  const TemporaryFolder folder;
  const Model model = written_model(folder / "m.onnx", 1);
  const auto expected = result_of(folder / "m.onnx");
  compile(folder, model, "m_ctx.onnx");
  std::filesystem::remove(folder / "m.onnx");
  CHECK(result_of(folder / "m_ctx.onnx") == expected);
}

TEST_CASE("models that differ in one layer share the others in the container") {
  const TemporaryFolder folder;
  const Model first = written_model(folder / "a.onnx", 1);
  const Model second = written_model(folder / "b.onnx", 2);
  compile(folder, first, "a_ctx.onnx");
  const auto size = std::filesystem::file_size(folder / kContainerName);
  compile(folder, second, "b_ctx.onnx");
  const auto weight_bytes = static_cast<std::uintmax_t>(kSize * kSize * 4);
  CHECK(std::filesystem::file_size(folder / kContainerName) < size + weight_bytes + 4096);
  CHECK(result_of(folder / "a_ctx.onnx") == result_of(folder / "a.onnx"));
  CHECK(result_of(folder / "b_ctx.onnx") == result_of(folder / "b.onnx"));
}

TEST_CASE("a weightless model has no weights of its own and takes those of its source") {
  const TemporaryFolder folder;
  for (const char* external : {"", "m.data"}) {
    const Model model = written_model(folder / "m.onnx", 1, external);
    const auto expected = result_of(folder / "m.onnx");
    compile(folder, model, "m_ctx.onnx", Weightless::All);
    CHECK(std::filesystem::file_size(folder / kContainerName) < 10000);
    CHECK(result_of(folder / "m_ctx.onnx") == expected);
  }
}

TEST_CASE("a weightless model finds its source by path, by bytes, or not at all") {
  const TemporaryFolder folder;
  const TemporaryFolder elsewhere;
  const Model model = written_model(folder / "m.onnx", 1);
  const auto expected = result_of(folder / "m.onnx");
  compile(folder, model, "m_ctx.onnx", Weightless::All);
  std::filesystem::rename(folder / "m.onnx", elsewhere / "other.onnx");
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), "m.onnx"));
  CHECK(result_of(folder / "m_ctx.onnx", with_entry("ep.context_source_model_path",
                                                    elsewhere / "other.onnx")) == expected);
  const std::string bytes = read_text(elsewhere / "other.onnx");
  SessionOptions options;
  options.weightless_source = std::as_bytes(std::span(bytes));
  CHECK(result_of(folder / "m_ctx.onnx", options) == expected);
}

TEST_CASE("a weightless model refuses weights that are not its own, naming tensor and file") {
  const TemporaryFolder folder;
  const Model model = written_model(folder / "m.onnx", 1, "m.data");
  const auto expected = result_of(folder / "m.onnx");
  compile(folder, model, "m_ctx.onnx", Weightless::All);
  const std::string data = folder / "m.data";
  const auto time = std::filesystem::last_write_time(data);
  change_byte(data, 4096 * 9 + 100);
  std::filesystem::last_write_time(data, time);
  const std::string error = error_of(folder / "m_ctx.onnx");
  CHECK(contains_text(error, "m.data"));
  CHECK(contains_text(error, "is not the one that 'm_ctx.onnx' was compiled with"));
}

TEST_CASE("a compiled model whose source has changed is stale, unless that is to be ignored") {
  const TemporaryFolder folder;
  const Model model = written_model(folder / "m.onnx", 1);
  const auto expected = result_of(folder / "m.onnx");
  compile(folder, model, "m_ctx.onnx");
  // The same content with another state is fine.
  const std::string bytes = read_text(folder / "m.onnx");
  write_text(folder / "m.onnx", bytes);
  CHECK(result_of(folder / "m_ctx.onnx") == expected);
  written_model(folder / "m.onnx", 2);
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), "is stale"));
  CHECK(result_of(folder / "m_ctx.onnx", with_entry("sardonyx.context_ignore_stale_source", "1")) ==
        expected);
}

TEST_CASE("a container that is missing, of other models or changed is refused by name") {
  const TemporaryFolder folder;
  const Model model = written_model(folder / "m.onnx", 1);
  compile(folder, model, "m_ctx.onnx");
  const std::string path = folder / kContainerName;
  const std::string whole = read_text(path);
  change_byte(path, 5000);
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), "weights are damaged"));
  std::filesystem::remove(path);
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), std::string(kContainerName)));
  std::filesystem::remove(folder / "m_ctx.onnx.seen");
  compile(folder, written_model(folder / "n.onnx", 3), "n_ctx.onnx");
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), "has no graph"));
  CHECK(contains_text(error_of(folder / "m_ctx.onnx"), "n_ctx.onnx"));
}

TEST_CASE("a plain model in weightless mode runs on the bytes of its source") {
  const TemporaryFolder folder;
  written_model(folder / "m.onnx", 1);
  const auto expected = result_of(folder / "m.onnx");
  const auto environment = make_environment();
  const auto session =
      Session::load(environment, folder / "m.onnx", with_entry("ep.enable_weightless_mode", "2"));
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  CHECK((*session)->memory().packed_bytes == 0);
  CHECK(result_of(folder / "m.onnx", with_entry("ep.enable_weightless_mode", "2")) == expected);
}

TEST_CASE("sessions of one process have one mapping of their container") {
  const TemporaryFolder folder;
  const Model model = written_model(folder / "m.onnx", 1);
  compile(folder, model, "m_ctx.onnx");
  const auto first = MappedFile::open(folder / kContainerName);
  REQUIRE(first.ok());
  const long before = first->use_count();
  const auto one = Session::load(make_environment(), folder / "m_ctx.onnx", {});
  const auto two = Session::load(make_environment(), folder / "m_ctx.onnx", {});
  REQUIRE(one.ok());
  REQUIRE(two.ok());
  CHECK(first->use_count() >= before + 2);
}
