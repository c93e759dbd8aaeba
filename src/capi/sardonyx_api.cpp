#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/session_creation.h"
#include "capi/status.h"
#include "report/report.h"
#include "session/max_size.h"
#include "session/random_seed.h"

namespace sardonyx::capi::sardonyx_api {

const char* GetVersionString() noexcept { return library_version(); }

OrtStatus* DescribeBuild(OrtAllocator* allocator, char** json) noexcept {
  return guarded("DescribeBuild", [&] { return copy_text(allocator, describe_build(), json); });
}

OrtStatus* DescribeOptions(OrtAllocator* allocator, char** json) noexcept {
  return guarded("DescribeOptions", [&] { return copy_text(allocator, describe_options(), json); });
}

OrtStatus* DescribeModel(const ORTCHAR_T* path, OrtAllocator* allocator, char** json) noexcept {
  return guarded("DescribeModel", [&]() -> Status {
    SDX_TRY(require(path, "path"));
    SDX_ASSIGN(const Model model, read_model(path));
    return copy_text(allocator, describe_model(model), json);
  });
}

OrtStatus* DescribeContext(const ORTCHAR_T* path, int verify_all, OrtAllocator* allocator,
                           char** json) noexcept {
  return guarded("DescribeContext", [&]() -> Status {
    SDX_TRY(require(path, "path"));
    SDX_ASSIGN(const std::string text, describe_context(path, verify_all != 0));
    return copy_text(allocator, text, json);
  });
}

OrtStatus* CollectContexts(const ORTCHAR_T* folder, int only_look, OrtAllocator* allocator,
                           char** json) noexcept {
  return guarded("CollectContexts", [&]() -> Status {
    SDX_TRY(require(folder, "folder"));
    SDX_ASSIGN(const std::string text, collect_contexts(folder, only_look != 0));
    return copy_text(allocator, text, json);
  });
}

OrtStatus* SetContextMaxSize(const ORTCHAR_T* path, int64_t max_size, size_t* changed) noexcept {
  return guarded("SetContextMaxSize", [&]() -> Status {
    SDX_TRY(require(path, "path"));
    SDX_TRY(require(changed, "changed"));
    SDX_ASSIGN(*changed, set_max_size(path, max_size));
    return {};
  });
}

OrtStatus* PlanModel(const OrtEnv* env, const ORTCHAR_T* path, const OrtSessionOptions* options,
                     OrtAllocator* allocator, char** json) noexcept {
  return guarded("PlanModel", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(path, "path"));
    SessionOptions chosen;
    if (options != nullptr) {
      chosen = options->options;
      chosen.cancel = options->load_cancelled;
    }
    // Looking writes nothing, and starts no threads.
    chosen.optimized_model_path.clear();
    chosen.is_profiling = false;
    chosen.use_shared_pool = false;
    chosen.thread_count = 1;
    SDX_ASSIGN(const auto session, Session::load(env->environment, path, std::move(chosen)));
    return copy_text(allocator, describe_session(*session), json);
  });
}

OrtStatus* DescribeSession(const OrtSession* session, OrtAllocator* allocator,
                           char** json) noexcept {
  return guarded("DescribeSession", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return copy_text(allocator, describe_session(*session->session), json);
  });
}

OrtStatus* DescribePlacement(const OrtSession* session, OrtAllocator* allocator,
                             char** json) noexcept {
  return guarded("DescribePlacement", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return copy_text(allocator, describe_placement(session->session->placement()), json);
  });
}

OrtStatus* ExplainModel(const OrtEnv* env, const ORTCHAR_T* path, const OrtSessionOptions* options,
                        const char* devices, OrtAllocator* allocator, char** json) noexcept {
  return guarded("ExplainModel", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(path, "path"));
    SessionOptions chosen;
    if (options != nullptr) {
      SDX_ASSIGN(chosen, complete_options(*env, *options));
    }
    std::vector<ImaginedDevice> imagined;
    if (devices != nullptr) {
      SDX_ASSIGN(imagined, read_devices(devices));
    }
    SDX_ASSIGN(const Plan plan,
               plan_model(env->environment, path, std::move(chosen), std::move(imagined)));
    return copy_text(allocator, describe_plan(plan), json);
  });
}

OrtStatus* SuggestPatterns(const ORTCHAR_T* path, OrtAllocator* allocator, char** json) noexcept {
  return guarded("SuggestPatterns", [&]() -> Status {
    SDX_TRY(require(path, "path"));
    SDX_ASSIGN(const Model model, read_model(path));
    return copy_text(allocator, describe_suggestions(model), json);
  });
}

OrtStatus* PlanToHtml(const char* plan, OrtAllocator* allocator, char** html) noexcept {
  return guarded("PlanToHtml", [&]() -> Status {
    SDX_TRY(require(plan, "plan"));
    SDX_ASSIGN(const std::string text, plan_to_html(plan));
    return copy_text(allocator, text, html);
  });
}

OrtStatus* DescribeMemory(OrtAllocator* allocator, char** json) noexcept {
  return guarded("DescribeMemory", [&]() -> Status {
    SDX_ASSIGN(const std::string text, describe_memory());
    return copy_text(allocator, text, json);
  });
}

OrtStatus* SessionOptionsSetProgressFunction(OrtSessionOptions* options,
                                             SardonyxProgressFunction report,
                                             void* state) noexcept {
  return guarded("SessionOptionsSetProgressFunction", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    options->options.progress = {report, state};
    return {};
  });
}

OrtStatus* SessionRefit(OrtSession* session, const char* const* names,
                        const OrtValue* const* weights, size_t count) noexcept {
  return guarded("SessionRefit", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    if (count != 0) SDX_TRY(require(names, "names"));
    if (count != 0) SDX_TRY(require(weights, "weights"));
    std::vector<std::pair<std::string, Tensor>> all;
    for (size_t i = 0; i < count; ++i) {
      SDX_TRY(require(names[i], "names[i]"));
      SDX_TRY(require(weights[i], "weights[i]"));
      const Tensor* tensor = weights[i]->datum.tensor();
      if (tensor == nullptr || place_of(*tensor) != nullptr) {
        return failure(Code::InvalidArgument,
                       "weight '{}' should be a tensor in the processor's memory", names[i]);
      }
      // The caller's memory may change or go.
      SDX_ASSIGN(Tensor own, clone(*tensor));
      all.emplace_back(names[i], std::move(own));
    }
    return session->session->refit(all);
  });
}

OrtStatus* SetRandomSeed(int64_t seed) noexcept {
  return guarded("SetRandomSeed", [&]() -> Status {
    set_random_seed(seed);
    return {};
  });
}

}  // namespace sardonyx::capi::sardonyx_api
