#include "cpu/estimate.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/mapped_file.h"
#include "base/text.h"
#include "exec/execution_plan.h"

namespace sardonyx {

namespace {

constexpr std::uintptr_t kPage_bytes = 4096;
/// The system maps this much around a page of a file that is touched, as far as it has it.
constexpr std::size_t kFaultAround_bytes = std::size_t{64} << 10;
/// Blocks from this size on have pages of their own.
constexpr std::size_t kOwnPages_bytes = std::size_t{128} << 10;
/// What the allocator adds to a block.
constexpr std::size_t kBlockHead_bytes = 32;
/// Graph, instruction, kernel and plan of a node; a program's tables and the threads that run it
/// (measured on models of 20 to 2000 nodes).
constexpr std::size_t kNode_bytes = 8000;
constexpr std::size_t kPart_bytes = std::size_t{3584} << 10;

/// What a block of that size takes.
std::size_t block_bytes(std::size_t bytes) {
  if (bytes < kOwnPages_bytes) return bytes + kBlockHead_bytes;
  return (bytes + kBlockHead_bytes + kPage_bytes - 1) / kPage_bytes * kPage_bytes;
}

bool is_mapped(const Tensor& tensor) {
  return tensor.dtype() != DType::String && MappedFile::containing(tensor.data()) != nullptr;
}

/// Pages of mapped files, each counted once.
class Pages {
 public:
  void add(const std::byte* data, std::size_t bytes) {
    if (bytes == 0) return;
    const auto begin = reinterpret_cast<std::uintptr_t>(data);
    ranges_.emplace_back(begin / kPage_bytes, (begin + bytes - 1) / kPage_bytes + 1);
  }
  std::size_t bytes() {
    std::sort(ranges_.begin(), ranges_.end());
    std::size_t pages = 0;
    std::uintptr_t end = 0;
    for (const auto& [first, last] : ranges_) {
      // What lies between weights is read with the model, and mapped in with its neighbours.
      const bool is_near = first > end && first - end <= kFaultAround_bytes / kPage_bytes;
      if (is_near) pages += first - end;
      pages += last > end ? last - std::max(first, end) : 0;
      end = std::max(end, last);
    }
    return pages * kPage_bytes;
  }

 private:
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> ranges_;
};

class Estimator {
 public:
  Estimator(const Graph& source, const Program& program, const PackedWeights& weights,
            const ExecutionPlan* plan)
      : source_(source), program_(program), weights_(weights), plan_(plan) {}

  PartEstimate make() {
    add_tables();
    add_sources(source_);
    add_constants();
    for (const PackedWeights::Wanted& wanted : weights_.wanted()) add_packed(wanted);
    estimate_.source_bytes = pages_.bytes() + table_bytes_;
    if (plan_ != nullptr) add_plan();
    estimate_.other_bytes += kPart_bytes + program_.instructions.size() * kNode_bytes;
    return std::move(estimate_);
  }

 private:
  /// Constants of which runs read single rows, by where they lie.
  void add_tables() {
    std::unordered_map<SlotId, std::size_t> touched;
    std::unordered_set<SlotId> whole(program_.outputs.begin(), program_.outputs.end());
    for (const Instruction& instruction : program_.instructions) {
      for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
        const SlotId slot = instruction.inputs[i];
        if (slot == kNoSlot) continue;
        const std::optional<std::size_t> bytes =
            i == 0 && instruction.op_type == "Gather" ? gathered_bytes(instruction) : std::nullopt;
        if (bytes) {
          touched[slot] += *bytes;
        } else if (instruction.kernel->reads(i)) {
          whole.insert(slot);
        }
      }
    }
    for (const auto& [slot, datum] : program_.constants) {
      const Tensor* tensor = datum.tensor();
      const auto found = touched.find(slot);
      if (tensor == nullptr || found == touched.end() || whole.count(slot) != 0) continue;
      if (!is_mapped(*tensor) || found->second >= tensor->byte_size()) continue;
      tables_.insert(tensor->data());
      table_bytes_ += found->second;
    }
  }

  /// What a Gather of rows can touch of its table; nothing when that is not known.
  std::optional<std::size_t> gathered_bytes(const Instruction& instruction) const {
    if (plan_ == nullptr || instruction.inputs.size() < 2) return std::nullopt;
    const Type& table = plan_->slots[instruction.inputs[0]].type;
    const Type& result = plan_->slots[instruction.outputs[0]].type;
    if (!table.shape || !table.shape->is_static() || table.shape->rank() < 2) return std::nullopt;
    if (!result.shape || !result.shape->is_static()) return std::nullopt;
    const std::int64_t row = table.shape->product(1, table.shape->rank());
    const auto count = result.shape->element_count();
    const auto row_bytes = dtype_bytes(table.dtype, row);
    if (row <= 0 || !count || !row_bytes) return std::nullopt;
    const std::size_t windows = *row_bytes / kFaultAround_bytes + 2;
    return static_cast<std::size_t>(*count / row) * windows * kFaultAround_bytes;
  }

  /// Weights of the model are read when the part is made, or when it runs.
  void add_sources(const Graph& graph) {
    for (ValueId id = 0; id < graph.value_count(); ++id) {
      const Value& value = graph.value(id);
      if (value.constant && value.use_count != 0) add_mapped(*value.constant);
    }
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).is_removed) continue;
      for (const Graph* inner : subgraphs(graph.node(id))) add_sources(*inner);
    }
  }

  bool add_mapped(const Tensor& tensor) {
    if (!is_mapped(tensor)) return false;
    if (tables_.count(tensor.data()) == 0) pages_.add(tensor.data(), tensor.byte_size());
    return true;
  }

  /// Constants that are no part of a file: what folding made, and copies.
  void add_constants() {
    for (const auto& [slot, datum] : program_.constants) {
      const Tensor* tensor = datum.tensor();
      if (tensor == nullptr || tensor->data() == nullptr || add_mapped(*tensor)) continue;
      if (seen_.insert(tensor->data()).second) {
        estimate_.folded_bytes += block_bytes(tensor->byte_size());
      }
    }
  }

  /// Equal weights in equal layouts are stored once.
  void add_packed(const PackedWeights::Wanted& wanted) {
    if (!packed_.emplace(wanted.source.data(), wanted.layout).second) return;
    estimate_.packed_bytes += block_bytes(wanted.blob->size_bytes);
  }

  void add_plan() {
    std::size_t bytes = plan_->arena_bytes == 0 ? 0 : block_bytes(plan_->arena_bytes);
    for (const SlotPlan& slot : plan_->slots) {
      if (slot.storage != Storage::Output) continue;
      const auto count = slot.type.shape->element_count();
      bytes += block_bytes(dtype_bytes(slot.type.dtype, count.value_or(0)).value_or(0));
    }
    estimate_.arena_bytes = bytes;
    for (const auto& [slot, tensor] : plan_->known) {
      estimate_.other_bytes += block_bytes(tensor.byte_size());
    }
    for (const StepPlan& step : plan_->steps) {
      if (!step.is_dynamic) continue;
      estimate_.unbounded.push_back(program_.instructions[step.instruction].description);
    }
  }

  const Graph& source_;
  const Program& program_;
  const PackedWeights& weights_;
  const ExecutionPlan* plan_;
  PartEstimate estimate_;
  Pages pages_;
  std::size_t table_bytes_ = 0;
  std::set<const std::byte*> tables_;
  std::set<const std::byte*> seen_;
  std::set<std::pair<const std::byte*, std::string>> packed_;
};

/// Tensors of the inputs' types without elements, which planning does not read; nothing when a
/// size is not known.
std::optional<std::vector<Datum>> planned_inputs(const Graph& graph,
                                                 std::vector<std::string>& unbounded) {
  std::vector<Datum> inputs;
  for (const ValueId id : graph.inputs()) {
    const Value& value = graph.value(id);
    const bool is_static = value.type.is_tensor() && value.type.shape &&
                           value.type.shape->is_static() && value.type.dtype != DType::Undefined;
    if (!is_static) {
      unbounded.push_back(
          fmt::format("input '{}' {}{}", value.name, value.type.to_string(),
                      value.type.shape ? " of shape " + value.type.shape->to_string() : ""));
      continue;
    }
    inputs.emplace_back(
        Tensor::view(value.type.dtype, *value.type.shape, static_cast<void*>(nullptr)));
  }
  return unbounded.empty() ? std::optional(std::move(inputs)) : std::nullopt;
}

}  // namespace

Result<PartEstimate> estimate_part(const Graph& source, const Graph& graph, const Program& program,
                                   const PackedWeights& weights) {
  std::vector<std::string> unbounded;
  const auto inputs = planned_inputs(graph, unbounded);
  std::shared_ptr<const ExecutionPlan> plan;
  if (inputs) {
    ThreadPoolOptions pool_options;
    pool_options.thread_count = 1;
    ThreadPool pool(pool_options);
    std::mt19937_64 random(1);
    RunState run{pool, nullptr, nullptr, &random};
    SDX_ASSIGN(plan, make_plan(program, *inputs, {}, run));
  }
  PartEstimate estimate = Estimator(source, program, weights, plan.get()).make();
  estimate.unbounded.insert(estimate.unbounded.begin(), unbounded.begin(), unbounded.end());
  return estimate;
}

}  // namespace sardonyx
