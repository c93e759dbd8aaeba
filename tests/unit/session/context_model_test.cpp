#include "session/context_model.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "session/load.h"
#include "session/model_compiler.h"
#include "unit/onnx/messages.h"
#include "unit/small_graph.h"
#include "unit/temporary_folder.h"

using namespace messages;

namespace {

namespace fs = std::filesystem;

/// Runs nothing; what the node of a part looks like is all there is to it.
class NamedPart final : public Compiled {
 public:
  explicit NamedPart(std::optional<ContextNode> node) : node_(std::move(node)) {}
  Status run(std::span<const Datum>, std::span<Datum>, RunState&) override { return {}; }
  const ContextNode* context_node() const override { return node_ ? &*node_ : nullptr; }

 private:
  std::optional<ContextNode> node_;
};

/// Takes the operators of its list, all nodes fused, and makes the nodes of its parts itself.
class MakingProvider final : public Provider {
 public:
  explicit MakingProvider(std::vector<std::string> operators, bool makes_nodes = true)
      : operators_(std::move(operators)), makes_nodes_(makes_nodes) {}
  std::string_view name() const override { return "MakingProvider"; }
  bool can_run(const Graph& graph, NodeId id, std::string*) const override {
    const std::string& op = graph.node(id).op_type;
    return std::find(operators_.begin(), operators_.end(), op) != operators_.end();
  }
  Result<std::vector<NodeGroup>> offer(const Model& model,
                                       std::span<const NodeId> free) const override {
    std::vector<NodeGroup> groups;
    for (const NodeId id : free) {
      if (can_run(model.graph, id, nullptr)) groups.push_back({{id}, true});
    }
    return groups;
  }
  Result<std::unique_ptr<Compiled>> compile(Graph graph, const CompileOptions&) const override {
    std::optional<ContextNode> node;
    if (makes_nodes_) {
      node = ContextNode{"made", "com.microsoft", "EPContext", {}, {}, {}};
      for (const ValueId id : graph.inputs()) node->inputs.push_back(graph.value(id).name);
      for (const ValueId id : graph.outputs()) node->outputs.push_back(graph.value(id).name);
    }
    return std::unique_ptr<Compiled>(std::make_unique<NamedPart>(std::move(node)));
  }
  Result<std::string> compatibility_info(const Model&) const override {
    return std::string("fits me");
  }

 private:
  std::vector<std::string> operators_;
  bool makes_nodes_;
};

/// Takes everything, and keeps the weights of its parts as blobs.
class KeepingProvider final : public ArtifactProvider {
 public:
  std::string_view name() const override { return "CPUExecutionProvider"; }
  std::string_view context_source() const override { return "KeepingSource"; }
  bool can_run(const Graph&, NodeId, std::string*) const override { return true; }
  Result<std::unique_ptr<Compiled>> compile(Graph, const CompileOptions&) const override {
    return std::unique_ptr<Compiled>(std::make_unique<NamedPart>(std::nullopt));
  }
  Status save(Graph graph, const CompileOptions&, ArtifactWriter& writer) const override {
    if (fails) return Status(Code::Unsupported, "the part is not to be kept");
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const auto& constant = graph.value(id).constant;
      if (!constant) continue;
      const std::span<const std::byte> bytes(constant->data(), constant->byte_size());
      SDX_TRY(writer
                  .add_blob({hash_bytes(bytes), bytes.size(), "source"}, bytes.size(),
                            [&](std::span<std::byte> target) {
                              std::copy(bytes.begin(), bytes.end(), target.begin());
                              return Status();
                            })
                  .take_status());
    }
    writer.set_program(std::vector<std::byte>(3));
    return {};
  }
  Result<std::unique_ptr<Compiled>> load(const Artifact&, const CompileOptions&) const override {
    return Status(Code::Unsupported, "nothing is loaded here");
  }

  bool fails = false;
};

/// What containers were written, by path ("" = in memory), and what happened in order.
struct Shelf {
  std::map<std::string, std::string> committed;
  std::vector<std::string> events;
  bool commit_fails = false;
};

/// A container that puts one blob after the other, and appears on a shelf.
class ShelfWriter final : public ContainerWriter, private ArtifactWriter {
 public:
  ShelfWriter(Shelf& shelf, std::string path) : shelf_(shelf), path_(std::move(path)) {}

  ArtifactWriter& begin_graph(std::string model_name, std::vector<SourceFile> sources) override {
    std::string event = "graph " + model_name;
    for (const SourceFile& source : sources) {
      event += " " + fs::path(source.path).filename().string() + (source.is_model ? "*" : "");
    }
    shelf_.events.push_back(event);
    return *this;
  }
  Result<std::string> finish_graph() override { return "key" + std::to_string(graphs_++); }
  Status commit() override {
    if (shelf_.commit_fails) return Status(Code::InvalidArgument, "No space left on device");
    shelf_.events.push_back("commit " + fs::path(path_).filename().string());
    shelf_.committed[path_] = bytes_;
    if (!path_.empty()) write_text(path_, bytes_);
    return {};
  }
  std::string take_bytes() override { return bytes_; }

 private:
  Result<std::uint32_t> add_blob(const BlobKey&, std::size_t size_bytes,
                                 FunctionRef<Status(std::span<std::byte>)> fill) override {
    std::string blob(size_bytes, '\0');
    SDX_TRY(fill(std::as_writable_bytes(std::span(blob))));
    bytes_ += blob;
    return blobs_++;
  }
  Result<std::uint32_t> add_source(const Tensor&, const WeightOrigin&, std::string_view) override {
    return blobs_++;
  }
  void set_program(std::vector<std::byte>) override {}

  Shelf& shelf_;
  std::string path_;
  std::string bytes_;
  std::uint32_t blobs_ = 0;
  int graphs_ = 0;
};

/// A folder with a model y = Relu(x + w) - v, and who compiles it.
struct Workshop {
  TemporaryFolder folder;
  std::shared_ptr<KeepingProvider> provider = std::make_shared<KeepingProvider>();
  Environment environment;
  SessionOptions session;
  ContextOptions context;
  Shelf shelf;
  std::string source;
  std::string target;

  Workshop() {
    environment.add_provider(provider);
    source = write_text(folder / "m.onnx", bytes());
    target = folder / "m_ctx.onnx";
    context.model_path = target;
    session.optimization_level = 0;
  }

  static std::string bytes() {
    const Type type = Type::tensor(DType::Float32, Shape{2});
    const std::string w = tensor("w", DType::Float32, {2}, raw_data(raw<float>({1.25F, 2.5F})));
    const std::string v = tensor("v", DType::Float32, {2}, raw_data(raw<float>({3, 4})));
    return model(input("x", type) + initializer(w) + initializer(v) +
                     node("Add", {"x", "w"}, {"a"}) + node("Relu", {"a"}, {"b"}) +
                     node("Sub", {"b", "v"}, {"y"}) + output("y", type),
                 opset("", 20) + entry(model_field::kMetadata, "author", "nobody"));
  }

  Status compile() {
    SDX_ASSIGN(Model model, read_model(source));
    SDX_TRY(check_not_compiled(model));
    const auto sources = source_files(model);
    SDX_TRY(prepare_model(model, session));
    name_borders(model.graph);
    ThreadPool pool(ThreadPoolOptions{1});
    PlacedModel placed(std::move(model), environment, session, pool);
    SDX_TRY(place_model(placed));
    SDX_ASSIGN(const auto parts, compile_parts(placed, [&](const PlannedPart& part) {
                 return part.provider < placed.own_providers.size();
               }));
    return write_context_model(
        placed, parts, sources, context,
        [&](const std::string& path) -> Result<std::unique_ptr<ContainerWriter>> {
          return std::unique_ptr<ContainerWriter>(std::make_unique<ShelfWriter>(shelf, path));
        });
  }

  Model compiled() {
    const Status status = compile();
    REQUIRE_MESSAGE(status.ok(), status.to_string());
    auto read = read_model(target);
    REQUIRE_MESSAGE(read.ok(), read.status().to_string());
    return std::move(read).value();
  }

  /// Names of the files, in order.
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& file : fs::directory_iterator(folder.path())) {
      names.push_back(file.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }
};

std::vector<std::string> operators(const Model& model) {
  std::vector<std::string> names;
  const auto order = model.graph.topological_order();
  REQUIRE(order.ok());
  for (const NodeId id : *order) names.push_back(model.graph.node(id).op_type);
  return names;
}

const Node& only_node(const Model& model) {
  const auto order = model.graph.topological_order();
  REQUIRE(order.ok());
  REQUIRE(order->size() == 1);
  return model.graph.node(order->front());
}

std::string metadata(const Model& model, const std::string& key) {
  for (const auto& [name, value] : model.metadata) {
    if (name == key) return value;
  }
  return "(none)";
}

ProviderMaker making(std::vector<std::string> operators, bool makes_nodes = true) {
  return [=](const CompileOptions&) -> Result<Providers> {
    return Providers{std::make_shared<MakingProvider>(operators, makes_nodes)};
  };
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a model that the built-in provider runs becomes one node that names its data") {
  Workshop shop;
  shop.session.entries["ep.context_node_name_prefix"] = "left_";
  shop.context.name_prefix = "left_";
  const Model model = shop.compiled();
  const Node& node = only_node(model);
  CHECK(node.op_type == "EPContext");
  CHECK(node.domain == "com.microsoft");
  CHECK(node.name == "left_key0");
  CHECK(node.attributes.get_string("partition_name", "") == "left_key0");
  CHECK(node.attributes.get_string("source", "") == "KeepingSource");
  CHECK(node.attributes.get_int("main_context", -1) == 1);
  CHECK(node.attributes.get_int("embed_mode", -1) == 0);
  CHECK(node.attributes.get_string("ep_cache_context", "") == "sardonyx_weights.bin");
  CHECK(node.attributes.get_string("onnx_model_filename", "") == "m.onnx");
  CHECK(model.opset("com.microsoft") == 1);
  CHECK(model.graph.value(model.graph.inputs().at(0)).name == "x");
  CHECK(model.graph.value(model.graph.outputs().at(0)).name == "y");
  CHECK(metadata(model, "author") == "nobody");
  CHECK(metadata(model, "weightless_mode") == "(none)");
  // The weights are in the data, and not in the model.
  const std::string weight = raw<float>({1.25F, 2.5F});
  CHECK(!contains_text(read_text(shop.target), weight));
  CHECK(contains_text(shop.shelf.committed.at(shop.folder / "sardonyx_weights.bin"), weight));
  CHECK(shop.shelf.events == Names{"graph m_ctx.onnx m.onnx*", "commit sardonyx_weights.bin"});
}

TEST_CASE("parts of other providers become the nodes that those make, and the rest stays") {
  Workshop shop;
  shop.session.own_providers.push_back(making({"Add"}));
  const Model model = shop.compiled();
  CHECK(operators(model) == Names{"EPContext", "Relu", "Sub"});
  CHECK(metadata(model, "ep_compatibility_info.MakingProvider") == "fits me");
  // The initializer of the part is gone, the other one stays.
  CHECK(!contains_text(read_text(shop.target), raw<float>({1.25F, 2.5F})));
  CHECK(contains_text(read_text(shop.target), raw<float>({3, 4})));
  CHECK(shop.files() == Names{"m.onnx", "m_ctx.onnx"});
}

TEST_CASE("parts of the built-in provider beside others are compiled when that is asked for") {
  Workshop shop;
  shop.session.own_providers.push_back(making({"Relu"}));
  shop.session.entries["sardonyx.compile_cpu_parts"] = "1";
  const Model model = shop.compiled();
  CHECK(operators(model) == Names{"EPContext", "EPContext", "EPContext"});
  CHECK(shop.shelf.events == Names{"graph m_ctx.onnx m.onnx*", "graph m_ctx.onnx m.onnx*",
                                   "commit sardonyx_weights.bin"});
}

TEST_CASE("a provider that makes no nodes leaves its nodes as they are") {
  Workshop shop;
  shop.session.own_providers.push_back(making({"Add"}, false));
  CHECK(operators(shop.compiled()) == Names{"Add", "Relu", "Sub"});
}

TEST_CASE("a model of which nothing was compiled is a copy, an error or not written, as asked") {
  Workshop shop;
  shop.session.own_providers.push_back(making({"Add"}, false));
  shop.context.needs_compiled_nodes = true;
  const Status none = shop.compile();
  REQUIRE(!none.ok());
  CHECK(contains_text(none.to_string(), "Unable to compile any nodes. Check that the session"));
  shop.context.needs_compiled_nodes = false;
  shop.context.skips_plain_copy = true;
  CHECK(shop.compile().ok());
  CHECK(shop.files() == Names{"m.onnx"});
}

TEST_CASE("the data of a compiled model can stand in it") {
  Workshop shop;
  shop.context.embeds = true;
  const Model model = shop.compiled();
  const Attributes& attributes = only_node(model).attributes;
  CHECK(attributes.get_int("embed_mode", -1) == 1);
  CHECK(attributes.get_string("ep_cache_context", "") ==
        raw<float>({1.25F, 2.5F}) + raw<float>({3, 4}));
  CHECK(shop.files() == Names{"m.onnx", "m_ctx.onnx"});
}

TEST_CASE("the data of a compiled model can go to the caller") {
  Workshop shop;
  std::string name;
  std::size_t size_bytes = 0;
  shop.context.write_data = [&](const std::string& given, std::span<const std::byte> bytes) {
    name = given;
    size_bytes = bytes.size();
    return Status();
  };
  const Model model = shop.compiled();
  CHECK(only_node(model).attributes.get_string("ep_cache_context", "") == name);
  CHECK(size_bytes == 16);
  CHECK(shop.files() == Names{"m.onnx", "m_ctx.onnx"});
  shop.context.embeds = true;
  const Status both = shop.compile();
  REQUIRE(!both.ok());
  CHECK(contains_text(both.to_string(), "embedded"));
}

TEST_CASE("the file of compiled data is named after what the caller says") {
  Workshop shop;
  fs::create_directory(shop.folder / "data");
  shop.context.data_folder = shop.folder / "data/";
  shop.context.data_name = "other.onnx";
  const Model model = shop.compiled();
  CHECK(only_node(model).attributes.get_string("ep_cache_context", "") ==
        "data/other_sardonyx.bin");
  shop.context.data_folder = shop.folder / "../";
  const Status outside = shop.compile();
  REQUIRE(!outside.ok());
  CHECK(contains_text(outside.to_string(), "should stand in the folder of the compiled model"));
}

TEST_CASE("a source is never overwritten, by whatever name") {
  Workshop shop;
  const std::string before = read_text(shop.source);
  fs::create_symlink(shop.source, shop.folder / "soft.onnx");
  fs::create_hard_link(shop.source, shop.folder / "hard.onnx");
  for (const char* name : {"m.onnx", "soft.onnx", "hard.onnx", "./m.onnx"}) {
    shop.context.model_path = shop.folder / name;
    const Status status = shop.compile();
    REQUIRE_MESSAGE(!status.ok(), name);
    CHECK(contains_text(status.to_string(), "would overwrite its own source"));
  }
  // Nor by initializers or data.
  shop.context.model_path = shop.target;
  shop.context.write.external_data_file = "hard.onnx";
  CHECK(!shop.compile().ok());
  shop.context.write.external_data_file.clear();
  fs::create_hard_link(shop.source, shop.folder / "sardonyx_weights.bin");
  CHECK(!shop.compile().ok());
  CHECK(read_text(shop.source) == before);
  CHECK(shop.files() == Names{"hard.onnx", "m.onnx", "sardonyx_weights.bin", "soft.onnx"});
}

TEST_CASE("what goes wrong leaves nothing behind, and what stood there as it was") {
  Workshop shop;
  write_text(shop.target, "precious");
  SUBCASE("compiling") { shop.provider->fails = true; }
  SUBCASE("the data cannot appear") { shop.shelf.commit_fails = true; }
  SUBCASE("the caller does not take initializers") {
    shop.context.before_commit = [] { return Status(Code::Runtime, "no memory for them"); };
  }
  SUBCASE("the work is cancelled") {
    shop.session.cancel = std::make_shared<std::atomic<bool>>(true);
  }
  CHECK(!shop.compile().ok());
  CHECK(read_text(shop.target) == "precious");
  CHECK(shop.files() == Names{"m.onnx", "m_ctx.onnx"});
}

TEST_CASE("a listener hears of every stage and can stop each, with nothing left behind") {
  static const Names kStages{"read", "check", "optimize", "compile", "write", "ready"};
  struct Listener {
    Names heard;
    std::string stop_at;
    static int report(void* self, const char* stage, double, double) {
      auto* listener = static_cast<Listener*>(self);
      listener->heard.emplace_back(stage);
      return stage == listener->stop_at ? 1 : 0;
    }
  };
  for (const std::string& stage : kStages) {
    // Nothing is stored, so that no container is needed.
    Workshop shop;
    shop.session.own_providers.push_back(making({"Add", "Relu", "Sub"}));
    Listener listener{{}, stage};
    shop.session.progress = {&Listener::report, &listener};
    const Status status =
        compile_to_model(shop.environment, {shop.source, {}, nullptr}, shop.session, shop.context);
    if (stage == "ready") {
      CHECK(status.ok());
      CHECK(listener.heard == kStages);
      continue;
    }
    REQUIRE_MESSAGE(!status.ok(), stage);
    CHECK(status.code() == Code::Cancelled);
    CHECK(shop.files() == Names{"m.onnx"});
  }
}

TEST_CASE("a weightless model says so") {
  Workshop shop;
  shop.session.entries["ep.enable_weightless_mode"] = "2";
  CHECK(metadata(shop.compiled(), "weightless_mode") == "2");
}

TEST_CASE("a compiled model is not compiled again") {
  Workshop shop;
  (void)shop.compiled();
  shop.source = shop.target;
  shop.context.model_path = shop.folder / "again.onnx";
  const Status status = shop.compile();
  REQUIRE(!status.ok());
  CHECK(contains_text(status.to_string(), "Please ensure the input model is not already compiled"));
}

TEST_CASE("a compiled model is named after its source unless the options name it") {
  CHECK(context_path_of("m.onnx") == "m_ctx.onnx");
  CHECK(context_path_of("folder.v1/m.onnx") == "folder.v1/m_ctx.onnx");
  CHECK(context_path_of("folder.v1/m") == "folder.v1/m_ctx.onnx");
  CHECK(context_path_of("m.v2.onnx") == "m.v2_ctx.onnx");
  SessionOptions options;
  CHECK(!context_options_of(options, "m.onnx")->has_value());
  options.entries["ep.context_enable"] = "1";
  CHECK((*context_options_of(options, "m.onnx"))->model_path == "m_ctx.onnx");
  const auto nameless = context_options_of(options, "");
  REQUIRE(!nameless.ok());
  CHECK(contains_text(nameless.status().to_string(), "without a valid location"));
  options.entries["ep.context_file_path"] = "c.onnx";
  options.entries["ep.context_embed_mode"] = "1";
  CHECK((*context_options_of(options, ""))->model_path == "c.onnx");
  CHECK((*context_options_of(options, ""))->embeds);
}

TEST_CASE("places where a model cannot stand are refused before any work") {
  const TemporaryFolder folder;
  ContextOptions options;
  const auto error = [&](const std::string& path) {
    options.model_path = path;
    const Status status = check_context_output(options);
    return status.ok() ? "" : status.to_string();
  };
  CHECK(error(folder / "new.onnx") == "");
  CHECK(error("") == "");
  CHECK(error(folder.path().string()) == "context_file_path should not point to a folder.");
  CHECK(error(folder / "") == "context_file_path should not point to a folder.");
  CHECK(error(folder / "missing/x_ctx.onnx") ==
        "open file \"" + (folder / "missing/x_ctx.onnx") + "\" failed: No such file or directory");
  const std::string there = write_text(folder / "a_ctx.onnx", "x");
  CHECK(error(there) == "");
  options.keeps_existing = true;
  CHECK(error(there) == "Failed to generate EP context model since the file '\"" + there +
                            "\"' exists already. Please remove the EP context model if you want "
                            "to re-generate it.");
}
