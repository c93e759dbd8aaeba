#include <limits>

#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

constexpr Tolerance kExact{0};

Dim random_size(Source& source) {
  if (source.chance(0.03)) return 0;
  return source.chance(0.3) ? source.between(30, 200) : source.between(1, 30);
}

Tensor positive(Source& source, const Shape& shape) { return source.floats(shape, 0.001F, 0.05F); }

}  // namespace

TEST_CASE("MatMulInteger is exact over the full range with zero points of all forms") {
  Source source(41);
  for (int turn = 0; turn < 250; ++turn) {
    const Dim m = random_size(source);
    const Dim n = random_size(source);
    const Dim k = random_size(source);
    const DType a = source.dtype_8_bit();
    const DType b = source.dtype_8_bit();
    NodeCase node("MatMulInteger", 10);
    node.input(source.bytes(a, source.chance(0.3) ? Shape{2, m, k} : Shape{m, k}))
        .input(source.bytes(b, {k, n}), source.chance(0.6));
    const std::int64_t form = source.between(0, 4);
    if (form == 1 || form == 2) node.input(source.bytes(a, {}), source.chance(0.5));
    if (form >= 3) node.no_input();
    if (form >= 2) {
      node.input(source.bytes(b, source.chance(0.5) ? Shape{} : Shape{n}), source.chance(0.5));
    }
    if (source.chance(0.2)) node.unknown_sizes();
    CHECK(node.difference(kExact) == "");
  }
}

TEST_CASE("integer products of only the greatest and least values are exact") {
  for (const DType a : {DType::Int8, DType::UInt8}) {
    for (const DType b : {DType::Int8, DType::UInt8}) {
      for (const int a_bits : {0x00, 0x7f, 0x80, 0xff}) {
        for (const int b_bits : {0x00, 0x7f, 0x80, 0xff}) {
          Source source(42);
          Tensor left = source.bytes(a, {19, 1037});
          Tensor right = source.bytes(b, {1037, 35});
          for (auto& value : left.mutable_values<std::uint8_t>()) {
            value = static_cast<std::uint8_t>(a_bits);
          }
          for (auto& value : right.mutable_values<std::uint8_t>()) {
            value = static_cast<std::uint8_t>(b_bits);
          }
          CHECK(NodeCase("MatMulInteger", 10).input(left).constant(right).difference(kExact) == "");
        }
      }
    }
  }
}

TEST_CASE("MatMulIntegerToFloat is as evaluated with scales, zero points and bias of all forms") {
  Source source(43);
  for (int turn = 0; turn < 200; ++turn) {
    const Dim m = source.between(1, 40);
    const Dim n = source.between(1, 90);
    const Dim k = source.between(1, 200);
    const DType a = source.dtype_8_bit();
    const DType b = source.dtype_8_bit();
    NodeCase node("MatMulIntegerToFloat", 1, "com.microsoft");
    node.input(source.bytes(a, source.chance(0.3) ? Shape{2, m, k} : Shape{m, k}))
        .input(source.bytes(b, {k, n}), source.chance(0.6))
        .input(positive(source, source.chance(0.5) ? Shape{} : Shape{1}))
        .input(positive(source, source.chance(0.5) ? Shape{n} : Shape{1}));
    if (source.chance(0.5)) {
      node.input(source.bytes(a, {}));
    } else {
      node.no_input();
    }
    if (source.chance(0.5)) {
      node.input(source.bytes(b, source.chance(0.5) ? Shape{} : Shape{n}));
    } else {
      node.no_input();
    }
    if (source.chance(0.5)) node.input(source.floats({n}));
    CHECK(node.difference({1e-5}) == "");
  }
}

TEST_CASE("ConvInteger is exact over the full range") {
  Source source(44);
  for (int turn = 0; turn < 150; ++turn) {
    const auto rank = static_cast<int>(source.between(1, 3));
    const std::int64_t groups = source.chance(0.4) ? source.between(2, 4) : 1;
    const std::int64_t in = groups * source.between(1, 9);
    const std::int64_t out = groups * source.between(1, 20);
    Shape x{source.between(1, 2), in};
    Shape w{out, in / groups};
    std::vector<std::int64_t> pads(static_cast<std::size_t>(2 * rank));
    std::vector<std::int64_t> strides;
    std::vector<std::int64_t> dilations;
    for (int i = 0; i < rank; ++i) {
      const std::int64_t size = source.between(1, 4);
      const std::int64_t dilation = source.between(1, 2);
      w.push_back(size);
      x.push_back((size - 1) * dilation + 1 + source.between(0, 5));
      strides.push_back(source.between(1, 2));
      dilations.push_back(dilation);
      pads[static_cast<std::size_t>(i)] = source.between(0, size - 1);
      pads[static_cast<std::size_t>(i + rank)] = source.between(0, size - 1);
    }
    const DType x_type = source.dtype_8_bit();
    const DType w_type = source.dtype_8_bit();
    NodeCase node("ConvInteger", 10);
    node.input(source.bytes(x_type, x)).input(source.bytes(w_type, w), source.chance(0.8));
    if (source.chance(0.7)) node.input(source.bytes(x_type, {}));
    node.attribute("pads", pads)
        .attribute("strides", strides)
        .attribute("dilations", dilations)
        .attribute("group", groups);
    CHECK(node.difference(kExact) == "");
  }
}

TEST_CASE("QLinearConv is exact over the full range, channels first and last, with Relu") {
  Source source(45);
  for (int turn = 0; turn < 250; ++turn) {
    const std::int64_t groups = source.chance(0.4) ? source.between(2, 4) : 1;
    const std::int64_t in = groups * source.between(1, 12);
    const std::int64_t out = groups * source.between(1, 20);
    const std::int64_t height = source.between(3, 9);
    const std::int64_t width = source.between(3, 9);
    const std::int64_t kernel = source.between(1, 3);
    const DType x_type = source.dtype_8_bit();
    const DType w_type = x_type == DType::UInt8 ? source.dtype_8_bit() : DType::Int8;
    const bool is_ours = source.chance(0.6);
    const bool is_last = is_ours && source.chance(0.6);
    const Dim batch = source.between(1, 2);
    NodeCase node("QLinearConv", is_ours ? 1 : 10, is_ours ? "ai.sardonyx" : "");
    node.input(source.bytes(x_type, is_last ? Shape{batch, height, width, in}
                                            : Shape{batch, in, height, width}))
        .input(positive(source, {}))
        .input(source.bytes(x_type, {}))
        .constant(source.bytes(w_type, {out, in / groups, kernel, kernel}));
    const bool per_channel = source.chance(0.5);
    node.constant(positive(source, per_channel ? Shape{out} : Shape{}))
        .constant(source.chance(0.5) ? source.zeros(w_type, per_channel ? Shape{out} : Shape{})
                                     : source.bytes(w_type, per_channel ? Shape{out} : Shape{}))
        .input(source.floats({}, 0.01F, 0.5F))
        .input(source.bytes(x_type, {}));
    if (source.chance(0.6)) {
      Tensor bias = source.bytes(DType::Int32, {out});
      for (auto& value : bias.mutable_values<std::int32_t>()) value %= 50000;
      node.constant(bias);
    }
    const std::int64_t pad = source.between(0, kernel - 1);
    node.attribute("pads", std::vector<std::int64_t>{pad, 0, pad, kernel - 1})
        .attribute("strides", std::vector<std::int64_t>{source.between(1, 2), 1})
        .attribute("group", groups);
    if (is_last) node.attribute("channels_last", std::int64_t{1});
    if (is_ours && source.chance(0.5)) node.attribute("activation", std::string("Relu"));
    CHECK(node.difference(kExact) == "");
  }
}

TEST_CASE("QLinearAdd is exact, with Relu and with shapes that broadcast") {
  Source source(49);
  for (int turn = 0; turn < 120; ++turn) {
    const Shape shape = turn % 10 == 0 ? Shape{3, 9001} : Shape{source.between(0, 40), 7};
    const DType dtype = source.dtype_8_bit();
    const bool is_ours = source.chance(0.6);
    NodeCase node("QLinearAdd", 1, is_ours ? "ai.sardonyx" : "com.microsoft");
    for (int term = 0; term < 2; ++term) {
      node.input(source.bytes(dtype, term == 1 && source.chance(0.2) ? Shape{7} : shape))
          .input(positive(source, source.chance(0.5) ? Shape{} : Shape{1}));
      if (source.chance(0.7)) {
        node.input(source.bytes(dtype, {}));
      } else {
        node.no_input();
      }
      if (turn % 10 == 0) break;
    }
    if (turn % 10 == 0) {
      node.constant(source.bytes(dtype, shape)).input(positive(source, {})).no_input();
    }
    node.input(positive(source, {}));
    if (source.chance(0.7)) node.input(source.bytes(dtype, {}));
    if (is_ours && source.chance(0.5)) node.attribute("activation", std::string("Relu"));
    CHECK(node.difference(kExact) == "");
  }
}

TEST_CASE("conversions to and from 8 bits are exact") {
  Source source(46);
  for (int turn = 0; turn < 120; ++turn) {
    const Shape shape = turn % 10 == 0 ? Shape{40001} : Shape{source.between(0, 40), 7};
    const DType dtype = source.dtype_8_bit();
    const Shape scalar = source.chance(0.5) ? Shape{} : Shape{1};
    NodeCase forth("QuantizeLinear", source.one_of<std::int64_t>({10, 13, 19, 21}));
    forth.input(source.floats(shape, -40, 40)).input(source.floats(scalar, 0.01F, 0.3F));
    if (source.chance(0.8)) forth.input(source.bytes(dtype, scalar));
    CHECK(forth.difference(kExact) == "");
    NodeCase back("DequantizeLinear", source.one_of<std::int64_t>({10, 13, 19, 21}));
    back.input(source.bytes(dtype, shape)).input(source.floats(scalar, 0.01F, 0.3F));
    if (source.chance(0.8)) back.input(source.bytes(dtype, scalar));
    CHECK(back.difference(kExact) == "");
  }
}

TEST_CASE("quantizing rounds halves to even and saturates infinities") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  auto x = make_tensor<float>(
      {10}, {0.5F, 1.5F, 2.5F, -0.5F, -1.5F, 1e20F, -1e20F, kInfinity, -kInfinity, 127.5F});
  REQUIRE(x.ok());
  for (const DType dtype : {DType::Int8, DType::UInt8}) {
    Source source(47);
    CHECK(NodeCase("QuantizeLinear", 13)
              .input(*x)
              .input(number(1))
              .input(source.zeros(dtype, {}))
              .difference(kExact) == "");
  }
}

TEST_CASE("DynamicQuantizeLinear is exact for any number of elements") {
  Source source(48);
  for (const Dim size : {0, 1, 3, 16, 100, 16384, 16385, 70000}) {
    for (const float low : {-3.0F, 0.5F, -0.0F}) {
      CHECK(NodeCase("DynamicQuantizeLinear", 11)
                .input(source.floats({size}, low, 3))
                .outputs(3)
                .difference(kExact) == "");
    }
    CHECK(NodeCase("DynamicQuantizeLinear", 11)
              .input(source.zeros(DType::Float32, {size}))
              .outputs(3)
              .difference(kExact) == "");
  }
}
