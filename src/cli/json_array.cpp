#include "cli/json_array.h"

#include <limits>


namespace sardonyx::cli {

namespace {

/// More would be no tensor, and recursion has to end.
constexpr std::size_t kRankMax = 16;

bool store(Array& array, std::int64_t index, const Json& element) {
  if (array.type->kind == ElementType::Kind::Text) {
    if (!element.is_string()) return false;
    array.texts[static_cast<std::size_t>(index)] = element.get<std::string>();
    return true;
  }
  if (element.is_boolean()) return set_integer(array, index, element.get<bool>() ? 1 : 0);
  if (element.is_null()) {
    return array.type->kind == ElementType::Kind::Float &&
           set_number(array, index, std::numeric_limits<double>::quiet_NaN());
  }
  if (element.is_number_integer()) {
    if (element.is_number_unsigned() && element.get<std::uint64_t>() > INT64_MAX) return false;
    return set_integer(array, index, element.get<std::int64_t>());
  }
  return element.is_number() && set_number(array, index, element.get<double>());
}

Status fill(const Json& nested, std::size_t axis, const std::string& name, std::int64_t* next,
            Array& array) {
  if (axis == array.dims.size()) {
    if (store(array, *next, nested)) return ++*next, Status();
    return failure("input '{}' is {}, which {} is not", name,
                   array.type_name(), nested.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  if (!nested.is_array() || nested.size() != static_cast<std::size_t>(array.dims[axis])) {
    return failure("input '{}' has lists of different lengths: expected {} items at depth {}", name,
                   array.dims[axis], axis);
  }
  for (const Json& item : nested) SDX_TRY(fill(item, axis + 1, name, next, array));
  return {};
}

}  // namespace

Result<Array> array_from_json(const Json& nested, const ElementType& type,
                              const std::string& name) {
  std::vector<std::int64_t> dims;
  for (const Json* at = &nested; at->is_array(); at = &at->front()) {
    if (dims.size() == kRankMax) {
      return failure("input '{}' has more than {} dimensions", name,
                     kRankMax);
    }
    dims.push_back(static_cast<std::int64_t>(at->size()));
    if (at->empty()) break;
  }
  SDX_ASSIGN(Array array, make_array(type, std::move(dims)));
  std::int64_t next = 0;
  SDX_TRY(fill(nested, 0, name, &next, array));
  return array;
}

}  // namespace sardonyx::cli
