#include "ops/dense.h"

#include <algorithm>

#include "ir/dtype_switch.h"
#include "ir/element.h"

namespace sardonyx {

namespace {

template <typename C>
constexpr bool is_same_memory(DType dtype) {
  if constexpr (std::is_same_v<C, float>) return dtype == DType::Float32;
  if constexpr (std::is_same_v<C, double>) return dtype == DType::Float64;
  if constexpr (std::is_same_v<C, std::uint32_t>) {
    return dtype == DType::Int32 || dtype == DType::UInt32;
  }
  if constexpr (std::is_same_v<C, std::uint64_t>) {
    return dtype == DType::Int64 || dtype == DType::UInt64;
  }
  return false;
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return static_cast<To>(to_float(value));
  } else if constexpr (std::is_same_v<To, Half>) {
    return to_half(static_cast<float>(value));
  } else if constexpr (std::is_same_v<To, BFloat16>) {
    return to_bfloat16(static_cast<float>(value));
  } else {
    return static_cast<To>(value);
  }
}

/// Calls body<T>() for the types that C stands for; others are read one by one.
template <typename C, typename Body>
bool switch_for(DType dtype, Body&& body) {
  if constexpr (std::is_floating_point_v<C>) {
    return switch_floats(dtype, body);
  } else {
    return switch_ints(dtype, body);
  }
}

template <typename C>
void read_all(const Tensor& tensor, C* to) {
  const std::int64_t count = tensor.element_count();
  const bool done = switch_for<C>(tensor.dtype(), [&]<typename T>() {
    const auto* from = reinterpret_cast<const T*>(tensor.data());
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert<C>(from[i]);
  });
  if (done) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<C>) {
      to[i] = static_cast<C>(read_real(tensor.dtype(), tensor.data(), i));
    } else {
      to[i] = static_cast<C>(read_int(tensor.dtype(), tensor.data(), i));
    }
  }
}

template <typename C>
void write_all(const C* from, Tensor& tensor) {
  const std::int64_t count = tensor.element_count();
  const bool done = switch_for<C>(tensor.dtype(), [&]<typename T>() {
    auto* to = reinterpret_cast<T*>(tensor.mutable_data());
    for (std::int64_t i = 0; i < count; ++i) to[i] = convert<T>(from[i]);
  });
  if (done) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<C>) {
      write_real(tensor.dtype(), tensor.mutable_data(), i, static_cast<double>(from[i]));
    } else {
      write_int(tensor.dtype(), tensor.mutable_data(), i, static_cast<std::int64_t>(from[i]));
    }
  }
}

constexpr std::int64_t kColumnBlock = 512;
constexpr std::int64_t kDepthBlock = 128;

/// Four rows of c at once, so that each element of b is loaded once for four products.
template <typename C>
void multiply_rows(const Product<C>& p, std::int64_t row, std::int64_t row_count,
                   std::int64_t column, std::int64_t width, std::int64_t k, std::int64_t k_end) {
  C* c = p.c + row * p.c_row + column;
  const C* a = p.a + row * p.a_row;
  if (row_count == 4) {
    C* __restrict c0 = c;
    C* __restrict c1 = c + p.c_row;
    C* __restrict c2 = c + 2 * p.c_row;
    C* __restrict c3 = c + 3 * p.c_row;
    for (; k < k_end; ++k) {
      const C* __restrict b = p.b + k * p.b_row + column;
      const C a0 = a[k * p.a_column];
      const C a1 = a[p.a_row + k * p.a_column];
      const C a2 = a[2 * p.a_row + k * p.a_column];
      const C a3 = a[3 * p.a_row + k * p.a_column];
      for (std::int64_t j = 0; j < width; ++j) {
        c0[j] += a0 * b[j];
        c1[j] += a1 * b[j];
        c2[j] += a2 * b[j];
        c3[j] += a3 * b[j];
      }
    }
    return;
  }
  for (std::int64_t r = 0; r < row_count; ++r) {
    C* __restrict cr = c + r * p.c_row;
    for (std::int64_t kk = k; kk < k_end; ++kk) {
      const C* __restrict b = p.b + kk * p.b_row + column;
      const C value = a[r * p.a_row + kk * p.a_column];
      for (std::int64_t j = 0; j < width; ++j) cr[j] += value * b[j];
    }
  }
}

}  // namespace

template <typename C>
Result<Elements<C>> Elements<C>::of(const Tensor& tensor) {
  Elements elements;
  if (is_same_memory<C>(tensor.dtype())) {
    elements.keep_ = tensor;
  } else {
    SDX_ASSIGN(elements.keep_, make_scratch<C>(tensor.element_count()));
    read_all(tensor, reinterpret_cast<C*>(elements.keep_.mutable_data()));
  }
  // An empty tensor may have no memory, but it is there.
  static constexpr C kNothing{};
  const auto* data = reinterpret_cast<const C*>(elements.keep_.data());
  elements.data_ = data != nullptr ? data : &kNothing;
  return elements;
}

template <typename C>
Result<Staged<C>> Staged<C>::over(Tensor* target) {
  Staged staged;
  if (target == nullptr) return staged;
  staged.target_ = target;
  if (!is_same_memory<C>(target->dtype())) {
    SDX_ASSIGN(staged.buffer_, make_scratch<C>(target->element_count()));
    staged.data_ = reinterpret_cast<C*>(staged.buffer_.mutable_data());
  } else {
    staged.data_ = reinterpret_cast<C*>(target->mutable_data());
  }
  return staged;
}

template <typename C>
Result<Staged<C>> Staged<C>::open(EvalContext& context, std::size_t i) {
  SDX_ASSIGN(Tensor * target, context.allocate(i));
  return over(target);
}

template <typename C>
Result<Staged<C>> Staged<C>::open(EvalContext& context, std::size_t i, const Shape& shape) {
  SDX_ASSIGN(Tensor * target, context.allocate(i, shape));
  return over(target);
}

template <typename C>
void Staged<C>::commit() {
  if (target_ != nullptr && !is_same_memory<C>(target_->dtype())) write_all(data_, *target_);
}

template <typename C>
void multiply_add(const Product<C>& p) {
  for (std::int64_t column = 0; column < p.columns; column += kColumnBlock) {
    const std::int64_t width = std::min(kColumnBlock, p.columns - column);
    for (std::int64_t k = 0; k < p.depth; k += kDepthBlock) {
      const std::int64_t k_end = std::min(k + kDepthBlock, p.depth);
      for (std::int64_t row = 0; row < p.rows; row += 4) {
        multiply_rows(p, row, std::min<std::int64_t>(4, p.rows - row), column, width, k, k_end);
      }
    }
  }
}

template <typename C>
void transpose_matrix(const C* from, std::int64_t rows, std::int64_t columns, C* to) {
  constexpr std::int64_t kTile = 16;
  for (std::int64_t r = 0; r < rows; r += kTile) {
    const std::int64_t r_end = std::min(r + kTile, rows);
    for (std::int64_t c = 0; c < columns; ++c) {
      for (std::int64_t i = r; i < r_end; ++i) to[c * rows + i] = from[i * columns + c];
    }
  }
}

template <typename C>
Result<Tensor> make_scratch(std::int64_t count) {
  const DType dtype = std::is_same_v<C, float>           ? DType::Float32
                      : std::is_same_v<C, double>        ? DType::Float64
                      : std::is_same_v<C, std::uint32_t> ? DType::UInt32
                                                         : DType::UInt64;
  return Tensor::allocate(dtype, Shape{count});
}

#define SDX_DENSE(C)                                                           \
  template class Elements<C>;                                                  \
  template class Staged<C>;                                                    \
  template void multiply_add<C>(const Product<C>&);                            \
  template void transpose_matrix<C>(const C*, std::int64_t, std::int64_t, C*); \
  template Result<Tensor> make_scratch<C>(std::int64_t);
SDX_DENSE(float)
SDX_DENSE(double)
SDX_DENSE(std::uint32_t)
SDX_DENSE(std::uint64_t)
#undef SDX_DENSE

void BatchWalk::add(const Shape& shape, std::int64_t stride) {
  auto& strides = strides_[count_++];
  for (int i = shape.rank() - 1, j = batch_.rank() - 1; i >= 0; --i, --j) {
    strides[static_cast<std::size_t>(j)] = shape[i] == 1 ? 0 : stride;
    stride *= shape[i];
  }
}

void BatchWalk::next() {
  for (int axis = batch_.rank() - 1; axis >= 0; --axis) {
    const auto a = static_cast<std::size_t>(axis);
    const bool is_last = ++position_[a] == batch_[axis];
    for (std::size_t k = 0; k < count_; ++k) {
      offsets_[k] += is_last ? -strides_[k][a] * (batch_[axis] - 1) : strides_[k][a];
    }
    if (!is_last) return;
    position_[a] = 0;
  }
}

Shape slice_of(const Shape& shape, int first, int last) {
  Shape result;
  for (int i = first; i < last; ++i) result.push_back(shape[i]);
  return result;
}

}  // namespace sardonyx
