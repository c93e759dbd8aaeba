#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "ir/element.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace sardonyx {

namespace {

/// Names of Cast-1, whose attribute `to` is a string.
std::optional<DType> dtype_by_name(std::string_view name) {
  struct Row {
    std::string_view name;
    DType dtype;
  };
  static constexpr Row kNames[] = {
      {"FLOAT", DType::Float32},   {"UINT8", DType::UInt8},   {"INT8", DType::Int8},
      {"UINT16", DType::UInt16},   {"INT16", DType::Int16},   {"INT32", DType::Int32},
      {"INT64", DType::Int64},     {"STRING", DType::String}, {"BOOL", DType::Bool},
      {"FLOAT16", DType::Float16}, {"DOUBLE", DType::Float64}, {"UINT32", DType::UInt32},
      {"UINT64", DType::UInt64},
  };
  for (const Row& row : kNames) {
    if (row.name == name) return row.dtype;
  }
  return std::nullopt;
}

bool can_cast_to(DType dtype) {
  return contains(kAll & ~kComplex, dtype) && dtype != DType::Undefined;
}

Status infer_cast(InferContext& context) {
  const std::string name = context.attributes().get_string("to", "");
  const std::int64_t number = context.attributes().get_int("to", 0);
  const auto dtype = name.empty() ? dtype_from_onnx(number) : dtype_by_name(name);
  if (!dtype || !can_cast_to(*dtype)) {
    return context.error("attribute 'to' is {}, which is no type to cast to",
                         name.empty() ? std::to_string(number) : name);
  }
  context.set_dtype(0, *dtype);
  return infer_same_shape(context);
}

Status infer_cast_like(InferContext& context) {
  if (context.dtype(1) != DType::Undefined) context.set_dtype(0, context.dtype(1));
  return infer_same_shape(context);
}

bool equal_ignoring_case(std::string_view a, std::string_view lower) {
  if (a.size() != lower.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const char c = a[i] >= 'A' && a[i] <= 'Z' ? static_cast<char>(a[i] - 'A' + 'a') : a[i];
    if (c != lower[i]) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  text = text.substr(first, text.find_last_not_of(kSpace) - first + 1);
  if (text.size() > 1 && text.front() == '+') text.remove_prefix(1);
  return text;
}

std::optional<double> parse_real(std::string_view text) {
  text = trimmed(text);
  const bool is_negative = !text.empty() && text.front() == '-';
  const std::string_view magnitude = is_negative ? text.substr(1) : text;
  const double sign = is_negative ? -1 : 1;
  if (equal_ignoring_case(magnitude, "inf") || equal_ignoring_case(magnitude, "infinity")) {
    return sign * std::numeric_limits<double>::infinity();
  }
  if (equal_ignoring_case(magnitude, "nan")) return std::numeric_limits<double>::quiet_NaN();
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc::result_out_of_range) {
    // Too large or too small: the exponent's sign tells which.
    const bool is_small = text.find("e-") != text.npos || text.find("E-") != text.npos;
    return is_small ? 0.0 : sign * std::numeric_limits<double>::infinity();
  }
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  text = trimmed(text);
  const char* end = text.data() + text.size();
  std::int64_t value = 0;
  if (const auto parsed = std::from_chars(text.data(), end, value);
      parsed.ec == std::errc() && parsed.ptr == end) {
    return value;
  }
  std::uint64_t large = 0;
  if (const auto parsed = std::from_chars(text.data(), end, large);
      parsed.ec == std::errc() && parsed.ptr == end) {
    return static_cast<std::int64_t>(large);
  }
  const auto real = parse_real(text);
  if (!real || !(std::fabs(*real) < 0x1p63)) return std::nullopt;
  return static_cast<std::int64_t>(*real);
}

bool is_integer(DType dtype) {
  return contains(kInts | set_of(DType::Int4, DType::UInt4, DType::Int2, DType::UInt2), dtype);
}

Status parse_into(const EvalContext& context, const std::string& text, Tensor& y, std::int64_t i,
                  bool saturate) {
  if (is_integer(y.dtype())) {
    const auto value = parse_int(text);
    if (!value) return context.error("'{}' is no integer", text);
    write_int(y.dtype(), y.mutable_data(), i, *value);
    return {};
  }
  if (y.dtype() == DType::Bool) {
    const std::string_view word = trimmed(text);
    const bool is_word = equal_ignoring_case(word, "true") || equal_ignoring_case(word, "false");
    const auto value = is_word ? std::optional<double>(equal_ignoring_case(word, "true"))
                               : parse_real(text);
    if (!value) return context.error("'{}' is no bool", text);
    write_real(y.dtype(), y.mutable_data(), i, *value);
    return {};
  }
  const auto value = parse_real(text);
  if (!value) return context.error("'{}' is no number", text);
  write_real(y.dtype(), y.mutable_data(), i, *value, saturate);
  return {};
}

/// The shortest digits that name the value among those of its type, with a point: "1.0", "1e-05".
template <typename T>
std::string shortest_text(T value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-INF" : "INF";
  const T magnitude = std::fabs(value);
  const bool is_plain = magnitude == 0 || (magnitude >= T(1e-4) && magnitude < T(1e16));
  std::array<char, 64> buffer;
  const auto format = is_plain ? std::chars_format::fixed : std::chars_format::scientific;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, format).ptr;
  std::string text(buffer.data(), end);
  if (is_plain && text.find('.') == text.npos) text += ".0";
  return text;
}

/// As above for a type of few digits, which are tried one by one.
std::string narrow_text(DType dtype, float value) {
  for (int digits = 1; digits < 9; ++digits) {
    double candidate = 0;
    const std::string text = fmt::format("{:.{}e}", value, digits - 1);
    std::from_chars(text.data(), text.data() + text.size(), candidate);
    std::array<std::byte, 4> code{};
    write_real(dtype, code.data(), 0, candidate);
    if (read_real(dtype, code.data(), 0) == static_cast<double>(value)) {
      return shortest_text(candidate);
    }
  }
  return shortest_text(value);
}

std::string text_of(const Tensor& x, std::int64_t i) {
  const DType dtype = x.dtype();
  if (dtype == DType::Bool) return read_int(dtype, x.data(), i) != 0 ? "True" : "False";
  if (dtype == DType::UInt64) {
    return std::to_string(static_cast<std::uint64_t>(read_int(dtype, x.data(), i)));
  }
  if (is_integer(dtype)) return std::to_string(read_int(dtype, x.data(), i));
  const double value = read_real(dtype, x.data(), i);
  if (dtype == DType::Float64) return shortest_text(value);
  const auto single = static_cast<float>(value);
  return dtype == DType::Float32 ? shortest_text(single) : narrow_text(dtype, single);
}

Status cast_to_scale(const EvalContext& context, const Tensor& x, Tensor& y, bool saturate) {
  const std::string mode = context.attributes().get_string("round_mode", "up");
  const auto rounding = mode == "up"        ? std::optional(PowerRounding::Up)
                        : mode == "down"    ? std::optional(PowerRounding::Down)
                        : mode == "nearest" ? std::optional(PowerRounding::Nearest)
                                            : std::nullopt;
  if (!rounding) {
    return context.error("round_mode should be 'up', 'down' or 'nearest', but is '{}'", mode);
  }
  const std::int64_t count = x.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<float>(read_real(x.dtype(), x.data(), i));
    y.mutable_data()[i] = static_cast<std::byte>(to_float8e8m0(value, *rounding, saturate));
  }
  return {};
}

Status evaluate_cast(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr) return {};
  const bool saturate = context.attributes().get_int("saturate", 1) != 0;
  const std::int64_t count = x.element_count();
  if (x.dtype() == DType::String) {
    const auto texts = x.values<std::string>();
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string& text = texts[static_cast<std::size_t>(i)];
      if (y->dtype() == DType::String) {
        y->mutable_values<std::string>()[static_cast<std::size_t>(i)] = text;
      } else {
        SDX_TRY(parse_into(context, text, *y, i, saturate));
      }
    }
    return {};
  }
  if (y->dtype() == DType::String) {
    const auto texts = y->mutable_values<std::string>();
    for (std::int64_t i = 0; i < count; ++i) texts[static_cast<std::size_t>(i)] = text_of(x, i);
    return {};
  }
  if (y->dtype() == DType::Float8E8M0 && x.dtype() != DType::Float8E8M0) {
    return cast_to_scale(context, x, *y, saturate);
  }
  convert_elements(x.dtype(), x.data(), y->dtype(), y->mutable_data(), count, saturate);
  return {};
}

Status infer_bit_cast(InferContext& context) {
  const std::int64_t number = context.attributes().get_int("to", 0);
  const auto dtype = dtype_from_onnx(number);
  if (!dtype || *dtype == DType::Undefined || *dtype == DType::String) {
    return context.error("attribute 'to' is {}, which is no type to cast bits to", number);
  }
  const DType from = context.dtype(0);
  if (from != DType::Undefined && dtype_bits(from) != dtype_bits(*dtype)) {
    return context.error("tensor({}) and tensor({}) differ in size: {} and {} bits",
                         dtype_name(from), dtype_name(*dtype), dtype_bits(from),
                         dtype_bits(*dtype));
  }
  context.set_dtype(0, *dtype);
  return infer_same_shape(context);
}

Status evaluate_bit_cast(EvalContext& context) {
  const Tensor& x = context.tensor(0);
  SDX_ASSIGN(Tensor * y, context.allocate(0));
  if (y == nullptr || x.byte_size() == 0) return {};
  if (y->dtype() == DType::Bool) {
    // Any other byte in a bool would be undefined behaviour for those who read it.
    const auto from = x.values<std::uint8_t>();
    const auto to = y->mutable_values<bool>();
    for (std::size_t i = 0; i < from.size(); ++i) to[i] = from[i] != 0;
    return {};
  }
  std::memcpy(y->mutable_data(), x.data(), x.byte_size());
  return {};
}

constexpr OpSchema kRows[] = {
    {"", "BitCast", 26, {"T>U", kNumericBf16 | kSubByte | kFloat8 | kComplex | set_of(DType::Bool,
      DType::Float8E8M0), kNumericBf16 | kSubByte | kFloat8 | kComplex | set_of(DType::Bool,
      DType::Float8E8M0)}, "to:i!", infer_bit_cast, evaluate_bit_cast},
    {"", "Cast", 1, {"T>U", kNumeric | set_of(DType::Bool), kNumeric | set_of(DType::Bool)},
     "to:s!", infer_cast, evaluate_cast},
    {"", "Cast", 6, {"T>U", kNumeric | set_of(DType::Bool), kNumeric | set_of(DType::Bool)},
     "to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 9, {"T>U", kNumeric | set_of(DType::Bool, DType::String), kNumeric |
      set_of(DType::Bool, DType::String)}, "to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 13, {"T>U", kNumericBf16 | set_of(DType::Bool, DType::String), kNumericBf16 |
      set_of(DType::Bool, DType::String)}, "to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 19, {"T>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String),
      kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String)}, "saturate:i to:i!", infer_cast,
     evaluate_cast},
    {"", "Cast", 21, {"T>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4), kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4)}, "saturate:i to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 23, {"T>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4, DType::Float4E2M1), kNumericBf16 | kFloat8 | set_of(DType::Bool,
      DType::String, DType::UInt4, DType::Int4, DType::Float4E2M1)}, "saturate:i to:i!", infer_cast,
     evaluate_cast},
    {"", "Cast", 24, {"T>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4, DType::Float4E2M1, DType::Float8E8M0), kNumericBf16 | kFloat8 |
      set_of(DType::Bool, DType::String, DType::UInt4, DType::Int4, DType::Float4E2M1,
      DType::Float8E8M0)}, "round_mode:s saturate:i to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 25, {"T>U", kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool, DType::String,
      DType::Float8E8M0), kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool, DType::String,
      DType::Float8E8M0)}, "round_mode:s saturate:i to:i!", infer_cast, evaluate_cast},
    {"", "Cast", 28, {"T>U", kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool, DType::String,
      DType::Float8E8M0, DType::Float6E2M3, DType::Float6E3M2), kNumericBf16 | kSubByte | kFloat8 |
      set_of(DType::Bool, DType::String, DType::Float8E8M0, DType::Float6E2M3, DType::Float6E3M2)},
     "round_mode:s saturate:i to:i!", infer_cast, evaluate_cast},
    {"", "CastLike", 15, {"TU>U", kNumericBf16 | set_of(DType::Bool, DType::String), kNumericBf16 |
      set_of(DType::Bool, DType::String)}, "", infer_cast_like, evaluate_cast},
    {"", "CastLike", 19, {"TU>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String),
      kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String)}, "saturate:i", infer_cast_like,
     evaluate_cast},
    {"", "CastLike", 21, {"TU>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4), kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4)}, "saturate:i", infer_cast_like, evaluate_cast},
    {"", "CastLike", 23, {"TU>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4, DType::Float4E2M1), kNumericBf16 | kFloat8 | set_of(DType::Bool,
      DType::String, DType::UInt4, DType::Int4, DType::Float4E2M1)}, "saturate:i", infer_cast_like,
     evaluate_cast},
    {"", "CastLike", 24, {"TU>U", kNumericBf16 | kFloat8 | set_of(DType::Bool, DType::String,
      DType::UInt4, DType::Int4, DType::Float4E2M1, DType::Float8E8M0), kNumericBf16 | kFloat8 |
      set_of(DType::Bool, DType::String, DType::UInt4, DType::Int4, DType::Float4E2M1,
      DType::Float8E8M0)}, "round_mode:s saturate:i", infer_cast_like, evaluate_cast},
    {"", "CastLike", 25, {"TU>U", kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool,
      DType::String, DType::Float8E8M0), kNumericBf16 | kSubByte | kFloat8 | set_of(DType::Bool,
      DType::String, DType::Float8E8M0)}, "round_mode:s saturate:i", infer_cast_like,
     evaluate_cast},
};

}  // namespace

std::span<const OpSchema> cast_schemas() { return kRows; }

}  // namespace sardonyx
