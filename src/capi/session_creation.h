#pragma once

#include <memory>

#include "base/function_ref.h"
#include "capi/handles.h"

namespace sardonyx::capi {

using SessionMaker = FunctionRef<Result<std::unique_ptr<Session>>(SessionOptions)>;

/// A session handle around what `make` loads with the given options (null: the defaults).
Status create_session(const OrtEnv* env, const OrtSessionOptions* options, OrtSession** out,
                      SessionMaker make);

/// The options of a handle, or the defaults for null.
SessionOptions session_options(const OrtSessionOptions* options);

/// The same, with what its entries say about a model that is given as bytes.
SessionOptions for_model_bytes(SessionOptions options);

}  // namespace sardonyx::capi
