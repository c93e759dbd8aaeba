#include "unit/passes/rewrite.h"

using namespace sardonyx;

namespace {

Tensor bytes(const Shape& shape, DType dtype, int step) {
  auto tensor = Tensor::allocate(dtype, shape);
  REQUIRE(tensor.ok());
  int value = 3;
  for (std::uint8_t& byte : tensor->mutable_values<std::uint8_t>()) {
    byte = static_cast<std::uint8_t>(value);
    value += step;
  }
  return std::move(tensor).value();
}

/// A graph of 8-bit images with one scale and zero point each.
struct QuantizedGraph : SmallGraph {
  ValueId scale(float value) { return floats({}, {value}); }
  ValueId zero(DType dtype, int value) {
    Tensor tensor = bytes({}, dtype, 0);
    tensor.mutable_values<std::uint8_t>()[0] = static_cast<std::uint8_t>(value);
    return constant(std::move(tensor));
  }
  ValueId dequantize(ValueId x, DType dtype, float step = 0.02F) {
    return node("DequantizeLinear", {x, scale(step), zero(dtype, 100)});
  }
  /// The values that show: what quantised numbers mean.
  void quantized_output(ValueId x, DType dtype) {
    output(dequantize(node("QuantizeLinear", {x, scale(0.05F), zero(dtype, 90)}), dtype));
  }
};

constexpr DType kU8 = DType::UInt8;
const Shape kImage = {1, 4, 5, 3};

std::vector<Datum> images() { return {bytes(kImage, kU8, 7), bytes(kImage, kU8, 11)}; }

}  // namespace

TEST_CASE("a sum of dequantised tensors that is quantised again is one of integers") {
  for (const bool has_relu : {false, true}) {
    QuantizedGraph small;
    const ValueId a = small.dequantize(small.input("a", kImage, kU8), kU8);
    const ValueId b = small.dequantize(small.input("b", kImage, kU8), kU8, 0.03F);
    ValueId y = small.node("Add", {a, b});
    if (has_relu) y = small.node("Relu", {y});
    small.quantized_output(y, kU8);
    CHECK(rewritten(small, fuse_quantized_add, images(), 0) == "QLinearAdd DequantizeLinear");
  }
}

TEST_CASE("a sum that others need, that widens, or of two types stays") {
  QuantizedGraph used;
  ValueId y = used.node("Add", {used.dequantize(used.input("a", kImage, kU8), kU8),
                                used.dequantize(used.input("b", kImage, kU8), kU8)});
  used.output(y);
  used.quantized_output(y, kU8);
  CHECK(rewritten(used, fuse_quantized_add, images()).find("QLinearAdd") == std::string::npos);
  QuantizedGraph wide;
  y = wide.node("Add", {wide.dequantize(wide.input("a", kImage, kU8), kU8),
                        wide.dequantize(wide.input("b", {3}, kU8), kU8)});
  wide.quantized_output(y, kU8);
  CHECK(rewritten(wide, fuse_quantized_add, {images()[0], bytes({3}, kU8, 5)}).find("QLinearAdd") ==
        std::string::npos);
  QuantizedGraph mixed;
  y = mixed.node("Add", {mixed.dequantize(mixed.input("a", kImage, kU8), kU8),
                         mixed.dequantize(mixed.input("b", kImage, kU8), kU8)});
  mixed.quantized_output(y, DType::Int8);
  CHECK(rewritten(mixed, fuse_quantized_add, images()).find("QLinearAdd") == std::string::npos);
}

TEST_CASE(
    "a convolution between quantised tensors is one of integers, and sums follow its layout") {
  QuantizedGraph small;
  const ValueId x = small.dequantize(small.input("a", kImage, kU8), kU8);
  const ValueId w =
      small.node("DequantizeLinear", {small.constant(bytes({4, 4, 3, 3}, DType::Int8, 13)),
                                      small.scale(0.01F), small.zero(DType::Int8, 0)});
  ValueId y = small.node("Conv", {x, w}, with({{"pads", attribute({1, 1, 1, 1})}}));
  y = small.node("QuantizeLinear", {y, small.scale(0.2F), small.zero(kU8, 100)});
  y = small.dequantize(y, kU8, 0.2F);
  small.quantized_output(small.node("Add", {y, x}), kU8);
  const auto pass = [](Graph& graph, const PassOptions& options) {
    Status status = fuse_quantized_conv(graph, options);
    if (status.ok()) status = fuse_quantized_add(graph, options);
    if (status.ok()) status = remove_dead_nodes(graph, options);
    if (status.ok()) status = infer_types(graph);
    if (status.ok()) status = use_channels_last(graph, options);
    return status;
  };
  CHECK(rewritten(small, pass, {images()[0]}, 0.25) ==
        "Transpose QLinearConv QLinearAdd DequantizeLinear Transpose");
}

TEST_CASE("a product of dequantised matrices is one of integers, by columns and transposed too") {
  for (const bool is_gemm : {false, true}) {
    for (const bool per_column : {false, true}) {
      CAPTURE(is_gemm);
      CAPTURE(per_column);
      QuantizedGraph small;
      const ValueId x = small.dequantize(small.input("a", {3, 8}, kU8), kU8);
      const Shape shape = is_gemm ? Shape{5, 8} : Shape{8, 5};
      const ValueId weight = small.constant(bytes(shape, DType::Int8, 13));
      const ValueId scale =
          per_column ? small.floats({5}, {0.01F, 0.02F, 0.03F, 0.04F, 0.05F}) : small.scale(0.01F);
      const ValueId zero =
          per_column ? small.constant(bytes({5}, DType::Int8, 1)) : small.zero(DType::Int8, 2);
      const ValueId w = small.node("DequantizeLinear", {weight, scale, zero},
                                   with({{"axis", attribute(is_gemm ? 0 : 1)}}));
      const ValueId bias = small.floats({5}, {1, -2, 3, 0.5F, 7});
      small.output(is_gemm ? small.node("Gemm", {x, w, bias}, with({{"transB", attribute(1)}}))
                           : small.node("MatMul", {x, w}));
      const std::string found =
          rewritten(small, fuse_quantized_matmul, {bytes({3, 8}, kU8, 7)}, 1e-4);
      CHECK(found == (is_gemm ? "Transpose MatMulIntegerToFloat" : "MatMulIntegerToFloat"));
    }
  }
}

TEST_CASE("a product with scales along the sum, factors or a fed weight stays") {
  const auto stays = [](QuantizedGraph& small, const std::vector<Datum>& fed) {
    return rewritten(small, fuse_quantized_matmul, fed).find("Integer") == std::string::npos;
  };
  const std::vector<Datum> fed = {bytes({2, 3}, kU8, 7)};
  QuantizedGraph rows;
  const ValueId by_rows =
      rows.node("DequantizeLinear",
                {rows.constant(bytes({3, 3}, DType::Int8, 5)), rows.floats({3}, {1, 2, 3})},
                with({{"axis", attribute(0)}}));
  rows.output(rows.node("MatMul", {rows.dequantize(rows.input("a", {2, 3}, kU8), kU8), by_rows}));
  CHECK(stays(rows, fed));
  QuantizedGraph scaled;
  const ValueId w = scaled.node("DequantizeLinear",
                                {scaled.constant(bytes({3, 4}, DType::Int8, 5)), scaled.scale(1)});
  scaled.output(scaled.node("Gemm", {scaled.dequantize(scaled.input("a", {2, 3}, kU8), kU8), w},
                            with({{"alpha", Attribute(0.5F)}})));
  CHECK(stays(scaled, fed));
  QuantizedGraph both;
  both.output(both.node("MatMul", {both.dequantize(both.input("a", {2, 3}, kU8), kU8),
                                   both.dequantize(both.input("b", {3, 2}, kU8), kU8)}));
  CHECK(stays(both, {fed[0], bytes({3, 2}, kU8, 3)}));
}
