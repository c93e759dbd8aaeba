#include "cli/array.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>


namespace sardonyx::cli {

namespace {

using Kind = ElementType::Kind;

constexpr ElementType kElements[] = {
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, "float", "<f4", Kind::Float, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8, "uint8", "|u1", Kind::Unsigned, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT8, "int8", "|i1", Kind::Signed, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT16, "uint16", "<u2", Kind::Unsigned, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT16, "int16", "<i2", Kind::Signed, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32, "int32", "<i4", Kind::Signed, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64, "int64", "<i8", Kind::Signed, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_STRING, "string", "", Kind::Text, 0},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL, "bool", "|b1", Kind::Bool, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16, "float16", "<f2", Kind::Float, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_DOUBLE, "double", "<f8", Kind::Float, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT32, "uint32", "<u4", Kind::Unsigned, 32},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT64, "uint64", "<u8", Kind::Unsigned, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX64, "complex64", "<c8", Kind::Complex, 64},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_COMPLEX128, "complex128", "<c16", Kind::Complex, 128},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16, "bfloat16", "<V2", Kind::Float, 16},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FN, "float8e4m3fn", "|V1", Kind::Code, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E4M3FNUZ, "float8e4m3fnuz", "|V1", Kind::Code, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2, "float8e5m2", "|V1", Kind::Code, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E5M2FNUZ, "float8e5m2fnuz", "|V1", Kind::Code, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT8E8M0, "float8e8m0", "|V1", Kind::Code, 8},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT4, "uint4", "|u1", Kind::Unsigned, 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT4, "int4", "|i1", Kind::Signed, 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT4E2M1, "float4e2m1", "|u1", Kind::Code, 4},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT2, "uint2", "|u1", Kind::Unsigned, 2},
    {ONNX_TENSOR_ELEMENT_DATA_TYPE_INT2, "int2", "|i1", Kind::Signed, 2},
};

/// The bits of the element at `index`, zero-extended.
std::uint64_t load_bits(const Array& array, std::int64_t index) {
  const auto bits = static_cast<std::uint64_t>(array.type->bits);
  const auto position = static_cast<std::uint64_t>(index) * bits;
  std::uint64_t raw = 0;
  std::memcpy(&raw, array.bytes.data() + position / 8, std::max<std::uint64_t>(bits / 8, 1));
  if (bits >= 8) return raw;
  return (raw >> (position % 8)) & ((std::uint64_t{1} << bits) - 1);
}

void store_bits(Array& array, std::int64_t index, std::uint64_t raw) {
  const auto bits = static_cast<std::uint64_t>(array.type->bits);
  const auto position = static_cast<std::uint64_t>(index) * bits;
  std::byte* place = array.bytes.data() + position / 8;
  if (bits >= 8) {
    std::memcpy(place, &raw, bits / 8);
    return;
  }
  const auto mask = ((std::uint64_t{1} << bits) - 1) << (position % 8);
  const auto shifted = (raw << (position % 8)) & mask;
  *place = static_cast<std::byte>((std::to_integer<std::uint64_t>(*place) & ~mask) | shifted);
}

double half_to_double(std::uint32_t bits) {
  const int exponent = static_cast<int>((bits >> 10) & 0x1fU);
  const auto mantissa = static_cast<double>(bits & 0x3ffU);
  double number = exponent == 0 ? std::ldexp(mantissa, -24)
                                : std::ldexp(1024 + mantissa, exponent - 25);
  if (exponent == 0x1f) {
    number = mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                           : std::numeric_limits<double>::infinity();
  }
  return (bits & 0x8000U) != 0 ? -number : number;
}

/// Rounds to nearest even; overflow gives infinity.
std::uint32_t double_to_half(double number) {
  const std::uint32_t sign = std::signbit(number) ? 0x8000U : 0;
  if (std::isnan(number)) return sign | 0x7e00U;
  const double size = std::fabs(number);
  if (size >= 65520) return sign | 0x7c00U;
  const int exponent = size < 0x1p-14 ? -14 : std::ilogb(size);
  // A mantissa that rounds up to 2048 carries into the exponent, as it should.
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return sign | (size < 0x1p-14 ? mantissa
                                : (static_cast<std::uint32_t>(exponent + 14) << 10) + mantissa);
}

/// The upper half of a float, rounded to nearest even.
std::uint32_t float_to_bfloat16(float number) {
  const auto bits = std::bit_cast<std::uint32_t>(number);
  if (std::isnan(number)) return (bits >> 16) | 0x40U;
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16;
}

double float_of(const ElementType& type, std::uint64_t raw) {
  if (type.bits == 64) return std::bit_cast<double>(raw);
  if (type.bits == 32) return std::bit_cast<float>(static_cast<std::uint32_t>(raw));
  const auto half = static_cast<std::uint32_t>(raw);
  if (type.number != ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) return half_to_double(half);
  return std::bit_cast<float>(half << 16);
}

std::uint64_t bits_of(const ElementType& type, double number) {
  if (type.bits == 64) return std::bit_cast<std::uint64_t>(number);
  const auto single = static_cast<float>(number);
  if (type.bits == 32) return std::bit_cast<std::uint32_t>(single);
  if (type.number == ONNX_TENSOR_ELEMENT_DATA_TYPE_BFLOAT16) return float_to_bfloat16(single);
  return double_to_half(number);
}

}  // namespace

const ElementType* find_element(ONNXTensorElementDataType number) {
  for (const ElementType& row : kElements) {
    if (row.number == number) return &row;
  }
  return nullptr;
}

const ElementType* find_element_by_descr(std::string_view descr) {
  for (const ElementType& row : kElements) {
    if (row.bits >= 8 && descr == row.descr && descr.find('V') == std::string_view::npos) {
      return &row;
    }
  }
  return nullptr;
}

std::string Array::type_name() const { return fmt::format("tensor({})", type->name); }

std::string Array::shape_text() const {
  std::vector<std::string> parts;
  for (const std::int64_t dim : dims) parts.push_back(std::to_string(dim));
  return "[" + join(parts, ",") + "]";
}

std::int64_t Array::element_count() const { return count_elements(dims).value_or(0); }

std::optional<std::int64_t> count_elements(const std::vector<std::int64_t>& dims) {
  std::int64_t count = 1;
  bool is_empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) {
      is_empty = true;
    } else if (__builtin_mul_overflow(count, dim, &count)) {
      return std::nullopt;
    }
  }
  return is_empty ? 0 : count;
}

Result<Array> make_array(const ElementType& type, std::vector<std::int64_t> dims) {
  Array array{&type, std::move(dims), {}, {}};
  const auto count = count_elements(array.dims);
  std::int64_t bits = 0;
  if (!count || __builtin_mul_overflow(*count, std::int64_t{std::max(type.bits, 1)}, &bits)) {
    return failure("an array of shape {} is too large", array.shape_text());
  }
  if (type.kind == Kind::Text) {
    array.texts.resize(static_cast<std::size_t>(*count));
  } else {
    array.bytes.resize(static_cast<std::size_t>(bits / 8 + (bits % 8 != 0 ? 1 : 0)));
  }
  return array;
}

std::optional<double> number_at(const Array& array, std::int64_t index) {
  const ElementType& type = *array.type;
  if (type.kind == Kind::Text || type.kind == Kind::Complex) return std::nullopt;
  const std::uint64_t raw = load_bits(array, index);
  if (type.kind == Kind::Float) return float_of(type, raw);
  if (type.kind != Kind::Signed) return static_cast<double>(raw);
  const int unused = 64 - type.bits;
  return static_cast<double>(static_cast<std::int64_t>(raw << unused) >> unused);
}

bool set_integer(Array& array, std::int64_t index, std::int64_t number) {
  const ElementType& type = *array.type;
  if (type.kind == Kind::Float || type.kind == Kind::Complex) {
    return set_number(array, index, static_cast<double>(number));
  }
  if (type.kind == Kind::Text) return false;
  const int value_bits = type.kind == Kind::Signed ? type.bits - 1 : type.bits;
  const std::int64_t most = type.kind == Kind::Bool ? 1
                            : value_bits >= 63      ? std::numeric_limits<std::int64_t>::max()
                                                    : (std::int64_t{1} << value_bits) - 1;
  const std::int64_t least = type.kind == Kind::Signed ? -most - 1 : 0;
  if (number < least || number > most) return false;
  store_bits(array, index, static_cast<std::uint64_t>(number));
  return true;
}

bool set_number(Array& array, std::int64_t index, double number) {
  const ElementType& type = *array.type;
  if (type.kind == Kind::Float) {
    store_bits(array, index, bits_of(type, number));
    return true;
  }
  if (type.kind == Kind::Complex) {
    // The real part: the first half of the element.
    const auto bytes = static_cast<std::size_t>(type.bits / 8);
    const auto single = static_cast<float>(number);
    std::byte* place = array.bytes.data() + static_cast<std::size_t>(index) * bytes;
    std::memset(place, 0, bytes);
    if (type.bits == 64) std::memcpy(place, &single, sizeof(single));
    if (type.bits == 128) std::memcpy(place, &number, sizeof(number));
    return true;
  }
  if (!(std::fabs(number) < 0x1p63) || std::trunc(number) != number) return false;
  return set_integer(array, index, static_cast<std::int64_t>(number));
}

Result<Value> to_value(Array& array) {
  OrtValue* made = nullptr;
  if (array.type->kind == Kind::Text) {
    SDX_TRY(check(api().CreateTensorAsOrtValue(allocator(), array.dims.data(), array.dims.size(),
                                               array.type->number, &made)));
    Value value(made);
    std::vector<const char*> texts;
    for (const std::string& text : array.texts) texts.push_back(text.c_str());
    SDX_TRY(check(api().FillStringTensor(made, texts.data(), texts.size())));
    return value;
  }
  OrtMemoryInfo* info = nullptr;
  SDX_TRY(check(api().CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, &info)));
  const MemoryInfo memory(info);
  SDX_TRY(check(api().CreateTensorWithDataAsOrtValue(info, array.bytes.data(), array.bytes.size(),
                                                     array.dims.data(), array.dims.size(),
                                                     array.type->number, &made)));
  return Value(made);
}

namespace {

Status copy_texts(const OrtValue* value, Array& array) {
  for (std::size_t i = 0; i < array.texts.size(); ++i) {
    std::size_t length = 0;
    SDX_TRY(check(api().GetStringTensorElementLength(value, i, &length)));
    array.texts[i].resize(length);
    SDX_TRY(check(api().GetStringTensorElement(value, length, i, array.texts[i].data())));
  }
  return {};
}

Result<Array> copy_tensor(const OrtValue* value) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  SDX_TRY(check(api().GetTensorTypeAndShape(value, &raw)));
  const TensorInfo info(raw);
  ONNXTensorElementDataType number = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::size_t rank = 0;
  SDX_TRY(check(api().GetTensorElementType(raw, &number)));
  SDX_TRY(check(api().GetDimensionsCount(raw, &rank)));
  std::vector<std::int64_t> dims(rank);
  SDX_TRY(check(api().GetDimensions(raw, dims.data(), rank)));
  const ElementType* type = find_element(number);
  if (type == nullptr) {
    return failure("elements of type number {} are not known here",
                   static_cast<int>(number));
  }
  SDX_ASSIGN(Array array, make_array(*type, std::move(dims)));
  if (type->kind == Kind::Text) {
    SDX_TRY(copy_texts(value, array));
    return array;
  }
  const void* data = nullptr;
  SDX_TRY(check(api().GetTensorData(value, &data)));
  if (!array.bytes.empty()) std::memcpy(array.bytes.data(), data, array.bytes.size());
  return array;
}

Status append_items(const std::string& name, const OrtValue* value, bool is_map,
                    std::vector<NamedArray>* out) {
  std::size_t count = 0;
  SDX_TRY(check(api().GetValueCount(value, &count)));
  for (std::size_t i = 0; i < count; ++i) {
    OrtValue* item = nullptr;
    SDX_TRY(check(api().GetValue(value, static_cast<int>(i), allocator(), &item)));
    const Value owner(item);
    const std::string part = is_map ? (i == 0 ? ".keys" : ".values") : fmt::format("[{}]", i);
    SDX_TRY(append_arrays(name + part, item, out));
  }
  return {};
}

}  // namespace

Status append_arrays(const std::string& name, const OrtValue* value, std::vector<NamedArray>* out) {
  int has_value = 0;
  SDX_TRY(check(api().HasValue(value, &has_value)));
  if (has_value == 0) return {};
  ONNXType kind = ONNX_TYPE_UNKNOWN;
  SDX_TRY(check(api().GetValueType(value, &kind)));
  if (kind == ONNX_TYPE_SEQUENCE || kind == ONNX_TYPE_MAP) {
    return append_items(name, value, kind == ONNX_TYPE_MAP, out);
  }
  if (kind != ONNX_TYPE_TENSOR) {
    return failure("output '{}' is neither tensor nor sequence nor map", name);
  }
  SDX_ASSIGN(Array array, copy_tensor(value));
  out->push_back({name, std::move(array)});
  return {};
}

}  // namespace sardonyx::cli
