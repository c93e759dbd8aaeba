#pragma once

#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "ir/tensor.h"
#include "ir/type.h"

namespace sardonyx {

class Datum;

/// Elements of one kind in order. Shared between data by handle; a new one is made to change it.
struct Sequence {
  /// What the elements are; needed when there are none.
  Type element;
  std::vector<Datum> items;
};

/// A dictionary: equal numbers of keys (int64 or string) and values, both of rank 1.
struct Map {
  Tensor keys;
  Tensor values;
};

/// Coordinates and values of a tensor that is mostly zero.
struct SparseTensor {
  Shape shape;
  Tensor values;
  /// int64, rank 1 (positions in the flattened tensor) or [count, rank].
  Tensor indices;
};

/// Errors   InvalidModel when the parts' shapes do not fit each other, the dense size overflows or
///          an index lies outside the shape.
Status check_sparse(const SparseTensor& sparse);

/// The dense tensor: zeros (empty strings) but for the values. Errors as check_sparse().
/// Cost     the dense size, which can be far above the sparse one: callers bound it.
Result<Tensor> densify(const SparseTensor& sparse);

/// What flows along an edge of a graph while it runs: a tensor, sequence, map or sparse tensor, or
/// nothing (an optional without a value).
class Datum {
 public:
  Datum() = default;
  Datum(Tensor tensor) : state_(std::move(tensor)) {}
  Datum(std::shared_ptr<const Sequence> sequence) : state_(std::move(sequence)) {}
  Datum(std::shared_ptr<const Map> map) : state_(std::move(map)) {}
  Datum(std::shared_ptr<const SparseTensor> sparse) : state_(std::move(sparse)) {}

  bool has_value() const { return state_.index() != 0; }
  const Tensor* tensor() const { return std::get_if<Tensor>(&state_); }
  Tensor* tensor() { return std::get_if<Tensor>(&state_); }
  const Sequence* sequence() const { return pointer<Sequence>(); }
  const Map* map() const { return pointer<Map>(); }
  const SparseTensor* sparse() const { return pointer<SparseTensor>(); }

  /// The type of this datum; Kind::Optional without element when there is no value.
  Type type() const;

 private:
  template <typename T>
  const T* pointer() const {
    const auto* shared = std::get_if<std::shared_ptr<const T>>(&state_);
    return shared != nullptr ? shared->get() : nullptr;
  }
  std::variant<std::monostate, Tensor, std::shared_ptr<const Sequence>, std::shared_ptr<const Map>,
               std::shared_ptr<const SparseTensor>>
      state_;
};

}  // namespace sardonyx
