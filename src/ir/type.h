#pragma once

#include <memory>
#include <optional>
#include <string>

#include "ir/dtype.h"
#include "ir/shape.h"

namespace sardonyx {

/// What is known about a value before it is computed.
struct Type {
  enum class Kind : std::uint8_t { Unknown, Tensor, SparseTensor, Sequence, Map, Optional, Opaque };

  Kind kind = Kind::Unknown;
  /// Element type of a tensor, key type of a map.
  DType dtype = DType::Undefined;
  /// Shape of a tensor; empty when not even the rank is known.
  std::optional<Shape> shape;
  /// Element of a sequence or optional, value of a map; null when not known.
  std::shared_ptr<const Type> element;

  static Type tensor(DType dtype, std::optional<Shape> shape = std::nullopt) {
    return {Kind::Tensor, dtype, std::move(shape), nullptr};
  }
  static Type sequence(Type element) {
    return {Kind::Sequence, DType::Undefined, std::nullopt,
            std::make_shared<const Type>(std::move(element))};
  }
  static Type optional(Type element) {
    return {Kind::Optional, DType::Undefined, std::nullopt,
            std::make_shared<const Type>(std::move(element))};
  }
  static Type map(DType key, Type value) {
    return {Kind::Map, key, std::nullopt, std::make_shared<const Type>(std::move(value))};
  }

  bool is_tensor() const { return kind == Kind::Tensor; }

  /// As ONNX Runtime writes it: "tensor(float)", "seq(tensor(int64))", "map(string,tensor(float))",
  /// "optional(tensor(float))", "sparse_tensor(float)".
  std::string to_string() const;
};

}  // namespace sardonyx
