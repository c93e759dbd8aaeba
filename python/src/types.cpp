// Types: names, sizes, numpy dtypes.
#include "arrays.h"
#include "numpy_api.h"

namespace sardonyx::python {
namespace {

struct ElementRow {
  const char* name;   // as ONNX writes it
  int bits;           // 0: not a fixed size
  const char* dtype;  // numpy's name, or ml_dtypes' when `extension`
  bool extension;
};

// In the order of ONNXTensorElementDataType.
constexpr ElementRow kElements[] = {
    {"undefined", 0, "", false},
    {"float", 32, "float32", false},
    {"uint8", 8, "uint8", false},
    {"int8", 8, "int8", false},
    {"uint16", 16, "uint16", false},
    {"int16", 16, "int16", false},
    {"int32", 32, "int32", false},
    {"int64", 64, "int64", false},
    {"string", 0, "object", false},
    {"bool", 8, "bool", false},
    {"float16", 16, "float16", false},
    {"double", 64, "float64", false},
    {"uint32", 32, "uint32", false},
    {"uint64", 64, "uint64", false},
    {"complex64", 64, "complex64", false},
    {"complex128", 128, "complex128", false},
    {"bfloat16", 16, "bfloat16", true},
    {"float8e4m3fn", 8, "float8_e4m3fn", true},
    {"float8e4m3fnuz", 8, "float8_e4m3fnuz", true},
    {"float8e5m2", 8, "float8_e5m2", true},
    {"float8e5m2fnuz", 8, "float8_e5m2fnuz", true},
    {"uint4", 4, "uint4", true},
    {"int4", 4, "int4", true},
    {"float4e2m1", 4, "float4_e2m1fn", true},
    {"uint2", 2, "uint2", true},
    {"int2", 2, "int2", true},
    {"float8e8m0", 8, "float8_e8m0fnu", true},
};
constexpr size_t kElementCount = std::size(kElements);

const ElementRow& row(ONNXTensorElementDataType element) {
  const auto index = static_cast<size_t>(element);
  return kElements[index < kElementCount ? index : 0];
}

// dtype objects by element type, made when first asked for and kept until the process ends.
PyObject*& cached_dtype(ONNXTensorElementDataType element) {
  static PyObject* dtypes[kElementCount] = {};
  return dtypes[static_cast<size_t>(element) < kElementCount ? element : 0];
}

ONNXTensorElementDataType plain_element(int number) {
  switch (number) {
    case NPY_FLOAT: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
    case NPY_DOUBLE: return ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE;
    case NPY_HALF: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
    case NPY_BOOL: return ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL;
    case NPY_INT8: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8;
    case NPY_UINT8: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;
    case NPY_INT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16;
    case NPY_UINT16: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16;
    case NPY_INT32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
    case NPY_UINT32: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32;
    case NPY_LONG:
    case NPY_LONGLONG: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64;
    case NPY_ULONG:
    case NPY_ULONGLONG: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64;
    case NPY_CFLOAT: return ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64;
    case NPY_CDOUBLE: return ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128;
    case NPY_OBJECT:
    case NPY_STRING:
    case NPY_UNICODE: return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
    default: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  }
}

void read_shape(TypeTree& tree, const OrtTensorTypeAndShapeInfo* info) {
  check(api().GetTensorElementType(info, &tree.element));
  tree.has_shape = api().TensorTypeAndShape_HasShape(info);
  size_t rank = 0;
  check(api().GetDimensionsCount(info, &rank));
  tree.shape.resize(rank);
  check(api().GetDimensions(info, tree.shape.data(), rank));
  std::vector<const char*> names(rank, "");
  check(api().GetSymbolicDimensions(info, names.data(), rank));
  for (const char* name : names) tree.dim_names.emplace_back(name ? name : "");
}

TypeTree read_owned(OrtTypeInfo* info) {
  TypeInfoHandle owner(info);
  return read_type(info);
}

}  // namespace

const char* element_name(ONNXTensorElementDataType element) { return row(element).name; }

// The two numberings agree but for the last three types.
int onnx_number(ONNXTensorElementDataType element) {
  switch (element) {
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0: return 24;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2: return 25;
    case ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2: return 26;
    default: return element;
  }
}

ONNXTensorElementDataType element_of_number(int onnx_type) {
  switch (onnx_type) {
    case 24: return ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0;
    case 25: return ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2;
    case 26: return ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2;
    default: return static_cast<ONNXTensorElementDataType>(onnx_type);
  }
}

size_t element_bytes(ONNXTensorElementDataType element, size_t count) {
  return (count * static_cast<size_t>(row(element).bits) + 7) / 8;
}

nb::object element_dtype(ONNXTensorElementDataType element) {
  PyObject*& known = cached_dtype(element);
  if (!known) {
    const ElementRow& entry = row(element);
    if (!*entry.dtype) throw nb::type_error("a tensor of undefined element type has no dtype");
    nb::module_ numpy = nb::module_::import_("numpy");
    nb::object kind = nb::str(entry.dtype);
    if (entry.extension) kind = nb::module_::import_("ml_dtypes").attr(entry.dtype);
    known = numpy.attr("dtype")(kind).release().ptr();
  }
  return nb::borrow(known);
}

ONNXTensorElementDataType dtype_element(nb::handle dtype) {
  auto* descriptor = reinterpret_cast<PyArray_Descr*>(dtype.ptr());
  const auto plain = plain_element(descriptor->type_num);
  if (plain != ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED) return plain;
  if (nb::hasattr(dtype, "na_object") || descriptor->kind == 'T') {
    return ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING;
  }
  for (size_t i = 0; i < kElementCount; ++i) {
    if (!kElements[i].extension) continue;
    const auto element = static_cast<ONNXTensorElementDataType>(i);
    auto* known = reinterpret_cast<PyArray_Descr*>(element_dtype(element).ptr());
    if (known->typeobj == descriptor->typeobj) return element;
  }
  const std::string text = nb::str(dtype).c_str();
  throw nb::type_error(("arrays of dtype " + text + " cannot be fed to a model").c_str());
}

TypeTree read_type(const OrtTypeInfo* info) {
  TypeTree tree;
  check(api().GetOnnxTypeFromTypeInfo(info, &tree.kind));
  OrtTypeInfo* inner = nullptr;
  if (tree.kind == ONNX_TYPE_TENSOR || tree.kind == ONNX_TYPE_SPARSETENSOR) {
    const OrtTensorTypeAndShapeInfo* shape = nullptr;
    check(api().CastTypeInfoToTensorInfo(info, &shape));
    if (shape) read_shape(tree, shape);
  } else if (tree.kind == ONNX_TYPE_SEQUENCE) {
    const OrtSequenceTypeInfo* sequence = nullptr;
    check(api().CastTypeInfoToSequenceTypeInfo(info, &sequence));
    check(api().GetSequenceElementType(sequence, &inner));
  } else if (tree.kind == ONNX_TYPE_OPTIONAL) {
    const OrtOptionalTypeInfo* optional = nullptr;
    check(api().CastTypeInfoToOptionalTypeInfo(info, &optional));
    check(api().GetOptionalContainedTypeInfo(optional, &inner));
  } else if (tree.kind == ONNX_TYPE_MAP) {
    const OrtMapTypeInfo* map = nullptr;
    check(api().CastTypeInfoToMapTypeInfo(info, &map));
    check(api().GetMapKeyType(map, &tree.element));
    check(api().GetMapValueType(map, &inner));
  }
  if (inner) tree.contained.push_back(read_owned(inner));
  return tree;
}

std::string TypeTree::name() const {
  const std::string inner = contained.empty() ? "unknown" : contained[0].name();
  switch (kind) {
    case ONNX_TYPE_TENSOR: return std::string("tensor(") + element_name(element) + ")";
    case ONNX_TYPE_SPARSETENSOR: return std::string("sparse_tensor(") + element_name(element) + ")";
    case ONNX_TYPE_SEQUENCE: return "seq(" + inner + ")";
    case ONNX_TYPE_OPTIONAL: return "optional(" + inner + ")";
    case ONNX_TYPE_MAP: return std::string("map(") + element_name(element) + "," + inner + ")";
    default: return "unknown";
  }
}

nb::list TypeTree::python_shape() const {
  if (kind == ONNX_TYPE_OPTIONAL && !contained.empty()) return contained[0].python_shape();
  nb::list dims;
  if (kind != ONNX_TYPE_TENSOR && kind != ONNX_TYPE_SPARSETENSOR) return dims;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] >= 0) {
      dims.append(shape[i]);
    } else if (!dim_names[i].empty()) {
      dims.append(nb::str(dim_names[i].c_str()));
    } else {
      dims.append(nb::none());
    }
  }
  return dims;
}

}  // namespace sardonyx::python
