// Copies of tensors between memories, for programs.
#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/places.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/registry.h"

namespace sardonyx::capi {

using plugin_host::Registry;

namespace {

Result<Tensor*> tensor_of(const OrtValue* value, std::size_t index) {
  Tensor* tensor = value == nullptr ? nullptr : const_cast<OrtValue*>(value)->datum.tensor();
  if (tensor != nullptr) return tensor;
  return failure(Code::InvalidArgument, "value {} is no tensor", index);
}

Status copy_one(const Registry* registry, const OrtValue& from, OrtValue& to, OrtSyncStream* stream,
                std::size_t index) {
  SDX_ASSIGN(const Tensor* source, tensor_of(&from, index));
  SDX_ASSIGN(Tensor * target, tensor_of(&to, index));
  if (source->dtype() != target->dtype() || source->shape() != target->shape()) {
    return failure(Code::InvalidArgument, "tensor {} should be {} of shape {}, found {} of {}",
                   index, dtype_name(source->dtype()), source->shape().to_string(),
                   dtype_name(target->dtype()), target->shape().to_string());
  }
  const bool is_near = place_of(*source) == nullptr && place_of(*target) == nullptr;
  if (source->dtype() == DType::String) {
    const auto texts = source->values<std::string>();
    std::copy(texts.begin(), texts.end(), target->mutable_values<std::string>().begin());
  } else if (is_near && source->byte_size() != 0) {
    std::memmove(target->mutable_data(), source->data(), source->byte_size());
  } else if (!is_near && source->byte_size() != 0) {
    if (registry != nullptr) return registry->copy(from, to, stream);
    return failure(Code::InvalidArgument,
                   "tensor {} lies in the memory of a device, but no plugin "
                   "library is registered",
                   index);
  }
  return {};
}

}  // namespace

OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* source_tensors,
                       OrtValue* const* target_tensors, OrtSyncStream* stream,
                       size_t tensor_count) noexcept {
  return guarded("CopyTensors", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    if (tensor_count != 0) {
      SDX_TRY(require(source_tensors, "src_tensors"));
      SDX_TRY(require(target_tensors, "dst_tensors"));
    }
    const auto registry = Registry::current();
    for (size_t i = 0; i < tensor_count; ++i) {
      SDX_TRY(require(source_tensors[i], "a source tensor"));
      SDX_TRY(require(target_tensors[i], "a target tensor"));
      SDX_TRY(copy_one(registry.get(), *source_tensors[i], *target_tensors[i], stream, i));
    }
    return {};
  });
}

}  // namespace sardonyx::capi
