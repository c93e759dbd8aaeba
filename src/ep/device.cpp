#include "ep/device.h"

namespace sardonyx {

Tensor tensor_at(const Place* place, DType dtype, const Shape& shape, void* data,
                 std::function<void(void*)> free_block) {
  if (place == nullptr && free_block == nullptr) return Tensor::view(dtype, shape, data);
  // A null owner could not say where the bytes of an empty tensor would lie.
  static char nothing = 0;
  if (data == nullptr) {
    auto keep = [kept = std::move(free_block)](void*) mutable { kept = nullptr; };
    return Tensor::view(dtype, shape, data,
                        std::shared_ptr<void>(&nothing, PlacedOwner(place, keep)));
  }
  return Tensor::view(dtype, shape, data,
                      std::shared_ptr<void>(data, PlacedOwner(place, std::move(free_block))));
}

}  // namespace sardonyx
