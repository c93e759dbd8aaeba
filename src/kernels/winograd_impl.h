#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/activation_simd.h"

// The transforms of Winograd's F(4x4, 3x3) as templates over a vector type V. Only kernel sources
// include this; the unnamed namespace keeps what each instruction set compiles apart.
namespace sardonyx::kernels {

/// One block of 4x4 outputs.
struct WinogradOutput {
  const float* sums = nullptr;   // [36][...], a block's channels next to each other
  std::int64_t sum_stride = 0;   // floats from one of the 36 to the next
  std::int64_t channels = 0;
  float* y = nullptr;
  std::int64_t y_stride = 0, y_row_stride = 0;
  std::int64_t rows = 4, columns = 4;  // that exist
  const float* bias = nullptr;
  const float* residual = nullptr;
  std::int64_t residual_stride = 0, residual_row_stride = 0;
  Activation activation;
};

struct WinogradTable {
  /// out[36][...] from 36 pixels of `channels` floats; out_stride floats from one to the next.
  void (*input)(const float* const* pixels, std::int64_t channels, float* out,
                std::int64_t out_stride);
  void (*output)(const WinogradOutput& block);
};

namespace {

// The points a = sqrt(1/2) and b = sqrt(2), so that ab = 1, a^2 + b^2 = 5/2.
constexpr float kWinogradA = 0.70710678F;
constexpr float kWinogradB = 1.41421356F;

/// Six values of an axis to the six points.
template <class V>
[[gnu::always_inline]] inline void winograd_points(const typename V::Reg (&x)[6],
                                                   typename V::Reg (&r)[6]) {
  const auto a = V::set(kWinogradA);
  const auto b = V::set(kWinogradB);
  const auto minus_middle = V::set(-2.5F);
  r[0] = V::fma(minus_middle, x[2], V::add(x[0], x[4]));
  const auto even_a = V::fma(V::set(-2), x[2], x[4]);
  const auto odd_a = V::mul(a, V::fma(V::set(-2), x[1], x[3]));
  r[1] = V::add(even_a, odd_a);
  r[2] = V::sub(even_a, odd_a);
  const auto even_b = V::fma(V::set(-0.5F), x[2], x[4]);
  const auto odd_b = V::mul(b, V::fma(V::set(-0.5F), x[1], x[3]));
  r[3] = V::add(even_b, odd_b);
  r[4] = V::sub(even_b, odd_b);
  r[5] = V::fma(minus_middle, x[3], V::add(x[1], x[5]));
}

/// Six points of an axis to four outputs.
template <class V>
[[gnu::always_inline]] inline void winograd_outputs(const typename V::Reg (&m)[6],
                                                    typename V::Reg (&y)[4]) {
  constexpr float kA = kWinogradA;
  constexpr float kB = kWinogradB;
  const auto sum_a = V::add(m[1], m[2]);
  const auto difference_a = V::sub(m[1], m[2]);
  const auto sum_b = V::add(m[3], m[4]);
  const auto difference_b = V::sub(m[3], m[4]);
  y[0] = V::add(m[0], V::add(sum_a, sum_b));
  y[1] = V::fma(V::set(kA), difference_a, V::mul(V::set(kB), difference_b));
  y[2] = V::fma(V::set(0.5F), sum_a, V::add(sum_b, sum_b));
  y[3] = V::fma(V::set(kA / 2), difference_a, V::fma(V::set(kB * 2), difference_b, m[5]));
}

template <class V>
void winograd_input(const float* const* pixels, std::int64_t channels, float* out,
                    std::int64_t out_stride) {
  using Reg = typename V::Reg;
  for (std::int64_t c = 0; c < channels; c += V::kLanes) {
    const std::int64_t n = channels - c;
    Reg half[6][6];
    for (int column = 0; column < 6; ++column) {
      Reg x[6];
      Reg r[6];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) x[i] = V::load_n(pixels[i * 6 + column] + c, n);
      winograd_points<V>(x, r);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) half[i][column] = r[i];
    }
    for (int row = 0; row < 6; ++row) {
      Reg r[6];
      winograd_points<V>(half[row], r);
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) V::store_n(out + (row * 6 + i) * out_stride + c, r[i], n);
    }
  }
}

template <class V>
void winograd_output(const WinogradOutput& block) {
  using Reg = typename V::Reg;
  for (std::int64_t c = 0; c < block.channels; c += V::kLanes) {
    const std::int64_t n = block.channels - c;
    Reg half[4][6];
    for (int column = 0; column < 6; ++column) {
      Reg m[6];
      Reg y[4];
#pragma GCC unroll 6
      for (int i = 0; i < 6; ++i) {
        m[i] = V::load_n(block.sums + (i * 6 + column) * block.sum_stride + c, n);
      }
      winograd_outputs<V>(m, y);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) half[i][column] = y[i];
    }
    const Reg bias = block.bias == nullptr ? V::set(0) : V::load_n(block.bias + c, n);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      Reg y[4];
      winograd_outputs<V>(half[row], y);
      float* to = block.y + row * block.y_row_stride + c;
      for (std::int64_t i = 0; i < block.columns; ++i) {
        Reg value = V::add(y[i], bias);
        if (block.residual != nullptr) {
          const float* residual =
              block.residual + row * block.residual_row_stride + i * block.residual_stride + c;
          value = V::add(value, V::load_n(residual, n));
        }
        V::store_n(to + i * block.y_stride, activate<V>(block.activation, value), n);
      }
    }
  }
}

}  // namespace
}  // namespace sardonyx::kernels
