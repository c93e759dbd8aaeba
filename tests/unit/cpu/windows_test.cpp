#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

constexpr Tolerance kFloat{3e-5};

Shape channels_last(const Shape& first) {
  Shape last{first[0]};
  for (int axis = 2; axis < first.rank(); ++axis) last.push_back(first[axis]);
  last.push_back(first[1]);
  return last;
}

/// Sizes and attributes of a window that fits its image.
struct RandomWindow {
  std::vector<std::int64_t> kernel;
  std::vector<std::int64_t> strides;
  std::vector<std::int64_t> dilations;
  std::vector<std::int64_t> pads;
  Shape image;

  RandomWindow(Source& source, int rank) : pads(static_cast<std::size_t>(2 * rank)) {
    for (int i = 0; i < rank; ++i) {
      const std::int64_t size = source.between(1, rank == 3 ? 3 : 5);
      const std::int64_t dilation = source.chance(0.3) ? 2 : 1;
      kernel.push_back(size);
      dilations.push_back(dilation);
      strides.push_back(source.between(1, 3));
      const std::int64_t extent = (size - 1) * dilation + 1;
      image.push_back(extent + source.between(0, rank == 3 ? 4 : 12));
      for (const int side : {0, 1}) {
        pads[static_cast<std::size_t>(i + side * rank)] =
            source.chance(0.5) ? source.between(0, size - 1) : 0;
      }
    }
  }

  void set(Source& source, NodeCase& node) const {
    node.attribute("strides", strides).attribute("dilations", dilations);
    if (source.chance(0.15)) {
      node.attribute("auto_pad", std::string(source.one_of({"SAME_UPPER", "SAME_LOWER", "VALID"})));
    } else {
      node.attribute("pads", pads);
    }
  }
};

Shape shape_of(Dim first, Dim second, const Shape& rest) {
  Shape shape{first, second};
  for (const Dim dim : rest) shape.push_back(dim);
  return shape;
}

Shape kernel_shape(Dim out, Dim in, const RandomWindow& window) {
  Shape shape{out, in};
  for (const Dim dim : window.kernel) shape.push_back(dim);
  return shape;
}

struct Channels {
  std::int64_t groups = 1;
  std::int64_t in = 1;
  std::int64_t out = 1;

  explicit Channels(Source& source) {
    const std::int64_t kind = source.between(0, 3);
    if (kind == 0) {
      groups = in = out = source.between(1, 40);
    } else if (kind == 1) {
      groups = source.between(2, 3);
      in = groups * source.between(1, 9);
      out = groups * source.between(1, 20);
    } else {
      in = source.between(1, 35);
      out = source.between(1, 50);
    }
  }
};

void set_activation(Source& source, NodeCase& node) {
  const char* name =
      source.one_of({"", "Relu", "Clip", "LeakyRelu", "HardSigmoid", "Sigmoid", "Tanh"});
  if (*name == 0) return;
  node.attribute("activation", std::string(name));
  if (std::string(name) == "Clip") {
    node.attribute("activation_params", std::vector<float>{-0.5F, 1.5F});
  }
  if (std::string(name) == "LeakyRelu") {
    node.attribute("activation_params", std::vector<float>{0.2F});
  }
  if (std::string(name) == "HardSigmoid") {
    node.attribute("activation_params", std::vector<float>{0.3F, 0.4F});
  }
}

void check_conv(Source& source, bool is_last, bool has_sum) {
  const auto rank = static_cast<int>(source.between(1, 3));
  const RandomWindow window(source, rank);
  const Channels channels(source);
  const Dim batch = source.chance(0.03) ? 0 : source.between(1, 2);
  const Shape x = shape_of(batch, channels.in, window.image);
  const bool is_constant = source.chance(0.6);
  Tensor weight =
      source.floats(kernel_shape(channels.out, channels.in / channels.groups, window), -1, 1);
  const bool is_fused = is_last || has_sum || source.chance(0.5);
  NodeCase node(is_last    ? "NhwcFusedConv"
                : is_fused ? "FusedConv"
                           : "Conv",
                is_fused ? 1 : 11, is_fused ? "com.microsoft" : "");
  node.input(source.floats(is_last ? channels_last(x) : x)).input(weight, is_constant);
  const bool has_bias = source.chance(0.5);
  if (has_bias) node.input(source.floats({channels.out}), is_constant);
  window.set(source, node);
  node.attribute("group", channels.groups);
  if (is_fused) set_activation(source, node);
  if (has_sum) {
    // The sum has the result's shape: padding that keeps the size, at stride 1.
    NodeCase sum(is_last ? "NhwcFusedConv" : "FusedConv", 1, "com.microsoft");
    sum.input(source.floats(is_last ? channels_last(x) : x)).input(weight, is_constant);
    if (has_bias) {
      sum.input(source.floats({channels.out}), is_constant);
    } else {
      sum.no_input();
    }
    const Shape y = shape_of(batch, channels.out, window.image);
    sum.input(source.floats(is_last ? channels_last(y) : y));
    sum.attribute("auto_pad", std::string("SAME_UPPER"))
        .attribute("dilations", window.dilations)
        .attribute("group", channels.groups);
    set_activation(source, sum);
    CHECK(sum.difference(kFloat) == "");
    return;
  }
  if (source.chance(0.2)) node.unknown_sizes();
  CHECK(node.difference(kFloat) == "");
}

}  // namespace

TEST_CASE("convolutions with channels first are as evaluated") {
  Source source(31);
  for (int turn = 0; turn < 200; ++turn) check_conv(source, false, false);
}

TEST_CASE("convolutions with channels last are as evaluated") {
  Source source(32);
  for (int turn = 0; turn < 250; ++turn) check_conv(source, true, false);
}

TEST_CASE("convolutions with a sum are as evaluated, depthwise ones too") {
  Source source(33);
  for (int turn = 0; turn < 100; ++turn) check_conv(source, turn % 2 == 0, true);
}

TEST_CASE("a kernel longer than any small image is convolved") {
  Source source(34);
  CHECK(NodeCase("NhwcFusedConv", 1, "com.microsoft")
            .input(source.floats({1, 200, 2}))
            .constant(source.floats({5, 2, 128}))
            .difference(kFloat) == "");
  CHECK(NodeCase("NhwcFusedConv", 1, "com.microsoft")
            .input(source.floats({1, 200, 3}))
            .constant(source.floats({3, 1, 100}))
            .attribute("group", std::int64_t{3})
            .difference(kFloat) == "");
  CHECK(NodeCase("ConvTranspose", 1)
            .input(source.floats({1, 2, 20}))
            .constant(source.floats({2, 5, 70}))
            .difference(kFloat) == "");
}

TEST_CASE("larger convolutions are as evaluated and do not depend on threads") {
  Source source(35);
  for (const bool is_constant : {true, false}) {
    CHECK(NodeCase("NhwcFusedConv", 1, "com.microsoft")
              .input(source.floats({1, 28, 28, 32}))
              .input(source.floats({64, 32, 3, 3}, -0.1F, 0.1F), is_constant)
              .attribute("pads", std::vector<std::int64_t>{1, 1, 1, 1})
              .difference(kFloat) == "");
    CHECK(NodeCase("NhwcFusedConv", 1, "com.microsoft")
              .input(source.floats({2, 7, 7, 160}))
              .input(source.floats({200, 160, 1, 1}, -0.1F, 0.1F), is_constant)
              .difference(kFloat) == "");
  }
}

TEST_CASE("transposed convolutions are as evaluated in both layouts") {
  Source source(36);
  for (int turn = 0; turn < 200; ++turn) {
    const bool is_last = turn % 2 == 0;
    const auto rank = static_cast<int>(source.between(1, is_last ? 2 : 3));
    const RandomWindow window(source, is_last ? 2 : rank);
    const Channels channels(source);
    Shape image;
    for (std::size_t i = 0; i < window.kernel.size(); ++i) image.push_back(source.between(1, 6));
    const Shape x = shape_of(source.between(1, 2), channels.in, image);
    NodeCase node("ConvTranspose", is_last ? 1 : 11, is_last ? "ai.sardonyx" : "");
    const bool is_constant = source.chance(0.6);
    node.input(source.floats(is_last ? channels_last(x) : x))
        .input(source.floats(kernel_shape(channels.in, channels.out / channels.groups, window)),
               is_constant);
    if (source.chance(0.5)) node.input(source.floats({channels.out}), is_constant);
    node.attribute("strides", window.strides).attribute("group", channels.groups);
    std::vector<std::int64_t> pads(window.kernel.size() * 2);
    std::vector<std::int64_t> extra;
    for (std::size_t i = 0; i < window.kernel.size(); ++i) {
      pads[i] = source.between(0, window.kernel[i] / 2);
      extra.push_back(source.between(0, window.strides[i] - 1));
    }
    if (source.chance(0.3)) node.attribute("dilations", window.dilations);
    if (source.chance(0.5)) node.attribute("pads", pads);
    if (source.chance(0.3)) node.attribute("output_padding", extra);
    if (source.chance(0.15)) node.attribute("auto_pad", std::string("SAME_UPPER"));
    CHECK(node.difference(kFloat) == "");
  }
}

TEST_CASE("pools are as evaluated in both layouts") {
  Source source(37);
  for (int turn = 0; turn < 300; ++turn) {
    const bool is_last = source.chance(0.5);
    const auto rank = is_last ? 2 : static_cast<int>(source.between(1, 3));
    const RandomWindow window(source, rank);
    const Shape x = shape_of(source.between(1, 2), source.between(1, 40), window.image);
    const bool is_max = source.chance(0.5);
    NodeCase node(is_max ? "MaxPool" : "AveragePool",
                  is_last ? 1 : source.one_of<std::int64_t>({12, 19, 22}),
                  is_last ? "ai.sardonyx" : "");
    node.input(source.floats(is_last ? channels_last(x) : x))
        .attribute("kernel_shape", window.kernel)
        .attribute("strides", window.strides);
    if (source.chance(0.7)) node.attribute("pads", window.pads);
    if (source.chance(0.3)) node.attribute("ceil_mode", std::int64_t{1});
    if (is_max && source.chance(0.3)) node.attribute("dilations", window.dilations);
    if (!is_max && source.chance(0.5)) node.attribute("count_include_pad", std::int64_t{1});
    CHECK(node.difference({1e-5}) == "");
  }
}

TEST_CASE("global pools are as evaluated in both layouts") {
  Source source(38);
  for (const char* name : {"GlobalAveragePool", "GlobalMaxPool"}) {
    for (const Shape& x : {Shape{2, 5, 7, 9}, Shape{1, 300, 7, 7}, Shape{1, 3, 1, 1}}) {
      CHECK(NodeCase(name, 1).input(source.floats(x)).difference({1e-5}) == "");
      CHECK(NodeCase(name, 1, "ai.sardonyx")
                .input(source.floats(channels_last(x)))
                .difference({1e-5}) == "");
    }
    CHECK(NodeCase(name, 1).input(source.floats({2, 5, 11})).difference({1e-5}) == "");
    CHECK(NodeCase(name, 1).input(source.floats({2, 5, 3, 4, 5})).difference({1e-5}) == "");
  }
}
