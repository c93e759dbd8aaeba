#include "plugin_host/plugin_call.h"

#include "base/text.h"
#include "capi/places.h"

namespace sardonyx::plugin_host {

namespace {

OrtValue value_of(Datum datum) {
  const Tensor* tensor = datum.tensor();
  const OrtMemoryInfo& memory = capi::memory_at(tensor != nullptr ? place_of(*tensor) : nullptr);
  return {std::move(datum), memory};
}

}  // namespace

PluginCall::PluginCall(const PluginProvider& provider, RunState& run)
    : provider_(provider), stream_(provider.current_stream()) {
  context_.state = &run;
  context_.host = this;
}

void PluginCall::reserve(std::size_t input_count, std::size_t output_count) {
  context_.inputs.reserve(input_count);
  context_.outputs.reserve(output_count);
  outputs_.reserve(output_count);
}

void PluginCall::add_input(Datum datum) { context_.inputs.push_back(value_of(std::move(datum))); }

void PluginCall::add_output(const Output& output, Datum given) {
  OrtKernelContext::Output added;
  added.is_there = output.is_there;
  added.dtype = output.dtype;
  added.value = value_of(std::move(given));
  context_.outputs.push_back(std::move(added));
  outputs_.push_back(output);
}

Result<Tensor> PluginCall::make_output(std::size_t index, DType dtype, const Shape& shape) {
  const Output& output = outputs_[index];
  const auto source = static_cast<std::size_t>(output.alias);
  if (output.alias >= 0 && source < context_.inputs.size()) {
    const Tensor* input = context_.inputs[source].datum.tensor();
    const bool fits = input != nullptr && place_of(*input) == output.place &&
                      keeps_memory(*input) && input->dtype() == dtype && dtype != DType::String &&
                      input->element_count() == shape.element_count();
    if (fits) return input->reshaped(shape);
  }
  return provider_.allocate_on(stream_, output.place, dtype, shape);
}

Result<OrtAllocator*> PluginCall::allocator(const OrtMemoryInfo& memory) {
  const Place* place = capi::place_of(memory);
  if (place == nullptr) return capi::new_allocator(*capi::default_allocator());
  SDX_ASSIGN(const auto found, provider_.memory(*place));
  return capi::new_allocator(found->allocator(), found);
}

Result<void*> PluginCall::scratch(const OrtMemoryInfo& memory, std::size_t bytes) {
  const auto count = static_cast<std::int64_t>(std::max<std::size_t>(bytes, 1));
  SDX_ASSIGN(Tensor made,
             provider_.allocate_on(stream_, capi::place_of(memory), DType::UInt8, Shape({count})));
  const std::lock_guard lock(scratch_mutex_);
  scratch_.push_back(made);
  return static_cast<void*>(made.mutable_data());
}

}  // namespace sardonyx::plugin_host
