// Values of types that only the caller knows: kept as they are, and handed back.
#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* CreateOpaqueValue(const char* domain_name, const char* type_name,
                             const void* data_container, size_t data_container_size,
                             OrtValue** out) noexcept {
  return guarded("CreateOpaqueValue", [&]() -> Status {
    SDX_TRY(require(domain_name, "domain_name"));
    SDX_TRY(require(type_name, "type_name"));
    SDX_TRY(require(data_container, "data_container"));
    SDX_TRY(require(out, "out"));
    const auto* begin = static_cast<const std::byte*>(data_container);
    auto opaque = std::make_shared<const Opaque>(
        Opaque{domain_name, type_name, {begin, begin + data_container_size}});
    *out = new OrtValue{Datum(), cpu_memory_info(), {}, std::move(opaque)};
    return {};
  });
}

OrtStatus* GetOpaqueValue(const char* domain_name, const char* type_name, const OrtValue* in,
                          void* data_container, size_t data_container_size) noexcept {
  return guarded("GetOpaqueValue", [&]() -> Status {
    SDX_TRY(require(domain_name, "domain_name"));
    SDX_TRY(require(type_name, "type_name"));
    SDX_TRY(require(in, "in"));
    SDX_TRY(require(data_container, "data_container"));
    if (in->opaque == nullptr) return failure(Code::InvalidArgument, "the value is not opaque");
    const Opaque& opaque = *in->opaque;
    if (opaque.domain != domain_name || opaque.type != type_name) {
      return failure(Code::InvalidArgument, "the value is opaque({},{}), asked for opaque({},{})",
                     opaque.domain, opaque.type, domain_name, type_name);
    }
    if (opaque.bytes.size() != data_container_size) {
      return failure(Code::InvalidArgument, "the value has {} bytes, the container {}",
                     opaque.bytes.size(), data_container_size);
    }
    std::memcpy(data_container, opaque.bytes.data(), opaque.bytes.size());
    return {};
  });
}

}  // namespace sardonyx::capi
