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
