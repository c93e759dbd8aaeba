#include "ops/tree_ensemble.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>

#include "base/text.h"
#include "ir/element.h"

namespace sardonyx {

namespace {

/// More nodes than this do not fit the positions' type.
constexpr std::size_t kMostNodes = std::size_t{1} << 30;

/// A list of numbers that is a tensor attribute `NAME_as_tensor` or, without it, a list `NAME`.
Result<std::vector<double>> numbers(const Attributes& attributes, const std::string& name) {
  std::vector<double> values;
  const Tensor* tensor = attributes.get_if<Tensor>(name + "_as_tensor");
  if (tensor == nullptr) tensor = attributes.get_if<Tensor>(name);
  if (tensor == nullptr) {
    const auto& list = attributes.get_floats(name);
    values.assign(list.begin(), list.end());
    return values;
  }
  if (!contains(kNumericBf16, tensor->dtype())) {
    return failure(Code::InvalidModel, "{} should hold numbers, but is tensor({})", name,
                   dtype_name(tensor->dtype()));
  }
  for (std::int64_t i = 0; i < tensor->element_count(); ++i) {
    values.push_back(read_real(tensor->dtype(), tensor->data(), i));
  }
  return values;
}

Status check_length(std::string_view name, std::size_t found, std::size_t expected) {
  if (found == expected) return {};
  return failure(Code::InvalidModel, "{} has {} elements, expected {}", name, found, expected);
}

Result<TreeEnsemble::Mode> mode_of(const std::string& name) {
  using Mode = TreeEnsemble::Mode;
  if (name == "LEAF") return Mode::Leaf;
  if (name == "BRANCH_LEQ") return Mode::LessOrEqual;
  if (name == "BRANCH_LT") return Mode::Less;
  if (name == "BRANCH_GTE") return Mode::GreaterOrEqual;
  if (name == "BRANCH_GT") return Mode::Greater;
  if (name == "BRANCH_EQ") return Mode::Equal;
  if (name == "BRANCH_NEQ") return Mode::NotEqual;
  return failure(Code::InvalidModel, "nodes_modes holds '{}'", name);
}

/// Finds nodes by tree and node id.
class NodeIndex {
 public:
  Status add(std::int64_t tree, std::int64_t node, std::int32_t position) {
    if (positions_.emplace(Key{tree, node}, position).second) return {};
    return failure(Code::InvalidModel, "node {} of tree {} is there twice", node, tree);
  }
  Result<std::int32_t> find(std::int64_t tree, std::int64_t node) const {
    const auto found = positions_.find({tree, node});
    if (found != positions_.end()) return found->second;
    return failure(Code::InvalidModel, "there is no node {} in tree {}", node, tree);
  }

 private:
  using Key = std::pair<std::int64_t, std::int64_t>;
  struct Hash {
    std::size_t operator()(const Key& key) const {
      return static_cast<std::size_t>(key.first) * 0x9e3779b97f4a7c15U +
             static_cast<std::size_t>(key.second);
    }
  };
  std::unordered_map<Key, std::int32_t, Hash> positions_;
};

}  // namespace

/// Reads the id form; its parts share the lists.
struct TreeEnsemble::Builder {
  const Attributes& attributes;
  TreeEnsemble& trees;
  NodeIndex index;

  Status read_nodes() {
    const auto& tree_ids = attributes.get_ints("nodes_treeids");
    const auto& node_ids = attributes.get_ints("nodes_nodeids");
    const auto& features = attributes.get_ints("nodes_featureids");
    const auto& modes = attributes.get_strings("nodes_modes");
    const auto& missing = attributes.get_ints("nodes_missing_value_tracks_true");
    SDX_ASSIGN(const auto splits, numbers(attributes, "nodes_values"));
    const std::size_t count = tree_ids.size();
    if (count > kMostNodes) return failure(Code::InvalidModel, "{} nodes are too many", count);
    SDX_TRY(check_length("nodes_nodeids", node_ids.size(), count));
    SDX_TRY(check_length("nodes_featureids", features.size(), count));
    SDX_TRY(check_length("nodes_modes", modes.size(), count));
    SDX_TRY(check_length("nodes_values", splits.size(), count));
    if (!missing.empty()) {
      SDX_TRY(check_length("nodes_missing_value_tracks_true", missing.size(), count));
    }
    trees.nodes_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
      Node& node = trees.nodes_[i];
      SDX_TRY(index.add(tree_ids[i], node_ids[i], static_cast<std::int32_t>(i)));
      SDX_ASSIGN(node.mode, mode_of(modes[i]));
      if (node.mode == Mode::Leaf) continue;
      if (features[i] < 0 || features[i] >= std::int64_t{1} << 31) {
        return failure(Code::InvalidModel, "nodes_featureids holds {}", features[i]);
      }
      node.feature = static_cast<std::int32_t>(features[i]);
      node.split = splits[i];
      node.nan_is_true = !missing.empty() && missing[i] != 0;
      trees.last_feature_ = std::max(trees.last_feature_, features[i]);
    }
    return connect(tree_ids);
  }

  /// Sets the children, and finds the nodes that are nobody's child.
  Status connect(const std::vector<std::int64_t>& tree_ids) {
    const auto& on_true = attributes.get_ints("nodes_truenodeids");
    const auto& on_false = attributes.get_ints("nodes_falsenodeids");
    SDX_TRY(check_length("nodes_truenodeids", on_true.size(), tree_ids.size()));
    SDX_TRY(check_length("nodes_falsenodeids", on_false.size(), tree_ids.size()));
    std::vector<std::uint8_t> is_child(tree_ids.size(), 0);
    for (std::size_t i = 0; i < tree_ids.size(); ++i) {
      Node& node = trees.nodes_[i];
      if (node.mode == Mode::Leaf) continue;
      SDX_ASSIGN(node.on_true, index.find(tree_ids[i], on_true[i]));
      SDX_ASSIGN(node.on_false, index.find(tree_ids[i], on_false[i]));
      is_child[static_cast<std::size_t>(node.on_true)] = 1;
      is_child[static_cast<std::size_t>(node.on_false)] = 1;
    }
    for (std::size_t i = 0; i < is_child.size(); ++i) {
      if (is_child[i] == 0) trees.roots_.push_back(static_cast<std::int32_t>(i));
    }
    return {};
  }

  Status read_weights(std::string_view prefix) {
    const std::string stem(prefix);
    const auto& tree_ids = attributes.get_ints(stem + "_treeids");
    const auto& node_ids = attributes.get_ints(stem + "_nodeids");
    const auto& outputs = attributes.get_ints(stem + "_ids");
    SDX_ASSIGN(const auto values, numbers(attributes, stem + "_weights"));
    const std::size_t count = tree_ids.size();
    if (count > kMostNodes) return failure(Code::InvalidModel, "{} weights are too many", count);
    SDX_TRY(check_length(stem + "_nodeids", node_ids.size(), count));
    SDX_TRY(check_length(stem + "_ids", outputs.size(), count));
    SDX_TRY(check_length(stem + "_weights", values.size(), count));
    std::vector<std::pair<std::int32_t, Weight>> given;
    for (std::size_t i = 0; i < count; ++i) {
      if (outputs[i] < 0 || outputs[i] >= trees.outputs_) {
        return failure(Code::InvalidModel, "{}_ids holds {}, which is outside [0, {})", stem,
                       outputs[i], trees.outputs_);
      }
      SDX_ASSIGN(const std::int32_t node, index.find(tree_ids[i], node_ids[i]));
      if (trees.nodes_[static_cast<std::size_t>(node)].mode != Mode::Leaf) continue;
      given.push_back({node, {static_cast<std::int32_t>(outputs[i]), values[i]}});
    }
    std::stable_sort(given.begin(), given.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < given.size(); ++i) {
      Node& node = trees.nodes_[static_cast<std::size_t>(given[i].first)];
      if (i == 0 || given[i - 1].first != given[i].first) {
        node.on_true = static_cast<std::int32_t>(i);
      }
      node.on_false = static_cast<std::int32_t>(i) + 1;
      trees.weights_.push_back(given[i].second);
    }
    return {};
  }
};

Result<TreeEnsemble> TreeEnsemble::from_ids(const Attributes& attributes, std::string_view prefix,
                                            std::int64_t outputs) {
  TreeEnsemble trees;
  trees.outputs_ = outputs;
  Builder builder{attributes, trees, {}};
  SDX_TRY(builder.read_nodes());
  SDX_TRY(builder.read_weights(prefix));
  SDX_TRY(trees.check_graph(true));
  return trees;
}

namespace {

/// The lists of TreeEnsemble; leaves come behind the branches in one array of nodes.
struct PositionLists {
  const std::vector<std::int64_t>& features;
  const std::vector<std::int64_t>& on_true;
  const std::vector<std::int64_t>& on_false;
  const std::vector<std::int64_t>& true_is_leaf;
  const std::vector<std::int64_t>& false_is_leaf;
  const std::vector<std::int64_t>& missing;
  const std::vector<std::int64_t>& targets;
  std::vector<double> splits;
  std::vector<double> modes;
  std::vector<double> weights;

  std::size_t branches() const { return features.size(); }
  std::size_t leaves() const { return targets.size(); }
};

Result<PositionLists> position_lists(const Attributes& attributes) {
  PositionLists lists{attributes.get_ints("nodes_featureids"),
                      attributes.get_ints("nodes_truenodeids"),
                      attributes.get_ints("nodes_falsenodeids"),
                      attributes.get_ints("nodes_trueleafs"),
                      attributes.get_ints("nodes_falseleafs"),
                      attributes.get_ints("nodes_missing_value_tracks_true"),
                      attributes.get_ints("leaf_targetids"),
                      {},
                      {},
                      {}};
  SDX_ASSIGN(lists.splits, numbers(attributes, "nodes_splits"));
  SDX_ASSIGN(lists.modes, numbers(attributes, "nodes_modes"));
  SDX_ASSIGN(lists.weights, numbers(attributes, "leaf_weights"));
  const std::size_t count = lists.branches();
  if (count + lists.leaves() > kMostNodes) {
    return failure(Code::InvalidModel, "{} nodes are too many", count + lists.leaves());
  }
  SDX_TRY(check_length("nodes_truenodeids", lists.on_true.size(), count));
  SDX_TRY(check_length("nodes_falsenodeids", lists.on_false.size(), count));
  SDX_TRY(check_length("nodes_trueleafs", lists.true_is_leaf.size(), count));
  SDX_TRY(check_length("nodes_falseleafs", lists.false_is_leaf.size(), count));
  SDX_TRY(check_length("nodes_splits", lists.splits.size(), count));
  SDX_TRY(check_length("nodes_modes", lists.modes.size(), count));
  SDX_TRY(check_length("leaf_weights", lists.weights.size(), lists.leaves()));
  if (!lists.missing.empty()) {
    SDX_TRY(check_length("nodes_missing_value_tracks_true", lists.missing.size(), count));
  }
  return lists;
}

Result<std::int32_t> child_position(const PositionLists& lists, std::int64_t id,
                                    std::int64_t is_leaf) {
  const std::size_t most = is_leaf != 0 ? lists.leaves() : lists.branches();
  if (id < 0 || id >= static_cast<std::int64_t>(most)) {
    return failure(Code::InvalidModel, "there is no {} {}", is_leaf != 0 ? "leaf" : "node", id);
  }
  const std::int64_t offset = is_leaf != 0 ? static_cast<std::int64_t>(lists.branches()) : 0;
  return static_cast<std::int32_t>(id + offset);
}

}  // namespace

Result<TreeEnsemble> TreeEnsemble::from_positions(const Attributes& attributes) {
  SDX_ASSIGN(const PositionLists lists, position_lists(attributes));
  SDX_ASSIGN(const auto members, numbers(attributes, "membership_values"));
  TreeEnsemble trees;
  trees.outputs_ = std::max<std::int64_t>(1, attributes.get_int("n_targets", 1));
  trees.nodes_.resize(lists.branches() + lists.leaves());
  std::size_t next_member = 0;
  for (std::size_t i = 0; i < lists.branches(); ++i) {
    Node& node = trees.nodes_[i];
    if (lists.features[i] < 0 || lists.features[i] >= std::int64_t{1} << 31) {
      return failure(Code::InvalidModel, "nodes_featureids holds {}", lists.features[i]);
    }
    if (!(lists.modes[i] >= 0.0 && lists.modes[i] <= 6.0)) {
      return failure(Code::InvalidModel, "nodes_modes holds {}", lists.modes[i]);
    }
    node.feature = static_cast<std::int32_t>(lists.features[i]);
    node.mode = static_cast<Mode>(static_cast<int>(lists.modes[i]));
    node.split = lists.splits[i];
    node.nan_is_true = !lists.missing.empty() && lists.missing[i] != 0;
    SDX_ASSIGN(node.on_true, child_position(lists, lists.on_true[i], lists.true_is_leaf[i]));
    SDX_ASSIGN(node.on_false, child_position(lists, lists.on_false[i], lists.false_is_leaf[i]));
    trees.last_feature_ = std::max(trees.last_feature_, lists.features[i]);
    if (node.mode != Mode::Member) continue;
    // Sets stand one after the other, each closed by a NaN.
    node.members_begin = static_cast<std::int32_t>(trees.members_.size());
    for (; next_member < members.size() && !std::isnan(members[next_member]); ++next_member) {
      trees.members_.push_back(members[next_member]);
    }
    ++next_member;
    node.members_end = static_cast<std::int32_t>(trees.members_.size());
  }
  for (std::size_t i = 0; i < lists.leaves(); ++i) {
    if (lists.targets[i] < 0 || lists.targets[i] >= trees.outputs_) {
      return failure(Code::InvalidModel, "leaf_targetids holds {}, which is outside [0, {})",
                     lists.targets[i], trees.outputs_);
    }
    Node& node = trees.nodes_[lists.branches() + i];
    node.on_true = static_cast<std::int32_t>(i);
    node.on_false = node.on_true + 1;
    trees.weights_.push_back({static_cast<std::int32_t>(lists.targets[i]), lists.weights[i]});
  }
  for (const std::int64_t root : attributes.get_ints("tree_roots")) {
    SDX_ASSIGN(const std::int32_t position, child_position(lists, root, 0));
    trees.roots_.push_back(position);
  }
  SDX_TRY(trees.check_graph(false));
  return trees;
}

/// Walks every node once, depth first, and refuses a way back to a node that is being walked. With
/// `needs_all` every node has to be on a way from a root: what is left over goes in circles.
Status TreeEnsemble::check_graph(bool needs_all) const {
  constexpr std::uint8_t kNew = 0;
  constexpr std::uint8_t kOpen = 1;
  constexpr std::uint8_t kDone = 2;
  std::vector<std::uint8_t> state(nodes_.size(), kNew);
  std::vector<std::int32_t> stack;
  for (const std::int32_t root : roots_) {
    if (state[static_cast<std::size_t>(root)] == kNew) stack.push_back(root);
    while (!stack.empty()) {
      const auto at = static_cast<std::size_t>(stack.back());
      if (nodes_[at].mode == Mode::Leaf || state[at] != kNew) {
        state[at] = kDone;
        stack.pop_back();
        continue;
      }
      state[at] = kOpen;
      for (const std::int32_t child : {nodes_[at].on_true, nodes_[at].on_false}) {
        const std::uint8_t seen = state[static_cast<std::size_t>(child)];
        if (seen == kOpen) {
          return failure(Code::InvalidModel, "the nodes of a tree form a cycle (at node {})",
                         child);
        }
        if (seen == kNew) stack.push_back(child);
      }
    }
  }
  const bool is_whole = std::find(state.begin(), state.end(), kNew) == state.end();
  if (!nodes_.empty() && (roots_.empty() || (needs_all && !is_whole))) {
    return failure(Code::InvalidModel, "a tree has no root: its nodes form a cycle");
  }
  return {};
}

bool TreeEnsemble::goes_true(const Node& node, double value) const {
  if (node.nan_is_true && std::isnan(value)) return true;
  switch (node.mode) {
    case Mode::LessOrEqual: return value <= node.split;
    case Mode::Less: return value < node.split;
    case Mode::GreaterOrEqual: return value >= node.split;
    case Mode::Greater: return value > node.split;
    case Mode::Equal: return value == node.split;
    case Mode::NotEqual: return value != node.split;
    case Mode::Member: {
      const auto begin = members_.begin() + node.members_begin;
      const auto end = members_.begin() + node.members_end;
      return std::find(begin, end, value) != end;
    }
    case Mode::Leaf: return false;
  }
  return false;
}

const TreeEnsemble::Node& TreeEnsemble::leaf(std::span<const double> row,
                                             std::int32_t root) const {
  const Node* node = &nodes_[static_cast<std::size_t>(root)];
  while (node->mode != Mode::Leaf) {
    const double value = row[static_cast<std::size_t>(node->feature)];
    node = &nodes_[static_cast<std::size_t>(goes_true(*node, value) ? node->on_true
                                                                     : node->on_false)];
  }
  return *node;
}

void TreeEnsemble::evaluate(std::span<const double> row, Totals& totals) const {
  totals.scores.assign(static_cast<std::size_t>(outputs_), 0.0);
  totals.has_score.assign(static_cast<std::size_t>(outputs_), 0);
  for (const std::int32_t root : roots_) {
    const Node& reached = leaf(row, root);
    for (std::int32_t i = reached.on_true; i < reached.on_false; ++i) {
      const Weight& weight = weights_[static_cast<std::size_t>(i)];
      const auto output = static_cast<std::size_t>(weight.output);
      double& score = totals.scores[output];
      const bool is_first = totals.has_score[output] == 0;
      totals.has_score[output] = 1;
      switch (aggregate) {
        case Aggregate::Sum:
        case Aggregate::Average: score += weight.value; break;
        case Aggregate::Min: score = is_first ? weight.value : std::min(score, weight.value); break;
        case Aggregate::Max: score = is_first ? weight.value : std::max(score, weight.value); break;
      }
    }
  }
  if (aggregate != Aggregate::Average || roots_.empty()) return;
  for (double& score : totals.scores) score /= static_cast<double>(roots_.size());
}

}  // namespace sardonyx
