#pragma once

#include <cstring>

namespace sardonyx::capi {

/// The number that a caller passed as an enumeration, which need not be one of its values: reading
/// it as an enumeration would not be defined then.
template <typename Enum>
int as_number(const Enum& given) {
  static_assert(sizeof(Enum) == sizeof(int));
  int number = 0;
  std::memcpy(&number, &given, sizeof number);
  return number;
}

}  // namespace sardonyx::capi
