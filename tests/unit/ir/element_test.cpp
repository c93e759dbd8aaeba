#include "ir/element.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace sardonyx;

namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

std::uint32_t crc32(const void* data, std::size_t bytes) {
  std::uint32_t crc = 0xffffffffU;
  for (std::size_t i = 0; i < bytes; ++i) {
    crc ^= static_cast<const std::uint8_t*>(data)[i];
    for (int k = 0; k < 8; ++k) crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
  }
  return ~crc;
}

/// Checksums of what the ml_dtypes package reads (every code as float, NaN as 0x7fc00000) and
/// writes (every float16, NaN as code 0, without saturation).
struct SmallFloat {
  DType dtype;
  int codes;
  std::uint32_t values_crc;
  std::uint32_t codes_crc;
};
constexpr SmallFloat kSmallFloats[] = {
    {DType::Float8E4M3FN, 256, 0x2fdee9ac, 0x3ee57269},
    {DType::Float8E4M3FNUZ, 256, 0xf2dfa052, 0x389b3385},
    {DType::Float8E5M2, 256, 0x3d83fd11, 0x00512253},
    {DType::Float8E5M2FNUZ, 256, 0x09c70b84, 0x5f38e5a7},
    {DType::Float4E2M1, 16, 0x866770b6, 0xc37b91ce},
    {DType::Float6E2M3, 64, 0x50f19834, 0x51326720},
    {DType::Float6E3M2, 64, 0xce26bb00, 0x6f7ec1c5},
};

std::uint8_t code_of(DType dtype, double value, bool saturate = true) {
  std::byte code{};
  write_real(dtype, &code, 0, value, saturate);
  return static_cast<std::uint8_t>(code);
}

float value_of(DType dtype, unsigned code) {
  const auto byte = static_cast<std::byte>(code);
  return static_cast<float>(read_real(dtype, &byte, 0));
}

}  // namespace

TEST_CASE("every code of a small float reads as the ml_dtypes package reads it") {
  for (const SmallFloat& row : kSmallFloats) {
    CAPTURE(dtype_name(row.dtype));
    std::vector<std::uint32_t> bits;
    for (int code = 0; code < row.codes; ++code) {
      const float value = value_of(row.dtype, static_cast<unsigned>(code));
      bits.push_back(std::isnan(value) ? 0x7fc00000U : std::bit_cast<std::uint32_t>(value));
    }
    CHECK(crc32(bits.data(), bits.size() * 4) == row.values_crc);
  }
}

TEST_CASE("every float16 becomes the small float that the ml_dtypes package makes of it") {
  for (const SmallFloat& row : kSmallFloats) {
    CAPTURE(dtype_name(row.dtype));
    std::vector<std::uint8_t> codes;
    for (unsigned bits = 0; bits < 65536; ++bits) {
      const float value = to_float(Half{static_cast<std::uint16_t>(bits)});
      codes.push_back(std::isnan(value) ? std::uint8_t{0} : code_of(row.dtype, value, false));
    }
    CHECK(crc32(codes.data(), codes.size()) == row.codes_crc);
  }
}

TEST_CASE("8-bit floats saturate when asked, else overflow to infinity or NaN") {
  CHECK(value_of(DType::Float8E4M3FN, code_of(DType::Float8E4M3FN, 1e6)) == 448);
  CHECK(value_of(DType::Float8E4M3FN, code_of(DType::Float8E4M3FN, -kInf)) == -448);
  CHECK(code_of(DType::Float8E4M3FN, 1e6, false) == 0x7f);
  CHECK(code_of(DType::Float8E4M3FN, -kInf, false) == 0xff);
  CHECK(value_of(DType::Float8E5M2, code_of(DType::Float8E5M2, kInf)) == 57344);
  CHECK(code_of(DType::Float8E5M2, kInf, false) == 0x7c);
  CHECK(code_of(DType::Float8E4M3FNUZ, -kInf, false) == 0x80);
  CHECK(code_of(DType::Float8E4M3FNUZ, -0.0) == 0);
  CHECK(code_of(DType::Float8E4M3FN, kNan) == 0x7f);
  CHECK(value_of(DType::Float4E2M1, code_of(DType::Float4E2M1, 100, false)) == 6);
}

TEST_CASE("float8e8m0 rounds a magnitude to a power of two") {
  CHECK(to_float8e8m0(1.0F, PowerRounding::Up, true) == 127);
  CHECK(to_float8e8m0(1.1F, PowerRounding::Up, true) == 128);
  CHECK(to_float8e8m0(1.9F, PowerRounding::Down, true) == 127);
  CHECK(to_float8e8m0(1.5F, PowerRounding::Nearest, true) == 128);
  CHECK(to_float8e8m0(1.4F, PowerRounding::Nearest, true) == 127);
  CHECK(to_float8e8m0(kInf, PowerRounding::Up, true) == 0xfe);
  CHECK(to_float8e8m0(3e38F, PowerRounding::Up, false) == 0xff);
  CHECK(to_float8e8m0(kNan, PowerRounding::Up, true) == 0xff);
  CHECK(std::isnan(value_of(DType::Float8E8M0, 0xff)));
  CHECK(value_of(DType::Float8E8M0, 130) == 8);
}

TEST_CASE("packed elements are written without touching their neighbours") {
  std::byte data[2] = {std::byte{0xff}, std::byte{0xff}};
  write_int(DType::Int4, data, 1, -3);
  CHECK(read_int(DType::Int4, data, 0) == -1);
  CHECK(read_int(DType::Int4, data, 1) == -3);
  CHECK(read_int(DType::UInt4, data, 1) == 13);
  CHECK(data[0] == std::byte{0xdf});
  write_int(DType::UInt2, data, 6, 1);
  CHECK(data[1] == std::byte{0xdf});
  CHECK(read_int(DType::Int2, data, 6) == 1);
  CHECK(read_int(DType::Int2, data, 7) == -1);
}

TEST_CASE("integers keep all bits of 64 and drop the high ones when narrowed") {
  const std::vector<std::int64_t> source = {(1LL << 53) + 1, -200, 300,
                                            std::numeric_limits<std::int64_t>::min()};
  std::vector<std::int64_t> wide(4);
  const auto* from = reinterpret_cast<const std::byte*>(source.data());
  convert_elements(DType::Int64, from, DType::UInt64, reinterpret_cast<std::byte*>(wide.data()), 4);
  CHECK(wide == source);
  std::vector<std::int8_t> narrow(4);
  convert_elements(DType::Int64, from, DType::Int8, reinterpret_cast<std::byte*>(narrow.data()), 4);
  CHECK(narrow == std::vector<std::int8_t>{1, 56, 44, 0});
}

TEST_CASE("floats become integers by truncation") {
  std::byte data[8]{};
  write_real(DType::Int32, data, 0, -3.9);
  CHECK(read_int(DType::Int32, data, 0) == -3);
  write_real(DType::UInt64, data, 0, 18446744073709549568.0);
  CHECK(static_cast<std::uint64_t>(read_int(DType::UInt64, data, 0)) == 18446744073709549568ULL);
  write_real(DType::Int64, data, 0, kNan);
  CHECK(read_int(DType::Int64, data, 0) == std::numeric_limits<std::int64_t>::min());
  write_real(DType::Bool, data, 0, 0.25);
  CHECK(read_int(DType::Bool, data, 0) == 1);
}

TEST_CASE("narrowing rounds once, not by way of float") {
  // Just above half way between 1 and the next float16: as a float it would be a tie.
  const double above_tie = 1.0 + 0x1p-11 + 0x1p-40;
  std::byte data[2]{};
  write_real(DType::Float16, data, 0, above_tie);
  CHECK(read_real(DType::Float16, data, 0) == 1.0 + 0x1p-10);
  const std::uint64_t big = (1ULL << 63) + (1ULL << 39) + 1;
  float nearest = 0;
  convert_elements(DType::UInt64, reinterpret_cast<const std::byte*>(&big), DType::Float32,
                   reinterpret_cast<std::byte*>(&nearest), 1);
  CHECK(nearest == 0x1p63F + 0x1p40F);
}

TEST_CASE("conversions of whole tensors agree with one element at a time") {
  std::mt19937 random(3);
  const DType dtypes[] = {DType::Float32, DType::Float16, DType::BFloat16, DType::Float64,
                          DType::Int8,    DType::UInt16,  DType::Int64,    DType::Bool,
                          DType::Int4,    DType::UInt2,   DType::Float8E5M2};
  for (const DType from : dtypes) {
    auto source = Tensor::allocate(from, Shape{1201});
    REQUIRE(source.ok());
    for (std::int64_t i = 0; i < 1201; ++i) {
      write_real(from, source->mutable_data(), i, static_cast<int>(random() % 200) - 100);
    }
    for (const DType to : dtypes) {
      CAPTURE(dtype_name(from));
      CAPTURE(dtype_name(to));
      auto result = to_dtype(*source, to);
      REQUIRE(result.ok());
      std::byte one[8]{};
      for (std::int64_t i = 0; i < 1201; ++i) {
        write_real(to, one, 0, read_real(from, source->data(), i));
        REQUIRE(read_real(to, result->data(), i) == read_real(to, one, 0));
      }
    }
  }
}
