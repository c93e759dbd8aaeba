#include "ops/infer_context.h"

#include <array>
#include <algorithm>
#include <cctype>
#include <cstring>

#include "ops/attribute_rows.h"

namespace sardonyx {

namespace {

const Type kUnknownType;

}  // namespace

const Type& InferContext::type(std::size_t i) const {
  if (i >= operands_.types.size() || operands_.types[i] == nullptr) return kUnknownType;
  return *operands_.types[i];
}

const Shape* InferContext::shape(std::size_t i) const {
  const Type& input = type(i);
  return input.shape ? &*input.shape : nullptr;
}

const Tensor* InferContext::data(std::size_t i) const {
  return i < operands_.data.size() ? operands_.data[i] : nullptr;
}

std::optional<std::vector<std::int64_t>> InferContext::ints(std::size_t i) const {
  const Tensor* tensor = data(i);
  if (tensor == nullptr) return std::nullopt;
  if (tensor->dtype() == DType::Int64) {
    const auto values = tensor->values<std::int64_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  }
  if (tensor->dtype() == DType::Int32) {
    const auto values = tensor->values<std::int32_t>();
    return std::vector<std::int64_t>(values.begin(), values.end());
  }
  return std::nullopt;
}

std::string InferContext::input_name(std::size_t i) const {
  if (graph_ == nullptr || !has_input(i)) return fmt::format("#{}", i);
  return graph_->value(node_.inputs[i]).name;
}

void InferContext::set_dtype(std::size_t i, DType dtype) {
  if (!has_output(i)) return;
  operands_.outputs[i].kind = Type::Kind::Tensor;
  operands_.outputs[i].dtype = dtype;
}

void InferContext::set_shape(std::size_t i, const Shape& shape) {
  if (!has_output(i)) return;
  operands_.outputs[i].kind = Type::Kind::Tensor;
  operands_.outputs[i].shape = shape;
}

void InferContext::set_type(std::size_t i, Type type) {
  if (has_output(i)) operands_.outputs[i] = std::move(type);
}

Result<std::vector<Type>> InferContext::infer_subgraph(std::string_view attribute,
                                                       std::span<const Type> inputs) const {
  const auto* graph = attributes().get_if<std::shared_ptr<Graph>>(attribute);
  if (graph == nullptr || *graph == nullptr) {
    return failure(Code::InvalidModel, "attribute '{}' holds no graph", attribute);
  }
  if (infer_subgraph_ == nullptr) return std::vector<Type>((*graph)->outputs().size());
  return (*infer_subgraph_)(**graph, inputs);
}

namespace {

/// One position of a signature.
struct Operand {
  char letter = '\0';
  bool is_repeated = false;
};

/// Walks the letters of one side: operand(i) is the letter that position i falls under.
class Letters {
 public:
  explicit Letters(std::string_view text) : text_(text) {}

  Operand operand(std::size_t position) const {
    const bool is_variadic = !text_.empty() && text_.back() == '*';
    const std::size_t count = text_.size() - is_variadic;
    if (position < count) return {text_[position], is_variadic && position + 1 == count};
    if (is_variadic) return {text_[count - 1], true};
    return {};
  }

 private:
  std::string_view text_;
};

/// Element types that the letters T to W got from the inputs.
class Bindings {
 public:
  explicit Bindings(const Signature& signature)
      : sets_{signature.t, signature.u, signature.v, signature.w} {}

  static bool is_variable(char upper) { return upper >= 'T' && upper <= 'W'; }
  DType& bound(char upper) { return types_[static_cast<std::size_t>(upper - 'T')]; }
  DTypeSet allowed(char upper) const { return sets_[static_cast<std::size_t>(upper - 'T')]; }

  static DType fixed(char upper) {
    switch (upper) {
      case 'I': return DType::Int64;
      case 'B': return DType::Bool;
      case 'F': return DType::Float32;
      case 'S': return DType::String;
      default: return DType::Undefined;
    }
  }

 private:
  std::array<DTypeSet, 4> sets_;
  std::array<DType, 4> types_{};
};

std::string names_of(DTypeSet set) {
  std::vector<std::string> names;
  for (int i = 1; i < kDTypeCount; ++i) {
    if (contains(set, static_cast<DType>(i))) names.emplace_back(dtype_name(static_cast<DType>(i)));
  }
  return join(names, ", ");
}

Status check_operand(char upper, const Type& type, const std::string& name, Bindings& bindings) {
  if (upper == 'X' || type.kind == Type::Kind::Unknown) return {};
  if (type.kind != Type::Kind::Tensor) {
    return failure(Code::InvalidModel, "input '{}' should be a tensor, but is {}", name,
                   type.to_string());
  }
  if (type.dtype == DType::Undefined) return {};
  if (upper == 'N') {
    if (type.dtype == DType::Int32 || type.dtype == DType::Int64) return {};
    return failure(Code::InvalidModel,
                   "input '{}' should be tensor(int32) or tensor(int64), but is {}", name,
                   type.to_string());
  }
  if (!Bindings::is_variable(upper)) {
    if (type.dtype == Bindings::fixed(upper)) return {};
    return failure(Code::InvalidModel, "input '{}' should be tensor({}), but is {}", name,
                   dtype_name(Bindings::fixed(upper)), type.to_string());
  }
  if (!contains(bindings.allowed(upper), type.dtype)) {
    return failure(Code::InvalidModel, "input '{}' is {}, but this operator takes {}", name,
                   type.to_string(), names_of(bindings.allowed(upper)));
  }
  DType& bound = bindings.bound(upper);
  if (bound == DType::Undefined) bound = type.dtype;
  if (bound == type.dtype) return {};
  return failure(Code::InvalidModel,
                 "input '{}' is {}, but another input of the same type is tensor({})", name,
                 type.to_string(), dtype_name(bound));
}

Status check_count(std::string_view what, std::size_t count, Arity arity) {
  const bool fits = count >= static_cast<std::size_t>(arity.least) &&
                    (arity.most < 0 || count <= static_cast<std::size_t>(arity.most));
  if (fits) return {};
  const std::string expected = arity.most < 0 ? fmt::format("at least {}", arity.least)
                               : arity.least == arity.most
                                   ? fmt::format("{}", arity.least)
                                   : fmt::format("{} to {}", arity.least, arity.most);
  return failure(Code::InvalidModel, "expected {} {}, found {}", expected, what, count);
}

/// Kind letters of schema.h for each alternative of Attribute.
constexpr std::array<std::string_view, std::variant_size_v<Attribute>> kKindLetters = {
    "i", "f", "s", "t", "g", "p", "y", "is", "fs", "ss", "ts", "gs", "ys", ""};

/// An empty list is stored without telling its kind by some exporters.
bool kind_fits(std::string_view expected, const Attribute& attribute) {
  return kKindLetters[attribute.index()] == expected;
}

Status check_attributes(const Node& node, const OpSchema& schema) {
  const auto rows = attribute_rows(schema.attributes);
  for (const auto& [name, attribute] : node.attributes) {
    const auto row = std::find_if(rows.begin(), rows.end(), [&key = name](const AttributeRow& r) {
      return r.name == key;
    });
    if (row == rows.end() && schema.has(kCompiledPart)) continue;
    if (row == rows.end()) {
      std::vector<std::string> known;
      for (const AttributeRow& r : rows) known.emplace_back(r.name);
      const std::string guess = nearest(name, known);
      const std::string hint =
          guess.empty() ? "" : fmt::format(" (did you mean '{}'?)", guess);
      return failure(Code::InvalidModel, "attribute '{}' is not known in version {}{}", name,
                     schema.since, hint);
    }
    if (!kind_fits(row->kind, attribute)) {
      return failure(Code::InvalidModel, "attribute '{}' should be of kind {}, but is {}", name,
                     row->kind, attribute_kind(attribute));
    }
  }
  for (const AttributeRow& row : rows) {
    if (row.is_required && !node.attributes.has(row.name)) {
      return failure(Code::InvalidModel, "attribute '{}' is required", row.name);
    }
  }
  return {};
}

Status check_inputs(const Node& node, const Signature& signature, const Graph* graph,
                    std::span<const Type* const> types, Bindings& bindings) {
  const std::string_view text = signature.text;
  const Letters letters(text.substr(0, text.find('>')));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const char letter = letters.operand(i).letter;
    const bool is_required = std::isupper(static_cast<unsigned char>(letter)) != 0;
    if (node.inputs[i] == kNoValue) {
      if (!is_required) continue;
      return failure(Code::InvalidModel, "input {} is required, but left out", i);
    }
    const char upper = static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
    if (types[i] == nullptr) continue;
    const std::string name =
        graph != nullptr ? graph->value(node.inputs[i]).name : fmt::format("#{}", i);
    SDX_TRY(check_operand(upper, *types[i], name, bindings));
  }
  return {};
}

}  // namespace

Status check_signature(const Node& node, const OpSchema& schema, const Graph* graph,
                       std::span<const Type* const> types, std::span<Type> outputs) {
  SDX_TRY(check_count("inputs", node.inputs.size(), input_arity(schema.signature)));
  SDX_TRY(check_count("outputs", node.outputs.size(), output_arity(schema.signature)));
  SDX_TRY(check_attributes(node, schema));
  Bindings bindings(schema.signature);
  SDX_TRY(check_inputs(node, schema.signature, graph, types, bindings));
  const std::string_view text = schema.signature.text;
  const Letters letters(text.substr(text.find('>') + 1));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const char upper =
        static_cast<char>(std::toupper(static_cast<unsigned char>(letters.operand(i).letter)));
    if (upper == 'X') continue;
    const DType dtype =
        Bindings::is_variable(upper) ? bindings.bound(upper) : Bindings::fixed(upper);
    outputs[i] = Type::tensor(dtype);
  }
  return {};
}

std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape result = Shape::filled(rank, 1);
  for (int i = 0; i < rank; ++i) {
    const int ia = a.rank() - rank + i;
    const int ib = b.rank() - rank + i;
    const Dim da = ia >= 0 ? a[ia] : 1;
    const Dim db = ib >= 0 ? b[ib] : 1;
    if (da == db) {
      result[i] = da;
    } else if (da == 1) {
      result[i] = db;
    } else if (db == 1) {
      result[i] = da;
    } else if (is_known(da) && is_known(db)) {
      return std::nullopt;
    } else {
      // A size above 1 decides; two different unknown sizes could still be 1.
      result[i] = is_known(da) ? da : is_known(db) ? db : kUnknownDim;
    }
  }
  return result;
}

Status infer_same_shape(InferContext& context) {
  if (const Shape* shape = context.shape(0)) context.set_shape(0, *shape);
  return {};
}

Status infer_broadcast(InferContext& context) {
  std::optional<Shape> result = Shape{};
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    const Shape* shape = context.shape(i);
    if (shape == nullptr) return {};
    const auto next = broadcast(*result, *shape);
    if (!next) {
      return context.error("input '{}' of shape {} does not broadcast with {}",
                           context.input_name(i), shape->to_string(), result->to_string());
    }
    result = next;
  }
  context.set_shape(0, *result);
  return {};
}

Status infer_nothing(InferContext&) { return {}; }

}  // namespace sardonyx
