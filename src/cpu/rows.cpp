#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "cpu/node_kernel.h"
#include "cpu/registry.h"
#include "kernels/elementwise.h"

namespace sardonyx {

namespace {

constexpr std::int64_t kChunk = 1 << 13;

std::int64_t row_grain(std::int64_t columns) {
  return std::max<std::int64_t>(1, kChunk / std::max<std::int64_t>(1, columns));
}

/// Softmax over the last axis, or over everything from the axis on for the old versions.
class SoftmaxKernel final : public NodeKernel {
 public:
  explicit SoftmaxKernel(const KernelRequest& request) : NodeKernel(request) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    if (x.element_count() == 0) return {};
    const bool is_flat = schema().since < 13;
    const std::int64_t given = attributes().get_int("axis", is_flat ? 1 : -1);
    const auto axis = normalize_axis(given, x.rank());
    // The old versions take axis 1 of a vector: rows of one element.
    const int first = !is_flat ? x.rank() - 1 : axis ? *axis : x.rank();
    const std::int64_t columns = x.shape().product(first, x.rank());
    const float* from = x.values<float>().data();
    float* to = context.output(0).mutable_values<float>().data();
    context.pool().parallel_for(
        x.element_count() / columns, row_grain(columns), [&](std::int64_t begin, std::int64_t end) {
          kernels::elementwise_table().softmax(from + begin * columns, to + begin * columns,
                                               end - begin, columns);
        });
    return {};
  }
};

Result<std::unique_ptr<Kernel>> create_softmax(const KernelRequest& request) {
  const Shape* x = request.shape(0);
  if (request.dtype(0) != DType::Float32 || x == nullptr || x->rank() == 0) {
    return std::unique_ptr<Kernel>();
  }
  if (request.version() >= 13) {
    const auto axis = normalize_axis(request.attributes().get_int("axis", -1), x->rank());
    if (!axis || *axis != x->rank() - 1) return std::unique_ptr<Kernel>();
  }
  return std::unique_ptr<Kernel>(std::make_unique<SoftmaxKernel>(request));
}

/// Layer and root-mean-square normalisation over the last axes.
class NormKernel final : public NodeKernel {
 public:
  struct Form {
    std::size_t scale = 1;
    std::size_t bias = 2;
    bool subtracts_mean = true;
    float epsilon = 1e-5F;
  };
  NormKernel(const KernelRequest& request, Form form) : NodeKernel(request), form_(form) {}

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    if (x.element_count() == 0) return {};
    kernels::NormArgs args;
    args.columns = context.input(form_.scale).element_count();
    args.scale = context.input(form_.scale).values<float>().data();
    args.bias =
        context.has_input(form_.bias) ? context.input(form_.bias).values<float>().data() : nullptr;
    args.epsilon = attributes().get_float("epsilon", form_.epsilon);
    args.subtracts_mean = form_.subtracts_mean;
    const float* from = x.values<float>().data();
    float* to = context.output(0).mutable_values<float>().data();
    context.pool().parallel_for(x.element_count() / args.columns, row_grain(args.columns),
                                [&](std::int64_t begin, std::int64_t end) {
                                  kernels::elementwise_table().normalize(
                                      args, from + begin * args.columns, to + begin * args.columns,
                                      end - begin);
                                });
    return {};
  }

 private:
  Form form_;
};

/// Whether a shape is `tail`, axes of size 1 before it aside.
bool is_like(const Shape& shape, const Shape& tail) {
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int at = axis - shape.rank() + tail.rank();
    if (shape[axis] != (at < 0 ? 1 : tail[at])) return false;
  }
  return shape.rank() >= tail.rank();
}

/// Whether the scale covers exactly the axes from `axis` on.
bool scale_fits(const KernelRequest& request, std::int64_t axis) {
  const Shape* x = request.shape(0);
  const Shape* scale = request.shape(1);
  if (x == nullptr || scale == nullptr || !scale->is_static()) return false;
  const auto first = normalize_axis(axis, x->rank());
  if (!first) return false;
  Shape tail;
  for (int i = *first; i < x->rank(); ++i) tail.push_back((*x)[i]);
  if (!tail.is_static()) return false;
  const Shape* bias = request.shape(2);
  const bool bias_fits = !request.has_input(2) || (bias != nullptr && is_like(*bias, tail));
  return is_like(*scale, tail) && bias_fits && scale->element_count() != 0;
}

template <bool kSubtractsMean>
Result<std::unique_ptr<Kernel>> create_norm(const KernelRequest& request) {
  const bool fits = request.dtype(0) == DType::Float32 && request.dtype(1) == DType::Float32 &&
                    !request.has_output(1) && !request.has_output(2) &&
                    scale_fits(request, request.attributes().get_int("axis", -1));
  if (!fits) return std::unique_ptr<Kernel>();
  NormKernel::Form form;
  form.subtracts_mean = kSubtractsMean;
  return std::unique_ptr<Kernel>(std::make_unique<NormKernel>(request, form));
}

/// Reductions over the last axes (rows) or over axes before the last (columns).
class ReduceKernel final : public NodeKernel {
 public:
  ReduceKernel(const KernelRequest& request, kernels::ReduceKind kind, bool is_mean)
      : NodeKernel(request), kind_(kind), is_mean_(is_mean) {
    const Shape& x = *request.shape(0);
    std::vector<std::int64_t> axes = request.attributes().get_ints("axes");
    if (request.has_input(1)) {
      const auto values = request.constant(1)->values<std::int64_t>();
      axes.assign(values.begin(), values.end());
    }
    for (const std::int64_t axis : axes)
      is_reduced_[static_cast<std::size_t>(*normalize_axis(axis, x.rank()))] = true;
    if (axes.empty()) is_reduced_.fill(true);
  }

  /// The reduced axes must follow each other.
  static bool fits(const KernelRequest& request) {
    const Shape* x = request.shape(0);
    if (request.dtype(0) != DType::Float32 || x == nullptr || x->rank() == 0) return false;
    if (request.attributes().get_int("noop_with_empty_axes", 0) != 0) return false;
    std::vector<std::int64_t> axes = request.attributes().get_ints("axes");
    if (request.has_input(1)) {
      const Tensor* constant = request.constant(1);
      if (constant == nullptr || constant->dtype() != DType::Int64) return false;
      const auto values = constant->values<std::int64_t>();
      axes.assign(values.begin(), values.end());
    }
    std::array<bool, Shape::kMaxRank> reduced{};
    for (const std::int64_t axis : axes) {
      const auto at = normalize_axis(axis, x->rank());
      if (!at) return false;
      reduced[static_cast<std::size_t>(*at)] = true;
    }
    if (axes.empty()) return true;
    int changes = 0;
    for (int axis = 1; axis < x->rank(); ++axis) {
      changes +=
          reduced[static_cast<std::size_t>(axis)] != reduced[static_cast<std::size_t>(axis - 1)];
    }
    return changes <= 1 || (changes == 2 && !reduced[0]);
  }

  Status run(KernelContext& context) const override {
    const Tensor& x = context.input(0);
    if (context.output(0).element_count() == 0) return {};
    int first = 0;
    while (first < x.rank() && !reduced(first)) ++first;
    int last = first;
    while (last < x.rank() && reduced(last)) ++last;
    const std::int64_t outer = x.shape().product(0, first);
    const std::int64_t count = x.shape().product(first, last);
    const std::int64_t inner = x.shape().product(last, x.rank());
    if (count == 0) return empty(context);
    const float* from = x.values<float>().data();
    float* to = context.output(0).mutable_values<float>().data();
    const auto& table = kernels::elementwise_table();
    const std::int64_t grain = row_grain(count * inner);
    context.pool().parallel_for(outer, grain, [&](std::int64_t begin, std::int64_t end) {
      if (inner == 1) {
        table.reduce_rows(kind_, from + begin * count, to + begin, end - begin, count);
      } else {
        for (std::int64_t i = begin; i < end; ++i) {
          table.reduce_columns(kind_, from + i * count * inner, to + i * inner, count, inner,
                               inner);
        }
      }
      if (!is_mean_) return;
      const float scale = 1 / static_cast<float>(count);
      table.binary(kernels::BinaryKind::Mul, kernels::Repeat::B, to + begin * inner, &scale,
                   to + begin * inner, (end - begin) * inner);
    });
    return {};
  }

 private:
  bool reduced(int axis) const { return is_reduced_[static_cast<std::size_t>(axis)]; }

  /// Over nothing: a sum is 0, a mean NaN, a maximum and a minimum the infinities.
  Status empty(KernelContext& context) const {
    using Limits = std::numeric_limits<float>;
    float value = is_mean_ ? Limits::quiet_NaN() : 0;
    if (kind_ == kernels::ReduceKind::Max) value = -Limits::infinity();
    if (kind_ == kernels::ReduceKind::Min) value = Limits::infinity();
    const auto target = context.output(0).mutable_values<float>();
    std::fill(target.begin(), target.end(), value);
    return {};
  }

  kernels::ReduceKind kind_;
  bool is_mean_;
  std::array<bool, Shape::kMaxRank> is_reduced_{};
};

template <kernels::ReduceKind kKind, bool kIsMean>
Result<std::unique_ptr<Kernel>> create_reduce(const KernelRequest& request) {
  if (!ReduceKernel::fits(request)) return std::unique_ptr<Kernel>();
  return std::unique_ptr<Kernel>(std::make_unique<ReduceKernel>(request, kKind, kIsMean));
}

// A row is read to its end before its first result is written.
constexpr unsigned kInPlace = Instruction::kInPlace;

constexpr KernelRow kRows[] = {
    {"", "Softmax", 1, create_softmax, kInPlace},
    {"", "LayerNormalization", 1, create_norm<true>, kInPlace},
    {"", "RMSNormalization", 23, create_norm<false>, kInPlace},
    {"com.microsoft", "SimplifiedLayerNormalization", 1, create_norm<false>, kInPlace},
    {"", "SimplifiedLayerNormalization", 1, create_norm<false>, kInPlace},
    {"", "ReduceMean", 1, create_reduce<kernels::ReduceKind::Sum, true>},
    {"", "ReduceSum", 1, create_reduce<kernels::ReduceKind::Sum, false>},
    {"", "ReduceMax", 1, create_reduce<kernels::ReduceKind::Max, false>},
    {"", "ReduceMin", 1, create_reduce<kernels::ReduceKind::Min, false>},
    {"", "ReduceSumSquare", 1, create_reduce<kernels::ReduceKind::SumSquare, false>},
};

}  // namespace

std::span<const KernelRow> row_kernels() { return kRows; }

}  // namespace sardonyx
