#include <algorithm>

#include "base/checked.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// [begin, end) of the dimensions that Shape gives, clamped as a Python slice.
struct Range {
  int begin;
  int end;
};

Range shape_range(const Attributes& attributes, int rank) {
  const auto clamp = [rank](std::int64_t index) {
    if (index < 0) index += rank;
    return static_cast<int>(std::clamp<std::int64_t>(index, 0, rank));
  };
  const int begin = clamp(std::max<std::int64_t>(attributes.get_int("start", 0), -rank));
  const int end = clamp(std::max<std::int64_t>(attributes.get_int("end", rank), -rank));
  return {begin, std::max(begin, end)};
}

Status infer_shape(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) {
    context.set_shape(0, {kUnknownDim});
    return {};
  }
  const Range range = shape_range(context.attributes(), input->rank());
  context.set_shape(0, {range.end - range.begin});
  return {};
}

Status evaluate_shape(EvalContext& context) {
  const Shape& input = context.tensor(0).shape();
  const Range range = shape_range(context.attributes(), input.rank());
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  std::copy(input.begin() + range.begin, input.begin() + range.end,
            y->mutable_values<std::int64_t>().begin());
  return {};
}

Status infer_size(InferContext& context) {
  context.set_shape(0, {});
  return {};
}

Status evaluate_size(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y != nullptr) y->mutable_values<std::int64_t>()[0] = context.tensor(0).element_count();
  return {};
}

/// Product of sizes and symbols in which at most one symbol is kept.
class Product {
 public:
  /// False when the product does not fit.
  bool multiply(Dim dim) {
    if (!is_known(dim)) {
      is_open_ = is_open_ || symbol_ != 1 || dim == kUnknownDim;
      symbol_ = dim;
      return true;
    }
    const auto product = checked_multiply(size_, dim);
    if (product) size_ = *product;
    return product.has_value();
  }
  Dim size() const { return size_; }
  bool is_size() const { return symbol_ == 1 && !is_open_; }
  /// The only symbol among the factors, or an unknown size when there are more.
  Dim symbol() const { return is_open_ ? kUnknownDim : symbol_; }
  Dim dim() const {
    if (is_size() || size_ == 0) return size_;
    return !is_open_ && size_ == 1 ? symbol_ : kUnknownDim;
  }

 private:
  Dim size_ = 1;
  Dim symbol_ = 1;
  bool is_open_ = false;
};

Result<Dim> product_of(const Shape& shape, int first, int last) {
  const auto begin = shape.begin() + first;
  if (std::find(begin, shape.begin() + last, 0) != shape.begin() + last) return Dim{0};
  Product product;
  for (auto dim = begin; dim != shape.begin() + last; ++dim) {
    if (!product.multiply(*dim)) {
      return failure(Code::InvalidModel, "the sizes of {} do not fit into 64 bits",
                     shape.to_string());
    }
  }
  return product.dim();
}

/// Removes one dimension equal to `dim` from `shape`; false when there is none.
bool cancel(Shape& shape, Dim dim) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == dim && dim != kUnknownDim) {
      shape.erase(axis);
      return true;
    }
  }
  return false;
}

/// The size that stands at -1 in `target`, or an unknown one; equal factors cancel out.
Result<Dim> wildcard_dim(const InferContext& context, const Shape& input, const Shape& target,
                         int wildcard) {
  Shape left = input;
  Product divisor;
  for (int axis = 0; axis < target.rank(); ++axis) {
    if (axis == wildcard || cancel(left, target[axis])) continue;
    if (!divisor.multiply(target[axis])) {
      return context.error("the sizes of {} do not fit into 64 bits", target.to_string());
    }
  }
  if (!divisor.is_size()) return kUnknownDim;
  const bool is_empty = std::find(left.begin(), left.end(), 0) != left.end();
  Product whole;
  for (const Dim dim : left) {
    if (!whole.multiply(is_empty ? 0 : dim)) {
      return context.error("the sizes of {} do not fit into 64 bits", input.to_string());
    }
  }
  if (!whole.is_size()) return whole.size() == divisor.size() ? whole.symbol() : kUnknownDim;
  if (divisor.size() == 0 || whole.size() % divisor.size() != 0) {
    return context.error("{} cannot be reshaped so that all but one size are {}",
                         input.to_string(), target.to_string());
  }
  return whole.size() / divisor.size();
}

/// The shape that Reshape's target asks for; `input` may be null.
Result<Shape> reshaped_shape(const InferContext& context, const Shape* input,
                             std::span<const std::int64_t> target) {
  if (!Shape::fits(target.size())) {
    return context.error("a shape of rank {} is above {}", target.size(), Shape::kMaxRank);
  }
  const bool allow_zero = context.attributes().get_int("allowzero", 0) != 0;
  Shape output;
  int wildcard = -1;
  for (const std::int64_t size : target) {
    const int axis = output.rank();
    if (size < -1) return context.error("size {} in the new shape is below -1", size);
    if (size == -1 && wildcard >= 0) return context.error("the new shape has more than one -1");
    if (size == -1) wildcard = axis;
    if (size == 0 && !allow_zero && input != nullptr && axis >= input->rank()) {
      return context.error("0 at position {} of the new shape copies no size of {}", axis,
                           input->to_string());
    }
    const bool is_copy = size == 0 && !allow_zero;
    output.push_back(!is_copy ? size : input != nullptr ? (*input)[axis] : kUnknownDim);
  }
  if (input == nullptr) return output;
  if (wildcard >= 0) {
    SDX_ASSIGN(output[wildcard], wildcard_dim(context, *input, output, wildcard));
  }
  const auto before = input->element_count();
  const auto after = output.element_count();
  if (before && output.is_static() && before != after) {
    return context.error("{} has {} elements and cannot be reshaped to {}", input->to_string(),
                         *before, output.to_string());
  }
  return output;
}

Status infer_reshape(InferContext& context) {
  std::optional<std::vector<std::int64_t>> target;
  if (context.version() < 5) {
    target = context.attributes().get_ints("shape");
  } else {
    target = context.ints(1);
  }
  if (target) {
    SDX_ASSIGN(const Shape output, reshaped_shape(context, context.shape(0), *target));
    context.set_shape(0, output);
    return {};
  }
  const Shape* length = context.shape(1);
  if (length == nullptr || length->rank() != 1 || !is_known((*length)[0])) return {};
  if ((*length)[0] > Shape::kMaxRank) {
    return context.error("a shape of rank {} is above {}", (*length)[0], Shape::kMaxRank);
  }
  context.set_shape(0, Shape::filled(static_cast<int>((*length)[0]), kUnknownDim));
  return {};
}

/// The first input's memory under the inferred shape.
Status evaluate_reshaped(EvalContext& context) {
  if (!context.has_output(0)) return {};
  const auto& shape = context.output_type(0).shape;
  if (!shape || shape->element_count() != context.tensor(0).element_count()) {
    return context.error("{} cannot be reshaped to {}", context.tensor(0).shape().to_string(),
                         shape ? shape->to_string() : "a shape that is not known");
  }
  context.set_output(0, context.tensor(0).reshaped(*shape));
  return {};
}

Status infer_flatten(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) {
    context.set_shape(0, {kUnknownDim, kUnknownDim});
    return {};
  }
  const std::int64_t axis = context.attributes().get_int("axis", 1);
  const std::int64_t rank = input->rank();
  const std::int64_t lowest = context.version() >= 11 ? -rank : 0;
  if (axis < lowest || axis > rank) {
    return context.error("axis {} is outside [{}, {}]", axis, lowest, rank);
  }
  const int split = static_cast<int>(axis < 0 ? axis + rank : axis);
  SDX_ASSIGN(const Dim rows, product_of(*input, 0, split));
  SDX_ASSIGN(const Dim columns, product_of(*input, split, input->rank()));
  context.set_shape(0, {rows, columns});
  return {};
}

/// The axes of Squeeze and Unsqueeze: an attribute before opset 13, an input since.
/// `is_known` is false when the input's elements are not known yet.
struct Axes {
  bool is_known = true;
  std::vector<std::int64_t> values;
};

Axes axes_of(const InferContext& context) {
  if (context.version() < 13) return {true, context.attributes().get_ints("axes")};
  if (!context.has_input(1)) return {};
  auto values = context.ints(1);
  if (!values) return {false, {}};
  return {true, *std::move(values)};
}

/// Number of axes when only the shape of the input that holds them is known; -1 when not even that.
Dim axes_count(const InferContext& context) {
  const Shape* shape = context.shape(1);
  if (shape == nullptr) return kUnknownDim;
  return shape->rank() == 0 ? 1 : (*shape)[0];
}

Status infer_squeeze(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const Axes axes = axes_of(context);
  if (!axes.is_known) {
    const Dim count = axes_count(context);
    if (count >= 1 && count <= input->rank()) {
      context.set_shape(0, Shape::filled(input->rank() - static_cast<int>(count), kUnknownDim));
    }
    return {};
  }
  const bool takes_all = axes.values.empty();
  if (takes_all && !input->is_static()) return {};
  SDX_ASSIGN(const AxisSet set, resolve_axes(axes.values, input->rank()));
  Shape output;
  for (int axis = 0; axis < input->rank(); ++axis) {
    const Dim dim = (*input)[axis];
    if (set.contains(axis) && is_known(dim) && dim != 1) {
      return context.error("axis {} of {} cannot be squeezed: its size is {}", axis,
                           input->to_string(), dim);
    }
    if (!set.contains(axis) && !(takes_all && dim == 1)) output.push_back(dim);
  }
  context.set_shape(0, output);
  return {};
}

Status infer_unsqueeze(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const Axes axes = axes_of(context);
  const Dim count = axes.is_known ? static_cast<Dim>(axes.values.size()) : axes_count(context);
  if (!is_known(count)) return {};
  if (count > Shape::kMaxRank - input->rank()) {
    return context.error("{} with {} more axes is above rank {}", input->to_string(), count,
                         Shape::kMaxRank);
  }
  const int rank = input->rank() + static_cast<int>(count);
  if (!axes.is_known) {
    context.set_shape(0, Shape::filled(rank, kUnknownDim));
    return {};
  }
  SDX_ASSIGN(const AxisSet set, resolve_axes(axes.values, rank));
  Shape output;
  int next = 0;
  for (int axis = 0; axis < rank; ++axis) {
    output.push_back(set.contains(axis) ? 1 : (*input)[next++]);
  }
  context.set_shape(0, output);
  return {};
}

Status infer_expand_dims(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (!Shape::fits(static_cast<std::size_t>(input->rank()) + 1)) {
    return context.error("{} with one more axis is above rank {}", input->to_string(),
                         Shape::kMaxRank);
  }
  const auto axes = context.ints(1);
  if (!axes || axes->size() != 1) {
    context.set_shape(0, Shape::filled(input->rank() + 1, kUnknownDim));
    return {};
  }
  SDX_ASSIGN(const int axis, resolve_axis((*axes)[0], input->rank() + 1));
  Shape output = *input;
  output.insert(axis, 1);
  context.set_shape(0, output);
  return {};
}

Status infer_identity(InferContext& context) {
  if (context.type(0).kind != Type::Kind::Unknown) context.set_type(0, context.type(0));
  return {};
}

Status evaluate_identity(EvalContext& context) {
  context.set_output(0, *context.input(0));
  return {};
}

Status infer_expand(InferContext& context) {
  const Shape* input = context.shape(0);
  const auto target = context.ints(1);
  if (!target) {
    const Shape* length = context.shape(1);
    if (input == nullptr || length == nullptr || length->rank() != 1 || !is_known((*length)[0]) ||
        (*length)[0] > Shape::kMaxRank) {
      return {};
    }
    const int rank = std::max(input->rank(), static_cast<int>((*length)[0]));
    context.set_shape(0, Shape::filled(rank, kUnknownDim));
    return {};
  }
  if (!Shape::fits(target->size())) {
    return context.error("a shape of rank {} is above {}", target->size(), Shape::kMaxRank);
  }
  for (const std::int64_t size : *target) {
    if (size < 0) return context.error("size {} in the new shape is negative", size);
  }
  if (input == nullptr) return {};
  const auto output = broadcast(*input, Shape(*target));
  if (!output) {
    return context.error("{} cannot be expanded to {}", input->to_string(),
                         Shape(*target).to_string());
  }
  context.set_shape(0, *output);
  return {};
}

Status evaluate_expand(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Shape own = strides_of(x.shape());
  Shape strides = Shape::filled(y->rank(), 0);
  const int skipped = y->rank() - x.rank();
  for (int axis = 0; axis < x.rank(); ++axis) {
    if (x.dim(axis) != 1) strides[skipped + axis] = own[axis];
  }
  copy_strided(x.dtype(), y->shape(), y->mutable_data(), {0, strides_of(y->shape())}, x.data(),
               {0, strides});
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Shape", 1, {"T>I"}, "", infer_shape, evaluate_shape},
    {"", "Shape", 13, {"T>I"}, "", infer_shape, evaluate_shape},
    {"", "Shape", 15, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Shape", 19, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Shape", 21, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Shape", 23, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Shape", 24, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Shape", 25, {"T>I"}, "end:i start:i", infer_shape, evaluate_shape},
    {"", "Size", 1, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 13, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 19, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 21, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 23, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 24, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Size", 25, {"T>I"}, "", infer_size, evaluate_size},
    {"", "Reshape", 1, {"T>T", kFloats}, "consumed_inputs:is shape:is", infer_reshape,
     evaluate_reshaped},
    {"", "Reshape", 5, {"TI>T"}, "", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 13, {"TI>T"}, "", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 14, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 19, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 21, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 23, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 24, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Reshape", 25, {"TI>T"}, "allowzero:i", infer_reshape, evaluate_reshaped},
    {"", "Flatten", 1, {"T>T", kFloats}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 9, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 11, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 13, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 21, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 23, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 24, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Flatten", 25, {"T>T"}, "axis:i", infer_flatten, evaluate_reshaped},
    {"", "Squeeze", 1, {"T>T"}, "axes:is", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 11, {"T>T"}, "axes:is", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 13, {"Ti>T"}, "", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 21, {"Ti>T"}, "", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 23, {"Ti>T"}, "", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 24, {"Ti>T"}, "", infer_squeeze, evaluate_reshaped},
    {"", "Squeeze", 25, {"Ti>T"}, "", infer_squeeze, evaluate_reshaped},
    {"", "Unsqueeze", 1, {"T>T"}, "axes:is!", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 11, {"T>T"}, "axes:is!", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 13, {"TI>T"}, "", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 21, {"TI>T"}, "", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 23, {"TI>T"}, "", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 24, {"TI>T"}, "", infer_unsqueeze, evaluate_reshaped},
    {"", "Unsqueeze", 25, {"TI>T"}, "", infer_unsqueeze, evaluate_reshaped},
    {"", "Identity", 1, {"T>T"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 13, {"T>T"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 14, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 16, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 19, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 21, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 23, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 24, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Identity", 25, {"X>X"}, "", infer_identity, evaluate_identity},
    {"", "Expand", 8, {"TI>T"}, "", infer_expand, evaluate_expand},
    {"", "Expand", 13, {"TI>T"}, "", infer_expand, evaluate_expand},
    {"com.microsoft", "ExpandDims", 1, {"TN>T"}, "", infer_expand_dims, evaluate_reshaped},
};

}  // namespace

std::span<const OpSchema> shape_schemas() { return kRows; }

}  // namespace sardonyx
