#include "ir/datum.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"

namespace sardonyx {

namespace {

/// Position in the flattened tensor of the sparse value `item`, or -1 if it lies outside.
std::int64_t flat_position(const SparseTensor& sparse, std::int64_t item, std::int64_t count) {
  const auto indices = sparse.indices.values<std::int64_t>();
  if (sparse.indices.rank() == 1) {
    const std::int64_t position = indices[static_cast<std::size_t>(item)];
    return position < count ? std::max<std::int64_t>(position, -1) : -1;
  }
  const int rank = sparse.shape.rank();
  std::int64_t position = 0;
  for (int axis = 0; axis < rank; ++axis) {
    const std::int64_t index = indices[static_cast<std::size_t>(item * rank + axis)];
    if (index < 0 || index >= sparse.shape[axis]) return -1;
    position = position * sparse.shape[axis] + index;
  }
  return position;
}

void copy_element(const Tensor& from, std::int64_t source, Tensor& to, std::int64_t target) {
  if (from.dtype() == DType::String) {
    to.mutable_values<std::string>()[static_cast<std::size_t>(target)] =
        from.values<std::string>()[static_cast<std::size_t>(source)];
    return;
  }
  const int bits = dtype_bits(from.dtype());
  if (bits >= 8) {
    std::memcpy(to.mutable_data() + target * (bits / 8), from.data() + source * (bits / 8),
                static_cast<std::size_t>(bits / 8));
    return;
  }
  const int per_byte = 8 / bits;
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  const auto element =
      (static_cast<unsigned>(from.data()[source / per_byte]) >> (source % per_byte * bits)) & mask;
  to.mutable_data()[target / per_byte] |=
      static_cast<std::byte>(element << (target % per_byte * bits));
}

Status check_parts(const SparseTensor& sparse) {
  const Shape& indices = sparse.indices.shape();
  const Shape& values = sparse.values.shape();
  const bool fits =
      sparse.indices.dtype() == DType::Int64 && values.rank() == 1 &&
      (indices == Shape{values[0]} || indices == Shape{values[0], sparse.shape.rank()});
  if (fits) return {};
  return failure(Code::InvalidModel,
                 "a sparse tensor of shape {} has values of shape {} and indices tensor({}) of "
                 "shape {}, expected [n] and int64 [n] or [n,{}]",
                 sparse.shape.to_string(), values.to_string(), dtype_name(sparse.indices.dtype()),
                 indices.to_string(), sparse.shape.rank());
}

}  // namespace

Status check_sparse(const SparseTensor& sparse) {
  SDX_TRY(check_parts(sparse));
  const auto count = sparse.shape.element_count();
  if (!count || !dtype_bytes(sparse.values.dtype(), *count)) {
    return failure(Code::InvalidModel, "a sparse tensor of shape {} has too many elements",
                   sparse.shape.to_string());
  }
  for (std::int64_t item = 0; item < sparse.values.dim(0); ++item) {
    if (flat_position(sparse, item, *count) >= 0) continue;
    return failure(Code::InvalidModel, "index {} of a sparse tensor lies outside its shape {}",
                   item, sparse.shape.to_string());
  }
  return {};
}

Result<Tensor> densify(const SparseTensor& sparse) {
  SDX_TRY(check_sparse(sparse));
  SDX_ASSIGN(Tensor dense, Tensor::allocate(sparse.values.dtype(), sparse.shape));
  const bool is_string = dense.dtype() == DType::String;
  if (!is_string) std::memset(dense.mutable_data(), 0, dense.byte_size());
  const std::int64_t count = dense.element_count();
  for (std::int64_t item = 0; item < sparse.values.dim(0); ++item) {
    copy_element(sparse.values, item, dense, flat_position(sparse, item, count));
  }
  return dense;
}

Type Datum::type() const {
  if (const Tensor* t = tensor()) return Type::tensor(t->dtype(), t->shape());
  if (const Sequence* s = sequence()) return Type::sequence(s->element);
  if (const Map* m = map()) {
    return Type::map(m->keys.dtype(), Type::tensor(m->values.dtype(), Shape{}));
  }
  if (const SparseTensor* s = sparse()) {
    return {Type::Kind::SparseTensor, s->values.dtype(), s->shape, nullptr};
  }
  return {Type::Kind::Optional, DType::Undefined, std::nullopt, nullptr};
}

}  // namespace sardonyx
