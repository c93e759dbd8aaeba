#include "ir/shape.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace sardonyx {

void Shape::insert(int axis, Dim dim) {
  push_back(dim);
  std::rotate(dims_.begin() + axis, dims_.begin() + rank_ - 1, dims_.begin() + rank_);
}

void Shape::erase(int axis) {
  std::copy(dims_.begin() + axis + 1, dims_.begin() + rank_, dims_.begin() + axis);
  --rank_;
}

bool Shape::is_static() const { return std::all_of(begin(), end(), is_known); }

std::optional<std::int64_t> Shape::element_count() const {
  bool is_empty = false;
  std::int64_t count = 1;
  for (const Dim dim : *this) {
    if (dim == 0) {
      is_empty = true;
      continue;
    }
    const auto product = checked_multiply(count, dim);
    if (!is_known(dim) || !product) return std::nullopt;
    count = *product;
  }
  return is_empty ? 0 : count;
}

std::int64_t Shape::product(int first, int last) const {
  std::int64_t count = 1;
  for (int axis = first; axis < last; ++axis) count *= (*this)[axis];
  return count;
}

std::string Shape::to_string() const {
  std::vector<std::string> parts;
  for (const Dim dim : *this) {
    parts.push_back(is_known(dim) ? fmt::format("{}", dim)
                    : is_symbol(dim) ? fmt::format("s{}", kUnknownDim - 1 - dim)
                                     : "?");
  }
  return "[" + join(parts, ",") + "]";
}

Dim SymbolTable::intern(const std::string& name) {
  const Dim next = kUnknownDim - 1 - static_cast<Dim>(names_.size());
  const auto [entry, is_new] = dims_.try_emplace(name, next);
  if (is_new) names_.push_back(name);
  return entry->second;
}

const std::string& SymbolTable::name(Dim dim) const {
  static const std::string kNone;
  if (!is_symbol(dim)) return kNone;
  const auto index = static_cast<std::size_t>(kUnknownDim - 1 - dim);
  return index < names_.size() ? names_[index] : kNone;
}

Shape strides_of(const Shape& shape) {
  Shape strides = Shape::filled(shape.rank(), 1);
  for (int axis = shape.rank() - 2; axis >= 0; --axis) {
    strides[axis] = strides[axis + 1] * shape[axis + 1];
  }
  return strides;
}

std::optional<int> normalize_axis(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return std::nullopt;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

}  // namespace sardonyx
