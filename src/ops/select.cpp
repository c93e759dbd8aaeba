#include <algorithm>
#include <cmath>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// The axes that CenterCropPad changes, in the order of its sizes.
std::vector<std::int64_t> crop_axes(const Attributes& attributes, int rank) {
  if (attributes.has("axes")) return attributes.get_ints("axes");
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Status infer_center_crop_pad(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const auto axes = crop_axes(context.attributes(), input->rank());
  SDX_ASSIGN(const AxisSet set, resolve_axes(axes, input->rank()));
  const auto sizes = context.ints(1);
  if (sizes && sizes->size() != axes.size()) {
    return context.error("{} sizes are given for {} axes", sizes->size(), axes.size());
  }
  Shape output = *input;
  for (int axis = 0; axis < output.rank(); ++axis) {
    if (set.contains(axis)) output[axis] = kUnknownDim;
  }
  for (std::size_t i = 0; sizes && i < axes.size(); ++i) {
    if ((*sizes)[i] < 0) return context.error("size {} is negative", (*sizes)[i]);
    output[*normalize_axis(axes[i], output.rank())] = (*sizes)[i];
  }
  context.set_shape(0, output);
  return {};
}

Status evaluate_center_crop_pad(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  fill_zero(*y);
  StridedView to{0, strides_of(y->shape())};
  StridedView from{0, strides_of(x.shape())};
  Shape box;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const std::int64_t extra = y->dim(axis) - x.dim(axis);
    if (extra > 0) to.offset += extra / 2 * to.strides[axis];
    if (extra < 0) from.offset += -extra / 2 * from.strides[axis];
    box.push_back(std::min(x.dim(axis), y->dim(axis)));
  }
  copy_strided(x.dtype(), box, y->mutable_data(), to, x.data(), from);
  return {};
}

/// Time and batch axes: one is 0, the other 1.
Result<std::pair<int, int>> sequence_axes(const Attributes& attributes) {
  const std::int64_t time = attributes.get_int("time_axis", 0);
  const std::int64_t batch = attributes.get_int("batch_axis", 1);
  if ((time != 0 && time != 1) || batch != 1 - time) {
    return failure(Code::InvalidModel,
                   "time_axis {} and batch_axis {} should be 0 and 1 or 1 and 0", time, batch);
  }
  return std::pair(static_cast<int>(time), static_cast<int>(batch));
}

Status infer_reverse_sequence(InferContext& context) {
  SDX_ASSIGN(const auto axes, sequence_axes(context.attributes()));
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (input->rank() < 2) {
    return context.error("expected an input of rank 2 or more, found {}", input->to_string());
  }
  const Shape* lengths = context.shape(1);
  if (lengths != nullptr) {
    const Dim batch = (*input)[axes.second];
    if (lengths->rank() != 1 ||
        (is_known(batch) && is_known((*lengths)[0]) && batch != (*lengths)[0])) {
      return context.error("sequence_lens should have shape [{}], but has {}", batch,
                           lengths->to_string());
    }
  }
  context.set_shape(0, *input);
  return {};
}

Status evaluate_reverse_sequence(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const auto axes, sequence_axes(context.attributes()));
  const auto [time_axis, batch_axis] = axes;
  const auto lengths = context.ints(1);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Shape strides = strides_of(x.shape());
  Shape box = x.shape();
  box[batch_axis] = 1;
  for (std::int64_t b = 0; b < x.dim(batch_axis); ++b) {
    const std::int64_t length = lengths[static_cast<std::size_t>(b)];
    if (length < 0 || length > x.dim(time_axis)) {
      return context.error("sequence_lens[{}] is {}, outside [0, {}]", b, length,
                           x.dim(time_axis));
    }
    const std::int64_t start = b * strides[batch_axis];
    StridedView view{start, strides};
    view.offset += length * strides[time_axis];
    box[time_axis] = x.dim(time_axis) - length;
    copy_strided(x.dtype(), box, y->mutable_data(), view, x.data(), view);
    box[time_axis] = length;
    StridedView reversed{start + (length - 1) * strides[time_axis], strides};
    reversed.strides[time_axis] = -strides[time_axis];
    copy_strided(x.dtype(), box, y->mutable_data(), {start, strides}, x.data(), reversed);
  }
  return {};
}

Status infer_trilu(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  if (input->rank() < 2) {
    return context.error("expected an input of rank 2 or more, found {}", input->to_string());
  }
  context.set_shape(0, *input);
  return {};
}

Status evaluate_trilu(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto diagonal = context.ints(1);
  if (context.has_input(1) && diagonal.size() != 1) {
    return context.error("k should have 1 element, found {}", diagonal.size());
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  fill_zero(*y);
  const bool is_upper = context.attributes().get_int("upper", 1) != 0;
  const std::int64_t rows = x.dim(x.rank() - 2);
  const std::int64_t columns = x.dim(x.rank() - 1);
  const std::int64_t k =
      std::clamp<std::int64_t>(diagonal.empty() ? 0 : diagonal[0], -rows, columns);
  const std::int64_t all_rows = x.element_count() / columns;
  for (std::int64_t row = 0; row < all_rows; ++row) {
    const std::int64_t edge = row % rows + k;
    const std::int64_t first = is_upper ? std::clamp<std::int64_t>(edge, 0, columns) : 0;
    const std::int64_t last =
        is_upper ? columns : std::clamp<std::int64_t>(edge + 1, 0, columns);
    copy_elements(x.dtype(), y->mutable_data(), row * columns + first, x.data(),
                  row * columns + first, last - first);
  }
  return {};
}

Status infer_compress(InferContext& context) {
  const Shape* condition = context.shape(1);
  if (condition != nullptr && condition->rank() != 1) {
    return context.error("condition should have rank 1, but has shape {}",
                         condition->to_string());
  }
  if (!context.attributes().has("axis")) {
    context.set_shape(0, {kUnknownDim});
    return {};
  }
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const int axis, resolve_axis(context.attributes().get_int("axis", 0), input->rank()));
  Shape output = *input;
  output[axis] = kUnknownDim;
  context.set_shape(0, output);
  return {};
}

Status evaluate_compress(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const auto condition = context.tensor(1).values<std::uint8_t>();
  // Without axis the input is one long axis.
  Shape input{x.element_count()};
  int axis = 0;
  if (context.attributes().has("axis")) {
    input = x.shape();
    axis = *normalize_axis(context.attributes().get_int("axis", 0), x.rank());
  }
  std::vector<std::int64_t> chosen;
  for (std::size_t i = 0; i < condition.size(); ++i) {
    if (condition[i] == 0) continue;
    if (static_cast<std::int64_t>(i) >= input[axis]) {
      return context.error("condition[{}] is true, but the axis has size {}", i, input[axis]);
    }
    chosen.push_back(static_cast<std::int64_t>(i));
  }
  Shape output = input;
  output[axis] = static_cast<Dim>(chosen.size());
  SDX_ASSIGN(Tensor * y, context.allocate(0, output));
  if (y == nullptr) return {};
  const std::int64_t block = input.product(axis + 1, input.rank());
  const std::int64_t outer = input.product(0, axis);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t i : chosen) {
      copy_elements(x.dtype(), y->mutable_data(), to, x.data(), (o * input[axis] + i) * block,
                    block);
      to += block;
    }
  }
  return {};
}

/// The depth of OneHot, when its tensor has one element.
Result<std::int64_t> one_hot_depth(const Tensor& depth) {
  if (depth.element_count() != 1) {
    return failure(Code::InvalidModel, "depth should have 1 element, found {}",
                   depth.element_count());
  }
  const double value = read_real(depth.dtype(), depth.data(), 0);
  if (!(value >= 0 && value < 9e15)) {
    return failure(Code::InvalidModel, "depth {} is out of range", value);
  }
  return static_cast<std::int64_t>(value);
}

Status infer_one_hot(InferContext& context) {
  const Shape* values = context.shape(2);
  if (values != nullptr && (values->rank() != 1 || (is_known((*values)[0]) && (*values)[0] != 2))) {
    return context.error("values should have shape [2], but has {}", values->to_string());
  }
  const Shape* indices = context.shape(0);
  if (indices == nullptr) return {};
  if (!Shape::fits(static_cast<std::size_t>(indices->rank()) + 1)) {
    return context.error("indices of rank {} are above what is possible", indices->rank());
  }
  SDX_ASSIGN(const int axis,
             resolve_axis(context.attributes().get_int("axis", -1), indices->rank() + 1));
  Shape output = *indices;
  output.insert(axis, kUnknownDim);
  if (const Tensor* depth = context.data(1)) {
    SDX_ASSIGN(output[axis], one_hot_depth(*depth));
  }
  context.set_shape(0, output);
  return {};
}

Status evaluate_one_hot(EvalContext& context) {
  const Tensor& indices = context.tensor(0);
  const Tensor& values = context.tensor(2);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const int axis = *normalize_axis(context.attributes().get_int("axis", -1), y->rank());
  const std::int64_t depth = y->dim(axis);
  const std::int64_t inner = y->shape().product(axis + 1, y->rank());
  fill_elements(y->dtype(), y->mutable_data(), 0, y->element_count(), values.data(), 0);
  const std::int64_t count = indices.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const double given = std::trunc(read_real(indices.dtype(), indices.data(), i));
    const bool wraps = given < 0 && context.version() >= 11;
    const double index = wraps ? given + static_cast<double>(depth) : given;
    if (!(index >= 0 && index < static_cast<double>(depth))) continue;
    const std::int64_t position =
        (i / inner * depth + static_cast<std::int64_t>(index)) * inner + i % inner;
    copy_elements(y->dtype(), y->mutable_data(), position, values.data(), 1, 1);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "CenterCropPad", 18, {"TN>T"}, "axes:is", infer_center_crop_pad, evaluate_center_crop_pad},
    {"", "ReverseSequence", 10, {"TI>T"}, "batch_axis:i time_axis:i", infer_reverse_sequence,
     evaluate_reverse_sequence},
    {"", "ReverseSequence", 28, {"TI>T"}, "batch_axis:i time_axis:i", infer_reverse_sequence,
     evaluate_reverse_sequence},
    {"", "Trilu", 14, {"Ti>T"}, "upper:i", infer_trilu, evaluate_trilu},
    {"", "Compress", 9, {"TB>T"}, "axis:i", infer_compress, evaluate_compress, kDataDependentShape},
    {"", "Compress", 11, {"TB>T"}, "axis:i", infer_compress,
     evaluate_compress, kDataDependentShape},
    {"", "Compress", 28, {"TB>T"}, "axis:i", infer_compress,
     evaluate_compress, kDataDependentShape},
    {"", "OneHot", 9, {"TUV>V", kNumeric, kNumeric}, "axis:i", infer_one_hot, evaluate_one_hot},
    {"", "OneHot", 11, {"TUV>V", kNumeric, kNumeric}, "axis:i", infer_one_hot, evaluate_one_hot},
    {"", "OneHot", 28, {"TUV>V", kNumeric, kNumeric}, "axis:i", infer_one_hot, evaluate_one_hot},
    {"com.microsoft", "Trilu", 1, {"Ti>T"}, "upper:i", infer_trilu, evaluate_trilu},
};

}  // namespace

std::span<const OpSchema> select_schemas() { return kRows; }

}  // namespace sardonyx
