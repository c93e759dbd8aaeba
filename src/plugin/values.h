#pragma once

#include "ir/datum.h"
#include "ir/shape.h"
#include "plugin/host.h"

namespace sardonyx::plugin {

/// The element type with the interface's number, Undefined when this build does not know it; and
/// back.
DType dtype_of(ONNXTensorElementDataType type);
ONNXTensorElementDataType element_type_of(DType dtype);

/// What the interface says about a value. A kind that cannot be described is Kind::Unknown.
/// Symbols get numbers from `symbols`.
Result<Type> read_type(const Host& host, const OrtTypeInfo& info, SymbolTable& symbols);

/// Element type and shape of a tensor.
struct TensorFacts {
  DType dtype = DType::Undefined;
  Shape shape;
};
Result<TensorFacts> tensor_facts(const Host& host, const OrtValue& value);

/// A tensor over the value's memory; strings are copied. Absent for a null pointer.
Result<Datum> borrow(const Host& host, const OrtValue* value);
/// A tensor with memory of its own.
Result<Tensor> copy(const Host& host, const OrtValue& value);

/// Copies a tensor of strings into the host's, which has its shape.
Status store_texts(const Host& host, const Tensor& tensor, OrtValue& value);

}  // namespace sardonyx::plugin
