#include "ir/attribute.h"

#include <algorithm>
#include <array>

namespace sardonyx {

namespace {

template <typename T>
const T& list_or_empty(const Attributes& attributes, std::string_view name) {
  static const T kEmpty;
  const T* list = attributes.get_if<T>(name);
  return list != nullptr ? *list : kEmpty;
}

}  // namespace

void Attributes::set(std::string name, Attribute value) {
  if (Attribute* existing = find(name)) {
    *existing = std::move(value);
  } else {
    entries_.emplace_back(std::move(name), std::move(value));
  }
}

void Attributes::erase(std::string_view name) {
  std::erase_if(entries_, [&](const Entry& entry) { return entry.first == name; });
}

const Attribute* Attributes::find(std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.first == name) return &entry.second;
  }
  return nullptr;
}

Attribute* Attributes::find(std::string_view name) {
  return const_cast<Attribute*>(std::as_const(*this).find(name));
}

std::int64_t Attributes::get_int(std::string_view name, std::int64_t fallback) const {
  const auto* value = get_if<std::int64_t>(name);
  return value != nullptr ? *value : fallback;
}

float Attributes::get_float(std::string_view name, float fallback) const {
  const auto* value = get_if<float>(name);
  return value != nullptr ? *value : fallback;
}

std::string Attributes::get_string(std::string_view name, std::string_view fallback) const {
  const auto* value = get_if<std::string>(name);
  return value != nullptr ? *value : std::string(fallback);
}

const std::vector<std::int64_t>& Attributes::get_ints(std::string_view name) const {
  return list_or_empty<std::vector<std::int64_t>>(*this, name);
}

const std::vector<float>& Attributes::get_floats(std::string_view name) const {
  return list_or_empty<std::vector<float>>(*this, name);
}

const std::vector<std::string>& Attributes::get_strings(std::string_view name) const {
  return list_or_empty<std::vector<std::string>>(*this, name);
}

std::string_view attribute_kind(const Attribute& attribute) {
  static constexpr std::array<std::string_view, std::variant_size_v<Attribute>> kNames = {
      "int",    "float",   "string",  "tensor", "graph",       "sparse_tensor", "type",
      "ints",   "floats",  "strings", "tensors", "graphs",     "types",         "reference"};
  return kNames[attribute.index()];
}

}  // namespace sardonyx
