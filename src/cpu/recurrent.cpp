#include "ops/recurrent.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/packed_weights.h"
#include "cpu/registry.h"
#include "kernels/gemm.h"
#include "kernels/int8_gemm.h"
#include "kernels/quantize.h"

namespace sardonyx {

namespace {

const float* floats_or_null(const KernelContext& context, std::size_t i) {
  return context.has_input(i) ? context.input(i).values<float>().data() : nullptr;
}

float* output_or_null(const KernelContext& context, std::size_t i) {
  return context.has_output(i) ? context.output(i).mutable_values<float>().data() : nullptr;
}

Result<std::vector<std::int64_t>> lengths_of(const KernelContext& context,
                                             const RecurrentPlan& plan) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(plan.batch), plan.steps);
  if (!context.has_input(4)) return lengths;
  const auto given = context.input(4).values<std::int32_t>();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = given[i];
    if (lengths[i] < 0 || lengths[i] > plan.steps) {
      return failure(Code::Runtime, "sequence_lens[{}] is {}, expected 0 to {}", i, lengths[i],
                     plan.steps);
    }
  }
  return lengths;
}

RecurrentInputs<float> inputs_of(const KernelContext& context, std::vector<std::int64_t> lengths) {
  return {.x = floats_or_null(context, 0),
          .bias = floats_or_null(context, 3),
          .initial_h = floats_or_null(context, 5),
          .initial_c = floats_or_null(context, 6),
          .peephole = floats_or_null(context, 7),
          .lengths = std::move(lengths)};
}

/// Weights [gates, depth] as the model has them, read in place by the products.
class FloatWeights final : public RecurrentWeights<float> {
 public:
  FloatWeights(const RecurrentPlan& plan, const float* input, const float* state)
      : plan_(plan), input_(input), state_(state) {}

  Status multiply_input(const float* x, std::int64_t rows, float* out) override {
    multiply(x, rows, plan_.input, input_, plan_.gates(), out);
    return {};
  }
  Status multiply_state(const float* h, std::int64_t rows, std::int64_t begin, std::int64_t end,
                        float* out) override {
    multiply(h, rows, plan_.hidden, state_ + begin * plan_.hidden, end - begin, out);
    return {};
  }

 private:
  void multiply(const float* x, std::int64_t rows, std::int64_t depth, const float* weights,
                std::int64_t columns, float* out) {
    kernels::GemmArgs args;
    args.m = rows;
    args.n = columns;
    args.k = depth;
    args.a = x;
    args.a_stride = depth;
    args.b = weights;
    args.b_stride = depth;
    args.b_transposed = true;
    args.c = out;
    args.c_stride = columns;
    scratch_.resize(std::max(scratch_.size(), kernels::gemm_scratch_bytes(args) / 64 + 1));
    kernels::gemm(args, scratch_.data());
  }

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  const RecurrentPlan& plan_;
  const float* input_;
  const float* state_;
  std::vector<Line> scratch_;
};

/// RNN, GRU and LSTM in float32.
class RecurrentKernel final : public NodeKernel {
 public:
  RecurrentKernel(const KernelRequest& request, RecurrentPlan plan)
      : NodeKernel(request), plan_(std::move(plan)) {}

  Status run(KernelContext& context) const override {
    RecurrentPlan plan = plan_;
    const Shape& x = context.input(0).shape();
    plan.steps = x[plan.is_batch_first ? 1 : 0];
    plan.batch = x[plan.is_batch_first ? 0 : 1];
    plan.input = x[2];
    plan.hidden = context.input(2).dim(2);
    SDX_ASSIGN(auto lengths, lengths_of(context, plan));
    const RecurrentInputs<float> inputs = inputs_of(context, std::move(lengths));
    const RecurrentOutputs<float> outputs{output_or_null(context, 0), output_or_null(context, 1),
                                          output_or_null(context, 2)};
    const float* w = floats_or_null(context, 1);
    const float* r = floats_or_null(context, 2);
    std::array<Status, 2> statuses;
    context.pool().parallel_for(plan.directions, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t d = begin; d < end; ++d) {
        FloatWeights weights(plan, w + d * plan.gates() * plan.input,
                             r + d * plan.gates() * plan.hidden);
        statuses[static_cast<std::size_t>(d)] =
            run_direction<float>(plan, d, weights, inputs, outputs);
      }
    });
    for (Status& status : statuses) SDX_TRY(std::move(status));
    return {};
  }

 private:
  RecurrentPlan plan_;
};

template <RecurrentKind kKind>
Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  if (request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  auto plan = recurrent_plan(kKind, request.attributes());
  // The evaluator refuses it with the same words, if it ever runs.
  if (!plan.ok()) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(
      std::make_unique<RecurrentKernel>(request, std::move(plan).value()));
}

/// Inputs of DynamicQuantizeLSTM after those of LSTM.
enum LstmInput : std::size_t { kWScale = 8, kWZeroPoint, kRScale, kRZeroPoint };

/// One 8-bit weight [depth, gates] of one direction.
struct QuantizedWeight {
  const std::byte* values = nullptr;
  const std::byte* packed = nullptr;
  bool is_signed = true;
  std::int64_t depth = 0;
  std::vector<float> scales;
  std::vector<std::int32_t> zeros;
};

class QuantizedWeights final : public RecurrentWeights<float> {
 public:
  QuantizedWeights(QuantizedWeight input, QuantizedWeight state, std::int64_t gates)
      : input_(std::move(input)), state_(std::move(state)), gates_(gates) {}

  Status multiply_input(const float* x, std::int64_t rows, float* out) override {
    multiply(x, rows, input_, 0, gates_, out);
    return {};
  }
  Status multiply_state(const float* h, std::int64_t rows, std::int64_t begin, std::int64_t end,
                        float* out) override {
    multiply(h, rows, state_, begin, end, out);
    return {};
  }

 private:
  /// x is quantised as a whole, as the operator says.
  void multiply(const float* x, std::int64_t rows, const QuantizedWeight& weight,
                std::int64_t begin, std::int64_t end, float* out) {
    const auto& table = kernels::quantize_table();
    const std::int64_t count = rows * weight.depth;
    const kernels::Quantization q = kernels::dynamic_quantization(table.range_with_zero(x, count));
    quantized_.resize(static_cast<std::size_t>(count));
    table.quantize_u8(x, count, q, quantized_.data());
    scales_.resize(static_cast<std::size_t>(gates_));
    for (std::size_t i = 0; i < scales_.size(); ++i) scales_[i] = q.scale * weight.scales[i];
    kernels::Int8MatrixArgs args;
    args.m = rows;
    args.n = gates_;
    args.k = weight.depth;
    args.a = quantized_.data();
    args.a_stride = weight.depth;
    args.b = weight.values;
    args.b_stride = gates_;
    args.b_signed = weight.is_signed;
    args.packed_b = weight.packed;
    args.c = out;
    args.c_stride = end - begin;
    args.epilogue.output = kernels::Int8Output::F32;
    args.epilogue.a_zero = q.zero;
    args.epilogue.scale = scales_.data();
    args.epilogue.scale_per_column = true;
    const bool any_zero = std::any_of(weight.zeros.begin(), weight.zeros.end(),
                                      [](std::int32_t zero) { return zero != 0; });
    if (any_zero) args.epilogue.b_zeros = weight.zeros.data();
    // A part of the columns may begin inside a panel: then the source is read.
    const bool is_whole = begin == 0 && end == gates_;
    if (!is_whole) {
      args.packed_b = nullptr;
      args.b = weight.values + begin;
      args.n = end - begin;
      args.epilogue.scale = scales_.data() + begin;
      if (any_zero) args.epilogue.b_zeros = weight.zeros.data() + begin;
    }
    scratch_.resize(std::max(scratch_.size(), kernels::int8_gemm_scratch_bytes(args) / 64 + 1));
    kernels::int8_gemm(args, scratch_.data());
  }

  struct alignas(64) Line {
    std::array<std::byte, 64> bytes;
  };
  QuantizedWeight input_;
  QuantizedWeight state_;
  std::int64_t gates_;
  std::vector<std::uint8_t> quantized_;
  std::vector<float> scales_;
  std::vector<Line> scratch_;
};

class DynamicQuantizeLstmKernel final : public NodeKernel {
 public:
  DynamicQuantizeLstmKernel(const KernelRequest& request, RecurrentPlan plan)
      : NodeKernel(request), plan_(std::move(plan)) {}

  Status pack(const KernelRequest& request) {
    SDX_TRY(pack_one(request, 1, packed_input_));
    return pack_one(request, 2, packed_state_);
  }

  Status run(KernelContext& context) const override {
    RecurrentPlan plan = plan_;
    const Shape& x = context.input(0).shape();
    plan.steps = x[0];
    plan.batch = x[1];
    plan.input = x[2];
    plan.hidden = context.input(2).dim(1);
    SDX_ASSIGN(auto lengths, lengths_of(context, plan));
    const RecurrentInputs<float> inputs = inputs_of(context, std::move(lengths));
    const RecurrentOutputs<float> outputs{output_or_null(context, 0), output_or_null(context, 1),
                                          output_or_null(context, 2)};
    std::array<Status, 2> statuses;
    context.pool().parallel_for(plan.directions, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t d = begin; d < end; ++d) {
        QuantizedWeights weights(
            weight_of(context, 1, kWScale, kWZeroPoint, packed_input_.get(), d, plan),
            weight_of(context, 2, kRScale, kRZeroPoint, packed_state_.get(), d, plan),
            plan.gates());
        statuses[static_cast<std::size_t>(d)] =
            run_direction<float>(plan, d, weights, inputs, outputs);
      }
    });
    for (Status& status : statuses) SDX_TRY(std::move(status));
    return {};
  }

 private:
  static std::size_t packed_bytes(std::int64_t gates, std::int64_t depth) {
    return static_cast<std::size_t>(
        kernels::int8_packed_bytes(kernels::int8_gemm_table(), gates, 1, depth));
  }

  static Status pack_one(const KernelRequest& request, std::size_t i,
                         std::shared_ptr<const PackedBlob>& packed) {
    const Tensor* weight = request.constant(i);
    if (weight == nullptr || weight->element_count() == 0) return {};
    const auto& table = kernels::int8_gemm_table();
    const std::int64_t depth = weight->dim(1);
    const std::int64_t gates = weight->dim(2);
    const std::size_t each = packed_bytes(gates, depth);
    const std::size_t bytes = each * static_cast<std::size_t>(weight->dim(0));
    if (!request.weights().may_pack(bytes)) return {};
    const std::string layout =
        fmt::format("packed:int8lstm:{}:{}x{}", isa_name(table.isa), depth, gates);
    SDX_ASSIGN(packed, request.weights().pack(*weight, layout, bytes, [&](std::byte* target) {
      kernels::Int8Source source;
      source.b_signed = weight->dtype() == DType::Int8;
      source.columns = gates;
      source.depth = depth;
      source.column_stride = 1;
      source.depth_stride = gates;
      for (std::int64_t d = 0; d < weight->dim(0); ++d) {
        source.b = weight->data() + d * depth * gates;
        kernels::int8_pack(table, source, 0, (gates + table.tile_columns - 1) / table.tile_columns,
                           target + each * static_cast<std::size_t>(d));
      }
    }));
    return {};
  }

  static QuantizedWeight weight_of(const KernelContext& context, std::size_t input,
                                   std::size_t scale_input, std::size_t zero_input,
                                   const PackedBlob* packed, std::int64_t direction,
                                   const RecurrentPlan& plan) {
    const Tensor& weight = context.input(input);
    const Tensor& scale = context.input(scale_input);
    const Tensor& zero = context.input(zero_input);
    const std::int64_t gates = plan.gates();
    QuantizedWeight result;
    result.depth = weight.dim(1);
    result.is_signed = weight.dtype() == DType::Int8;
    result.values = weight.data() + direction * result.depth * gates;
    if (packed != nullptr) {
      result.packed = packed->bytes.get() +
                      packed_bytes(gates, result.depth) * static_cast<std::size_t>(direction);
    }
    const auto at = [&](const Tensor& tensor, std::int64_t gate) {
      return static_cast<std::size_t>(tensor.rank() == 1 ? direction : direction * gates + gate);
    };
    for (std::int64_t gate = 0; gate < gates; ++gate) {
      result.scales.push_back(scale.values<float>()[at(scale, gate)]);
      const auto bits = zero.values<std::uint8_t>()[at(zero, gate)];
      result.zeros.push_back(zero.dtype() == DType::Int8 ? static_cast<std::int8_t>(bits) : bits);
    }
    return result;
  }

  RecurrentPlan plan_;
  std::shared_ptr<const PackedBlob> packed_input_;
  std::shared_ptr<const PackedBlob> packed_state_;
};

Result<std::unique_ptr<Kernel>> create_dynamic(const KernelRequest& request) {
  auto plan = recurrent_plan(RecurrentKind::Lstm, request.attributes());
  if (!plan.ok() || request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  auto kernel = std::make_unique<DynamicQuantizeLstmKernel>(request, std::move(plan).value());
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

constexpr KernelRow kRows[] = {
    {"", "RNN", 7, create<RecurrentKind::Rnn>},
    {"", "GRU", 7, create<RecurrentKind::Gru>},
    {"", "LSTM", 7, create<RecurrentKind::Lstm>},
    {"com.microsoft", "DynamicQuantizeLSTM", 1, create_dynamic},
};

}  // namespace

std::span<const KernelRow> recurrent_kernels() { return kRows; }

}  // namespace sardonyx
