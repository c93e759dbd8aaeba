#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/small_floats.h"
#include "base/status.h"
#include "ir/dtype.h"
#include "ir/shape.h"

namespace sardonyx {

/// Every buffer of Sardonyx's own starts at a multiple of this.
inline constexpr std::size_t kAlignment_bytes = 64;

/// A dense row-major tensor over memory that it owns, shares or borrows.
///
/// Copying copies the handle, not the elements. Elements of 4 and 2 bits are packed, low bits
/// first. Strings are std::string objects.
///
/// Data starts at a multiple of the element's alignment with one exception: a large initializer
/// that stands at an odd place of its file is not copied, so that is_aligned() is false. Code that
/// takes such weights as they are reads them by memcpy or unaligned vector loads and says so;
/// everyone else takes them through aligned().
class Tensor {
 public:
  Tensor() = default;

  /// A tensor with memory of its own: numbers are not initialised, strings are empty.
  /// Errors   OutOfMemory when the size does not fit or cannot be had; the shape must be static.
  static Result<Tensor> allocate(DType dtype, const Shape& shape);

  /// A tensor over `data`, which must hold the elements (64-byte alignment is not required) and
  /// live as long as `owner`, or, when that is null, as long as the tensor is used.
  static Tensor view(DType dtype, const Shape& shape, void* data,
                     std::shared_ptr<const void> owner = nullptr) {
    Tensor tensor;
    tensor.dtype_ = dtype;
    tensor.shape_ = shape;
    tensor.data_ = static_cast<std::byte*>(data);
    tensor.owner_ = std::move(owner);
    return tensor;
  }
  /// As above for memory that must not be written.
  static Tensor view(DType dtype, const Shape& shape, const void* data,
                     std::shared_ptr<const void> owner = nullptr) {
    return view(dtype, shape, const_cast<void*>(data), std::move(owner));
  }

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  Dim dim(int axis) const { return shape_[axis]; }
  /// The shape of an existing tensor is static and its product fits.
  std::int64_t element_count() const { return shape_.product(0, shape_.rank()); }
  std::size_t byte_size() const { return *dtype_bytes(dtype_, element_count()); }
  const std::byte* data() const { return data_; }
  std::byte* mutable_data() { return data_; }
  const std::shared_ptr<const void>& owner() const { return owner_; }
  /// Data may be read as elements through ordinary pointers.
  bool is_aligned() const {
    return reinterpret_cast<std::uintptr_t>(data_) % dtype_alignment(dtype_) == 0;
  }

  /// Elements as T, which must be the C++ type of dtype() (Half, BFloat16, std::string included;
  /// any 1-byte integer for packed and 8-bit types: the span then covers the bytes).
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(data_), byte_size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> mutable_values() {
    return {reinterpret_cast<T*>(data_), byte_size() / sizeof(T)};
  }

  /// The same elements with another static shape of equal element count.
  Tensor reshaped(const Shape& shape) const {
    Tensor tensor = *this;
    tensor.shape_ = shape;
    return tensor;
  }

 private:
  DType dtype_ = DType::Undefined;
  Shape shape_;
  std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

/// A tensor with its own copy of the elements.
Result<Tensor> clone(const Tensor& tensor);

/// The tensor itself when it is aligned, else a clone.
Result<Tensor> aligned(const Tensor& tensor);

/// Small tensors for tests and folded constants.
template <typename T>
struct DTypeOf;
template <> struct DTypeOf<float> { static constexpr DType value = DType::Float32; };
template <> struct DTypeOf<double> { static constexpr DType value = DType::Float64; };
template <> struct DTypeOf<Half> { static constexpr DType value = DType::Float16; };
template <> struct DTypeOf<BFloat16> { static constexpr DType value = DType::BFloat16; };
template <> struct DTypeOf<std::int8_t> { static constexpr DType value = DType::Int8; };
template <> struct DTypeOf<std::int16_t> { static constexpr DType value = DType::Int16; };
template <> struct DTypeOf<std::int32_t> { static constexpr DType value = DType::Int32; };
template <> struct DTypeOf<std::int64_t> { static constexpr DType value = DType::Int64; };
template <> struct DTypeOf<std::uint8_t> { static constexpr DType value = DType::UInt8; };
template <> struct DTypeOf<std::uint16_t> { static constexpr DType value = DType::UInt16; };
template <> struct DTypeOf<std::uint32_t> { static constexpr DType value = DType::UInt32; };
template <> struct DTypeOf<std::uint64_t> { static constexpr DType value = DType::UInt64; };
template <> struct DTypeOf<bool> { static constexpr DType value = DType::Bool; };
template <> struct DTypeOf<std::string> { static constexpr DType value = DType::String; };

/// A tensor that owns a copy of `values`, whose number must be the shape's.
template <typename T>
Result<Tensor> make_tensor(const Shape& shape, std::span<const T> values) {
  SDX_ASSIGN(Tensor tensor, Tensor::allocate(DTypeOf<T>::value, shape));
  assert(static_cast<std::size_t>(tensor.element_count()) == values.size());
  auto target = tensor.mutable_values<T>();
  for (std::size_t i = 0; i < values.size(); ++i) target[i] = values[i];
  return tensor;
}
template <typename T>
Result<Tensor> make_tensor(const Shape& shape, std::initializer_list<T> values) {
  return make_tensor<T>(shape, std::span<const T>(values.begin(), values.size()));
}

}  // namespace sardonyx
