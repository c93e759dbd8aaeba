#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/api.h"

namespace sardonyx::cli {

/// One row per element type.
struct ElementType {
  enum class Kind : std::uint8_t { Float, Signed, Unsigned, Bool, Complex, Text, Code };

  ONNXTensorElementDataType number;
  /// As in "tensor(float)".
  const char* name;
  /// The type that numpy has for it; "" for text, whose type depends on the longest one.
  const char* descr;
  Kind kind;
  /// Of one element in the runtime's memory; below 8 several share a byte, low bits first.
  int bits;
};

/// The row of a type, or null.
const ElementType* find_element(ONNXTensorElementDataType number);
const ElementType* find_element_by_descr(std::string_view descr);

/// A tensor in memory of its own.
struct Array {
  const ElementType* type = nullptr;
  std::vector<std::int64_t> dims;
  /// Elements as the runtime lays them out; empty for text.
  std::vector<std::byte> bytes;
  std::vector<std::string> texts;

  std::string type_name() const;
  /// "[2,3]".
  std::string shape_text() const;
  std::int64_t element_count() const;
};

/// Product of sizes; nothing when one is negative or it does not fit.
std::optional<std::int64_t> count_elements(const std::vector<std::int64_t>& dims);

/// An array of zeros (empty texts).
/// Errors   InvalidArgument when the size does not fit.
Result<Array> make_array(const ElementType& type, std::vector<std::int64_t> dims);

/// A number at a position, integers and codes included; nothing for text and complex numbers.
std::optional<double> number_at(const Array& array, std::int64_t index);
/// Stores a number, rounded as the type needs. Integers outside its range, and numbers in text,
/// are not stored: false.
bool set_number(Array& array, std::int64_t index, double number);
bool set_integer(Array& array, std::int64_t index, std::int64_t number);

/// A value for the runtime; it uses the array's memory, except for text.
Result<Value> to_value(Array& array);

struct NamedArray {
  std::string name;
  Array array;
};
/// Appends the tensors of a value; those inside sequences, maps and optionals are named "name[0]",
/// "name.keys", "name.values". An absent optional adds nothing.
Status append_arrays(const std::string& name, const OrtValue* value, std::vector<NamedArray>* out);

}  // namespace sardonyx::cli
