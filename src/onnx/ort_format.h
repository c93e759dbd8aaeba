#pragma once

#include <string>
#include <string_view>

#include "base/status.h"

namespace sardonyx::onnx {

/// Whether the bytes are a model in ONNX Runtime's .ort format.
bool is_ort_format(std::string_view bytes);

/// The ONNX model that a model in ONNX Runtime's .ort format holds, as bytes of its protobuf.
/// Cost     a copy of the weights; the result is bounded by the size of the input.
/// Errors   InvalidProtobuf when the bytes are damaged; Unsupported for weights in another file.
/// Source   the tables of the format's flatbuffer schema, as written by ONNX Runtime 1.32.
Result<std::string> onnx_of_ort_format(std::string_view bytes);

}  // namespace sardonyx::onnx
