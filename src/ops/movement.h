#pragma once

#include <cstddef>
#include <cstdint>

#include "ir/dtype.h"
#include "ir/shape.h"
#include "ir/tensor.h"

namespace sardonyx {

/// Moving elements of any type (strings and packed 2- and 4-bit types included) between buffers
/// that do not overlap. Positions, strides and counts are in elements.

/// Copies `count` neighbouring elements.
void copy_elements(DType dtype, std::byte* to, std::int64_t to_index, const std::byte* from,
                   std::int64_t from_index, std::int64_t count);

/// Writes the element `value[value_index]` `count` times.
void fill_elements(DType dtype, std::byte* to, std::int64_t to_index, std::int64_t count,
                   const std::byte* value, std::int64_t value_index);

/// Makes all elements zero, false or "".
void fill_zero(Tensor& tensor);

/// One operand of copy_strided: where element [0, ..., 0] is, and the step along each axis, which
/// may be zero or negative.
struct StridedView {
  std::int64_t offset = 0;
  Shape strides;
};

/// Copies a box of `shape` elements, in row-major order.
/// Cost     one pass over the box; axes that lie together in both buffers are merged, and runs are
///          copied as blocks.
void copy_strided(DType dtype, const Shape& shape, std::byte* to, const StridedView& to_view,
                  const std::byte* from, const StridedView& from_view);

/// Walks the positions of a box in row-major order and keeps two offsets on the way.
class BoxWalker {
 public:
  /// `first` and `second` are the steps of the two offsets along each axis.
  BoxWalker(const Shape& box, const Shape& first, const Shape& second)
      : box_(box), first_steps_(first), second_steps_(second),
        position_(Shape::filled(box.rank(), 0)) {}

  std::int64_t first() const { return first_; }
  std::int64_t second() const { return second_; }
  const Shape& position() const { return position_; }
  /// Goes to the next position; back at the beginning it returns false.
  bool next() {
    for (int axis = box_.rank() - 1; axis >= 0; --axis) {
      first_ += first_steps_[axis];
      second_ += second_steps_[axis];
      if (++position_[axis] < box_[axis]) return true;
      first_ -= first_steps_[axis] * box_[axis];
      second_ -= second_steps_[axis] * box_[axis];
      position_[axis] = 0;
    }
    return false;
  }

 private:
  Shape box_;
  Shape first_steps_;
  Shape second_steps_;
  Shape position_;
  std::int64_t first_ = 0;
  std::int64_t second_ = 0;
};

}  // namespace sardonyx
