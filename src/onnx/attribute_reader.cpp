#include <algorithm>
#include <array>

#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/graph_reader.h"
#include "onnx/type_reader.h"
#include "onnx/wire.h"

namespace sardonyx::onnx {

namespace {

/// Which field holds the value of each AttributeType.
constexpr std::array<std::uint32_t, 15> kValueFields = {
    0,
    attribute_field::kFloat,
    attribute_field::kInt,
    attribute_field::kString,
    attribute_field::kTensor,
    attribute_field::kGraph,
    attribute_field::kFloats,
    attribute_field::kInts,
    attribute_field::kStrings,
    attribute_field::kTensors,
    attribute_field::kGraphs,
    attribute_field::kSparseTensor,
    attribute_field::kSparseTensors,
    attribute_field::kTypeProto,
    attribute_field::kTypeProtos,
};

/// All but the value.
struct Header {
  std::string_view name;
  std::string_view reference;
  std::int64_t type = 0;
  /// The field of the first value found: early models give no type.
  std::uint32_t value_field = 0;
};

Header read_header(std::string_view message) {
  Header header;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case attribute_field::kName: header.name = fields.bytes(); break;
      case attribute_field::kReference: header.reference = fields.bytes(); break;
      case attribute_field::kType: header.type = fields.integer(); break;
      default: {
        const bool is_value = std::find(kValueFields.begin(), kValueFields.end(),
                                        fields.number()) != kValueFields.end();
        if (is_value && header.value_field == 0) header.value_field = fields.number();
        fields.skip();
      }
    }
  }
  return header;
}

Result<AttributeType> type_of(const Header& header) {
  if (header.type < 0 || header.type >= static_cast<std::int64_t>(kValueFields.size())) {
    return failure(Code::Unsupported, "attribute '{}' has the unknown type {}", header.name,
                   header.type);
  }
  if (header.type != 0) return static_cast<AttributeType>(header.type);
  for (std::size_t type = 1; type < kValueFields.size(); ++type) {
    if (kValueFields[type] == header.value_field) return static_cast<AttributeType>(type);
  }
  return failure(Code::InvalidModel, "attribute '{}' has neither type nor value", header.name);
}

/// Calls visit(Fields&) for each field of that number, until it fails.
template <typename Visit>
Status for_each(std::string_view message, std::uint32_t number, Visit&& visit) {
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() != number) {
      fields.skip();
      continue;
    }
    SDX_TRY(visit(fields));
  }
  return {};
}

/// Everything that a value in a submessage needs.
struct Place {
  const GraphContext& context;
  Scope& scope;
  int depth;
};

Status read_value(std::string_view message, const Place& place, Tensor& value) {
  SDX_ASSIGN(NamedTensor named, read_tensor(message, place.context.source));
  value = std::move(named.tensor);
  return {};
}

Status read_value(std::string_view message, const Place& place, std::shared_ptr<Graph>& value) {
  SDX_ASSIGN(value, read_graph(message, place.context, &place.scope, place.depth + 1));
  return {};
}

Status read_value(std::string_view message, const Place& place,
                  std::shared_ptr<const SparseTensor>& value) {
  SDX_ASSIGN(NamedSparseTensor named, read_sparse_tensor(message, place.context.source));
  value = std::move(named.sparse);
  return {};
}

Status read_value(std::string_view message, const Place& place, Type& value) {
  SDX_ASSIGN(value, read_type(message, place.context.symbols));
  return {};
}

Status read_value(std::string_view message, const Place&, std::string& value) {
  value = message;
  return {};
}

template <typename T>
Result<Attribute> read_one(std::string_view message, std::uint32_t number, const Place& place) {
  T value{};
  bool is_found = false;
  SDX_TRY(for_each(message, number, [&](Fields& fields) {
    is_found = true;
    return read_value(fields.bytes(), place, value);
  }));
  const bool needs_value = !std::is_same_v<T, std::string>;
  if (needs_value && !is_found) return failure(Code::InvalidModel, "it has no value");
  return Attribute(std::move(value));
}

template <typename T>
Result<Attribute> read_list(std::string_view message, std::uint32_t number, const Place& place) {
  std::vector<T> values;
  SDX_TRY(for_each(message, number, [&](Fields& fields) {
    values.emplace_back();
    return read_value(fields.bytes(), place, values.back());
  }));
  return Attribute(std::move(values));
}

Result<Attribute> read_int(std::string_view message) {
  std::int64_t value = 0;
  SDX_TRY(for_each(message, attribute_field::kInt, [&](Fields& fields) {
    value = fields.integer();
    return Status();
  }));
  return Attribute(value);
}

Result<Attribute> read_float(std::string_view message) {
  float value = 0;
  SDX_TRY(for_each(message, attribute_field::kFloat, [&](Fields& fields) {
    value = fields.float32();
    return Status();
  }));
  return Attribute(value);
}

Result<Attribute> read_ints(std::string_view message) {
  std::vector<std::int64_t> values;
  SDX_TRY(for_each(message, attribute_field::kInts, [&](Fields& fields) {
    fields.integers([&](std::int64_t value) { values.push_back(value); });
    return Status();
  }));
  return Attribute(std::move(values));
}

Result<Attribute> read_floats(std::string_view message) {
  std::vector<float> values;
  SDX_TRY(for_each(message, attribute_field::kFloats, [&](Fields& fields) {
    fields.fixed<float>([&](float value) { values.push_back(value); });
    return Status();
  }));
  return Attribute(std::move(values));
}

Result<Attribute> read_typed(std::string_view message, AttributeType type, const Place& place) {
  const std::uint32_t number = kValueFields[static_cast<std::size_t>(type)];
  switch (type) {
    case AttributeType::Float: return read_float(message);
    case AttributeType::Int: return read_int(message);
    case AttributeType::Floats: return read_floats(message);
    case AttributeType::Ints: return read_ints(message);
    case AttributeType::String: return read_one<std::string>(message, number, place);
    case AttributeType::Tensor: return read_one<Tensor>(message, number, place);
    case AttributeType::Graph: return read_one<std::shared_ptr<Graph>>(message, number, place);
    case AttributeType::SparseTensor:
      return read_one<std::shared_ptr<const SparseTensor>>(message, number, place);
    case AttributeType::TypeProto: return read_one<Type>(message, number, place);
    case AttributeType::Strings: return read_list<std::string>(message, number, place);
    case AttributeType::Tensors: return read_list<Tensor>(message, number, place);
    case AttributeType::Graphs: return read_list<std::shared_ptr<Graph>>(message, number, place);
    case AttributeType::TypeProtos: return read_list<Type>(message, number, place);
    case AttributeType::SparseTensors:
    case AttributeType::Undefined: break;
  }
  return failure(Code::Unsupported, "it is a list of sparse tensors");
}

}  // namespace

Result<Attributes::Entry> read_attribute(std::string_view message, const GraphContext& context,
                                         Scope& scope, int depth) {
  const Header header = read_header(message);
  std::string name(header.name);
  if (name.empty()) return failure(Code::InvalidModel, "an attribute has no name");
  if (!header.reference.empty()) {
    if (!context.in_function) {
      return failure(Code::InvalidModel,
                     "attribute '{}' refers to attribute '{}' of a function, outside of any", name,
                     header.reference);
    }
    AttributeReference reference{std::string(header.reference),
                                 static_cast<std::int32_t>(header.type)};
    return Attributes::Entry(std::move(name), std::move(reference));
  }
  SDX_ASSIGN(const AttributeType type, type_of(header));
  auto value = read_typed(message, type, {context, scope, depth});
  if (!value.ok()) {
    return std::move(value).take_status().with(fmt::format("reading attribute '{}'", name));
  }
  return Attributes::Entry(std::move(name), std::move(value).value());
}

}  // namespace sardonyx::onnx
