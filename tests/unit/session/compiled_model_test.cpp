#include "session/compiled_model.h"

#include <doctest/doctest.h>

#include "base/log.h"
#include "session/weightless.h"
#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

SessionOptions entries(std::initializer_list<std::pair<const std::string, std::string>> given) {
  SessionOptions options;
  options.entries = given;
  return options;
}

Weightless mode_of(const SessionOptions& options) {
  const auto mode = requested_weightless(options);
  REQUIRE(mode.ok());
  return *mode;
}

/// Judges texts "old", "bad" and everything else.
class JudgingProvider final : public Provider {
 public:
  std::string_view name() const override { return "JudgingProvider"; }
  bool can_run(const Graph&, NodeId, std::string*) const override { return true; }
  Result<std::unique_ptr<Compiled>> compile(Graph, const CompileOptions&) const override {
    return Status(Code::Unsupported, "never");
  }
  Result<Compatibility> check_compatibility(const std::string& info) const override {
    if (info == "bad") return Compatibility::Unsupported;
    return info == "old" ? Compatibility::PreferRecompilation : Compatibility::Optimal;
  }
};

Model model_that_says(const std::string& info) {
  Model made;
  made.metadata = {{"ep_compatibility_info.JudgingProvider", info}};
  return made;
}

Status check(const std::string& info, const SessionOptions& options = {}) {
  const Providers providers{std::make_shared<JudgingProvider>()};
  return check_compiled_model(model_that_says(info), providers, options);
}

/// A model with one node that stands for a compiled part of "FooEP".
Model compiled_model() {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  small.output(small.node("EPContext", {x},
                          with({{"source", std::string("FooEP")}, {"more", std::string("z")}}), 1,
                          "com.microsoft"));
  Model made;
  made.ir_version = 9;
  made.opset_imports = {{"", 18}, {"com.microsoft", 1}};
  made.graph = std::move(small.graph);
  made.graph.node(0).name = "ctx0";
  return made;
}

}  // namespace

TEST_CASE("the mode of weightless comes from the first entry that is set") {
  const std::string mode = "ep.enable_weightless_mode";
  const std::string boolean = "ep.enable_weightless";
  const std::string old = "ep.enable_weightless_ep_context_nodes";
  CHECK(mode_of({}) == Weightless::None);
  CHECK(mode_of(entries({{mode, "0"}})) == Weightless::None);
  CHECK(mode_of(entries({{mode, "1"}})) == Weightless::ExternalOnly);
  CHECK(mode_of(entries({{mode, "2"}})) == Weightless::All);
  CHECK(mode_of(entries({{boolean, "1"}})) == Weightless::All);
  CHECK(mode_of(entries({{boolean, "true"}})) == Weightless::None);
  CHECK(mode_of(entries({{mode, "0"}, {boolean, "1"}})) == Weightless::None);
  CHECK(mode_of(entries({{mode, "1"}, {boolean, "1"}, {old, "1"}})) == Weightless::ExternalOnly);
  CHECK(mode_of(entries({{boolean, "0"}, {old, "1"}, {"ep.context_enable", "1"}})) ==
        Weightless::None);
  CHECK(mode_of(entries({{old, "1"}, {"ep.context_enable", "1"}})) == Weightless::ExternalOnly);
  CHECK_MESSAGE(mode_of(entries({{old, "1"}})) == Weightless::None, "only when compiling ahead");
}

TEST_CASE("a boolean takes what a provider can do, a mode is exact") {
  const auto boolean = weightless_request(entries({{"ep.enable_weightless", "1"}}));
  REQUIRE(boolean.ok());
  CHECK(boolean->takes_less);
  const auto mode = weightless_request(entries({{"ep.enable_weightless_mode", "2"}}));
  REQUIRE(mode.ok());
  CHECK_FALSE(mode->takes_less);
}

TEST_CASE("a mode that is none is refused with the modes that there are") {
  for (const char* wrong : {"3", "", " 1", "0x2", "all"}) {
    const auto mode = requested_weightless(entries({{"ep.enable_weightless_mode", wrong}}));
    REQUIRE_FALSE(mode.ok());
    CHECK(mode.status().code() == Code::InvalidArgument);
    CHECK(mode.status().message() ==
          std::string("Invalid value '") + wrong +
              "' for ep.enable_weightless_mode. Valid values are: \"0\" "
              "(OrtWeightlessSupport_NONE), \"1\" (OrtWeightlessSupport_EXTERNAL_ONLY), and \"2\" "
              "(OrtWeightlessSupport_ALL).");
  }
}

TEST_CASE("the source model is the bytes, or else the path, that the options have") {
  SessionOptions options = entries({{"ep.context_source_model_path", "source.onnx"}});
  CHECK(weightless_source(options).path == "source.onnx");
  CHECK(weightless_source(options).bytes.empty());
  const std::byte bytes[4] = {};
  options.weightless_source = bytes;
  CHECK(weightless_source(options).bytes.data() == bytes);
}

TEST_CASE("a compiled model is judged by the provider that it names") {
  CHECK(check("new").ok());
  const Status refused = check("bad");
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.message().starts_with(
      "Compiled model is not supported by execution provider: JudgingProvider"));
}

TEST_CASE("a model that should be compiled again is warned of, or refused when that is asked") {
  std::vector<std::string> warnings;
  set_log_sink([&](Severity severity, std::string_view message) {
    if (severity == Severity::Warning) warnings.emplace_back(message);
  });
  const Status passed = check("old");
  const SessionOptions strict = entries({{"session.fail_on_suboptimal_compiled_model", "1"}});
  const Status refused = check("old", strict);
  set_log_sink(nullptr);
  CHECK(passed.ok());
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("JudgingProvider") != std::string::npos);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.message().find("suboptimal") != std::string::npos);
}

TEST_CASE("a compiled model without weights is warned of when its source is nowhere named") {
  Model weightless = compiled_model();
  weightless.metadata = {{"weightless_mode", "2"}};
  std::vector<std::string> warnings;
  set_log_sink([&](Severity, std::string_view message) { warnings.emplace_back(message); });
  CHECK(check_compiled_model(weightless, {}, {}).ok());
  CHECK(check_compiled_model(weightless, {}, entries({{"ep.context_source_model_path", "s.onnx"}}))
            .ok());
  weightless.metadata = {{"weightless_mode", "1"}};
  CHECK(check_compiled_model(weightless, {}, {}).ok());
  set_log_sink(nullptr);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("ep.context_source_model_path") != std::string::npos);
}

TEST_CASE("a compiled part that nobody runs is named with its provider and those that are there") {
  const auto session = Session::load_model(make_environment(), compiled_model(), {});
  REQUIRE_FALSE(session.ok());
  CHECK(session.status().code() == Code::Unsupported);
  CHECK(session.status().message() ==
        "EPContext node generated by 'FooEP' is not compatible with any execution provider added "
        "to the session. EPContext node name: 'ctx0'. Available session execution providers: "
        "[CPUExecutionProvider].");
}
