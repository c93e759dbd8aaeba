#include "ops/real_tensor.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "ir/element.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// Bounds of an integer type as doubles that convert back without overflow.
std::pair<double, double> int_bounds(DType dtype) {
  const int bits = dtype_bits(dtype);
  if (contains(kUnsignedInts, dtype)) {
    return {0.0, bits == 64 ? 0x1.fffffffffffffp63 : std::ldexp(1.0, bits) - 1.0};
  }
  return {-std::ldexp(1.0, bits - 1),
          bits == 64 ? 0x1.fffffffffffffp62 : std::ldexp(1.0, bits - 1) - 1.0};
}

}  // namespace

DType real_type(DType dtype) {
  constexpr DTypeSet kWide =
      set_of(DType::Float64, DType::Int32, DType::UInt32, DType::Int64, DType::UInt64);
  return contains(kWide, dtype) ? DType::Float64 : DType::Float32;
}

Result<Tensor> as_real(const Tensor& tensor) {
  if (contains(kComplex | set_of(DType::String), tensor.dtype())) {
    return failure(Code::Unsupported, "tensor({}) cannot be interpolated",
                   dtype_name(tensor.dtype()));
  }
  const DType real = real_type(tensor.dtype());
  if (tensor.dtype() == real) return tensor;
  return to_dtype(tensor, real);
}

void write_real_tensor(const Tensor& real, Tensor& y) {
  if (real.dtype() == y.dtype()) {
    copy_elements(y.dtype(), y.mutable_data(), 0, real.data(), 0, y.element_count());
    return;
  }
  const bool is_int = contains(kInts, y.dtype());
  const auto [least, most] = is_int ? int_bounds(y.dtype()) : std::pair(0.0, 0.0);
  const std::int64_t count = y.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    double value = read_real(real.dtype(), real.data(), i);
    if (is_int) {
      value = std::isnan(value) ? 0.0 : std::clamp(std::nearbyint(value), least, most);
    }
    write_real(y.dtype(), y.mutable_data(), i, value);
  }
}

}  // namespace sardonyx
