#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace sardonyx {

/// One item per input or output of the compiled part. Small models stay off the heap.
template <typename T>
class PerValue {
 public:
  explicit PerValue(std::size_t count) : many_(count > kFew ? count : 0), count_(count) {}
  std::span<T> data() {
    return count_ > kFew ? std::span<T>(many_) : std::span<T>(few_).first(count_);
  }

 private:
  static constexpr std::size_t kFew = 16;
  std::array<T, kFew> few_{};
  std::vector<T> many_;
  std::size_t count_;
};

}  // namespace sardonyx
