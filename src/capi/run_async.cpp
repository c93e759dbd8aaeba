#include <thread>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

OrtStatus* RunAsync(OrtSession* session, const OrtRunOptions* run_options,
                    const char* const* input_names, const OrtValue* const* input,
                    size_t input_count, const char* const* output_names, size_t output_count,
                    OrtValue** output, RunAsyncCallbackFn run_async_callback,
                    void* user_data) noexcept {
  return guarded("RunAsync", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(reinterpret_cast<const void*>(run_async_callback), "run_async_callback"));
    if (input_count != 0) {
      SDX_TRY(require(input_names, "input_names"));
      SDX_TRY(require(input, "input"));
    }
    if (output_count != 0) {
      SDX_TRY(require(output_names, "output_names"));
      SDX_TRY(require(output, "output"));
    }
    // The caller keeps values and options alive until the callback; the arrays may go at once.
    std::vector<const char*> inputs(input_names, input_names + input_count);
    std::vector<const OrtValue*> values(input, input + input_count);
    std::vector<const char*> outputs(output_names, output_names + output_count);
    std::thread([=, inputs = std::move(inputs), values = std::move(values),
                 outputs = std::move(outputs)] {
      OrtStatus* status = Run(session, run_options, inputs.data(), values.data(), inputs.size(),
                              outputs.data(), outputs.size(), output);
      run_async_callback(user_data, output, status == nullptr ? outputs.size() : 0, status);
    }).detach();
    return {};
  });
}

}  // namespace sardonyx::capi
