#include "placement/lifetimes.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "placement/node_names.h"

namespace sardonyx {

namespace {

/// What is smaller, every node may have for its own.
constexpr std::uint64_t kSharedBytesMin = 1024;
constexpr std::uint32_t kNowhere = 0xffffffffU;

std::uint64_t tensor_bytes(const Type& type) {
  if (!type.is_tensor() || !type.shape) return 0;
  const auto count = type.shape->element_count();
  return count ? dtype_bytes(type.dtype, *count).value_or(0) : 0;
}

class Lifetimes {
 public:
  explicit Lifetimes(const Graph& graph) : graph_(graph), life_of_(graph.value_count(), kNowhere) {}

  PlacementDetails run(const std::vector<PlannedPart>& parts) {
    for (const PlannedPart& part : parts) {
      for (const NodeId id : part.nodes) visit(id, part.provider);
    }
    keep_outputs();
    share_weights();
    return std::move(details_);
  }

 private:
  void visit(NodeId id, std::uint32_t device) {
    const Node& node = graph_.node(id);
    add_names(node);
    for (const auto* inputs : {&node.inputs, &node.implicit_inputs}) {
      for (const ValueId input : *inputs) {
        if (input != kNoValue) use(input, device);
      }
    }
    for (const ValueId output : node.outputs) {
      if (output == kNoValue) continue;
      life_of_[output] = static_cast<std::uint32_t>(details_.lives.size());
      const std::uint64_t bytes = tensor_bytes(graph_.value(output).type);
      details_.lives.push_back({device, position_, position_, bytes});
    }
    ++position_;
  }

  void add_names(const Node& node) {
    ModuleNames modules;
    std::string output(names_of(graph_, node, modules).output);
    details_.names.push_back({std::move(output), std::move(modules.path), std::move(modules.name)});
  }

  void use(ValueId value, std::uint32_t device) {
    if (graph_.value(value).constant) {
      auto& users = users_[value];
      if (users.empty() || users.back() != position_) users.push_back(position_);
      return;
    }
    const std::uint32_t at = life_of_[value];
    if (at == kNowhere) return;
    details_.lives[at].last = position_;
    if (details_.lives[at].device == device) return;
    const std::uint64_t key = (std::uint64_t{value} << 32) | device;
    const auto [copy, is_new] =
        copies_.try_emplace(key, static_cast<std::uint32_t>(details_.lives.size()));
    if (is_new) {
      details_.lives.push_back({device, position_, position_, details_.lives[at].bytes});
    }
    details_.lives[copy->second].last = position_;
  }

  void keep_outputs() {
    for (const ValueId output : graph_.outputs()) {
      const std::uint32_t at = life_of_[output];
      if (at != kNowhere) details_.lives[at].last = position_ - 1;
    }
  }

  void share_weights() {
    std::vector<ValueId> shared;
    for (const auto& [value, users] : users_) {
      const bool is_large = graph_.value(value).constant->byte_size() >= kSharedBytesMin;
      if (users.size() > 1 && is_large) shared.push_back(value);
    }
    std::sort(shared.begin(), shared.end());
    for (const ValueId value : shared) {
      details_.shared_weights.push_back({graph_.value(value).name,
                                         graph_.value(value).constant->byte_size(),
                                         std::move(users_[value])});
    }
    std::stable_sort(details_.shared_weights.begin(), details_.shared_weights.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }

  const Graph& graph_;
  PlacementDetails details_;
  std::uint32_t position_ = 0;
  /// By ValueId: index of its life on the device that makes it.
  std::vector<std::uint32_t> life_of_;
  std::unordered_map<std::uint64_t, std::uint32_t> copies_;
  std::unordered_map<ValueId, std::vector<std::uint32_t>> users_;
};

}  // namespace

PlacementDetails details_of(const Graph& graph, const std::vector<PlannedPart>& parts) {
  return Lifetimes(graph).run(parts);
}

}  // namespace sardonyx
