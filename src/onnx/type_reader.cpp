#include "onnx/type_reader.h"

#include "base/text.h"
#include "onnx/field_numbers.h"
#include "onnx/wire.h"

namespace sardonyx::onnx {

namespace {

constexpr int kMaxDepth = 32;

Result<Type> read_nested(std::string_view message, SymbolTable* symbols, int depth);

Dim read_dim(std::string_view message, SymbolTable* symbols) {
  Dim dim = kUnknownDim;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == shape_field::kValue) {
      const std::int64_t value = fields.integer();
      dim = value >= 0 ? value : kUnknownDim;
    } else if (fields.number() == shape_field::kParameter) {
      const std::string name = fields.text();
      dim = symbols != nullptr && !name.empty() ? symbols->intern(name) : kUnknownDim;
    } else {
      fields.skip();
    }
  }
  return dim;
}

Result<Shape> read_shape(std::string_view message, SymbolTable* symbols) {
  Shape shape;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() != shape_field::kDim) {
      fields.skip();
      continue;
    }
    if (!Shape::fits(static_cast<std::size_t>(shape.rank()) + 1)) {
      return failure(Code::Unsupported, "a type has more than {} dimensions", Shape::kMaxRank);
    }
    shape.push_back(read_dim(fields.bytes(), symbols));
  }
  return shape;
}

Result<DType> to_dtype(std::int64_t number) {
  const auto dtype = dtype_from_onnx(number);
  if (dtype) return *dtype;
  return failure(Code::Unsupported, "a type has the unknown element type {}", number);
}

/// TypeProto.Tensor and TypeProto.SparseTensor.
Result<Type> read_tensor_kind(std::string_view message, Type::Kind kind, SymbolTable* symbols) {
  Type type;
  type.kind = kind;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == type_field::kElement) {
      SDX_ASSIGN(type.dtype, to_dtype(fields.integer()));
    } else if (fields.number() == type_field::kSecond) {
      SDX_ASSIGN(type.shape, read_shape(fields.bytes(), symbols));
    } else {
      fields.skip();
    }
  }
  return type;
}

/// TypeProto.Sequence and TypeProto.Optional, whose element stands in field 1, and TypeProto.Map,
/// whose value stands in field 2.
Result<Type> read_container(std::string_view message, Type::Kind kind, SymbolTable* symbols,
                            int depth) {
  Type type;
  type.kind = kind;
  Type element;
  const bool is_map = kind == Type::Kind::Map;
  const std::uint32_t element_field = is_map ? type_field::kSecond : type_field::kElement;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == element_field) {
      SDX_ASSIGN(element, read_nested(fields.bytes(), symbols, depth + 1));
    } else if (is_map && fields.number() == type_field::kElement) {
      SDX_ASSIGN(type.dtype, to_dtype(fields.integer()));
    } else {
      fields.skip();
    }
  }
  type.element = std::make_shared<const Type>(std::move(element));
  return type;
}

Result<Type> read_nested(std::string_view message, SymbolTable* symbols, int depth) {
  if (depth > kMaxDepth) {
    return failure(Code::Unsupported, "a type is nested more than {} deep", kMaxDepth);
  }
  Type type;
  Fields fields(message);
  while (fields.next()) {
    const auto container = [&](Type::Kind kind) {
      return read_container(fields.bytes(), kind, symbols, depth);
    };
    switch (fields.number()) {
      case type_field::kTensor: {
        SDX_ASSIGN(type, read_tensor_kind(fields.bytes(), Type::Kind::Tensor, symbols));
        break;
      }
      case type_field::kSparseTensor: {
        SDX_ASSIGN(type, read_tensor_kind(fields.bytes(), Type::Kind::SparseTensor, symbols));
        break;
      }
      case type_field::kSequence: {
        SDX_ASSIGN(type, container(Type::Kind::Sequence));
        break;
      }
      case type_field::kOptional: {
        SDX_ASSIGN(type, container(Type::Kind::Optional));
        break;
      }
      case type_field::kMap: {
        SDX_ASSIGN(type, container(Type::Kind::Map));
        break;
      }
      case type_field::kOpaque:
        fields.skip();
        type = {};
        type.kind = Type::Kind::Opaque;
        break;
      default: fields.skip();
    }
  }
  return type;
}

}  // namespace

Result<Type> read_type(std::string_view message, SymbolTable* symbols) {
  return read_nested(message, symbols, 0);
}

Result<NamedType> read_value_info(std::string_view message, SymbolTable* symbols) {
  NamedType named;
  std::string_view type;
  Fields fields(message);
  while (fields.next()) {
    switch (fields.number()) {
      case value_info_field::kName: named.name = fields.bytes(); break;
      case value_info_field::kType: type = fields.bytes(); break;
      default: fields.skip();
    }
  }
  auto result = read_type(type, symbols);
  if (!result.ok()) {
    return std::move(result).take_status().with(
        fmt::format("reading the type of '{}'", named.name));
  }
  named.type = std::move(result).value();
  return named;
}

namespace {

/// The last message in that field; "" when there is none.
std::string_view inner(std::string_view message, std::uint32_t number) {
  std::string_view found;
  Fields fields(message);
  while (fields.next()) {
    if (fields.number() == number) {
      found = fields.bytes();
    } else {
      fields.skip();
    }
  }
  return found;
}

}  // namespace

std::vector<std::pair<int, std::string>> read_denotations(std::string_view message) {
  std::vector<std::pair<int, std::string>> denotations;
  const std::string_view tensor =
      inner(inner(message, value_info_field::kType), type_field::kTensor);
  Fields fields(inner(tensor, type_field::kSecond));
  int axis = 0;
  while (fields.next()) {
    if (fields.number() != shape_field::kDim) {
      fields.skip();
      continue;
    }
    const std::string_view text = inner(fields.bytes(), shape_field::kDenotation);
    if (!text.empty()) denotations.emplace_back(axis, text);
    ++axis;
  }
  return denotations;
}

}  // namespace sardonyx::onnx
