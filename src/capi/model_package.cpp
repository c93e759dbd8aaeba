// Model packages: their content, the variant that fits the devices of session options, a session.
#include "session/model_package.h"

#include <algorithm>
#include <mutex>
#include <optional>
#include <set>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/devices.h"
#include "capi/handles.h"
#include "capi/status.h"

using sardonyx::capi::ProviderChoice;

struct OrtModelPackageOptions {
  /// Keeps the libraries of the devices open.
  OrtSessionOptions options;
  ProviderChoice choice;
};

struct OrtModelPackageContext {
  /// Names of the components or variants, as the interface hands them out.
  using Names = std::vector<const char*>;

  sardonyx::ModelPackage package;
  Names component_names;
  /// By component.
  std::vector<Names> variant_names;
  /// Answers of ModelPackage_ResolveStringRef, which callers may hold on to.
  mutable std::mutex resolved_mutex;
  mutable std::set<std::string> resolved;
};

struct OrtModelPackageComponentContext {
  std::string component;
  sardonyx::PackageVariant variant;
  OrtSessionOptions options;
  ProviderChoice choice;
};

namespace sardonyx::capi::model_package_api {

namespace {

constexpr const char* kBuiltIn = "CPUExecutionProvider";

/// Callers expect ORT_FAIL for a wrong package, whatever is wrong with it.
Status as_failure(Status status) {
  if (status.ok() || status.code() == Code::InvalidArgument) return status;
  return Status(kPlainFailure, status.to_string());
}

/// The provider that the options ask for first, with its devices.
Result<ProviderChoice> first_choice(const OrtSessionOptions& options) {
  if (options.first_choice) return *options.first_choice;
  if (!options.choose_devices) return ProviderChoice{kBuiltIn, {}};
  SDX_ASSIGN(const auto devices, options.choose_devices());
  if (devices.empty()) return ProviderChoice{kBuiltIn, {}};
  ProviderChoice choice{devices.front()->ep_name, {}};
  for (const OrtEpDevice* device : devices) {
    if (device->factory == devices.front()->factory) choice.devices.push_back(device);
  }
  return choice;
}

const char* kind_of(const OrtEpDevice& device) {
  switch (device.device->type) {
    case OrtHardwareDeviceType_GPU: return "gpu";
    case OrtHardwareDeviceType_NPU: return "npu";
    default: return "cpu";
  }
}

/// The devices of the choice that the variant is for; nothing when there are none.
std::optional<std::vector<const OrtEpDevice*>> matching_devices(const PackageVariant& variant,
                                                                const ProviderChoice& choice) {
  if (variant.device.empty()) return choice.devices;
  std::vector<const OrtEpDevice*> matching;
  for (const OrtEpDevice* device : choice.devices) {
    if (variant.device == kind_of(*device)) matching.push_back(device);
  }
  const bool is_built_in = choice.name == kBuiltIn && variant.device == "cpu";
  if (matching.empty() && !is_built_in) return std::nullopt;
  return matching;
}

/// How well a variant fits, by its provider's verdict; nothing when it does not.
std::optional<int> score(const PackageVariant& variant, const ProviderChoice& choice) {
  if (variant.provider != choice.name) return std::nullopt;
  const auto devices = matching_devices(variant, choice);
  if (!devices) return std::nullopt;
  const bool is_asked = !variant.compatibility.empty() && !devices->empty();
  auto verdict = OrtCompiledModelCompatibility_EP_NOT_APPLICABLE;
  if (is_asked) {
    const Status status = take_status(GetModelCompatibilityForEpDevices(
        devices->data(), devices->size(), variant.compatibility.c_str(), &verdict));
    if (!status.ok()) {
      log(Severity::Warning, "the compatibility of variant '{}' is not known: {}", variant.name,
          status.to_string());
      return 0;
    }
  }
  switch (verdict) {
    case OrtCompiledModelCompatibility_EP_SUPPORTED_OPTIMAL: return 100;
    case OrtCompiledModelCompatibility_EP_SUPPORTED_PREFER_RECOMPILATION: return 50;
    case OrtCompiledModelCompatibility_EP_UNSUPPORTED: return std::nullopt;
    default: return 0;
  }
}

/// The variant that fits best, the first among equals.
Result<const PackageVariant*> select(const PackageComponent& component,
                                     const ProviderChoice& choice) {
  const PackageVariant* best = nullptr;
  int best_score = -1;
  for (const PackageVariant& variant : component.variants) {
    const auto found = score(variant, choice);
    if (!found || *found <= best_score) continue;
    best = &variant;
    best_score = *found;
  }
  if (best != nullptr) return best;
  return failure(kPlainFailure,
                 "No suitable model variant found for the configured execution providers. "
                 "Component '{}' has {} variants, none for '{}' and its {} devices",
                 component.name, component.variants.size(), choice.name, choice.devices.size());
}

Result<const PackageComponent*> component_of(const OrtModelPackageContext* context,
                                             const char* name) {
  SDX_TRY(require(context, "context"));
  SDX_TRY(require(name, "component_name"));
  if (const auto* found = context->package.find_component(name)) return found;
  return failure(Code::InvalidArgument, "Component model not found: {}", name);
}

Result<const PackageVariant*> variant_of(const PackageComponent& component, const char* name) {
  SDX_TRY(require(name, "variant_name"));
  for (const PackageVariant& variant : component.variants) {
    if (variant.name == name) return &variant;
  }
  return failure(Code::InvalidArgument, "Variant '{}' not found in component '{}'.", name,
                 component.name);
}

/// Lets the session run on the devices that the variant was chosen for.
Status append_choice(const OrtEnv& env, const OrtModelPackageComponentContext& context,
                     bool has_package_options, OrtSessionOptions& options) {
  const ProviderChoice& choice = context.choice;
  std::vector<const char*> keys;
  std::vector<const char*> values;
  if (has_package_options) {
    for (const auto& [key, value] : context.variant.provider_options) {
      keys.push_back(key.c_str());
      values.push_back(value.c_str());
    }
  }
  if (choice.devices.empty()) {
    if (!keys.empty()) {
      return failure(Code::Unsupported,
                     "the package has provider options for '{}', which was chosen without devices",
                     choice.name);
    }
    options.options.providers.push_back(choice.name);
    return {};
  }
  return take_status(SessionOptionsAppendExecutionProvider_V2(
      &options, const_cast<OrtEnv*>(&env), choice.devices.data(), choice.devices.size(),
      keys.data(), values.data(), keys.size()));
}

/// Options as the package wants them.
Status add_package_options(const OrtEnv& env, const OrtModelPackageComponentContext& context,
                           OrtSessionOptions& options) {
  SDX_TRY(append_choice(env, context, true, options));
  for (const auto& [key, value] : context.variant.session_options) {
    SDX_TRY(take_status(AddSessionConfigEntry(&options, key.c_str(), value.c_str())));
  }
  return {};
}

/// The caller's options, with what the package alone can know: where its files are.
Status complete_options(const OrtEnv& env, const OrtModelPackageComponentContext& context,
                        OrtSessionOptions& options) {
  for (const auto& [key, value] : context.variant.session_options) {
    if (is_package_path_option(key)) options.options.entries.emplace(key, value);
  }
  if (options.first_choice || options.choose_devices) return {};
  return append_choice(env, context, false, options);
}

}  // namespace

OrtStatus* CreateModelPackageOptionsFromSessionOptions(const OrtEnv* env,
                                                       const OrtSessionOptions* session_options,
                                                       OrtModelPackageOptions** out) noexcept {
  return guarded("CreateModelPackageOptionsFromSessionOptions", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(session_options, "session_options"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(ProviderChoice choice, first_choice(*session_options));
    *out = new OrtModelPackageOptions{*session_options, std::move(choice)};
    return {};
  });
}

void ReleaseModelPackageOptions(OrtModelPackageOptions* object) noexcept { delete object; }

OrtStatus* CreateModelPackageContext(const ORTCHAR_T* package_root,
                                     OrtModelPackageContext** out) noexcept {
  return guarded("CreateModelPackageContext", [&]() -> Status {
    SDX_TRY(require(package_root, "package_root"));
    SDX_TRY(require(out, "out"));
    auto package = ModelPackage::open(package_root);
    if (!package.ok()) return as_failure(std::move(package).take_status());
    std::unique_ptr<OrtModelPackageContext> made(
        new OrtModelPackageContext{std::move(package).value(), {}, {}, {}, {}});
    for (const PackageComponent& component : made->package.components()) {
      made->component_names.push_back(component.name.c_str());
      auto& names = made->variant_names.emplace_back();
      for (const auto& variant : component.variants) names.push_back(variant.name.c_str());
    }
    *out = made.release();
    return {};
  });
}

void ReleaseModelPackageContext(OrtModelPackageContext* object) noexcept { delete object; }

OrtStatus* ModelPackage_GetSchemaVersion(const OrtModelPackageContext* context,
                                         int64_t* version) noexcept {
  return guarded("ModelPackage_GetSchemaVersion", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(version, "version"));
    *version = context->package.schema_version();
    return {};
  });
}

OrtStatus* ModelPackage_GetComponentCount(const OrtModelPackageContext* context,
                                          size_t* count) noexcept {
  return guarded("ModelPackage_GetComponentCount", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(count, "count"));
    *count = context->component_names.size();
    return {};
  });
}

OrtStatus* ModelPackage_GetComponentNames(const OrtModelPackageContext* context,
                                          const char* const** names, size_t* count) noexcept {
  return guarded("ModelPackage_GetComponentNames", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(names, "names"));
    SDX_TRY(require(count, "count"));
    *names = context->component_names.data();
    *count = context->component_names.size();
    return {};
  });
}

OrtStatus* ModelPackage_GetVariantCount(const OrtModelPackageContext* context,
                                        const char* component_name, size_t* count) noexcept {
  return guarded("ModelPackage_GetVariantCount", [&]() -> Status {
    SDX_TRY(require(count, "count"));
    SDX_ASSIGN(const PackageComponent* component, component_of(context, component_name));
    *count = component->variants.size();
    return {};
  });
}

OrtStatus* ModelPackage_GetVariantNames(const OrtModelPackageContext* context,
                                        const char* component_name, const char* const** names,
                                        size_t* count) noexcept {
  return guarded("ModelPackage_GetVariantNames", [&]() -> Status {
    SDX_TRY(require(names, "names"));
    SDX_TRY(require(count, "count"));
    SDX_ASSIGN(const PackageComponent* component, component_of(context, component_name));
    const auto index = static_cast<size_t>(component - context->package.components().data());
    *names = context->variant_names[index].data();
    *count = component->variants.size();
    return {};
  });
}

OrtStatus* ModelPackage_GetVariantEpName(const OrtModelPackageContext* context,
                                         const char* component_name, const char* variant_name,
                                         const char** ep_name) noexcept {
  return guarded("ModelPackage_GetVariantEpName", [&]() -> Status {
    SDX_TRY(require(ep_name, "ep_name"));
    SDX_ASSIGN(const PackageComponent* component, component_of(context, component_name));
    SDX_ASSIGN(const PackageVariant* variant, variant_of(*component, variant_name));
    *ep_name = variant->provider.empty() ? nullptr : variant->provider.c_str();
    return {};
  });
}

OrtStatus* ModelPackage_ResolveStringRef(const OrtModelPackageContext* context,
                                         const char* base_folder, const char* reference,
                                         int must_exist, const char** path) noexcept {
  return guarded("ModelPackage_ResolveStringRef", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(reference, "reference"));
    SDX_TRY(require(path, "path"));
    auto resolved = context->package.resolve(base_folder != nullptr ? base_folder : "", reference,
                                             must_exist != 0);
    if (!resolved.ok()) return as_failure(std::move(resolved).take_status());
    const std::lock_guard lock(context->resolved_mutex);
    *path = context->resolved.insert(std::move(resolved).value()).first->c_str();
    return {};
  });
}

OrtStatus* SelectComponent(const OrtModelPackageContext* context, const char* component_name,
                           const OrtModelPackageOptions* options,
                           OrtModelPackageComponentContext** out) noexcept {
  return guarded("SelectComponent", [&]() -> Status {
    SDX_TRY(require(options, "options"));
    SDX_TRY(require(out, "out"));
    SDX_ASSIGN(const PackageComponent* component, component_of(context, component_name));
    SDX_ASSIGN(const PackageVariant* variant, select(*component, options->choice));
    *out = new OrtModelPackageComponentContext{component->name, *variant, options->options,
                                               options->choice};
    return {};
  });
}

void ReleaseModelPackageComponentContext(OrtModelPackageComponentContext* object) noexcept {
  delete object;
}

OrtStatus* ModelPackageComponent_GetSelectedVariantName(
    const OrtModelPackageComponentContext* context, const char** name) noexcept {
  return guarded("ModelPackageComponent_GetSelectedVariantName", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(name, "name"));
    *name = context->variant.name.c_str();
    return {};
  });
}

OrtStatus* ModelPackageComponent_GetSelectedVariantFolderPath(
    const OrtModelPackageComponentContext* context, const ORTCHAR_T** path) noexcept {
  return guarded("ModelPackageComponent_GetSelectedVariantFolderPath", [&]() -> Status {
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(path, "path"));
    *path = context->variant.folder.c_str();
    return {};
  });
}

OrtStatus* CreateSession(const OrtEnv* env, const OrtModelPackageComponentContext* context,
                         const OrtSessionOptions* session_options, OrtSession** session) noexcept {
  return guarded("CreateSession", [&]() -> Status {
    SDX_TRY(require(env, "env"));
    SDX_TRY(require(context, "context"));
    SDX_TRY(require(session, "session"));
    if (context->variant.model_file.empty()) {
      return failure(kPlainFailure,
                     "variant '{}' of component '{}' has no executor_info[\"ort\"][\"model_file\"]",
                     context->variant.name, context->component);
    }
    OrtSessionOptions options;
    if (session_options != nullptr) {
      options = *session_options;
      SDX_TRY(complete_options(*env, *context, options));
    } else {
      SDX_TRY(add_package_options(*env, *context, options));
    }
    return take_status(
        capi::CreateSession(env, context->variant.model_file.c_str(), &options, session));
  });
}

}  // namespace sardonyx::capi::model_package_api
