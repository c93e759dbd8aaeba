#pragma once

#include <string>
#include <vector>

#include "api.h"

namespace sardonyx::python {

/// What a graph input or output can hold, read once from the session.
struct TypeTree {
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  ONNXTensorElementDataType element = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;  // or a map's key
  bool has_shape = true;
  std::vector<int64_t> shape;          // -1 where a dimension is not fixed
  std::vector<std::string> dim_names;  // "" where it has no name
  std::vector<TypeTree> contained;     // one for a sequence, a map or an optional

  /// "tensor(float)", "seq(map(int64,tensor(float)))", ...
  std::string name() const;
  /// One entry per dimension: int, str or None.
  nb::list python_shape() const;
};

/// Reads a type from the C interface.
TypeTree read_type(const OrtTypeInfo* info);

/// "float", "bfloat16", ... as types are written in ONNX.
const char* element_name(ONNXTensorElementDataType element);

/// An element type as the number of onnx.TensorProto.DataType, and back.
int onnx_number(ONNXTensorElementDataType element);
ONNXTensorElementDataType element_of_number(int onnx_type);

/// Bytes of `count` elements; types below 8 bits are packed. 0 for strings.
size_t element_bytes(ONNXTensorElementDataType element, size_t count);

/// A numpy dtype for an element type; types that numpy lacks come from ml_dtypes.
nb::object element_dtype(ONNXTensorElementDataType element);

/// The element type that arrays of a numpy dtype stand for. Throws TypeError when there is none.
ONNXTensorElementDataType dtype_element(nb::handle dtype);

/// A value and the Python object whose memory it uses, if any.
struct Fed {
  ValueHandle value;
  nb::object owner;
};

/// A tensor over an array: without a copy when the array is dense, aligned and of native byte
/// order, and its type is not packed. `element` other than UNDEFINED reads the array's bytes as
/// that type, or converts a plain sequence of numbers to it.
Fed from_array(nb::handle array, ONNXTensorElementDataType element);

/// Any Python object that can stand for a value of type `type`: arrays, numbers, lists, dicts.
/// Errors: TypeError that names the input `name`, what was expected and what was found.
Fed from_python(nb::handle object, const TypeTree& type, const std::string& name);

/// The Python form of a value: array, list, dict, SparseTensor or None. Arrays of plain types use
/// the value's memory, which `owner` keeps alive.
nb::object to_python(const OrtValue* value, nb::handle owner);

/// As to_python for a tensor only.
nb::object to_array(const OrtValue* value, nb::handle owner);

/// An array that owns `value` is made around it.
nb::object take_python(ValueHandle value);

}  // namespace sardonyx::python
