#include "ops/quantization.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/checked.h"
#include "base/text.h"
#include "ir/element.h"

namespace sardonyx {

namespace {

Status does_not_fit(const Shape& x, const Shape& scale, std::int64_t axis, std::int64_t block) {
  return failure(Code::InvalidModel,
                 "scales of shape {} do not fit a tensor of shape {} along axis {}{}",
                 scale.to_string(), x.to_string(), axis,
                 block == 0 ? "" : fmt::format(" in blocks of {}", block));
}

bool may_be_equal(Dim a, Dim b) { return !is_known(a) || !is_known(b) || a == b; }

/// 0 as well when it is not known or does not fit: then there is no tensor yet.
std::int64_t product_or_zero(const Shape& shape, int first, int last) {
  std::optional<std::int64_t> product = 1;
  for (int i = first; i < last && product; ++i) {
    product = is_known(shape[i]) ? checked_multiply(*product, shape[i]) : std::nullopt;
  }
  return product.value_or(0);
}

}  // namespace

Result<QuantGrid> quant_grid(const Shape& x, const Shape& scale, std::int64_t axis_attribute,
                             std::int64_t block_size) {
  const int rank = x.rank();
  if (block_size < 0) {
    return failure(Code::InvalidModel, "block_size should not be negative, but is {}", block_size);
  }
  const bool is_one = scale.rank() == 0 || (scale.rank() == 1 && scale[0] == 1);
  if (is_one && (block_size == 0 || rank == 0)) {
    return QuantGrid{1, product_or_zero(x, 0, rank), 1, 0, false};
  }
  // With one axis there is no choice, and the default of 1 would be outside.
  const auto axis = rank == 1 ? std::optional(0) : normalize_axis(axis_attribute, rank);
  if (!axis) {
    return failure(Code::InvalidModel, "axis {} is outside [{}, {})", axis_attribute, -rank, rank);
  }
  QuantGrid grid{product_or_zero(x, 0, *axis), is_known(x[*axis]) ? x[*axis] : 0,
                 product_or_zero(x, *axis + 1, rank), 1, true};
  if (block_size == 0) {
    const bool fits = scale.rank() == 1 && may_be_equal(scale[0], x[*axis]);
    if (!fits) return does_not_fit(x, scale, axis_attribute, block_size);
    return grid;
  }
  grid.block = block_size;
  grid.is_per_axis = false;
  bool fits = scale.rank() == rank;
  for (int i = 0; fits && i < rank; ++i) {
    const Dim wanted = i != *axis || !is_known(x[i]) ? x[i]
                       : x[i] / block_size + (x[i] % block_size != 0);
    fits = may_be_equal(scale[i], wanted);
  }
  if (!fits) return does_not_fit(x, scale, axis_attribute, block_size);
  return grid;
}

IntRange int_range(DType dtype) {
  const bool is_signed = contains(kSignedInts | set_of(DType::Int4, DType::Int2), dtype);
  const int bits = dtype_bits(dtype);
  const float span = std::ldexp(1.0F, bits);
  return is_signed ? IntRange{-span / 2, span / 2 - 1} : IntRange{0, span - 1};
}

namespace {

constexpr std::int64_t kChunk = 256;
using Chunk = std::array<float, kChunk>;

bool is_float(DType dtype) {
  return contains(kFloatsBf16 | kFloat8 |
                      set_of(DType::Float4E2M1, DType::Float6E2M3, DType::Float6E3M2),
                  dtype);
}

/// Scales or zero points for a part of a run; zeros when there is no tensor.
void load_parameters(const Tensor* tensor, std::int64_t start, std::int64_t step,
                     std::int64_t count, Chunk& target) {
  if (tensor == nullptr) {
    std::fill_n(target.begin(), count, 0.0F);
  } else if (step == 1) {
    load_reals(tensor->dtype(), tensor->data(), start, count, target.data());
  } else {
    load_reals(tensor->dtype(), tensor->data(), start, 1, target.data());
    std::fill_n(target.begin() + 1, count - 1, target[0]);
  }
}

float rounded_to(DType precision, float value) {
  if (precision == DType::Float16) return to_float(to_half(value));
  if (precision == DType::BFloat16) return to_float(to_bfloat16(value));
  return value;
}

/// x[i] becomes what is stored for it.
void quantize_chunk(std::int64_t count, const Chunk& scales, const Chunk& zeros, DType to,
                    DType precision, Chunk& x) {
  const bool is_exact = precision == DType::Float32;
  for (std::int64_t k = 0; k < count; ++k) {
    const auto i = static_cast<std::size_t>(k);
    x[i] = is_exact ? x[i] / scales[i]
                    : rounded_to(precision, rounded_to(precision, x[i]) /
                                                rounded_to(precision, scales[i]));
  }
  if (is_float(to)) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) x[i] += zeros[i];
    return;
  }
  const IntRange range = int_range(to);
  for (std::int64_t k = 0; k < count; ++k) {
    const auto i = static_cast<std::size_t>(k);
    const float value = std::nearbyint(x[i]) + zeros[i];
    // A NaN takes the lowest value.
    x[i] = value > range.low ? std::min(value, range.high) : range.low;
  }
}

}  // namespace

Status quantize(const Tensor& x, const Tensor& scale, const Tensor* zero_point,
                const QuantizeOptions& options, Tensor& y) {
  SDX_ASSIGN(const QuantGrid grid,
             quant_grid(x.shape(), scale.shape(), options.axis, options.block_size));
  Chunk values, scales, zeros;
  for_each_scale_run(grid, [&](std::int64_t start, std::int64_t count, std::int64_t scale_start,
                               std::int64_t step) {
    for (std::int64_t done = 0; done < count; done += kChunk) {
      const std::int64_t part = std::min(kChunk, count - done);
      load_reals(x.dtype(), x.data(), start + done, part, values.data());
      load_parameters(&scale, scale_start + done * step, step, part, scales);
      load_parameters(zero_point, scale_start + done * step, step, part, zeros);
      quantize_chunk(part, scales, zeros, y.dtype(), options.precision, values);
      store_reals(y.dtype(), y.mutable_data(), start + done, part, values.data(),
                  options.saturate);
    }
  });
  return {};
}

Status dequantize(const Tensor& x, const Tensor& scale, const Tensor* zero_point,
                  const QuantizeOptions& options, Tensor& y) {
  SDX_ASSIGN(const QuantGrid grid,
             quant_grid(x.shape(), scale.shape(), options.axis, options.block_size));
  Chunk values, scales, zeros;
  for_each_scale_run(grid, [&](std::int64_t start, std::int64_t count, std::int64_t scale_start,
                               std::int64_t step) {
    for (std::int64_t done = 0; done < count; done += kChunk) {
      const std::int64_t part = std::min(kChunk, count - done);
      load_reals(x.dtype(), x.data(), start + done, part, values.data());
      load_parameters(&scale, scale_start + done * step, step, part, scales);
      load_parameters(zero_point, scale_start + done * step, step, part, zeros);
      for (std::size_t i = 0; i < static_cast<std::size_t>(part); ++i) {
        values[i] = (values[i] - zeros[i]) * scales[i];
      }
      store_reals(y.dtype(), y.mutable_data(), start + done, part, values.data());
    }
  });
  return {};
}

}  // namespace sardonyx
