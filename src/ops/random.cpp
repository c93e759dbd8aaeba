#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// The node's own generator when it has a seed, else the run's.
class Generator {
 public:
  explicit Generator(EvalContext& context) : shared_(context.random()) {
    if (const auto* seed = context.attributes().get_if<float>("seed")) {
      own_.seed(std::bit_cast<std::uint32_t>(*seed));
      is_own_ = true;
    }
  }
  std::mt19937_64& operator*() { return is_own_ ? own_ : shared_; }

 private:
  std::mt19937_64& shared_;
  std::mt19937_64 own_;
  bool is_own_ = false;
};

/// The element type that attribute `dtype` names, or `fallback`.
Status set_dtype(InferContext& context, DTypeSet allowed, DType fallback) {
  const auto* number = context.attributes().get_if<std::int64_t>("dtype");
  if (number == nullptr) {
    if (fallback != DType::Undefined && !contains(allowed, fallback)) {
      return context.error("dtype is required for tensor({})", dtype_name(fallback));
    }
    context.set_dtype(0, fallback);
    return {};
  }
  const auto dtype = dtype_from_onnx(*number);
  if (!dtype || !contains(allowed, *dtype)) {
    return context.error("dtype is {}, which this operator does not make", *number);
  }
  context.set_dtype(0, *dtype);
  return {};
}

Status infer_random(InferContext& context) {
  SDX_TRY(set_dtype(context, kFloatsBf16, DType::Float32));
  const auto& dims = context.attributes().get_ints("shape");
  if (!Shape::fits(dims.size())) {
    return context.error("a rank of {} is above {}", dims.size(), Shape::kMaxRank);
  }
  for (const std::int64_t dim : dims) {
    if (dim < 0) return context.error("attribute 'shape' asks for a size of {}", dim);
  }
  context.set_shape(0, Shape(std::span<const Dim>(dims)));
  return {};
}

Status infer_random_like(InferContext& context) {
  SDX_TRY(set_dtype(context, kFloatsBf16, context.dtype(0)));
  return infer_same_shape(context);
}

template <typename Distribution>
Status fill(EvalContext& context, Distribution distribution) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  Generator generator(context);
  const std::int64_t count = y->element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    write_real(y->dtype(), y->mutable_data(), i, distribution(*generator));
  }
  return {};
}

Status evaluate_random_normal(EvalContext& context) {
  const double mean = context.attributes().get_float("mean", 0.0F);
  const double scale = context.attributes().get_float("scale", 1.0F);
  std::normal_distribution<double> standard;
  return fill(context, [&](auto& generator) { return mean + scale * standard(generator); });
}

Status evaluate_random_uniform(EvalContext& context) {
  const double low = context.attributes().get_float("low", 0.0F);
  const double high = context.attributes().get_float("high", 1.0F);
  std::uniform_real_distribution<double> unit;
  return fill(context, [&](auto& generator) { return low + (high - low) * unit(generator); });
}

Status infer_bernoulli(InferContext& context) {
  SDX_TRY(set_dtype(context, kNumericBf16 | set_of(DType::Bool), context.dtype(0)));
  return infer_same_shape(context);
}

Status evaluate_bernoulli(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  std::uniform_real_distribution<double> unit;
  std::int64_t i = 0;
  return fill(context, [&](auto& generator) {
    return unit(generator) < read_real(x.dtype(), x.data(), i++) ? 1.0 : 0.0;
  });
}

Status infer_multinomial(InferContext& context) {
  SDX_TRY(set_dtype(context, set_of(DType::Int32, DType::Int64), DType::Int32));
  const std::int64_t samples = context.attributes().get_int("sample_size", 1);
  if (samples < 0) return context.error("sample_size should not be negative, but is {}", samples);
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  if (shape->rank() != 2) {
    return context.error("'{}' should have two axes, but has shape {}", context.input_name(0),
                         shape->to_string());
  }
  context.set_shape(0, Shape{(*shape)[0], samples});
  return {};
}

/// Draws from classes whose logarithms of probabilities, not normalised, are given.
Status evaluate_multinomial(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  const std::int64_t classes = x.dim(1);
  if (classes == 0) return context.error("there are no classes to draw from");
  Generator generator(context);
  std::uniform_real_distribution<double> unit;
  std::vector<double> sums(static_cast<std::size_t>(classes));
  std::int64_t at = 0;
  for (std::int64_t row = 0; row < x.dim(0); ++row) {
    load_reals(x.dtype(), x.data(), row * classes, classes, sums.data());
    const double largest = *std::max_element(sums.begin(), sums.end());
    double total = 0;
    for (double& sum : sums) sum = total += std::exp(sum - largest);
    for (std::int64_t sample = 0; sample < y->dim(1); ++sample) {
      const auto found = std::upper_bound(sums.begin(), sums.end(), unit(*generator) * total);
      const auto drawn = std::min<std::int64_t>(found - sums.begin(), classes - 1);
      write_int(y->dtype(), y->mutable_data(), at++, drawn);
    }
  }
  return {};
}

/// Uniform numbers in [0, 1) with 53 bits, two draws each, as numpy makes them from a seed.
double unit_from(std::mt19937& generator) {
  const double high = static_cast<double>(generator() >> 5);
  const double low = static_cast<double>(generator() >> 6);
  return (high * 0x1p26 + low) * 0x1p-53;
}

Status infer_dropout(InferContext& context) {
  const Shape* shape = context.shape(0);
  if (shape == nullptr) return {};
  context.set_shape(0, *shape);
  context.set_shape(1, *shape);
  return {};
}

struct DropoutMode {
  double ratio;
  bool is_training;
};

DropoutMode dropout_mode(const EvalContext& context) {
  const Attributes& attributes = context.attributes();
  if (context.version() < 12) {
    const bool is_training = context.version() < 7 && attributes.get_int("is_test", 0) == 0;
    return {attributes.get_float("ratio", 0.5F), is_training};
  }
  DropoutMode mode = {0.5, false};
  if (const Tensor* ratio = context.tensor_or_null(1)) {
    mode.ratio = read_real(ratio->dtype(), ratio->data(), 0);
  }
  if (const Tensor* training = context.tensor_or_null(2)) {
    mode.is_training = read_int(training->dtype(), training->data(), 0) != 0;
  }
  return mode;
}

Status check_scalars(const EvalContext& context) {
  for (std::size_t i = 1; i < context.input_count(); ++i) {
    const Tensor* tensor = context.tensor_or_null(i);
    if (tensor != nullptr && tensor->element_count() != 1) {
      return context.error("input {} should be a scalar, but has shape {}", i,
                           tensor->shape().to_string());
    }
  }
  return {};
}

Status evaluate_dropout(EvalContext& context) {
  SDX_TRY(check_scalars(context));
  const Tensor& x = context.tensor(0);
  const DropoutMode mode = dropout_mode(context);
  if (mode.is_training && !(mode.ratio >= 0 && mode.ratio < 1)) {
    return context.error("the ratio should be in [0, 1), but is {}", mode.ratio);
  }
  const std::int64_t count = x.element_count();
  SDX_ASSIGN(Tensor * mask, context.allocate(1));
  if (!mode.is_training || mode.ratio == 0) {
    context.set_output(0, x);
    for (std::int64_t i = 0; mask != nullptr && i < count; ++i) {
      write_int(mask->dtype(), mask->mutable_data(), i, 1);
    }
    return {};
  }
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  const auto* seed = context.attributes().get_if<std::int64_t>("seed");
  std::mt19937 generator(
      static_cast<std::uint32_t>(seed != nullptr ? *seed
                                                 : static_cast<std::int64_t>(context.random()())));
  for (std::int64_t i = 0; i < count; ++i) {
    const bool is_kept = unit_from(generator) >= mode.ratio;
    if (mask != nullptr) write_int(mask->dtype(), mask->mutable_data(), i, is_kept);
    if (y == nullptr) continue;
    const double value = is_kept ? read_real(x.dtype(), x.data(), i) / (1 - mode.ratio) : 0;
    write_real(y->dtype(), y->mutable_data(), i, value);
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "Bernoulli", 15, {"T>U", kFloats, kNumericBf16 | set_of(DType::Bool)}, "dtype:i seed:f",
     infer_bernoulli, evaluate_bernoulli, kNondeterministic},
    {"", "Bernoulli", 22, {"T>U", kFloatsBf16, kNumericBf16 | set_of(DType::Bool)},
     "dtype:i seed:f", infer_bernoulli, evaluate_bernoulli, kNondeterministic},
    {"", "Dropout", 1, {"T>Tt", kFloats}, "consumed_inputs:is is_test:i ratio:f", infer_dropout,
     evaluate_dropout, kNondeterministic},
    {"", "Dropout", 6, {"T>Tt", kFloats}, "is_test:i ratio:f", infer_dropout, evaluate_dropout,
     kNondeterministic},
    {"", "Dropout", 7, {"T>Tt", kFloats}, "ratio:f", infer_dropout, evaluate_dropout},
    {"", "Dropout", 10, {"T>Tb", kFloats}, "ratio:f", infer_dropout, evaluate_dropout},
    {"", "Dropout", 12, {"Tub>Tb", kFloats, kFloats}, "seed:i", infer_dropout, evaluate_dropout,
     kNondeterministic},
    {"", "Dropout", 13, {"Tub>Tb", kFloatsBf16, kFloats}, "seed:i", infer_dropout, evaluate_dropout,
     kNondeterministic},
    {"", "Dropout", 22, {"Tub>Tb", kFloatsBf16 | kFloat8, kFloatsBf16 | kFloat8}, "seed:i",
     infer_dropout, evaluate_dropout, kNondeterministic},
    {"", "Multinomial", 7, {"T>U", kFloats, set_of(DType::Int32, DType::Int64)},
     "dtype:i sample_size:i seed:f", infer_multinomial, evaluate_multinomial, kNondeterministic},
    {"", "Multinomial", 22, {"T>U", kFloatsBf16, set_of(DType::Int32, DType::Int64)},
     "dtype:i sample_size:i seed:f", infer_multinomial, evaluate_multinomial, kNondeterministic},
    {"", "RandomNormal", 1, {">T", kFloats}, "dtype:i mean:f scale:f seed:f shape:is!",
     infer_random, evaluate_random_normal, kNondeterministic},
    {"", "RandomNormal", 22, {">T", kFloatsBf16}, "dtype:i mean:f scale:f seed:f shape:is!",
     infer_random, evaluate_random_normal, kNondeterministic},
    {"", "RandomNormalLike", 1, {"T>U", kAllClassic, kFloats}, "dtype:i mean:f scale:f seed:f",
     infer_random_like, evaluate_random_normal, kNondeterministic},
    {"", "RandomNormalLike", 22, {"T>U", kAllClassic | set_of(DType::BFloat16), kFloatsBf16},
     "dtype:i mean:f scale:f seed:f", infer_random_like, evaluate_random_normal, kNondeterministic},
    {"", "RandomUniform", 1, {">T", kFloats}, "dtype:i high:f low:f seed:f shape:is!", infer_random,
     evaluate_random_uniform, kNondeterministic},
    {"", "RandomUniform", 22, {">T", kFloatsBf16}, "dtype:i high:f low:f seed:f shape:is!",
     infer_random, evaluate_random_uniform, kNondeterministic},
    {"", "RandomUniformLike", 1, {"T>U", kAllClassic, kFloats}, "dtype:i high:f low:f seed:f",
     infer_random_like, evaluate_random_uniform, kNondeterministic},
    {"", "RandomUniformLike", 22, {"T>U", kAllClassic | set_of(DType::BFloat16), kFloatsBf16},
     "dtype:i high:f low:f seed:f", infer_random_like, evaluate_random_uniform, kNondeterministic},
};

}  // namespace

std::span<const OpSchema> random_schemas() { return kRows; }

}  // namespace sardonyx
