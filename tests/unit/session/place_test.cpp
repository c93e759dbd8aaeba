#include "session/place.h"

#include <algorithm>

#include "base/log.h"
#include "session/compile.h"
#include "session/plan.h"
#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

/// A device that runs the operators on its list, all it is offered as one part if it fuses; the CPU
/// provider does the work.
class FakeGpu final : public Provider {
 public:
  FakeGpu(std::uint32_t ordinal, std::vector<std::string> ops, bool is_fused)
      : ordinal_(ordinal),
        ops_(std::move(ops)),
        is_fused_(is_fused),
        cpu_(make_cpu_provider(std::make_shared<WeightStore>())) {}

  std::string_view name() const override { return "FakeExecutionProvider"; }
  std::vector<DeviceDescription> devices() const override {
    return {{DeviceType::Gpu, "NVIDIA", 0x10de, ordinal_, 0}};
  }
  bool can_run(const Graph& graph, NodeId id, std::string*) const override {
    return std::find(ops_.begin(), ops_.end(), graph.node(id).op_type) != ops_.end();
  }
  Result<std::vector<NodeGroup>> offer(const Model& model,
                                       std::span<const NodeId> free) const override {
    if (!is_fused_) return Provider::offer(model, free);
    NodeGroup all{{}, true};
    for (const NodeId id : free) {
      if (can_run(model.graph, id, nullptr)) all.nodes.push_back(id);
    }
    if (all.nodes.empty()) return std::vector<NodeGroup>();
    return std::vector{all};
  }
  Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                            const CompileOptions& options) const override {
    return cpu_->compile(std::move(graph), options);
  }

 private:
  std::uint32_t ordinal_;
  std::vector<std::string> ops_;
  bool is_fused_;
  std::unique_ptr<Provider> cpu_;
};

ProviderMaker gpu(std::uint32_t ordinal, bool is_fused = false,
                  std::vector<std::string> ops = {"Relu", "Neg", "Add"}) {
  return [=](const CompileOptions&) -> Result<Providers> {
    return Providers{std::make_shared<FakeGpu>(ordinal, ops, is_fused)};
  };
}

std::shared_ptr<Environment> cpu_environment() {
  auto environment = std::make_shared<Environment>();
  environment->add_provider(make_cpu_provider(environment->weights()));
  return environment;
}

/// layers.0/Relu -> layers.1/Neg -> ... in turn, `count` nodes on x of two elements.
Model chain(int count) {
  SmallGraph small;
  ValueId value = small.input("x", {2});
  for (int i = 0; i < count; ++i) {
    value = small.node(i % 2 == 0 ? "Relu" : "Neg", {value});
    Node& node = small.graph.node(small.graph.value(value).producer);
    node.name = fmt::format("/model/layers.{}/{}", i, node.op_type);
  }
  small.output(value);
  Model model;
  model.graph = std::move(small.infer().graph);
  return model;
}

struct Placed {
  Status status;
  Placement placement;
  std::vector<float> result;
  std::vector<std::string> warnings;

  /// "gpu:0 gpu:0 cpu": by node.
  std::string devices() const {
    std::string text;
    for (const PlacedNode& node : placement.nodes) {
      const PlacedDevice& device = placement.devices[node.device];
      text += text.empty() ? "" : " ";
      text += device.provider == "CPUExecutionProvider"
                  ? "cpu"
                  : fmt::format("gpu:{}", *device.devices.front().ordinal);
    }
    return text;
  }
};

Placed place(const Model& model, std::vector<ProviderMaker> makers, const std::string& key,
             const std::string& rules) {
  SessionOptions options;
  options.own_providers = std::move(makers);
  if (!key.empty()) options.entries[key] = rules;
  ThreadPool pool(ThreadPoolOptions{1});
  Placed placed;
  set_log_sink([&](Severity severity, std::string_view message) {
    if (severity == Severity::Warning) placed.warnings.emplace_back(message);
  });
  auto compiled = compile_model(model, *cpu_environment(), options, pool);
  set_log_sink({});
  if (!compiled.ok()) {
    placed.status = std::move(compiled).take_status();
    return placed;
  }
  placed.placement = std::move(compiled->placement);
  std::mt19937_64 random(1);
  RunState state{pool, nullptr, nullptr, &random};
  std::vector<Datum> outputs(1);
  placed.status =
      compiled->compiled->run(std::vector<Datum>{float_tensor({2}, {3, -1})}, outputs, state);
  if (placed.status.ok()) placed.result = values_of<float>(outputs[0]);
  return placed;
}

constexpr const char* kNames = "session.name_based_layer_assignment";
constexpr const char* kPlacement = "sardonyx.placement";

}  // namespace

TEST_CASE("without rules the first device takes what it runs") {
  const Placed placed = place(chain(4), {gpu(0, false, {"Relu"}), gpu(1, false, {"Neg"})}, "", "");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  CHECK(placed.devices() == "gpu:0 gpu:1 gpu:0 gpu:1");
  CHECK(placed.placement.nodes[0].reason == PlacementReason::Capability);
  CHECK(placed.placement.copies.size() == 3);
  CHECK(placed.warnings.empty());
}

TEST_CASE("rules put layers on the devices that they name, whatever the order of the devices") {
  for (const bool is_fused : {false, true}) {
    const std::vector<ProviderMaker> makers = {gpu(0, is_fused), gpu(1, is_fused)};
    const Placed placed =
        place(chain(6), makers, kNames, "gpu:1(layers.0/, layers.1/, layers.4/); cpu(layers.3/)");
    REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
    CHECK(placed.devices() == "gpu:1 gpu:1 gpu:0 cpu gpu:1 gpu:0");
    CHECK(placed.placement.nodes[0].reason == PlacementReason::Rule);
    CHECK(placed.placement.nodes[2].reason == PlacementReason::Capability);
    CHECK(placed.placement.rules[1].kept == 1);
    CHECK(placed.placement.copies.size() == 4);
    CHECK(placed.result == std::vector<float>{0, 0});
  }
}

TEST_CASE("a device that fuses all it sees gets parts that do not wait for themselves") {
  const Placed placed =
      place(chain(7), {gpu(0, true)}, kNames, "cpu(layers.1/, layers.3/, layers.5/)");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  CHECK(placed.devices() == "gpu:0 cpu gpu:0 cpu gpu:0 cpu gpu:0");
}

TEST_CASE("a node that its device does not run goes elsewhere, and says so") {
  const Placed placed =
      place(chain(2), {gpu(0), gpu(1, false, {"Relu"})}, kNames, "gpu:1(layers.)");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  CHECK(placed.devices() == "gpu:1 cpu");
  CHECK(placed.placement.nodes[1].reason == PlacementReason::Fallback);
  CHECK(placed.placement.nodes[1].why_not == "gpu:1 does not take Neg");
  CHECK(placed.placement.rules[0].kept == 1);
  CHECK(placed.placement.rules[0].lost == 1);
}

TEST_CASE("a device before the one that refused a node may have it when nobody else does") {
  Model model = chain(2);
  model.graph.node(1).op_type = "Relu";
  model.graph.node(1).domain = "unknown";
  model.graph.node(1).name = "/model/layers.1/Relu";
  const Placed placed = place(model, {gpu(0), gpu(1, false, {"Neg"})}, kNames, "gpu:1(layers.1/)");
  // The processor has no such operator: the first device is asked again.
  REQUIRE_MESSAGE(placed.status.code() != Code::Unsupported, placed.status.to_string());
}

TEST_CASE("rules for devices that are not there are warned about and passed over") {
  const Placed placed = place(chain(2), {}, kNames, "npu(layers.0/)");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  CHECK(placed.devices() == "cpu cpu");
  REQUIRE(placed.warnings.size() == 1);
  CHECK(placed.warnings[0].find("npu") != std::string::npos);
  CHECK(placed.placement.warnings == placed.warnings);
}

TEST_CASE("a pattern that stands in no name is told with names that are near") {
  const Placed placed = place(chain(2), {}, kNames, "cpu(layers.99/)");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  REQUIRE(placed.warnings.size() == 1);
  CHECK(placed.warnings[0].find("layers.99/") != std::string::npos);
  CHECK_MESSAGE(placed.warnings[0].find("goes from 0 to 1") != std::string::npos,
                placed.warnings[0]);
}

TEST_CASE("ranges share a chain between two devices, and only the cut is copied") {
  const Placed placed = place(chain(32), {gpu(0), gpu(1)}, kPlacement,
                              "gpu:0(layers.[0-15]/); gpu:1(layers.[16-31]/)");
  REQUIRE_MESSAGE(placed.status.ok(), placed.status.to_string());
  REQUIRE(placed.placement.copies.size() == 1);
  CHECK(placed.placement.copies[0].bytes == 8);
  CHECK(placed.placement.devices[0].node_count == 16);
  CHECK(placed.placement.devices[1].node_count == 16);
}

TEST_CASE("strict rules that cannot be kept are errors that name the node and the reason") {
  const std::vector<ProviderMaker> makers = {gpu(0, false, {"Relu"})};
  const Placed refused = place(chain(2), makers, kPlacement, "strict; gpu:0(layers.)");
  CHECK(refused.status.code() == Code::InvalidArgument);
  CHECK_MESSAGE(refused.status.to_string().find(
                    "node '/model/layers.1/Neg' (Neg): gpu:0 does not") != std::string::npos,
                refused.status.to_string());
  CHECK(place(chain(2), makers, kPlacement, "strict; gpu:0(layers.0/)").status.ok());
}

TEST_CASE("rules for nodes in bodies are told to have no effect") {
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId condition = small.input("condition", {}, DType::Bool);
  const auto branch = [&](const std::string& op) {
    auto graph = std::make_shared<Graph>();
    Node node;
    node.op_type = op;
    node.opset = 18;
    node.name = "body/" + op;
    const ValueId own_x = graph->capture(x, "x", Type::tensor(DType::Float32, Shape{2}));
    node.inputs = {own_x};
    node.outputs = {graph->add_value("made")};
    graph->add_output(node.outputs[0]);
    graph->add_node(std::move(node));
    return Attribute(std::move(graph));
  };
  small.output(small.node("If", {condition},
                          with({{"then_branch", branch("Relu")}, {"else_branch", branch("Neg")}})));
  Model model;
  model.graph = std::move(small.infer().graph);
  for (const bool is_strict : {false, true}) {
    SessionOptions options;
    options.own_providers = {gpu(0)};
    options.entries[kPlacement] =
        std::string(is_strict ? "strict; " : "") + "gpu:0(body/Relu); cpu(body/Neg)";
    ThreadPool pool(ThreadPoolOptions{1});
    const auto environment = cpu_environment();
    PlacedModel placed(model, *environment, options, pool);
    set_log_sink([](Severity, std::string_view) {});
    const Status status = place_model(placed);
    set_log_sink({});
    CHECK(status.ok() != is_strict);
    if (is_strict) continue;
    REQUIRE(placed.placement.warnings.size() == 1);
    CHECK(placed.placement.warnings[0].find("'gpu:0(body/Relu)' takes 1 nodes inside bodies, such "
                                            "as node 'body/Relu' (Relu)") != std::string::npos);
  }
}

TEST_CASE("the processor's name moves nodes away from another provider on it") {
  const auto other = [](const CompileOptions&) -> Result<Providers> {
    class OnCpu final : public Provider {
     public:
      std::string_view name() const override { return "OtherExecutionProvider"; }
      std::vector<DeviceDescription> devices() const override {
        return {{DeviceType::Cpu, "Intel", 0x8086, std::nullopt, 0}};
      }
      bool can_run(const Graph&, NodeId, std::string*) const override { return true; }
      Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                                const CompileOptions& options) const override {
        return make_cpu_provider(std::make_shared<WeightStore>())
            ->compile(std::move(graph), options);
      }
    };
    return Providers{std::make_shared<OnCpu>()};
  };
  SessionOptions options;
  options.own_providers = {other};
  options.entries[kNames] = "cpu(layers.1/)";
  ThreadPool pool(ThreadPoolOptions{1});
  const auto environment = cpu_environment();
  PlacedModel model(chain(2), *environment, options, pool);
  REQUIRE(place_model(model).ok());
  CHECK(model.placement.nodes[0].device == 0);
  CHECK(model.placement.nodes[1].device == 1);
}

TEST_CASE("rules that cannot be read fail the session") {
  const Placed placed = place(chain(2), {}, kNames, "cpu(layers.0/");
  CHECK(placed.status.code() == Code::InvalidArgument);
  CHECK(placed.status.to_string().find("Missing ')' in entry: cpu(layers.0/") != std::string::npos);
}

namespace {

/// Four products of 4 KiB of weights each, one after the other.
Model products() {
  SmallGraph small;
  ValueId value = small.input("x", {1, 32});
  for (int i = 0; i < 4; ++i) {
    value = small.node("MatMul", {value, small.constant(random_floats({32, 32}))});
    small.graph.node(small.graph.value(value).producer).name = fmt::format("layers.{}/mm", i);
  }
  small.output(value);
  Model model;
  model.graph = std::move(small.infer().graph);
  return model;
}

struct Budgeted {
  Status status;
  Placement placement;
  std::string devices() const {
    std::string text;
    for (const PlacedNode& node : placement.nodes) {
      text += (text.empty() ? "" : " ") + std::to_string(node.device);
    }
    return text;
  }
};

/// With two devices of the same kind before the processor.
Budgeted budgeted(const std::string& budget, const std::string& rules = "") {
  SessionOptions options;
  options.own_providers = {gpu(0, true, {"MatMul"}), gpu(1, true, {"MatMul"})};
  options.entries["session.resource_partitioning_settings"] = budget;
  options.entries[kPlacement] = rules;
  ThreadPool pool(ThreadPoolOptions{1});
  const auto environment = cpu_environment();
  PlacedModel placed(products(), *environment, options, pool);
  Budgeted result;
  set_log_sink([](Severity, std::string_view) {});
  result.status = place_model(placed);
  set_log_sink({});
  result.placement = std::move(placed.placement);
  return result;
}

}  // namespace

TEST_CASE("a device takes what it has room for, the next one the rest, and it says why") {
  // A product takes 1.5 times its 4096 + 128 bytes where nobody says better: 6336.
  const Budgeted fits = budgeted("gpu:0(25344), gpu:1(0)");
  REQUIRE_MESSAGE(fits.status.ok(), fits.status.to_string());
  CHECK(fits.devices() == "0 0 0 0");
  CHECK(fits.placement.devices[0].limit_bytes == 25344U);
  const Budgeted short_of_one = budgeted("gpu:0(25343), gpu:1(1MiB)");
  REQUIRE_MESSAGE(short_of_one.status.ok(), short_of_one.status.to_string());
  CHECK(short_of_one.devices() == "0 0 0 1");
  const PlacedNode& moved = short_of_one.placement.nodes[3];
  CHECK(moved.reason == PlacementReason::Budget);
  CHECK_MESSAGE(moved.why_not.find("gpu:0 has") != std::string::npos, moved.why_not);
  const Budgeted small = budgeted("gpu:0(13000), gpu:1(7000)");
  REQUIRE_MESSAGE(small.status.ok(), small.status.to_string());
  CHECK(small.devices() == "0 0 1 2");
}

TEST_CASE("rules and budgets combine: a ruled node that its device has no room for goes on") {
  const Budgeted ruled = budgeted("gpu:1(7000)", "gpu:1(layers.[2-3]/)");
  REQUIRE_MESSAGE(ruled.status.ok(), ruled.status.to_string());
  CHECK(ruled.devices() == "0 0 1 0");
  CHECK(ruled.placement.nodes[2].reason == PlacementReason::Rule);
  CHECK(ruled.placement.nodes[3].reason == PlacementReason::Budget);
}

TEST_CASE("a model that fits nowhere is refused with what it needs") {
  const Budgeted none = budgeted("gpu:0(1), gpu:1(1), cpu(1)");
  CHECK(none.status.code() == Code::InvalidArgument);
  CHECK_MESSAGE(
      none.status.to_string().find("gpu:0 may hold 1 bytes, all that it runs takes 24.75 KiB") !=
          std::string::npos,
      none.status.to_string());
}

TEST_CASE("a budget for a device that is not there has no effect and is warned about") {
  SessionOptions options;
  options.entries["session.resource_cuda_partitioning_settings"] = "1024,";
  ThreadPool pool(ThreadPoolOptions{1});
  const auto environment = cpu_environment();
  PlacedModel placed(products(), *environment, options, pool);
  set_log_sink([](Severity, std::string_view) {});
  const Status status = place_model(placed);
  set_log_sink({});
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  REQUIRE(placed.placement.warnings.size() == 1);
  CHECK(placed.placement.warnings[0].find("'cuda'") != std::string::npos);
}
