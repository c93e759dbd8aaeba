#include "ops/recurrent.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cpu/node_kernel.h"
#include "cpu/recurrent_direction.h"
#include "cpu/recurrent_weights.h"
#include "cpu/registry.h"

namespace sardonyx {

namespace {

const float* floats_or_null(const KernelContext& context, std::size_t i) {
  return context.has_input(i) ? context.input(i).values<float>().data() : nullptr;
}

float* output_or_null(const KernelContext& context, std::size_t i) {
  return context.has_output(i) ? context.output(i).mutable_values<float>().data() : nullptr;
}

Status check_lengths(const KernelContext& context, const RecurrentPlan& plan) {
  if (!context.has_input(4)) return {};
  const auto lengths = context.input(4).values<std::int32_t>();
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] >= 0 && lengths[i] <= plan.steps) continue;
    return failure(Code::Runtime, "sequence_lens[{}] is {}, expected 0 to {}", i, lengths[i],
                   plan.steps);
  }
  return {};
}

RecurrentOperands operands_of(const KernelContext& context) {
  return {
      .bias = floats_or_null(context, 3),
      .lengths = context.has_input(4) ? context.input(4).values<std::int32_t>().data() : nullptr,
      .initial_h = floats_or_null(context, 5),
      .initial_c = floats_or_null(context, 6),
      .peephole = floats_or_null(context, 7),
      .y = output_or_null(context, 0),
      .y_h = output_or_null(context, 1),
      .y_c = output_or_null(context, 2)};
}

/// The plan with the sizes of these operands; `depth_axis` is where the recurrence weight has the
/// number of states.
RecurrentPlan sized(const RecurrentPlan& plan, const Shape& x, const Shape& state, int depth_axis) {
  RecurrentPlan result = plan;
  result.steps = x[plan.is_batch_first ? 1 : 0];
  result.batch = x[plan.is_batch_first ? 0 : 1];
  result.input = x[2];
  result.hidden = state[depth_axis];
  return result;
}

/// One direction with its weights and its part of the scratch memory.
template <typename Weights>
struct DirectionTask {
  Weights weights;
  RecurrentDirection direction;
};

/// Multiplies X by the input weights, in parts of its rows where that is possible, then runs the
/// directions beside each other.
template <typename Weights>
void run_tasks(ThreadPool& pool, const RecurrentPlan& plan,
               std::span<DirectionTask<Weights>> tasks) {
  constexpr std::int64_t kRows = 96;
  const auto count = static_cast<std::int64_t>(tasks.size());
  const std::int64_t rows = plan.steps * plan.batch;
  const std::int64_t grain =
      tasks[0].weights.splits_input() ? kRows : std::max<std::int64_t>(rows, 1);
  const std::int64_t parts = (rows + grain - 1) / grain;
  pool.parallel_for(count * parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      auto& task = tasks[static_cast<std::size_t>(i / parts)];
      const std::int64_t row = i % parts * grain;
      task.weights.multiply_input(row, std::min(grain, rows - row),
                                  task.direction.projected() + row * plan.gates());
    }
  });
  pool.parallel_for(count, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t d = begin; d < end; ++d) {
      auto& task = tasks[static_cast<std::size_t>(d)];
      task.direction.run(task.weights);
    }
  });
}

/// GRU and LSTM in float32, whose functions kernels have.
class RecurrentKernel final : public NodeKernel {
 public:
  RecurrentKernel(const KernelRequest& request, RecurrentPlan plan,
                  std::vector<RecurrentFunctions> functions)
      : NodeKernel(request), plan_(std::move(plan)), functions_(std::move(functions)) {}

  Status pack(const KernelRequest& request) {
    SDX_ASSIGN(packed_, pack_float_recurrence(request, plan_));
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const RecurrentPlan plan = sized(plan_, *types[0]->shape, *types[2]->shape, 2);
    ScratchCursor cursor;
    for (std::int64_t d = 0; d < plan.directions; ++d) {
      static_cast<void>(task(plan, d, {}, nullptr, nullptr, nullptr, cursor));
    }
    return cursor.used_bytes();
  }

  bool reads(std::size_t input) const override {
    return !(input == 1 && packed_.input != nullptr) && !(input == 2 && packed_.state != nullptr);
  }

  Status run(KernelContext& context) const override {
    const RecurrentPlan plan = sized(plan_, context.input(0).shape(), context.input(2).shape(), 2);
    SDX_TRY(check_lengths(context, plan));
    const RecurrentOperands operands = operands_of(context);
    const float* x = floats_or_null(context, 0);
    const float* w = floats_or_null(context, 1);
    const float* r = floats_or_null(context, 2);
    ScratchCursor cursor(context.scratch);
    Task first = task(plan, 0, operands, x, w, r, cursor);
    if (plan.directions == 1) {
      run_tasks<FloatWeights>(context.pool(), plan, {&first, 1});
      return {};
    }
    std::array<Task, 2> both = {std::move(first), task(plan, 1, operands, x, w, r, cursor)};
    run_tasks<FloatWeights>(context.pool(), plan, both);
    return {};
  }

 private:
  using Task = DirectionTask<FloatWeights>;

  Task task(const RecurrentPlan& plan, std::int64_t d, const RecurrentOperands& operands,
            const float* x, const float* w, const float* r, ScratchCursor& cursor) const {
    return {FloatWeights(plan, packed_, d, x, w, r, cursor),
            RecurrentDirection(plan, d, functions_[static_cast<std::size_t>(d)], operands, cursor)};
  }

  RecurrentPlan plan_;
  std::vector<RecurrentFunctions> functions_;
  PackedRecurrence packed_;
};

/// The evaluator's steps on matrix kernels, which read the weights as they lie: for cells and
/// functions without a kernel.
class SteppedRecurrentKernel final : public NodeKernel {
 public:
  SteppedRecurrentKernel(const KernelRequest& request, RecurrentPlan plan)
      : NodeKernel(request), plan_(std::move(plan)) {}

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const RecurrentPlan plan = sized(plan_, *types[0]->shape, *types[2]->shape, 2);
    ScratchCursor cursor;
    for (std::int64_t d = 0; d < plan.directions; ++d) {
      static_cast<void>(FloatWeights(plan, {}, d, nullptr, nullptr, nullptr, cursor));
    }
    return cursor.used_bytes();
  }

  Status run(KernelContext& context) const override {
    const RecurrentPlan plan = sized(plan_, context.input(0).shape(), context.input(2).shape(), 2);
    SDX_TRY(check_lengths(context, plan));
    const RecurrentOperands operands = operands_of(context);
    std::vector<std::int64_t> lengths(static_cast<std::size_t>(plan.batch), plan.steps);
    if (operands.lengths != nullptr) {
      std::copy_n(operands.lengths, plan.batch, lengths.begin());
    }
    const RecurrentInputs<float> inputs{floats_or_null(context, 0), operands.bias,
                                        operands.initial_h,         operands.initial_c,
                                        operands.peephole,          std::move(lengths)};
    const RecurrentOutputs<float> outputs{operands.y, operands.y_h, operands.y_c};
    ScratchCursor cursor(context.scratch);
    for (std::int64_t d = 0; d < plan.directions; ++d) {
      FloatWeights weights(plan, {}, d, inputs.x, floats_or_null(context, 1),
                           floats_or_null(context, 2), cursor);
      Adapter adapter(weights);
      SDX_TRY(run_direction<float>(plan, d, adapter, inputs, outputs));
    }
    return {};
  }

 private:
  class Adapter final : public RecurrentWeights<float> {
   public:
    explicit Adapter(DirectionWeights& weights) : weights_(weights) {}
    Status multiply_input(const float*, std::int64_t rows, float* out) override {
      weights_.multiply_input(0, rows, out);
      return {};
    }
    Status multiply_state(const float* h, std::int64_t, std::int64_t begin, std::int64_t end,
                          float* out) override {
      weights_.multiply_state(h, begin, end, out);
      return {};
    }

   private:
    DirectionWeights& weights_;
  };

  RecurrentPlan plan_;
};

template <RecurrentKind kKind>
Result<std::unique_ptr<Kernel>> create(const KernelRequest& request) {
  if (request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  auto plan = recurrent_plan(kKind, request.attributes());
  // The evaluator refuses it with the same words, if it ever runs.
  if (!plan.ok()) return std::unique_ptr<Kernel>();
  auto functions = recurrent_functions(*plan, request.attributes());
  if (functions.empty()) {
    return std::unique_ptr<Kernel>(
        std::make_unique<SteppedRecurrentKernel>(request, std::move(plan).value()));
  }
  auto kernel =
      std::make_unique<RecurrentKernel>(request, std::move(plan).value(), std::move(functions));
  SDX_TRY(kernel->pack(request));
  return std::unique_ptr<Kernel>(std::move(kernel));
}

/// Inputs of DynamicQuantizeLSTM after those of LSTM; a zero point follows each scale.
enum LstmInput : std::size_t { kWScale = 8, kRScale = 10 };

class DynamicQuantizeLstmKernel final : public NodeKernel {
 public:
  DynamicQuantizeLstmKernel(const KernelRequest& request, RecurrentPlan plan,
                            std::vector<RecurrentFunctions> functions)
      : NodeKernel(request), plan_(std::move(plan)), functions_(std::move(functions)) {}

  Status pack(const KernelRequest& request) {
    SDX_ASSIGN(packed_, pack_int8_recurrence(request));
    return {};
  }

  std::size_t scratch_bytes(std::span<const Type* const> types,
                            std::span<const Type>) const override {
    const RecurrentPlan plan = sized(plan_, *types[0]->shape, *types[2]->shape, 1);
    ScratchCursor cursor;
    static_cast<void>(cursor.take<std::uint8_t>(types[0]->shape->element_count().value_or(-1)));
    Int8Weight input;
    input.depth = plan.input;
    input.packed = packed_.input == nullptr ? nullptr : packed_.input->bytes.get();
    Int8Weight state;
    state.depth = plan.hidden;
    state.packed = packed_.state == nullptr ? nullptr : packed_.state->bytes.get();
    for (std::int64_t d = 0; d < plan.directions; ++d) {
      static_cast<void>(task(plan, d, {}, {}, input, state, cursor));
    }
    return cursor.used_bytes();
  }

  bool reads(std::size_t input) const override {
    return !(input == 1 && packed_.input != nullptr) && !(input == 2 && packed_.state != nullptr);
  }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    const RecurrentPlan plan = sized(plan_, x.shape(), context.input(2).shape(), 1);
    SDX_TRY(check_lengths(context, plan));
    const RecurrentOperands operands = operands_of(context);
    ScratchCursor cursor(context.scratch);
    const QuantizedInput quantized = quantize(x, cursor.take<std::uint8_t>(x.element_count()));
    Task first = task_of(context, plan, 0, operands, quantized, cursor);
    if (plan.directions == 1) {
      run_tasks<Int8Weights>(context.pool(), plan, {&first, 1});
      return {};
    }
    std::array<Task, 2> both = {std::move(first),
                                task_of(context, plan, 1, operands, quantized, cursor)};
    run_tasks<Int8Weights>(context.pool(), plan, both);
    return {};
  }

 private:
  using Task = DirectionTask<Int8Weights>;

  /// X is quantised as a whole, as the operator says.
  static QuantizedInput quantize(const Tensor& x, std::uint8_t* to) {
    const auto& table = kernels::quantize_table();
    const float* values = x.values<float>().data();
    const std::int64_t count = x.element_count();
    const auto q = kernels::dynamic_quantization(table.range_with_zero(values, count));
    table.quantize_u8(values, count, q, to);
    return {to, q};
  }

  Task task(const RecurrentPlan& plan, std::int64_t d, const RecurrentOperands& operands,
            const QuantizedInput& x, const Int8Weight& input, const Int8Weight& state,
            ScratchCursor& cursor) const {
    return {Int8Weights(plan, x, input, state, cursor),
            RecurrentDirection(plan, d, functions_[static_cast<std::size_t>(d)], operands, cursor)};
  }

  Task task_of(KernelContext& context, const RecurrentPlan& plan, std::int64_t d,
               const RecurrentOperands& operands, const QuantizedInput& x,
               ScratchCursor& cursor) const {
    Task made = task(plan, d, operands, x, int8_weight(context, 1, kWScale, packed_.input.get(), d),
                     int8_weight(context, 2, kRScale, packed_.state.get(), d), cursor);
    made.weights.begin();
    return made;
  }

  RecurrentPlan plan_;
  std::vector<RecurrentFunctions> functions_;
  PackedRecurrence packed_;
};

Result<std::unique_ptr<Kernel>> create_dynamic(const KernelRequest& request) {
  auto plan = recurrent_plan(RecurrentKind::Lstm, request.attributes());
  if (!plan.ok() || request.dtype(0) != DType::Float32) return std::unique_ptr<Kernel>();
  auto functions = recurrent_functions(*plan, request.attributes());
  if (functions.empty()) return std::unique_ptr<Kernel>();
  auto kernel = std::make_unique<DynamicQuantizeLstmKernel>(request, std::move(plan).value(),
                                                            std::move(functions));
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
