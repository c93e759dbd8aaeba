#include "kernels/rnn.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "unit/kernels/conv_support.h"
#include "unit/kernels/isas.h"

using namespace sardonyx;
using namespace sardonyx::kernels;

namespace {

std::vector<float> sums(std::int64_t count, std::mt19937& random) {
  auto values = random_floats(count, random);
  for (float& value : values) value *= 4;
  return values;
}

float clipped(float x, float clip) { return clip > 0 ? std::clamp(x, -clip, clip) : x; }

}  // namespace

TEST_CASE("an LSTM step equals its definition, with peepholes, clip and coupled gates") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(61);
    for (int round = 0; round < 80; ++round) {
      const std::int64_t rows = pick(random, 1, 4);
      const std::int64_t hidden = pick(random, 1, 70);
      LstmArgs args;
      args.hidden = hidden;
      args.gates_stride = 4 * hidden + 3;
      args.c_before_stride = args.c_stride = hidden;
      args.h_stride = hidden + 2;
      auto gates = sums(rows * args.gates_stride, random);
      const auto before = random_floats(rows * hidden, random);
      const auto peepholes = random_floats(3 * hidden, random);
      std::vector<float> c = before;
      std::vector<float> h(static_cast<std::size_t>(rows * args.h_stride), 5);
      args.gates = gates.data();
      args.c_before = args.c = c.data();
      args.h = h.data();
      args.peepholes = round % 2 == 0 ? peepholes.data() : nullptr;
      args.clip = round % 3 == 0 ? 1.5F : 0;
      args.input_forget = round % 5 == 0;
      if (round % 7 == 0) args.candidate.kind = ActivationKind::Relu;
      const auto input = sums(rows * 4 * hidden, random);
      const auto bias = sums(4 * hidden, random);
      args.input = round % 4 < 2 ? input.data() : nullptr;
      args.input_stride = 4 * hidden;
      args.bias = round % 4 == 1 ? bias.data() : nullptr;
      rnn_table(isa).lstm(args, 0, 1);
      rnn_table(isa).lstm(args, 1, rows);
      for (std::int64_t i = 0; i < rows * 4 * hidden; ++i) {
        const auto j = static_cast<std::size_t>(i % (4 * hidden));
        float& sum = gates[static_cast<std::size_t>(i / (4 * hidden) * args.gates_stride) + j];
        if (args.input != nullptr) sum += input[static_cast<std::size_t>(i)];
        if (args.bias != nullptr) sum += bias[j];
      }
      float worst = 0;
      for (std::int64_t i = 0; i < rows * hidden; ++i) {
        const std::int64_t j = i % hidden;
        const float* g = &gates[static_cast<std::size_t>(i / hidden * args.gates_stride + j)];
        const auto p = [&](std::int64_t which) {
          return args.peepholes == nullptr ? 0 : args.peepholes[which * hidden + j];
        };
        const float old = before[static_cast<std::size_t>(i)];
        const float in = apply(args.gate, clipped(g[0] + p(0) * old, args.clip));
        const float forget = args.input_forget
                                 ? 1 - in
                                 : apply(args.gate, clipped(g[2 * hidden] + p(2) * old, args.clip));
        const float state =
            forget * old + in * apply(args.candidate, clipped(g[3 * hidden], args.clip));
        const float out = apply(args.gate, clipped(g[hidden] + p(1) * state, args.clip));
        const float want = out * std::tanh(state);
        const float got = h[static_cast<std::size_t>(i / hidden * args.h_stride + j)];
        worst = std::max(
            {worst, std::fabs(c[static_cast<std::size_t>(i)] - state), std::fabs(got - want)});
      }
      CHECK(worst < 1e-5F);
      CHECK(h[static_cast<std::size_t>(hidden)] == 5);
    }
  }
}

TEST_CASE("the two parts of a GRU step equal its definition, reset before or after the product") {
  for (const Isa isa : supported_isas()) {
    std::mt19937 random(62);
    for (int round = 0; round < 80; ++round) {
      const std::int64_t rows = pick(random, 1, 3);
      const std::int64_t hidden = pick(random, 1, 70);
      const bool linear = round % 2 == 0;
      auto gates = sums(rows * 2 * hidden, random);
      const auto product = random_floats(rows * hidden, random);
      const auto candidate = sums(rows * hidden, random);
      const auto before = random_floats(rows * hidden, random);
      const auto input = sums(rows * 2 * hidden, random);
      const auto bias = sums(2 * hidden, random);
      const auto operand_bias = sums(hidden, random);
      const auto addend_bias = sums(hidden, random);
      const bool has_bias = round % 4 < 2;
      std::vector<float> activated = gates;
      std::vector<float> reset(before.size());
      std::vector<float> h = before;
      GruResetArgs first;
      first.hidden = hidden;
      first.gates = activated.data();
      first.gates_stride = 2 * hidden;
      first.operand = linear ? product.data() : before.data();
      first.addend = linear ? candidate.data() : nullptr;
      first.input = input.data();
      first.input_stride = 2 * hidden;
      if (has_bias) first.bias = bias.data();
      if (has_bias && linear) first.operand_bias = operand_bias.data();
      if (has_bias && linear) first.addend_bias = addend_bias.data();
      first.operand_stride = first.addend_stride = first.reset_stride = hidden;
      first.reset = reset.data();
      first.clip = round % 3 == 0 ? 2.0F : 0;
      rnn_table(isa).gru_reset(first, 0, rows);
      GruOutputArgs second;
      second.hidden = hidden;
      second.z = activated.data();
      second.z_stride = 2 * hidden;
      second.sums = reset.data();
      second.h_before = second.h = h.data();
      second.sums_stride = second.h_before_stride = second.h_stride = hidden;
      second.clip = first.clip;
      second.addend = linear ? nullptr : candidate.data();
      second.addend_stride = hidden;
      if (has_bias && !linear) second.addend_bias = addend_bias.data();
      rnn_table(isa).gru_output(second, 0, rows);
      for (std::int64_t i = 0; i < rows * 2 * hidden; ++i) {
        const auto at = static_cast<std::size_t>(i);
        gates[at] += input[at] + (has_bias ? bias[at % static_cast<std::size_t>(2 * hidden)] : 0);
      }
      float worst = 0;
      for (std::int64_t i = 0; i < rows * hidden; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto j = static_cast<std::size_t>(i % hidden);
        const auto z_at = static_cast<std::size_t>(i / hidden * 2 * hidden) + j;
        const float z = apply(first.gate, clipped(gates[z_at], first.clip));
        const float r =
            apply(first.gate, clipped(gates[z_at + static_cast<std::size_t>(hidden)], first.clip));
        const float addend = candidate[at] + (has_bias ? addend_bias[j] : 0);
        const float own = product[at] + (has_bias ? operand_bias[j] : 0);
        const float state = linear ? addend + r * own : r * before[at];
        const float sum = linear ? state : state + addend;
        const float want = (1 - z) * std::tanh(clipped(sum, first.clip)) + z * before[at];
        worst = std::max({worst, std::fabs(reset[at] - state), std::fabs(h[at] - want)});
      }
      CHECK(worst < 1e-5F);
    }
  }
}
