#include "capi/places.h"

#include <mutex>
#include <tuple>

namespace sardonyx::capi {

namespace {

class DevicePlace final : public Place {
 public:
  explicit DevicePlace(OrtMemoryInfo memory) : memory_(std::move(memory)) {}
  const char* name() const override { return memory_.name.c_str(); }
  const OrtMemoryInfo& memory() const { return memory_; }

 private:
  OrtMemoryInfo memory_;
};

struct Places {
  std::mutex mutex;
  std::map<std::tuple<OrtMemoryInfoDeviceType, uint32_t, int>, std::unique_ptr<DevicePlace>> known;
};

Places& places() {
  static Places* const instance = new Places;
  return *instance;
}

}  // namespace

const Place* place_of(const OrtMemoryInfo& memory) {
  if (memory.device_type == OrtMemoryInfoDeviceType_CPU ||
      memory.device_memory == OrtDeviceMemoryType_HOST_ACCESSIBLE) {
    return nullptr;
  }
  Places& all = places();
  const std::lock_guard lock(all.mutex);
  auto& place = all.known[{memory.device_type, memory.vendor_id, memory.id}];
  if (place == nullptr) place = std::make_unique<DevicePlace>(memory);
  return place.get();
}

const OrtMemoryInfo& memory_at(const Place* place) {
  return place == nullptr ? cpu_memory_info() : static_cast<const DevicePlace*>(place)->memory();
}

OrtValue* new_value(Datum datum) {
  const Tensor* tensor = datum.tensor();
  const OrtMemoryInfo& memory = memory_at(tensor != nullptr ? place_of(*tensor) : nullptr);
  return new OrtValue{std::move(datum), memory};
}

}  // namespace sardonyx::capi
