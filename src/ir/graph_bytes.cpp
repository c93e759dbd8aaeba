#include "ir/graph_bytes.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/bytes.h"

namespace sardonyx {

namespace {

/// Subgraphs and element types nest at most this deep.
constexpr int kDepth_max = 32;
/// What room is made for at once: counts are not to be believed.
constexpr std::size_t kReserved_max = 8192;

enum class ConstantForm : std::uint8_t { None, Inside, Numbered, Sparse };
constexpr std::size_t kConstantForms = 4;

class Encoder {
 public:
  explicit Encoder(NumberConstantFn number_constant) : number_constant_(number_constant) {}

  Result<std::vector<std::byte>> encode(const Graph& graph) {
    SDX_TRY(write_graph(graph, nullptr));
    ByteWriter whole;
    whole.number(texts_.size());
    for (const std::string_view text : texts_) whole.text(text);
    whole.raw(body_.bytes());
    return whole.take();
  }

 private:
  using Numbers = std::unordered_map<ValueId, std::uint64_t>;

  void write_text(std::string_view text) {
    const auto [entry, is_new] = text_numbers_.try_emplace(std::string(text), texts_.size());
    if (is_new) texts_.push_back(entry->first);
    body_.number(entry->second);
  }

  void write_shape(const Shape& shape) {
    body_.number(static_cast<std::uint64_t>(shape.rank()));
    for (const Dim dim : shape) body_.signed_number(dim);
  }

  void write_type(const Type& type) {
    body_.number(static_cast<std::uint64_t>(type.kind));
    if (type.kind == Type::Kind::Unknown) return;
    body_.number(static_cast<std::uint64_t>(type.dtype));
    body_.number(type.shape.has_value() ? 1 : 0);
    if (type.shape) write_shape(*type.shape);
    body_.number(type.element != nullptr ? 1 : 0);
    if (type.element != nullptr) write_type(*type.element);
  }

  void write_tensor(const Tensor& tensor) {
    body_.number(static_cast<std::uint64_t>(tensor.dtype()));
    write_shape(tensor.shape());
    if (tensor.dtype() == DType::Undefined) return;
    if (tensor.dtype() == DType::String) {
      for (const std::string& text : tensor.values<std::string>()) write_text(text);
      return;
    }
    body_.raw({tensor.data(), tensor.byte_size()});
  }

  void write_sparse(const SparseTensor& sparse) {
    write_shape(sparse.shape);
    write_tensor(sparse.values);
    write_tensor(sparse.indices);
  }

  template <typename T, typename Write>
  void write_list(const std::vector<T>& items, Write write) {
    body_.number(items.size());
    for (const T& item : items) write(item);
  }

  Status write_attribute(const Attribute& attribute, const Numbers& numbers) {
    body_.number(attribute.index());
    if (const auto* graph = std::get_if<std::shared_ptr<Graph>>(&attribute)) {
      return write_graph(**graph, &numbers);
    }
    if (const auto* graphs = std::get_if<std::vector<std::shared_ptr<Graph>>>(&attribute)) {
      body_.number(graphs->size());
      for (const auto& graph : *graphs) SDX_TRY(write_graph(*graph, &numbers));
      return {};
    }
    write_plain(attribute);
    return {};
  }

  void write_plain(const Attribute& attribute) {
    if (const auto* value = std::get_if<std::int64_t>(&attribute)) body_.signed_number(*value);
    if (const auto* value = std::get_if<float>(&attribute)) body_.fixed(*value);
    if (const auto* value = std::get_if<std::string>(&attribute)) write_text(*value);
    if (const auto* value = std::get_if<Tensor>(&attribute)) write_tensor(*value);
    if (const auto* value = std::get_if<Type>(&attribute)) write_type(*value);
    if (const auto* value = std::get_if<std::shared_ptr<const SparseTensor>>(&attribute)) {
      write_sparse(**value);
    }
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&attribute)) {
      write_list(*list, [&](std::int64_t item) { body_.signed_number(item); });
    }
    if (const auto* list = std::get_if<std::vector<float>>(&attribute)) {
      write_list(*list, [&](float item) { body_.fixed(item); });
    }
    if (const auto* list = std::get_if<std::vector<std::string>>(&attribute)) {
      write_list(*list, [&](const std::string& item) { write_text(item); });
    }
    if (const auto* list = std::get_if<std::vector<Tensor>>(&attribute)) {
      write_list(*list, [&](const Tensor& item) { write_tensor(item); });
    }
    if (const auto* list = std::get_if<std::vector<Type>>(&attribute)) {
      write_list(*list, [&](const Type& item) { write_type(item); });
    }
    if (const auto* reference = std::get_if<AttributeReference>(&attribute)) {
      write_text(reference->name);
      body_.signed_number(reference->onnx_type);
    }
  }

  /// The values that anything refers to, in the order in which they are met.
  static std::vector<ValueId> used_values(const Graph& graph, const std::vector<NodeId>& order) {
    std::vector<ValueId> used;
    std::vector<bool> is_used(graph.value_count(), false);
    const auto use = [&](ValueId id) {
      if (id == kNoValue || is_used[id]) return;
      is_used[id] = true;
      used.push_back(id);
    };
    for (const Capture& capture : graph.captures()) use(capture.inner);
    for (const ValueId id : graph.inputs()) use(id);
    for (const NodeId id : order) {
      for (const ValueId value : graph.node(id).inputs) use(value);
      for (const ValueId value : graph.node(id).implicit_inputs) use(value);
      for (const ValueId value : graph.node(id).outputs) use(value);
    }
    for (const ValueId id : graph.outputs()) use(id);
    return used;
  }

  Status write_graph(const Graph& graph, const Numbers* outer) {
    SDX_ASSIGN(const std::vector<NodeId> order, graph.topological_order());
    const std::vector<ValueId> used = used_values(graph, order);
    Numbers numbers;
    for (const ValueId id : used) numbers.emplace(id, numbers.size());
    write_text(graph.name);
    body_.number(graph.captures().size());
    for (const Capture& capture : graph.captures()) body_.number(outer->at(capture.outer));
    body_.number(used.size());
    for (const ValueId id : used) SDX_TRY(write_value(graph, id));
    for (const auto* list : {&graph.inputs(), &graph.outputs()}) {
      body_.number(list->size());
      for (const ValueId id : *list) body_.number(numbers.at(id));
    }
    body_.number(order.size());
    for (const NodeId id : order) SDX_TRY(write_node(graph, graph.node(id), numbers));
    return {};
  }

  /// Whether messages name the value.
  static bool needs_name(const Graph& graph, const Value& value) {
    if (value.is_input || value.is_output || value.is_captured) return true;
    return value.producer != kNoNode && graph.node(value.producer).name.empty();
  }

  Status write_value(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    write_text(needs_name(graph, value) ? std::string_view(value.name) : std::string_view());
    write_type(value.type);
    if (value.constant && !value.is_captured) return write_constant(graph, id);
    const bool is_sparse = value.sparse_constant != nullptr && !value.is_captured;
    body_.fixed(is_sparse ? ConstantForm::Sparse : ConstantForm::None);
    if (is_sparse) write_sparse(*value.sparse_constant);
    return {};
  }

  Status write_constant(const Graph& graph, ValueId id) {
    const Tensor& constant = *graph.value(id).constant;
    SDX_ASSIGN(const auto number, number_constant_(graph, id));
    body_.fixed(number ? ConstantForm::Numbered : ConstantForm::Inside);
    if (!number) {
      write_tensor(constant);
      return {};
    }
    body_.number(*number);
    body_.number(static_cast<std::uint64_t>(constant.dtype()));
    write_shape(constant.shape());
    return {};
  }

  void write_ids(const std::vector<ValueId>& ids, const Numbers& numbers) {
    body_.number(ids.size());
    for (const ValueId id : ids) body_.number(id == kNoValue ? 0 : numbers.at(id) + 1);
  }

  Status write_node(const Graph& graph, const Node& node, const Numbers& numbers) {
    if (node.custom != nullptr) {
      return failure(Code::Unsupported,
                     "{} cannot be part of a compiled model: its operator {}:{} comes from the "
                     "program",
                     node.describe(graph), node.domain, node.op_type);
    }
    write_text(node.domain);
    write_text(node.op_type);
    write_text(node.name);
    body_.signed_number(node.opset);
    write_ids(node.inputs, numbers);
    write_ids(node.outputs, numbers);
    body_.number(node.attributes.size());
    for (const auto& [name, attribute] : node.attributes) {
      write_text(name);
      SDX_TRY(write_attribute(attribute, numbers));
    }
    return {};
  }

  NumberConstantFn number_constant_;
  ByteWriter body_;
  std::unordered_map<std::string, std::size_t> text_numbers_;
  /// Views of the keys above, which stay where they are.
  std::vector<std::string_view> texts_;
};

class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, FindConstantFn find_constant)
      : reader_(bytes, "program"), find_constant_(find_constant) {}

  Result<Graph> decode() {
    const std::size_t count = reader_.count();
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) texts_.push_back(reader_.text());
    SDX_TRY(reader_.take_status());
    Graph graph;
    SDX_TRY(read_graph(graph, nullptr, 0));
    if (!reader_.at_end()) reader_.refuse("there are bytes after the graph");
    SDX_TRY(reader_.take_status());
    return graph;
  }

 private:
  std::string read_text() {
    const std::size_t number = reader_.below(texts_.size(), "text");
    return reader_.ok() ? std::string(texts_[number]) : std::string();
  }

  DType read_dtype() { return static_cast<DType>(reader_.below(kDTypeCount, "element type")); }

  Shape read_shape() {
    Shape shape;
    const std::size_t rank = reader_.below(Shape::kMaxRank + 1, "rank");
    for (std::size_t i = 0; i < rank; ++i) shape.push_back(reader_.signed_number());
    return shape;
  }

  Type read_type(int depth) {
    Type type;
    if (depth > kDepth_max) reader_.refuse("types nest too deep");
    constexpr std::size_t kKinds = static_cast<std::size_t>(Type::Kind::Opaque) + 1;
    type.kind = static_cast<Type::Kind>(reader_.below(kKinds, "kind of type"));
    if (!reader_.ok() || type.kind == Type::Kind::Unknown) return type;
    type.dtype = read_dtype();
    if (reader_.below(2, "flag") == 1) type.shape = read_shape();
    if (reader_.below(2, "flag") == 1) {
      type.element = std::make_shared<const Type>(read_type(depth + 1));
    }
    return type;
  }

  Result<Tensor> read_strings(const Shape& shape) {
    // Every element takes at least a byte.
    const auto count = shape.element_count();
    if (!shape.is_static() || !count || *count > static_cast<std::int64_t>(reader_.remaining())) {
      reader_.refuse("a tensor of texts is cut short");
    }
    SDX_TRY(reader_.take_status());
    SDX_ASSIGN(Tensor tensor, Tensor::allocate(DType::String, shape));
    for (std::string& text : tensor.mutable_values<std::string>()) text = read_text();
    return tensor;
  }

  Result<Tensor> read_tensor() {
    const DType dtype = read_dtype();
    const Shape shape = read_shape();
    SDX_TRY(reader_.take_status());
    if (dtype == DType::Undefined) return Tensor();
    if (dtype == DType::String) return read_strings(shape);
    const auto count = shape.element_count();
    const auto bytes = count ? dtype_bytes(dtype, *count) : std::nullopt;
    if (!shape.is_static() || !bytes) reader_.refuse("the size of a tensor does not fit");
    SDX_TRY(reader_.take_status());
    const auto elements = reader_.raw(*bytes);
    SDX_TRY(reader_.take_status());
    SDX_ASSIGN(Tensor tensor, Tensor::allocate(dtype, shape));
    if (!elements.empty()) std::memcpy(tensor.mutable_data(), elements.data(), elements.size());
    return tensor;
  }

  Result<std::shared_ptr<const SparseTensor>> read_sparse() {
    auto sparse = std::make_shared<SparseTensor>();
    sparse->shape = read_shape();
    SDX_ASSIGN(sparse->values, read_tensor());
    SDX_ASSIGN(sparse->indices, read_tensor());
    SDX_TRY(check_sparse(*sparse));
    return std::shared_ptr<const SparseTensor>(std::move(sparse));
  }

  template <typename T, typename Read>
  Result<Attribute> read_list(Read read) {
    std::vector<T> items;
    const std::size_t count = reader_.count();
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) {
      SDX_ASSIGN(T item, read());
      items.push_back(std::move(item));
    }
    return Attribute(std::move(items));
  }

  Result<std::shared_ptr<Graph>> read_subgraph(const Graph& outer, int depth) {
    auto graph = std::make_shared<Graph>();
    SDX_TRY(read_graph(*graph, &outer, depth + 1));
    return graph;
  }

  Result<Attribute> read_attribute(const Graph& graph, int depth) {
    const std::size_t kind = reader_.below(std::variant_size_v<Attribute>, "kind of attribute");
    switch (kind) {
      case 0: return Attribute(reader_.signed_number());
      case 1: return Attribute(reader_.fixed<float>());
      case 2: return Attribute(read_text());
      case 3: {
        SDX_ASSIGN(Tensor tensor, read_tensor());
        return Attribute(std::move(tensor));
      }
      case 4: {
        SDX_ASSIGN(auto subgraph, read_subgraph(graph, depth));
        return Attribute(std::move(subgraph));
      }
      case 5: {
        SDX_ASSIGN(auto sparse, read_sparse());
        return Attribute(std::move(sparse));
      }
      case 6: return Attribute(read_type(0));
      default: return read_list_attribute(kind, graph, depth);
    }
  }

  Result<Attribute> read_list_attribute(std::size_t kind, const Graph& graph, int depth) {
    switch (kind) {
      case 7: return read_list<std::int64_t>([&] { return Result(reader_.signed_number()); });
      case 8: return read_list<float>([&] { return Result(reader_.fixed<float>()); });
      case 9: return read_list<std::string>([&] { return Result(read_text()); });
      case 10: return read_list<Tensor>([&] { return read_tensor(); });
      case 11:
        return read_list<std::shared_ptr<Graph>>([&] { return read_subgraph(graph, depth); });
      case 12: return read_list<Type>([&] { return Result(read_type(0)); });
      default: break;
    }
    AttributeReference reference{read_text(), 0};
    reference.onnx_type = static_cast<std::int32_t>(reader_.signed_number());
    return Attribute(std::move(reference));
  }

  Status read_graph(Graph& graph, const Graph* outer, int depth) {
    if (depth > kDepth_max) reader_.refuse("graphs nest too deep");
    graph.name = read_text();
    const std::size_t capture_count = reader_.count();
    if (capture_count != 0 && outer == nullptr) reader_.refuse("the whole graph has captures");
    std::vector<ValueId> outer_values;
    for (std::size_t i = 0; i < capture_count && reader_.ok(); ++i) {
      outer_values.push_back(read_id(outer->value_count(), "captured value"));
    }
    SDX_TRY(read_values(graph, outer_values));
    SDX_TRY(read_ends(graph));
    const std::size_t node_count = reader_.count();
    graph.reserve(0, std::min(node_count, kReserved_max));
    for (std::size_t i = 0; i < node_count; ++i) {
      SDX_TRY(reader_.take_status());
      SDX_TRY(read_node(graph, depth));
    }
    return reader_.take_status();
  }

  ValueId read_id(std::size_t bound, std::string_view name) {
    return static_cast<ValueId>(reader_.below(bound, name));
  }

  /// The captured ones are the first, one for each of `outer_values`.
  Status read_values(Graph& graph, const std::vector<ValueId>& outer_values) {
    const std::size_t count = reader_.count();
    if (count < outer_values.size()) reader_.refuse("captured values are missing");
    std::vector<ValueId> sorted = outer_values;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
      reader_.refuse("a value is captured twice");
    }
    graph.reserve(std::min(count, kReserved_max), 0);
    for (std::size_t i = 0; i < count; ++i) {
      std::string name = read_text();
      Type type = read_type(0);
      SDX_TRY(reader_.take_status());
      const bool is_captured = i < outer_values.size();
      const ValueId id = is_captured
                             ? graph.add_capture(outer_values[i], std::move(name), std::move(type))
                             : graph.add_value(std::move(name), std::move(type));
      SDX_TRY(read_constant(graph, id, is_captured));
    }
    return {};
  }

  Status read_constant(Graph& graph, ValueId id, bool is_captured) {
    const auto form = static_cast<ConstantForm>(reader_.below(kConstantForms, "kind of constant"));
    if (is_captured && form != ConstantForm::None) reader_.refuse("a captured value is a constant");
    SDX_TRY(reader_.take_status());
    if (form == ConstantForm::None) return {};
    if (form == ConstantForm::Sparse) {
      SDX_ASSIGN(graph.value(id).sparse_constant, read_sparse());
      return {};
    }
    if (form == ConstantForm::Inside) {
      SDX_ASSIGN(Tensor inside, read_tensor());
      graph.set_constant(id, std::move(inside));
      return {};
    }
    const auto number = static_cast<std::uint32_t>(reader_.below(0xffffffffU, "constant"));
    const DType dtype = read_dtype();
    const Shape shape = read_shape();
    SDX_TRY(reader_.take_status());
    SDX_ASSIGN(Tensor found, find_constant_(number, dtype, shape));
    graph.set_constant(id, std::move(found));
    return {};
  }

  Status read_ends(Graph& graph) {
    const std::size_t input_count = reader_.count();
    for (std::size_t i = 0; i < input_count; ++i) {
      const ValueId id = read_id(graph.value_count(), "input");
      if (reader_.ok() && !is_free(graph.value(id))) reader_.refuse("an input has a value already");
      SDX_TRY(reader_.take_status());
      graph.add_input(id);
    }
    const std::size_t output_count = reader_.count();
    for (std::size_t i = 0; i < output_count; ++i) {
      const ValueId id = read_id(graph.value_count(), "output");
      SDX_TRY(reader_.take_status());
      graph.add_output(id);
    }
    return {};
  }

  /// Whether nothing gives the value its content so far.
  static bool is_free(const Value& value) {
    return !value.is_input && !value.is_captured && !value.constant &&
           value.sparse_constant == nullptr && value.producer == kNoNode;
  }

  std::vector<ValueId> read_ids(const Graph& graph) {
    std::vector<ValueId> ids;
    const std::size_t count = reader_.count();
    for (std::size_t i = 0; i < count && reader_.ok(); ++i) {
      const std::size_t number = reader_.below(graph.value_count() + 1, "value");
      ids.push_back(number == 0 ? kNoValue : static_cast<ValueId>(number - 1));
    }
    return ids;
  }

  Status check_outputs(const Graph& graph, std::vector<ValueId> outputs) {
    std::erase(outputs, kNoValue);
    std::sort(outputs.begin(), outputs.end());
    bool is_right = std::adjacent_find(outputs.begin(), outputs.end()) == outputs.end();
    for (const ValueId id : outputs) is_right = is_right && is_free(graph.value(id));
    if (!is_right) reader_.refuse("two things make one value");
    return reader_.take_status();
  }

  Status read_node(Graph& graph, int depth) {
    Node node;
    node.domain = read_text();
    node.op_type = read_text();
    node.name = read_text();
    node.opset = reader_.signed_number();
    node.inputs = read_ids(graph);
    node.outputs = read_ids(graph);
    SDX_TRY(reader_.take_status());
    SDX_TRY(check_outputs(graph, node.outputs));
    const std::size_t attribute_count = reader_.count();
    for (std::size_t i = 0; i < attribute_count; ++i) {
      std::string name = read_text();
      SDX_TRY(reader_.take_status());
      SDX_ASSIGN(Attribute attribute, read_attribute(graph, depth));
      SDX_TRY(reader_.take_status());
      node.attributes.set(std::move(name), std::move(attribute));
    }
    graph.add_node(std::move(node));
    return {};
  }

  ByteReader reader_;
  FindConstantFn find_constant_;
  std::vector<std::string_view> texts_;
};

}  // namespace

Result<std::vector<std::byte>> encode_graph(const Graph& graph, NumberConstantFn number_constant) {
  return Encoder(number_constant).encode(graph);
}

Result<Graph> decode_graph(std::span<const std::byte> bytes, FindConstantFn find_constant) {
  return Decoder(bytes, find_constant).decode();
}

}  // namespace sardonyx
