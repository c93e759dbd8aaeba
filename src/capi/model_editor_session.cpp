// Sessions on models that were built, and on models that were read and are being added to.
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/model_editor.h"
#include "capi/session_creation.h"
#include "capi/status.h"

namespace sardonyx::capi::model_editor_api {

namespace {

Result<const Model*> open_model(const OrtSession* session) {
  SDX_TRY(require(session, "session"));
  const Model* model = session->session->open_model();
  if (model != nullptr) return model;
  return failure(Code::InvalidArgument,
                 "the session is ready to run: only one of CreateModelEditorSession that is not "
                 "finalized yet can be edited");
}

}  // namespace

OrtStatus* CreateSessionFromModel(const OrtEnv* env, const OrtModel* model,
                                  const OrtSessionOptions* options, OrtSession** out) noexcept {
  return guarded("CreateSessionFromModel", [&]() -> Status {
    SDX_TRY(require(model, "model"));
    return create_session(
        env, options, out, [&](SessionOptions chosen) -> Result<std::unique_ptr<Session>> {
          SDX_ASSIGN(Model made, to_model(*model));
          return Session::load_model(env->environment, std::move(made), std::move(chosen));
        });
  });
}

OrtStatus* CreateModelEditorSession(const OrtEnv* env, const ORTCHAR_T* model_path,
                                    const OrtSessionOptions* options, OrtSession** out) noexcept {
  return guarded("CreateModelEditorSession", [&]() -> Status {
    SDX_TRY(require(model_path, "model_path"));
    return create_session(env, options, out, [&](SessionOptions chosen) {
      return Session::open(env->environment, model_path, std::move(chosen));
    });
  });
}

OrtStatus* CreateModelEditorSessionFromArray(const OrtEnv* env, const void* model_data,
                                             size_t model_data_length,
                                             const OrtSessionOptions* options,
                                             OrtSession** out) noexcept {
  return guarded("CreateModelEditorSessionFromArray", [&]() -> Status {
    SDX_TRY(require(model_data, "model_data"));
    return create_session(env, options, out, [&](SessionOptions chosen) {
      const auto* bytes = static_cast<const std::byte*>(model_data);
      return Session::open_bytes(env->environment, {bytes, model_data_length},
                                 for_model_bytes(std::move(chosen)));
    });
  });
}

OrtStatus* SessionGetOpsetForDomain(const OrtSession* session, const char* domain,
                                    int* opset) noexcept {
  return guarded("SessionGetOpsetForDomain", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(domain, "domain"));
    SDX_TRY(require(opset, "opset"));
    const std::string name = std::string_view(domain) == "ai.onnx" ? "" : domain;
    for (const auto& [imported, version] : session->session->opset_imports()) {
      if (imported != name) continue;
      *opset = static_cast<int>(version);
      return {};
    }
    return failure(Code::Runtime, "the model imports no operator set of the domain '{}'", domain);
  });
}

OrtStatus* ApplyModelToModelEditorSession(OrtSession* session, OrtModel* model) noexcept {
  return guarded("ApplyModelToModelEditorSession", [&]() -> Status {
    SDX_TRY(require(model, "model"));
    SDX_ASSIGN(const Model* open, open_model(session));
    SDX_ASSIGN(Model changed, add_to_model(*model, *open));
    session->session->replace_open_model(std::move(changed));
    return {};
  });
}

OrtStatus* FinalizeModelEditorSession(OrtSession* session, const OrtSessionOptions* options,
                                      OrtPrepackedWeightsContainer*) noexcept {
  return guarded("FinalizeModelEditorSession", [&]() -> Status {
    SDX_TRY(open_model(session).take_status());
    SessionOptions chosen =
        options != nullptr ? session_options(options) : session->session->options();
    return session->session->finish(std::move(chosen));
  });
}

}  // namespace sardonyx::capi::model_editor_api
