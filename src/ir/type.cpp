#include "ir/type.h"

namespace sardonyx {

std::string Type::to_string() const {
  const std::string inner = element ? element->to_string() : "unknown";
  const std::string name(dtype_name(dtype));
  switch (kind) {
    case Kind::Unknown: return "unknown";
    case Kind::Tensor: return "tensor(" + name + ")";
    case Kind::SparseTensor: return "sparse_tensor(" + name + ")";
    case Kind::Sequence: return "seq(" + inner + ")";
    case Kind::Map: return "map(" + name + "," + inner + ")";
    case Kind::Optional: return "optional(" + inner + ")";
    case Kind::Opaque: return "opaque";
  }
  return "unknown";
}

}  // namespace sardonyx
