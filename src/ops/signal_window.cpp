#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>
#include <vector>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

Status set_output_dtype(InferContext& context) {
  const std::int64_t number = context.attributes().get_int("output_datatype", 1);
  const auto dtype = dtype_from_onnx(number);
  if (!dtype || !contains(kNumericBf16, *dtype)) {
    return context.error("output_datatype is {}, which is no type of numbers", number);
  }
  context.set_dtype(0, *dtype);
  return {};
}

Status check_scalars(const InferContext& context) {
  for (std::size_t i = 0; i < context.input_count(); ++i) {
    const Shape* shape = context.shape(i);
    const auto count = shape != nullptr ? shape->element_count() : std::nullopt;
    if (count && *count != 1) {
      return context.error("'{}' should be a scalar, but has shape {}", context.input_name(i),
                           shape->to_string());
    }
  }
  return {};
}

Status infer_window(InferContext& context) {
  SDX_TRY(set_output_dtype(context));
  SDX_TRY(check_scalars(context));
  context.set_shape(0, Shape{kUnknownDim});
  const auto size = context.ints(0);
  if (!size) return {};
  if (size->at(0) < 0) return context.error("a window cannot have a size of {}", size->at(0));
  context.set_shape(0, Shape{size->at(0)});
  return {};
}

/// w[n] = a0 - a1 cos(2 pi n / N) + a2 cos(4 pi n / N).
struct Cosines {
  double a0, a1, a2;
};
constexpr Cosines kBlackman = {0.42, 0.5, 0.08};
constexpr Cosines kHann = {0.5, 0.5, 0};
constexpr Cosines kHamming = {25.0 / 46.0, 1 - 25.0 / 46.0, 0};

template <const Cosines& cosines>
Status evaluate_window(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const std::int64_t size = y->element_count();
  const bool is_periodic = context.attributes().get_int("periodic", 1) != 0;
  const auto period = static_cast<double>(std::max<std::int64_t>(is_periodic ? size : size - 1, 1));
  for (std::int64_t n = 0; n < size; ++n) {
    const double angle = 2 * std::numbers::pi * static_cast<double>(n) / period;
    const double value =
        cosines.a0 - cosines.a1 * std::cos(angle) + cosines.a2 * std::cos(2 * angle);
    write_real(y->dtype(), y->mutable_data(), n, value);
  }
  return {};
}

Status infer_mel(InferContext& context) {
  SDX_TRY(set_output_dtype(context));
  SDX_TRY(check_scalars(context));
  Shape shape = {kUnknownDim, kUnknownDim};
  const auto bins = context.ints(0);
  const auto length = context.ints(1);
  if (length && length->at(0) < 0) return context.error("dft_length is {}", length->at(0));
  if (bins && bins->at(0) < 0) return context.error("num_mel_bins is {}", bins->at(0));
  if (length) shape[0] = length->at(0) / 2 + 1;
  if (bins) shape[1] = bins->at(0);
  context.set_shape(0, shape);
  return {};
}

double real_input(const EvalContext& context, std::size_t i) {
  const Tensor& tensor = context.tensor(i);
  return read_real(tensor.dtype(), tensor.data(), 0);
}

/// Frequency bins at the edges of the triangles, equally far from each other on the mel scale.
std::vector<double> mel_edges(const EvalContext& context, std::int64_t count) {
  const auto mel_of = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double low = mel_of(real_input(context, 3));
  const double step = (mel_of(real_input(context, 4)) - low) / static_cast<double>(count);
  std::vector<double> edges;
  for (std::int64_t i = 0; i < count; ++i) {
    const double mel = low + static_cast<double>(i) * step;
    const double hertz = 700 * (std::pow(10, mel / 2595) - 1);
    edges.push_back(std::floor((real_input(context, 1) + 1) * hertz / real_input(context, 2)));
  }
  return edges;
}

Status evaluate_mel(EvalContext& context) {
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || y->element_count() == 0) return {};
  std::memset(y->mutable_data(), 0, y->byte_size());
  const std::int64_t rows = y->dim(0);
  const std::int64_t columns = y->dim(1);
  const std::vector<double> edges = mel_edges(context, columns + 2);
  for (const double edge : edges) {
    if (!(edge >= 0 && edge < static_cast<double>(rows))) {
      return context.error("an edge falls on frequency bin {}, outside [0, {})", edge, rows);
    }
  }
  const auto put = [&](std::int64_t row, std::int64_t column, double value) {
    write_real(y->dtype(), y->mutable_data(), row * columns + column, value);
  };
  for (std::int64_t c = 0; c < columns; ++c) {
    const double* edge = &edges[static_cast<std::size_t>(c)];
    const auto low = static_cast<std::int64_t>(edge[0]);
    const auto middle = static_cast<std::int64_t>(edge[1]);
    const auto high = static_cast<std::int64_t>(edge[2]);
    if (low == middle) put(middle, c, 1);
    for (std::int64_t r = low; low != middle && r <= middle; ++r) {
      put(r, c, static_cast<double>(r - low) / static_cast<double>(middle - low));
    }
    for (std::int64_t r = middle; r < high; ++r) {
      put(r, c, static_cast<double>(high - r) / static_cast<double>(high - middle));
    }
  }
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "BlackmanWindow", 17, {"N>T", kNumericBf16}, "output_datatype:i periodic:i", infer_window,
     evaluate_window<kBlackman>},
    {"", "HammingWindow", 17, {"N>T", kNumericBf16}, "output_datatype:i periodic:i", infer_window,
     evaluate_window<kHamming>},
    {"", "HannWindow", 17, {"N>T", kNumericBf16}, "output_datatype:i periodic:i", infer_window,
     evaluate_window<kHann>},
    {"", "MelWeightMatrix", 17, {"NNNTT>U", kFloatsBf16, kNumericBf16}, "output_datatype:i",
     infer_mel, evaluate_mel},
};

}  // namespace

std::span<const OpSchema> signal_window_schemas() { return kRows; }

}  // namespace sardonyx
