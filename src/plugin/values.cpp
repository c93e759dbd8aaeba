#include "plugin/values.h"

#include "base/text.h"

namespace sardonyx::plugin {

namespace {

/// The interface numbers types as ONNX does, up to the newest ones.
struct NewType {
  ONNXTensorElementDataType type;
  DType dtype;
};
constexpr NewType kNewTypes[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, DType::UInt2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, DType::Int2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, DType::Float8E8M0},
};

Result<Shape> to_shape(std::span<const std::int64_t> dims) {
  if (!Shape::fits(dims.size())) {
    return failure(Code::Unsupported, "a tensor of rank {}; at most {} are possible", dims.size(),
                   Shape::kMaxRank);
  }
  return Shape(dims);
}

Result<TensorFacts> facts_of_info(const Host& host, const OrtTensorTypeAndShapeInfo& info) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  SDX_TRY(host.take(host.api->GetTensorElementType(&info, &type)));
  std::size_t rank = 0;
  SDX_TRY(host.take(host.api->GetDimensionsCount(&info, &rank)));
  std::vector<std::int64_t> dims(rank);
  SDX_TRY(host.take(host.api->GetDimensions(&info, dims.data(), rank)));
  TensorFacts facts;
  facts.dtype = dtype_of(type);
  SDX_ASSIGN(facts.shape, to_shape(dims));
  return facts;
}

bool has_shape(const Host& host, const OrtTensorTypeAndShapeInfo& info, const Shape& shape) {
  if (host.version >= 24) return host.api->TensorTypeAndShape_HasShape(&info);
  // Older ones show a missing shape as that of a scalar.
  return !shape.empty();
}

Result<Type> read_tensor_type(const Host& host, const OrtTypeInfo& info, SymbolTable& symbols) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;
  SDX_TRY(host.take(host.api->CastTypeInfoToTensorInfo(&info, &tensor)));
  if (tensor == nullptr) return Type();
  SDX_ASSIGN(TensorFacts facts, facts_of_info(host, *tensor));
  Type type = Type::tensor(facts.dtype);
  if (!has_shape(host, *tensor, facts.shape)) return type;
  const auto rank = static_cast<std::size_t>(facts.shape.rank());
  std::vector<const char*> names(rank, nullptr);
  SDX_TRY(host.take(host.api->GetSymbolicDimensions(tensor, names.data(), rank)));
  for (std::size_t i = 0; i < rank; ++i) {
    Dim& dim = facts.shape[static_cast<int>(i)];
    if (dim >= 0) continue;
    const bool is_named = names[i] != nullptr && *names[i] != '\0';
    dim = is_named ? symbols.intern(names[i]) : kUnknownDim;
  }
  type.shape = facts.shape;
  return type;
}

/// The type of what a container holds; releases its description.
Result<Type> take_element_type(const Host& host, OrtTypeInfo* element, SymbolTable& symbols) {
  auto type = read_type(host, *element, symbols);
  host.api->ReleaseTypeInfo(element);
  return type;
}

Result<Type> read_sequence_type(const Host& host, const OrtTypeInfo& info, SymbolTable& symbols) {
  const OrtSequenceTypeInfo* sequence = nullptr;
  SDX_TRY(host.take(host.api->CastTypeInfoToSequenceTypeInfo(&info, &sequence)));
  OrtTypeInfo* element = nullptr;
  SDX_TRY(host.take(host.api->GetSequenceElementType(sequence, &element)));
  SDX_ASSIGN(Type inner, take_element_type(host, element, symbols));
  return Type::sequence(std::move(inner));
}

Result<Type> read_optional_type(const Host& host, const OrtTypeInfo& info, SymbolTable& symbols) {
  const OrtOptionalTypeInfo* optional = nullptr;
  SDX_TRY(host.take(host.api->CastTypeInfoToOptionalTypeInfo(&info, &optional)));
  OrtTypeInfo* element = nullptr;
  SDX_TRY(host.take(host.api->GetOptionalContainedTypeInfo(optional, &element)));
  SDX_ASSIGN(Type inner, take_element_type(host, element, symbols));
  return Type::optional(std::move(inner));
}

Result<Tensor> copy_strings(const Host& host, const OrtValue& value, const Shape& shape) {
  SDX_ASSIGN(Tensor tensor, Tensor::allocate(DType::String, shape));
  auto texts = tensor.mutable_values<std::string>();
  for (std::size_t i = 0; i < texts.size(); ++i) {
    std::size_t length = 0;
    SDX_TRY(host.take(host.api->GetStringTensorElementLength(&value, i, &length)));
    texts[i].resize(length);
    SDX_TRY(host.take(host.api->GetStringTensorElement(&value, length, i, texts[i].data())));
  }
  return tensor;
}

Result<const void*> data_of(const Host& host, const OrtValue& value) {
  const void* data = nullptr;
  SDX_TRY(host.take(host.api->GetTensorData(&value, &data)));
  return data;
}

}  // namespace

DType dtype_of(ONNXTensorElementDataType type) {
  for (const NewType& row : kNewTypes) {
    if (row.type == type) return row.dtype;
  }
  if (type > ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1) return DType::Undefined;
  return dtype_from_onnx(static_cast<int>(type)).value_or(DType::Undefined);
}

ONNXTensorElementDataType element_type_of(DType dtype) {
  for (const NewType& row : kNewTypes) {
    if (row.dtype == dtype) return row.type;
  }
  return static_cast<ONNXTensorElementDataType>(dtype);
}

Result<Type> read_type(const Host& host, const OrtTypeInfo& info, SymbolTable& symbols) {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  SDX_TRY(host.take(host.api->GetOnnxTypeFromTypeInfo(&info, &kind)));
  switch (kind) {
    case ONNX_TYPE_TENSOR: return read_tensor_type(host, info, symbols);
    case ONNX_TYPE_SEQUENCE: return read_sequence_type(host, info, symbols);
    case ONNX_TYPE_OPTIONAL: return read_optional_type(host, info, symbols);
    default: return Type();
  }
}

Result<TensorFacts> tensor_facts(const Host& host, const OrtValue& value) {
  if (host.version >= 24) {
    ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
    const std::int64_t* dims = nullptr;
    std::size_t rank = 0;
    SDX_TRY(host.take(
        host.api->GetTensorElementTypeAndShapeDataReference(&value, &type, &dims, &rank)));
    TensorFacts facts;
    facts.dtype = dtype_of(type);
    SDX_ASSIGN(facts.shape, to_shape({dims, rank}));
    return facts;
  }
  OrtTensorTypeAndShapeInfo* info = nullptr;
  SDX_TRY(host.take(host.api->GetTensorTypeAndShape(&value, &info)));
  auto facts = facts_of_info(host, *info);
  host.api->ReleaseTensorTypeAndShapeInfo(info);
  return facts;
}

Result<Datum> borrow(const Host& host, const OrtValue* value) {
  if (value == nullptr) return Datum();
  SDX_ASSIGN(const TensorFacts facts, tensor_facts(host, *value));
  if (facts.dtype == DType::Undefined) {
    return Status(Code::Unsupported, "a tensor of an element type that this build does not know");
  }
  if (facts.dtype == DType::String) {
    SDX_ASSIGN(Tensor texts, copy_strings(host, *value, facts.shape));
    return Datum(std::move(texts));
  }
  SDX_ASSIGN(const void* data, data_of(host, *value));
  return Datum(Tensor::view(facts.dtype, facts.shape, data));
}

Result<Tensor> copy(const Host& host, const OrtValue& value) {
  SDX_ASSIGN(const Datum borrowed, borrow(host, &value));
  return clone(*borrowed.tensor());
}

Status store_texts(const Host& host, const Tensor& tensor, OrtValue& value) {
  std::vector<const char*> texts;
  for (const std::string& text : tensor.values<std::string>()) texts.push_back(text.c_str());
  return host.take(host.api->FillStringTensor(&value, texts.data(), texts.size()));
}

}  // namespace sardonyx::plugin
