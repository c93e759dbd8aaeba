#include <algorithm>
#include <cmath>

#include "ops/dense.h"
#include "ops/families.h"
#include "ops/infer_context.h"
#include "ops/normalize.h"

namespace sardonyx {

namespace {

/// An input that should be a vector of `size`.
Status check_vector(const InferContext& context, std::size_t input, Dim size) {
  const Shape* shape = context.shape(input);
  if (shape == nullptr) return {};
  if (shape->rank() == 1 && !differ((*shape)[0], size)) return {};
  return context.error("'{}' has shape {}, expected [{}]", context.input_name(input),
                       shape->to_string(), size);
}

bool is_spatial(const Attributes& attributes) { return attributes.get_int("spatial", 1) != 0; }

Status infer_batch_norm(InferContext& context) {
  for (std::size_t i = 1; i < context.output_count(); ++i) {
    const bool is_statistic = context.version() >= 14;
    context.set_dtype(i, context.dtype(is_statistic ? 3 : 0));
  }
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  context.set_shape(0, *x);
  Dim channels = x->rank() > 1 ? (*x)[1] : 1;
  if (!is_spatial(context.attributes())) channels = kUnknownDim;
  for (std::size_t i = 1; i < 5 && is_spatial(context.attributes()); ++i) {
    SDX_TRY(check_vector(context, i, channels));
  }
  for (std::size_t i = 1; i < context.output_count(); ++i) {
    if (const Shape* mean = context.shape(3)) context.set_shape(i, *mean);
  }
  return {};
}

/// Sizes of a batch norm: its parameters repeat for each of `outer`, each spans `inner`.
struct BatchSizes {
  std::int64_t outer;
  std::int64_t channels;
  std::int64_t inner;

  BatchSizes(const Shape& x, bool is_spatial) {
    outer = x.rank() > 0 ? x[0] : 1;
    channels = x.rank() > 1 ? (is_spatial ? x[1] : x.product(1, x.rank())) : 1;
    inner = x.rank() > 1 && is_spatial ? x.product(2, x.rank()) : 1;
  }
};

template <typename C>
Moments channel_moments(const C* x, const BatchSizes& sizes, std::int64_t channel) {
  Moments moments;
  const auto count = static_cast<double>(sizes.outer * sizes.inner);
  const auto each = [&](auto body) {
    for (std::int64_t n = 0; n < sizes.outer; ++n) {
      const C* plane = x + (n * sizes.channels + channel) * sizes.inner;
      for (std::int64_t i = 0; i < sizes.inner; ++i) body(static_cast<double>(plane[i]));
    }
  };
  double sum = 0.0;
  each([&](double value) { sum += value; });
  moments.mean = sum / count;
  double squares = 0.0;
  each([&](double value) { squares += (value - moments.mean) * (value - moments.mean); });
  moments.variance = squares / count;
  return moments;
}

bool is_training(const EvalContext& context) {
  if (context.version() >= 14) return context.attributes().get_int("training_mode", 0) != 0;
  return context.has_output(1) || context.has_output(2) || context.has_output(3) ||
         context.has_output(4);
}

template <typename C>
Status batch_norm(EvalContext& context) {
  const BatchSizes sizes(context.tensor(0).shape(), is_spatial(context.attributes()));
  SDX_ASSIGN(const auto x, Elements<C>::of(context.tensor(0)));
  SDX_ASSIGN(const auto scale, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto bias, Elements<C>::of(context.tensor(2)));
  SDX_ASSIGN(const auto mean, Elements<C>::of(context.tensor(3)));
  SDX_ASSIGN(const auto variance, Elements<C>::of(context.tensor(4)));
  for (std::size_t i = 1; i < 5; ++i) {
    if (context.tensor(i).element_count() == sizes.channels) continue;
    return context.error("input {} has {} elements, expected {}", i,
                         context.tensor(i).element_count(), sizes.channels);
  }
  const double epsilon = static_cast<double>(context.attributes().get_float("epsilon", 1e-5F));
  const double momentum = static_cast<double>(context.attributes().get_float("momentum", 0.9F));
  const bool trains = is_training(context);
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  SDX_ASSIGN(auto running_mean, Staged<C>::open(context, 1));
  SDX_ASSIGN(auto running_variance, Staged<C>::open(context, 2));
  SDX_ASSIGN(auto saved_mean, Staged<C>::open(context, 3));
  SDX_ASSIGN(auto saved_variance, Staged<C>::open(context, 4));
  for (std::int64_t c = 0; c < sizes.channels; ++c) {
    Moments moments{static_cast<double>(mean[c]), static_cast<double>(variance[c])};
    const Moments given = moments;
    if (trains) moments = channel_moments(x.data(), sizes, c);
    const auto blend = [&](double old_value, double new_value) {
      return static_cast<C>(trains ? old_value * momentum + new_value * (1.0 - momentum)
                                   : old_value);
    };
    if (running_mean) running_mean[c] = blend(given.mean, moments.mean);
    if (running_variance) running_variance[c] = blend(given.variance, moments.variance);
    if (saved_mean) saved_mean[c] = static_cast<C>(moments.mean);
    if (saved_variance) saved_variance[c] = static_cast<C>(moments.variance);
    if (!y) continue;
    const C factor =
        static_cast<C>(static_cast<double>(scale[c]) * moments.inverse_deviation(epsilon));
    const C centre = static_cast<C>(moments.mean);
    for (std::int64_t n = 0; n < sizes.outer; ++n) {
      const std::int64_t offset = (n * sizes.channels + c) * sizes.inner;
      for (std::int64_t i = 0; i < sizes.inner; ++i) {
        y[offset + i] = (x[offset + i] - centre) * factor + bias[c];
      }
    }
  }
  for (auto* output : {&y, &running_mean, &running_variance, &saved_mean, &saved_variance}) {
    output->commit();
  }
  return {};
}

Status evaluate_batch_norm(EvalContext& context) {
  return with_real(context.tensor(0).dtype(),
                   [&]<typename C>() -> Status { return batch_norm<C>(context); });
}

/// Normalizes planes [batch, groups, size] whose scale and shift are one per parameter of
/// `parameters` in all, each spanning an equal share of a batch item.
template <typename C>
Status normalize_planes(EvalContext& context, std::int64_t groups, std::int64_t parameters) {
  const Tensor& input = context.tensor(0);
  SDX_ASSIGN(const auto x, Elements<C>::of(input));
  SDX_ASSIGN(const auto scale, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto shift, Elements<C>::of(context.tensor(2)));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  if (!y || y.element_count() == 0) return {};
  const double epsilon = static_cast<double>(context.attributes().get_float("epsilon", 1e-5F));
  const std::int64_t item = input.shape().product(1, input.rank());
  const std::int64_t size = item / groups;
  const std::int64_t share = item / parameters;
  for (std::int64_t i = 0; i < input.dim(0) * groups; ++i) {
    const Moments moments = moments_of(x.data() + i * size, size, true);
    standardize<C>(x.data() + i * size, size, moments, epsilon, nullptr, nullptr,
                   y.data() + i * size);
  }
  for (std::int64_t i = 0; i < input.dim(0) * parameters; ++i) {
    C* values = y.data() + i * share;
    const std::int64_t p = i % parameters;
    for (std::int64_t k = 0; k < share; ++k) values[k] = values[k] * scale[p] + shift[p];
  }
  y.commit();
  return {};
}

Status infer_instance_norm(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  if (x->rank() < 2) {
    return context.error("'{}' has shape {}, expected [batch, channels, ...]",
                         context.input_name(0), x->to_string());
  }
  SDX_TRY(check_vector(context, 1, (*x)[1]));
  SDX_TRY(check_vector(context, 2, (*x)[1]));
  context.set_shape(0, *x);
  return {};
}

Status evaluate_instance_norm(EvalContext& context) {
  const std::int64_t channels = context.tensor(0).dim(1);
  return with_real(context.tensor(0).dtype(), [&]<typename C>() -> Status {
    return normalize_planes<C>(context, channels, channels);
  });
}

Status infer_group_norm(InferContext& context) {
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  const std::int64_t groups = context.attributes().get_int("num_groups", 1);
  if (x->rank() < 2 || groups < 1 || (is_known((*x)[1]) && (*x)[1] % groups != 0)) {
    return context.error("'{}' of shape {} does not split into {} groups of channels",
                         context.input_name(0), x->to_string(), groups);
  }
  const Dim parameters = context.version() < 21 ? groups : (*x)[1];
  SDX_TRY(check_vector(context, 1, parameters));
  SDX_TRY(check_vector(context, 2, parameters));
  context.set_shape(0, *x);
  return {};
}

Status evaluate_group_norm(EvalContext& context) {
  const std::int64_t groups = context.attributes().get_int("num_groups", 1);
  const std::int64_t parameters = context.version() < 21 ? groups : context.tensor(0).dim(1);
  return with_real(context.tensor(0).dtype(), [&]<typename C>() -> Status {
    return normalize_planes<C>(context, groups, parameters);
  });
}

/// The axis at which the normalized dimensions begin.
Result<int> norm_axis(const Attributes& attributes, int rank) {
  const std::int64_t given = attributes.get_int("axis", -1);
  const auto axis = normalize_axis(given, rank);
  if (axis) return *axis;
  return failure(Code::InvalidModel, "axis {} is outside [-{}, {})", given, rank, rank);
}

Status infer_layer_norm_as(InferContext& context, std::size_t parameter_count) {
  const std::int64_t stash = context.attributes().get_int("stash_type", 1);
  const DType statistics = dtype_from_onnx(stash).value_or(DType::Undefined);
  if (!contains(kFloatsBf16, statistics)) {
    return context.error("stash_type is {}, expected the number of a floating-point type", stash);
  }
  for (std::size_t i = 1; i < context.output_count(); ++i) context.set_dtype(i, statistics);
  const Shape* x = context.shape(0);
  if (x == nullptr) return {};
  context.set_shape(0, *x);
  SDX_ASSIGN(const int axis, norm_axis(context.attributes(), x->rank()));
  for (std::size_t i = 1; i <= parameter_count; ++i) {
    const Shape* parameter = context.shape(i);
    if (parameter == nullptr) continue;
    const auto merged = broadcast(*x, *parameter);
    bool fits = merged && parameter->rank() <= x->rank();
    for (int k = 0; fits && k < parameter->rank(); ++k) {
      const Dim target = (*x)[x->rank() - parameter->rank() + k];
      fits = (*parameter)[k] == 1 || !differ((*parameter)[k], target);
    }
    if (!fits) {
      return context.error("'{}' of shape {} does not broadcast to {}", context.input_name(i),
                           parameter->to_string(), x->to_string());
    }
  }
  Shape reduced = *x;
  for (int i = axis; i < reduced.rank(); ++i) reduced[i] = 1;
  for (std::size_t i = 1; i < context.output_count(); ++i) context.set_shape(i, reduced);
  return {};
}

Status infer_layer_norm(InferContext& context) { return infer_layer_norm_as(context, 2); }
Status infer_rms_norm(InferContext& context) { return infer_layer_norm_as(context, 1); }

/// y op= parameter, broadcast to the shape of y.
template <typename C, typename Op>
void apply_broadcast(C* y, const Shape& shape, const C* parameter, const Shape& parameter_shape,
                     Op op) {
  const std::int64_t count = shape.product(0, shape.rank());
  BatchWalk walk(shape);
  walk.add(parameter_shape, 1);
  for (std::int64_t i = 0; i < count; ++i, walk.next()) y[i] = op(y[i], parameter[walk.offset(0)]);
}

/// Whether a parameter is exactly as large as one normalized row.
bool covers_row(const Tensor& parameter, std::int64_t size, int rank) {
  return parameter.element_count() == size && parameter.rank() <= rank;
}

template <typename C>
Status layer_norm(EvalContext& context, bool is_centred) {
  const Tensor& input = context.tensor(0);
  SDX_ASSIGN(const int axis, norm_axis(context.attributes(), input.rank()));
  const std::int64_t rows = input.shape().product(0, axis);
  const std::int64_t size = input.shape().product(axis, input.rank());
  const double epsilon = static_cast<double>(context.attributes().get_float("epsilon", 1e-5F));
  const Tensor* bias = is_centred ? context.tensor_or_null(2) : nullptr;
  SDX_ASSIGN(const auto x, Elements<C>::of(input));
  SDX_ASSIGN(const auto scale, Elements<C>::of(context.tensor(1)));
  SDX_ASSIGN(const auto shift, Elements<C>::of(bias));
  SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
  const std::size_t inverse_output = is_centred ? 2 : 1;
  SDX_ASSIGN(auto inverse, Staged<C>::open(context, inverse_output));
  Staged<C> mean;
  if (is_centred) {
    SDX_ASSIGN(mean, Staged<C>::open(context, 1));
  }
  const int row_rank = input.rank() - axis;
  const bool is_plain = covers_row(context.tensor(1), size, row_rank) &&
                        (bias == nullptr || covers_row(*bias, size, row_rank));
  for (std::int64_t i = 0; i < rows; ++i) {
    const Moments moments = moments_of(x.data() + i * size, size, is_centred);
    if (mean) mean[i] = static_cast<C>(moments.mean);
    if (inverse) inverse[i] = static_cast<C>(moments.inverse_deviation(epsilon));
    if (!y) continue;
    standardize<C>(x.data() + i * size, size, moments, epsilon, is_plain ? scale.data() : nullptr,
                   is_plain ? shift.data() : nullptr, y.data() + i * size);
  }
  if (y && !is_plain) {
    apply_broadcast(y.data(), input.shape(), scale.data(), context.tensor(1).shape(),
                    [](C a, C b) { return a * b; });
    if (shift) {
      apply_broadcast(y.data(), input.shape(), shift.data(), bias->shape(),
                      [](C a, C b) { return a + b; });
    }
  }
  y.commit();
  mean.commit();
  inverse.commit();
  return {};
}

template <bool is_centred>
Status evaluate_layer_norm(EvalContext& context) {
  return with_real(context.tensor(0).dtype(),
                   [&]<typename C>() -> Status { return layer_norm<C>(context, is_centred); });
}

Status infer_lp_norm(InferContext& context) {
  const std::int64_t p = context.attributes().get_int("p", 2);
  if (p != 1 && p != 2) return context.error("p is {}, expected 1 or 2", p);
  if (const Shape* x = context.shape(0)) {
    SDX_ASSIGN([[maybe_unused]] const int axis, norm_axis(context.attributes(), x->rank()));
  }
  return infer_same_shape(context);
}

Status evaluate_lp_norm(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  SDX_ASSIGN(const int axis, norm_axis(context.attributes(), input.rank()));
  const bool is_absolute = context.attributes().get_int("p", 2) == 1;
  return with_real(input.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x, Elements<C>::of(input));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    const std::int64_t outer = input.shape().product(0, axis);
    const std::int64_t size = input.dim(axis);
    const std::int64_t inner = input.shape().product(axis + 1, input.rank());
    for (std::int64_t i = 0; i < outer * inner; ++i) {
      const std::int64_t offset = i / inner * size * inner + i % inner;
      double sum = 0.0;
      for (std::int64_t k = 0; k < size; ++k) {
        const auto value = static_cast<double>(x[offset + k * inner]);
        sum += is_absolute ? std::abs(value) : value * value;
      }
      const C norm = static_cast<C>(is_absolute ? sum : std::sqrt(sum));
      for (std::int64_t k = 0; k < size; ++k) {
        y[offset + k * inner] = norm == C{0} ? C{0} : x[offset + k * inner] / norm;
      }
    }
    y.commit();
    return {};
  });
}

Status infer_lrn(InferContext& context) {
  const std::int64_t size = context.attributes().get_int("size", 1);
  if (size < 1) return context.error("size is {}, expected 1 or more", size);
  const Shape* x = context.shape(0);
  if (x != nullptr && x->rank() < 2) {
    return context.error("'{}' has shape {}, expected [batch, channels, ...]",
                         context.input_name(0), x->to_string());
  }
  return infer_same_shape(context);
}

Status evaluate_lrn(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  const Attributes& attributes = context.attributes();
  const std::int64_t channels = input.dim(1);
  const std::int64_t window = attributes.get_int("size", 1);
  const std::int64_t before = std::min((window - 1) / 2, channels);
  const std::int64_t after = std::min(window / 2, channels);
  return with_real(input.dtype(), [&]<typename C>() -> Status {
    const C alpha = static_cast<C>(attributes.get_float("alpha", 1e-4F)) / static_cast<C>(window);
    const C beta = static_cast<C>(attributes.get_float("beta", 0.75F));
    const C bias = static_cast<C>(attributes.get_float("bias", 1.0F));
    SDX_ASSIGN(const auto x, Elements<C>::of(input));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y) return {};
    const std::int64_t size = input.shape().product(2, input.rank());
    std::vector<C> sums(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < input.dim(0) * channels; ++i) {
      const std::int64_t c = i % channels;
      const C* item = x.data() + (i - c) * size;
      std::fill(sums.begin(), sums.end(), C{});
      const std::int64_t last = std::min(channels - 1, c + after);
      for (std::int64_t k = std::max<std::int64_t>(0, c - before); k <= last; ++k) {
        for (std::int64_t p = 0; p < size; ++p) {
          sums[static_cast<std::size_t>(p)] += item[k * size + p] * item[k * size + p];
        }
      }
      for (std::int64_t p = 0; p < size; ++p) {
        const C base = bias + alpha * sums[static_cast<std::size_t>(p)];
        y[i * size + p] = x[i * size + p] / std::pow(base, beta);
      }
    }
    y.commit();
    return {};
  });
}

/// Which axes a mean runs over.
Result<std::array<bool, Shape::kMaxRank>> reduced_axes(const Attributes& attributes, int rank) {
  std::array<bool, Shape::kMaxRank> reduced{};
  static constexpr std::int64_t kDefault[] = {0, 2, 3};
  const auto* given = attributes.get_if<std::vector<std::int64_t>>("axes");
  const std::span<const std::int64_t> axes =
      given != nullptr ? std::span<const std::int64_t>(*given) : std::span(kDefault);
  for (const std::int64_t value : axes) {
    const auto axis = normalize_axis(value, rank);
    if (!axis) {
      return failure(Code::InvalidModel, "axis {} is outside [-{}, {})", value, rank, rank);
    }
    reduced[static_cast<std::size_t>(*axis)] = true;
  }
  return reduced;
}

Status infer_mean_variance(InferContext& context) {
  if (const Shape* x = context.shape(0)) {
    SDX_ASSIGN([[maybe_unused]] const auto axes, reduced_axes(context.attributes(), x->rank()));
  }
  return infer_same_shape(context);
}

Status evaluate_mean_variance(EvalContext& context) {
  const Tensor& input = context.tensor(0);
  SDX_ASSIGN(const auto reduced, reduced_axes(context.attributes(), input.rank()));
  Shape kept = input.shape();
  for (int i = 0; i < kept.rank(); ++i) {
    if (reduced[static_cast<std::size_t>(i)]) kept[i] = 1;
  }
  const auto groups = static_cast<std::size_t>(kept.product(0, kept.rank()));
  return with_real(input.dtype(), [&]<typename C>() -> Status {
    SDX_ASSIGN(const auto x, Elements<C>::of(input));
    SDX_ASSIGN(auto y, Staged<C>::open(context, 0));
    if (!y || y.element_count() == 0) return {};
    const std::int64_t count = y.element_count();
    const double share = static_cast<double>(count) / static_cast<double>(groups);
    std::vector<double> mean(groups, 0.0);
    std::vector<double> square(groups, 0.0);
    const auto each = [&](auto body) {
      BatchWalk walk(input.shape());
      walk.add(kept, 1);
      for (std::int64_t i = 0; i < count; ++i, walk.next()) {
        body(i, static_cast<std::size_t>(walk.offset(0)));
      }
    };
    each([&](std::int64_t i, std::size_t g) { mean[g] += static_cast<double>(x[i]) / share; });
    each([&](std::int64_t i, std::size_t g) {
      const double difference = static_cast<double>(x[i]) - mean[g];
      square[g] += difference * difference / share;
    });
    each([&](std::int64_t i, std::size_t g) {
      // The standard's function adds this to the deviation.
      const double deviation = std::sqrt(square[g]) + 1e-9;
      y[i] = static_cast<C>((static_cast<double>(x[i]) - mean[g]) / deviation);
    });
    y.commit();
    return {};
  });
}

constexpr DTypeSet kStatistics =
    set_of(DType::Float32, DType::Float64, DType::BFloat16, DType::Float16);
constexpr const char* kLayerNorm = "axis:i epsilon:f stash_type:i";

constexpr OpSchema kRows[] = {
    {"",
     "BatchNormalization",
     1,
     {"TTTTT>Ttttt", kFloats},
     "consumed_inputs:is epsilon:f is_test:i momentum:f spatial:i",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "BatchNormalization",
     6,
     {"TTTTT>Ttttt", kFloats},
     "epsilon:f is_test:i momentum:f spatial:i",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "BatchNormalization",
     7,
     {"TTTTT>Ttttt", kFloats},
     "epsilon:f momentum:f spatial:i",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "BatchNormalization",
     9,
     {"TTTTT>Ttttt", kFloats},
     "epsilon:f momentum:f",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "BatchNormalization",
     14,
     {"TTTUU>Tuu", kFloatsBf16, kFloatsBf16},
     "epsilon:f momentum:f training_mode:i",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "BatchNormalization",
     15,
     {"TVVUU>Tuu", kFloatsBf16, kFloatsBf16, kFloatsBf16},
     "epsilon:f momentum:f training_mode:i",
     infer_batch_norm,
     evaluate_batch_norm},
    {"",
     "InstanceNormalization",
     1,
     {"TTT>T", kFloats},
     "consumed_inputs:is epsilon:f",
     infer_instance_norm,
     evaluate_instance_norm},
    {"",
     "InstanceNormalization",
     6,
     {"TTT>T", kFloats},
     "epsilon:f",
     infer_instance_norm,
     evaluate_instance_norm},
    {"",
     "InstanceNormalization",
     22,
     {"TTT>T", kFloatsBf16},
     "epsilon:f",
     infer_instance_norm,
     evaluate_instance_norm},
    {"",
     "GroupNormalization",
     18,
     {"TTT>T", kFloatsBf16},
     "epsilon:f num_groups:i!",
     infer_group_norm,
     evaluate_group_norm},
    {"",
     "GroupNormalization",
     21,
     {"TTT>T", kFloatsBf16},
     "epsilon:f num_groups:i! stash_type:i",
     infer_group_norm,
     evaluate_group_norm},
    {"",
     "LayerNormalization",
     1,
     {"TVv>Vuu", kFloatsBf16, kStatistics, kFloatsBf16},
     kLayerNorm,
     infer_layer_norm,
     evaluate_layer_norm<true>},
    {"",
     "LayerNormalization",
     17,
     {"TVv>Vuu", kFloatsBf16, kStatistics, kFloatsBf16},
     kLayerNorm,
     infer_layer_norm,
     evaluate_layer_norm<true>},
    {"",
     "SimplifiedLayerNormalization",
     1,
     {"TV>Vu", kFloatsBf16, kStatistics, kFloatsBf16},
     kLayerNorm,
     infer_rms_norm,
     evaluate_layer_norm<false>},
    {"",
     "RMSNormalization",
     23,
     {"TV>V", kFloatsBf16, kAll, kFloatsBf16},
     kLayerNorm,
     infer_rms_norm,
     evaluate_layer_norm<false>},
    {"", "LpNormalization", 1, {"T>T", kFloats}, "axis:i p:i", infer_lp_norm, evaluate_lp_norm},
    {"",
     "LpNormalization",
     22,
     {"T>T", kFloatsBf16},
     "axis:i p:i",
     infer_lp_norm,
     evaluate_lp_norm},
    {"", "LRN", 1, {"T>T", kFloats}, "alpha:f beta:f bias:f size:i!", infer_lrn, evaluate_lrn},
    {"", "LRN", 13, {"T>T", kFloatsBf16}, "alpha:f beta:f bias:f size:i!", infer_lrn, evaluate_lrn},
    {"",
     "MeanVarianceNormalization",
     9,
     {"T>T", kFloats},
     "axes:is",
     infer_mean_variance,
     evaluate_mean_variance},
    {"",
     "MeanVarianceNormalization",
     13,
     {"T>T", kFloatsBf16},
     "axes:is",
     infer_mean_variance,
     evaluate_mean_variance},
};

}  // namespace

std::span<const OpSchema> norm_schemas() { return kRows; }

}  // namespace sardonyx
