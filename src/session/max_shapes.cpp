#include "session/max_shapes.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "ops/infer.h"
#include "passes/passes.h"

namespace sardonyx {

namespace {

/// What ONNX Runtime answers with its code FAIL.
constexpr Code kFail = Code::Internal;

template <typename... Args>
Status refused(fmt::format_string<Args...> format, Args&&... args) {
  return Status(kFail,
                "max_shape_override: " + fmt::vformat(format, fmt::make_format_args(args...)));
}

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Result<Dim> parse_dim(std::string_view text, std::string_view input) {
  if (text.empty()) return refused("empty dimension for input '{}'", input);
  Dim dim = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), dim);
  if (error != std::errc() || end != text.data() + text.size()) {
    return refused("invalid dimension '{}' for input '{}'", text, input);
  }
  if (dim <= 0) return refused("dimensions must be positive, got {} for input '{}'", dim, input);
  return dim;
}

Result<MaxShape> parse_entry(std::string_view entry) {
  // Names may have colons, shapes have none.
  const auto colon = entry.rfind(':');
  if (colon == std::string_view::npos) return refused("missing ':' in entry '{}'", entry);
  MaxShape shape{std::string(trimmed(entry.substr(0, colon))), {}};
  if (shape.input.empty()) return refused("empty name in entry '{}'", entry);
  std::string_view dims = trimmed(entry.substr(colon + 1));
  if (dims.size() < 2 || dims.front() != '[' || dims.back() != ']') {
    return refused("shape must be enclosed in [] for '{}'", shape.input);
  }
  dims = trimmed(dims.substr(1, dims.size() - 2));
  for (bool has_more = !dims.empty(); has_more;) {
    const auto comma = dims.find(',');
    SDX_ASSIGN(const Dim dim, parse_dim(trimmed(dims.substr(0, comma)), shape.input));
    shape.dims.push_back(dim);
    has_more = comma != std::string_view::npos;
    if (has_more) dims = dims.substr(comma + 1);
  }
  if (!Shape::fits(shape.dims.size())) {
    return refused("shape of '{}' has rank {}, at most {} is possible", shape.input,
                   shape.dims.size(), Shape::kMaxRank);
  }
  return shape;
}

std::optional<ValueId> input_named(const Graph& graph, const std::string& name) {
  for (const ValueId id : graph.inputs()) {
    if (graph.value(id).name == name) return id;
  }
  return std::nullopt;
}

Status check_fits(const Value& input, const MaxShape& shape) {
  if (!input.type.shape) return {};
  const Shape& model = *input.type.shape;
  if (static_cast<std::size_t>(model.rank()) != shape.dims.size()) {
    return refused("rank mismatch for graph input '{}': model rank {}, override rank {}",
                   input.name, model.rank(), shape.dims.size());
  }
  for (int axis = 0; axis < model.rank(); ++axis) {
    const Dim given = shape.dims[static_cast<std::size_t>(axis)];
    if (!is_known(model[axis]) || model[axis] == given) continue;
    return refused("dimension {} for graph input '{}' is static ({}) but override specifies {}",
                   axis, input.name, model[axis], given);
  }
  return {};
}

/// Gives symbols of the other inputs the largest size that was given to them.
void fill_in_symbols(Graph& graph, const std::map<Dim, Dim>& sizes) {
  for (const ValueId id : graph.inputs()) {
    Type& type = graph.value(id).type;
    if (!type.shape) continue;
    for (int axis = 0; axis < type.shape->rank(); ++axis) {
      const auto found = sizes.find((*type.shape)[axis]);
      if (found != sizes.end()) (*type.shape)[axis] = found->second;
    }
  }
}

bool is_static(const Type& type) {
  return type.is_tensor() && type.shape && type.shape->is_static();
}

std::size_t open_types(const Graph& graph) {
  std::size_t count = 0;
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    if (graph.node(id).is_removed) continue;
    for (const ValueId output : graph.node(id).outputs) {
      if (output != kNoValue && !is_static(graph.value(output).type)) ++count;
    }
  }
  return count;
}

}  // namespace

Result<std::vector<MaxShape>> parse_max_shapes(std::string_view text) {
  std::vector<MaxShape> shapes;
  if (trimmed(text).empty()) return shapes;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const std::string_view entry = trimmed(text.substr(begin, end - begin));
    if (entry.empty()) return refused("empty entry at position {}", begin);
    SDX_ASSIGN(MaxShape shape, parse_entry(entry));
    const bool is_there = std::any_of(shapes.begin(), shapes.end(), [&](const MaxShape& other) {
      return other.input == shape.input;
    });
    if (is_there) return refused("duplicate entry for '{}'", shape.input);
    shapes.push_back(std::move(shape));
    begin = end + 1;
  }
  return shapes;
}

Result<Graph> with_max_shapes(const Graph& graph, const std::vector<MaxShape>& shapes) {
  Graph bounded = graph;
  std::map<Dim, Dim> sizes;
  for (const MaxShape& shape : shapes) {
    const auto id = input_named(bounded, shape.input);
    if (!id) return refused("'{}' is not a graph input", shape.input);
    Value& input = bounded.value(*id);
    SDX_TRY(check_fits(input, shape));
    for (std::size_t axis = 0; input.type.shape && axis < shape.dims.size(); ++axis) {
      const Dim dim = (*input.type.shape)[static_cast<int>(axis)];
      if (is_symbol(dim)) sizes[dim] = std::max(sizes[dim], shape.dims[axis]);
    }
    input.type.shape = Shape(shape.dims);
  }
  if (shapes.empty()) return bounded;
  fill_in_symbols(bounded, sizes);
  SDX_TRY(infer_types(bounded));
  return bounded;
}

Result<std::vector<Type>> computed_types(const Graph& graph) {
  // One round for each time that a shape is computed from one that is computed: layers of a model.
  constexpr int kRounds_max = 200;
  std::vector<Type> types;
  for (ValueId id = 0; id < graph.value_count(); ++id) types.push_back(graph.value(id).type);
  std::size_t open = open_types(graph);
  if (open == 0) return types;
  // Values keep their ids when nodes are folded.
  Graph folded = graph;
  for (int round = 0; round < kRounds_max && open != 0; ++round) {
    SDX_TRY(fold_constants(folded, {}));
    SDX_TRY(infer_types(folded));
    const std::size_t left = open_types(folded);
    if (left == open) break;
    open = left;
  }
  for (ValueId id = 0; id < types.size(); ++id) {
    const Type& known = folded.value(id).type;
    if (!is_static(types[id]) && is_static(known)) types[id] = known;
  }
  return types;
}

}  // namespace sardonyx
