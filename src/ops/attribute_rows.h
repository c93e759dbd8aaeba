#pragma once

#include <string_view>
#include <vector>

namespace sardonyx {

/// One attribute that an operator may have.
struct AttributeRow {
  std::string_view name;
  /// Letters as in schema.h.
  std::string_view kind;
  bool is_required;
};

/// The attributes that OpSchema::attributes lists, as views of that text.
std::vector<AttributeRow> attribute_rows(std::string_view text);

}  // namespace sardonyx
