#include <algorithm>
#include <array>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// Elements to add (or, when negative, to cut) before and after each axis.
struct Pads {
  std::array<std::int64_t, Shape::kMaxRank> before{};
  std::array<std::int64_t, Shape::kMaxRank> after{};
};

/// Spreads a list [before..., after...] over the axes it is for (empty: all of them).
Result<Pads> spread_pads(std::span<const std::int64_t> list, std::span<const std::int64_t> axes,
                         bool has_axes, int rank) {
  const std::size_t count = has_axes ? axes.size() : static_cast<std::size_t>(rank);
  if (list.size() != 2 * count) {
    return failure(Code::InvalidModel, "pads has {} elements, expected {} for {} axes", list.size(),
                   2 * count, count);
  }
  if (has_axes) SDX_TRY(resolve_axes(axes, rank).take_status());
  Pads pads;
  for (std::size_t i = 0; i < count; ++i) {
    const auto axis =
        has_axes ? static_cast<std::size_t>(*normalize_axis(axes[i], rank)) : i;
    // Far beyond any tensor, and safe to add and negate.
    constexpr std::int64_t kMost = std::int64_t{1} << 60;
    for (const std::int64_t pad : {list[i], list[count + i]}) {
      if (pad < -kMost || pad > kMost) {
        return failure(Code::InvalidModel, "a pad of {} is out of range", pad);
      }
    }
    pads.before[axis] = list[i];
    pads.after[axis] = list[count + i];
  }
  return pads;
}

bool is_standard(const Node& node) { return node.domain.empty(); }

/// The pads of a node whose lists are all known; nothing when one is not.
Result<std::optional<Pads>> infer_pads(const InferContext& context, int rank) {
  if (is_standard(context.node()) && context.version() < 11) {
    const auto& list =
        context.attributes().get_ints(context.version() == 1 ? "paddings" : "pads");
    SDX_ASSIGN(const Pads pads, spread_pads(list, {}, false, rank));
    return std::optional<Pads>(pads);
  }
  const Tensor* list = context.data(1);
  const auto axes = context.has_input(3) ? context.ints(3) : std::nullopt;
  if (list == nullptr || (context.has_input(3) && !axes)) return std::optional<Pads>();
  if (list->dtype() != DType::Int64) return context.error("pads should be tensor(int64)");
  const std::vector<std::int64_t> none;
  SDX_ASSIGN(const Pads pads, spread_pads(list->values<std::int64_t>(), axes ? *axes : none,
                                          axes.has_value(), rank));
  return std::optional<Pads>(pads);
}

Result<Pads> evaluate_pads(const EvalContext& context, int rank) {
  if (is_standard(context.node()) && context.version() < 11) {
    const char* name = context.version() == 1 ? "paddings" : "pads";
    return spread_pads(context.attributes().get_ints(name), {}, false, rank);
  }
  return spread_pads(context.ints(1), context.ints(3), context.has_input(3), rank);
}

Status infer_pad(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const auto pads, infer_pads(context, input->rank()));
  Shape output = Shape::filled(input->rank(), kUnknownDim);
  for (int axis = 0; pads && axis < input->rank(); ++axis) {
    const Dim dim = (*input)[axis];
    const std::int64_t before = pads->before[static_cast<std::size_t>(axis)];
    const std::int64_t after = pads->after[static_cast<std::size_t>(axis)];
    if (!is_known(dim)) {
      if (before == 0 && after == 0) output[axis] = dim;
      continue;
    }
    const auto half = checked_add(dim, before);
    const auto size = half ? checked_add(*half, after) : std::nullopt;
    if (!size || *size < 0) {
      return context.error("axis {} of {} cannot be padded by {} and {}", axis, input->to_string(),
                           before, after);
    }
    output[axis] = *size;
  }
  context.set_shape(0, output);
  return {};
}

enum class PadMode { Constant, Reflect, Edge, Wrap };

Result<PadMode> pad_mode(const EvalContext& context) {
  const std::string mode = context.attributes().get_string("mode", "constant");
  if (mode == "constant") return PadMode::Constant;
  if (mode == "reflect") return PadMode::Reflect;
  if (mode == "edge") return PadMode::Edge;
  if (mode == "wrap") return PadMode::Wrap;
  return context.error("mode '{}' is none of constant, reflect, edge and wrap", mode);
}

/// The part of the input that stays: where it begins in input and output, and its size.
struct Interior {
  Shape size;
  Shape source;
  Shape target;
};

Interior interior_of(const Tensor& x, const Tensor& y, const Pads& pads) {
  Interior interior;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t before = pads.before[static_cast<std::size_t>(axis)];
    const std::int64_t first = std::max<std::int64_t>(0, -before);
    const std::int64_t target = std::max<std::int64_t>(0, before);
    const std::int64_t end = x.dim(axis) + std::min<std::int64_t>(
                                               0, pads.after[static_cast<std::size_t>(axis)]);
    const std::int64_t size = std::min(end - first, y.dim(axis) - target);
    interior.size.push_back(std::max<std::int64_t>(0, size));
    interior.source.push_back(first);
    interior.target.push_back(target);
  }
  return interior;
}

std::int64_t offset_of(const Shape& position, const Shape& strides) {
  std::int64_t offset = 0;
  for (int axis = 0; axis < position.rank(); ++axis) offset += position[axis] * strides[axis];
  return offset;
}

/// Where the element `i` places from the interior's begin (outside [0, size)) comes from.
std::int64_t source_of(PadMode mode, std::int64_t i, std::int64_t size) {
  if (mode == PadMode::Edge || size == 1) return i < 0 || size == 1 ? 0 : size - 1;
  const std::int64_t period = mode == PadMode::Wrap ? size : 2 * (size - 1);
  std::int64_t position = i % period;
  if (position < 0) position += period;
  return position < size ? position : period - position;
}

/// Fills the borders axis by axis; slabs already cover the whole length of the axes done before.
Status fill_borders(EvalContext& context, Tensor& y, const Interior& interior, PadMode mode) {
  const Shape strides = strides_of(y.shape());
  Shape size = interior.size;
  Shape begin = interior.target;
  for (int axis = 0; axis < y.rank(); ++axis) {
    const std::int64_t count = size[axis];
    const std::int64_t first = begin[axis];
    if (count == 0 && y.dim(axis) != 0) {
      return context.error("axis {} is empty and cannot be padded but with a constant", axis);
    }
    size[axis] = 1;
    for (std::int64_t i = 0; i < y.dim(axis); ++i) {
      if (i == first) i += count;
      if (i >= y.dim(axis)) break;
      begin[axis] = i;
      const std::int64_t to = offset_of(begin, strides);
      begin[axis] = first + source_of(mode, i - first, count);
      copy_strided(y.dtype(), size, y.mutable_data(), {to, strides}, y.data(),
                   {offset_of(begin, strides), strides});
    }
    size[axis] = y.dim(axis);
    begin[axis] = 0;
  }
  return {};
}

/// Fills the whole output with the constant.
Status fill_constant(EvalContext& context, Tensor& y) {
  const Tensor* value = context.tensor_or_null(2);
  if (value != nullptr) {
    if (value->element_count() != 1) {
      return context.error("constant_value should have 1 element, found {}",
                           value->element_count());
    }
    fill_elements(y.dtype(), y.mutable_data(), 0, y.element_count(), value->data(), 0);
    return {};
  }
  const float given = context.attributes().get_float("value", 0.0F);
  fill_zero(y);
  if (given == 0.0F || y.element_count() == 0) return {};
  SDX_ASSIGN(Tensor one, Tensor::allocate(y.dtype(), {1}));
  write_real(y.dtype(), one.mutable_data(), 0, static_cast<double>(given));
  fill_elements(y.dtype(), y.mutable_data(), 0, y.element_count(), one.data(), 0);
  return {};
}

Status evaluate_pad(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const PadMode mode, pad_mode(context));
  SDX_ASSIGN(const Pads pads, evaluate_pads(context, x.rank()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Interior interior = interior_of(x, *y, pads);
  if (mode == PadMode::Constant) SDX_TRY(fill_constant(context, *y));
  const Shape from = strides_of(x.shape());
  const Shape to = strides_of(y->shape());
  if (interior.size.product(0, x.rank()) != 0) {
    copy_strided(x.dtype(), interior.size, y->mutable_data(),
                 {offset_of(interior.target, to), to}, x.data(),
                 {offset_of(interior.source, from), from});
  }
  if (mode == PadMode::Constant || y->element_count() == 0) return {};
  return fill_borders(context, *y, interior, mode);
}

constexpr OpSchema kRows[] = {
    {"", "Pad", 1, {"T>T", kFloats}, "mode:s paddings:is! value:f", infer_pad, evaluate_pad},
    {"", "Pad", 2, {"T>T", kFloats}, "mode:s pads:is! value:f", infer_pad, evaluate_pad},
    {"", "Pad", 11, {"TIt>T", kNumeric}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 13, {"TIt>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 18, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 19, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 21, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 23, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 24, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"", "Pad", 25, {"TItn>T"}, "mode:s", infer_pad, evaluate_pad},
    {"com.microsoft", "Pad", 1, {"TIt>T"}, "mode:s", infer_pad, evaluate_pad},
};

}  // namespace

std::span<const OpSchema> pad_schemas() { return kRows; }

}  // namespace sardonyx
