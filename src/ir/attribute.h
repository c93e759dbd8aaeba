#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "ir/datum.h"

namespace sardonyx {

class Graph;

/// Inside a model-local function: the value comes from the calling node's attribute of that name.
struct AttributeReference {
  std::string name;
  /// The kind that the model declares, as a number of AttributeProto.AttributeType; 0 = not given.
  std::int32_t onnx_type = 0;
};

/// The value of one attribute. Graphs are shared between copies of a node until one is changed.
using Attribute =
    std::variant<std::int64_t, float, std::string, Tensor, std::shared_ptr<Graph>,
                 std::shared_ptr<const SparseTensor>, Type, std::vector<std::int64_t>,
                 std::vector<float>, std::vector<std::string>, std::vector<Tensor>,
                 std::vector<std::shared_ptr<Graph>>, std::vector<Type>, AttributeReference>;

/// The attributes of one node by name, in the order they were added.
class Attributes {
 public:
  using Entry = std::pair<std::string, Attribute>;

  void set(std::string name, Attribute value);
  void erase(std::string_view name);
  /// The attribute, or null.
  const Attribute* find(std::string_view name) const;
  Attribute* find(std::string_view name);
  bool has(std::string_view name) const { return find(name) != nullptr; }

  /// The attribute if it is there with that type, else null.
  template <typename T>
  const T* get_if(std::string_view name) const {
    const Attribute* attribute = find(name);
    return attribute != nullptr ? std::get_if<T>(attribute) : nullptr;
  }
  /// The attribute's value, or `fallback` when it is missing (or of another type, which
  /// validation has refused before).
  std::int64_t get_int(std::string_view name, std::int64_t fallback) const;
  float get_float(std::string_view name, float fallback) const;
  std::string get_string(std::string_view name, std::string_view fallback) const;
  /// The list; empty when missing.
  const std::vector<std::int64_t>& get_ints(std::string_view name) const;
  const std::vector<float>& get_floats(std::string_view name) const;
  const std::vector<std::string>& get_strings(std::string_view name) const;

  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }
  auto begin() { return entries_.begin(); }
  auto end() { return entries_.end(); }
  std::size_t size() const { return entries_.size(); }

 private:
  std::vector<Entry> entries_;
};

/// "int", "ints", "tensor", "graph" ...: what kind of value an attribute holds.
std::string_view attribute_kind(const Attribute& attribute);

}  // namespace sardonyx
