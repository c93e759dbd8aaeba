#pragma once

#include <cstdint>
#include <cstring>

#include "base/small_floats.h"
#include "kernels/float_format.h"

namespace sardonyx::kernels::generic {

/// Four floats, by the compiler's vector extension. The same interface as avx2::F32 and
/// avx512::F32, over which the shared kernels are templates.
struct F32 {
  using Reg = float __attribute__((vector_size(16)));
  using Int = std::int32_t __attribute__((vector_size(16)));
  using Mask = Int;
  static constexpr int kLanes = 4;

  static Reg set(float x) { return Reg{x, x, x, x}; }
  static Reg load(const float* p) {
    Reg r;
    std::memcpy(&r, p, sizeof(r));
    return r;
  }
  static void store(float* p, Reg r) { std::memcpy(p, &r, sizeof(r)); }
  static Reg load_n(const float* p, std::int64_t n) {
    Reg r = {};
    if (n > 0) std::memcpy(&r, p, static_cast<std::size_t>(n < 4 ? n : 4) * sizeof(float));
    return r;
  }
  static void store_n(float* p, Reg r, std::int64_t n) {
    if (n > 0) std::memcpy(p, &r, static_cast<std::size_t>(n < 4 ? n : 4) * sizeof(float));
  }
  // Elements of b from `index` on, n of them (the rest zero), as float32.
  template <FloatFormat kFormat>
  static Reg load_as_n(const void* b, std::int64_t index, std::int64_t n) {
    if constexpr (kFormat == FloatFormat::F32) {
      return load_n(static_cast<const float*>(b) + index, n);
    } else {
      Reg r = {};
      const auto* bits = static_cast<const std::uint16_t*>(b) + index;
      for (std::int64_t i = 0; i < 4 && i < n; ++i) {
        r[i] = kFormat == FloatFormat::F16 ? to_float(Half{bits[i]}) : to_float(BFloat16{bits[i]});
      }
      return r;
    }
  }
  template <FloatFormat kFormat>
  static Reg load_as(const void* b, std::int64_t index) {
    return load_as_n<kFormat>(b, index, kLanes);
  }
  static float sum(Reg a) { return (a[0] + a[1]) + (a[2] + a[3]); }
  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  // Like the instructions: b if either is a NaN.
  static Reg min(Reg a, Reg b) { return a < b ? a : b; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }
  static Mask less(Reg a, Reg b) { return a < b; }
  static Mask is_nan(Reg a) { return a != a; }
  static Reg select(Mask m, Reg yes, Reg no) { return m ? yes : no; }
  static Reg abs(Reg a) { return as_float(as_int(a) & 0x7fffffff); }
  static Reg with_sign_of(Reg magnitude, Reg sign) {
    return as_float(as_int(magnitude) | (as_int(sign) & static_cast<std::int32_t>(0x80000000U)));
  }
  // To the nearest integer, ties to even, for |a| < 2^22.
  static Reg round(Reg a) { return (a + set(0x1.8p23F)) - set(0x1.8p23F); }
  // 2^a for an integer a in -126..127; infinity for 128.
  static Reg pow2(Reg a) {
    return as_float((as_int(a + set(0x1.8p23F)) - (0x4b400000 - 127)) << 23);
  }

 private:
  static Int as_int(Reg r) { return reinterpret_cast<Int>(r); }
  static Reg as_float(Int r) { return reinterpret_cast<Reg>(r); }
};

/// Four int32, beside F32.
struct I32 {
  using Reg = std::int32_t __attribute__((vector_size(16)));
  using Unsigned = std::uint32_t __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;

  static Reg set(std::int32_t x) { return Reg{x, x, x, x}; }
  static Reg load(const std::int32_t* p) {
    Reg r;
    std::memcpy(&r, p, sizeof(r));
    return r;
  }
  static Reg load_n(const std::int32_t* p, std::int64_t n) {
    Reg r = {};
    if (n > 0) std::memcpy(&r, p, static_cast<std::size_t>(n < 4 ? n : 4) * sizeof(*p));
    return r;
  }
  static void store(std::int32_t* p, Reg r) { std::memcpy(p, &r, sizeof(r)); }
  static void store_n(std::int32_t* p, Reg r, std::int64_t n) {
    if (n > 0) std::memcpy(p, &r, static_cast<std::size_t>(n < 4 ? n : 4) * sizeof(*p));
  }
  // These wrap around, as the instructions do.
  static Reg add(Reg a, Reg b) { return as_signed(as_unsigned(a) + as_unsigned(b)); }
  static Reg sub(Reg a, Reg b) { return as_signed(as_unsigned(a) - as_unsigned(b)); }
  static Reg mul(Reg a, Reg b) { return as_signed(as_unsigned(a) * as_unsigned(b)); }
  static F32::Reg to_float(Reg a) { return __builtin_convertvector(a, F32::Reg); }
  // To the nearest, ties to even, for |a| < 2^22.
  static Reg round(F32::Reg a) { return __builtin_convertvector(F32::round(a), Reg); }
  // The first n bytes at p, the rest zero.
  template <bool kSigned>
  static Reg load_bytes(const void* p, std::int64_t n) {
    Reg r = {};
    for (std::int64_t i = 0; i < 4 && i < n; ++i) {
      r[i] = kSigned ? static_cast<const std::int8_t*>(p)[i]
                     : static_cast<const std::uint8_t*>(p)[i];
    }
    return r;
  }
  // Bits [shift, shift + bits) of elements that are not negative.
  static Reg field(Reg a, int shift, std::int32_t mask) { return (a >> shift) & mask; }
  // The low bytes of the first n.
  static void store_bytes(void* p, Reg r, std::int64_t n) {
    for (std::int64_t i = 0; i < 4 && i < n; ++i) {
      static_cast<std::uint8_t*>(p)[i] = static_cast<std::uint8_t>(r[i]);
    }
  }

 private:
  static Unsigned as_unsigned(Reg r) { return reinterpret_cast<Unsigned>(r); }
  static Reg as_signed(Unsigned r) { return reinterpret_cast<Reg>(r); }
};

}  // namespace sardonyx::kernels::generic
