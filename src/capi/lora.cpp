#include "capi/lora.h"

#include "base/mapped_file.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

Status make_adapter(std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                    OrtLoraAdapter** out) {
  SDX_ASSIGN(LoraParameters parameters, read_lora(bytes, owner));
  *out = new OrtLoraAdapter{std::make_shared<const LoraParameters>(std::move(parameters))};
  return {};
}

}  // namespace

// Data stay on the processor, whatever allocator is given: nobody here runs anywhere else.
OrtStatus* CreateLoraAdapter(const ORTCHAR_T* adapter_file_path, OrtAllocator*,
                             OrtLoraAdapter** out) noexcept {
  return guarded("CreateLoraAdapter", [&]() -> Status {
    SDX_TRY(require(adapter_file_path, "adapter_file_path"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const auto file, MappedFile::open(adapter_file_path));
    Status status = make_adapter(file->bytes(), file, out);
    return std::move(status).with(fmt::format("reading adapter '{}'", adapter_file_path));
  });
}

OrtStatus* CreateLoraAdapterFromArray(const void* bytes, size_t byte_count, OrtAllocator*,
                                      OrtLoraAdapter** out) noexcept {
  return guarded("CreateLoraAdapterFromArray", [&]() -> Status {
    SDX_TRY(require(bytes, "bytes"));
    SDX_TRY(require(out, "out"));
    const auto* begin = static_cast<const std::byte*>(bytes);
    const auto copy = std::make_shared<const std::vector<std::byte>>(begin, begin + byte_count);
    return make_adapter(*copy, copy, out);
  });
}

void ReleaseLoraAdapter(OrtLoraAdapter* object) noexcept { delete object; }

OrtStatus* RunOptionsAddActiveLoraAdapter(OrtRunOptions* options,
                                          const OrtLoraAdapter* adapter) noexcept {
  return guarded("RunOptionsAddActiveLoraAdapter", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(adapter, "adapter"));
    options->adapters.push_back(adapter->parameters);
    return {};
  });
}

}  // namespace sardonyx::capi
