// Threads that the caller makes.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

Result<ThreadFunctions> CustomThreads::functions() const {
  if (create == nullptr && join == nullptr) return ThreadFunctions{};
  if (create == nullptr || join == nullptr) {
    return failure(Code::InvalidArgument,
                   "the custom function that {} threads is set, but not "
                   "the one that {} them",
                   create != nullptr ? "creates" : "joins",
                   create != nullptr ? "joins" : "creates");
  }
  ThreadFunctions made;
  made.start = [create = create, options = options](void (*work)(void*),
                                                    void* argument) -> const void* {
    return create(options, work, argument);
  };
  made.join = [join = join](const void* thread) {
    join(static_cast<OrtCustomThreadHandle>(thread));
  };
  return made;
}

OrtStatus* SessionOptionsSetCustomCreateThreadFn(
    OrtSessionOptions* options, OrtCustomCreateThreadFn ort_custom_create_thread_fn) noexcept {
  return guarded("SessionOptionsSetCustomCreateThreadFn", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->threads.create = ort_custom_create_thread_fn;
    return {};
  });
}

OrtStatus* SessionOptionsSetCustomThreadCreationOptions(OrtSessionOptions* options,
                                                        void* thread_options) noexcept {
  return guarded("SessionOptionsSetCustomThreadCreationOptions", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->threads.options = thread_options;
    return {};
  });
}

OrtStatus* SessionOptionsSetCustomJoinThreadFn(
    OrtSessionOptions* options, OrtCustomJoinThreadFn ort_custom_join_thread_fn) noexcept {
  return guarded("SessionOptionsSetCustomJoinThreadFn", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->threads.join = ort_custom_join_thread_fn;
    return {};
  });
}

OrtStatus* SetGlobalCustomCreateThreadFn(
    OrtThreadingOptions* tp_options, OrtCustomCreateThreadFn ort_custom_create_thread_fn) noexcept {
  return guarded("SetGlobalCustomCreateThreadFn", [&]() -> Status {
    SDX_TRY(require(tp_options, "tp_options"));
    tp_options->threads.create = ort_custom_create_thread_fn;
    return {};
  });
}

OrtStatus* SetGlobalCustomThreadCreationOptions(OrtThreadingOptions* tp_options,
                                                void* thread_options) noexcept {
  return guarded("SetGlobalCustomThreadCreationOptions", [&]() -> Status {
    SDX_TRY(require(tp_options, "tp_options"));
    tp_options->threads.options = thread_options;
    return {};
  });
}

OrtStatus* SetGlobalCustomJoinThreadFn(OrtThreadingOptions* tp_options,
                                       OrtCustomJoinThreadFn ort_custom_join_thread_fn) noexcept {
  return guarded("SetGlobalCustomJoinThreadFn", [&]() -> Status {
    SDX_TRY(require(tp_options, "tp_options"));
    tp_options->threads.join = ort_custom_join_thread_fn;
    return {};
  });
}

}  // namespace sardonyx::capi
