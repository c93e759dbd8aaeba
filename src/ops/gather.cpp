#include <algorithm>

#include "ir/dtype_switch.h"
#include "ir/element.h"
#include "ops/axes.h"
#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

/// `index` counted from the front of `size` elements.
Result<std::int64_t> resolve_index(std::int64_t index, std::int64_t size) {
  if (index < -size || index >= size) {
    return failure(Code::Runtime, "index {} is outside [{}, {})", index, -size, size);
  }
  return index < 0 ? index + size : index;
}

Result<int> axis_of(const InferContext& context, const Shape& shape) {
  return resolve_axis(context.attributes().get_int("axis", 0), shape.rank());
}

int axis_of(const EvalContext& context, const Tensor& tensor) {
  return *normalize_axis(context.attributes().get_int("axis", 0), tensor.rank());
}

Status infer_gather(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data == nullptr) return {};
  SDX_ASSIGN(const int axis, axis_of(context, *data));
  if (indices == nullptr) return {};
  if (!Shape::fits(static_cast<std::size_t>(data->rank() + indices->rank() - 1))) {
    return context.error("{} with {} in place of an axis is above rank {}", data->to_string(),
                         indices->to_string(), Shape::kMaxRank);
  }
  Shape output;
  for (int i = 0; i < axis; ++i) output.push_back((*data)[i]);
  for (const Dim dim : *indices) output.push_back(dim);
  for (int i = axis + 1; i < data->rank(); ++i) output.push_back((*data)[i]);
  context.set_shape(0, output);
  return {};
}

Status evaluate_gather(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const int axis = axis_of(context, data);
  const std::int64_t size = data.dim(axis);
  std::vector<std::int64_t> indices = context.ints(1);
  for (std::int64_t& index : indices) {
    SDX_ASSIGN(index, resolve_index(index, size));
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t block = data.shape().product(axis + 1, data.rank());
  const std::int64_t outer = data.shape().product(0, axis);
  std::int64_t to = 0;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const std::int64_t index : indices) {
      copy_elements(data.dtype(), y->mutable_data(), to, data.data(), (o * size + index) * block,
                    block);
      to += block;
    }
  }
  return {};
}

/// Refuses indices that cannot fit data: other ranks, or longer axes than data's but for `axis`.
Status check_element_indices(const InferContext& context, const Shape& data,
                             const Shape& indices, int axis) {
  bool fits = indices.rank() == data.rank();
  for (int i = 0; fits && i < data.rank(); ++i) {
    fits = i == axis || !is_known(data[i]) || !is_known(indices[i]) || indices[i] <= data[i];
  }
  if (fits) return {};
  return context.error("indices {} do not fit data {} along axis {}", indices.to_string(),
                       data.to_string(), axis);
}

Status infer_gather_elements(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data != nullptr) {
    SDX_ASSIGN(const int axis, axis_of(context, *data));
    if (indices != nullptr) SDX_TRY(check_element_indices(context, *data, *indices, axis));
  }
  if (indices != nullptr) context.set_shape(0, *indices);
  return {};
}

/// The steps through data for a walk over the indices: none along `axis`.
Shape element_strides(const Tensor& data, int axis) {
  Shape strides = strides_of(data.shape());
  strides[axis] = 0;
  return strides;
}

Status evaluate_gather_elements(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  const int axis = axis_of(context, data);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t step = strides_of(data.shape())[axis];
  BoxWalker walker(indices.shape(), element_strides(data, axis), strides_of(indices.shape()));
  do {
    const std::int64_t given = read_int(indices.dtype(), indices.data(), walker.second());
    SDX_ASSIGN(const std::int64_t index, resolve_index(given, data.dim(axis)));
    copy_elements(data.dtype(), y->mutable_data(), walker.second(), data.data(),
                  walker.first() + index * step, 1);
  } while (walker.next());
  return {};
}

/// Number of coordinates in a row of ND indices, checked against the data's rank.
Result<int> coordinate_count(const InferContext& context, const Shape& data, const Shape& indices,
                             std::int64_t batch_dims) {
  if (indices.rank() == 0) return context.error("indices should have rank 1 or more");
  if (batch_dims < 0 || batch_dims >= std::min(data.rank(), indices.rank())) {
    return context.error("batch_dims {} is outside [0, {})", batch_dims,
                         std::min(data.rank(), indices.rank()));
  }
  const Dim count = indices[indices.rank() - 1];
  if (is_known(count) && (count < 1 || count > data.rank() - batch_dims)) {
    return context.error("rows of {} coordinates do not fit data {} with {} batch axes", count,
                         data.to_string(), batch_dims);
  }
  return is_known(count) ? static_cast<int>(count) : -1;
}

Status infer_gather_nd(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  if (data == nullptr || indices == nullptr) return {};
  const std::int64_t batch_dims = context.attributes().get_int("batch_dims", 0);
  SDX_ASSIGN(const int count, coordinate_count(context, *data, *indices, batch_dims));
  if (count < 0) return {};
  const int first = static_cast<int>(batch_dims) + count;
  if (!Shape::fits(static_cast<std::size_t>(indices->rank() - 1 + data->rank() - first))) {
    return context.error("the output's rank is above {}", Shape::kMaxRank);
  }
  for (int i = 0; i < static_cast<int>(batch_dims); ++i) {
    if (is_known((*data)[i]) && is_known((*indices)[i]) && (*data)[i] != (*indices)[i]) {
      return context.error("data {} and indices {} differ in batch axis {}", data->to_string(),
                           indices->to_string(), i);
    }
  }
  Shape output;
  for (int i = 0; i + 1 < indices->rank(); ++i) output.push_back((*indices)[i]);
  for (int i = first; i < data->rank(); ++i) output.push_back((*data)[i]);
  context.set_shape(0, output);
  return {};
}

/// The offset in elements of the block that a row of coordinates names.
Result<std::int64_t> block_offset(const Tensor& indices, std::int64_t row, std::int64_t count,
                                  const Shape& shape, const Shape& strides, int first_axis) {
  std::int64_t offset = 0;
  for (std::int64_t c = 0; c < count; ++c) {
    const int axis = first_axis + static_cast<int>(c);
    const std::int64_t given = read_int(indices.dtype(), indices.data(), row * count + c);
    SDX_ASSIGN(const std::int64_t index, resolve_index(given, shape[axis]));
    offset += index * strides[axis];
  }
  return offset;
}

Status evaluate_gather_nd(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const int batch_dims = static_cast<int>(context.attributes().get_int("batch_dims", 0));
  const std::int64_t count = indices.dim(indices.rank() - 1);
  const Shape strides = strides_of(data.shape());
  const std::int64_t rows = indices.shape().product(0, indices.rank() - 1);
  const std::int64_t batches = data.shape().product(0, batch_dims);
  const std::int64_t block =
      data.shape().product(batch_dims + static_cast<int>(count), data.rank());
  const std::int64_t batch_size = data.shape().product(batch_dims, data.rank());
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t batch = row / (rows / batches);
    SDX_ASSIGN(const std::int64_t offset,
               block_offset(indices, row, count, data.shape(), strides, batch_dims));
    copy_elements(data.dtype(), y->mutable_data(), row * block, data.data(),
                  batch * batch_size + offset, block);
  }
  return {};
}

/// Combines `count` neighbouring elements of `to` with those of `from`.
using CombineFn = void (*)(std::byte* to, std::int64_t to_index, const std::byte* from,
                           std::int64_t from_index, std::int64_t count);

enum class Reduction { None, Add, Multiply, Max, Min };

template <typename T, Reduction kReduction>
T combine(T a, T b) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(combine<float, kReduction>(to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(combine<float, kReduction>(to_float(a), to_float(b)));
  } else if constexpr (std::is_same_v<T, bool>) {
    return kReduction == Reduction::Add || kReduction == Reduction::Max ? a || b : a && b;
  } else if constexpr (kReduction == Reduction::Max || kReduction == Reduction::Min) {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a + b;
    }
    return kReduction == Reduction::Max ? std::max(a, b) : std::min(a, b);
  } else if constexpr (std::is_integral_v<T>) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    return static_cast<T>(kReduction == Reduction::Add ? x + y : x * y);
  } else {
    return kReduction == Reduction::Add ? a + b : a * b;
  }
}

template <typename T, Reduction kReduction>
void combine_run(std::byte* to, std::int64_t to_index, const std::byte* from,
                 std::int64_t from_index, std::int64_t count) {
  auto* target = reinterpret_cast<T*>(to) + to_index;
  const auto* source = reinterpret_cast<const T*>(from) + from_index;
  for (std::int64_t i = 0; i < count; ++i) target[i] = combine<T, kReduction>(target[i], source[i]);
}

template <Reduction kReduction>
CombineFn combiner(DType dtype) {
  CombineFn found = nullptr;
  const auto pick = [&]<typename T>() { found = combine_run<T, kReduction>; };
  if (dtype == DType::Bool) {
    found = combine_run<bool, kReduction>;
  } else {
    switch_numeric(dtype, pick);
  }
  return found;
}

/// How updates meet what is there; a null function stands for taking their place.
struct Combiner {
  CombineFn run = nullptr;
};

Result<Combiner> scatter_combiner(const EvalContext& context, DType dtype) {
  const std::string reduction = context.attributes().get_string("reduction", "none");
  if (reduction == "none") return Combiner{};
  CombineFn found = nullptr;
  if (reduction == "add") found = combiner<Reduction::Add>(dtype);
  if (reduction == "mul") found = combiner<Reduction::Multiply>(dtype);
  if (reduction == "max") found = combiner<Reduction::Max>(dtype);
  if (reduction == "min") found = combiner<Reduction::Min>(dtype);
  if (found == nullptr) {
    return context.error("reduction '{}' is not possible on tensor({})", reduction,
                         dtype_name(dtype));
  }
  return Combiner{found};
}

Status infer_scatter_elements(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* updates = context.shape(2);
  if (data == nullptr) return {};
  SDX_ASSIGN(const int axis, axis_of(context, *data));
  if (indices != nullptr) SDX_TRY(check_element_indices(context, *data, *indices, axis));
  if (indices != nullptr && updates != nullptr && indices->is_static() && updates->is_static() &&
      !(*indices == *updates)) {
    return context.error("indices {} and updates {} should have one shape", indices->to_string(),
                         updates->to_string());
  }
  context.set_shape(0, *data);
  return {};
}

Status evaluate_scatter_elements(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  const Tensor& updates = context.tensor(2);
  SDX_ASSIGN(const Combiner merge, scatter_combiner(context, data.dtype()));
  const int axis = axis_of(context, data);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  copy_elements(data.dtype(), y->mutable_data(), 0, data.data(), 0, data.element_count());
  if (indices.element_count() == 0) return {};
  const std::int64_t step = strides_of(data.shape())[axis];
  BoxWalker walker(indices.shape(), element_strides(data, axis), strides_of(indices.shape()));
  do {
    const std::int64_t given = read_int(indices.dtype(), indices.data(), walker.second());
    SDX_ASSIGN(const std::int64_t index, resolve_index(given, data.dim(axis)));
    const std::int64_t to = walker.first() + index * step;
    if (merge.run != nullptr) {
      merge.run(y->mutable_data(), to, updates.data(), walker.second(), 1);
    } else {
      copy_elements(data.dtype(), y->mutable_data(), to, updates.data(), walker.second(), 1);
    }
  } while (walker.next());
  return {};
}

Status infer_scatter_nd(InferContext& context) {
  const Shape* data = context.shape(0);
  const Shape* indices = context.shape(1);
  const Shape* updates = context.shape(2);
  if (data == nullptr) return {};
  context.set_shape(0, *data);
  if (indices == nullptr) return {};
  SDX_ASSIGN(const int count, coordinate_count(context, *data, *indices, 0));
  if (updates == nullptr || count < 0 || !updates->is_static()) return {};
  Shape expected;
  for (int i = 0; i + 1 < indices->rank(); ++i) expected.push_back((*indices)[i]);
  if (indices->rank() - 1 + data->rank() - count > Shape::kMaxRank) {
    return context.error("the updates' rank is above {}", Shape::kMaxRank);
  }
  for (int i = count; i < data->rank(); ++i) expected.push_back((*data)[i]);
  if (expected.is_static() && !(expected == *updates)) {
    return context.error("updates should have shape {}, but have {}", expected.to_string(),
                         updates->to_string());
  }
  return {};
}

Status evaluate_scatter_nd(EvalContext& context) {
  const Tensor& data = context.tensor(0);
  const Tensor& indices = context.tensor(1);
  const Tensor& updates = context.tensor(2);
  SDX_ASSIGN(const Combiner merge, scatter_combiner(context, data.dtype()));
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  copy_elements(data.dtype(), y->mutable_data(), 0, data.data(), 0, data.element_count());
  if (updates.element_count() == 0) return {};
  const std::int64_t count = indices.dim(indices.rank() - 1);
  const Shape strides = strides_of(data.shape());
  const std::int64_t rows = indices.shape().product(0, indices.rank() - 1);
  const std::int64_t block = data.shape().product(static_cast<int>(count), data.rank());
  for (std::int64_t row = 0; row < rows; ++row) {
    SDX_ASSIGN(const std::int64_t to,
               block_offset(indices, row, count, data.shape(), strides, 0));
    if (merge.run != nullptr) {
      merge.run(y->mutable_data(), to, updates.data(), row * block, block);
    } else {
      copy_elements(data.dtype(), y->mutable_data(), to, updates.data(), row * block, block);
    }
  }
  return {};
}

Result<int> cache_axis(const Attributes& attributes, int rank) {
  SDX_ASSIGN(const int axis, resolve_axis(attributes.get_int("axis", -2), rank));
  if (axis == 0) return failure(Code::InvalidModel, "axis should not be the batch axis 0");
  const std::string mode = attributes.get_string("mode", "linear");
  if (mode != "linear" && mode != "circular") {
    return failure(Code::InvalidModel, "mode '{}' is neither linear nor circular", mode);
  }
  return axis;
}

Status infer_tensor_scatter(InferContext& context) {
  const Shape* cache = context.shape(0);
  const Shape* update = context.shape(1);
  if (cache == nullptr) return {};
  SDX_ASSIGN(const int axis, cache_axis(context.attributes(), cache->rank()));
  context.set_shape(0, *cache);
  if (update == nullptr) return {};
  bool fits = update->rank() == cache->rank();
  for (int i = 0; fits && i < cache->rank(); ++i) {
    const Dim ours = (*cache)[i];
    const Dim theirs = (*update)[i];
    if (!is_known(ours) || !is_known(theirs)) continue;
    fits = i == axis ? theirs <= ours : theirs == ours;
  }
  const Shape* indices = context.shape(2);
  if (indices != nullptr && indices->is_static() && is_known((*cache)[0])) {
    fits = fits && *indices == Shape{(*cache)[0]};
  }
  if (fits) return {};
  return context.error("an update {} (at {}) does not fit a cache {} along axis {}",
                       update->to_string(), indices != nullptr ? indices->to_string() : "[]",
                       cache->to_string(), axis);
}

Status evaluate_tensor_scatter(EvalContext& context) {
  const Tensor& cache = context.tensor(0);
  const Tensor& update = context.tensor(1);
  const auto starts = context.ints(2);
  SDX_ASSIGN(const int axis, cache_axis(context.attributes(), cache.rank()));
  const bool is_circular = context.attributes().get_string("mode", "linear") == "circular";
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  copy_elements(cache.dtype(), y->mutable_data(), 0, cache.data(), 0, cache.element_count());
  if (update.element_count() == 0) return {};
  const std::int64_t block = cache.shape().product(axis + 1, cache.rank());
  const std::int64_t prefixes = cache.shape().product(0, axis);
  const std::int64_t per_batch = prefixes / cache.dim(0);
  const std::int64_t length = cache.dim(axis);
  const std::int64_t count = update.dim(axis);
  for (std::int64_t prefix = 0; prefix < prefixes; ++prefix) {
    const auto batch = static_cast<std::size_t>(prefix / per_batch);
    const std::int64_t start = starts.empty() ? 0 : starts[batch];
    if (start < 0 || (!is_circular && start > length - count)) {
      return context.error("write_indices[{}] is {}, but {} elements go into {}", batch, start,
                           count, length);
    }
    const std::int64_t first = start % length;
    const std::int64_t straight = std::min(count, length - first);
    copy_elements(cache.dtype(), y->mutable_data(), (prefix * length + first) * block,
                  update.data(), prefix * count * block, straight * block);
    copy_elements(cache.dtype(), y->mutable_data(), prefix * length * block, update.data(),
                  (prefix * count + straight) * block, (count - straight) * block);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Gather", 1, {"TN>T"}, "axis:i", infer_gather, evaluate_gather},
    {"", "Gather", 11, {"TN>T"}, "axis:i", infer_gather, evaluate_gather},
    {"", "Gather", 13, {"TN>T"}, "axis:i", infer_gather, evaluate_gather},
    {"", "GatherElements", 11, {"TN>T"}, "axis:i", infer_gather_elements, evaluate_gather_elements},
    {"", "GatherElements", 13, {"TN>T"}, "axis:i", infer_gather_elements, evaluate_gather_elements},
    {"", "GatherND", 11, {"TI>T"}, "", infer_gather_nd, evaluate_gather_nd},
    {"", "GatherND", 12, {"TI>T"}, "batch_dims:i", infer_gather_nd, evaluate_gather_nd},
    {"", "GatherND", 13, {"TI>T"}, "batch_dims:i", infer_gather_nd, evaluate_gather_nd},
    {"", "Scatter", 9, {"TNT>T"}, "axis:i", infer_scatter_elements, evaluate_scatter_elements},
    {"", "Scatter", 11, {"TNT>T"}, "axis:i", infer_scatter_elements,
     evaluate_scatter_elements, kDeprecated},
    {"", "ScatterElements", 11, {"TNT>T"}, "axis:i", infer_scatter_elements,
     evaluate_scatter_elements},
    {"", "ScatterElements", 13, {"TNT>T"}, "axis:i", infer_scatter_elements,
     evaluate_scatter_elements},
    {"", "ScatterElements", 16, {"TNT>T"}, "axis:i reduction:s", infer_scatter_elements,
     evaluate_scatter_elements},
    {"", "ScatterElements", 18, {"TNT>T"}, "axis:i reduction:s", infer_scatter_elements,
     evaluate_scatter_elements},
    {"", "ScatterND", 11, {"TIT>T"}, "", infer_scatter_nd, evaluate_scatter_nd},
    {"", "ScatterND", 13, {"TIT>T"}, "", infer_scatter_nd, evaluate_scatter_nd},
    {"", "ScatterND", 16, {"TIT>T"}, "reduction:s", infer_scatter_nd, evaluate_scatter_nd},
    {"", "ScatterND", 18, {"TIT>T"}, "reduction:s", infer_scatter_nd, evaluate_scatter_nd},
    {"", "TensorScatter", 24, {"TTi>T"}, "axis:i mode:s", infer_tensor_scatter,
     evaluate_tensor_scatter},
    {"com.microsoft", "GatherND", 1, {"TN>T"}, "batch_dims:i", infer_gather_nd,
     evaluate_gather_nd},
};

}  // namespace

std::span<const OpSchema> gather_schemas() { return kRows; }

}  // namespace sardonyx
