// What the host checks of compiled models before and after a plugin sees them.
#include "base/log.h"
#include "plugin_host/context_node.h"
#include "plugin_host/weightless.h"
#include "unit/plugin_host/tiny_session.h"
#include "unit/temporary_folder.h"

using namespace sardonyx;
using namespace sardonyx::plugin_host;

namespace {

constexpr const char* kName = "TestEP";

/// The messages of one severity while it lives.
struct Heard {
  explicit Heard(Severity wanted) {
    set_log_level(Severity::Info);
    set_log_sink([this, wanted](Severity severity, std::string_view message) {
      if (severity == wanted) messages.emplace_back(message);
    });
  }
  ~Heard() {
    set_log_sink(nullptr);
    set_log_level(Severity::Warning);
  }
  Heard(const Heard&) = delete;
  Heard& operator=(const Heard&) = delete;
  std::vector<std::string> messages;
};

/// A part y = Relu(x).
SmallGraph relu() {
  SmallGraph small;
  small.output(small.node("Relu", {small.input("x", {2})}));
  small.graph.value(small.graph.outputs()[0]).name = "y";
  return small;
}

OrtNode* make_node(std::vector<const char*> inputs, std::vector<const char*> outputs) {
  OrtNode* node = nullptr;
  check_ok(api().GetModelEditorApi()->CreateNode("EPContext", "com.microsoft", "ctx", inputs.data(),
                                                 inputs.size(), outputs.data(), outputs.size(),
                                                 nullptr, 0, &node));
  return node;
}

ContextNode node_with_file(const std::string& file) {
  ContextNode node;
  node.name = "ctx";
  node.attributes = with({{"embed_mode", std::int64_t{0}}, {"ep_cache_context", file}});
  return node;
}

ContextEntries group_options(const std::string& output, bool stops) {
  ContextEntries options;
  options.makes_context = true;
  options.shares = true;
  options.stops_sharing = stops;
  options.file_path = output;
  return options;
}

/// A model with one EPContext node.
Model compiled_model(const std::string& path, Attributes attributes) {
  Model model;
  SmallGraph small;
  small.output(
      small.node("EPContext", {small.input("x", {2})}, std::move(attributes), 1, "com.microsoft"));
  model.graph = std::move(small.graph);
  model.path = path;
  return model;
}

Attributes qnn_node(const std::string& file, const std::string& partition) {
  return with({{"embed_mode", std::int64_t{0}},
               {"ep_cache_context", file},
               {"source", std::string("QNNExecutionProvider")},
               {"partition_name", partition}});
}

PromisedFiles::Time now() { return PromisedFiles::Time::clock::now(); }

}  // namespace

TEST_CASE("the node that a plugin made has the inputs and outputs of its part") {
  const SmallGraph part = relu();
  OrtNode* good = make_node({"x"}, {"y"});
  OrtNode* stranger = make_node({"x", "z"}, {"y"});
  OrtNode* lacking = make_node({"x"}, {"w"});
  const auto node = context_node_of(kName, good, part.graph);
  REQUIRE(node.ok());
  CHECK(node->op_type == "EPContext");
  CHECK(node->inputs == std::vector<std::string>{"x"});
  CHECK(node->outputs == std::vector<std::string>{"y"});
  CHECK(node->attributes.get_int("main_context", 7) == 1);
  CHECK(node->attributes.get_int("embed_mode", 7) == 1);
  CHECK(node->attributes.get_int("max_size", 7) == 0);
  const auto strange = context_node_of(kName, stranger, part.graph);
  REQUIRE_FALSE(strange.ok());
  CHECK(contains(strange.status().message(), "takes 'z'"));
  const auto incomplete = context_node_of(kName, lacking, part.graph);
  REQUIRE_FALSE(incomplete.ok());
  CHECK(contains(incomplete.status().message(), "does not make all outputs"));
  const auto missing = context_node_of(kName, nullptr, part.graph);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.status().message() == "TestEP: OrtEp::Compile() returned a NULL EPContext node.");
  for (OrtNode* made : {good, stranger, lacking}) api().ReleaseNode(made);
}

TEST_CASE("a file that a node names and nobody wrote is an error that names both") {
  const TemporaryFolder folder;
  const std::string output = folder / "m_ctx.onnx";
  PromisedFiles files;
  ContextEntries options = group_options(output, true);
  const Status missing = files.check(kName, node_with_file("m.bin"), options, "", now(), {});
  REQUIRE_FALSE(missing.ok());
  CHECK(contains(missing.message(), "'ctx'"));
  CHECK(contains(missing.message(), folder / "m.bin"));
  CHECK(contains(missing.message(), "ep.stop_share_ep_contexts"));
  write_text(folder / "m.bin", "data");
  CHECK(files.check(kName, node_with_file("m.bin"), options, "", now(), {}).ok());
  options.writes_by_callback = true;
  CHECK(files.check(kName, node_with_file("elsewhere"), options, "", now(), {}).ok());
}

TEST_CASE("a group may write its file with the last model; what it never writes is reported") {
  const TemporaryFolder folder;
  const ContextEntries goes_on = group_options(folder / "a_ctx.onnx", false);
  const ContextEntries ends = group_options(folder / "b_ctx.onnx", true);
  PromisedFiles files;
  SUBCASE("written at the end") {
    const Heard heard(Severity::Error);
    CHECK(files.check(kName, node_with_file("g.bin"), goes_on, "", now(), {}).ok());
    write_text(folder / "g.bin", "data");
    CHECK(files.check(kName, node_with_file("g.bin"), ends, "", now(), {}).ok());
    CHECK(heard.messages.empty());
  }
  SUBCASE("never written") {
    const Heard heard(Severity::Error);
    CHECK(files.check(kName, node_with_file("g.bin"), goes_on, "", now(), {}).ok());
    files.finish();
    REQUIRE(heard.messages.size() == 1);
    CHECK(contains(heard.messages[0], "a_ctx.onnx"));
    CHECK(contains(heard.messages[0], "g.bin"));
    files.finish();
    CHECK_MESSAGE(heard.messages.size() == 1, "once");
  }
  SUBCASE("a file of before is not what was promised") {
    const Heard heard(Severity::Error);
    write_text(folder / "g.bin", "old");
    std::filesystem::last_write_time(folder.path() / "g.bin", now() - std::chrono::hours(1));
    CHECK(files.check(kName, node_with_file("g.bin"), goes_on, "", now(), {}).ok());
    files.finish();
    CHECK(heard.messages.size() == 1);
  }
  SUBCASE("ended in place of the program") {
    const Heard heard(Severity::Error);
    int ended = 0;
    const auto end = [&] {
      ++ended;
      write_text(folder / "g.bin", "data");
      return Status();
    };
    CHECK(files.check(kName, node_with_file("g.bin"), goes_on, "", now(), end).ok());
    files.begin(group_options(folder / "c_ctx.onnx", false), "");
    CHECK_MESSAGE(ended == 0, "the group goes on in its folder");
    files.begin(group_options("elsewhere/c_ctx.onnx", false), "");
    CHECK(ended == 1);
    CHECK(heard.messages.empty());
  }
}

TEST_CASE("shared data cannot be embedded") {
  ContextEntries options = group_options("x", false);
  CHECK(check_context_entries(options).ok());
  options.embeds = true;
  CHECK(check_context_entries(options).code() == Code::InvalidArgument);
}

TEST_CASE("a compiled model whose data are not there says where they should be") {
  const TemporaryFolder folder;
  const Model model = compiled_model(folder / "m_ctx.onnx", qnn_node("gone.bin", "QNN_7_1_0"));
  const Status status = check_loadable(kName, model.graph, model, {});
  REQUIRE_FALSE(status.ok());
  CHECK(status.code() == Code::InvalidModel);
  CHECK(contains(status.message(), folder / "gone.bin"));
  ContextEntries options;
  options.reads_by_callback = true;
  CHECK(check_loadable(kName, model.graph, model, options).ok());
  const Model from_memory = compiled_model("", qnn_node("gone.bin", "QNN_7_1_0"));
  options.reads_by_callback = false;
  options.file_path = folder / "x_ctx.onnx";
  write_text(folder / "gone.bin", "QNN_7_1_0");
  CHECK(check_loadable(kName, from_memory.graph, from_memory, options).ok());
}

#if defined(__x86_64__)
TEST_CASE("data of QNN with graphs of other models are refused where QNN would crash on them") {
  const TemporaryFolder folder;
  const std::string path = folder / "m_ctx.onnx";
  const Model model = compiled_model(path, qnn_node("q.bin", "QNN_EP_77_1_0"));
  write_text(folder / "q.bin", "..QNN_EP_77_1_0\n..PICKLE/QNN_EP_77_1_0..");
  CHECK(check_loadable(kName, model.graph, model, {}).ok());
  write_text(folder / "q.bin", "..QNN_EP_77_1_0\n..QNN_EP_88_1_0..");
  const Status status = check_loadable(kName, model.graph, model, {});
  REQUIRE_FALSE(status.ok());
  CHECK(contains(status.message(), "QNN_EP_88_1_0"));
  CHECK(contains(status.message(), "ep.share_ep_contexts"));
}
#endif

namespace {

OrtWeightlessSupport g_answer = OrtWeightlessSupport_NONE;
int g_asked = 0;

OrtEp answering_ep(std::uint32_t version = 32) {
  OrtEp ep{};
  ep.ort_version_supported = version;
  ep.GetWeightlessSupport = [](const OrtEp*, OrtWeightlessSupport* support) noexcept -> OrtStatus* {
    ++g_asked;
    *support = g_answer;
    return nullptr;
  };
  return ep;
}

OrtEpDevice& device_with(OrtEpDevice& device, const std::string& key, const std::string& value) {
  static const OrtHardwareDevice processor{};
  device.device = &processor;
  if (!key.empty()) device.metadata.entries[key] = value;
  return device;
}

WeightlessRequest by_mode(Weightless mode) { return {mode, "ep.enable_weightless_mode"}; }
WeightlessRequest by_boolean() { return {Weightless::All, "ep.enable_weightless", true}; }

Result<WeightlessGrant> ask(OrtWeightlessSupport answer, const WeightlessRequest& request,
                            const std::string& key = "weightless_supported_modes",
                            const std::string& value = "all_or_external_only") {
  g_answer = answer;
  g_asked = 0;
  OrtEpDevice device;
  return ask_weightless("lib", answering_ep(), kName, {&device_with(device, key, value)}, request);
}

}  // namespace

TEST_CASE("the newest key of a device's metadata says what its provider can leave in the source") {
  OrtEpDevice device;
  CHECK(weightless_metadata(device).key.empty());
  device_with(device, "WeightlessSupport", "all");
  CHECK(weightless_metadata(device).is_proposal);
  CHECK(weightless_metadata(device).support == WeightlessSupport{false, true});
  device_with(device, "weightless_support", "external_only");
  CHECK_FALSE(weightless_metadata(device).is_proposal);
  CHECK(weightless_metadata(device).support == WeightlessSupport{true, false});
  device_with(device, "weightless_supported_modes", "all_or_external_only");
  CHECK(weightless_metadata(device).support == WeightlessSupport{true, true});
  device_with(device, "weightless_supported_modes", "a word of tomorrow");
  CHECK(weightless_metadata(device).support == WeightlessSupport{});
}

TEST_CASE("a mode that a device does not have is refused before the provider is made") {
  OrtEpDevice device;
  device_with(device, "weightless_support", "external_only");
  const std::vector<const OrtEpDevice*> devices{&device};
  CHECK(check_weightless_metadata(kName, devices, {}).ok());
  CHECK(check_weightless_metadata(kName, devices, by_mode(Weightless::ExternalOnly)).ok());
  CHECK(check_weightless_metadata(kName, devices, by_boolean()).ok());
  const Status status = check_weightless_metadata(kName, devices, by_mode(Weightless::All));
  REQUIRE_FALSE(status.ok());
  CHECK(status.message() ==
        "Weightless mode 'all' requested (ep.enable_weightless_mode=2) but EP 'TestEP' does not "
        "support it on OrtHardwareDevice{type=CPU, vendor_id=0, device_id=0, vendor=\"\"} (EP "
        "metadata 'weightless_support' = external_only).");
}

TEST_CASE("a provider is asked once, and only when something is wanted of it") {
  CHECK(ask(OrtWeightlessSupport_ALL, {})->mode == Weightless::None);
  CHECK(g_asked == 0);
  CHECK(ask(OrtWeightlessSupport_ALL, by_mode(Weightless::All))->mode == Weightless::All);
  CHECK(g_asked == 1);
}

TEST_CASE("what is granted is what was asked for, or for a boolean what there is") {
  constexpr auto kBoth = OrtWeightlessSupport_ALL_OR_EXTERNAL_ONLY;
  CHECK(ask(kBoth, by_mode(Weightless::ExternalOnly))->mode == Weightless::ExternalOnly);
  CHECK(ask(kBoth, by_boolean())->mode == Weightless::All);
  CHECK(ask(OrtWeightlessSupport_EXTERNAL_ONLY, by_boolean())->mode == Weightless::ExternalOnly);
  const auto refused = ask(OrtWeightlessSupport_EXTERNAL_ONLY, by_mode(Weightless::All));
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message() ==
        "Weightless mode requested (ep.enable_weightless_mode=2) but EP 'TestEP' does not support "
        "it on this device. Supported weightless modes: 'external_only'.");
  CHECK_FALSE(ask(OrtWeightlessSupport_NONE, by_boolean()).ok());
  const WeightlessRequest old{Weightless::ExternalOnly, "ep.enable_weightless_ep_context_nodes",
                              false, true};
  CHECK(ask(OrtWeightlessSupport_NONE, old)->mode == Weightless::None);
}

TEST_CASE("an answer that differs from the metadata is reported") {
  const Heard heard(Severity::Warning);
  CHECK(ask(OrtWeightlessSupport_ALL, by_mode(Weightless::All)).ok());
  REQUIRE(heard.messages.size() == 1);
  CHECK(contains(heard.messages[0], "returns 'all'"));
  CHECK(contains(heard.messages[0], "supports 'all_or_external_only'"));
}

TEST_CASE("constants stay inputs of a provider of the proposed contract that does without copies") {
  const auto mode = by_mode(Weightless::All);
  CHECK(ask(OrtWeightlessSupport_ALL, mode, "WeightlessSupport", "all")->keeps_constants);
  CHECK_FALSE(ask(OrtWeightlessSupport_ALL, mode, "weightless_support", "all")->keeps_constants);
  CHECK_FALSE(
      ask(OrtWeightlessSupport_EXTERNAL_ONLY, by_boolean(), "WeightlessSupport", "external_only")
          ->keeps_constants);
}

TEST_CASE("a provider of before the question is believed, one that cannot answer it is not") {
  OrtEpDevice device;
  const std::vector<const OrtEpDevice*> devices{&device_with(device, "weightless_support", "all")};
  const auto mode = by_mode(Weightless::All);
  const OrtEp old = answering_ep(28);
  g_asked = 0;
  CHECK(ask_weightless("lib", old, kName, devices, mode)->mode == Weightless::All);
  CHECK(g_asked == 0);
  OrtEp silent = answering_ep();
  silent.GetWeightlessSupport = nullptr;
  const auto refused = ask_weightless("lib", silent, kName, devices, mode);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == Code::Unsupported);
}
