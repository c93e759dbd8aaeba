#pragma once

#include <array>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "ir/tensor.h"
#include "ops/eval_context.h"

namespace sardonyx {

/// Types that the plain evaluators of matrix products compute in: float for floats up to 32 bits,
/// double, and uint64 for integers, whose low bits are right whatever the sign.
template <typename Body>
Status with_arithmetic(DType dtype, Body&& body) {
  if (dtype == DType::Float64) return body.template operator()<double>();
  if (contains(kInts, dtype)) return body.template operator()<std::uint64_t>();
  return body.template operator()<float>();
}
/// The same for operators on floats alone.
template <typename Body>
Status with_real(DType dtype, Body&& body) {
  if (dtype == DType::Float64) return body.template operator()<double>();
  return body.template operator()<float>();
}

/// The elements of a tensor as C (float, double, uint32 or uint64): the tensor itself where its
/// memory already is that, else a copy.
template <typename C>
class Elements {
 public:
  /// No elements (an input that is left out).
  Elements() = default;
  static Result<Elements> of(const Tensor& tensor);
  /// Empty when `tensor` is null.
  static Result<Elements> of(const Tensor* tensor) {
    if (tensor == nullptr) return Elements();
    return of(*tensor);
  }

  const C* data() const { return data_; }
  const C& operator[](std::int64_t i) const { return data_[i]; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  const C* data_ = nullptr;
  Tensor keep_;
};

/// Output i, written as C and stored in its own type by commit().
template <typename C>
class Staged {
 public:
  static Result<Staged> open(EvalContext& context, std::size_t i);
  static Result<Staged> open(EvalContext& context, std::size_t i, const Shape& shape);

  /// Null when nobody wants the output. Not initialised.
  C* data() { return data_; }
  C& operator[](std::int64_t i) { return data_[i]; }
  explicit operator bool() const { return data_ != nullptr; }
  std::int64_t element_count() const { return target_->element_count(); }
  /// To be called once all elements are written.
  void commit();

 private:
  static Result<Staged> over(Tensor* target);
  C* data_ = nullptr;
  Tensor* target_ = nullptr;
  Tensor buffer_;
};

/// Operands of multiply_add: a[i][k] at a[i * a_row + k * a_column], rows of b and c contiguous.
template <typename C>
struct Product {
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t depth;
  const C* a;
  std::int64_t a_row;
  std::int64_t a_column;
  const C* b;
  std::int64_t b_row;
  C* c;
  std::int64_t c_row;
};

/// c += a b.
/// Numbers  the sum over k runs in order within blocks of k.
template <typename C>
void multiply_add(const Product<C>& product);

/// to[c][r] = from[r][c]; both dense.
template <typename C>
void transpose_matrix(const C* from, std::int64_t rows, std::int64_t columns, C* to);

/// A scratch buffer of `count` elements that are not initialised.
/// Errors   OutOfMemory.
template <typename C>
Result<Tensor> make_scratch(std::int64_t count);

/// Walks the positions of a batch shape in row-major order and keeps an offset for each operand
/// whose shape broadcasts to it.
class BatchWalk {
 public:
  explicit BatchWalk(const Shape& batch) : batch_(batch) {}
  /// Adds an operand with that batch shape, each of whose positions is `stride` elements.
  void add(const Shape& shape, std::int64_t stride);
  std::int64_t offset(std::size_t operand) const { return offsets_[operand]; }
  void next();

 private:
  Shape batch_;
  std::array<std::int64_t, Shape::kMaxRank> position_{};
  std::array<std::array<std::int64_t, Shape::kMaxRank>, 4> strides_{};
  std::array<std::int64_t, 4> offsets_{};
  std::size_t count_ = 0;
};

/// The dimensions [first, last) of a shape.
Shape slice_of(const Shape& shape, int first, int last);

/// Whether two dimensions are known and differ.
inline bool differ(Dim a, Dim b) { return is_known(a) && is_known(b) && a != b; }

}  // namespace sardonyx
