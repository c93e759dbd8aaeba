#include <algorithm>
#include <array>
#include <limits>

#include "base/checked.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// Where the permuted axes come from.
Result<std::array<int, Shape::kMaxRank>> permutation(const Attributes& attributes, int rank) {
  std::array<int, Shape::kMaxRank> order{};
  const auto& perm = attributes.get_ints("perm");
  if (!attributes.has("perm")) {
    for (int i = 0; i < rank; ++i) order[static_cast<std::size_t>(i)] = rank - 1 - i;
    return order;
  }
  if (perm.size() != static_cast<std::size_t>(rank)) {
    return failure(Code::InvalidModel, "perm has {} axes, but the input has {}", perm.size(), rank);
  }
  SDX_TRY(resolve_axes(perm, rank).take_status());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    // Unlike other axes, these do not count from the end.
    if (perm[i] < 0) {
      return failure(Code::InvalidModel, "perm holds {}, expected axes from 0", perm[i]);
    }
    order[i] = static_cast<int>(perm[i]);
  }
  return order;
}

Status infer_transpose(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const auto order, permutation(context.attributes(), input->rank()));
  Shape output;
  for (int i = 0; i < input->rank(); ++i) {
    output.push_back((*input)[order[static_cast<std::size_t>(i)]]);
  }
  context.set_shape(0, output);
  return {};
}

Status evaluate_transpose(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(const auto order, permutation(context.attributes(), x.rank()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const Shape own = strides_of(x.shape());
  Shape strides;
  for (int i = 0; i < x.rank(); ++i) strides.push_back(own[order[static_cast<std::size_t>(i)]]);
  copy_strided(x.dtype(), y->shape(), y->mutable_data(), {0, strides_of(y->shape())}, x.data(),
               {0, strides});
  return {};
}

/// Takes over the sizes of `part` where `whole` does not know them yet, but for `axis`.
Status match_concat(const InferContext& context, Shape& whole, const Shape& part, int axis) {
  for (int i = 0; i < whole.rank(); ++i) {
    if (i == axis) continue;
    if (is_known(whole[i]) && is_known(part[i]) && whole[i] != part[i]) {
      return context.error("{} and {} differ in axis {}, which is not the concatenated axis {}",
                           whole.to_string(), part.to_string(), i, axis);
    }
    if (!is_known(whole[i]) && (is_known(part[i]) || whole[i] == kUnknownDim)) whole[i] = part[i];
  }
  return {};
}

Status infer_concat(InferContext& context) {
  const Shape* first = nullptr;
  bool is_complete = true;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    is_complete = is_complete && context.shape(i) != nullptr;
    if (first == nullptr) first = context.shape(i);
  }
  if (first == nullptr) return {};
  SDX_ASSIGN(const int axis,
             resolve_axis(context.attributes().get_int("axis", 1), first->rank()));
  Shape output = *first;
  Dim total = is_complete ? 0 : kUnknownDim;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Shape* part = context.shape(i);
    if (part == nullptr) continue;
    if (part->rank() != output.rank()) {
      return context.error("inputs of different ranks: {} and {}", first->to_string(),
                           part->to_string());
    }
    SDX_TRY(match_concat(context, output, *part, axis));
    if (!is_known(total) || !is_known((*part)[axis])) {
      total = context.input_count() == 1 ? (*part)[axis] : kUnknownDim;
      continue;
    }
    const auto sum = checked_add(total, (*part)[axis]);
    if (!sum) return context.error("the sizes along axis {} do not fit into 64 bits", axis);
    total = *sum;
  }
  output[axis] = total;
  context.set_shape(0, output);
  return {};
}

Status evaluate_concat(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const int axis = *normalize_axis(context.attributes().get_int("axis", 1), y->rank());
  const Shape strides = strides_of(y->shape());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Tensor* part = context.tensor_or_null(i);
    if (part == nullptr) continue;
    copy_strided(y->dtype(), part->shape(), y->mutable_data(), {offset, strides}, part->data(),
                 {0, strides_of(part->shape())});
    offset += part->dim(axis) * strides[axis];
  }
  return {};
}

/// Sizes given to Split, by attribute or by input; nothing when none are given. `is_known` is
/// false when they are given by an input whose elements are not known.
struct SplitSizes {
  bool is_given = false;
  bool is_known = true;
  std::vector<std::int64_t> values;
};

SplitSizes split_sizes(const InferContext& context) {
  if (context.has_input(1)) {
    const Tensor* data = context.data(1);
    if (data == nullptr) return {true, false, {}};
    SplitSizes sizes{true, true, {}};
    for (std::int64_t i = 0; i < data->element_count(); ++i) {
      sizes.values.push_back(static_cast<std::int64_t>(read_real(data->dtype(), data->data(), i)));
    }
    return sizes;
  }
  const auto* given = context.attributes().get_if<std::vector<std::int64_t>>("split");
  if (given == nullptr || given->empty()) return {};
  return {true, true, *given};
}

/// The size of part `i` of `count` when an axis of size `dim` is split evenly.
Result<Dim> even_part(const InferContext& context, Dim dim, std::int64_t count, std::int64_t i) {
  if (!is_known(dim)) return kUnknownDim;
  if (dim % count == 0) return dim / count;
  if (context.version() < 18) {
    return context.error("an axis of size {} cannot be split evenly into {} parts", dim, count);
  }
  const std::int64_t size = dim / count + 1;
  if (size * (count - 1) > dim) {
    return context.error("an axis of size {} is too short for {} parts of {}", dim, count, size);
  }
  return i + 1 < count ? size : dim - size * (count - 1);
}

Status check_split_sizes(const InferContext& context, const std::vector<std::int64_t>& sizes,
                         Dim dim) {
  if (sizes.size() != context.output_count()) {
    return context.error("{} sizes are given for {} outputs", sizes.size(),
                         context.output_count());
  }
  std::int64_t total = 0;
  for (const std::int64_t size : sizes) {
    const auto sum = size < 0 ? std::nullopt : checked_add(total, size);
    if (!sum) return context.error("size {} of a part is out of range", size);
    total = *sum;
  }
  if (is_known(dim) && total != dim) {
    return context.error("the parts have {} elements along an axis of size {}", total, dim);
  }
  return {};
}

Status infer_split(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const int axis, resolve_axis(context.attributes().get_int("axis", 0), input->rank()));
  const SplitSizes sizes = split_sizes(context);
  const auto count = static_cast<std::int64_t>(context.output_count());
  if (sizes.is_given && sizes.is_known) {
    SDX_TRY(check_split_sizes(context, sizes.values, (*input)[axis]));
  }
  if (!sizes.is_given && context.attributes().get_int("num_outputs", count) != count) {
    return context.error("num_outputs is {}, but there are {} outputs",
                         context.attributes().get_int("num_outputs", count), count);
  }
  for (std::int64_t i = 0; i < count; ++i) {
    Shape output = *input;
    const auto index = static_cast<std::size_t>(i);
    if (!sizes.is_given) {
      SDX_ASSIGN(output[axis], even_part(context, (*input)[axis], count, i));
    } else {
      output[axis] = sizes.is_known ? sizes.values[index] : kUnknownDim;
    }
    context.set_shape(index, output);
  }
  return {};
}

Status evaluate_split(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const int axis = *normalize_axis(context.attributes().get_int("axis", 0), x.rank());
  const Shape strides = strides_of(x.shape());
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < context.output_count(); ++i) {
    const auto& shape = context.output_type(i).shape;
    if (!shape) return context.error("the shape of part {} is not known", i);
    SDX_ASSIGN(Tensor * y, context.allocate(i));
    if (y != nullptr) {
      copy_strided(x.dtype(), *shape, y->mutable_data(), {0, strides_of(*shape)}, x.data(),
                   {offset, strides});
    }
    offset += (*shape)[axis] * strides[axis];
  }
  return {};
}

/// Slice along one axis: element i of the output is element begin + i * step of the input.
struct AxisSlice {
  std::int64_t begin = 0;
  std::int64_t step = 1;
  std::int64_t count = 0;
};

/// Python's rules for start:end:step on `dim` elements; step is not 0.
AxisSlice clamp_slice(std::int64_t start, std::int64_t end, std::int64_t step, Dim dim) {
  step = std::max(step, -std::numeric_limits<std::int64_t>::max());
  if (start < 0) start += dim;
  if (end < 0) end += dim;
  if (step > 0) {
    start = std::clamp<std::int64_t>(start, 0, dim);
    end = std::clamp<std::int64_t>(end, 0, dim);
    return {start, step, end > start ? (end - start - 1) / step + 1 : 0};
  }
  start = std::clamp<std::int64_t>(start, -1, dim - 1);
  end = std::clamp<std::int64_t>(end, -1, dim - 1);
  return {start, step, start > end ? (start - end - 1) / -step + 1 : 0};
}

/// What Slice is given; a list is missing when its elements are not known yet.
struct SliceLists {
  std::optional<std::vector<std::int64_t>> starts;
  std::optional<std::vector<std::int64_t>> ends;
  std::optional<std::vector<std::int64_t>> axes;
  std::optional<std::vector<std::int64_t>> steps;
};

/// Lists that are left out have their defaults.
template <typename Context>
SliceLists slice_lists(const Context& context) {
  SliceLists lists;
  if (context.version() < 10) {
    lists.starts = context.attributes().get_ints("starts");
    lists.ends = context.attributes().get_ints("ends");
    lists.axes = context.attributes().get_ints("axes");
  } else {
    lists.starts = context.ints(1);
    lists.ends = context.ints(2);
    if (context.has_input(3)) lists.axes = context.ints(3);
    if (context.has_input(4)) lists.steps = context.ints(4);
  }
  const auto& given = lists.starts ? lists.starts : lists.ends;
  const std::size_t count = given ? given->size() : 0;
  const bool has_axes = context.version() < 10 ? lists.axes && !lists.axes->empty()
                                               : context.has_input(3);
  if (!has_axes && (lists.starts || lists.ends)) {
    lists.axes.emplace();
    for (std::size_t i = 0; i < count; ++i) lists.axes->push_back(static_cast<std::int64_t>(i));
  }
  if (!context.has_input(4) && lists.axes) {
    lists.steps = std::vector<std::int64_t>(lists.axes->size(), 1);
  }
  return lists;
}

Status check_slice_lists(const SliceLists& lists) {
  const std::size_t count = lists.axes->size();
  const auto check = [&](const char* name, const std::optional<std::vector<std::int64_t>>& list) {
    if (!list || list->size() == count) return Status();
    return failure(Code::InvalidModel, "{} has {} elements, but there are {} axes", name,
                   list->size(), count);
  };
  SDX_TRY(check("starts", lists.starts));
  SDX_TRY(check("ends", lists.ends));
  SDX_TRY(check("steps", lists.steps));
  if (lists.steps && std::find(lists.steps->begin(), lists.steps->end(), 0) != lists.steps->end()) {
    return failure(Code::InvalidModel, "a step is 0");
  }
  return {};
}

/// The size of `dim` after the slice; a slice that takes everything keeps a symbol.
Dim sliced_dim(const SliceLists& lists, std::size_t i, Dim dim) {
  if (!lists.starts || !lists.ends || !lists.steps) return kUnknownDim;
  const std::int64_t start = (*lists.starts)[i];
  const std::int64_t end = (*lists.ends)[i];
  const std::int64_t step = (*lists.steps)[i];
  if (is_known(dim)) return clamp_slice(start, end, step, dim).count;
  const bool takes_all =
      start == 0 && step == 1 && end >= std::numeric_limits<std::int32_t>::max();
  return takes_all ? dim : kUnknownDim;
}

Status infer_slice(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  const SliceLists lists = slice_lists(context);
  if (!lists.axes) {
    context.set_shape(0, Shape::filled(input->rank(), kUnknownDim));
    return {};
  }
  SDX_TRY(check_slice_lists(lists));
  SDX_TRY(resolve_axes(*lists.axes, input->rank()).take_status());
  Shape output = *input;
  for (std::size_t i = 0; i < lists.axes->size(); ++i) {
    const int axis = *normalize_axis((*lists.axes)[i], input->rank());
    output[axis] = sliced_dim(lists, i, (*input)[axis]);
  }
  context.set_shape(0, output);
  return {};
}

Status evaluate_slice(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  const SliceLists lists = slice_lists(context);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  StridedView view{0, strides_of(x.shape())};
  for (std::size_t i = 0; i < lists.axes->size(); ++i) {
    const int axis = *normalize_axis((*lists.axes)[i], x.rank());
    const AxisSlice slice = clamp_slice((*lists.starts)[i], (*lists.ends)[i], (*lists.steps)[i],
                                        x.dim(axis));
    if (slice.count == 0) return {};
    view.offset += slice.begin * view.strides[axis];
    // A step that is never taken may be anything.
    view.strides[axis] = slice.count > 1 ? view.strides[axis] * slice.step : 0;
  }
  copy_strided(x.dtype(), y->shape(), y->mutable_data(), {0, strides_of(y->shape())}, x.data(),
               view);
  return {};
}

/// Repeats along each axis; nothing when they are not known. Version 1 names one axis.
Result<std::optional<Shape>> tile_repeats(const InferContext& context, int rank) {
  std::optional<Shape> repeats;
  if (context.version() < 6) {
    const Tensor* tiles = context.data(1);
    const Tensor* axes = context.data(2);
    if (tiles == nullptr || axes == nullptr) return repeats;
    if (tiles->element_count() != 1 || axes->element_count() != 1) {
      return context.error("tiles and axis should have one element each");
    }
    const auto first = [](const Tensor& tensor) {
      return static_cast<std::int64_t>(read_real(tensor.dtype(), tensor.data(), 0));
    };
    SDX_ASSIGN(const int axis, resolve_axis(first(*axes), rank));
    repeats = Shape::filled(rank, 1);
    (*repeats)[axis] = first(*tiles);
  } else if (const auto given = context.ints(1)) {
    if (given->size() != static_cast<std::size_t>(rank)) {
      return context.error("{} repeats are given for {} axes", given->size(), rank);
    }
    repeats = Shape(*given);
  }
  if (repeats && !repeats->is_static()) {
    return context.error("a repeat of {} is negative", repeats->to_string());
  }
  return repeats;
}

Status infer_tile(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const auto repeats, tile_repeats(context, input->rank()));
  Shape output = *input;
  for (int axis = 0; axis < output.rank(); ++axis) {
    if (!repeats || (!is_known(output[axis]) && (*repeats)[axis] != 1)) {
      output[axis] = repeats && (*repeats)[axis] == 0 ? 0 : kUnknownDim;
    } else if (is_known(output[axis])) {
      const auto size = checked_multiply(output[axis], (*repeats)[axis]);
      if (!size) return context.error("{} times {} does not fit", output[axis], (*repeats)[axis]);
      output[axis] = *size;
    }
  }
  context.set_shape(0, output);
  return {};
}

/// Puts the input into the corner of the output, then doubles it along each axis, last one first.
Status evaluate_tile(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const Shape strides = strides_of(y->shape());
  std::byte* data = y->mutable_data();
  copy_strided(x.dtype(), x.shape(), data, {0, strides}, x.data(), {0, strides_of(x.shape())});
  Shape box = x.shape();
  while (!box.empty()) {
    const int axis = box.rank() - 1;
    const std::int64_t size = x.dim(axis) * strides[axis];
    const std::int64_t whole = y->dim(axis) * strides[axis];
    Shape view = strides;
    while (view.rank() > box.rank()) view.erase(view.rank() - 1);
    view[axis] = 1;
    for (std::int64_t done = size; done < whole;) {
      const std::int64_t more = std::min(done, whole - done);
      box[axis] = more;
      copy_strided(x.dtype(), box, data, {done, view}, data, {0, view});
      done += more;
    }
    box.erase(axis);
  }
  return {};
}

Result<std::int64_t> block_size(const InferContext& context, const Shape& input) {
  const std::int64_t block = context.attributes().get_int("blocksize", 0);
  if (block < 1 || block > (std::int64_t{1} << 30)) {
    return context.error("blocksize {} is outside [1, 2^30]", block);
  }
  if (input.rank() != 4) {
    return context.error("expected an input [N,C,H,W], found {}", input.to_string());
  }
  const std::string mode = context.attributes().get_string("mode", "DCR");
  if (mode != "DCR" && mode != "CRD") {
    return context.error("mode '{}' is neither DCR nor CRD", mode);
  }
  return block;
}

Result<Dim> times(const InferContext& context, Dim dim, std::int64_t factor) {
  if (!is_known(dim)) return factor == 1 ? dim : kUnknownDim;
  const auto product = checked_multiply(dim, factor);
  if (!product) return context.error("{} times {} does not fit into 64 bits", dim, factor);
  return *product;
}

Result<Dim> divided(const InferContext& context, Dim dim, std::int64_t divisor) {
  if (!is_known(dim)) return divisor == 1 ? dim : kUnknownDim;
  if (dim % divisor != 0) return context.error("{} is no multiple of {}", dim, divisor);
  return dim / divisor;
}

Status infer_depth_to_space(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const std::int64_t block, block_size(context, *input));
  SDX_ASSIGN(const Dim channels, divided(context, (*input)[1], block * block));
  SDX_ASSIGN(const Dim height, times(context, (*input)[2], block));
  SDX_ASSIGN(const Dim width, times(context, (*input)[3], block));
  context.set_shape(0, {(*input)[0], channels, height, width});
  return {};
}

Status infer_space_to_depth(InferContext& context) {
  const Shape* input = context.shape(0);
  if (input == nullptr) return {};
  SDX_ASSIGN(const std::int64_t block, block_size(context, *input));
  SDX_ASSIGN(const Dim channels, times(context, (*input)[1], block * block));
  SDX_ASSIGN(const Dim height, divided(context, (*input)[2], block));
  SDX_ASSIGN(const Dim width, divided(context, (*input)[3], block));
  context.set_shape(0, {(*input)[0], channels, height, width});
  return {};
}

/// The strides of `deep` [N, C*b*b, H, W] seen as [N, C, H, b, W, b].
Shape block_strides(const Shape& deep, std::int64_t block, const std::string& mode) {
  const Shape s = strides_of(deep);
  const std::int64_t channels = deep[1] / (block * block);
  if (mode == "CRD") return {s[0], s[1] * block * block, s[2], s[1] * block, s[3], s[1]};
  return {s[0], s[1], s[2], s[1] * channels * block, s[3], s[1] * channels};
}

/// Copies between the deep and the flat arrangement; `is_deep` tells which one the input has.
Status evaluate_blocks(EvalContext& context, bool is_deep) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const Shape& deep = is_deep ? x.shape() : y->shape();
  const std::int64_t block = context.attributes().get_int("blocksize", 1);
  const Shape box{deep[0], deep[1] / (block * block), deep[2], block, deep[3], block};
  const Shape ours = block_strides(deep, block, context.attributes().get_string("mode", "DCR"));
  const Shape flat = strides_of(box);
  copy_strided(x.dtype(), box, y->mutable_data(), {0, is_deep ? flat : ours}, x.data(),
               {0, is_deep ? ours : flat});
  return {};
}

Status evaluate_depth_to_space(EvalContext& context) { return evaluate_blocks(context, true); }
Status evaluate_space_to_depth(EvalContext& context) { return evaluate_blocks(context, false); }

constexpr OpSchema kRows[] = {
    {"", "Transpose", 1, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Transpose", 13, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Transpose", 21, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Transpose", 23, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Transpose", 24, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Transpose", 25, {"T>T"}, "perm:is", infer_transpose, evaluate_transpose},
    {"", "Concat", 1, {"T*>T", kFloats}, "axis:i", infer_concat, evaluate_concat},
    {"", "Concat", 4, {"T*>T"}, "axis:i!", infer_concat, evaluate_concat},
    {"", "Concat", 11, {"T*>T"}, "axis:i!", infer_concat, evaluate_concat},
    {"", "Concat", 13, {"T*>T"}, "axis:i!", infer_concat, evaluate_concat},
    {"", "Split", 1, {"Tt>T*", kFloats}, "axis:i split:is", infer_split, evaluate_split},
    {"", "Split", 2, {"T>T*"}, "axis:i split:is", infer_split, evaluate_split},
    {"", "Split", 11, {"T>T*"}, "axis:i split:is", infer_split, evaluate_split},
    {"", "Split", 13, {"Ti>T*"}, "axis:i", infer_split, evaluate_split},
    {"", "Split", 18, {"Ti>T*"}, "axis:i num_outputs:i", infer_split, evaluate_split},
    {"", "Slice", 1, {"T>T"}, "axes:is ends:is! starts:is!", infer_slice, evaluate_slice},
    {"", "Slice", 10, {"TNNnn>T"}, "", infer_slice, evaluate_slice},
    {"", "Slice", 11, {"TNNnn>T"}, "", infer_slice, evaluate_slice},
    {"", "Slice", 13, {"TNNnn>T"}, "", infer_slice, evaluate_slice},
    {"", "Tile", 1, {"TTT>T", kFloats}, "", infer_tile, evaluate_tile},
    {"", "Tile", 6, {"TI>T"}, "", infer_tile, evaluate_tile},
    {"", "Tile", 13, {"TI>T"}, "", infer_tile, evaluate_tile},
    {"", "DepthToSpace", 1, {"T>T"}, "blocksize:i!", infer_depth_to_space, evaluate_depth_to_space},
    {"", "DepthToSpace", 11, {"T>T"}, "blocksize:i! mode:s", infer_depth_to_space,
     evaluate_depth_to_space},
    {"", "DepthToSpace", 13, {"T>T"}, "blocksize:i! mode:s", infer_depth_to_space,
     evaluate_depth_to_space},
    {"", "DepthToSpace", 28, {"T>T"}, "blocksize:i! mode:s", infer_depth_to_space,
     evaluate_depth_to_space},
    {"", "SpaceToDepth", 1, {"T>T"}, "blocksize:i!", infer_space_to_depth, evaluate_space_to_depth},
    {"", "SpaceToDepth", 13, {"T>T"}, "blocksize:i!", infer_space_to_depth,
     evaluate_space_to_depth},
    {"", "SpaceToDepth", 28, {"T>T"}, "blocksize:i! mode:s", infer_space_to_depth,
     evaluate_space_to_depth},
};

}  // namespace

std::span<const OpSchema> layout_schemas() { return kRows; }

}  // namespace sardonyx
