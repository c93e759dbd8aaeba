#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "ops/attention_core.h"
#include "ops/block_weight.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// One of the three projections of an operator: where its operands stand (0 where it has none).
struct Slot {
  std::size_t weight;
  std::size_t bias;
  std::size_t scales;
  std::size_t zeros;
};
struct Slots {
  Slot first, second, third;
};
constexpr std::size_t kX = 0;
constexpr std::size_t kRouter = 1;
constexpr std::size_t kShares = 14;
constexpr Slots kFloatSlots{{2, 3, 0, 0}, {4, 5, 0, 0}, {6, 7, 0, 0}};
constexpr Slots kCodeSlots{{2, 4, 3, 11}, {5, 7, 6, 12}, {8, 10, 9, 13}};

bool is_quantized(const Slots& slots) { return slots.first.scales != 0; }

/// How the first projection becomes the input of the second.
struct Gate {
  bool is_swiglu = false;
  /// 0: the linear half has its own weights; 1: halves alternate; 2: one after the other.
  std::int64_t fusion = 0;
  float alpha = 1.0F;
  float beta = 0.0F;
  float limit = std::numeric_limits<float>::infinity();
  Activation activation;
};

Result<Gate> read_gate(const Attributes& attributes) {
  Gate gate;
  const std::string name = attributes.get_string("activation_type", "relu");
  gate.is_swiglu = name == "swiglu";
  gate.fusion = gate.is_swiglu ? attributes.get_int("swiglu_fusion", 0) : 0;
  gate.alpha = attributes.get_float("activation_alpha", 1.0F);
  gate.beta = attributes.get_float("activation_beta", 0.0F);
  gate.limit = attributes.get_float("swiglu_limit", gate.limit);
  if (gate.fusion < 0 || gate.fusion > 2) {
    return failure(Code::InvalidModel, "swiglu_fusion is {}, expected 0, 1 or 2", gate.fusion);
  }
  if (!gate.is_swiglu) {
    const bool is_known = name == "relu" || name == "gelu" || name == "silu" || name == "identity";
    if (!is_known) return failure(Code::Unsupported, "activation_type '{}'", name);
    // The experts' Gelu is the approximation by tanh.
    SDX_ASSIGN(gate.activation,
               Activation::of(name == "gelu" ? "fastgelu" : name, nullptr, nullptr));
  }
  for (const std::string_view flag : {"use_sparse_mixer", "swiglu_limit_after_activation"}) {
    if (attributes.get_int(flag, 0) != 0) return failure(Code::Unsupported, "{} is set", flag);
  }
  return gate;
}

struct Sizes {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t experts = 0;
  std::int64_t inner = 0;
  /// Rows of the first weight: twice the inner size when both halves share it.
  std::int64_t first = 0;
};

struct Quantization {
  int bits = 32;
  /// Codes that share a scale; 0: whole rows do.
  std::int64_t block = 0;
};

Result<Quantization> read_quantization(const Attributes& attributes, std::string_view own_bits) {
  Quantization q;
  const std::int64_t bits =
      attributes.get_int(own_bits, attributes.get_int("expert_weight_bits", 4));
  const std::string type = attributes.get_string("quant_type", "int");
  if (type != "int" || (bits != 2 && bits != 4 && bits != 8)) {
    return failure(Code::Unsupported, "experts of quant_type '{}' with {} bits", type, bits);
  }
  if (attributes.get_int("weights_prepacked", -1) == 1) {
    return failure(Code::Unsupported, "experts packed for another device (weights_prepacked)");
  }
  q.bits = static_cast<int>(bits);
  q.block = attributes.get_int("block_size", 0);
  if (q.block != 0 && (q.block < 16 || q.block > (1 << 30) || (q.block & (q.block - 1)) != 0)) {
    return failure(Code::InvalidModel, "block_size is {}, expected a power of two from 16 on",
                   q.block);
  }
  return q;
}

Status check_shape(const InferContext& context, std::size_t input, const Shape& expected) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr || input == 0) return {};
  bool fits = shape->rank() == expected.rank();
  for (int i = 0; fits && i < expected.rank(); ++i) fits = !differ((*shape)[i], expected[i]);
  if (fits) return {};
  return context.error("'{}' has shape {}, expected {}", context.input_name(input),
                       shape->to_string(), expected.to_string());
}

/// A projection of `rows` by `columns` per expert.
Status check_slot(const InferContext& context, const Slot& slot, std::string_view own_bits,
                  Dim experts, Dim rows, Dim columns) {
  if (!context.has_input(slot.weight)) return {};
  SDX_TRY(check_shape(context, slot.bias, {experts, rows}));
  if (slot.scales == 0) return check_shape(context, slot.weight, {experts, rows, columns});
  SDX_ASSIGN(const Quantization q, read_quantization(context.attributes(), own_bits));
  if (!context.has_input(slot.scales)) {
    return context.error("input {}, the scales of input {}, is left out", slot.scales, slot.weight);
  }
  if (!is_known(rows) || !is_known(columns)) return {};
  const bool is_split = q.block != 0;
  if (columns * q.bits % 8 != 0 || (is_split && columns % q.block != 0)) {
    return context.error("rows of {} codes of {} bits do not split into bytes and blocks of {}",
                         columns, q.bits, q.block);
  }
  SDX_TRY(check_shape(context, slot.weight, {experts, rows, columns * q.bits / 8}));
  if (!is_split) {
    SDX_TRY(check_shape(context, slot.scales, {experts, rows}));
    return check_shape(context, slot.zeros, {experts, (rows * q.bits + 7) / 8});
  }
  const Dim blocks = columns / q.block;
  SDX_TRY(check_shape(context, slot.scales, {experts, rows, blocks}));
  return check_shape(context, slot.zeros, {experts, rows, (blocks * q.bits + 7) / 8});
}

Status infer_experts(InferContext& context, const Slots& slots) {
  SDX_ASSIGN(const Gate gate, read_gate(context.attributes()));
  const std::int64_t k = context.attributes().get_int("k", 1);
  const Shape* x = context.shape(kX);
  if (x == nullptr) return {};
  if (x->rank() != 2 && x->rank() != 3) {
    return context.error("'{}' has shape {}, expected 2 or 3 dimensions", context.input_name(kX),
                         x->to_string());
  }
  context.set_shape(0, *x);
  const Shape* router = context.shape(kRouter);
  const Shape* first = context.shape(slots.first.weight);
  const Dim hidden = (*x)[x->rank() - 1];
  Dim tokens = x->rank() == 2 ? (*x)[0] : kUnknownDim;
  if (x->rank() == 3 && is_known((*x)[0]) && is_known((*x)[1])) tokens = x->product(0, 2);
  if (router == nullptr || first == nullptr) return {};
  if (router->rank() != 2 || differ((*router)[0], tokens)) {
    return context.error("'{}' has shape {}, expected [{}, experts]", context.input_name(kRouter),
                         router->to_string(), tokens);
  }
  const Dim experts = (*router)[1];
  if (k < 1 || (is_known(experts) && k > experts)) {
    return context.error("k is {}, expected 1 to {}", k, experts);
  }
  const bool is_merged = gate.fusion != 0;
  if (first->rank() != 3 || (is_merged && is_known((*first)[1]) && (*first)[1] % 2 != 0)) {
    return context.error("'{}' has shape {}, expected [experts, inner, hidden]",
                         context.input_name(slots.first.weight), first->to_string());
  }
  const Dim rows = (*first)[1];
  const Dim inner = is_merged && is_known(rows) ? rows / 2 : rows;
  if (gate.is_swiglu && !is_merged && !context.has_input(slots.third.weight)) {
    return context.error("swiglu without swiglu_fusion needs fc3_experts_weights");
  }
  if (is_quantized(slots)) SDX_TRY(check_shape(context, kShares, *router));
  SDX_TRY(check_slot(context, slots.first, "fc1_expert_weight_bits", experts, rows, hidden));
  SDX_TRY(check_slot(context, slots.second, "fc2_expert_weight_bits", experts, hidden, inner));
  return check_slot(context, slots.third, "fc3_expert_weight_bits", experts, inner, hidden);
}

Status infer_moe(InferContext& context) { return infer_experts(context, kFloatSlots); }
Status infer_qmoe(InferContext& context) {
  for (std::size_t i = kShares + 1; i < context.input_count(); ++i) {
    if (context.has_input(i)) {
      return failure(Code::Unsupported, "input {}: scales of whole experts or activations", i);
    }
  }
  return infer_experts(context, kCodeSlots);
}

/// For each expert the tokens that go to it, with their shares.
struct Route {
  std::int64_t token;
  float share;
};

std::vector<std::vector<Route>> route_tokens(const Attributes& attributes, const Sizes& s,
                                             const float* logits, const float* weights,
                                             bool normalizes) {
  std::vector<std::vector<Route>> routes(static_cast<std::size_t>(s.experts));
  const std::int64_t k = attributes.get_int("k", 1);
  std::vector<float> shares(static_cast<std::size_t>(s.experts));
  std::vector<std::int64_t> order(static_cast<std::size_t>(s.experts));
  for (std::int64_t t = 0; t < s.tokens; ++t) {
    std::copy_n(logits + t * s.experts, s.experts, shares.begin());
    softmax_rows<float>(shares.data(), 1, s.experts, nullptr);
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      return shares[static_cast<std::size_t>(a)] > shares[static_cast<std::size_t>(b)];
    });
    if (weights != nullptr) std::copy_n(weights + t * s.experts, s.experts, shares.begin());
    float sum = 0.0F;
    for (std::int64_t i = 0; i < k; ++i) {
      sum += shares[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])];
    }
    for (std::int64_t i = 0; i < k; ++i) {
      const auto expert = static_cast<std::size_t>(order[static_cast<std::size_t>(i)]);
      const float share = normalizes && sum > 0.0F ? shares[expert] / sum : shares[expert];
      routes[expert].push_back({t, share});
    }
  }
  return routes;
}

float swiglu(const Gate& gate, float g, float l) {
  g = std::min(g, gate.limit);
  l = std::clamp(l, -gate.limit, gate.limit);
  return g / (1.0F + std::exp(-gate.alpha * g)) * (l + gate.beta);
}

/// The inner activations [count, inner] from the first (and third) projections.
void apply_gate(const Gate& gate, const Sizes& s, std::int64_t count, float* first,
                const float* third, float* inner) {
  if (!gate.is_swiglu) {
    gate.activation.apply(first, count * s.first);
    for (std::int64_t i = 0; i < count * s.inner; ++i) {
      inner[i] = third != nullptr ? first[i] * third[i] : first[i];
    }
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    const float* row = first + i * s.first;
    for (std::int64_t j = 0; j < s.inner; ++j) {
      const float g = gate.fusion == 1 ? row[2 * j] : row[j];
      const float l = gate.fusion == 0   ? third[i * s.inner + j]
                      : gate.fusion == 1 ? row[2 * j + 1]
                                         : row[s.inner + j];
      inner[i * s.inner + j] = swiglu(gate, g, l);
    }
  }
}

/// One projection of all experts, as floats or as codes.
struct Projection {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Elements<float> weight, bias, scales;
  const std::uint8_t* codes = nullptr;
  const std::uint8_t* zeros = nullptr;
  Quantization quantization;

  bool is_there() const { return weight || codes != nullptr; }

  static Result<Projection> read(EvalContext& context, const Slot& slot, std::string_view own_bits,
                                 std::int64_t rows, std::int64_t columns) {
    Projection p;
    p.rows = rows;
    p.columns = columns;
    const Tensor* weight = context.tensor_or_null(slot.weight);
    if (weight == nullptr) return p;
    SDX_ASSIGN(p.bias, Elements<float>::of(context.tensor_or_null(slot.bias)));
    if (slot.scales == 0) {
      SDX_ASSIGN(p.weight, Elements<float>::of(*weight));
      return p;
    }
    SDX_ASSIGN(p.quantization, read_quantization(context.attributes(), own_bits));
    SDX_ASSIGN(p.scales, Elements<float>::of(context.tensor(slot.scales)));
    p.codes = weight->values<std::uint8_t>().data();
    if (const Tensor* zeros = context.tensor_or_null(slot.zeros)) {
      p.zeros = zeros->values<std::uint8_t>().data();
    }
    return p;
  }

  /// The weight [rows, columns] of one expert.
  void decode(std::int64_t expert, float* out) const {
    if (codes == nullptr) {
      std::copy_n(weight.data() + expert * rows * columns, rows * columns, out);
      return;
    }
    BlockWeight part{.bits = quantization.bits, .rows = rows, .depth = columns};
    part.block = quantization.block != 0 ? quantization.block : columns;
    part.codes = codes + expert * rows * part.row_bytes();
    part.scales = scales.data() + expert * rows * part.block_count();
    std::vector<float> row_zeros;
    if (zeros != nullptr && quantization.block != 0) {
      part.packed_zeros = zeros + expert * rows * part.zero_row_bytes();
    } else if (zeros != nullptr) {
      // Without blocks the zero points of all rows are packed together.
      const std::int64_t bytes = (rows * part.bits + 7) / 8;
      for (std::int64_t r = 0; r < rows; ++r) {
        const std::int64_t bit = r * part.bits;
        const int code = zeros[expert * bytes + bit / 8] >> (bit % 8) & ((1 << part.bits) - 1);
        row_zeros.push_back(static_cast<float>(code));
      }
      part.float_zeros = row_zeros.data();
    }
    for (std::int64_t r = 0; r < rows; ++r) part.decode_row(r, out + r * columns);
  }

  /// y [count, rows] = x [count, columns] times the transposed weight, plus bias.
  Status apply(std::int64_t expert, const float* x, std::int64_t count, float* y) const {
    SDX_ASSIGN(Tensor scratch, make_scratch<float>(2 * rows * columns));
    float* decoded = scratch.mutable_values<float>().data();
    float* turned = decoded + rows * columns;
    decode(expert, decoded);
    transpose_matrix(decoded, rows, columns, turned);
    for (std::int64_t i = 0; i < count * rows; ++i) {
      y[i] = bias ? bias[expert * rows + i % rows] : 0.0F;
    }
    multiply_add<float>({.rows = count,
                         .columns = rows,
                         .depth = columns,
                         .a = x,
                         .a_row = columns,
                         .a_column = 1,
                         .b = turned,
                         .b_row = rows,
                         .c = y,
                         .c_row = rows});
    return {};
  }
};

struct Experts {
  Elements<float> x;
  Projection first, second, third;
};

Status run_expert(const Gate& gate, const Sizes& s, const Experts& e, std::int64_t expert,
                  const std::vector<Route>& routes, float* y) {
  const auto count = static_cast<std::int64_t>(routes.size());
  if (count == 0) return {};
  SDX_ASSIGN(Tensor memory, make_scratch<float>(count * (2 * s.hidden + s.first + 2 * s.inner)));
  float* x = memory.mutable_values<float>().data();
  float* out = x + count * s.hidden;
  float* first = out + count * s.hidden;
  float* third = first + count * s.first;
  float* inner = third + count * s.inner;
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(e.x.data() + routes[static_cast<std::size_t>(i)].token * s.hidden, s.hidden,
                x + i * s.hidden);
  }
  SDX_TRY(e.first.apply(expert, x, count, first));
  if (e.third.is_there()) SDX_TRY(e.third.apply(expert, x, count, third));
  apply_gate(gate, s, count, first, e.third.is_there() ? third : nullptr, inner);
  SDX_TRY(e.second.apply(expert, inner, count, out));
  for (std::int64_t i = 0; i < count; ++i) {
    const Route& route = routes[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j < s.hidden; ++j) {
      y[route.token * s.hidden + j] += route.share * out[i * s.hidden + j];
    }
  }
  return {};
}

Status evaluate_experts(EvalContext& context, const Slots& slots) {
  SDX_ASSIGN(const Gate gate, read_gate(context.attributes()));
  const Tensor& x = context.tensor(kX);
  Sizes s;
  s.tokens = x.shape().product(0, x.rank() - 1);
  s.hidden = x.dim(x.rank() - 1);
  s.experts = context.tensor(kRouter).dim(1);
  s.first = context.tensor(slots.first.weight).dim(1);
  s.inner = gate.fusion != 0 ? s.first / 2 : s.first;
  Experts experts;
  SDX_ASSIGN(experts.x, Elements<float>::of(x));
  SDX_ASSIGN(experts.first,
             Projection::read(context, slots.first, "fc1_expert_weight_bits", s.first, s.hidden));
  SDX_ASSIGN(experts.second,
             Projection::read(context, slots.second, "fc2_expert_weight_bits", s.hidden, s.inner));
  SDX_ASSIGN(experts.third,
             Projection::read(context, slots.third, "fc3_expert_weight_bits", s.inner, s.hidden));
  SDX_ASSIGN(const auto logits, Elements<float>::of(context.tensor(kRouter)));
  SDX_ASSIGN(const auto shares,
             Elements<float>::of(is_quantized(slots) ? context.tensor_or_null(kShares) : nullptr));
  SDX_ASSIGN(auto y, Staged<float>::open(context, 0));
  if (!y || y.element_count() == 0) return {};
  std::fill_n(y.data(), y.element_count(), 0.0F);
  // Without shares of their own, quantized experts share by softmax over those that were chosen.
  const bool normalizes = context.attributes().get_int("normalize_routing_weights", 0) != 0 ||
                          (is_quantized(slots) && !shares);
  const auto routes =
      route_tokens(context.attributes(), s, logits.data(), shares.data(), normalizes);
  for (std::int64_t e = 0; e < s.experts; ++e) {
    SDX_TRY(run_expert(gate, s, experts, e, routes[static_cast<std::size_t>(e)], y.data()));
  }
  y.commit();
  return {};
}

Status evaluate_moe(EvalContext& context) { return evaluate_experts(context, kFloatSlots); }
Status evaluate_qmoe(EvalContext& context) { return evaluate_experts(context, kCodeSlots); }

constexpr DTypeSet kFloat = set_of(DType::Float32, DType::Float16, DType::BFloat16);

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "MoE",
     1,
     {"TTTtTttt>T", kFloat},
     "activation_alpha:f activation_beta:f activation_type:s k:i normalize_routing_weights:i "
     "swiglu_fusion:i swiglu_limit:f swiglu_limit_after_activation:i use_sparse_mixer:i",
     infer_moe,
     evaluate_moe},
    {"com.microsoft",
     "QMoE",
     1,
     {"TTUvtUvtuvtuuutffffvv>T", kFloat, set_of(DType::UInt8), kFloat},
     "accuracy_level:i activation_alpha:f activation_beta:f activation_type:s block_size:i "
     "expert_weight_bits:i fc1_expert_weight_bits:i fc2_expert_weight_bits:i "
     "fc3_expert_weight_bits:i k:i normalize_routing_weights:i quant_type:s swiglu_fusion:i "
     "swiglu_limit:f swiglu_limit_after_activation:i use_sparse_mixer:i weights_prepacked:i",
     infer_qmoe,
     evaluate_qmoe},
};

}  // namespace

std::span<const OpSchema> moe_schemas() { return kRows; }

}  // namespace sardonyx
