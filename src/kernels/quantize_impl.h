#pragma once

#include <cstdint>

#include "kernels/quantize.h"

// Quantization as templates over S, which has the vector types F32 and I32 of an instruction set.
// Only kernel sources include this.
namespace sardonyx::kernels {

template <class S, bool kSigned, class Byte>
void quantize_all(const float* x, std::int64_t count, Quantization q, Byte* y) {
  using F32 = typename S::F32;
  using I32 = typename S::I32;
  const auto scale = F32::set(q.scale);
  const auto zero = I32::set(q.zero);
  const auto low = F32::set(static_cast<float>((kSigned ? -128 : 0) - q.zero));
  const auto high = F32::set(static_cast<float>((kSigned ? 127 : 255) - q.zero));
  const auto convert = [&](typename F32::Reg value) {
    const auto clamped = F32::min(F32::max(F32::div(value, scale), low), high);
    return I32::add(I32::round(clamped), zero);
  };
  std::int64_t i = 0;
  for (; i + F32::kLanes <= count; i += F32::kLanes) {
    I32::store_bytes(y + i, convert(F32::load(x + i)), F32::kLanes);
  }
  if (i < count) I32::store_bytes(y + i, convert(F32::load_n(x + i, count - i)), count - i);
}

template <class S, bool kSigned, class Byte>
void dequantize_all(const Byte* x, std::int64_t count, Quantization q, float* y) {
  using F32 = typename S::F32;
  using I32 = typename S::I32;
  const auto scale = F32::set(q.scale);
  const auto zero = I32::set(q.zero);
  const auto convert = [&](typename I32::Reg value) {
    return F32::mul(I32::to_float(I32::sub(value, zero)), scale);
  };
  std::int64_t i = 0;
  for (; i + F32::kLanes <= count; i += F32::kLanes) {
    F32::store(y + i, convert(I32::template load_bytes<kSigned>(x + i, F32::kLanes)));
  }
  if (i < count) {
    F32::store_n(y + i, convert(I32::template load_bytes<kSigned>(x + i, count - i)), count - i);
  }
}

template <class S, bool kSigned, class Byte>
void add_all(const Byte* a, const Byte* b, std::int64_t count, const QuantizedSum& q, Byte* y) {
  using F32 = typename S::F32;
  using I32 = typename S::I32;
  constexpr std::int32_t kLeast = kSigned ? -128 : 0;
  constexpr std::int32_t kMost = kSigned ? 127 : 255;
  const auto a_scale = F32::set(q.a.scale);
  const auto b_scale = F32::set(q.b.scale);
  const auto y_scale = F32::set(q.y.scale);
  const auto a_zero = I32::set(q.a.zero);
  const auto b_zero = I32::set(q.b.zero);
  const auto y_zero = I32::set(q.y.zero);
  const auto low = F32::set(static_cast<float>((q.low > kLeast ? q.low : kLeast) - q.y.zero));
  const auto high = F32::set(static_cast<float>(kMost - q.y.zero));
  const auto real = [](typename I32::Reg x, typename I32::Reg zero, typename F32::Reg scale) {
    return F32::mul(I32::to_float(I32::sub(x, zero)), scale);
  };
  const auto step = [&](std::int64_t i, std::int64_t n) {
    const auto left = real(I32::template load_bytes<kSigned>(a + i, n), a_zero, a_scale);
    const auto right = real(I32::template load_bytes<kSigned>(b + i, n), b_zero, b_scale);
    // Not add(): with a product before it compilers make that one operation, which rounds once.
    const auto sum = F32::fma(left, F32::set(1), right);
    const auto clamped = F32::min(F32::max(F32::div(sum, y_scale), low), high);
    I32::store_bytes(y + i, I32::add(I32::round(clamped), y_zero), n);
  };
  std::int64_t i = 0;
  for (; i + F32::kLanes <= count; i += F32::kLanes) step(i, F32::kLanes);
  if (i < count) step(i, count - i);
}

template <class S>
MinMax range_with_zero(const float* x, std::int64_t count) {
  using F32 = typename S::F32;
  constexpr int kSums = 4;
  typename F32::Reg least[kSums];
  typename F32::Reg greatest[kSums];
  for (int s = 0; s < kSums; ++s) least[s] = greatest[s] = F32::set(0);
  std::int64_t i = 0;
  for (; i + kSums * F32::kLanes <= count; i += kSums * F32::kLanes) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) {
      const auto value = F32::load(x + i + s * F32::kLanes);
      least[s] = F32::min(value, least[s]);
      greatest[s] = F32::max(value, greatest[s]);
    }
  }
  for (; i < count; i += F32::kLanes) {
    const auto value = F32::load_n(x + i, count - i);  // the missing ones are zero, which counts
    least[0] = F32::min(value, least[0]);
    greatest[0] = F32::max(value, greatest[0]);
  }
  float lanes[2][F32::kLanes];
  for (int s = 1; s < kSums; ++s) {
    least[0] = F32::min(least[s], least[0]);
    greatest[0] = F32::max(greatest[s], greatest[0]);
  }
  F32::store(lanes[0], least[0]);
  F32::store(lanes[1], greatest[0]);
  MinMax range;
  for (int lane = 0; lane < F32::kLanes; ++lane) {
    if (lanes[0][lane] < range.min) range.min = lanes[0][lane];
    if (lanes[1][lane] > range.max) range.max = lanes[1][lane];
  }
  return range;
}

template <class S>
constexpr QuantizeTable make_quantize_table(Isa isa) {
  return {isa,
          quantize_all<S, false, std::uint8_t>,
          quantize_all<S, true, std::int8_t>,
          dequantize_all<S, false, std::uint8_t>,
          dequantize_all<S, true, std::int8_t>,
          add_all<S, false, std::uint8_t>,
          add_all<S, true, std::int8_t>,
          range_with_zero<S>};
}

}  // namespace sardonyx::kernels
