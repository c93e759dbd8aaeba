#include "ir/element.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/text.h"
#include "ir/dtype_switch.h"

namespace sardonyx {

namespace {

/// How a float of 8 bits or less is laid out: sign, exponent, mantissa from the top.
struct SmallFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  enum class Special : std::uint8_t { None, Infinity, OneNan, UnsignedNan } special;

  int bits() const { return 1 + exponent_bits + mantissa_bits; }
  unsigned sign_bit() const { return 1U << (exponent_bits + mantissa_bits); }
  /// Bits of the largest finite magnitude.
  unsigned largest() const {
    const unsigned all = sign_bit() - 1;
    switch (special) {
      case Special::Infinity: return all - (1U << mantissa_bits);
      case Special::OneNan: return all - 1;
      default: return all;
    }
  }
};

using Special = SmallFormat::Special;

/// Null for every other type.
const SmallFormat* small_format(DType dtype) {
  static constexpr SmallFormat kE4M3FN{4, 3, 7, Special::OneNan};
  static constexpr SmallFormat kE4M3FNUZ{4, 3, 8, Special::UnsignedNan};
  static constexpr SmallFormat kE5M2{5, 2, 15, Special::Infinity};
  static constexpr SmallFormat kE5M2FNUZ{5, 2, 16, Special::UnsignedNan};
  static constexpr SmallFormat kE2M1{2, 1, 1, Special::None};
  static constexpr SmallFormat kE2M3{2, 3, 1, Special::None};
  static constexpr SmallFormat kE3M2{3, 2, 3, Special::None};
  switch (dtype) {
    case DType::Float8E4M3FN: return &kE4M3FN;
    case DType::Float8E4M3FNUZ: return &kE4M3FNUZ;
    case DType::Float8E5M2: return &kE5M2;
    case DType::Float8E5M2FNUZ: return &kE5M2FNUZ;
    case DType::Float4E2M1: return &kE2M1;
    case DType::Float6E2M3: return &kE2M3;
    case DType::Float6E3M2: return &kE3M2;
    default: return nullptr;
  }
}

float decode_small(const SmallFormat& format, unsigned bits) {
  const bool is_negative = (bits & format.sign_bit()) != 0;
  const unsigned magnitude = bits & (format.sign_bit() - 1);
  if (format.special == Special::UnsignedNan && is_negative && magnitude == 0) {
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float sign = is_negative ? -1.0F : 1.0F;
  if (magnitude > format.largest() && format.special != Special::UnsignedNan) {
    const bool is_infinite =
        format.special == Special::Infinity && magnitude == format.largest() + 1;
    return std::copysign(is_infinite ? std::numeric_limits<float>::infinity()
                                     : std::numeric_limits<float>::quiet_NaN(),
                         sign);
  }
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const unsigned fraction = magnitude & ((1U << format.mantissa_bits) - 1);
  const unsigned significand = exponent == 0 ? fraction : fraction | (1U << format.mantissa_bits);
  return sign * std::ldexp(static_cast<float>(significand),
                           std::max(exponent, 1) - format.bias - format.mantissa_bits);
}

unsigned nan_bits(const SmallFormat& format, bool is_negative) {
  const unsigned sign = is_negative ? format.sign_bit() : 0;
  switch (format.special) {
    case Special::UnsignedNan: return format.sign_bit();
    // These have no NaN: zero, of the sign that other implementations give it.
    case Special::None: return is_negative ? 0 : format.sign_bit();
    case Special::Infinity: return sign | (format.largest() + 2);
    default: return sign | (format.sign_bit() - 1);
  }
}

unsigned encode_small(const SmallFormat& format, double value, bool saturate) {
  const bool is_negative = std::signbit(value);
  const unsigned sign = is_negative ? format.sign_bit() : 0;
  if (std::isnan(value)) return nan_bits(format, is_negative);
  const double magnitude = std::fabs(value);
  const double largest = decode_small(format, format.largest());
  const int lowest_exponent = 1 - format.bias;
  unsigned bits = format.largest() + 1;
  if (magnitude < 2 * largest) {
    const int exponent = magnitude == 0 ? lowest_exponent
                                        : std::max(std::ilogb(magnitude), lowest_exponent);
    const double scaled = std::ldexp(magnitude, format.mantissa_bits - exponent);
    const auto significand = static_cast<unsigned>(std::nearbyint(scaled));
    // The exponent field of a subnormal is 0 and of the lowest normal 1: adding carries.
    bits = (static_cast<unsigned>(exponent - lowest_exponent) << format.mantissa_bits) +
           significand;
  }
  if (bits > format.largest()) {
    if (saturate || format.special == Special::None) return sign | format.largest();
    if (format.special == Special::Infinity) return sign | (format.largest() + 1);
    return nan_bits(format, is_negative);
  }
  if (bits == 0 && format.special == Special::UnsignedNan) return 0;
  return sign | bits;
}

/// Every value of a small format, so that reading is a look-up.
using SmallTable = std::array<float, 256>;
SmallTable make_table(DType dtype) {
  SmallTable table{};
  const SmallFormat& format = *small_format(dtype);
  const unsigned mask = (1U << format.bits()) - 1;
  for (unsigned i = 0; i < table.size(); ++i) table[i] = decode_small(format, i & mask);
  return table;
}

template <DType dtype>
const SmallTable& table_of() {
  static const SmallTable kTable = make_table(dtype);
  return kTable;
}

/// Null for every type that is not a small float.
const SmallTable* small_table(DType dtype) {
  switch (dtype) {
    case DType::Float8E4M3FN: return &table_of<DType::Float8E4M3FN>();
    case DType::Float8E4M3FNUZ: return &table_of<DType::Float8E4M3FNUZ>();
    case DType::Float8E5M2: return &table_of<DType::Float8E5M2>();
    case DType::Float8E5M2FNUZ: return &table_of<DType::Float8E5M2FNUZ>();
    case DType::Float4E2M1: return &table_of<DType::Float4E2M1>();
    case DType::Float6E2M3: return &table_of<DType::Float6E2M3>();
    case DType::Float6E3M2: return &table_of<DType::Float6E3M2>();
    default: return nullptr;
  }
}

bool is_float(DType dtype) {
  constexpr DTypeSet kReals =
      kFloatsBf16 | kFloat8 |
      set_of(DType::Float4E2M1, DType::Float8E8M0, DType::Float6E2M3, DType::Float6E3M2);
  return contains(kReals, dtype);
}

bool is_signed_packed(DType dtype) { return dtype == DType::Int4 || dtype == DType::Int2; }

unsigned read_packed(int bits, const std::byte* data, std::int64_t index) {
  const int per_byte = 8 / bits;
  const auto byte = static_cast<unsigned>(data[index / per_byte]);
  return (byte >> (index % per_byte * bits)) & ((1U << bits) - 1);
}

void write_packed(int bits, std::byte* data, std::int64_t index, unsigned value) {
  const int per_byte = 8 / bits;
  const auto shift = static_cast<unsigned>(index % per_byte * bits);
  const unsigned mask = ((1U << bits) - 1) << shift;
  std::byte& byte = data[index / per_byte];
  byte = static_cast<std::byte>((static_cast<unsigned>(byte) & ~mask) | ((value << shift) & mask));
}

template <typename T>
T read_plain(const std::byte* data, std::int64_t index) {
  T value;
  std::memcpy(&value, data + index * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <typename T>
void write_plain(std::byte* data, std::int64_t index, T value) {
  std::memcpy(data + index * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

/// Truncates; what no 64-bit integer holds becomes the lowest one, as the processor does it.
std::int64_t truncate(double value) {
  if (value >= -0x1p63 && value < 0x1p63) return static_cast<std::int64_t>(value);
  if (value >= 0x1p63 && value < 0x1p64) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(value));
  }
  return std::numeric_limits<std::int64_t>::min();
}

/// The float next to `value` whose last bit tells that it is inexact, so that rounding it again to
/// a narrower type is right.
float to_float_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || std::isnan(value)) return nearest;
  auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;
  return std::bit_cast<float>(bits | 1U);
}

float narrow_source(float value) { return value; }
float narrow_source(double value) { return to_float_odd(value); }
float narrow_source(std::int64_t value) {
  // Beyond 2^53 the dropped bits leave their trace in one that a double still holds.
  const std::int64_t low = value & 0x7ff;
  const bool is_wide = value > (std::int64_t{1} << 53) || value < -(std::int64_t{1} << 53);
  if (is_wide && low != 0) value = (value - low) | 0x400;
  return to_float_odd(static_cast<double>(value));
}

/// A real number as T, from float, double or int64.
template <typename T, typename From>
T to_plain(From value) {
  if constexpr (std::is_same_v<T, Half>) {
    return to_half(narrow_source(value));
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return to_bfloat16(narrow_source(value));
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != From{0};
  } else if constexpr (std::is_integral_v<T> && std::is_floating_point_v<From>) {
    return static_cast<T>(truncate(static_cast<double>(value)));
  } else {
    return static_cast<T>(value);
  }
}

template <typename To, typename T>
To from_plain(T value) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return from_plain<To>(to_float(value));
  } else if constexpr (std::is_integral_v<To> && std::is_floating_point_v<T>) {
    return truncate(value);
  } else {
    return static_cast<To>(value);
  }
}

/// Calls the body with the C++ type; false for packed and small types.
template <typename Body>
bool switch_plain(DType dtype, Body&& body) {
  if (dtype == DType::Bool) {
    body.template operator()<bool>();
    return true;
  }
  return switch_numeric(dtype, body);
}

float decode_e8m0(unsigned bits) {
  if (bits == 0xff) return std::numeric_limits<float>::quiet_NaN();
  return std::ldexp(1.0F, static_cast<int>(bits) - 127);
}

/// Types that no C++ type stands for, one element at a time.
double read_special(DType dtype, const std::byte* data, std::int64_t index) {
  const int bits = dtype_bits(dtype);
  if (bits == 0 || bits > 8) return 0;
  const unsigned value = read_packed(bits, data, index);
  if (const SmallTable* table = small_table(dtype)) return (*table)[value];
  if (dtype == DType::Float8E8M0) return decode_e8m0(value);
  if (!is_signed_packed(dtype)) return value;
  const unsigned sign = 1U << (bits - 1);
  return static_cast<int>(value ^ sign) - static_cast<int>(sign);
}

void write_special(DType dtype, std::byte* data, std::int64_t index, double value, bool saturate) {
  const int bits = dtype_bits(dtype);
  if (bits == 0 || bits > 8) return;
  unsigned code = 0;
  if (const SmallFormat* format = small_format(dtype)) {
    code = encode_small(*format, value, saturate);
  } else if (dtype == DType::Float8E8M0) {
    code = to_float8e8m0(static_cast<float>(value), PowerRounding::Up, saturate);
  } else {
    code = static_cast<unsigned>(truncate(value));
  }
  write_packed(bits, data, index, code);
}

template <typename To>
void load_chunk(DType dtype, const std::byte* data, std::int64_t start, std::int64_t count,
                To* target) {
  const bool is_plain = switch_plain(dtype, [&]<typename T>() {
    for (std::int64_t i = 0; i < count; ++i) {
      target[i] = from_plain<To>(read_plain<T>(data, start + i));
    }
  });
  if (is_plain) return;
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = static_cast<To>(read_special(dtype, data, start + i));
  }
}

template <typename From>
void store_chunk(DType dtype, std::byte* data, std::int64_t start, std::int64_t count,
                 const From* source, bool saturate) {
  const bool is_plain = switch_plain(dtype, [&]<typename T>() {
    for (std::int64_t i = 0; i < count; ++i) {
      write_plain<T>(data, start + i, to_plain<T>(source[i]));
    }
  });
  if (is_plain) return;
  if constexpr (std::is_same_v<From, std::int64_t>) {
    if (!is_float(dtype)) {
      for (std::int64_t i = 0; i < count; ++i) write_int(dtype, data, start + i, source[i]);
      return;
    }
  }
  for (std::int64_t i = 0; i < count; ++i) {
    write_special(dtype, data, start + i, static_cast<double>(source[i]), saturate);
  }
}

constexpr std::int64_t kChunk = 512;

template <typename Between>
void convert_through(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to,
                     std::int64_t count, bool saturate) {
  std::array<Between, kChunk> chunk;
  for (std::int64_t start = 0; start < count; start += kChunk) {
    const std::int64_t part = std::min(kChunk, count - start);
    load_chunk(from_dtype, from, start, part, chunk.data());
    store_chunk(to_dtype, to, start, part, chunk.data(), saturate);
  }
}

/// uint64 through double, keeping in its last bits whether more was dropped, so that narrower
/// floats round once.
void convert_uint64(const std::byte* from, DType to_dtype, std::byte* to, std::int64_t count,
                    bool saturate) {
  for (std::int64_t i = 0; i < count; ++i) {
    auto value = read_plain<std::uint64_t>(from, i);
    const std::uint64_t low = value & 0x7ffU;
    if (to_dtype != DType::Float64 && value >> 53 != 0 && low != 0) value = (value - low) | 0x800U;
    const auto real = static_cast<double>(value);
    store_chunk(to_dtype, to, i, 1, &real, saturate);
  }
}

}  // namespace

std::uint8_t to_float8e8m0(float value, PowerRounding rounding, bool saturate) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  if (bits > 0x7f800000U) return 0xff;
  if (bits == 0x7f800000U) return saturate ? 0xfe : 0xff;
  const std::uint32_t exponent = bits >> 23;
  const std::uint32_t fraction = bits & 0x7fffffU;
  bool rounds_up = false;
  if (rounding == PowerRounding::Up) rounds_up = fraction != 0;
  // Half way goes up, but not from below the lowest normal float.
  if (rounding == PowerRounding::Nearest) {
    rounds_up = exponent > 0 ? fraction >= 0x400000U : fraction > 0x400000U;
  }
  if (rounds_up && exponent == 0xfe && saturate) rounds_up = false;
  return static_cast<std::uint8_t>(exponent + rounds_up);
}

double read_real(DType dtype, const std::byte* data, std::int64_t index) {
  double value = 0;
  load_chunk(dtype, data, index, 1, &value);
  return value;
}

void write_real(DType dtype, std::byte* data, std::int64_t index, double value, bool saturate) {
  store_chunk(dtype, data, index, 1, &value, saturate);
}

std::int64_t read_int(DType dtype, const std::byte* data, std::int64_t index) {
  std::int64_t value = 0;
  load_chunk(dtype, data, index, 1, &value);
  return value;
}

void write_int(DType dtype, std::byte* data, std::int64_t index, std::int64_t value) {
  const int bits = dtype_bits(dtype);
  if (is_float(dtype)) return write_real(dtype, data, index, static_cast<double>(value));
  if (bits == 2 || bits == 4) return write_packed(bits, data, index, static_cast<unsigned>(value));
  switch_plain(dtype, [&]<typename T>() { write_plain<T>(data, index, to_plain<T>(value)); });
}

void load_reals(DType dtype, const std::byte* data, std::int64_t start, std::int64_t count,
                float* target) {
  load_chunk(dtype, data, start, count, target);
}

void load_reals(DType dtype, const std::byte* data, std::int64_t start, std::int64_t count,
                double* target) {
  load_chunk(dtype, data, start, count, target);
}

void store_reals(DType dtype, std::byte* data, std::int64_t start, std::int64_t count,
                 const float* source, bool saturate) {
  store_chunk(dtype, data, start, count, source, saturate);
}

void store_reals(DType dtype, std::byte* data, std::int64_t start, std::int64_t count,
                 const double* source, bool saturate) {
  store_chunk(dtype, data, start, count, source, saturate);
}

void convert_elements(DType from_dtype, const std::byte* from, DType to_dtype, std::byte* to,
                      std::int64_t count, bool saturate) {
  if (from_dtype == to_dtype) {
    if (const auto bytes = dtype_bytes(to_dtype, count); bytes && *bytes != 0) {
      std::memcpy(to, from, *bytes);
    }
    return;
  }
  if (from_dtype == DType::UInt64 && is_float(to_dtype)) {
    return convert_uint64(from, to_dtype, to, count, saturate);
  }
  const bool is_exact_in_float = dtype_bits(from_dtype) <= 16;
  if (!is_float(from_dtype) && !(is_exact_in_float && is_float(to_dtype))) {
    return convert_through<std::int64_t>(from_dtype, from, to_dtype, to, count, saturate);
  }
  if (from_dtype != DType::Float64) {
    return convert_through<float>(from_dtype, from, to_dtype, to, count, saturate);
  }
  convert_through<double>(from_dtype, from, to_dtype, to, count, saturate);
}

Result<Tensor> to_dtype(const Tensor& tensor, DType dtype) {
  SDX_ASSIGN(Tensor result, Tensor::allocate(dtype, tensor.shape()));
  convert_elements(tensor.dtype(), tensor.data(), dtype, result.mutable_data(),
                   tensor.element_count());
  return result;
}

}  // namespace sardonyx
