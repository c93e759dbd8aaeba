#include "session/memory_collector.h"

#include <algorithm>

#include "ops/infer.h"

namespace sardonyx {

namespace {

/// What tells a node from the others: its name, or, without one, its description.
std::string name_of(std::string_view name, std::string_view description) {
  return std::string(name.empty() ? description : name);
}

void add_names(const Graph& graph, std::unordered_set<std::string>& names) {
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    const Node& node = graph.node(id);
    if (node.is_removed) continue;
    names.insert(name_of(node.name, node.describe(graph)));
    for (const Graph* inner : subgraphs(node)) add_names(*inner, names);
  }
}

/// Adds the bytes of a value; false when its type does not tell.
bool add_bytes(const Type& type, std::uint64_t& bytes) {
  if (!type.is_tensor() || !type.shape || !type.shape->is_static()) return false;
  const auto count = type.shape->element_count();
  const auto size = count ? dtype_bytes(type.dtype, *count) : std::nullopt;
  if (!size) return false;
  bytes += *size;
  return true;
}

std::uint64_t sparse_bytes(const SparseTensor& sparse) {
  return sparse.values.byte_size() + sparse.indices.byte_size();
}

/// Bytes of a constant or of what an input is by default; 0 for other values.
std::uint64_t constant_bytes(const Value& value) {
  if (value.constant) return value.constant->byte_size();
  if (value.sparse_constant) return sparse_bytes(*value.sparse_constant);
  return value.default_value == nullptr ? 0 : value.default_value->byte_size();
}

bool is_constant(const Value& value) {
  return value.constant || value.sparse_constant || value.default_value;
}

NodeMemory memory_of(const Graph& graph, const Node& node, const RunMemory::Sizes* met) {
  NodeMemory memory;
  bool knows_inputs = true;
  bool knows_outputs = true;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const ValueId id = node.inputs[i];
    const auto before = node.inputs.begin() + static_cast<std::ptrdiff_t>(i);
    if (id == kNoValue || std::find(node.inputs.begin(), before, id) != before) continue;
    const Value& value = graph.value(id);
    if (is_constant(value)) {
      memory.initializer_bytes += constant_bytes(value);
    } else {
      knows_inputs = add_bytes(value.type, memory.input_bytes) && knows_inputs;
    }
  }
  for (const ValueId id : node.outputs) {
    if (id == kNoValue) continue;
    knows_outputs = add_bytes(graph.value(id).type, memory.output_bytes) && knows_outputs;
  }
  if (met == nullptr) return memory;
  memory.scratch_bytes = met->scratch_bytes;
  if (!knows_outputs) memory.output_bytes = std::max(memory.output_bytes, met->output_bytes);
  if (!knows_inputs && met->input_bytes > memory.initializer_bytes) {
    memory.input_bytes = std::max(memory.input_bytes, met->input_bytes - memory.initializer_bytes);
  }
  return memory;
}

std::string shapes_of(std::span<const Datum> inputs) {
  std::string text;
  for (const Datum& input : inputs) {
    const Type type = input.has_value() ? input.type() : Type{};
    text += type.to_string();
    if (type.shape) text += type.shape->to_string();
    text += ';';
  }
  return text;
}

}  // namespace

void RunMemory::record(std::string_view node_name, std::string_view description,
                       std::size_t input_bytes, std::size_t output_bytes,
                       std::size_t scratch_bytes) {
  std::string name = name_of(node_name, description);
  if (known_.count(name) == 0) {
    Sizes& before = sizes_[last_known_];
    before.scratch_bytes =
        std::max<std::uint64_t>(before.scratch_bytes, output_bytes + scratch_bytes);
    return;
  }
  Sizes& sizes = sizes_[name];
  sizes.input_bytes = std::max<std::uint64_t>(sizes.input_bytes, input_bytes);
  sizes.output_bytes = std::max<std::uint64_t>(sizes.output_bytes, output_bytes);
  sizes.scratch_bytes = std::max<std::uint64_t>(sizes.scratch_bytes, scratch_bytes);
  last_known_ = std::move(name);
}

const RunMemory::Sizes* RunMemory::find(const std::string& name) const {
  const auto found = sizes_.find(name);
  return found == sizes_.end() ? nullptr : &found->second;
}

MemoryCollector::MemoryCollector(std::string path, const Graph& graph)
    : path_(std::move(path)), graph_(graph) {
  add_names(graph, names_);
}

Result<std::unique_ptr<MemoryCollector>> MemoryCollector::make(const SessionOptions& options,
                                                               const Model& model) {
  const std::string given = options.entry("session.collect_node_memory_stats_to_file");
  if (given.empty()) return std::unique_ptr<MemoryCollector>();
  std::string path = statistics_path(given, model.path);
  SDX_TRY(check_statistics_path(path));
  return std::unique_ptr<MemoryCollector>(new MemoryCollector(std::move(path), model.graph));
}

Status MemoryCollector::add_sizes(const Graph& graph, const RunMemory& run, bool& has_risen) {
  SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
  for (const NodeId id : order) {
    const Node& node = graph.node(id);
    const RunMemory::Sizes* met = run.find(name_of(node.name, node.describe(graph)));
    const NodeMemory memory = memory_of(graph, node, met);
    has_risen = statistics_.add(statistics_key(graph, node), memory) || has_risen;
    for (const Graph* inner : subgraphs(node)) SDX_TRY(add_sizes(*inner, run, has_risen));
  }
  return {};
}

Status MemoryCollector::finish(std::span<const Datum> inputs, const RunMemory& run) {
  const std::lock_guard lock(mutex_);
  std::string shapes = shapes_of(inputs);
  if (shapes != shapes_) {
    sized_ = graph_;
    for (std::size_t i = 0; i < inputs.size() && i < sized_.inputs().size(); ++i) {
      if (inputs[i].has_value()) sized_.value(sized_.inputs()[i]).type = inputs[i].type();
    }
    // The run went well: what inference has against its shapes leaves sizes to what was met.
    if (!infer_types(sized_).ok()) sized_ = graph_;
    shapes_ = std::move(shapes);
  }
  bool has_risen = !is_written_;
  SDX_TRY(add_sizes(sized_, run, has_risen));
  if (!has_risen) return {};
  SDX_TRY(statistics_.write(path_));
  is_written_ = true;
  return {};
}

}  // namespace sardonyx
