#pragma once

#include "base/status.h"
#include "ir/tensor.h"

namespace sardonyx {

/// For operators that compute in float32 (or, when that loses integers or doubles, in float64)
/// whatever the element type.

/// The type to compute in: Float64 for 64-bit floats and 32- and 64-bit integers, else Float32.
DType real_type(DType dtype);

/// The elements as real_type(); the tensor itself when it has that type.
/// Errors   Unsupported for strings and complex numbers.
Result<Tensor> as_real(const Tensor& tensor);

/// Writes `real` (Float32 or Float64, as many elements) into `y`: floats round once, integers round
/// to nearest even and saturate.
void write_real_tensor(const Tensor& real, Tensor& y);

}  // namespace sardonyx
