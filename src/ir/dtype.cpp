#include "ir/dtype.h"

#include <algorithm>
#include <string>

#include "base/checked.h"

namespace sardonyx {

namespace {

struct Row {
  std::string_view name;
  int bits;
};

constexpr std::array<Row, kDTypeCount> kRows = {{
    {"undefined", 0},       {"float", 32},         {"uint8", 8},          {"int8", 8},
    {"uint16", 16},         {"int16", 16},         {"int32", 32},         {"int64", 64},
    {"string", 0},          {"bool", 8},           {"float16", 16},       {"double", 64},
    {"uint32", 32},         {"uint64", 64},        {"complex64", 64},     {"complex128", 128},
    {"bfloat16", 16},       {"float8e4m3fn", 8},   {"float8e4m3fnuz", 8}, {"float8e5m2", 8},
    {"float8e5m2fnuz", 8},  {"uint4", 4},          {"int4", 4},           {"float4e2m1", 4},
    {"float8e8m0", 8},      {"uint2", 2},          {"int2", 2},           {"float6e2m3", 8},
    {"float6e3m2", 8},
}};

}  // namespace

std::optional<DType> dtype_from_onnx(std::int64_t number) {
  if (number < 0 || number >= kDTypeCount) return std::nullopt;
  return static_cast<DType>(number);
}

std::string_view dtype_name(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].name; }

int dtype_bits(DType dtype) { return kRows[static_cast<std::size_t>(dtype)].bits; }

std::size_t dtype_alignment(DType dtype) {
  if (dtype == DType::String) return alignof(std::string);
  const bool is_complex = contains(kComplex, dtype);
  return static_cast<std::size_t>(std::max(1, dtype_bits(dtype) / (is_complex ? 16 : 8)));
}

std::optional<std::size_t> dtype_bytes(DType dtype, std::int64_t count) {
  const std::int64_t bits =
      dtype == DType::String ? std::int64_t{8} * sizeof(std::string) : dtype_bits(dtype);
  const auto total = checked_multiply(count, bits);
  if (!total || count < 0) return std::nullopt;
  return static_cast<std::size_t>(*total / 8 + (*total % 8 != 0));
}

}  // namespace sardonyx
