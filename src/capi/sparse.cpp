#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

Result<const SparseTensor*> sparse_of(const OrtValue* value) {
  SDX_TRY(require(value, "ort_value"));
  if (const SparseTensor* sparse = value->datum.sparse()) return sparse;
  return failure(Code::InvalidArgument, "the value is {}, expected a sparse tensor",
                 value->datum.has_value() ? value->datum.type().to_string() : "empty");
}

/// The tensor with the indices of that kind, or InvalidArgument.
Result<const Tensor*> indices_of(const OrtValue* value, OrtSparseIndicesFormat format) {
  SDX_ASSIGN(const SparseTensor* sparse, sparse_of(value));
  const Tensor* indices = format == ORT_SPARSE_COO_INDICES         ? &sparse->indices
                          : format == ORT_SPARSE_CSR_INNER_INDICES ? &value->csr_inner
                          : format == ORT_SPARSE_CSR_OUTER_INDICES ? &value->csr_outer
                                                                   : nullptr;
  if (indices != nullptr && indices->data() != nullptr) return indices;
  return failure(Code::InvalidArgument, "the sparse tensor has no indices of kind {}",
                 static_cast<int>(format));
}

Tensor index_view(int64_t* data, size_t count) {
  return Tensor::view(DType::Int64, Shape{static_cast<Dim>(count)}, data);
}

}  // namespace

OrtStatus* CreateSparseTensorWithValuesAsOrtValue(
    const OrtMemoryInfo* info, void* data, const int64_t* dense_shape, size_t dense_shape_count,
    const int64_t* values_shape, size_t values_shape_count, ONNXTensorElementDataType type,
    OrtValue** out) noexcept {
  return guarded("CreateSparseTensorWithValuesAsOrtValue", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const DType dtype, to_dtype(type));
    SDX_ASSIGN(const Shape dense, to_shape(dense_shape, dense_shape_count));
    SDX_ASSIGN(const Shape values, to_shape(values_shape, values_shape_count));
    if (dtype == DType::String || !values.element_count()) {
      return failure(Code::InvalidArgument, "sparse values of {} and shape {} are not supported",
                     dtype_name(dtype), values.to_string());
    }
    auto sparse = std::make_shared<const SparseTensor>(
        SparseTensor{dense, Tensor::view(dtype, values, data), Tensor()});
    *out = new OrtValue{Datum(std::move(sparse)), info != nullptr ? *info : cpu_memory_info()};
    return {};
  });
}

OrtStatus* UseCooIndices(OrtValue* ort_value, int64_t* indices_data, size_t indices_num) noexcept {
  return guarded("UseCooIndices", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, sparse_of(ort_value));
    const auto count = static_cast<size_t>(sparse->values.element_count());
    const auto rank = static_cast<size_t>(sparse->shape.rank());
    if (indices_num != count && indices_num != count * rank) {
      return failure(Code::InvalidArgument, "{} values need {} or {} indices, found {}", count,
                     count, count * rank, indices_num);
    }
    SparseTensor next = *sparse;
    next.indices = index_view(indices_data, indices_num);
    if (indices_num != count) {
      next.indices = next.indices.reshaped(Shape{static_cast<Dim>(count), static_cast<Dim>(rank)});
    }
    ort_value->datum = Datum(std::make_shared<const SparseTensor>(std::move(next)));
    return {};
  });
}

OrtStatus* UseCsrIndices(OrtValue* ort_value, int64_t* inner_data, size_t inner_num,
                         int64_t* outer_data, size_t outer_num) noexcept {
  return guarded("UseCsrIndices", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, sparse_of(ort_value));
    const auto count = static_cast<size_t>(sparse->values.element_count());
    const bool fits = sparse->shape.rank() == 2 && inner_num == count &&
                      outer_num == static_cast<size_t>(sparse->shape[0]) + 1;
    if (!fits) {
      return failure(Code::InvalidArgument,
                     "{} values of shape {} need {} inner and rows + 1 outer indices, found {} "
                     "and {}",
                     count, sparse->shape.to_string(), count, inner_num, outer_num);
    }
    ort_value->csr_inner = index_view(inner_data, inner_num);
    ort_value->csr_outer = index_view(outer_data, outer_num);
    return {};
  });
}

OrtStatus* GetSparseTensorFormat(const OrtValue* ort_value, OrtSparseFormat* out) noexcept {
  return guarded("GetSparseTensorFormat", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, sparse_of(ort_value));
    *out = sparse->indices.data() != nullptr        ? ORT_SPARSE_COO
           : ort_value->csr_inner.data() != nullptr ? ORT_SPARSE_CSRC
                                                    : ORT_SPARSE_UNDEFINED;
    return {};
  });
}

OrtStatus* GetSparseTensorValuesTypeAndShape(const OrtValue* ort_value,
                                             OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("GetSparseTensorValuesTypeAndShape", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, sparse_of(ort_value));
    const Type type = Type::tensor(sparse->values.dtype(), sparse->values.shape());
    *out = new OrtTensorTypeAndShapeInfo(tensor_info(type, {}));
    return {};
  });
}

OrtStatus* GetSparseTensorValues(const OrtValue* ort_value, const void** out) noexcept {
  return guarded("GetSparseTensorValues", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, sparse_of(ort_value));
    *out = sparse->values.data();
    return {};
  });
}

OrtStatus* GetSparseTensorIndicesTypeShape(const OrtValue* ort_value,
                                           OrtSparseIndicesFormat indices_format,
                                           OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("GetSparseTensorIndicesTypeShape", [&]() -> Status {
    SDX_ASSIGN(const Tensor* indices, indices_of(ort_value, indices_format));
    *out = new OrtTensorTypeAndShapeInfo(
        tensor_info(Type::tensor(indices->dtype(), indices->shape()), {}));
    return {};
  });
}

OrtStatus* GetSparseTensorIndices(const OrtValue* ort_value, OrtSparseIndicesFormat indices_format,
                                  size_t* indice_count, const void** indices) noexcept {
  return guarded("GetSparseTensorIndices", [&]() -> Status {
    SDX_ASSIGN(const Tensor* found, indices_of(ort_value, indices_format));
    *indice_count = static_cast<size_t>(found->element_count());
    *indices = found->data();
    return {};
  });
}

}  // namespace sardonyx::capi
