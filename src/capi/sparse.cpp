// Sparse tensors by coordinates, by compressed rows and by blocks.
#include <algorithm>

#include "base/checked.h"
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

OrtSparseFormat format_of(const OrtValue& value) {
  if (value.sparse != nullptr) return value.sparse->format;
  return value.datum.sparse()->indices.data() != nullptr ? ORT_SPARSE_COO : ORT_SPARSE_UNDEFINED;
}

/// A sparse tensor that has its values and indices.
Result<const SparseTensor*> filled_sparse_of(const OrtValue* value) {
  SDX_ASSIGN(const SparseTensor* sparse, sparse_of(value));
  if (format_of(*value) != ORT_SPARSE_UNDEFINED) return sparse;
  return failure(kPlainFailure, "the sparse tensor has no values and indices yet");
}

/// A sparse tensor that has no indices yet.
Result<const SparseTensor*> open_sparse_of(const OrtValue* value) {
  SDX_ASSIGN(const SparseTensor* sparse, sparse_of(value));
  if (format_of(*value) == ORT_SPARSE_UNDEFINED) return sparse;
  return failure(kPlainFailure, "the sparse tensor has its indices already");
}

/// The tensor with the indices of that kind, or the error that it has none.
Result<const Tensor*> indices_of(const OrtValue* value, OrtSparseIndicesFormat kind) {
  SDX_ASSIGN(const SparseTensor* sparse, filled_sparse_of(value));
  const OrtSparseFormat format = format_of(*value);
  if (format == ORT_SPARSE_COO && kind == ORT_SPARSE_COO_INDICES) return &sparse->indices;
  if (format == ORT_SPARSE_CSRC && kind == ORT_SPARSE_CSR_INNER_INDICES) {
    return &value->sparse->csr_inner;
  }
  if (format == ORT_SPARSE_CSRC && kind == ORT_SPARSE_CSR_OUTER_INDICES) {
    return &value->sparse->csr_outer;
  }
  if (format == ORT_SPARSE_BLOCK_SPARSE && kind == ORT_SPARSE_BLOCK_SPARSE_INDICES) {
    return &value->sparse->block_indices;
  }
  return failure(Code::InvalidArgument, "the sparse tensor has no indices of kind {}",
                 static_cast<int>(kind));
}

/// Indices at the caller's address.
template <typename T>
Result<Tensor> index_view(DType dtype, const T* data, const Shape& shape) {
  const auto count = shape.element_count();
  if (!count) return failure(Code::InvalidArgument, "too many indices: {}", shape.to_string());
  if (*count != 0) SDX_TRY(require(data, "the indices"));
  static constexpr T kNone[1] = {};
  return Tensor::view(dtype, shape, *count != 0 ? data : kNone);
}

/// Everything that makes one filled sparse tensor.
struct Parts {
  Tensor values;
  Tensor indices;
  SparseLayout layout;
};

void put(OrtValue& value, Parts parts) {
  SparseTensor made = *value.datum.sparse();
  made.values = std::move(parts.values);
  made.indices = std::move(parts.indices);
  value.datum = Datum(std::make_shared<const SparseTensor>(std::move(made)));
  value.sparse = std::make_shared<const SparseLayout>(std::move(parts.layout));
}

Result<Parts> by_coordinates(const SparseTensor& sparse, Tensor values, const int64_t* indices,
                             size_t indices_num) {
  const auto count = static_cast<size_t>(values.element_count());
  const auto rank = static_cast<size_t>(sparse.shape.rank());
  const bool is_flat = indices_num == count && (count != 0 || rank == 1);
  if (values.rank() != 1 || (!is_flat && indices_num != count * rank)) {
    return failure(Code::InvalidArgument,
                   "values of shape {} of a sparse tensor of shape {} need {} or {} indices, found "
                   "{}",
                   values.shape().to_string(), sparse.shape.to_string(), count, count * rank,
                   indices_num);
  }
  const auto rows = static_cast<Dim>(count);
  const Shape shape = is_flat ? Shape{rows} : Shape{rows, static_cast<Dim>(rank)};
  Parts parts;
  SDX_ASSIGN(parts.indices, index_view(DType::Int64, indices, shape));
  parts.values = std::move(values);
  parts.layout.format = ORT_SPARSE_COO;
  return parts;
}

/// Positions in the flattened tensor of what is stored by rows.
/// Errors   InvalidArgument for rows that do not follow each other or columns outside the shape.
Result<Tensor> flat_positions(const Shape& shape, std::span<const int64_t> inner,
                              std::span<const int64_t> outer) {
  if (!shape.element_count()) {
    return failure(Code::InvalidArgument, "a sparse tensor of shape {} has too many elements",
                   shape.to_string());
  }
  SDX_ASSIGN(Tensor flat, Tensor::allocate(DType::Int64, Shape{static_cast<Dim>(inner.size())}));
  const auto positions = flat.mutable_values<std::int64_t>();
  const auto count = static_cast<int64_t>(inner.size());
  if (!outer.empty() && (outer.front() != 0 || outer.back() != count)) {
    return failure(Code::InvalidArgument,
                   "the outer indices should begin with 0 and end with the number of inner ones, "
                   "{}; found {} and {}",
                   count, outer.front(), outer.back());
  }
  for (size_t row = 0; row + 1 < outer.size(); ++row) {
    if (outer[row + 1] < outer[row] || outer[row + 1] > count) {
      return failure(Code::InvalidArgument, "outer index {} is {} after {}, of {} values", row + 1,
                     outer[row + 1], outer[row], count);
    }
    for (auto i = static_cast<size_t>(outer[row]); i < static_cast<size_t>(outer[row + 1]); ++i) {
      if (inner[i] < 0 || inner[i] >= shape[1]) {
        return failure(Code::InvalidArgument, "inner index {} is {}, outside {} columns", i,
                       inner[i], shape[1]);
      }
      positions[i] = static_cast<int64_t>(row) * shape[1] + inner[i];
    }
  }
  return flat;
}

Result<Parts> by_rows(const SparseTensor& sparse, Tensor values, const int64_t* inner,
                      size_t inner_num, const int64_t* outer, size_t outer_num) {
  const auto count = static_cast<size_t>(values.element_count());
  const bool fits =
      sparse.shape.rank() == 2 && values.rank() == 1 && inner_num == count &&
      (outer_num == static_cast<size_t>(sparse.shape[0]) + 1 || (count == 0 && outer_num == 0));
  if (!fits) {
    return failure(Code::InvalidArgument,
                   "values of shape {} of a sparse tensor of shape {} need {} inner and rows + 1 "
                   "outer indices, found {} and {}",
                   values.shape().to_string(), sparse.shape.to_string(), count, inner_num,
                   outer_num);
  }
  Parts parts;
  parts.layout.format = ORT_SPARSE_CSRC;
  SDX_ASSIGN(parts.layout.csr_inner,
             index_view(DType::Int64, inner, Shape{static_cast<Dim>(inner_num)}));
  SDX_ASSIGN(parts.layout.csr_outer,
             index_view(DType::Int64, outer, Shape{static_cast<Dim>(outer_num)}));
  SDX_ASSIGN(parts.indices,
             flat_positions(sparse.shape, parts.layout.csr_inner.values<std::int64_t>(),
                            parts.layout.csr_outer.values<std::int64_t>()));
  parts.values = std::move(values);
  return parts;
}

Result<Parts> by_blocks(Tensor values, const int64_t* indices_shape, size_t indices_rank,
                        const int32_t* indices) {
  SDX_ASSIGN(const Shape shape, to_shape(indices_shape, indices_rank));
  const bool fits =
      values.rank() >= 3 && shape.rank() == 2 && shape[0] == 2 && shape[1] == values.dim(0);
  if (!fits) {
    return failure(kPlainFailure,
                   "blocks are values [blocks, rows, columns] with indices [2, blocks], found "
                   "values {} and indices {}",
                   values.shape().to_string(), shape.to_string());
  }
  Parts parts;
  parts.layout.format = ORT_SPARSE_BLOCK_SPARSE;
  SDX_ASSIGN(parts.layout.block_indices, index_view(DType::Int32, indices, shape));
  parts.values = std::move(values);
  return parts;
}

/// The caller's values in memory of the sparse tensor's allocator. Strings come as an array of C
/// strings.
Result<Tensor> copied_values(const OrtValue& value, const SparseTensor& sparse,
                             const OrtMemoryInfo* memory, const int64_t* values_shape,
                             size_t values_rank, const void* values) {
  SDX_TRY(require(memory, "data_mem_info"));
  if (value.sparse == nullptr || value.sparse->allocator.allocator == nullptr) {
    return failure(kPlainFailure,
                   "the sparse tensor is over the caller's memory: CreateSparseTensorAsOrtValue "
                   "makes one that can be filled");
  }
  SDX_ASSIGN(const Shape shape, to_shape(values_shape, values_rank));
  SDX_ASSIGN(Tensor copy, allocate_with(value.sparse->allocator, sparse.values.dtype(), shape));
  if (copy.element_count() == 0) return copy;
  SDX_TRY(require(values, "values"));
  if (copy.dtype() == DType::String) {
    const auto* texts = static_cast<const char* const*>(values);
    for (std::string& text : copy.mutable_values<std::string>()) {
      SDX_TRY(require(*texts, "a string"));
      text = *texts++;
    }
  } else {
    copy_elements(Tensor::view(copy.dtype(), shape, values), copy);
  }
  return copy;
}

Status own(Tensor& indices) {
  if (indices.data() == nullptr) return {};
  SDX_ASSIGN(indices, clone(indices));
  return {};
}

/// Fills a sparse tensor with copies of what the caller has.
Status fill(OrtValue& value, Parts parts) {
  parts.layout.allocator = value.sparse->allocator;
  for (Tensor* indices : {&parts.indices, &parts.layout.csr_inner, &parts.layout.csr_outer,
                          &parts.layout.block_indices}) {
    SDX_TRY(own(*indices));
  }
  put(value, std::move(parts));
  return {};
}

}  // namespace

OrtStatus* CreateSparseTensorAsOrtValue(OrtAllocator* allocator, const int64_t* dense_shape,
                                        size_t dense_shape_count, ONNXTensorElementDataType type,
                                        OrtValue** out) noexcept {
  return guarded("CreateSparseTensorAsOrtValue", [&]() -> Status {
    SDX_TRY(require(allocator, "allocator"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const DType dtype, to_dtype(type));
    SDX_ASSIGN(const Shape dense, to_shape(dense_shape, dense_shape_count));
    SDX_ASSIGN(Tensor none, Tensor::allocate(dtype, Shape{0}));
    const OrtMemoryInfo* memory = allocator->Info(allocator);
    auto made = std::make_unique<OrtValue>();
    made->datum =
        Datum(std::make_shared<const SparseTensor>(SparseTensor{dense, std::move(none), Tensor()}));
    made->memory = memory != nullptr ? *memory : cpu_memory_info();
    made->sparse = std::make_shared<const SparseLayout>(
        SparseLayout{ORT_SPARSE_UNDEFINED, hold(allocator), {}, {}, {}});
    *out = made.release();
    return {};
  });
}

OrtStatus* CreateSparseTensorWithValuesAsOrtValue(
    const OrtMemoryInfo* info, void* data, const int64_t* dense_shape, size_t dense_shape_count,
    const int64_t* values_shape, size_t values_shape_count, ONNXTensorElementDataType type,
    OrtValue** out) noexcept {
  return guarded("CreateSparseTensorWithValuesAsOrtValue", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const DType dtype, to_dtype(type));
    SDX_ASSIGN(const Shape dense, to_shape(dense_shape, dense_shape_count));
    SDX_ASSIGN(const Shape values, to_shape(values_shape, values_shape_count));
    const auto count = values.element_count();
    if (dtype == DType::String || !count || !dtype_bytes(dtype, *count)) {
      return failure(Code::InvalidArgument, "sparse values of {} and shape {} are not supported",
                     dtype_name(dtype), values.to_string());
    }
    if (*count != 0) SDX_TRY(require(data, "data"));
    auto sparse = std::make_shared<const SparseTensor>(
        SparseTensor{dense, Tensor::view(dtype, values, data), Tensor()});
    *out = new OrtValue{Datum(std::move(sparse)), *info};
    return {};
  });
}

OrtStatus* UseCooIndices(OrtValue* ort_value, int64_t* indices_data, size_t indices_num) noexcept {
  return guarded("UseCooIndices", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Parts parts, by_coordinates(*sparse, sparse->values, indices_data, indices_num));
    put(*ort_value, std::move(parts));
    return {};
  });
}

OrtStatus* UseCsrIndices(OrtValue* ort_value, int64_t* inner_data, size_t inner_num,
                         int64_t* outer_data, size_t outer_num) noexcept {
  return guarded("UseCsrIndices", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Parts parts,
               by_rows(*sparse, sparse->values, inner_data, inner_num, outer_data, outer_num));
    put(*ort_value, std::move(parts));
    return {};
  });
}

OrtStatus* UseBlockSparseIndices(OrtValue* ort_value, const int64_t* indices_shape,
                                 size_t indices_shape_count, int32_t* indices_data) noexcept {
  return guarded("UseBlockSparseIndices", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Parts parts,
               by_blocks(sparse->values, indices_shape, indices_shape_count, indices_data));
    put(*ort_value, std::move(parts));
    return {};
  });
}

OrtStatus* FillSparseTensorCoo(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                               const int64_t* values_shape, size_t values_shape_count,
                               const void* values, const int64_t* indices_data,
                               size_t indices_num) noexcept {
  return guarded("FillSparseTensorCoo", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Tensor copy, copied_values(*ort_value, *sparse, data_mem_info, values_shape,
                                          values_shape_count, values));
    SDX_ASSIGN(Parts parts, by_coordinates(*sparse, std::move(copy), indices_data, indices_num));
    return fill(*ort_value, std::move(parts));
  });
}

OrtStatus* FillSparseTensorCsr(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                               const int64_t* values_shape, size_t values_shape_count,
                               const void* values, const int64_t* inner_indices_data,
                               size_t inner_indices_num, const int64_t* outer_indices_data,
                               size_t outer_indices_num) noexcept {
  return guarded("FillSparseTensorCsr", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Tensor copy, copied_values(*ort_value, *sparse, data_mem_info, values_shape,
                                          values_shape_count, values));
    SDX_ASSIGN(Parts parts, by_rows(*sparse, std::move(copy), inner_indices_data, inner_indices_num,
                                    outer_indices_data, outer_indices_num));
    return fill(*ort_value, std::move(parts));
  });
}

OrtStatus* FillSparseTensorBlockSparse(OrtValue* ort_value, const OrtMemoryInfo* data_mem_info,
                                       const int64_t* values_shape, size_t values_shape_count,
                                       const void* values, const int64_t* indices_shape_data,
                                       size_t indices_shape_count,
                                       const int32_t* indices_data) noexcept {
  return guarded("FillSparseTensorBlockSparse", [&]() -> Status {
    SDX_ASSIGN(const SparseTensor* sparse, open_sparse_of(ort_value));
    SDX_ASSIGN(Tensor copy, copied_values(*ort_value, *sparse, data_mem_info, values_shape,
                                          values_shape_count, values));
    SDX_ASSIGN(Parts parts,
               by_blocks(std::move(copy), indices_shape_data, indices_shape_count, indices_data));
    return fill(*ort_value, std::move(parts));
  });
}

OrtStatus* GetSparseTensorFormat(const OrtValue* ort_value, OrtSparseFormat* out) noexcept {
  return guarded("GetSparseTensorFormat", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN([[maybe_unused]] const SparseTensor* sparse, sparse_of(ort_value));
    *out = format_of(*ort_value);
    return {};
  });
}

OrtStatus* GetSparseTensorValuesTypeAndShape(const OrtValue* ort_value,
                                             OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("GetSparseTensorValuesTypeAndShape", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const SparseTensor* sparse, filled_sparse_of(ort_value));
    const Type type = Type::tensor(sparse->values.dtype(), sparse->values.shape());
    *out = new OrtTensorTypeAndShapeInfo(tensor_info(type, {}));
    return {};
  });
}

OrtStatus* GetSparseTensorValues(const OrtValue* ort_value, const void** out) noexcept {
  return guarded("GetSparseTensorValues", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const SparseTensor* sparse, filled_sparse_of(ort_value));
    if (sparse->values.dtype() == DType::String) {
      return failure(Code::InvalidArgument,
                     "the values are strings: GetStringTensorContent gives them");
    }
    *out = sparse->values.data();
    return {};
  });
}

OrtStatus* GetSparseTensorIndicesTypeShape(const OrtValue* ort_value,
                                           OrtSparseIndicesFormat indices_format,
                                           OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("GetSparseTensorIndicesTypeShape", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const Tensor* indices, indices_of(ort_value, indices_format));
    *out = new OrtTensorTypeAndShapeInfo(
        tensor_info(Type::tensor(indices->dtype(), indices->shape()), {}));
    return {};
  });
}

OrtStatus* GetSparseTensorIndices(const OrtValue* ort_value, OrtSparseIndicesFormat indices_format,
                                  size_t* indice_count, const void** indices) noexcept {
  return guarded("GetSparseTensorIndices", [&]() -> Status {
    SDX_TRY(require(indice_count, "indice_count"));
    SDX_TRY(require(indices, "indices"));
    SDX_ASSIGN(const Tensor* found, indices_of(ort_value, indices_format));
    *indice_count = static_cast<size_t>(found->element_count());
    *indices = found->data();
    return {};
  });
}

}  // namespace sardonyx::capi
