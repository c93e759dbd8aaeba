#include "session/borders.h"

#include <algorithm>

#include "base/text.h"
#include "ops/movement.h"

namespace sardonyx {

namespace {

const char* name_of(const Place* place) { return place == nullptr ? "Cpu" : place->name(); }

const DeviceProvider* mover(const Providers& providers, const Place* from, const Place* to) {
  for (const auto& provider : providers) {
    const DeviceProvider* device = as_device(*provider);
    if (device != nullptr && device->can_copy(from, to)) return device;
  }
  return nullptr;
}

Result<Tensor> allocate_at(const Providers& providers, const Place* place, DType dtype,
                           const Shape& shape) {
  if (place == nullptr) return Tensor::allocate(dtype, shape);
  for (const auto& provider : providers) {
    const DeviceProvider* device = as_device(*provider);
    if (device == nullptr) continue;
    auto made = device->allocate(*place, dtype, shape);
    if (made.ok() || made.status().code() != Code::InvalidArgument) return made;
  }
  return failure(Code::InvalidArgument, "no provider of this session allocates '{}' memory",
                 place->name());
}

/// A device copies in its own queue: what others make there has to be ready.
Status settle_makers(const Providers& providers, const Place* place, const DeviceProvider& copier) {
  if (place == nullptr) return {};
  for (const auto& provider : providers) {
    const DeviceProvider* device = as_device(*provider);
    if (device == nullptr || device == &copier || !device->has_place(*place)) continue;
    SDX_TRY(device->settle(&copier));
  }
  return {};
}

}  // namespace

Status copy_across(const Providers& providers, const Tensor& from, Tensor& to) {
  if (place_of(from) == nullptr && place_of(to) == nullptr) {
    copy_elements(from.dtype(), to.mutable_data(), 0, from.data(), 0, from.element_count());
    return {};
  }
  if (from.dtype() == DType::String) {
    return failure(Code::Unsupported, "strings lie in the processor's memory only");
  }
  if (from.byte_size() == 0) return {};
  if (const DeviceProvider* direct = mover(providers, place_of(from), place_of(to))) {
    SDX_TRY(settle_makers(providers, place_of(from), *direct));
    return direct->copy(from, to);
  }
  const DeviceProvider* down = mover(providers, place_of(from), nullptr);
  const DeviceProvider* up = mover(providers, nullptr, place_of(to));
  if (place_of(from) == nullptr || place_of(to) == nullptr || down == nullptr || up == nullptr) {
    return failure(Code::Unsupported, "no provider of this session copies from '{}' to '{}' memory",
                   name_of(place_of(from)), name_of(place_of(to)));
  }
  SDX_ASSIGN(Tensor middle, Tensor::allocate(from.dtype(), from.shape()));
  SDX_TRY(settle_makers(providers, place_of(from), *down));
  SDX_TRY(down->copy(from, middle));
  return up->copy(middle, to);
}

Result<Tensor> moved(const Providers& providers, const Tensor& tensor, const Place* to) {
  SDX_ASSIGN(Tensor made, allocate_at(providers, to, tensor.dtype(), tensor.shape()));
  SDX_TRY(copy_across(providers, tensor, made));
  return made;
}

Result<Datum> datum_at(const Providers& providers, const Datum& datum, const Place* to) {
  const Tensor* tensor = datum.tensor();
  if (tensor == nullptr || place_of(*tensor) == to) return datum;
  SDX_ASSIGN(Tensor copy, moved(providers, *tensor, to));
  return Datum(std::move(copy));
}

Datum wanted_at(const Place* place) {
  return Datum(tensor_at(place, DType::Undefined, Shape({0}), nullptr));
}

}  // namespace sardonyx
