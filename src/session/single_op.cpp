#include "session/single_op.h"

#include <algorithm>

#include "base/text.h"
#include "ops/infer.h"

namespace sardonyx {

namespace {

/// The node alone in a graph, with inputs of these types (Kind::Unknown: left out).
Graph graph_of(Node node, std::span<const Type> inputs, std::size_t output_count) {
  Graph graph;
  node.inputs.clear();
  node.outputs.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind == Type::Kind::Unknown) {
      node.inputs.push_back(kNoValue);
      continue;
    }
    const ValueId value = graph.add_value(fmt::format("input_{}", i), inputs[i]);
    graph.add_input(value);
    node.inputs.push_back(value);
  }
  for (std::size_t i = 0; i < output_count; ++i) {
    node.outputs.push_back(graph.add_value(fmt::format("output_{}", i)));
  }
  graph.add_node(node);
  for (const ValueId output : node.outputs) graph.add_output(output);
  return graph;
}

/// The type without its shape, so that one variant serves all shapes.
Type shapeless(const Datum& datum) {
  if (!datum.has_value()) return {};
  Type type = datum.type();
  type.shape.reset();
  return type;
}

bool is_same(const Type& a, const Type& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.to_string() == b.to_string();
}

}  // namespace

Result<std::unique_ptr<SingleOp>> SingleOp::create(std::shared_ptr<Environment> environment,
                                                   Node node, std::size_t output_count) {
  const Graph graph = graph_of(node, {}, output_count);
  std::string reason = "no execution provider is available";
  for (const auto& provider : environment->providers()) {
    if (!provider->can_run(graph, 0, &reason)) continue;
    return std::make_unique<SingleOp>(Private{}, std::move(environment), std::move(node),
                                      output_count);
  }
  return Status(Code::Unsupported, reason);
}

Result<Compiled*> SingleOp::variant_for(std::span<const Datum> inputs, int thread_count) {
  std::vector<Type> types;
  for (const Datum& input : inputs) types.push_back(shapeless(input));
  const std::lock_guard lock(mutex_);
  for (const Variant& variant : variants_) {
    if (std::equal(types.begin(), types.end(), variant.inputs.begin(), variant.inputs.end(),
                   is_same)) {
      return variant.compiled.get();
    }
  }
  Graph graph = graph_of(node_, types, output_count_);
  SDX_TRY(infer_types(graph));
  CompileOptions options;
  options.thread_count = thread_count;
  std::string reason;
  for (const auto& provider : environment_->providers()) {
    if (!provider->can_run(graph, 0, &reason)) continue;
    SDX_ASSIGN(auto compiled, provider->compile(std::move(graph), options));
    variants_.push_back({std::move(types), std::move(compiled)});
    return variants_.back().compiled.get();
  }
  return Status(Code::Unsupported, reason);
}

Status SingleOp::run(std::span<const Datum> inputs, std::span<Datum> outputs, RunState& state) {
  if (outputs.size() != output_count_) {
    return failure(Code::InvalidArgument, "the operator was made for {} outputs, {} were given",
                   output_count_, outputs.size());
  }
  SDX_ASSIGN(Compiled * compiled, variant_for(inputs, state.pool.thread_count()));
  std::vector<Datum> present;
  for (const Datum& input : inputs) {
    if (input.has_value()) present.push_back(input);
  }
  return compiled->run(present, outputs, state);
}

}  // namespace sardonyx
