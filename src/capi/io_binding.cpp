#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/places.h"
#include "capi/status.h"
#include "session/borders.h"

namespace sardonyx::capi {

namespace {

template <typename Values>
Status check_name(const Values& values, std::string_view name, std::string_view what) {
  std::vector<std::string> known;
  for (const SessionValue& value : values) {
    if (value.name == name) return {};
    known.push_back(value.name);
  }
  return failure(kPlainFailure, "the model has no {} '{}'; there are: {}", what, name,
                 join(known, ", "));
}

OrtIoBinding::Output& output_named(OrtIoBinding& binding, const char* name) {
  for (OrtIoBinding::Output& output : binding.outputs) {
    if (output.name == name) return output;
  }
  binding.outputs.push_back({name, {}, false, nullptr});
  return binding.outputs.back();
}

}  // namespace

OrtStatus* CreateIoBinding(OrtSession* session, OrtIoBinding** out) noexcept {
  return guarded("CreateIoBinding", [&]() -> Status {
    SDX_TRY(require(out, "out"));
    SDX_TRY(require(session, "session"));
    auto made = std::make_unique<OrtIoBinding>();
    made->session = session;
    *out = made.release();
    return {};
  });
}

void ReleaseIoBinding(OrtIoBinding* object) noexcept { delete object; }

OrtStatus* BindInput(OrtIoBinding* binding_ptr, const char* name,
                     const OrtValue* val_ptr) noexcept {
  return guarded("BindInput", [&]() -> Status {
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(val_ptr, "val_ptr"));
    const Session& session = *binding_ptr->session->session;
    if (!check_name(session.overridable_initializers(), name, "").ok()) {
      SDX_TRY(check_name(session.inputs(), name, "input"));
    }
    for (auto& [bound, datum] : binding_ptr->inputs) {
      if (bound != name) continue;
      datum = val_ptr->datum;
      return {};
    }
    binding_ptr->inputs.emplace_back(name, val_ptr->datum);
    return {};
  });
}

OrtStatus* BindOutput(OrtIoBinding* binding_ptr, const char* name,
                      const OrtValue* val_ptr) noexcept {
  return guarded("BindOutput", [&]() -> Status {
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(val_ptr, "val_ptr"));
    SDX_TRY(check_name(binding_ptr->session->session->outputs(), name, "output"));
    OrtIoBinding::Output& output = output_named(*binding_ptr, name);
    output.datum = val_ptr->datum;
    output.is_given = val_ptr->datum.has_value();
    return {};
  });
}

OrtStatus* BindOutputToDevice(OrtIoBinding* binding_ptr, const char* name,
                              const OrtMemoryInfo* mem_info_ptr) noexcept {
  return guarded("BindOutputToDevice", [&]() -> Status {
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    SDX_TRY(require(name, "name"));
    SDX_TRY(require(mem_info_ptr, "mem_info_ptr"));
    SDX_TRY(check_name(binding_ptr->session->session->outputs(), name, "output"));
    const Place* place = place_of(*mem_info_ptr);
    if (place != nullptr && !binding_ptr->session->session->reaches(*place)) {
      return failure(Code::InvalidArgument, "no provider of this session has '{}' memory",
                     mem_info_ptr->name);
    }
    OrtIoBinding::Output& output = output_named(*binding_ptr, name);
    output.datum = Datum();
    output.is_given = false;
    output.place = place;
    return {};
  });
}

void ClearBoundInputs(OrtIoBinding* binding_ptr) noexcept {
  if (binding_ptr == nullptr) return;
  binding_ptr->inputs.clear();
}
void ClearBoundOutputs(OrtIoBinding* binding_ptr) noexcept {
  if (binding_ptr == nullptr) return;
  binding_ptr->outputs.clear();
}

// Memory of the processor needs no waiting.
OrtStatus* SynchronizeBoundInputs(OrtIoBinding*) noexcept { return nullptr; }
OrtStatus* SynchronizeBoundOutputs(OrtIoBinding*) noexcept { return nullptr; }

OrtStatus* RunWithBinding(OrtSession* session, const OrtRunOptions* run_options,
                          const OrtIoBinding* binding_ptr) noexcept {
  return guarded("RunWithBinding", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    auto& binding = *const_cast<OrtIoBinding*>(binding_ptr);
    std::vector<std::string_view> input_names;
    std::vector<Datum> inputs;
    for (const auto& [name, datum] : binding.inputs) {
      input_names.push_back(name);
      inputs.push_back(datum);
    }
    std::vector<std::string_view> output_names;
    std::vector<Datum> outputs;
    for (const OrtIoBinding::Output& output : binding.outputs) {
      output_names.push_back(output.name);
      const Datum wanted = output.place != nullptr ? wanted_at(output.place) : Datum();
      outputs.push_back(output.is_given ? output.datum : wanted);
    }
    SDX_TRY(run_session(*session, run_options, input_names, inputs, output_names, outputs));
    for (size_t i = 0; i < outputs.size(); ++i) {
      OrtIoBinding::Output& output = binding.outputs[i];
      const Tensor* given = output.is_given ? output.datum.tensor() : nullptr;
      const Tensor* made = outputs[i].tensor();
      if (given != nullptr && (made == nullptr || made->data() != given->data())) {
        return failure(Code::InvalidArgument,
                       "output '{}' is {} of shape {}, but the bound one is {} of shape {}",
                       output.name, outputs[i].type().to_string(),
                       made != nullptr ? made->shape().to_string() : "none",
                       output.datum.type().to_string(), given->shape().to_string());
      }
      output.datum = std::move(outputs[i]);
    }
    return {};
  });
}

OrtStatus* GetBoundOutputNames(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                               char** buffer, size_t** lengths, size_t* count) noexcept {
  return guarded("GetBoundOutputNames", [&]() -> Status {
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_TRY(require(buffer, "buffer"));
    SDX_TRY(require(lengths, "lengths"));
    SDX_TRY(require(count, "count"));
    *buffer = nullptr;
    *lengths = nullptr;
    *count = binding_ptr->outputs.size();
    if (*count == 0) return {};
    std::string all;
    for (const OrtIoBinding::Output& output : binding_ptr->outputs) all += output.name;
    auto* sizes = static_cast<size_t*>(allocator->Alloc(allocator, *count * sizeof(size_t)));
    if (sizes == nullptr) return failure(Code::OutOfMemory, "no memory for {} lengths", *count);
    Status status = copy_text(allocator, all, buffer);
    if (!status.ok()) {
      allocator->Free(allocator, sizes);
      return status;
    }
    for (size_t i = 0; i < *count; ++i) sizes[i] = binding_ptr->outputs[i].name.size();
    *lengths = sizes;
    return {};
  });
}

OrtStatus* GetBoundOutputValues(const OrtIoBinding* binding_ptr, OrtAllocator* allocator,
                                OrtValue*** output, size_t* output_count) noexcept {
  return guarded("GetBoundOutputValues", [&]() -> Status {
    SDX_TRY(require(binding_ptr, "binding_ptr"));
    SDX_TRY(require(allocator, "allocator"));
    SDX_TRY(require(output, "output"));
    SDX_TRY(require(output_count, "output_count"));
    *output = nullptr;
    *output_count = binding_ptr->outputs.size();
    if (*output_count == 0) return {};
    auto* values =
        static_cast<OrtValue**>(allocator->Alloc(allocator, *output_count * sizeof(OrtValue*)));
    if (values == nullptr) {
      return failure(Code::OutOfMemory, "no memory for {} values", *output_count);
    }
    for (size_t i = 0; i < *output_count; ++i) {
      values[i] = new_value(binding_ptr->outputs[i].datum);
    }
    *output = values;
    return {};
  });
}

}  // namespace sardonyx::capi
