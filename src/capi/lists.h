#pragma once

#include <cstddef>

#include "base/text.h"
#include "capi/handles.h"

namespace sardonyx::capi {

/// InvalidArgument that names the parameter when `needed` elements do not fit into an array of
/// `given`.
inline Status check_room(std::size_t needed, std::size_t given, const void* array,
                         const char* parameter) {
  if (given < needed) {
    return failure(Code::InvalidArgument, "'{}' has room for {}, but there are {}", parameter,
                   given, needed);
  }
  return needed == 0 ? Status() : require(array, parameter);
}

/// Fills a caller's array with the elements of a list.
template <typename List, typename T>
Status put_list(const List& list, T* array, std::size_t given, const char* parameter) {
  SDX_TRY(check_room(list.size(), given, array, parameter));
  std::size_t i = 0;
  for (const auto& item : list) array[i++] = item;
  return {};
}

template <typename List>
Status put_count(const List& list, std::size_t* count) {
  SDX_TRY(require(count, "the count"));
  *count = list.size();
  return {};
}

}  // namespace sardonyx::capi
