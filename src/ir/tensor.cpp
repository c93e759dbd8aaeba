#include "ir/tensor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "base/memory.h"
#include "base/text.h"

namespace sardonyx {

namespace {

std::shared_ptr<std::byte> allocate_strings(std::size_t count) {
  const std::size_t bytes = count * sizeof(std::string);
  if (bytes >= kCheckedBlockBytes && bytes > available_memory_bytes()) return nullptr;
  auto* strings = new (std::nothrow) std::string[count];
  return {reinterpret_cast<std::byte*>(strings),
          [strings](std::byte*) { delete[] strings; }};
}

std::shared_ptr<std::byte> allocate_bytes(std::size_t bytes) {
  return {static_cast<std::byte*>(allocate_aligned(bytes)),
          [](std::byte* pointer) { std::free(pointer); }};
}

}  // namespace

Result<Tensor> Tensor::allocate(DType dtype, const Shape& shape) {
  const auto count = shape.element_count();
  const auto bytes = count ? dtype_bytes(dtype, *count) : std::nullopt;
  // Leaves room for rounding up to the alignment.
  if (!bytes || *bytes > std::size_t{1} << 62) {
    return failure(Code::OutOfMemory, "a tensor({}) of shape {} does not fit into memory",
                   dtype_name(dtype), shape.to_string());
  }
  auto memory = dtype == DType::String ? allocate_strings(static_cast<std::size_t>(*count))
                                       : allocate_bytes(*bytes);
  if (memory == nullptr) {
    return failure(Code::OutOfMemory, "no memory for a tensor({}) of shape {} ({} bytes)",
                   dtype_name(dtype), shape.to_string(), *bytes);
  }
  void* data = memory.get();
  return view(dtype, shape, data, std::move(memory));
}

Result<Tensor> clone(const Tensor& tensor) {
  SDX_ASSIGN(Tensor copy, Tensor::allocate(tensor.dtype(), tensor.shape()));
  if (tensor.dtype() == DType::String) {
    const auto source = tensor.values<std::string>();
    std::copy(source.begin(), source.end(), copy.mutable_values<std::string>().begin());
  } else if (copy.byte_size() != 0) {
    std::memcpy(copy.mutable_data(), tensor.data(), tensor.byte_size());
  }
  return copy;
}

Result<Tensor> aligned(const Tensor& tensor) {
  if (tensor.is_aligned()) return tensor;
  return clone(tensor);
}

}  // namespace sardonyx
