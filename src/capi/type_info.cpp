#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

// The C interface numbers its element types as ONNX does, but for the last three.
Result<DType> to_dtype(ONNXTensorElementDataType type) {
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2) return DType::UInt2;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2) return DType::Int2;
  if (type == ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0) return DType::Float8E8M0;
  const auto dtype = dtype_from_onnx(static_cast<std::int64_t>(type));
  if (!dtype || *dtype == DType::Undefined) {
    return failure(Code::Unsupported, "element type {} is not known", static_cast<int>(type));
  }
  return *dtype;
}

ONNXTensorElementDataType to_ort(DType dtype) {
  switch (dtype) {
    case DType::UInt2: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case DType::Int2: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    case DType::Float8E8M0: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    case DType::Float6E2M3:
    case DType::Float6E3M2: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    default: return static_cast<ONNXTensorElementDataType>(dtype);
  }
}

Result<Shape> to_shape(const int64_t* dims, size_t count) {
  if (count != 0) SDX_TRY(require(dims, "shape"));
  if (!Shape::fits(count)) {
    return failure(Code::InvalidArgument, "a tensor has at most {} dimensions, found {}",
                   Shape::kMaxRank, count);
  }
  Shape shape;
  for (size_t i = 0; i < count; ++i) {
    if (dims[i] < 0) {
      return failure(Code::InvalidArgument, "dimension {} is {}, expected 0 or more", i, dims[i]);
    }
    shape.push_back(dims[i]);
  }
  return shape;
}

OrtTensorTypeAndShapeInfo tensor_info(const Type& type, const std::vector<std::string>& symbols) {
  OrtTensorTypeAndShapeInfo info;
  info.element_type = to_ort(type.dtype);
  info.has_shape = type.shape.has_value();
  if (!type.shape) return info;
  for (int axis = 0; axis < type.shape->rank(); ++axis) {
    const Dim dim = (*type.shape)[axis];
    const auto i = static_cast<std::size_t>(axis);
    info.dims.push_back(is_known(dim) ? dim : -1);
    info.symbols.push_back(i < symbols.size() && !is_known(dim) ? symbols[i] : "");
  }
  return info;
}

OrtTypeInfo* new_type_info(const Type& type, const std::vector<std::string>& symbols) {
  auto made = std::make_unique<OrtTypeInfo>();
  made->type = type;
  made->tensor = tensor_info(type, symbols);
  made->map = {type};
  made->sequence = {type};
  made->optional = {type};
  return made.release();
}

namespace {

bool is_tensor_like(const Type& type) {
  return type.kind == Type::Kind::Tensor || type.kind == Type::Kind::SparseTensor;
}

ONNXType onnx_type(const Type& type) {
  switch (type.kind) {
    case Type::Kind::Unknown: return ONNX_TYPE_UNKNOWN;
    case Type::Kind::Tensor: return ONNX_TYPE_TENSOR;
    case Type::Kind::SparseTensor: return ONNX_TYPE_SPARSETENSOR;
    case Type::Kind::Sequence: return ONNX_TYPE_SEQUENCE;
    case Type::Kind::Map: return ONNX_TYPE_MAP;
    case Type::Kind::Optional: return ONNX_TYPE_OPTIONAL;
    case Type::Kind::Opaque: return ONNX_TYPE_OPAQUE;
  }
  return ONNX_TYPE_UNKNOWN;
}

OrtTypeInfo* element_info(const Type& type) {
  return new_type_info(type.element ? *type.element : Type{}, {});
}

}  // namespace

OrtStatus* GetOnnxTypeFromTypeInfo(const OrtTypeInfo* type_info, ONNXType* out) noexcept {
  return guarded("GetOnnxTypeFromTypeInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(out, "out"));
    *out = onnx_type(type_info->type);
    return {};
  });
}

OrtStatus* CastTypeInfoToTensorInfo(const OrtTypeInfo* type_info,
                                    const OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("CastTypeInfoToTensorInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(out, "out"));
    *out = is_tensor_like(type_info->type) ? &type_info->tensor : nullptr;
    return {};
  });
}

OrtStatus* CastTypeInfoToMapTypeInfo(const OrtTypeInfo* type_info,
                                     const OrtMapTypeInfo** out) noexcept {
  return guarded("CastTypeInfoToMapTypeInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(out, "out"));
    *out = type_info->type.kind == Type::Kind::Map ? &type_info->map : nullptr;
    return {};
  });
}

OrtStatus* CastTypeInfoToSequenceTypeInfo(const OrtTypeInfo* type_info,
                                          const OrtSequenceTypeInfo** out) noexcept {
  return guarded("CastTypeInfoToSequenceTypeInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(out, "out"));
    *out = type_info->type.kind == Type::Kind::Sequence ? &type_info->sequence : nullptr;
    return {};
  });
}

OrtStatus* CastTypeInfoToOptionalTypeInfo(const OrtTypeInfo* type_info,
                                          const OrtOptionalTypeInfo** out) noexcept {
  return guarded("CastTypeInfoToOptionalTypeInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(out, "out"));
    *out = type_info->type.kind == Type::Kind::Optional ? &type_info->optional : nullptr;
    return {};
  });
}

OrtStatus* GetDenotationFromTypeInfo(const OrtTypeInfo* type_info, const char** const denotation,
                                     size_t* len) noexcept {
  return guarded("GetDenotationFromTypeInfo", [&]() -> Status {
    SDX_TRY(require(type_info, "type_info"));
    SDX_TRY(require(denotation, "denotation"));
    SDX_TRY(require(len, "len"));
    *denotation = type_info->denotation.c_str();
    *len = type_info->denotation.size();
    return {};
  });
}

OrtStatus* GetMapKeyType(const OrtMapTypeInfo* map_type_info,
                         ONNXTensorElementDataType* out) noexcept {
  return guarded("GetMapKeyType", [&]() -> Status {
    SDX_TRY(require(map_type_info, "map_type_info"));
    SDX_TRY(require(out, "out"));
    *out = to_ort(map_type_info->type.dtype);
    return {};
  });
}

OrtStatus* GetMapValueType(const OrtMapTypeInfo* map_type_info, OrtTypeInfo** type_info) noexcept {
  return guarded("GetMapValueType", [&]() -> Status {
    SDX_TRY(require(map_type_info, "map_type_info"));
    SDX_TRY(require(type_info, "type_info"));
    *type_info = element_info(map_type_info->type);
    return {};
  });
}

OrtStatus* GetSequenceElementType(const OrtSequenceTypeInfo* sequence_type_info,
                                  OrtTypeInfo** type_info) noexcept {
  return guarded("GetSequenceElementType", [&]() -> Status {
    SDX_TRY(require(sequence_type_info, "sequence_type_info"));
    SDX_TRY(require(type_info, "type_info"));
    *type_info = element_info(sequence_type_info->type);
    return {};
  });
}

OrtStatus* GetOptionalContainedTypeInfo(const OrtOptionalTypeInfo* optional_type_info,
                                        OrtTypeInfo** out) noexcept {
  return guarded("GetOptionalContainedTypeInfo", [&]() -> Status {
    SDX_TRY(require(optional_type_info, "optional_type_info"));
    SDX_TRY(require(out, "out"));
    *out = element_info(optional_type_info->type);
    return {};
  });
}

void ReleaseTypeInfo(OrtTypeInfo* object) noexcept { delete object; }
void ReleaseMapTypeInfo(OrtMapTypeInfo* object) noexcept { delete object; }
void ReleaseSequenceTypeInfo(OrtSequenceTypeInfo* object) noexcept { delete object; }
void ReleaseTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo* object) noexcept { delete object; }

OrtStatus* CreateTensorTypeAndShapeInfo(OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("CreateTensorTypeAndShapeInfo", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    auto made = std::make_unique<OrtTensorTypeAndShapeInfo>();
    made->element_type = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    *out = made.release();
    return {};
  });
}

OrtStatus* SetTensorElementType(OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType type) noexcept {
  return guarded("SetTensorElementType", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    info->element_type = type;
    return {};
  });
}

OrtStatus* SetDimensions(OrtTensorTypeAndShapeInfo* info, const int64_t* dim_values,
                         size_t dim_count) noexcept {
  return guarded("SetDimensions", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    if (dim_count != 0) SDX_TRY(require(dim_values, "dim_values"));
    if (!Shape::fits(dim_count)) {
      return failure(Code::InvalidArgument, "a tensor has at most {} dimensions, found {}",
                     Shape::kMaxRank, dim_count);
    }
    info->dims.assign(dim_values, dim_values + dim_count);
    info->symbols.assign(dim_count, "");
    info->has_shape = true;
    return {};
  });
}

OrtStatus* SetSymbolicDimensions(OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                                 size_t dim_params_length) noexcept {
  return guarded("SetSymbolicDimensions", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    if (dim_params_length != 0) SDX_TRY(require(dim_params, "dim_params"));
    // More names than dimensions, or fewer, are taken as ONNX Runtime takes them.
    for (size_t i = 0; i < std::min(dim_params_length, info->symbols.size()); ++i) {
      SDX_TRY(require(dim_params[i], "a dimension's name"));
      info->symbols[i] = dim_params[i];
    }
    return {};
  });
}

OrtStatus* GetTensorElementType(const OrtTensorTypeAndShapeInfo* info,
                                ONNXTensorElementDataType* out) noexcept {
  return guarded("GetTensorElementType", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    *out = info->element_type;
    return {};
  });
}

OrtStatus* GetDimensionsCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded("GetDimensionsCount", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    *out = info->dims.size();
    return {};
  });
}

OrtStatus* GetDimensions(const OrtTensorTypeAndShapeInfo* info, int64_t* dim_values,
                         size_t dim_values_length) noexcept {
  return guarded("GetDimensions", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    const size_t count = std::min(dim_values_length, info->dims.size());
    if (count != 0) SDX_TRY(require(dim_values, "dim_values"));
    std::copy_n(info->dims.begin(), count, dim_values);
    return {};
  });
}

OrtStatus* GetSymbolicDimensions(const OrtTensorTypeAndShapeInfo* info, const char** dim_params,
                                 size_t dim_params_length) noexcept {
  return guarded("GetSymbolicDimensions", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    if (dim_params_length != 0) SDX_TRY(require(dim_params, "dim_params"));
    for (size_t i = 0; i < std::min(dim_params_length, info->symbols.size()); ++i) {
      dim_params[i] = info->symbols[i].c_str();
    }
    return {};
  });
}

OrtStatus* GetTensorShapeElementCount(const OrtTensorTypeAndShapeInfo* info, size_t* out) noexcept {
  return guarded("GetTensorShapeElementCount", [&]() -> Status {
    SDX_TRY(require(info, "info"));
    SDX_TRY(require(out, "out"));
    size_t count = info->has_shape ? 1 : 0;
    for (const int64_t dim : info->dims) {
      if (dim < 0 || __builtin_mul_overflow(count, static_cast<size_t>(dim), &count)) {
        return failure(kPlainFailure, "the shape has a dimension of {}: no element count",
                       dim);
      }
    }
    *out = count;
    return {};
  });
}

bool TensorTypeAndShape_HasShape(const OrtTensorTypeAndShapeInfo* info) noexcept {
  if (info == nullptr) return {};
  return info->has_shape;
}

OrtStatus* GetTensorTypeAndShape(const OrtValue* value, OrtTensorTypeAndShapeInfo** out) noexcept {
  return guarded("GetTensorTypeAndShape", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(value, "value"));
    const Type type = value->datum.type();
    if (!is_tensor_like(type)) {
      return failure(kPlainFailure, "the value is {}, expected a tensor", type.to_string());
    }
    *out = new OrtTensorTypeAndShapeInfo(tensor_info(type, {}));
    return {};
  });
}

OrtStatus* GetTypeInfo(const OrtValue* value, OrtTypeInfo** out) noexcept {
  return guarded("GetTypeInfo", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(value, "value"));
    *out = value->datum.has_value() ? new_type_info(value->datum.type(), {}) : nullptr;
    return {};
  });
}

OrtStatus* GetValueType(const OrtValue* value, ONNXType* out) noexcept {
  return guarded("GetValueType", [&]() -> Status {
    SDX_TRY(require(value, "value"));
    SDX_TRY(require(out, "out"));
    *out = value->datum.has_value() ? onnx_type(value->datum.type()) : ONNX_TYPE_UNKNOWN;
    return {};
  });
}

}  // namespace sardonyx::capi
