#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace sardonyx {

/// One item per input or output of a run. Few of them stay off the heap, and no more are made than
/// there are: a call on a small model costs little else.
template <typename T>
class PerValue {
 public:
  explicit PerValue(std::size_t count) : count_(count), many_(count > kFew ? count : 0) {
    if (count <= kFew) std::uninitialized_value_construct_n(few(), count);
  }
  ~PerValue() {
    if (count_ <= kFew) std::destroy_n(few(), count_);
  }
  PerValue(const PerValue&) = delete;
  PerValue& operator=(const PerValue&) = delete;

  std::span<T> data() { return count_ > kFew ? std::span<T>(many_) : std::span<T>(few(), count_); }

 private:
  static constexpr std::size_t kFew = 16;

  T* few() { return reinterpret_cast<T*>(few_); }

  std::size_t count_;
  std::vector<T> many_;
  alignas(T) std::byte few_[kFew * sizeof(T)];
};

}  // namespace sardonyx
