#include <algorithm>

#include "base/checked.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// The type of a sequence's elements, or an unknown one.
Type element_of(const Type& type) {
  return type.element != nullptr ? *type.element : Type{};
}

/// A tensor type keeps only what all elements have in common: the element type.
Type loose(const Type& type) {
  return type.kind == Type::Kind::Tensor ? Type::tensor(type.dtype) : type;
}

Status expect_sequence(const InferContext& context, std::size_t i) {
  const Type& type = context.type(i);
  if (type.kind == Type::Kind::Sequence || type.kind == Type::Kind::Unknown) return {};
  return context.error("input '{}' should be a sequence, but is {}", context.input_name(i),
                       type.to_string());
}

Result<const Sequence*> sequence_at(const EvalContext& context, std::size_t i) {
  const Datum* input = context.input(i);
  const Sequence* sequence = input != nullptr ? input->sequence() : nullptr;
  if (sequence == nullptr) return context.error("input {} should be a sequence", i);
  return sequence;
}

void set_sequence(EvalContext& context, std::size_t i, Type element, std::vector<Datum> items) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element = std::move(element);
  sequence->items = std::move(items);
  context.set_output(i, Datum(std::shared_ptr<const Sequence>(std::move(sequence))));
}

/// The single integer of an input.
Result<std::int64_t> position_at(const EvalContext& context, std::size_t i, std::int64_t size,
                                 std::int64_t last) {
  const auto values = context.ints(i);
  if (values.size() != 1) {
    return context.error("position should have 1 element, found {}", values.size());
  }
  if (values[0] < -size || values[0] > last) {
    return context.error("position {} is outside [{}, {}] in a sequence of {}", values[0], -size,
                         last, size);
  }
  return values[0] < 0 ? values[0] + size : values[0];
}

Status infer_at(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  context.set_type(0, element_of(context.type(0)));
  return {};
}

Status evaluate_at(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  const auto size = static_cast<std::int64_t>(sequence->items.size());
  SDX_ASSIGN(const std::int64_t position, position_at(context, 1, size, size - 1));
  context.set_output(0, sequence->items[static_cast<std::size_t>(position)]);
  return {};
}

Status infer_construct(InferContext& context) {
  context.set_type(0, Type::sequence(loose(context.type(0))));
  return {};
}

Status evaluate_construct(EvalContext& context) {
  std::vector<Datum> items;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (context.has_input(i)) items.push_back(*context.input(i));
  }
  Type element = items.empty() ? Type{} : loose(items[0].type());
  set_sequence(context, 0, std::move(element), std::move(items));
  return {};
}

Result<DType> empty_dtype(const Attributes& attributes) {
  const std::int64_t number = attributes.get_int("dtype", 1);
  const auto dtype = dtype_from_onnx(number);
  if (!dtype || *dtype == DType::Undefined) {
    return failure(Code::InvalidModel, "dtype {} is no element type", number);
  }
  return *dtype;
}

Status infer_empty(InferContext& context) {
  SDX_ASSIGN(const DType dtype, empty_dtype(context.attributes()));
  context.set_type(0, Type::sequence(Type::tensor(dtype)));
  return {};
}

Status evaluate_empty(EvalContext& context) {
  SDX_ASSIGN(const DType dtype, empty_dtype(context.attributes()));
  set_sequence(context, 0, Type::tensor(dtype), {});
  return {};
}

/// The output is a sequence like the first input.
Status infer_same_sequence(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  context.set_type(0, context.type(0));
  return {};
}

Status evaluate_erase(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  const auto size = static_cast<std::int64_t>(sequence->items.size());
  std::int64_t position = size - 1;
  if (context.has_input(1)) {
    SDX_ASSIGN(position, position_at(context, 1, size, size - 1));
  }
  if (size == 0) return context.error("an empty sequence has nothing to erase");
  std::vector<Datum> items = sequence->items;
  items.erase(items.begin() + position);
  set_sequence(context, 0, sequence->element, std::move(items));
  return {};
}

Status evaluate_insert(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  const auto size = static_cast<std::int64_t>(sequence->items.size());
  const Tensor* item = context.tensor_or_null(1);
  if (item == nullptr) return context.error("only a tensor can be inserted");
  const Type& element = sequence->element;
  if (element.kind == Type::Kind::Tensor && element.dtype != DType::Undefined &&
      element.dtype != item->dtype()) {
    return context.error("tensor({}) does not fit a sequence of {}", dtype_name(item->dtype()),
                         element.to_string());
  }
  std::int64_t position = size;
  if (context.has_input(2)) {
    SDX_ASSIGN(position, position_at(context, 2, size, size));
  }
  std::vector<Datum> items;
  items.reserve(sequence->items.size() + 1);
  items = sequence->items;
  items.insert(items.begin() + position, Datum(*item));
  Type kept = element.kind == Type::Kind::Unknown ? Type::tensor(item->dtype()) : element;
  set_sequence(context, 0, loose(kept), std::move(items));
  return {};
}

Status infer_insert(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  const Type& sequence = context.type(0);
  if (sequence.kind == Type::Kind::Unknown) return {};
  Type element = loose(element_of(sequence));
  if (element.kind == Type::Kind::Unknown) element = loose(context.type(1));
  context.set_type(0, Type::sequence(std::move(element)));
  return {};
}

Status infer_length(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  context.set_shape(0, {});
  return {};
}

Status evaluate_length(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y != nullptr) {
    y->mutable_values<std::int64_t>()[0] = static_cast<std::int64_t>(sequence->items.size());
  }
  return {};
}

Status infer_split_to_sequence(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input != nullptr) {
    SDX_TRY(resolve_axis(context.attributes().get_int("axis", 0), input->rank()).take_status());
  }
  context.set_type(0, Type::sequence(Type::tensor(context.dtype(0))));
  return {};
}

/// Sizes of the parts: ones, equal ones with a shorter last one, or as listed.
Result<std::vector<std::int64_t>> part_sizes(const EvalContext& context, std::int64_t size) {
  if (!context.has_input(1)) return std::vector<std::int64_t>(static_cast<std::size_t>(size), 1);
  const auto given = context.ints(1);
  if (context.tensor(1).rank() == 0) {
    if (given[0] <= 0) return context.error("split {} should be above 0", given[0]);
    std::vector<std::int64_t> sizes;
    for (std::int64_t done = 0; done < size; done += sizes.back()) {
      sizes.push_back(std::min(given[0], size - done));
    }
    return sizes;
  }
  std::int64_t total = 0;
  for (const std::int64_t part : given) {
    const auto sum = part < 0 ? std::nullopt : checked_add(total, part);
    if (!sum) return context.error("a part of {} elements is out of range", part);
    total = *sum;
  }
  if (total != size) {
    return context.error("the parts have {} elements along an axis of size {}", total, size);
  }
  return given;
}

Status evaluate_split_to_sequence(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const int axis,
             resolve_axis(context.attributes().get_int("axis", 0), x.rank()));
  SDX_ASSIGN(const auto sizes, part_sizes(context, x.dim(axis)));
  const bool drops_axis =
      !context.has_input(1) && context.attributes().get_int("keepdims", 1) == 0;
  const Shape strides = strides_of(x.shape());
  std::vector<Datum> items;
  std::int64_t offset = 0;
  for (const std::int64_t size : sizes) {
    Shape shape = x.shape();
    shape[axis] = size;
    SDX_ASSIGN(Tensor part, Tensor::allocate(x.dtype(), shape));
    copy_strided(x.dtype(), shape, part.mutable_data(), {0, strides_of(shape)}, x.data(),
                 {offset, strides});
    offset += size * strides[axis];
    if (drops_axis) {
      shape.erase(axis);
      part = part.reshaped(shape);
    }
    items.emplace_back(std::move(part));
  }
  set_sequence(context, 0, Type::tensor(x.dtype()), std::move(items));
  return {};
}

Status infer_concat_from_sequence(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  const Type element = element_of(context.type(0));
  if (element.kind == Type::Kind::Tensor) context.set_type(0, Type::tensor(element.dtype));
  return {};
}

/// Where the parts go: the shape of the whole, and the axis they are put along.
Status evaluate_concat_from_sequence(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  const bool is_stacked = context.attributes().get_int("new_axis", 0) != 0;
  if (sequence->items.empty()) return context.error("an empty sequence has no elements to join");
  std::vector<Tensor> parts;
  for (const Datum& item : sequence->items) {
    if (item.tensor() == nullptr) return context.error("an element of the sequence is no tensor");
    parts.push_back(*item.tensor());
  }
  const int rank = parts[0].rank() + static_cast<int>(is_stacked);
  if (rank > Shape::kMaxRank) return context.error("rank {} is above {}", rank, Shape::kMaxRank);
  SDX_ASSIGN(const int axis, resolve_axis(context.attributes().get_int("axis", 0), rank));
  Shape whole;
  std::int64_t total = 0;
  for (Tensor& part : parts) {
    Shape shape = part.shape();
    if (shape.rank() + static_cast<int>(is_stacked) != rank || part.dtype() != parts[0].dtype()) {
      return context.error("elements of the sequence differ in rank or type");
    }
    if (is_stacked) shape.insert(axis, 1);
    part = part.reshaped(shape);
    const auto sum = checked_add(total, shape[axis]);
    if (!sum) return context.error("the sizes along axis {} do not fit", axis);
    total = *sum;
    if (whole.rank() != rank) whole = shape;
    for (int i = 0; i < rank; ++i) {
      if (i != axis && shape[i] != whole[i]) {
        return context.error("elements {} and {} differ in axis {}", whole.to_string(),
                             shape.to_string(), i);
      }
    }
  }
  whole[axis] = total;
  SDX_ASSIGN(Tensor * y, context.allocate(0, parts[0].dtype(), whole));
  if (y == nullptr) return {};
  const Shape strides = strides_of(whole);
  std::int64_t offset = 0;
  for (const Tensor& part : parts) {
    copy_strided(part.dtype(), part.shape(), y->mutable_data(), {offset, strides}, part.data(),
                 {0, strides_of(part.shape())});
    offset += part.dim(axis) * strides[axis];
  }
  return {};
}

Status infer_sequence_map(InferContext& context) {
  SDX_TRY(expect_sequence(context, 0));
  std::vector<Type> inputs;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Type& type = context.type(i);
    inputs.push_back(type.kind == Type::Kind::Sequence ? element_of(type) : type);
  }
  SDX_ASSIGN(const auto results, context.infer_subgraph("body", inputs));
  if (results.size() != context.output_count()) {
    return context.error("the body has {} outputs, expected {}", results.size(),
                         context.output_count());
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind == Type::Kind::Unknown) continue;
    context.set_type(i, Type::sequence(loose(results[i])));
  }
  return {};
}

/// The element type that the body of a SequenceMap gives its output `i`, as far as it is known.
Type body_type(const EvalContext& context, std::size_t i) {
  const auto* body = context.attributes().get_if<std::shared_ptr<Graph>>("body");
  if (body == nullptr || i >= (*body)->outputs().size()) return {};
  return loose((*body)->value((*body)->outputs()[i]).type);
}

Status evaluate_sequence_map(EvalContext& context) {
  SDX_ASSIGN(const Sequence* sequence, sequence_at(context, 0));
  std::vector<std::vector<Datum>> results(context.output_count());
  for (std::size_t turn = 0; turn < sequence->items.size(); ++turn) {
    SDX_TRY(context.check_cancelled());
    std::vector<Datum> inputs;
    for (std::size_t i = 0; i < context.input_count(); ++i) {
      const Datum* input = context.input(i);
      const Sequence* other = input != nullptr ? input->sequence() : nullptr;
      if (other != nullptr && other->items.size() <= turn) {
        return context.error("input {} has {} elements, but the first has {}", i,
                             other->items.size(), sequence->items.size());
      }
      inputs.push_back(other != nullptr ? other->items[turn]
                       : input != nullptr ? *input : Datum());
    }
    SDX_ASSIGN(auto outputs, context.run_subgraph("body", inputs));
    if (outputs.size() != results.size()) {
      return context.error("the body has {} outputs, expected {}", outputs.size(),
                           results.size());
    }
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      results[i].push_back(std::move(outputs[i]));
    }
  }
  for (std::size_t i = 0; i < results.size(); ++i) {
    Type element = results[i].empty() ? body_type(context, i) : loose(results[i][0].type());
    set_sequence(context, i, std::move(element), std::move(results[i]));
  }
  return {};
}

Status infer_optional(InferContext& context) {
  if (const Type* declared = context.attributes().get_if<Type>("type")) {
    if (!context.has_input(0)) {
      context.set_type(0, Type::optional(*declared));
      return {};
    }
  }
  if (!context.has_input(0)) return context.error("an optional without value needs a type");
  if (context.type(0).kind != Type::Kind::Unknown) {
    context.set_type(0, Type::optional(context.type(0)));
  }
  return {};
}

/// An optional is its value, or a Datum without value.
Status evaluate_optional(EvalContext& context) {
  context.set_output(0, context.has_input(0) ? *context.input(0) : Datum());
  return {};
}

Status infer_get_element(InferContext& context) {
  const Type& type = context.type(0);
  context.set_type(0, type.kind == Type::Kind::Optional ? element_of(type) : type);
  return {};
}

Status evaluate_get_element(EvalContext& context) {
  if (!context.has_input(0) || !context.input(0)->has_value()) {
    return context.error("the optional has no value");
  }
  context.set_output(0, *context.input(0));
  return {};
}

Status infer_has_element(InferContext& context) {
  context.set_shape(0, {});
  return {};
}

Status evaluate_has_element(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  y->mutable_values<bool>()[0] = context.has_input(0) && context.input(0)->has_value();
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "SequenceAt", 11, {"XN>T"}, "", infer_at, evaluate_at, kDataDependentShape},
    {"", "SequenceConstruct", 11, {"T*>X"}, "", infer_construct, evaluate_construct},
    {"", "SequenceEmpty", 11, {">X"}, "dtype:i", infer_empty, evaluate_empty},
    {"", "SequenceErase", 11, {"Xn>X"}, "", infer_same_sequence, evaluate_erase},
    {"", "SequenceInsert", 11, {"XTn>X"}, "", infer_insert, evaluate_insert},
    {"", "SequenceLength", 11, {"X>I"}, "", infer_length, evaluate_length},
    {"", "SplitToSequence", 11, {"Tn>X"}, "axis:i keepdims:i", infer_split_to_sequence,
     evaluate_split_to_sequence},
    {"", "SplitToSequence", 24, {"Tn>X"}, "axis:i keepdims:i", infer_split_to_sequence,
     evaluate_split_to_sequence},
    {"", "ConcatFromSequence", 11, {"X>T"}, "axis:i! new_axis:i", infer_concat_from_sequence,
     evaluate_concat_from_sequence, kDataDependentShape},
    {"", "SequenceMap", 17, {"Xx*>X*"}, "body:g!", infer_sequence_map, evaluate_sequence_map},
    {"", "Optional", 15, {"x>X"}, "type:y", infer_optional, evaluate_optional},
    {"", "Optional", 28, {"x>X"}, "type:y", infer_optional, evaluate_optional},
    {"", "OptionalGetElement", 15, {"X>X"}, "", infer_get_element, evaluate_get_element},
    {"", "OptionalGetElement", 18, {"X>X"}, "", infer_get_element, evaluate_get_element},
    {"", "OptionalGetElement", 28, {"X>X"}, "", infer_get_element, evaluate_get_element},
    {"", "OptionalHasElement", 15, {"X>B"}, "", infer_has_element, evaluate_has_element},
    {"", "OptionalHasElement", 18, {"x>B"}, "", infer_has_element, evaluate_has_element},
    {"", "OptionalHasElement", 28, {"x>B"}, "", infer_has_element, evaluate_has_element},
};

}  // namespace

std::span<const OpSchema> sequence_schemas() { return kRows; }

}  // namespace sardonyx
