#include "ops/movement.h"

#include <algorithm>
#include <cstring>
#include <string>

namespace sardonyx {

namespace {

/// A box after axes were dropped and merged.
struct Box {
  Shape shape;
  Shape to;
  Shape from;
};

/// Drops axes of size one and merges axes that lie together in both buffers.
Box simplify(const Shape& shape, const Shape& to, const Shape& from) {
  Box box;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    const int last = box.shape.rank() - 1;
    if (last >= 0 && box.to[last] == to[axis] * shape[axis] &&
        box.from[last] == from[axis] * shape[axis]) {
      box.shape[last] *= shape[axis];
      box.to[last] = to[axis];
      box.from[last] = from[axis];
      continue;
    }
    box.shape.push_back(shape[axis]);
    box.to.push_back(to[axis]);
    box.from.push_back(from[axis]);
  }
  if (box.shape.empty()) {
    box.shape.push_back(1);
    box.to.push_back(1);
    box.from.push_back(1);
  }
  return box;
}

/// Elements of a fixed number of bytes.
template <std::size_t kBytes>
struct ByteMover {
  struct Block {
    std::byte bytes[kBytes];
  };
  static void run(std::byte* to, std::int64_t to_index, std::int64_t to_stride,
                  const std::byte* from, std::int64_t from_index, std::int64_t from_stride,
                  std::int64_t count) {
    auto* target = reinterpret_cast<Block*>(to) + to_index;
    const auto* source = reinterpret_cast<const Block*>(from) + from_index;
    if (to_stride == 1 && from_stride == 1) {
      std::memcpy(target, source, static_cast<std::size_t>(count) * kBytes);
      return;
    }
    for (std::int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
  }
};

struct StringMover {
  static void run(std::byte* to, std::int64_t to_index, std::int64_t to_stride,
                  const std::byte* from, std::int64_t from_index, std::int64_t from_stride,
                  std::int64_t count) {
    auto* target = reinterpret_cast<std::string*>(to) + to_index;
    const auto* source = reinterpret_cast<const std::string*>(from) + from_index;
    for (std::int64_t i = 0; i < count; ++i) target[i * to_stride] = source[i * from_stride];
  }
};

/// Elements of 4 or 2 bits, low bits first.
template <int kBits>
struct PackedMover {
  static constexpr int kPerByte = 8 / kBits;
  static constexpr unsigned kMask = (1U << kBits) - 1;

  static void run(std::byte* to, std::int64_t to_index, std::int64_t to_stride,
                  const std::byte* from, std::int64_t from_index, std::int64_t from_stride,
                  std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t source = from_index + i * from_stride;
      const std::int64_t target = to_index + i * to_stride;
      const unsigned code =
          std::to_integer<unsigned>(from[source / kPerByte]) >> (source % kPerByte * kBits) & kMask;
      const auto shift = static_cast<unsigned>(target % kPerByte) * kBits;
      const unsigned kept = std::to_integer<unsigned>(to[target / kPerByte]) & ~(kMask << shift);
      to[target / kPerByte] = static_cast<std::byte>(kept | code << shift);
    }
  }
};

using RunFn = void (*)(std::byte*, std::int64_t, std::int64_t, const std::byte*, std::int64_t,
                       std::int64_t, std::int64_t);

RunFn mover(DType dtype) {
  if (dtype == DType::String) return StringMover::run;
  switch (dtype_bits(dtype)) {
    case 2: return PackedMover<2>::run;
    case 4: return PackedMover<4>::run;
    case 16: return ByteMover<2>::run;
    case 32: return ByteMover<4>::run;
    case 64: return ByteMover<8>::run;
    case 128: return ByteMover<16>::run;
    default: return ByteMover<1>::run;
  }
}

}  // namespace

void copy_elements(DType dtype, std::byte* to, std::int64_t to_index, const std::byte* from,
                   std::int64_t from_index, std::int64_t count) {
  const int bits = dtype_bits(dtype);
  if (bits % 8 == 0 && dtype != DType::String) {
    const std::int64_t bytes = bits / 8;
    if (count != 0) {
      std::memcpy(to + to_index * bytes, from + from_index * bytes,
                  static_cast<std::size_t>(count * bytes));
    }
    return;
  }
  mover(dtype)(to, to_index, 1, from, from_index, 1, count);
}

void fill_elements(DType dtype, std::byte* to, std::int64_t to_index, std::int64_t count,
                   const std::byte* value, std::int64_t value_index) {
  mover(dtype)(to, to_index, 1, value, value_index, 0, count);
}

void fill_zero(Tensor& tensor) {
  if (tensor.dtype() == DType::String) {
    for (std::string& text : tensor.mutable_values<std::string>()) text.clear();
  } else if (tensor.byte_size() != 0) {
    std::memset(tensor.mutable_data(), 0, tensor.byte_size());
  }
}

namespace {

/// Copies positions [begin, begin + count) of the last axis for all positions of the others.
void copy_slab(RunFn run, const Box& box, std::byte* to, std::int64_t to_index,
               const std::byte* from, std::int64_t from_index, std::int64_t count) {
  const int last = box.shape.rank() - 1;
  Shape position = Shape::filled(last, 0);
  while (true) {
    run(to, to_index, box.to[last], from, from_index, box.from[last], count);
    int axis = last - 1;
    for (; axis >= 0; --axis) {
      to_index += box.to[axis];
      from_index += box.from[axis];
      if (++position[axis] < box.shape[axis]) break;
      to_index -= box.to[axis] * box.shape[axis];
      from_index -= box.from[axis] * box.shape[axis];
      position[axis] = 0;
    }
    if (axis < 0) return;
  }
}

}  // namespace

void copy_strided(DType dtype, const Shape& shape, std::byte* to, const StridedView& to_view,
                  const std::byte* from, const StridedView& from_view) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
  const Box box = simplify(shape, to_view.strides, from_view.strides);
  const int last = box.shape.rank() - 1;
  const std::int64_t length = box.shape[last];
  // A transpose reads down a column: a slab of a few rows stays in the cache from one column to
  // the next.
  constexpr std::int64_t kSlab = 64;
  const bool is_transpose = last > 0 && box.from[last] != 1 && box.from[last - 1] == 1;
  const std::int64_t step = is_transpose ? kSlab : length;
  for (std::int64_t begin = 0; begin < length; begin += step) {
    copy_slab(mover(dtype), box, to, to_view.offset + begin * box.to[last], from,
              from_view.offset + begin * box.from[last], std::min(step, length - begin));
  }
}

}  // namespace sardonyx
