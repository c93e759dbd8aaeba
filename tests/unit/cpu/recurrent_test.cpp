#include "unit/cpu/node_case.h"

using namespace sardonyx;

namespace {

Tensor lengths(Source& source, Dim batch, Dim steps) {
  auto tensor = Tensor::allocate(DType::Int32, {batch});
  REQUIRE(tensor.ok());
  for (auto& value : tensor->mutable_values<std::int32_t>()) {
    value = static_cast<std::int32_t>(source.between(0, steps));
  }
  return std::move(tensor).value();
}

/// Functions for every gate, sometimes one that vector kernels lack.
std::vector<std::string> functions(Source& source, Dim count) {
  std::vector<std::string> names;
  for (Dim i = 0; i < count; ++i) {
    names.emplace_back(source.one_of({"Sigmoid", "Tanh", "relu", "tanh"}));
  }
  if (source.chance(0.2)) names.back() = "Softsign";
  return names;
}

}  // namespace

TEST_CASE("recurrent operators are as evaluated in all directions and with all inputs") {
  Source source(51);
  for (int turn = 0; turn < 150; ++turn) {
    const char* name = source.one_of({"LSTM", "GRU", "RNN"});
    const std::string kind = name;
    const Dim gates = kind == "LSTM" ? 4 : kind == "GRU" ? 3 : 1;
    const Dim steps = source.between(1, 5);
    const Dim batch = source.between(1, 4);
    const Dim width = source.between(1, 20);
    const Dim hidden = source.between(1, 24);
    const char* direction = source.one_of({"forward", "reverse", "bidirectional"});
    const Dim directions = std::string(direction) == "bidirectional" ? 2 : 1;
    const bool is_constant = source.chance(0.5);
    NodeCase node(kind, 14);
    node.input(source.floats({steps, batch, width}))
        .input(source.floats({directions, gates * hidden, width}, -0.5F, 0.5F), is_constant)
        .input(source.floats({directions, gates * hidden, hidden}, -0.5F, 0.5F), is_constant);
    const bool has_more = source.chance(0.7);
    if (has_more) {
      if (source.chance(0.7)) {
        node.input(source.floats({directions, 2 * gates * hidden}), is_constant);
      } else {
        node.no_input();
      }
      if (source.chance(0.5)) {
        node.input(lengths(source, batch, steps));
      } else {
        node.no_input();
      }
      if (source.chance(0.5)) {
        node.input(source.floats({directions, batch, hidden}));
        if (kind == "LSTM" && source.chance(0.7)) {
          node.input(source.floats({directions, batch, hidden}));
          if (source.chance(0.5)) node.constant(source.floats({directions, 3 * hidden}));
        }
      }
    }
    node.attribute("hidden_size", hidden).attribute("direction", std::string(direction));
    if (kind == "GRU" && source.chance(0.5)) node.attribute("linear_before_reset", std::int64_t{1});
    if (kind == "LSTM" && source.chance(0.2)) node.attribute("input_forget", std::int64_t{1});
    if (source.chance(0.2)) node.attribute("clip", 0.7F);
    if (source.chance(0.3)) {
      const Dim each = kind == "LSTM" ? 3 : kind == "GRU" ? 2 : 1;
      node.attribute("activations", functions(source, each * directions));
    }
    node.outputs(kind == "LSTM" ? 3 : 2);
    CHECK(node.difference({2e-5}) == "");
  }
}

TEST_CASE("long sequences of wide states are as evaluated, batch first too") {
  Source source(53);
  for (const char* kind : {"LSTM", "GRU"}) {
    for (const Dim batch_first : {0, 1}) {
      const Dim gates = std::string(kind) == "LSTM" ? 4 : 3;
      const Dim steps = 37;
      const Dim batch = 3;
      const Dim width = 33;
      const Dim hidden = 70;
      NodeCase node(kind, 14);
      node.input(source.floats(batch_first != 0 ? Shape{batch, steps, width}
                                                : Shape{steps, batch, width}))
          .constant(source.floats({2, gates * hidden, width}, -0.2F, 0.2F))
          .constant(source.floats({2, gates * hidden, hidden}, -0.2F, 0.2F))
          .constant(source.floats({2, 2 * gates * hidden}))
          .input(lengths(source, batch, steps));
      node.attribute("hidden_size", hidden)
          .attribute("direction", std::string("bidirectional"))
          .attribute("layout", batch_first)
          .outputs(gates == 4 ? 3 : 2);
      CHECK(node.difference({2e-5}) == "");
    }
  }
}

TEST_CASE("an LSTM of 8-bit weights is as evaluated") {
  Source source(52);
  for (int turn = 0; turn < 60; ++turn) {
    const Dim steps = source.between(1, 4);
    const Dim batch = source.between(1, 3);
    const Dim width = source.between(1, 40);
    const Dim hidden = source.between(1, 40);
    const Dim directions = source.between(1, 2);
    const DType dtype = source.dtype_8_bit();
    const bool per_channel = source.chance(0.4);
    const Shape scales = per_channel ? Shape{directions, 4 * hidden} : Shape{directions};
    NodeCase node("DynamicQuantizeLSTM", 1, "com.microsoft");
    node.input(source.floats({steps, batch, width}))
        .constant(source.bytes(dtype, {directions, width, 4 * hidden}))
        .constant(source.bytes(dtype, {directions, hidden, 4 * hidden}))
        .input(source.floats({directions, 8 * hidden}))
        .no_input()
        .no_input()
        .no_input()
        .no_input()
        .constant(source.floats(scales, 0.001F, 0.01F))
        .constant(source.bytes(dtype, scales))
        .constant(source.floats(scales, 0.001F, 0.01F))
        .constant(source.bytes(dtype, scales));
    node.attribute("hidden_size", hidden)
        .attribute("direction", std::string(directions == 2 ? "bidirectional" : "forward"))
        .outputs(3);
    CHECK(node.difference({1e-4}) == "");
  }
}
