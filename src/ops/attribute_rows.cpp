#include "ops/attribute_rows.h"

#include <algorithm>

namespace sardonyx {

std::vector<AttributeRow> attribute_rows(std::string_view text) {
  std::vector<AttributeRow> rows;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    std::string_view item = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t colon = item.find(':');
    if (colon == std::string_view::npos) continue;
    const bool is_required = item.back() == '!';
    if (is_required) item.remove_suffix(1);
    rows.push_back({item.substr(0, colon), item.substr(colon + 1), is_required});
  }
  return rows;
}

}  // namespace sardonyx
