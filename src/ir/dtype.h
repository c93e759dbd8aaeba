#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sardonyx {

/// Element types, with the numbers of ONNX's TensorProto.DataType.
enum class DType : std::uint8_t {
  Undefined = 0,
  Float32 = 1,
  UInt8 = 2,
  Int8 = 3,
  UInt16 = 4,
  Int16 = 5,
  Int32 = 6,
  Int64 = 7,
  String = 8,
  Bool = 9,
  Float16 = 10,
  Float64 = 11,
  UInt32 = 12,
  UInt64 = 13,
  Complex64 = 14,
  Complex128 = 15,
  BFloat16 = 16,
  Float8E4M3FN = 17,
  Float8E4M3FNUZ = 18,
  Float8E5M2 = 19,
  Float8E5M2FNUZ = 20,
  UInt4 = 21,
  Int4 = 22,
  Float4E2M1 = 23,
  Float8E8M0 = 24,
  UInt2 = 25,
  Int2 = 26,
  Float6E2M3 = 27,
  Float6E3M2 = 28,
};
inline constexpr int kDTypeCount = 29;

/// The DType with that ONNX number, or nothing.
std::optional<DType> dtype_from_onnx(std::int64_t number);

/// As ONNX Runtime writes it inside "tensor(...)": "float", "double", "int64", "float8e4m3fn" ...
std::string_view dtype_name(DType dtype);

/// Bits of one element in memory: 4-bit and 2-bit types are packed, low bits first, each tensor
/// padded to whole bytes; 6-bit floats take a byte. 0 for String and Undefined.
int dtype_bits(DType dtype);

/// What the address of elements in memory is a multiple of; 1 for packed types.
std::size_t dtype_alignment(DType dtype);

/// Bytes of `count` elements, a String counting as sizeof(std::string); nothing on overflow.
std::optional<std::size_t> dtype_bytes(DType dtype, std::int64_t count);

/// A set of element types, one bit each.
using DTypeSet = std::uint32_t;
constexpr DTypeSet set_of(DType dtype) { return DTypeSet{1} << static_cast<int>(dtype); }
template <typename... Types>
constexpr DTypeSet set_of(DType first, Types... rest) {
  return set_of(first) | set_of(rest...);
}
constexpr bool contains(DTypeSet set, DType dtype) { return (set & set_of(dtype)) != 0; }

inline constexpr DTypeSet kSignedInts =
    set_of(DType::Int8, DType::Int16, DType::Int32, DType::Int64);
inline constexpr DTypeSet kUnsignedInts =
    set_of(DType::UInt8, DType::UInt16, DType::UInt32, DType::UInt64);
inline constexpr DTypeSet kInts = kSignedInts | kUnsignedInts;
inline constexpr DTypeSet kFloats = set_of(DType::Float16, DType::Float32, DType::Float64);
inline constexpr DTypeSet kFloatsBf16 = kFloats | set_of(DType::BFloat16);
inline constexpr DTypeSet kNumeric = kInts | kFloats;
inline constexpr DTypeSet kNumericBf16 = kInts | kFloatsBf16;
inline constexpr DTypeSet kComplex = set_of(DType::Complex64, DType::Complex128);
inline constexpr DTypeSet kFloat8 = set_of(DType::Float8E4M3FN, DType::Float8E4M3FNUZ,
                                           DType::Float8E5M2, DType::Float8E5M2FNUZ);
inline constexpr DTypeSet kSubByte = set_of(DType::UInt4, DType::Int4, DType::Float4E2M1,
                                            DType::UInt2, DType::Int2);
inline constexpr DTypeSet kFloat6 = set_of(DType::Float6E2M3, DType::Float6E3M2);
/// What ONNX calls all tensor types up to opset 12.
inline constexpr DTypeSet kAllClassic =
    kNumeric | kComplex | set_of(DType::Bool, DType::String);
inline constexpr DTypeSet kAll = 0x1ffffffeU;

}  // namespace sardonyx
