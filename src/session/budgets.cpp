#include "session/budgets.h"

#include <algorithm>
#include <map>

#include "base/log.h"
#include "base/text.h"
#include "ir/part.h"
#include "placement/describe.h"
#include "placement/packing.h"
#include "placement/statistics.h"
#include "session/context_parts.h"
#include "session/max_shapes.h"

namespace sardonyx {

namespace {

/// Of a node whose provider does not tell what it takes: half as much again, as ONNX Runtime does.
constexpr std::uint64_t with_workspace(std::uint64_t bytes) { return bytes + bytes / 2; }

std::uint64_t tensor_bytes(const Type& type) {
  if (!type.is_tensor() || !type.shape) return 0;
  const auto count = type.shape->element_count();
  return count ? dtype_bytes(type.dtype, *count).value_or(0) : 0;
}

std::uint64_t memory_of(const PlacedDevice& device) {
  std::uint64_t bytes = 0;
  for (const DeviceDescription& one : device.devices) bytes += one.memory_bytes;
  return bytes;
}

class Spreader {
 public:
  Spreader(PlacedModel& placed, const std::vector<BudgetSettings>& budgets,
           const std::vector<NodeMatch>& matches)
      : placed_(placed), budgets_(budgets), matches_(matches) {}

  Result<std::vector<BudgetedNode>> run() {
    set_limits();
    SDX_TRY(read_statistics());
    const bool has_limit =
        std::any_of(devices_.begin(), devices_.end(),
                    [](const PackingDevice& device) { return device.limit_bytes.has_value(); });
    if (!has_limit) return std::vector<BudgetedNode>();
    SDX_ASSIGN(const auto shapes,
               parse_max_shapes(placed_.options.entry("session.max_shape_override")));
    SDX_ASSIGN(bounded_, with_max_shapes(placed_.model.graph, shapes));
    // Borders between providers have to be known; one alone knows what it computes.
    if (placed_.providers.size() > 1) {
      SDX_ASSIGN(types_, computed_types(bounded_));
    }
    SDX_ASSIGN(nodes_, placed_.model.graph.topological_order());
    std::erase_if(nodes_, [&](NodeId id) { return is_kept(id); });
    SDX_TRY(ask_providers());
    for (const NodeId id : nodes_) items_.push_back(item_of(id));
    SDX_ASSIGN(const Packing packing,
               pack_exactly(items_, devices_, budgets_.front().policy,
                            [&](std::uint32_t device, std::span<const std::uint32_t> items) {
                              return estimate(device, items);
                            }));
    return choices_of(packing);
  }

 private:
  bool is_kept(NodeId id) const {
    return keeper_of(placed_.model.graph.node(id), placed_.providers) != nullptr;
  }

  void warn(std::string text) {
    log(Severity::Warning, "{}", text);
    placed_.placement.warnings.push_back(std::move(text));
  }

  void set_limits() {
    std::vector<ProviderDevices> known;
    for (const PlacedDevice& device : placed_.placement.devices) {
      known.push_back({device.provider, device.devices});
      devices_.push_back({device_name(device), std::nullopt});
    }
    for (const BudgetSettings& budget : budgets_) {
      for (const DeviceBudget& entry : budget.devices) {
        const auto match = resolve_designator(entry.device, known, DesignatorMode::Extended);
        if (!match.provider) {
          warn(fmt::format("{}: the budget of '{}' has no effect: {}", budget.key, entry.device,
                           match.why_not));
          continue;
        }
        limit(*match.provider, entry);
      }
    }
  }

  void limit(std::uint32_t device, const DeviceBudget& entry) {
    std::optional<std::uint64_t> bytes = entry.limit_bytes;
    const std::uint64_t memory_bytes = memory_of(placed_.placement.devices[device]);
    if (!bytes && memory_bytes != 0) bytes = memory_bytes;
    if (!bytes) return;
    auto& known = devices_[device].limit_bytes;
    known = std::min(*bytes, known.value_or(*bytes));
    placed_.placement.devices[device].limit_bytes = known;
  }

  /// ONNX Runtime answers FAIL to whatever is wrong with the file of its own option.
  static Status unread(const BudgetSettings& budget, Status status) {
    if (budget.key == kCudaBudgetKey) status = Status(Code::Internal, status.message());
    return std::move(status).with("reading " + std::string(budget.key));
  }

  Status read_statistics() {
    for (const BudgetSettings& budget : budgets_) {
      if (budget.statistics.empty()) continue;
      const std::string path = statistics_path(budget.statistics, placed_.model.path);
      auto statistics = NodeStatistics::read(path);
      if (!statistics.ok()) return unread(budget, std::move(statistics).take_status());
      measured_ = match_statistics(placed_.model.graph, *statistics);
      std::string mismatch = describe_mismatch(*measured_, path);
      if (!mismatch.empty()) warn(std::move(mismatch));
    }
    return {};
  }

  /// Which provider runs which node if it may have all.
  Status ask_providers() {
    runs_.assign(placed_.providers.size(),
                 std::vector<bool>(placed_.model.graph.node_count(), false));
    for (std::size_t i = 0; i < placed_.providers.size(); ++i) {
      const Provider& provider = *placed_.providers[i];
      SDX_ASSIGN(const auto groups, provider.offer(placed_.model, nodes_));
      for (const NodeGroup& group : groups) {
        for (const NodeId id : group.nodes) runs_[i][id] = true;
      }
      const DeviceProvider* device = as_device(provider);
      if (device == nullptr) continue;
      SDX_ASSIGN(const auto rewritten, device->wants_channels_last(placed_.model, nodes_));
      for (const NodeId id : rewritten) runs_[i][id] = true;
    }
    return {};
  }

  const Type& type_of(ValueId id) const {
    return id < types_.size() ? types_[id] : bounded_.value(id).type;
  }

  PackingItem item_of(NodeId id) const {
    const Graph& graph = bounded_;
    const Node& node = graph.node(id);
    PackingItem item;
    item.name = node.describe(graph);
    std::uint64_t input_bytes = 0;
    for (const ValueId input : node.inputs) {
      if (input == kNoValue) continue;
      const auto& constant = graph.value(input).constant;
      if (!constant) input_bytes += tensor_bytes(type_of(input));
      if (!constant) continue;
      item.weights.push_back({input, constant->byte_size()});
    }
    item.live_bytes = input_bytes + output_bytes(id);
    if (const NodeMemory* memory = measured(id)) item.live_bytes = live_bytes(*memory);
    add_devices(id, item);
    return item;
  }

  const NodeMemory* measured(NodeId id) const {
    if (!measured_ || id >= measured_->nodes.size() || !measured_->nodes[id]) return nullptr;
    return &*measured_->nodes[id];
  }

  static std::uint64_t live_bytes(const NodeMemory& memory) {
    return memory.input_bytes + memory.output_bytes + memory.scratch_bytes;
  }

  void add_devices(NodeId id, PackingItem& item) const {
    const auto wanted = id < matches_.size() ? matches_[id].provider : std::nullopt;
    if (wanted && runs_[*wanted][id]) {
      item.devices.push_back(*wanted);
      item.is_ruled = true;
    }
    for (std::uint32_t i = 0; i < runs_.size(); ++i) {
      if (runs_[i][id] && i != wanted) item.devices.push_back(i);
    }
  }

  /// What the nodes take on a device: as its provider says, else by the measured rows and, where
  /// there are none, by the rule of thumb.
  Result<std::uint64_t> estimate(std::uint32_t device, std::span<const std::uint32_t> items) {
    if (items.empty()) return std::uint64_t{0};
    std::vector<NodeId> nodes;
    for (const std::uint32_t item : items) nodes.push_back(nodes_[item]);
    Part part = extract_part(bounded_, nodes);
    for (std::size_t i = 0; i < part.inputs.size(); ++i) {
      part.graph.value(part.graph.inputs()[i]).type = type_of(part.inputs[i]);
    }
    SDX_ASSIGN(const auto told,
               placed_.providers[device]->estimate(part.graph, placed_.compile_options));
    if (!told) return rule_of_thumb(items);
    unbounded_[device] = told->unbounded;
    return std::uint64_t{told->total_bytes()};
  }

  std::uint64_t rule_of_thumb(std::span<const std::uint32_t> items) const {
    std::map<std::uint64_t, std::uint64_t> weights;
    std::uint64_t total = 0;
    for (const std::uint32_t index : items) {
      const PackingItem& item = items_[index];
      std::uint64_t new_bytes = 0;
      for (const SharedWeight& weight : item.weights) {
        if (weights.emplace(weight.id, weight.bytes).second) new_bytes += weight.bytes;
      }
      const NodeId id = nodes_[index];
      total += measured(id) != nullptr ? new_bytes + item.live_bytes
                                       : with_workspace(new_bytes + output_bytes(id));
    }
    return total;
  }

  std::uint64_t output_bytes(NodeId id) const {
    const Graph& graph = bounded_;
    std::uint64_t bytes = 0;
    for (const ValueId output : graph.node(id).outputs) {
      if (output != kNoValue) bytes += tensor_bytes(type_of(output));
    }
    return bytes;
  }

  std::vector<BudgetedNode> choices_of(const Packing& packing) {
    std::vector<BudgetedNode> chosen(placed_.model.graph.node_count());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const PackingChoice& choice = packing.choices[i];
      chosen[nodes_[i]] = {choice.device, describe_choice(choice, devices_)};
    }
    for (std::uint32_t i = 0; i < devices_.size(); ++i) {
      placed_.placement.devices[i].need_bytes = devices_[i].limit_bytes
                                                    ? packing.estimated_bytes[i]
                                                    : packing.held_bytes[i] + packing.live_bytes[i];
      warn_of_unbounded(i);
    }
    return chosen;
  }

  void warn_of_unbounded(std::uint32_t device) {
    const auto found = unbounded_.find(device);
    if (!devices_[device].limit_bytes || found == unbounded_.end() || found->second.empty()) return;
    warn(fmt::format(
        "the budget of {} holds only as far as sizes are known: {} are open until a run "
        "tells (session.max_shape_override bounds inputs), the first is that of {}",
        devices_[device].name, found->second.size(), found->second.front()));
  }

  PlacedModel& placed_;
  const std::vector<BudgetSettings>& budgets_;
  const std::vector<NodeMatch>& matches_;
  std::vector<PackingDevice> devices_;
  /// The model's graph with the largest shapes that its inputs will have.
  Graph bounded_;
  /// By ValueId of that graph; empty: as it has them.
  std::vector<Type> types_;
  std::optional<MatchedStatistics> measured_;
  std::vector<NodeId> nodes_;
  /// By provider and NodeId.
  std::vector<std::vector<bool>> runs_;
  std::vector<PackingItem> items_;
  /// By device: nodes of the last estimate whose sizes are not known.
  std::map<std::uint32_t, std::vector<std::string>> unbounded_;
};

}  // namespace

Result<std::vector<BudgetSettings>> budgets_of(const SessionOptions& options) {
  std::vector<BudgetSettings> budgets;
  SDX_ASSIGN(auto general, parse_budget(options.entry(std::string(kBudgetKey))));
  if (general) budgets.push_back(std::move(*general));
  SDX_ASSIGN(auto cuda, parse_cuda_budget(options.entry(std::string(kCudaBudgetKey))));
  if (cuda) budgets.push_back(std::move(*cuda));
  return budgets;
}

Result<std::vector<BudgetedNode>> spread_by_budget(PlacedModel& placed,
                                                   const std::vector<BudgetSettings>& budgets,
                                                   const std::vector<NodeMatch>& matches) {
  if (budgets.empty()) return std::vector<BudgetedNode>();
  return Spreader(placed, budgets, matches).run();
}

}  // namespace sardonyx
