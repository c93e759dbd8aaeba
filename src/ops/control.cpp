#include <algorithm>
#include <limits>

#include "base/log.h"
#include "base/memory.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

const Graph* subgraph_of(const Attributes& attributes, std::string_view name) {
  const auto* graph = attributes.get_if<std::shared_ptr<Graph>>(name);
  return graph != nullptr ? graph->get() : nullptr;
}

/// What is known of a value that has either of two types.
Result<Type> either(const InferContext& context, const Type& a, const Type& b) {
  if (a.kind == Type::Kind::Unknown || b.kind == Type::Kind::Unknown) return Type{};
  if (a.kind != Type::Kind::Tensor || b.kind != Type::Kind::Tensor) {
    return a.kind == b.kind ? a : Type{};
  }
  if (a.dtype != b.dtype && a.dtype != DType::Undefined && b.dtype != DType::Undefined) {
    return context.error("the value is {} on one way and {} on the other", a.to_string(),
                         b.to_string());
  }
  Type merged = Type::tensor(a.dtype != DType::Undefined ? a.dtype : b.dtype);
  if (!a.shape || !b.shape || a.shape->rank() != b.shape->rank()) return merged;
  merged.shape = *a.shape;
  for (int i = 0; i < a.shape->rank(); ++i) {
    if ((*a.shape)[i] != (*b.shape)[i]) (*merged.shape)[i] = kUnknownDim;
  }
  return merged;
}

/// The single element of a boolean tensor.
Result<bool> read_condition(const Datum& datum, std::string_view what) {
  const Tensor* tensor = datum.tensor();
  if (tensor == nullptr || tensor->dtype() != DType::Bool || tensor->element_count() != 1) {
    return failure(Code::Runtime, "{} should be one boolean, but is {}{}", what,
                   datum.type().to_string(), tensor != nullptr ? tensor->shape().to_string() : "");
  }
  return tensor->values<std::uint8_t>()[0] != 0;
}

Status check_body_outputs(std::size_t found, std::size_t expected) {
  if (found == expected) return {};
  return failure(Code::InvalidModel, "the subgraph has {} outputs, expected {}", found, expected);
}

/// Output types of a branch; nothing when its shapes cannot fit. Such a branch is only wrong if it
/// is ever taken: exporters leave both in a model although its shapes allow one only.
Result<std::optional<std::vector<Type>>> infer_branch(const InferContext& context,
                                                      std::string_view name) {
  auto types = context.infer_subgraph(name, {});
  if (!types.ok() && types.status().code() == Code::InvalidModel) {
    log(Severity::Info, "{} of an If cannot run: {}", name, types.status().to_string());
    return std::optional<std::vector<Type>>();
  }
  if (!types.ok()) return std::move(types).take_status();
  SDX_TRY(check_body_outputs(types->size(), context.output_count()));
  return std::optional(std::move(*types));
}

Status infer_if(InferContext& context) {
  SDX_ASSIGN(auto then_types, infer_branch(context, "then_branch"));
  SDX_ASSIGN(auto else_types, infer_branch(context, "else_branch"));
  if (!then_types && !else_types) {
    return context.infer_subgraph("then_branch", {}).take_status();
  }
  for (std::size_t i = 0; i < context.output_count(); ++i) {
    if (!then_types || !else_types) {
      context.set_type(i, then_types ? (*then_types)[i] : (*else_types)[i]);
      continue;
    }
    SDX_ASSIGN(Type merged, either(context, (*then_types)[i], (*else_types)[i]));
    context.set_type(i, std::move(merged));
  }
  return {};
}

Status evaluate_if(EvalContext& context) {
  SDX_ASSIGN(const bool condition, read_condition(*context.input(0), "cond"));
  SDX_ASSIGN(auto results, context.run_subgraph(condition ? "then_branch" : "else_branch", {}));
  SDX_TRY(check_body_outputs(results.size(), context.output_count()));
  for (std::size_t i = 0; i < results.size(); ++i) context.set_output(i, std::move(results[i]));
  return {};
}

/// Some exporters declare the counter and the condition of a loop's body as [1].
Shape scalar_shape(const Graph& body, std::size_t input) {
  const auto& shape = body.value(body.inputs()[input]).type.shape;
  return shape && shape->rank() == 1 ? Shape{1} : Shape{};
}

/// The type without shapes, which may change from turn to turn.
Type without_shape(const Type& type) {
  if (type.kind == Type::Kind::Tensor) return Type::tensor(type.dtype);
  return type;
}

/// Number of values a Loop carries, after its body was checked against the node.
Result<std::size_t> carried_count(const Node& node) {
  const Graph* body = subgraph_of(node.attributes, "body");
  if (body == nullptr) return failure(Code::InvalidModel, "attribute 'body' holds no graph");
  const std::size_t carried = node.inputs.size() < 2 ? 0 : node.inputs.size() - 2;
  if (body->inputs().size() != carried + 2) {
    return failure(Code::InvalidModel, "the body has {} inputs, expected {}", body->inputs().size(),
                   carried + 2);
  }
  if (node.outputs.size() < carried) {
    return failure(Code::InvalidModel, "{} values are carried, but there are {} outputs", carried,
                   node.outputs.size());
  }
  SDX_TRY(check_body_outputs(body->outputs().size(), node.outputs.size() + 1));
  return carried;
}

Status infer_loop(InferContext& context) {
  SDX_ASSIGN(const std::size_t carried, carried_count(context.node()));
  const Graph& body = *subgraph_of(context.attributes(), "body");
  std::vector<Type> inputs{Type::tensor(DType::Int64, scalar_shape(body, 0)),
                           Type::tensor(DType::Bool)};
  for (std::size_t i = 0; i < carried; ++i) inputs.push_back(without_shape(context.type(i + 2)));
  SDX_ASSIGN(const auto results, context.infer_subgraph("body", inputs));
  SDX_TRY(check_body_outputs(results.size(), context.output_count() + 1));
  for (std::size_t i = 0; i < context.output_count(); ++i) {
    Type result = results[i + 1];
    if (i < carried) {
      SDX_ASSIGN(Type merged, either(context, context.type(i + 2), result));
      context.set_type(i, std::move(merged));
      continue;
    }
    if (result.kind == Type::Kind::Tensor && result.shape) {
      if (!Shape::fits(static_cast<std::size_t>(result.shape->rank()) + 1)) {
        return context.error("scan output {} is above rank {}", i, Shape::kMaxRank);
      }
      result.shape->insert(0, kUnknownDim);
    }
    context.set_type(i, std::move(result));
  }
  return {};
}

/// Gives output `i` the tensors one after the other along a new axis. For none, `element` tells
/// the type and, as far as it is known, the shape of one.
Status write_stacked(EvalContext& context, std::size_t i, std::span<const Tensor> parts,
                     std::int64_t axis_attribute, bool is_reversed, const Type& element) {
  if (!context.has_output(i)) return {};
  Shape shape = !parts.empty() ? parts[0].shape() : element.shape.value_or(Shape{});
  for (int axis = 0; axis < shape.rank(); ++axis) shape[axis] = std::max<Dim>(0, shape[axis]);
  if (!Shape::fits(static_cast<std::size_t>(shape.rank()) + 1)) {
    return context.error("output {} is above rank {}", i, Shape::kMaxRank);
  }
  const DType dtype = !parts.empty() ? parts[0].dtype() : element.dtype;
  if (dtype == DType::Undefined) return context.error("the type of output {} is not known", i);
  SDX_ASSIGN(const int axis, resolve_axis(axis_attribute, shape.rank() + 1));
  const Shape part_strides = shape.is_static() ? strides_of(shape) : Shape{};
  const Shape part_shape = shape;
  shape.insert(axis, static_cast<Dim>(parts.size()));
  SDX_ASSIGN(Tensor * y, context.allocate(i, dtype, shape));
  Shape strides = strides_of(shape);
  const std::int64_t step = strides[axis];
  strides.erase(axis);
  for (std::size_t k = 0; k < parts.size(); ++k) {
    if (!(parts[k].shape() == part_shape) || parts[k].dtype() != dtype) {
      return context.error("output {} of the body has shape {} at first, but {} in turn {}", i,
                           part_shape.to_string(), parts[k].shape().to_string(), k);
    }
    const auto place = static_cast<std::int64_t>(is_reversed ? parts.size() - 1 - k : k);
    copy_strided(dtype, part_shape, y->mutable_data(), {place * step, strides}, parts[k].data(),
                 {0, part_strides});
  }
  return {};
}

/// Moves each of `outputs` to the end of its list.
Status collect_scans(const EvalContext& context, std::span<Datum> outputs,
                     std::vector<std::vector<Tensor>>& scans) {
  for (std::size_t k = 0; k < scans.size(); ++k) {
    Tensor* part = outputs[k].tensor();
    if (part == nullptr) return context.error("scan output {} of the body is no tensor", k);
    scans[k].push_back(std::move(*part));
  }
  return {};
}

/// The values that a Loop hands from turn to turn: [counter, condition, carried...].
struct LoopState {
  std::vector<Datum> inputs;
  std::int64_t limit = std::numeric_limits<std::int64_t>::max();
  bool goes_on = true;
};

Result<LoopState> enter_loop(const EvalContext& context, const Graph& body, std::size_t carried) {
  LoopState state;
  state.inputs.resize(2);
  if (context.has_input(0)) {
    const auto limit = context.ints(0);
    if (limit.size() != 1) {
      return context.error("M should have 1 element, found {}", limit.size());
    }
    state.limit = limit[0];
  }
  if (context.has_input(1)) {
    SDX_ASSIGN(state.goes_on, read_condition(*context.input(1), "cond"));
  }
  SDX_ASSIGN(Tensor condition, make_tensor<bool>(scalar_shape(body, 1), {state.goes_on}));
  state.inputs[1] = Datum(std::move(condition));
  for (std::size_t i = 0; i < carried; ++i) {
    state.inputs.push_back(context.has_input(i + 2) ? *context.input(i + 2) : Datum());
  }
  return state;
}

/// Refuses to go on when what a loop of many turns gathers, tensor by tensor, fills the machine.
Status check_memory(std::int64_t turn) {
  constexpr std::int64_t kTurns = 1 << 14;
  constexpr std::size_t kReserve_bytes = std::size_t{128} << 20;
  if (turn % kTurns != kTurns - 1 || available_memory_bytes() > kReserve_bytes) return {};
  return failure(Code::OutOfMemory, "the results of {} turns fill the memory", turn + 1);
}

Status evaluate_loop(EvalContext& context) {
  SDX_ASSIGN(const std::size_t carried, carried_count(context.node()));
  const Graph& body = *subgraph_of(context.attributes(), "body");
  SDX_ASSIGN(LoopState state, enter_loop(context, body, carried));
  std::vector<std::vector<Tensor>> scans(context.output_count() - carried);
  const Shape counter_shape = scalar_shape(body, 0);
  for (std::int64_t turn = 0; turn < state.limit && state.goes_on; ++turn) {
    SDX_TRY(context.check_cancelled());
    SDX_TRY(check_memory(turn));
    SDX_ASSIGN(Tensor counter, make_tensor<std::int64_t>(counter_shape, {turn}));
    state.inputs[0] = Datum(std::move(counter));
    SDX_ASSIGN(auto outputs, context.run_subgraph("body", state.inputs));
    SDX_TRY(check_body_outputs(outputs.size(), context.output_count() + 1));
    SDX_ASSIGN(state.goes_on, read_condition(outputs[0], "the condition that the body gives"));
    SDX_TRY(collect_scans(context, std::span(outputs).subspan(carried + 1), scans));
    for (std::size_t i = 0; i <= carried; ++i) state.inputs[i + 1] = std::move(outputs[i]);
  }
  for (std::size_t i = 0; i < carried; ++i) {
    context.set_output(i, std::move(state.inputs[i + 2]));
  }
  for (std::size_t k = 0; k < scans.size(); ++k) {
    const Type& element = body.value(body.outputs()[carried + 1 + k]).type;
    SDX_TRY(write_stacked(context, carried + k, scans[k], 0, false, element));
  }
  return {};
}

/// How a Scan's inputs and outputs divide. Version 8 has sequence_lens first, and a batch axis.
struct ScanLayout {
  std::size_t first_state = 0;
  std::size_t states = 0;
  std::size_t scan_inputs = 0;
  std::size_t scan_outputs = 0;
};

Status check_scan_list(const Attributes& attributes, std::string_view name, std::size_t count) {
  const auto& list = attributes.get_ints(name);
  if (list.empty() || list.size() == count) return {};
  return failure(Code::InvalidModel, "{} has {} elements, expected {}", name, list.size(), count);
}

std::int64_t scan_entry(const Attributes& attributes, std::string_view name, std::size_t i) {
  const auto& list = attributes.get_ints(name);
  return i < list.size() ? list[i] : 0;
}

Result<ScanLayout> scan_layout(const Node& node, int version) {
  const Graph* body = subgraph_of(node.attributes, "body");
  if (body == nullptr) return failure(Code::InvalidModel, "attribute 'body' holds no graph");
  ScanLayout layout;
  layout.first_state = version < 9 ? 1 : 0;
  const std::size_t operands =
      node.inputs.size() - std::min(node.inputs.size(), layout.first_state);
  const std::int64_t count = node.attributes.get_int("num_scan_inputs", 0);
  if (count < 1 || static_cast<std::size_t>(count) > operands) {
    return failure(Code::InvalidModel, "num_scan_inputs {} is outside [1, {}]", count, operands);
  }
  layout.scan_inputs = static_cast<std::size_t>(count);
  layout.states = operands - layout.scan_inputs;
  if (node.outputs.size() < layout.states) {
    return failure(Code::InvalidModel, "there are {} states, but {} outputs", layout.states,
                   node.outputs.size());
  }
  layout.scan_outputs = node.outputs.size() - layout.states;
  if (body->inputs().size() != operands) {
    return failure(Code::InvalidModel, "the body has {} inputs, expected {}", body->inputs().size(),
                   operands);
  }
  SDX_TRY(check_body_outputs(body->outputs().size(), node.outputs.size()));
  SDX_TRY(check_scan_list(node.attributes, "directions", layout.scan_inputs));
  SDX_TRY(check_scan_list(node.attributes, "scan_input_axes", layout.scan_inputs));
  SDX_TRY(check_scan_list(node.attributes, "scan_input_directions", layout.scan_inputs));
  SDX_TRY(check_scan_list(node.attributes, "scan_output_axes", layout.scan_outputs));
  SDX_TRY(check_scan_list(node.attributes, "scan_output_directions", layout.scan_outputs));
  return layout;
}

/// The type of a slice: `type` without the axes [0, batch_axes) and without `axis` of the rest.
Result<Type> slice_type(const Type& type, int batch_axes, std::int64_t axis, Dim& length) {
  Type slice = type;
  if (!slice.shape) return slice;
  if (slice.shape->rank() <= batch_axes) {
    return failure(Code::InvalidModel, "{} has too few axes to scan over",
                   slice.shape->to_string());
  }
  for (int i = 0; i < batch_axes; ++i) slice.shape->erase(0);
  SDX_ASSIGN(const int found, resolve_axis(axis, slice.shape->rank()));
  const Dim size = (*slice.shape)[found];
  if (is_known(length) && is_known(size) && length != size) {
    return failure(Code::InvalidModel, "scan inputs of different lengths: {} and {}", length, size);
  }
  if (!is_known(length)) length = size;
  slice.shape->erase(found);
  return slice;
}

Status infer_scan(InferContext& context) {
  SDX_ASSIGN(const ScanLayout layout, scan_layout(context.node(), context.version()));
  const int batch_axes = context.version() < 9 ? 1 : 0;
  std::vector<Type> inputs;
  for (std::size_t i = 0; i < layout.states; ++i) {
    Type state = context.type(layout.first_state + i);
    if (batch_axes != 0 && state.shape && state.shape->rank() > 0) state.shape->erase(0);
    inputs.push_back(std::move(state));
  }
  Dim length = kUnknownDim;
  for (std::size_t i = 0; i < layout.scan_inputs; ++i) {
    const Type& type = context.type(layout.first_state + layout.states + i);
    const std::int64_t axis = scan_entry(context.attributes(), "scan_input_axes", i);
    SDX_ASSIGN(Type slice, slice_type(type, batch_axes, axis, length));
    inputs.push_back(std::move(slice));
  }
  SDX_ASSIGN(const auto results, context.infer_subgraph("body", inputs));
  SDX_TRY(check_body_outputs(results.size(), context.output_count()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    Type result = results[i];
    if (i < layout.states) {
      context.set_type(i, context.type(layout.first_state + i));
      continue;
    }
    if (batch_axes != 0) result = without_shape(result);
    if (result.shape) {
      const std::int64_t given =
          scan_entry(context.attributes(), "scan_output_axes", i - layout.states);
      if (!Shape::fits(static_cast<std::size_t>(result.shape->rank()) + 1)) {
        return context.error("scan output {} is above rank {}", i, Shape::kMaxRank);
      }
      SDX_ASSIGN(const int axis, resolve_axis(given, result.shape->rank() + 1));
      result.shape->insert(axis, length);
    }
    context.set_type(i, std::move(result));
  }
  return {};
}

/// Element `index` of `axis`, in memory of its own unless it lies together.
Result<Tensor> slice_of(const Tensor& tensor, int axis, std::int64_t index) {
  Shape shape = tensor.shape();
  shape.erase(axis);
  Shape strides = strides_of(tensor.shape());
  const std::int64_t offset = index * strides[axis];
  strides.erase(axis);
  const int bits = dtype_bits(tensor.dtype());
  if (axis == 0 && bits >= 8) {
    return Tensor::view(tensor.dtype(), shape, tensor.data() + offset * (bits / 8), tensor.owner());
  }
  SDX_ASSIGN(Tensor slice, Tensor::allocate(tensor.dtype(), shape));
  copy_strided(tensor.dtype(), shape, slice.mutable_data(), {0, strides_of(shape)}, tensor.data(),
               {offset, strides});
  return slice;
}

/// One pass over scan inputs: `states` are replaced by the final ones.
struct ScanRun {
  std::vector<Datum> states;
  std::vector<Tensor> inputs;
  std::vector<int> axes;
  std::vector<bool> is_backward;
  std::int64_t length = 0;
  std::vector<std::vector<Tensor>> scans;
};

Status run_scan(EvalContext& context, ScanRun& run) {
  for (std::int64_t turn = 0; turn < run.length; ++turn) {
    SDX_TRY(context.check_cancelled());
    std::vector<Datum> inputs = std::move(run.states);
    const std::size_t states = inputs.size();
    for (std::size_t i = 0; i < run.inputs.size(); ++i) {
      const std::int64_t index = run.is_backward[i] ? run.length - 1 - turn : turn;
      SDX_ASSIGN(Tensor slice, slice_of(run.inputs[i], run.axes[i], index));
      inputs.emplace_back(std::move(slice));
    }
    SDX_ASSIGN(auto outputs, context.run_subgraph("body", inputs));
    SDX_TRY(check_body_outputs(outputs.size(), states + run.scans.size()));
    SDX_TRY(collect_scans(context, std::span(outputs).subspan(states), run.scans));
    outputs.resize(states);
    run.states = std::move(outputs);
  }
  return {};
}

Status evaluate_scan(EvalContext& context) {
  SDX_ASSIGN(const ScanLayout layout, scan_layout(context.node(), context.version()));
  const Attributes& attributes = context.attributes();
  ScanRun run;
  run.scans.resize(layout.scan_outputs);
  for (std::size_t i = 0; i < layout.states; ++i) run.states.push_back(*context.input(i));
  for (std::size_t i = 0; i < layout.scan_inputs; ++i) {
    const Tensor* input = context.tensor_or_null(layout.states + i);
    if (input == nullptr) return context.error("scan input {} is no tensor", i);
    SDX_ASSIGN(const int axis,
               resolve_axis(scan_entry(attributes, "scan_input_axes", i), input->rank()));
    run.inputs.push_back(*input);
    run.axes.push_back(axis);
    run.is_backward.push_back(scan_entry(attributes, "scan_input_directions", i) != 0);
    if (i == 0) run.length = input->dim(axis);
    if (input->dim(axis) != run.length) {
      return context.error("scan inputs of different lengths: {} and {}", run.length,
                           input->dim(axis));
    }
  }
  SDX_TRY(run_scan(context, run));
  for (std::size_t i = 0; i < layout.states; ++i) {
    context.set_output(i, std::move(run.states[i]));
  }
  const Graph& body = *subgraph_of(attributes, "body");
  for (std::size_t k = 0; k < layout.scan_outputs; ++k) {
    const Type& element = body.value(body.outputs()[layout.states + k]).type;
    SDX_TRY(write_stacked(context, layout.states + k, run.scans[k],
                          scan_entry(attributes, "scan_output_axes", k),
                          scan_entry(attributes, "scan_output_directions", k) != 0, element));
  }
  return {};
}

/// The sizes of a batched Scan: sequences in the batch, and their lengths.
struct ScanBatch {
  std::int64_t size = 0;
  std::int64_t longest = 0;
  std::vector<std::int64_t> lengths;
};

Result<ScanBatch> scan_batch(const EvalContext& context, const ScanLayout& layout) {
  ScanBatch batch;
  for (std::size_t i = 0; i < layout.states + layout.scan_inputs; ++i) {
    const Tensor* operand = context.tensor_or_null(layout.first_state + i);
    const int needed = i < layout.states ? 1 : 2;
    if (operand == nullptr || operand->rank() < needed) {
      return context.error("operand {} should be a tensor of rank {} or more", i, needed);
    }
    if (i == 0) batch.size = operand->dim(0);
    if (i == layout.states) batch.longest = operand->dim(1);
    if (operand->dim(0) != batch.size || (needed == 2 && operand->dim(1) != batch.longest)) {
      return context.error("operand {} has shape {}, expected a batch of {}", i,
                           operand->shape().to_string(), batch.size);
    }
  }
  batch.lengths = context.ints(0);
  if (!context.has_input(0)) {
    batch.lengths.assign(static_cast<std::size_t>(batch.size), batch.longest);
  }
  if (batch.lengths.size() != static_cast<std::size_t>(batch.size)) {
    return context.error("sequence_lens has {} elements, expected {}", batch.lengths.size(),
                         batch.size);
  }
  for (const std::int64_t length : batch.lengths) {
    if (length < 0 || length > batch.longest) {
      return context.error("a length of {} is outside [0, {}]", length, batch.longest);
    }
  }
  return batch;
}

/// Stacks the turns of one sequence, filled up with zeros to `longest`.
Result<Tensor> pad_turns(const EvalContext& context, const std::vector<Tensor>& turns,
                         std::int64_t longest, const Type& element) {
  Shape part = !turns.empty() ? turns[0].shape() : element.shape.value_or(Shape{});
  for (int axis = 0; axis < part.rank(); ++axis) part[axis] = std::max<Dim>(0, part[axis]);
  Shape shape = part;
  if (!Shape::fits(static_cast<std::size_t>(shape.rank()) + 2)) {
    return context.error("a scan output is above rank {}", Shape::kMaxRank);
  }
  shape.insert(0, longest);
  SDX_ASSIGN(Tensor padded,
             Tensor::allocate(!turns.empty() ? turns[0].dtype() : element.dtype, shape));
  fill_zero(padded);
  std::int64_t to = 0;
  for (const Tensor& turn : turns) {
    if (!(turn.shape() == part)) {
      return context.error("a scan output has shape {} and then {}", part.to_string(),
                           turn.shape().to_string());
    }
    copy_elements(padded.dtype(), padded.mutable_data(), to, turn.data(), 0, turn.element_count());
    to += turn.element_count();
  }
  return padded;
}

Status evaluate_batched_scan(EvalContext& context) {
  SDX_ASSIGN(const ScanLayout layout, scan_layout(context.node(), context.version()));
  SDX_ASSIGN(const ScanBatch batch, scan_batch(context, layout));
  const Graph& body = *subgraph_of(context.attributes(), "body");
  std::vector<std::vector<Tensor>> results(layout.states + layout.scan_outputs);
  for (std::int64_t b = 0; b < batch.size; ++b) {
    ScanRun run;
    run.scans.resize(layout.scan_outputs);
    run.length = batch.lengths[static_cast<std::size_t>(b)];
    for (std::size_t i = 0; i < layout.states + layout.scan_inputs; ++i) {
      SDX_ASSIGN(Tensor slice, slice_of(context.tensor(layout.first_state + i), 0, b));
      if (i < layout.states) {
        run.states.emplace_back(std::move(slice));
        continue;
      }
      run.inputs.push_back(std::move(slice));
      run.axes.push_back(0);
      run.is_backward.push_back(scan_entry(context.attributes(), "directions", i - layout.states) !=
                                0);
    }
    SDX_TRY(run_scan(context, run));
    for (std::size_t i = 0; i < layout.states; ++i) {
      if (run.states[i].tensor() == nullptr) return context.error("state {} is no tensor", i);
      results[i].push_back(*run.states[i].tensor());
    }
    for (std::size_t k = 0; k < layout.scan_outputs; ++k) {
      const Type& element = body.value(body.outputs()[layout.states + k]).type;
      SDX_ASSIGN(Tensor padded, pad_turns(context, run.scans[k], batch.longest, element));
      results[layout.states + k].push_back(std::move(padded));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Type& element = body.value(body.outputs()[i]).type;
    SDX_TRY(write_stacked(context, i, results[i], 0, false, element));
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "If", 1, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 11, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 13, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 16, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 19, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 21, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 23, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 24, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "If", 25, {"B>X*"}, "else_branch:g! then_branch:g!", infer_if, evaluate_if},
    {"", "Loop", 1, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 11, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 13, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 16, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 19, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 21, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 23, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 24, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"", "Loop", 25, {"ibx*>X*"}, "body:g!", infer_loop, evaluate_loop},
    {"",
     "Scan",
     8,
     {"ix*>X*"},
     "body:g! directions:is num_scan_inputs:i!",
     infer_scan,
     evaluate_batched_scan},
    {"",
     "Scan",
     9,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     11,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     16,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     19,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     21,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     23,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     24,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
    {"",
     "Scan",
     25,
     {"X*>X*"},
     "body:g! num_scan_inputs:i! scan_input_axes:is scan_input_directions:is scan_output_axes:is "
     "scan_output_directions:is",
     infer_scan,
     evaluate_scan},
};

}  // namespace

std::span<const OpSchema> control_schemas() { return kRows; }

}  // namespace sardonyx
