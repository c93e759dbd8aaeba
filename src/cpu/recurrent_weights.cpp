#include "cpu/recurrent_weights.h"

#include <algorithm>

#include "base/text.h"
#include "cpu/packed_weights.h"

namespace sardonyx {

namespace {

std::int64_t float_panel_count(std::int64_t columns, std::int64_t depth) {
  const std::int64_t floats = kernels::igemm_packed_floats(kernels::igemm_table(), columns, depth);
  return (floats + 15) / 16 * 16;
}

/// Columns that are packed on their own: a GRU may need its gates before its candidate.
std::int64_t first_part(const RecurrentPlan& plan, std::int64_t gates) {
  const bool is_split = plan.kind == RecurrentKind::Gru && !plan.resets_after;
  return is_split ? gates / 3 * 2 : gates;
}

/// Floats of one direction of a packed weight.
std::int64_t float_packed_floats(std::int64_t first, std::int64_t gates, std::int64_t depth) {
  return float_panel_count(first, depth) +
         (first == gates ? 0 : float_panel_count(gates - first, depth));
}

void pack_columns(const float* values, std::int64_t columns, std::int64_t depth, float* target) {
  kernels::GemmArgs args;
  args.n = columns;
  args.k = depth;
  args.b = values;
  args.b_stride = depth;
  args.b_transposed = true;
  const auto& table = kernels::igemm_table();
  kernels::igemm_pack(table, kernels::gemm_pack_source(args), 0,
                      kernels::igemm_panels(table, columns), target);
}

Status pack_float(const KernelRequest& request, std::size_t index, bool is_split,
                  std::shared_ptr<const PackedBlob>& packed) {
  const Tensor* weight = request.constant(index);
  if (weight == nullptr || weight->element_count() == 0) return {};
  const std::int64_t gates = weight->dim(1);
  const std::int64_t depth = weight->dim(2);
  const std::int64_t first = is_split ? gates / 3 * 2 : gates;
  const std::int64_t each = float_packed_floats(first, gates, depth);
  const auto bytes = static_cast<std::size_t>(each * weight->dim(0)) * sizeof(float);
  if (!request.weights().may_pack_product(bytes)) return {};
  const std::string layout = fmt::format("packed:rnn:{}:{}x{}:{}", isa_name(active_isa()), depth,
                                         gates, is_split ? "split" : "whole");
  const auto fill = [=, directions = weight->dim(0),
                     source = weight->values<float>().data()](std::byte* target) {
    std::fill_n(target, bytes, std::byte{});
    for (std::int64_t d = 0; d < directions; ++d) {
      const float* values = source + d * gates * depth;
      float* to = reinterpret_cast<float*>(target) + d * each;
      pack_columns(values, first, depth, to);
      if (first == gates) continue;
      pack_columns(values + first * depth, gates - first, depth,
                   to + float_panel_count(first, depth));
    }
  };
  packed = request.weights().pack_product(*weight, layout, bytes, fill);
  return {};
}

std::size_t int8_packed_size(std::int64_t gates, std::int64_t depth) {
  return static_cast<std::size_t>(
      kernels::int8_packed_bytes(kernels::int8_gemm_table(), gates, depth));
}

Status pack_int8(const KernelRequest& request, std::size_t index,
                 std::shared_ptr<const PackedBlob>& packed) {
  const Tensor* weight = request.constant(index);
  if (weight == nullptr || weight->element_count() == 0) return {};
  const auto& table = kernels::int8_gemm_table();
  const std::int64_t depth = weight->dim(1);
  const std::int64_t gates = weight->dim(2);
  const std::size_t each = int8_packed_size(gates, depth);
  const std::size_t bytes = each * static_cast<std::size_t>(weight->dim(0));
  if (!request.weights().may_pack(bytes)) return {};
  const std::string layout =
      fmt::format("packed:int8lstm:{}:{}x{}", isa_name(table.isa), depth, gates);
  kernels::Int8Source source;
  source.b_signed = weight->dtype() == DType::Int8;
  source.columns = gates;
  source.depth = depth;
  source.column_stride = 1;
  source.depth_stride = gates;
  const auto fill = [&table, source, each, directions = weight->dim(0),
                     first = weight->data()](std::byte* target) {
    for (std::int64_t d = 0; d < directions; ++d) {
      kernels::Int8Source one = source;
      one.b = first + d * source.depth * source.columns;
      kernels::int8_pack(table, one, 0, (one.columns + table.tile_columns - 1) / table.tile_columns,
                         target + each * static_cast<std::size_t>(d));
    }
  };
  packed = request.weights().pack(*weight, layout, bytes, fill);
  return {};
}

}  // namespace

Result<PackedRecurrence> pack_float_recurrence(const KernelRequest& request,
                                               const RecurrentPlan& plan) {
  PackedRecurrence packed;
  SDX_TRY(pack_float(request, 1, false, packed.input));
  SDX_TRY(pack_float(request, 2, first_part(plan, 3) != 3, packed.state));
  return packed;
}

Result<PackedRecurrence> pack_int8_recurrence(const KernelRequest& request) {
  PackedRecurrence packed;
  SDX_TRY(pack_int8(request, 1, packed.input));
  SDX_TRY(pack_int8(request, 2, packed.state));
  return packed;
}

FloatWeights::FloatWeights(const RecurrentPlan& plan, const PackedRecurrence& packed,
                           std::int64_t direction, const float* x, const float* input,
                           const float* state, ScratchCursor& scratch)
    : plan_(plan), x_(x) {
  const std::int64_t gates = plan.gates();
  input_ = {input, nullptr, plan.input};
  state_ = {state, nullptr, plan.hidden};
  if (input != nullptr) input_.values += direction * gates * plan.input;
  if (state != nullptr) state_.values += direction * gates * plan.hidden;
  if (packed.input != nullptr) {
    input_.packed = reinterpret_cast<const float*>(packed.input->bytes.get()) +
                    direction * float_packed_floats(gates, gates, plan.input);
  }
  if (packed.state != nullptr) {
    state_.packed = reinterpret_cast<const float*>(packed.state->bytes.get()) +
                    direction * float_packed_floats(first_part(plan, gates), gates, plan.hidden);
  }
  const auto rows = checked_multiply(plan.steps, plan.batch);
  const std::size_t bytes =
      std::max(kernels::gemm_scratch_bytes(arguments(input_, rows ? *rows : 0, 0, gates)),
               kernels::gemm_scratch_bytes(arguments(state_, plan.batch, 0, gates)));
  scratch_ = scratch.take<std::byte>(static_cast<std::int64_t>(bytes));
}

kernels::GemmArgs FloatWeights::arguments(const Matrix& matrix, std::int64_t rows,
                                          std::int64_t begin, std::int64_t end) const {
  kernels::GemmArgs args;
  args.m = rows;
  args.n = end - begin;
  args.k = matrix.depth;
  args.a_stride = matrix.depth;
  if (matrix.values != nullptr) args.b = matrix.values + begin * matrix.depth;
  args.b_stride = matrix.depth;
  args.b_transposed = true;
  args.packed_b = matrix.packed;
  if (begin != 0 && matrix.packed != nullptr) {
    args.packed_b += float_panel_count(begin, matrix.depth);
  }
  args.c_stride = end - begin;
  return args;
}

void FloatWeights::multiply_input(std::int64_t first, std::int64_t rows, float* out) {
  kernels::GemmArgs args = arguments(input_, rows, 0, plan_.gates());
  args.a = x_ + first * plan_.input;
  args.c = out;
  kernels::gemm(args, scratch_);
}

void FloatWeights::multiply_state(const float* h, std::int64_t begin, std::int64_t end,
                                  float* out) {
  kernels::GemmArgs args = arguments(state_, plan_.batch, begin, end);
  args.a = h;
  args.c = out;
  kernels::gemm(args, scratch_);
}

Int8Weights::Int8Weights(const RecurrentPlan& plan, const QuantizedInput& x,
                         const Int8Weight& input, const Int8Weight& state, ScratchCursor& scratch)
    : plan_(plan),
      x_(x),
      input_(input),
      state_(state),
      input_buffers_(buffers_for(scratch)),
      state_buffers_(buffers_for(scratch)) {
  const auto count = checked_multiply(plan.batch, plan.hidden);
  quantized_state_ = scratch.take<std::uint8_t>(count ? *count : -1);
  const auto rows = checked_multiply(plan.steps, plan.batch);
  const std::size_t bytes = std::max(
      kernels::int8_gemm_scratch_bytes(arguments(input_, input_buffers_, rows ? *rows : 0)),
      kernels::int8_gemm_scratch_bytes(arguments(state_, state_buffers_, plan.batch)));
  scratch_ = scratch.take<std::byte>(static_cast<std::int64_t>(bytes));
}

Int8Weights::Buffers Int8Weights::buffers_for(ScratchCursor& scratch) const {
  return {scratch.take<float>(plan_.gates()), scratch.take<std::int32_t>(plan_.gates()), false};
}

void Int8Weights::begin() {
  set_zeros(input_, input_buffers_);
  set_zeros(state_, state_buffers_);
  set_scales(input_, input_buffers_, x_.quantization.scale);
}

void Int8Weights::set_zeros(const Int8Weight& weight, Buffers& buffers) const {
  buffers.has_zeros = false;
  for (std::int64_t gate = 0; gate < plan_.gates(); ++gate) {
    const std::uint8_t bits = weight.zeros[weight.zero_per_gate ? gate : 0];
    const std::int32_t zero = weight.is_signed ? static_cast<std::int8_t>(bits) : bits;
    buffers.zeros[gate] = zero;
    buffers.has_zeros = buffers.has_zeros || zero != 0;
    if (!weight.zero_per_gate && zero == 0) return;
  }
}

void Int8Weights::set_scales(const Int8Weight& weight, const Buffers& buffers, float scale) const {
  const std::int64_t gates = plan_.gates();
  const std::int64_t count = weight.scale_per_gate ? gates : std::min<std::int64_t>(1, gates);
  for (std::int64_t i = 0; i < count; ++i) buffers.scales[i] = scale * weight.scales[i];
}

kernels::Int8MatrixArgs Int8Weights::arguments(const Int8Weight& weight, const Buffers& buffers,
                                               std::int64_t rows) const {
  kernels::Int8MatrixArgs args;
  args.m = rows;
  args.n = plan_.gates();
  args.k = weight.depth;
  args.a_stride = weight.depth;
  args.b = weight.values;
  args.b_stride = args.n;
  args.b_signed = weight.is_signed;
  args.packed_b = weight.packed;
  args.c_stride = args.n;
  args.epilogue.output = kernels::Int8Output::F32;
  args.epilogue.scale = buffers.scales;
  args.epilogue.scale_per_column = weight.scale_per_gate;
  if (buffers.has_zeros) args.epilogue.b_zeros = buffers.zeros;
  return args;
}

void Int8Weights::multiply_input(std::int64_t first, std::int64_t rows, float* out) {
  kernels::Int8MatrixArgs args = arguments(input_, input_buffers_, rows);
  args.a = x_.values + first * input_.depth;
  args.epilogue.a_zero = x_.quantization.zero;
  args.c = out;
  kernels::int8_gemm(args, scratch_);
}

void Int8Weights::multiply_state(const float* h, std::int64_t, std::int64_t, float* out) {
  const auto& table = kernels::quantize_table();
  const std::int64_t count = plan_.batch * plan_.hidden;
  const kernels::Quantization q = kernels::dynamic_quantization(table.range_with_zero(h, count));
  table.quantize_u8(h, count, q, quantized_state_);
  set_scales(state_, state_buffers_, q.scale);
  kernels::Int8MatrixArgs args = arguments(state_, state_buffers_, plan_.batch);
  args.a = quantized_state_;
  args.epilogue.a_zero = q.zero;
  args.c = out;
  kernels::int8_gemm(args, scratch_);
}

Int8Weight int8_weight(const KernelContext& context, std::size_t index, std::size_t scale_index,
                       const PackedBlob* packed, std::int64_t direction) {
  const Tensor& weight = context.input(index);
  const Tensor& scale = context.input(scale_index);
  Int8Weight result;
  result.depth = weight.dim(1);
  const std::int64_t gates = weight.dim(2);
  result.is_signed = weight.dtype() == DType::Int8;
  // A packed weight may have no elements of its own.
  if (packed == nullptr) {
    result.values = weight.data() + direction * result.depth * gates;
  } else {
    result.packed = packed->bytes.get() +
                    int8_packed_size(gates, result.depth) * static_cast<std::size_t>(direction);
  }
  const auto begin_of = [&](const Tensor& tensor) {
    return tensor.rank() == 1 ? direction : direction * gates;
  };
  const Tensor& zero = context.input(scale_index + 1);
  result.scale_per_gate = scale.rank() != 1;
  result.scales = scale.values<float>().data() + begin_of(scale);
  result.zero_per_gate = zero.rank() != 1;
  result.zeros = zero.values<std::uint8_t>().data() + begin_of(zero);
  return result;
}

}  // namespace sardonyx
