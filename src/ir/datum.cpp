#include "ir/datum.h"

namespace sardonyx {

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
