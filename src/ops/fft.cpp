#include "ops/fft.h"

#include <cmath>
#include <numbers>
#include <utility>

namespace sardonyx {

namespace {

bool is_power_of_two(std::int64_t n) { return (n & (n - 1)) == 0; }

/// exp(-2 pi i k / n)
Complex root(std::int64_t k, std::int64_t n) {
  const double angle = 2.0 * std::numbers::pi * static_cast<double>(k) / static_cast<double>(n);
  return {std::cos(angle), -std::sin(angle)};
}

}  // namespace

Fft::Fft(std::int64_t length) : length_(length) {
  if (length < 2) return;
  if (is_power_of_two(length)) {
    for (std::int64_t k = 0; k < length / 2; ++k) roots_.push_back(root(k, length));
    return;
  }
  std::int64_t size = 1;
  while (size < 2 * length) size *= 2;
  inner_ = std::make_unique<Fft>(size);
  buffer_.resize(static_cast<std::size_t>(size));
  filter_.resize(static_cast<std::size_t>(size));
  std::int64_t square = 0;
  for (std::int64_t k = 0; k < length; ++k) {
    // k * k modulo 2 N keeps the angle small and so exact.
    chirp_.push_back(root(square, 2 * length));
    square = (square + 2 * k + 1) % (2 * length);
    const Complex tap = conjugate(chirp_.back());
    filter_[static_cast<std::size_t>(k)] = tap;
    if (k > 0) filter_[static_cast<std::size_t>(size - k)] = tap;
  }
  inner_->forward(filter_.data());
}

void Fft::forward(Complex* x) {
  if (length_ < 2) return;
  if (inner_ == nullptr) {
    run_power_of_two(x);
  } else {
    run_chirp(x);
  }
}

void Fft::inverse(Complex* x) {
  for (std::int64_t i = 0; i < length_; ++i) x[i] = conjugate(x[i]);
  forward(x);
  const double scale = 1.0 / static_cast<double>(length_);
  for (std::int64_t i = 0; i < length_; ++i) {
    x[i] = {x[i].real * scale, -x[i].imaginary * scale};
  }
}

void Fft::run_power_of_two(Complex* x) const {
  for (std::int64_t i = 1, j = 0; i < length_; ++i) {
    std::int64_t bit = length_ / 2;
    for (; (j & bit) != 0; bit /= 2) j ^= bit;
    j ^= bit;
    if (i < j) std::swap(x[i], x[j]);
  }
  for (std::int64_t half = 1; half < length_; half *= 2) {
    const std::int64_t step = length_ / (2 * half);
    for (std::int64_t start = 0; start < length_; start += 2 * half) {
      for (std::int64_t k = 0; k < half; ++k) {
        const Complex a = x[start + k];
        const Complex b = x[start + half + k] * roots_[static_cast<std::size_t>(k * step)];
        x[start + k] = a + b;
        x[start + half + k] = a - b;
      }
    }
  }
}

void Fft::run_chirp(Complex* x) {
  const auto length = static_cast<std::size_t>(length_);
  for (std::size_t k = 0; k < length; ++k) buffer_[k] = x[k] * chirp_[k];
  for (std::size_t k = length; k < buffer_.size(); ++k) buffer_[k] = {};
  inner_->forward(buffer_.data());
  for (std::size_t k = 0; k < buffer_.size(); ++k) buffer_[k] = buffer_[k] * filter_[k];
  inner_->inverse(buffer_.data());
  for (std::size_t k = 0; k < length; ++k) x[k] = buffer_[k] * chirp_[k];
}

}  // namespace sardonyx
