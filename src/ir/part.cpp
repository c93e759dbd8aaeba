#include "ir/part.h"

namespace sardonyx {

namespace {

class Extraction {
 public:
  Extraction(const Graph& whole, std::span<const NodeId> nodes)
      : whole_(whole), nodes_(nodes), inner_(whole.value_count(), kNoValue) {
    part_.graph.name = whole.name;
  }

  Part run() && {
    for (const NodeId id : nodes_) add(whole_.node(id));
    for (const NodeId id : nodes_) {
      for (const ValueId output : whole_.node(id).outputs) {
        if (output != kNoValue && is_seen_outside(output)) add_output(output);
      }
    }
    return std::move(part_);
  }

 private:
  /// The part's value for one of the whole graph that a node uses.
  ValueId use(ValueId outer) {
    if (outer == kNoValue) return kNoValue;
    if (inner_[outer] != kNoValue) return inner_[outer];
    const Value& value = whole_.value(outer);
    const ValueId made = part_.graph.add_value(value.name, value.type);
    inner_[outer] = made;
    if (value.constant) {
      part_.graph.set_constant(made, *value.constant);
      part_.graph.value(made).origin = value.origin;
    } else {
      part_.graph.add_input(made);
      part_.inputs.push_back(outer);
    }
    return made;
  }

  void add(const Node& original) {
    Node node = original;
    for (ValueId& input : node.inputs) input = use(input);
    node.implicit_inputs.clear();
    detach_subgraphs(node);
    for (Graph* subgraph : subgraphs(node)) {
      subgraph->map_captures([&](ValueId outer) { return use(outer); });
    }
    for (ValueId& output : node.outputs) {
      if (output == kNoValue) continue;
      const Value& value = whole_.value(output);
      inner_[output] = part_.graph.add_value(value.name, value.type);
      output = inner_[output];
    }
    part_.graph.add_node(std::move(node));
  }

  bool is_seen_outside(ValueId outer) const {
    const Value& value = whole_.value(outer);
    if (value.is_output) return true;
    // Uses that the part does not have are someone else's.
    return value.use_count > part_.graph.value(inner_[outer]).use_count;
  }

  void add_output(ValueId outer) {
    part_.graph.add_output(inner_[outer]);
    part_.outputs.push_back(outer);
  }

  const Graph& whole_;
  std::span<const NodeId> nodes_;
  Part part_;
  std::vector<ValueId> inner_;
};

}  // namespace

Part extract_part(const Graph& whole, std::span<const NodeId> nodes) {
  return Extraction(whole, nodes).run();
}

}  // namespace sardonyx
