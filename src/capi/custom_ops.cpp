// Domains of custom operators, and the libraries that bring them.
#include <dlfcn.h>

#include "base/text.h"
#include "capi/api_base.h"
#include "capi/api_declarations.h"
#include "capi/handles.h"
#include "capi/status.h"

namespace sardonyx::capi {

namespace {

constexpr const char* kEntryPoint = "RegisterCustomOps";

Status call_registration(void* symbol, OrtSessionOptions* options, const std::string& where) {
  const auto function = reinterpret_cast<RegisterCustomOpsFn>(symbol);
  Status status = take_status(function(options, &api_base()));
  return std::move(status).with("registering the custom operators of " + where);
}

Result<void*> open_library(const char* path) {
  dlerror();
  if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return handle;
  const char* reason = dlerror();
  return failure(kPlainFailure, "the custom operator library '{}' cannot be loaded: {}", path,
                 reason != nullptr ? reason : "no reason given");
}

Status register_library(OrtSessionOptions* options, const char* path, void* handle) {
  void* symbol = dlsym(handle, kEntryPoint);
  if (symbol == nullptr) {
    return failure(Code::InvalidArgument,
                   "'{}' is not a custom operator library: it has no function {}", path,
                   kEntryPoint);
  }
  return call_registration(symbol, options, fmt::format("'{}'", path));
}

}  // namespace

OrtStatus* CreateCustomOpDomain(const char* domain, OrtCustomOpDomain** out) noexcept {
  return guarded("CreateCustomOpDomain", [&]() -> Status {
    SDX_TRY(require(domain, "domain"));
    SDX_TRY(require(out, "out"));
    auto state = std::make_shared<CustomDomain>();
    state->name = domain;
    *out = new OrtCustomOpDomain{std::move(state)};
    return {};
  });
}

void ReleaseCustomOpDomain(OrtCustomOpDomain* object) noexcept { delete object; }

OrtStatus* CustomOpDomain_Add(OrtCustomOpDomain* custom_op_domain, const OrtCustomOp* op) noexcept {
  return guarded("CustomOpDomain_Add", [&]() -> Status {
    SDX_TRY(require(custom_op_domain, "custom_op_domain"));
    SDX_TRY(require(op, "op"));
    custom_op_domain->state->ops.push_back(op);
    return {};
  });
}

OrtStatus* AddCustomOpDomain(OrtSessionOptions* options,
                             OrtCustomOpDomain* custom_op_domain) noexcept {
  return guarded("AddCustomOpDomain", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(custom_op_domain, "custom_op_domain"));
    options->custom_domains.push_back(custom_op_domain->state);
    return {};
  });
}

OrtStatus* RegisterCustomOpsLibrary(OrtSessionOptions* options, const char* library_path,
                                    void** library_handle) noexcept {
  return guarded("RegisterCustomOpsLibrary", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(library_path, "library_path"));
    SDX_TRY(require(library_handle, "library_handle"));
    SDX_ASSIGN(*library_handle, open_library(library_path));
    return register_library(options, library_path, *library_handle);
  });
}

OrtStatus* RegisterCustomOpsLibrary_V2(OrtSessionOptions* options,
                                       const ORTCHAR_T* library_name) noexcept {
  return guarded("RegisterCustomOpsLibrary_V2", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(library_name, "library_name"));
    SDX_ASSIGN(void* handle, open_library(library_name));
    // Closed when the options and all sessions that were made with them are gone.
    options->options.keep_alive.emplace_back(
        handle, [](const void* opened) { dlclose(const_cast<void*>(opened)); });
    return register_library(options, library_name, handle);
  });
}

OrtStatus* RegisterCustomOpsUsingFunction(OrtSessionOptions* options,
                                          const char* registration_func_name) noexcept {
  return guarded("RegisterCustomOpsUsingFunction", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(registration_func_name, "registration_func_name"));
    if (*registration_func_name == '\0') {
      return failure(Code::InvalidArgument, "registration_func_name should not be empty");
    }
    void* symbol = dlsym(RTLD_DEFAULT, registration_func_name);
    if (symbol == nullptr) {
      return failure(kPlainFailure, "no loaded library has a function '{}'",
                     registration_func_name);
    }
    return call_registration(symbol, options, fmt::format("{}()", registration_func_name));
  });
}

OrtStatus* EnableOrtCustomOps(OrtSessionOptions* options) noexcept {
  return guarded("EnableOrtCustomOps", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    return failure(Code::Unsupported,
                   "onnxruntime-extensions is not built in: register its library with "
                   "RegisterCustomOpsLibrary_V2");
  });
}

}  // namespace sardonyx::capi
