#include "ops/elementwise.h"

#include <algorithm>

#include "ir/element.h"

namespace sardonyx {

namespace {

constexpr std::int64_t kChunk = 512;

}  // namespace

Status evaluate_real_map(EvalContext& context, const RealMap& map, const void* state) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = x.element_count();
  if (x.dtype() == DType::Float32) {
    map.f32(state, x.values<float>().data(), y->mutable_values<float>().data(), count);
    return {};
  }
  if (x.dtype() == DType::Float64) {
    map.f64(state, x.values<double>().data(), y->mutable_values<double>().data(), count);
    return {};
  }
  std::array<float, kChunk> chunk;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t part = std::min(kChunk, count - start);
    load_reals(x.dtype(), x.data(), start, part, chunk.data());
    map.f32(state, chunk.data(), chunk.data(), part);
    store_reals(y->dtype(), y->mutable_data(), start, part, chunk.data());
  }
  return {};
}

Status evaluate_int_map(EvalContext& context, IntFn f, const void* state) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = x.element_count();
  const std::int64_t size = dtype_bits(x.dtype()) / 8;
  std::array<std::int64_t, kChunk> chunk;
  auto* between = reinterpret_cast<std::byte*>(chunk.data());
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t part = std::min(kChunk, count - start);
    convert_elements(x.dtype(), x.data() + start * size, DType::Int64, between, part);
    for (std::int64_t i = 0; i < part; ++i) {
      auto& element = chunk[static_cast<std::size_t>(i)];
      element = f(state, element);
    }
    convert_elements(DType::Int64, between, y->dtype(), y->mutable_data() + start * size, part);
  }
  return {};
}

Status test_real(EvalContext& context, bool (*test)(const void* state, double x),
                 const void* state) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t count = x.element_count();
  const auto results = y->mutable_values<bool>();
  std::array<double, kChunk> chunk;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t part = std::min(kChunk, count - start);
    load_reals(x.dtype(), x.data(), start, part, chunk.data());
    for (std::int64_t i = 0; i < part; ++i) {
      results[static_cast<std::size_t>(start + i)] =
          test(state, chunk[static_cast<std::size_t>(i)]);
    }
  }
  return {};
}

namespace {

/// Strides of an operand along the output's axes: 0 where it is repeated.
Shape broadcast_strides(const Shape& output, const Shape& operand) {
  Shape strides = Shape::filled(output.rank(), 0);
  std::int64_t stride = 1;
  for (int i = operand.rank() - 1; i >= 0; --i) {
    const int axis = output.rank() - operand.rank() + i;
    if (operand[i] != 1) strides[axis] = stride;
    stride *= operand[i];
  }
  return strides;
}

}  // namespace

BroadcastPlan plan_broadcast(const Shape& output, std::span<const Shape> operands) {
  std::array<Shape, BroadcastPlan::kOperands> strides;
  for (std::size_t k = 0; k < strides.size(); ++k) {
    strides[k] = broadcast_strides(output, k < operands.size() ? operands[k] : Shape{});
  }
  BroadcastPlan plan;
  plan.run = 1;
  // From the inside out: an axis joins the run while every operand goes on (or stays) across it.
  int axis = output.rank() - 1;
  bool is_first = true;
  for (; axis >= 0; --axis) {
    if (output[axis] == 1) continue;
    std::array<bool, BroadcastPlan::kOperands> moves{};
    bool fits = true;
    for (std::size_t k = 0; k < strides.size(); ++k) {
      moves[k] = strides[k][axis] != 0;
      if (!is_first && moves[k] != plan.moves[k]) fits = false;
    }
    if (!fits) break;
    plan.moves = moves;
    plan.run *= output[axis];
    is_first = false;
  }
  for (int i = 0; i <= axis; ++i) {
    if (output[i] == 1) continue;
    plan.outer.push_back(output[i]);
    for (std::size_t k = 0; k < strides.size(); ++k) plan.strides[k].push_back(strides[k][i]);
  }
  plan.run_count = plan.run == 0 ? 0 : plan.outer.product(0, plan.outer.rank());
  return plan;
}

namespace {

void broadcast_as(BinaryRun run, const Tensor& a, const Shape& a_shape, const Tensor& b,
                  const Shape& b_shape, Tensor& y) {
  const std::array shapes = {a_shape, b_shape};
  const BroadcastPlan plan = plan_broadcast(y.shape(), shapes);
  const std::int64_t size_in = dtype_bits(a.dtype()) / 8;
  const std::int64_t size_out = dtype_bits(y.dtype()) / 8;
  for_each_run(plan, [&](std::int64_t at_y, const auto& at) {
    run(a.data() + at[0] * size_in, b.data() + at[1] * size_in, y.mutable_data() + at_y * size_out,
        plan.run, plan.moves[0], plan.moves[1]);
  });
}

}  // namespace

void broadcast_run(BinaryRun run, const Tensor& a, const Tensor& b, Tensor& y) {
  broadcast_as(run, a, a.shape(), b, b.shape(), y);
}

Status evaluate_binary(EvalContext& context, BinaryRun run, DType compute, DType result) {
  Tensor a = context.tensor(0);
  Tensor b = context.tensor(1);
  SDX_ASSIGN(const Shape b_shape,
             legacy_operand_shape(context.attributes(), a.shape(), b.shape()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  if (a.dtype() != compute) {
    SDX_ASSIGN(a, to_dtype(a, compute));
  }
  if (b.dtype() != compute) {
    SDX_ASSIGN(b, to_dtype(b, compute));
  }
  if (y->dtype() == result) {
    broadcast_as(run, a, a.shape(), b, b_shape, *y);
    return {};
  }
  SDX_ASSIGN(Tensor wide, Tensor::allocate(result, y->shape()));
  broadcast_as(run, a, a.shape(), b, b_shape, wide);
  convert_elements(result, wide.data(), y->dtype(), y->mutable_data(), y->element_count());
  return {};
}

Result<Shape> legacy_operand_shape(const Attributes& attributes, const Shape& a, const Shape& b) {
  const auto* axis = attributes.get_if<std::int64_t>("axis");
  if (axis == nullptr || attributes.get_int("broadcast", 0) == 0) return b;
  const std::int64_t first = *axis < 0 ? *axis + a.rank() : *axis;
  if (first < 0 || first + b.rank() > a.rank()) {
    return failure(Code::InvalidModel, "axis {} puts operand {} outside of {}", *axis,
                   b.to_string(), a.to_string());
  }
  Shape shape = b;
  while (first + shape.rank() < a.rank()) shape.push_back(1);
  return shape;
}

Status infer_binary(InferContext& context) {
  const Shape* a = context.shape(0);
  const Shape* b = context.shape(1);
  if (a == nullptr || b == nullptr) return {};
  SDX_ASSIGN(const Shape b_shape, legacy_operand_shape(context.attributes(), *a, *b));
  const auto result = broadcast(*a, b_shape);
  if (!result) {
    return context.error("shapes {} of '{}' and {} of '{}' do not broadcast", a->to_string(),
                         context.input_name(0), b->to_string(), context.input_name(1));
  }
  context.set_shape(0, *result);
  return {};
}

}  // namespace sardonyx
