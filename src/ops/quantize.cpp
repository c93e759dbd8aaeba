#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/quantization.h"

namespace sardonyx {

namespace {

constexpr DTypeSet kQuantized =
    kInts | kFloat8 | kSubByte | set_of(DType::Float6E2M3, DType::Float6E3M2);

/// Refuses scales and zero points whose shapes do not fit, then sets the output's shape.
Status infer_parameters(InferContext& context) {
  const Shape* x = context.shape(0);
  const Shape* scale = context.shape(1);
  const Shape* zero_point = context.shape(2);
  if (x == nullptr) return {};
  if (scale != nullptr) {
    SDX_TRY(quant_grid(*x, *scale, context.attributes().get_int("axis", 1),
                       context.attributes().get_int("block_size", 0))
                .take_status());
  }
  if (scale != nullptr && zero_point != nullptr && scale->is_static() &&
      zero_point->is_static()) {
    const bool are_single = scale->element_count() == 1 && zero_point->element_count() == 1;
    if (!are_single && !(*scale == *zero_point)) {
      return context.error("scale '{}' has shape {}, but its zero point has shape {}",
                           context.input_name(1), scale->to_string(), zero_point->to_string());
    }
  }
  context.set_shape(0, *x);
  return {};
}

Status infer_quantize(InferContext& context) {
  const std::int64_t number = context.attributes().get_int("output_dtype", 0);
  const auto wanted = dtype_from_onnx(number);
  if (!wanted || (number != 0 && !contains(kQuantized, *wanted))) {
    return context.error("output_dtype is {}, which is no type to quantise to", number);
  }
  const DType zero_point = context.dtype(2);
  if (number != 0 && zero_point != DType::Undefined && zero_point != *wanted) {
    return context.error("output_dtype is {}, but the zero point is tensor({})",
                         dtype_name(*wanted), dtype_name(zero_point));
  }
  context.set_dtype(0, zero_point != DType::Undefined ? zero_point
                       : number != 0                  ? *wanted
                                                      : DType::UInt8);
  return infer_parameters(context);
}

Status infer_dequantize(InferContext& context) {
  const std::int64_t number = context.attributes().get_int("output_dtype", 0);
  const auto wanted = dtype_from_onnx(number);
  if (!wanted || (number != 0 && !contains(kFloatsBf16, *wanted))) {
    return context.error("output_dtype is {}, which is no float type", number);
  }
  if (number != 0) {
    context.set_dtype(0, *wanted);
  } else if (context.version() < 19 && context.node().domain.empty()) {
    context.set_dtype(0, DType::Float32);
  } else if (context.dtype(1) == DType::Float8E8M0) {
    return context.error("output_dtype is required when the scale is float8e8m0");
  } else if (context.dtype(1) != DType::Undefined) {
    context.set_dtype(0, context.dtype(1));
  }
  return infer_parameters(context);
}

QuantizeOptions options_of(const EvalContext& context) {
  const Attributes& attributes = context.attributes();
  QuantizeOptions options;
  options.axis = attributes.get_int("axis", 1);
  options.block_size = attributes.get_int("block_size", 0);
  options.saturate = attributes.get_int("saturate", 1) != 0;
  const auto precision = dtype_from_onnx(attributes.get_int("precision", 0));
  options.precision = context.tensor(1).dtype();
  if (precision && *precision != DType::Undefined) options.precision = *precision;
  const bool is_narrow =
      options.precision == DType::Float16 || options.precision == DType::BFloat16;
  if (!is_narrow) options.precision = DType::Float32;
  return options;
}

Status evaluate_quantize(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  return quantize(context.tensor(0), context.tensor(1), context.tensor_or_null(2),
                  options_of(context), *y);
}

Status evaluate_dequantize(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  return dequantize(context.tensor(0), context.tensor(1), context.tensor_or_null(2),
                    options_of(context), *y);
}

Status infer_dynamic_quantize(InferContext& context) {
  context.set_dtype(0, DType::UInt8);
  context.set_dtype(1, DType::Float32);
  context.set_dtype(2, DType::UInt8);
  context.set_shape(1, Shape{});
  context.set_shape(2, Shape{});
  return infer_same_shape(context);
}

Status evaluate_dynamic_quantize(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  // Zero has to be among the values that are represented exactly.
  float low = 0;
  float high = 0;
  for (const float value : x.values<float>()) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  float scale = (high - low) / 255;
  if (scale == 0) scale = 1;
  const float zero = std::nearbyint(std::clamp(-low / scale, 0.0F, 255.0F));
  const auto zero_point = static_cast<std::uint8_t>(std::isnan(zero) ? 0 : zero);
  SDX_ASSIGN(Tensor scale_tensor, make_tensor<float>(Shape{}, {scale}));
  SDX_ASSIGN(Tensor zero_tensor, make_tensor<std::uint8_t>(Shape{}, {zero_point}));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y != nullptr) SDX_TRY(quantize(x, scale_tensor, &zero_tensor, {}, *y));
  SDX_ASSIGN(Tensor * scale_out, context.allocate(1));
  if (scale_out != nullptr) scale_out->mutable_values<float>()[0] = scale;
  SDX_ASSIGN(Tensor * zero_out, context.allocate(2));
  if (zero_out != nullptr) zero_out->mutable_values<std::uint8_t>()[0] = zero_point;
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "DequantizeLinear", 10, {"TFt>F", set_of(DType::UInt8, DType::Int8, DType::Int32)}, "",
     infer_dequantize, evaluate_dequantize},
    {"", "DequantizeLinear", 13, {"TFt>F", set_of(DType::UInt8, DType::Int8, DType::Int32)},
     "axis:i", infer_dequantize, evaluate_dequantize},
    {"", "DequantizeLinear", 19, {"TUt>U", kFloat8 | set_of(DType::UInt8, DType::Int8,
      DType::Int32), set_of(DType::Float16, DType::BFloat16, DType::Float32)}, "axis:i",
     infer_dequantize, evaluate_dequantize},
    {"", "DequantizeLinear", 21, {"TUt>U", kFloat8 | set_of(DType::UInt8, DType::UInt16,
      DType::Int8, DType::Int16, DType::Int32, DType::UInt4, DType::Int4), set_of(DType::Float16,
      DType::BFloat16, DType::Float32)}, "axis:i block_size:i", infer_dequantize,
     evaluate_dequantize},
    {"", "DequantizeLinear", 23, {"TUt>V", kFloat8 | set_of(DType::UInt8, DType::UInt16,
      DType::Int8, DType::Int16, DType::Int32, DType::UInt4, DType::Int4, DType::Float4E2M1),
      set_of(DType::Float16, DType::BFloat16, DType::Float32), set_of(DType::Float16,
      DType::BFloat16, DType::Float32)}, "axis:i block_size:i output_dtype:i", infer_dequantize,
     evaluate_dequantize},
    {"", "DequantizeLinear", 24, {"TUt>V", kFloat8 | set_of(DType::UInt8, DType::UInt16,
      DType::Int8, DType::Int16, DType::Int32, DType::UInt4, DType::Int4, DType::Float4E2M1),
      set_of(DType::Float16, DType::BFloat16, DType::Float32, DType::Float8E8M0),
      set_of(DType::Float16, DType::BFloat16, DType::Float32)},
     "axis:i block_size:i output_dtype:i", infer_dequantize, evaluate_dequantize},
    {"", "DequantizeLinear", 25, {"TUt>V", kSubByte | kFloat8 | set_of(DType::UInt8, DType::UInt16,
      DType::Int8, DType::Int16, DType::Int32), set_of(DType::Float16, DType::BFloat16,
      DType::Float32, DType::Float8E8M0), set_of(DType::Float16, DType::BFloat16, DType::Float32)},
     "axis:i block_size:i output_dtype:i", infer_dequantize, evaluate_dequantize},
    {"", "DequantizeLinear", 28, {"TUt>V", kSubByte | kFloat8 | set_of(DType::UInt8, DType::UInt16,
      DType::Int8, DType::Int16, DType::Int32, DType::Float6E2M3, DType::Float6E3M2),
      set_of(DType::Float16, DType::BFloat16, DType::Float32, DType::Float8E8M0),
      set_of(DType::Float16, DType::BFloat16, DType::Float32)},
     "axis:i block_size:i output_dtype:i", infer_dequantize, evaluate_dequantize},
    {"", "DynamicQuantizeLinear", 11, {"F>TFT", set_of(DType::UInt8)}, "", infer_dynamic_quantize,
     evaluate_dynamic_quantize},
    {"", "QuantizeLinear", 10, {"TFu>U", set_of(DType::Int32, DType::Float32), set_of(DType::UInt8,
      DType::Int8)}, "", infer_quantize, evaluate_quantize},
    {"", "QuantizeLinear", 13, {"TFu>U", set_of(DType::Int32, DType::Float32), set_of(DType::UInt8,
      DType::Int8)}, "axis:i", infer_quantize, evaluate_quantize},
    {"", "QuantizeLinear", 19, {"TTu>U", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), kFloat8 | set_of(DType::UInt8, DType::Int8)}, "axis:i saturate:i",
     infer_quantize, evaluate_quantize},
    {"", "QuantizeLinear", 21, {"TTu>U", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), kFloat8 | set_of(DType::UInt8, DType::UInt16, DType::Int8, DType::Int16,
      DType::UInt4, DType::Int4)}, "axis:i block_size:i output_dtype:i saturate:i", infer_quantize,
     evaluate_quantize},
    {"", "QuantizeLinear", 23, {"TUv>V", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), set_of(DType::Int32, DType::Float16, DType::BFloat16, DType::Float32),
      kFloat8 | set_of(DType::UInt8, DType::UInt16, DType::Int8, DType::Int16, DType::UInt4,
      DType::Int4, DType::Float4E2M1)}, "axis:i block_size:i output_dtype:i precision:i saturate:i",
     infer_quantize, evaluate_quantize},
    {"", "QuantizeLinear", 24, {"TUv>V", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), set_of(DType::Int32, DType::Float16, DType::BFloat16, DType::Float32,
      DType::Float8E8M0), kFloat8 | set_of(DType::UInt8, DType::UInt16, DType::Int8, DType::Int16,
      DType::UInt4, DType::Int4, DType::Float4E2M1)},
     "axis:i block_size:i output_dtype:i precision:i saturate:i", infer_quantize,
     evaluate_quantize},
    {"", "QuantizeLinear", 25, {"TUv>V", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), set_of(DType::Int32, DType::Float16, DType::BFloat16, DType::Float32,
      DType::Float8E8M0), kSubByte | kFloat8 | set_of(DType::UInt8, DType::UInt16, DType::Int8,
      DType::Int16)}, "axis:i block_size:i output_dtype:i precision:i saturate:i", infer_quantize,
     evaluate_quantize},
    {"", "QuantizeLinear", 28, {"TUv>V", set_of(DType::Int32, DType::Float16, DType::BFloat16,
      DType::Float32), set_of(DType::Int32, DType::Float16, DType::BFloat16, DType::Float32,
      DType::Float8E8M0), kSubByte | kFloat8 | set_of(DType::UInt8, DType::UInt16, DType::Int8,
      DType::Int16, DType::Float6E2M3, DType::Float6E3M2)},
     "axis:i block_size:i output_dtype:i precision:i saturate:i", infer_quantize,
     evaluate_quantize},
    {"com.microsoft", "DequantizeLinear", 1,
     {"TUt>U", kInts | set_of(DType::Int4, DType::UInt4, DType::Int2, DType::UInt2) | kFloat8,
      kFloatsBf16}, "axis:i block_size:i", infer_dequantize, evaluate_dequantize},
    {"com.microsoft", "QuantizeLinear", 1,
     {"TTu>U", kFloatsBf16,
      kInts | set_of(DType::Int4, DType::UInt4, DType::Int2, DType::UInt2) | kFloat8},
     "axis:i block_size:i output_dtype:i saturate:i", infer_quantize, evaluate_quantize},
};

}  // namespace

std::span<const OpSchema> quantize_schemas() { return kRows; }

}  // namespace sardonyx
