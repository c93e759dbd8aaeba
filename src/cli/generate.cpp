#include "cli/generate.h"

#include <cmath>
#include <numbers>


namespace sardonyx::cli {

namespace {

/// Standard normal by Box and Muller: the standard library's distribution differs between builds.
double normal(std::mt19937_64& random) {
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  const double radius = std::sqrt(-2 * std::log(uniform()));
  return radius * std::cos(2 * std::numbers::pi * uniform());
}

}  // namespace

Result<Array> generate(const Port& port, const std::map<std::string, std::int64_t>& size_of,
                       std::mt19937_64& random) {
  if (port.element == nullptr) {
    return failure("input '{}' is a {}: only tensors can be fed from the command line", port.name,
                   port.describe());
  }
  std::vector<std::int64_t> dims = port.dims;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (dims[axis] >= 0) continue;
    const auto by_axis = size_of.find(fmt::format("{}:{}", port.name, axis));
    const auto by_symbol = size_of.find(port.symbols[axis]);
    dims[axis] = by_axis != size_of.end()     ? by_axis->second
                 : by_symbol != size_of.end() ? by_symbol->second
                                              : 1;
  }
  using Kind = ElementType::Kind;
  SDX_ASSIGN(Array array, make_array(*port.element, std::move(dims)));
  const Kind kind = port.element->kind;
  if (kind == Kind::Text || kind == Kind::Code) return array;
  const bool is_real = kind == Kind::Float || kind == Kind::Complex;
  const std::int64_t count = array.element_count();
  for (std::int64_t i = 0; i < count; ++i) {
    if (is_real) {
      set_number(array, i, normal(random));
    } else {
      set_integer(array, i, static_cast<std::int64_t>(random() >> 63));
    }
  }
  return array;
}

}  // namespace sardonyx::cli
