#include "ops/eval_context.h"
#include "ops/families.h"
#include "ops/infer_context.h"

namespace sardonyx {

namespace {

/// What comes out is what the model declares.
Status infer_ep_context(InferContext&) { return {}; }

Status evaluate_ep_context(EvalContext&) {
  return Status(Code::Unsupported,
                "an EPContext node holds what a provider compiled: only that provider runs it");
}

constexpr OpSchema kRows[] = {
    {"com.microsoft",
     "EPContext",
     1,
     {"x*>X*"},
     "main_context:i ep_cache_context:s embed_mode:i ep_sdk_version:s onnx_model_filename:s "
     "hardware_architecture:s partition_name:s source:s notes:s max_size:i",
     infer_ep_context,
     evaluate_ep_context,
     kCompiledPart},
};

}  // namespace

std::span<const OpSchema> ep_context_schemas() { return kRows; }

}  // namespace sardonyx
