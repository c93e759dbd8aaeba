#include <algorithm>
#include <map>

#include "session/compile.h"
#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

/// Takes the nodes whose names are on its list, one group of them fused, and has the CPU provider
/// run them.
class PickyProvider final : public Provider {
 public:
  PickyProvider(std::string name, std::vector<std::string> nodes, bool is_fused)
      : name_(std::move(name)),
        nodes_(std::move(nodes)),
        is_fused_(is_fused),
        cpu_(make_cpu_provider(std::make_shared<WeightStore>())) {}

  std::string_view name() const override { return name_; }
  bool can_run(const Graph& graph, NodeId id, std::string*) const override {
    return std::find(nodes_.begin(), nodes_.end(), graph.node(id).name) != nodes_.end();
  }
  Result<std::vector<NodeGroup>> offer(const Model& model,
                                       std::span<const NodeId> free) const override {
    auto groups = Provider::offer(model, free);
    for (NodeGroup& group : *groups) group.is_fused = is_fused_;
    return groups;
  }
  Result<std::unique_ptr<Compiled>> compile(Graph graph,
                                            const CompileOptions& options) const override {
    return cpu_->compile(std::move(graph), options);
  }

 private:
  std::string name_;
  std::vector<std::string> nodes_;
  bool is_fused_;
  std::unique_ptr<Provider> cpu_;
};

std::shared_ptr<Environment> cpu_environment() {
  auto environment = std::make_shared<Environment>();
  environment->add_provider(make_cpu_provider(environment->weights()));
  return environment;
}

ProviderMaker picky(const std::string& name, const std::vector<std::string>& nodes,
                    bool is_fused = false) {
  return [=](const CompileOptions&) -> Result<Providers> {
    return Providers{std::make_shared<PickyProvider>(name, nodes, is_fused)};
  };
}

Result<CompiledModel> compile(const Model& model, std::vector<ProviderMaker> makers) {
  SessionOptions options;
  options.own_providers = std::move(makers);
  ThreadPool pool(ThreadPoolOptions{1});
  return compile_model(model, *cpu_environment(), options, pool);
}

std::vector<Datum> run(const CompiledModel& model, const std::vector<Datum>& inputs,
                       std::size_t output_count) {
  ThreadPool pool(ThreadPoolOptions{1});
  std::mt19937_64 random(1);
  RunState state{pool, nullptr, nullptr, &random};
  std::vector<Datum> outputs(output_count);
  const Status status = model.compiled->run(inputs, outputs, state);
  REQUIRE_MESSAGE(status.ok(), status.to_string());
  return outputs;
}

/// A random graph of additions and products whose nodes are named n0, n1, ...
Model random_model(std::mt19937& random, std::size_t node_count) {
  SmallGraph small;
  std::vector<ValueId> values = {small.input("x", {3}), small.input("z", {3}),
                                 small.floats({3}, {1, 2, 3})};
  for (std::size_t i = 0; i < node_count; ++i) {
    const ValueId a = values[random() % values.size()];
    const ValueId b = values[random() % values.size()];
    const ValueId made = small.node(random() % 2 == 0 ? "Add" : "Sub", {a, b});
    small.graph.node(small.graph.value(made).producer).name = "n" + std::to_string(i);
    values.push_back(made);
  }
  small.graph.add_output(values.back());
  small.graph.add_output(values[3 + random() % node_count]);
  small.graph.add_output(values[random() % 2]);
  small.graph.add_output(values.back());
  Model model;
  model.graph = std::move(small.infer().graph);
  return model;
}

std::vector<Datum> feed() {
  return {float_tensor({3}, {1, 2, 3}), float_tensor({3}, {-2, 5, 0.5F})};
}

}  // namespace

TEST_CASE("a model cut at random among three providers computes what one does") {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    const std::size_t node_count = 1 + random() % 20;
    const Model model = random_model(random, node_count);
    std::vector<std::string> first;
    std::vector<std::string> second;
    for (std::size_t i = 0; i < node_count; ++i) {
      if (random() % 3 == 0) first.push_back("n" + std::to_string(i));
      if (random() % 3 == 0) second.push_back("n" + std::to_string(i));
    }
    auto whole = compile(model, {});
    auto cut = compile(model, {picky("first", first), picky("second", second)});
    REQUIRE(whole.ok());
    REQUIRE_MESSAGE(cut.ok(), cut.status().to_string());
    CHECK(cut->providers == std::vector<std::string>{"first", "second", "CPUExecutionProvider"});
    const auto expected = run(*whole, feed(), 4);
    const auto found = run(*cut, feed(), 4);
    for (std::size_t i = 0; i < 4; ++i)
      CHECK(values_of<float>(found[i]) == values_of<float>(expected[i]));
  }
}

TEST_CASE("parts write into the tensors that the caller gives") {
  std::mt19937 random(3);
  const Model model = random_model(random, 6);
  auto cut = compile(model, {picky("first", {"n0", "n3", "n5"})});
  REQUIRE(cut.ok());
  const auto expected = run(*cut, feed(), 4);
  ThreadPool pool(ThreadPoolOptions{1});
  RunState state{pool};
  std::vector<Datum> given;
  for (int i = 0; i < 4; ++i) given.emplace_back(*Tensor::allocate(DType::Float32, Shape{3}));
  std::vector<const void*> places;
  for (const Datum& datum : given) places.push_back(datum.tensor()->data());
  REQUIRE(cut->compiled->run(feed(), given, state).ok());
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(given[i].tensor()->data() == places[i]);
    CHECK(values_of<float>(given[i]) == values_of<float>(expected[i]));
  }
}

TEST_CASE("a subgraph's part gets what the branches capture") {
  SmallGraph small;
  const ValueId x = small.input("x", {3});
  const ValueId z = small.input("z", {3});
  const ValueId doubled = small.node("Add", {x, x});
  const ValueId zero = small.floats({}, {0});
  const ValueId sum =
      small.node("ReduceSum", {z, small.ints({0})}, with({{"keepdims", attribute(0)}}));
  const ValueId is_positive = small.node("Greater", {sum, zero});
  const auto branch = [&](const std::string& op) {
    Graph graph;
    const ValueId inner =
        graph.capture(doubled, small.graph.value(doubled).name, small.graph.value(doubled).type);
    Node node;
    node.op_type = op;
    node.opset = 18;
    node.inputs = {inner};
    node.outputs = {graph.add_value("branch_" + op, Type::tensor(DType::Float32, Shape{3}))};
    const ValueId made = node.outputs[0];
    graph.add_node(std::move(node));
    graph.add_output(made);
    return std::make_shared<Graph>(std::move(graph));
  };
  const ValueId y = small.node(
      "If", {is_positive}, with({{"then_branch", branch("Neg")}, {"else_branch", branch("Abs")}}));
  small.graph.node(small.graph.value(y).producer).name = "if";
  small.graph.add_output(y);
  Model model;
  model.graph = std::move(small.infer().graph);
  auto cut = compile(model, {picky("first", {"if"})});
  REQUIRE_MESSAGE(cut.ok(), cut.status().to_string());
  CHECK(cut->used_providers.size() == 2);
  CHECK(values_of<float>(run(*cut, feed(), 1)[0]) == std::vector<float>{-2, -4, -6});
}

TEST_CASE("a fused group that waits for itself is refused by its first node") {
  SmallGraph small;
  const ValueId x = small.input("x", {3});
  const ValueId a = small.node("Neg", {x});
  const ValueId b = small.node("Abs", {a});
  const ValueId c = small.node("Add", {a, b});
  small.graph.node(small.graph.value(a).producer).name = "first";
  small.graph.node(small.graph.value(b).producer).name = "between";
  small.graph.node(small.graph.value(c).producer).name = "last";
  small.graph.add_output(c);
  Model model;
  model.graph = std::move(small.infer().graph);
  auto cut = compile(model, {picky("fusing", {"first", "last"}, true)});
  REQUIRE(!cut.ok());
  CHECK(cut.status().to_string().find("node 'first' (Neg)") != std::string::npos);
}

TEST_CASE("a node that nobody takes is named") {
  SmallGraph small;
  small.graph.add_output(small.node("NoSuchOperator", {small.input("x", {3})}));
  Model model;
  model.graph = std::move(small.graph);
  auto made = compile(model, {picky("first", {})});
  REQUIRE(!made.ok());
  CHECK(made.status().to_string().find("NoSuchOperator") != std::string::npos);
}
