#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "ir/datum.h"
#include "ir/graph.h"
#include "onnx/external_data.h"

namespace sardonyx::onnx {

/// Where a message's bytes come from.
struct Source {
  /// Keeps the bytes alive; tensors become views that share it. Null when the caller does.
  std::shared_ptr<const void> owner;
  /// The whole file, which every message lies in.
  std::string_view bytes;
  /// Path of the file, "" for memory.
  std::string file;
  /// Null where tensors must not refer to other files.
  ExternalData* external = nullptr;
};

/// A TensorProto.
struct NamedTensor {
  /// A view into the message.
  std::string_view name;
  Tensor tensor;
  /// Where the elements stand as they are; null for decoded ones and in memory.
  std::shared_ptr<const WeightOrigin> origin;
};

/// The name in a TensorProto.
std::string_view tensor_name(std::string_view message);

/// Element type and shape that a TensorProto declares, without its elements.
Result<Type> read_tensor_type(std::string_view message);

/// A TensorProto. raw_data, external data and packed floats become views, other fields are decoded.
/// Errors   InvalidModel or Unsupported, which name the tensor; throws what Fields throws.
Result<NamedTensor> read_tensor(std::string_view message, const Source& source);

/// A SparseTensorProto, its indices checked; the name is that of the values.
struct NamedSparseTensor {
  std::string_view name;
  std::shared_ptr<const SparseTensor> sparse;
};
Result<NamedSparseTensor> read_sparse_tensor(std::string_view message, const Source& source);

/// Dimensions, one more at a time; negative ones and more than Shape::kMaxRank are errors.
Status append_dim(Shape& shape, std::int64_t dim, std::string_view tensor);

}  // namespace sardonyx::onnx
