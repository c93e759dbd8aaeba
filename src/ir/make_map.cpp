#include "ir/make_map.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "base/text.h"

namespace sardonyx {

namespace {

/// Positions of the first of each key, in the order of the keys.
template <typename T>
std::vector<std::size_t> distinct_order(std::span<const T> keys) {
  std::vector<std::size_t> order(keys.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return keys[a] < keys[b]; });
  const auto end = std::unique(order.begin(), order.end(),
                               [&](std::size_t a, std::size_t b) { return keys[a] == keys[b]; });
  order.erase(end, order.end());
  return order;
}

Result<Tensor> pick(const Tensor& from, std::span<const std::size_t> order) {
  SDX_ASSIGN(Tensor picked,
             Tensor::allocate(from.dtype(), {static_cast<std::int64_t>(order.size())}));
  if (from.dtype() == DType::String) {
    const auto source = from.values<std::string>();
    const auto target = picked.mutable_values<std::string>();
    for (std::size_t i = 0; i < order.size(); ++i) target[i] = source[order[i]];
    return picked;
  }
  const int bits = dtype_bits(from.dtype());
  if (bits < 8) {
    return failure(Code::InvalidArgument, "a map cannot hold elements of {}",
                   dtype_name(from.dtype()));
  }
  const auto bytes = static_cast<std::size_t>(bits / 8);
  for (std::size_t i = 0; i < order.size(); ++i) {
    std::memcpy(picked.mutable_data() + i * bytes, from.data() + order[i] * bytes, bytes);
  }
  return picked;
}

}  // namespace

Result<std::shared_ptr<const Map>> make_map(const Tensor& keys, const Tensor& values) {
  if (keys.element_count() != values.element_count()) {
    return failure(Code::InvalidArgument, "a map cannot have {} keys and {} values",
                   keys.element_count(), values.element_count());
  }
  std::vector<std::size_t> order;
  if (keys.dtype() == DType::Int64) {
    order = distinct_order(keys.values<std::int64_t>());
  } else if (keys.dtype() == DType::String) {
    order = distinct_order(keys.values<std::string>());
  } else {
    return failure(Code::InvalidArgument, "the keys of a map should be int64 or string, found {}",
                   dtype_name(keys.dtype()));
  }
  SDX_ASSIGN(Tensor own_keys, pick(keys, order));
  SDX_ASSIGN(Tensor own_values, pick(values, order));
  return std::make_shared<const Map>(Map{std::move(own_keys), std::move(own_values)});
}

}  // namespace sardonyx
