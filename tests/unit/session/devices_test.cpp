#include <cstdlib>
#include <cstring>
#include <string>

#include "session/borders.h"
#include "session/parts.h"
#include "session/session.h"
#include "unit/small_graph.h"

using namespace sardonyx;

namespace {

using Log = std::vector<std::string>;

class FakePlace final : public Place {
 public:
  explicit FakePlace(std::string name) : name_(std::move(name)) {}
  const char* name() const override { return name_.c_str(); }

 private:
  std::string name_;
};

/// A part that hands its first input on as all of its outputs.
class FakePart final : public DeviceCompiled {
 public:
  FakePart(std::string name, const Place* place, Log& log)
      : name_(std::move(name)), place_(place), log_(log) {}
  Status run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState&) override {
    log_.push_back(name_ + " runs");
    for (Datum& output : outputs) output = inputs[0];
    return {};
  }
  const Place* input_place(std::size_t) const override { return place_; }
  const Place* output_place(std::size_t) const override { return place_; }

 private:
  std::string name_;
  const Place* place_;
  Log& log_;
};

/// A provider whose device has ordinary memory at a place that is not the processor's.
class FakeDevice final : public DeviceProvider {
 public:
  FakeDevice(std::string name, const Place* place, Log& log)
      : name_(std::move(name)), place_(place), log_(log) {}

  std::string_view name() const override { return name_; }
  bool can_run(const Graph&, NodeId, std::string*) const override { return true; }
  Result<std::unique_ptr<Compiled>> compile(Graph, const CompileOptions&) const override {
    return std::unique_ptr<Compiled>(std::make_unique<FakePart>(name_, place_, log_));
  }
  bool can_copy(const Place* from, const Place* to) const override {
    return (from == nullptr || from == place_) && (to == nullptr || to == place_) && from != to;
  }
  Status copy(const Tensor& from, Tensor& to) const override {
    log_.push_back(name_ + " copies");
    std::memcpy(to.mutable_data(), from.data(), from.byte_size());
    return {};
  }
  Result<Tensor> allocate(const Place& place, DType dtype, const Shape& shape) const override {
    if (&place != place_) return Status(Code::InvalidArgument, "not mine");
    const auto bytes = *dtype_bytes(dtype, *shape.element_count());
    return tensor_at(place_, dtype, shape, std::malloc(bytes), &std::free);
  }
  bool has_place(const Place& place) const override { return &place == place_; }
  Status settle(const DeviceProvider* consumer) const override {
    const auto* other = dynamic_cast<const FakeDevice*>(consumer);
    log_.push_back(name_ + " settles for " + (other == nullptr ? "the caller" : other->name_));
    return {};
  }
  Result<bool> replay(const void*) const override { return is_captured; }
  bool wants_another_run(const void*) const override { return false; }
  Result<std::vector<NodeId>> wants_channels_last(const Model&,
                                                  std::span<const NodeId>) const override {
    return std::vector<NodeId>();
  }
  Status begin_run(const void*) const override { return {}; }
  Status end_run(const void*) const override { return {}; }

  bool is_captured = false;

 private:
  std::string name_;
  const Place* place_;
  Log& log_;
};

Tensor tensor_there(const FakeDevice& device, const Place& place, std::vector<float> values) {
  auto made = device.allocate(place, DType::Float32, Shape{static_cast<Dim>(values.size())});
  REQUIRE(made.ok());
  std::memcpy(made->mutable_data(), values.data(), made->byte_size());
  return std::move(made).value();
}

}  // namespace

TEST_CASE("parts of different providers on one device wait for each other") {
  Log log;
  const FakePlace place("Far");
  SmallGraph small;
  const ValueId x = small.input("x", {2});
  const ValueId first = small.node("Relu", {x});
  const ValueId second = small.node("Relu", {first});
  const ValueId third = small.node("Relu", {second});
  small.output(third);
  const Providers providers = {std::make_shared<FakeDevice>("a", &place, log),
                               std::make_shared<FakeDevice>("b", &place, log)};
  const auto part = [&](std::size_t i, ValueId input, ValueId output) {
    CompiledPart made;
    made.provider = providers[i];
    made.compiled = std::move(providers[i]->compile(Graph(), {})).value();
    made.inputs = {input};
    made.outputs = {output};
    return made;
  };
  std::vector<CompiledPart> parts;
  parts.push_back(part(0, x, first));
  parts.push_back(part(1, first, second));
  parts.push_back(part(1, second, third));
  const auto joined = join_parts(small.graph, std::move(parts), providers);
  ThreadPool pool(ThreadPoolOptions{1});
  RunState state{pool};
  const auto& device = static_cast<const FakeDevice&>(*providers[0]);
  const std::vector<Datum> inputs = {Datum(tensor_there(device, place, {1, 2}))};
  std::vector<Datum> outputs = {wanted_at(&place)};
  REQUIRE(joined->run(inputs, outputs, state).ok());
  CHECK(log == Log{"a runs", "a settles for b", "b runs", "b settles for a", "b runs"});
}

TEST_CASE("a copy from one device to another by the processor waits for those who made it") {
  Log log;
  const FakePlace here("Here");
  const FakePlace there("There");
  const Providers providers = {std::make_shared<FakeDevice>("copier", &here, log),
                               std::make_shared<FakeDevice>("maker", &here, log),
                               std::make_shared<FakeDevice>("target", &there, log)};
  const auto& device = static_cast<const FakeDevice&>(*providers[0]);
  const Tensor from = tensor_there(device, here, {3, 4});
  const auto made = moved(providers, from, &there);
  REQUIRE_MESSAGE(made.ok(), made.status().to_string());
  CHECK(place_of(*made) == &there);
  CHECK(reinterpret_cast<const float*>(made->data())[1] == 4);
  CHECK(log == Log{"maker settles for copier", "copier copies", "target copies"});
}

TEST_CASE("a captured run is done again in bound outputs, and refused without them") {
  Log log;
  const FakePlace place("Far");
  const auto device = std::make_shared<FakeDevice>("a", &place, log);
  SmallGraph small;
  small.output(small.node("Relu", {small.input("x", {2})}));
  Model model;
  model.ir_version = 9;
  model.opset_imports = {{"", 18}};
  model.graph = std::move(small.infer().graph);
  const std::string output_name = model.graph.value(model.graph.outputs()[0]).name;
  SessionOptions options;
  options.own_providers = {[&](const CompileOptions&) { return Result<Providers>({device}); }};
  auto environment = std::make_shared<Environment>();
  environment->add_provider(make_cpu_provider(environment->weights()));
  auto session = Session::load_model(environment, std::move(model), std::move(options));
  REQUIRE_MESSAGE(session.ok(), session.status().to_string());
  const Datum feed(tensor_there(*device, place, {1, 2}));
  const std::string_view inputs[] = {"x"};
  const std::string_view outputs[] = {output_name};
  Datum result;
  REQUIRE((*session)->run(inputs, {&feed, 1}, outputs, {&result, 1}).ok());
  device->is_captured = true;
  REQUIRE((*session)->run(inputs, {&feed, 1}, outputs, {&result, 1}).ok());
  Datum none;
  const Status status = (*session)->run(inputs, {&feed, 1}, outputs, {&none, 1});
  REQUIRE(!status.ok());
  CHECK(status.message() ==
        "the run was captured and is done again in the memory that it was captured with: output '" +
            output_name + "' should be bound to it, but no tensor is given");
}
