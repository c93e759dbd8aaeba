#include "placement/statistics.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/atomic_file.h"
#include "base/text.h"

namespace sardonyx {

namespace {

constexpr std::string_view kHeader =
    "#name,input_sizes,initializers_sizes,total_dynamic_sizes,total_temp_allocations\n";
constexpr std::size_t kNumberCount = 4;
constexpr std::size_t kNamed_max = 5;

using Words = std::array<std::uint32_t, 4>;

constexpr Words kMultipliers = {0x239b961bU, 0xab0e9789U, 0x38b34ae5U, 0xa1e38b93U};
constexpr Words kAddends = {0x561ccd1bU, 0x0bcaa747U, 0x96cd1c35U, 0x32ac3b17U};
constexpr std::array<int, 4> kBlockTurns = {15, 16, 17, 18};
constexpr std::array<int, 4> kStateTurns = {19, 17, 15, 13};

std::uint32_t mixed(std::uint32_t word, std::size_t lane) {
  word = std::rotl(word * kMultipliers[lane], kBlockTurns[lane]);
  return word * kMultipliers[(lane + 1) % 4];
}

std::uint32_t finished(std::uint32_t word) {
  word = (word ^ (word >> 16)) * 0x85ebca6bU;
  word = (word ^ (word >> 13)) * 0xc2b2ae35U;
  return word ^ (word >> 16);
}

void spread(Words& state) {
  for (std::size_t i = 1; i < 4; ++i) state[0] += state[i];
  for (std::size_t i = 1; i < 4; ++i) state[i] += state[0];
}

/// MurmurHash3 for 32-bit machines, 128 bits.
Words murmur3(std::string_view text, std::uint32_t seed) {
  Words state;
  state.fill(seed);
  std::size_t at = 0;
  for (; at + 16 <= text.size(); at += 16) {
    for (std::size_t lane = 0; lane < 4; ++lane) {
      std::uint32_t word = 0;
      std::memcpy(&word, text.data() + at + 4 * lane, 4);
      state[lane] = std::rotl(state[lane] ^ mixed(word, lane), kStateTurns[lane]);
      state[lane] = (state[lane] + state[(lane + 1) % 4]) * 5 + kAddends[lane];
    }
  }
  for (std::size_t lane = 0; at + 4 * lane < text.size(); ++lane) {
    const std::size_t begin = at + 4 * lane;
    std::uint32_t word = 0;
    std::memcpy(&word, text.data() + begin, std::min<std::size_t>(4, text.size() - begin));
    state[lane] ^= mixed(word, lane);
  }
  for (std::uint32_t& word : state) word ^= static_cast<std::uint32_t>(text.size());
  spread(state);
  for (std::uint32_t& word : state) word = finished(word);
  spread(state);
  return state;
}

std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  std::uint64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

/// A key on one line.
std::string one_line(std::string key) {
  std::replace_if(key.begin(), key.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return key;
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<std::uint64_t> number(std::string_view text) {
  text = trimmed(text);
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<NodeStatistics::Row> parse_row(std::string_view line, const std::string& where) {
  std::array<std::uint64_t, kNumberCount> numbers{};
  for (std::size_t i = kNumberCount; i-- > 0;) {
    const auto comma = line.rfind(',');
    if (comma == std::string_view::npos) {
      return failure(Code::InvalidArgument,
                     "{} should be a key and 4 numbers with commas between them, found {} commas",
                     where, kNumberCount - 1 - i);
    }
    const auto value = number(line.substr(comma + 1));
    if (!value) {
      return failure(Code::InvalidArgument, "{} should hold a number of bytes, found '{}'", where,
                     line.substr(comma + 1));
    }
    numbers[i] = *value;
    line = line.substr(0, comma);
  }
  return NodeStatistics::Row{std::string(line), {numbers[0], numbers[1], numbers[2], numbers[3]}};
}

/// What stands before the number at the end of a key.
std::string_view name_of_key(std::string_view key) {
  const auto underscore = key.rfind('_');
  const bool has_number =
      underscore != std::string_view::npos && number(key.substr(underscore + 1));
  return has_number ? key.substr(0, underscore) : key;
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

}  // namespace

std::uint64_t NodeMemory::total_bytes() const {
  return capped_sum(capped_sum(input_bytes, initializer_bytes),
                    capped_sum(output_bytes, scratch_bytes));
}

NodeMemory operator+(const NodeMemory& a, const NodeMemory& b) {
  return {capped_sum(a.input_bytes, b.input_bytes),
          capped_sum(a.initializer_bytes, b.initializer_bytes),
          capped_sum(a.output_bytes, b.output_bytes), capped_sum(a.scratch_bytes, b.scratch_bytes)};
}

std::string statistics_key(const Graph& graph, const Node& node) {
  Words hash{};
  const auto add = [&](const std::vector<ValueId>& values) {
    for (const ValueId id : values) {
      hash = murmur3(id == kNoValue ? std::string_view() : graph.value(id).name, hash[0]);
    }
  };
  add(node.inputs);
  add(node.outputs);
  const std::uint64_t low = hash[0] | std::uint64_t{hash[1]} << 32;
  return one_line(fmt::format("{}_{}", node.name.empty() ? node.op_type : node.name, low));
}

Result<NodeStatistics> NodeStatistics::parse(std::string_view text, const std::string& name) {
  NodeStatistics statistics;
  for (std::size_t begin = 0, count = 1; begin < text.size(); ++count) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = trimmed(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty() || line.front() == '#') continue;
    SDX_ASSIGN(Row row, parse_row(line, fmt::format("line {} of '{}'", count, name)));
    statistics.add(row.key, row.memory);
  }
  return statistics;
}

Result<NodeStatistics> NodeStatistics::read(const std::string& path) {
  std::error_code error;
  std::ifstream file(path, std::ios::binary);
  if (!file || std::filesystem::is_directory(path, error)) {
    return failure(Code::NoSuchFile, "Failed to open file \"{}\"", path);
  }
  std::ostringstream text;
  text << file.rdbuf();
  return parse(text.str(), path);
}

bool NodeStatistics::add(const std::string& key, const NodeMemory& memory) {
  const auto [found, is_new] = index_.try_emplace(key, rows_.size());
  if (is_new) {
    rows_.push_back({key, memory});
    return true;
  }
  NodeMemory& kept = rows_[found->second].memory;
  const NodeMemory former = kept;
  kept.input_bytes = std::max(kept.input_bytes, memory.input_bytes);
  kept.initializer_bytes = std::max(kept.initializer_bytes, memory.initializer_bytes);
  kept.output_bytes = std::max(kept.output_bytes, memory.output_bytes);
  kept.scratch_bytes = std::max(kept.scratch_bytes, memory.scratch_bytes);
  return !(kept == former);
}

Status NodeStatistics::write(const std::string& path) const {
  std::string text(kHeader);
  for (const auto& [key, memory] : rows_) {
    text += fmt::format("{},{},{},{},{}\n", key, memory.input_bytes, memory.initializer_bytes,
                        memory.output_bytes, memory.scratch_bytes);
  }
  SDX_ASSIGN(AtomicFile file, AtomicFile::create(path));
  SDX_TRY(file.append(std::as_bytes(std::span(text.data(), text.size()))));
  return file.commit();
}

std::string statistics_path(const std::string& path, const std::string& model_path) {
  return (std::filesystem::path(model_path).parent_path() / path).string();
}

Status check_statistics_path(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    return failure(Code::InvalidArgument, "'{}' should be a file for statistics, found a folder",
                   path);
  }
  auto file = AtomicFile::create(path);
  if (file.ok()) return {};
  return failure(Code::InvalidArgument, "no statistics can be written into folder '{}': {}",
                 folder_of(path), file.status().message());
}

namespace {

/// Finds rows of nodes, in a graph and its subgraphs.
class Matcher {
 public:
  Matcher(const Graph& graph, const NodeStatistics& statistics)
      : rows_(statistics.rows()), is_used_(rows_.size(), false) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      by_key_.emplace(rows_[i].key, i);
      const std::string_view name = name_of_key(rows_[i].key);
      note(by_name_, name, i);
      // ONNX Runtime names what it fuses "NAME/MatMulAddFusion".
      const auto slash = name.rfind('/');
      if (slash != std::string_view::npos && name.ends_with("Fusion")) {
        note(by_name_, name.substr(0, slash), i);
      }
    }
    count_names(graph);
  }

  MatchedStatistics match(const Graph& graph) {
    matched_.nodes.resize(graph.node_count());
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (!graph.node(id).is_removed) matched_.nodes[id] = find(graph, graph.node(id));
    }
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!is_used_[i]) matched_.unused.push_back(rows_[i].key);
    }
    return std::move(matched_);
  }

 private:
  static constexpr std::size_t kSeveral = SIZE_MAX;

  template <typename Map, typename Key>
  static void note(Map& map, const Key& key, std::size_t index) {
    const auto [found, is_new] = map.try_emplace(std::string(key), index);
    if (!is_new) found->second = kSeveral;
  }

  static std::string name_of(const Node& node) {
    return one_line(node.name.empty() ? node.op_type : node.name);
  }

  void count_names(const Graph& graph) {
    for (NodeId id = 0; id < graph.node_count(); ++id) {
      if (graph.node(id).is_removed) continue;
      ++nodes_of_name_[name_of(graph.node(id))];
      for (const Graph* inner : subgraphs(graph.node(id))) count_names(*inner);
    }
  }

  std::optional<std::size_t> row_of(const Graph& graph, const Node& node) const {
    const auto same = by_key_.find(statistics_key(graph, node));
    if (same != by_key_.end()) return same->second;
    const std::string name = name_of(node);
    const auto alike = by_name_.find(name);
    const bool is_sole =
        alike != by_name_.end() && alike->second != kSeveral && nodes_of_name_.at(name) == 1;
    return is_sole ? std::optional(alike->second) : std::nullopt;
  }

  std::optional<NodeMemory> find(const Graph& graph, const Node& node) {
    std::optional<NodeMemory> memory;
    if (const auto row = row_of(graph, node)) {
      is_used_[*row] = true;
      ++matched_.matched_count;
      memory = rows_[*row].memory;
    } else {
      matched_.missing.push_back(node.describe(graph));
    }
    for (const Graph* inner : subgraphs(node)) {
      for (NodeId id = 0; id < inner->node_count(); ++id) {
        if (inner->node(id).is_removed) continue;
        const auto more = find(*inner, inner->node(id));
        if (memory && more) memory = *memory + *more;
      }
    }
    return memory;
  }

  const std::vector<NodeStatistics::Row>& rows_;
  std::vector<bool> is_used_;
  std::unordered_map<std::string, std::size_t> by_key_;
  std::unordered_map<std::string, std::size_t> by_name_;
  std::unordered_map<std::string, std::size_t> nodes_of_name_;
  MatchedStatistics matched_;
};

/// "a, b and 3 more".
std::string some_of(const std::vector<std::string>& names) {
  if (names.size() <= kNamed_max) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kNamed_max);
  return fmt::format("{} and {} more", join(first, ", "), names.size() - kNamed_max);
}

}  // namespace

MatchedStatistics match_statistics(const Graph& graph, const NodeStatistics& statistics) {
  return Matcher(graph, statistics).match(graph);
}

std::string describe_mismatch(const MatchedStatistics& matched, const std::string& path) {
  std::string text;
  if (!matched.missing.empty()) {
    text =
        fmt::format("{} of {} nodes have no row in '{}': {}", matched.missing.size(),
                    matched.missing.size() + matched.matched_count, path, some_of(matched.missing));
  }
  if (!matched.unused.empty()) {
    text += fmt::format(
        "{}{} of {} belong to no node: {}", text.empty() ? "" : "; ", matched.unused.size(),
        text.empty() ? fmt::format("the rows of '{}'", path) : "its rows", some_of(matched.unused));
  }
  return text;
}

}  // namespace sardonyx
