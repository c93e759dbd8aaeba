#pragma once

#include <cmath>
#include <cstdint>

namespace sardonyx {

/// Mean and 1 / sqrt(variance + epsilon) of some values.
struct Moments {
  double mean = 0.0;
  double variance = 0.0;

  double inverse_deviation(double epsilon) const { return 1.0 / std::sqrt(variance + epsilon); }
};

/// Population moments in double, in two passes. Without `is_centred` the mean is taken for 0 (root
/// mean square).
template <typename C>
Moments moments_of(const C* x, std::int64_t count, bool is_centred) {
  Moments moments;
  const auto size = static_cast<double>(count);
  if (is_centred) {
    double sum = 0.0;
    for (std::int64_t i = 0; i < count; ++i) sum += static_cast<double>(x[i]);
    moments.mean = sum / size;
  }
  double squares = 0.0;
  for (std::int64_t i = 0; i < count; ++i) {
    const double difference = static_cast<double>(x[i]) - moments.mean;
    squares += difference * difference;
  }
  moments.variance = squares / size;
  return moments;
}

/// y = (x - mean) * inverse_deviation * scale + shift; scale and shift may be null. y may be x.
template <typename C>
void standardize(const C* x, std::int64_t count, const Moments& moments, double epsilon,
                 const C* scale, const C* shift, C* y) {
  const C mean = static_cast<C>(moments.mean);
  const C inverse = static_cast<C>(moments.inverse_deviation(epsilon));
  for (std::int64_t i = 0; i < count; ++i) {
    C value = (x[i] - mean) * inverse;
    if (scale != nullptr) value *= scale[i];
    if (shift != nullptr) value += shift[i];
    y[i] = value;
  }
}

}  // namespace sardonyx
