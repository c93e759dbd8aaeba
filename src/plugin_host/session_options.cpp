// How sessions get providers of plugin libraries: by device, or by a policy that chooses devices.
#include <algorithm>

#include "base/log.h"
#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/status.h"
#include "plugin_host/callbacks.h"
#include "plugin_host/provider.h"
#include "plugin_host/registry.h"
#include "plugin_host/select.h"

namespace sardonyx::capi {

using plugin_host::Library;
using plugin_host::PluginProvider;
using plugin_host::Registry;

namespace {

constexpr const char* kBuiltIn = "CPUExecutionProvider";

/// The devices of one provider, with what keeps its library open until the session has it.
struct Chosen {
  std::vector<const OrtEpDevice*> devices;
  std::shared_ptr<const Library> library;
  std::shared_ptr<Registry> registry;
};

Result<Chosen> check_devices(const OrtEnv& env, const OrtEpDevice* const* devices, size_t count) {
  if (count == 0) {
    return failure(Code::InvalidArgument, "expected at least one device of a provider, found none");
  }
  Chosen chosen;
  SDX_ASSIGN(chosen.registry, Registry::of(env));
  SDX_TRY(require(devices, "ep_devices"));
  for (size_t i = 0; i < count; ++i) {
    SDX_TRY(require(devices[i], "an execution provider device"));
    const OrtEpDevice& device = *devices[i];
    if (device.ep_name != devices[0]->ep_name || device.factory != devices[0]->factory) {
      return failure(Code::InvalidArgument,
                     "all devices should be of one execution provider, found '{}' and '{}'",
                     devices[0]->ep_name, device.ep_name);
    }
    if (device.is_retired) {
      return failure(Code::InvalidArgument,
                     "the plugin library of provider '{}' was unregistered: take devices from the "
                     "current list",
                     device.ep_name);
    }
    chosen.devices.push_back(&device);
  }
  chosen.library = devices[0]->library.lock();
  return chosen;
}

/// Providers read their options as configuration entries "ep.NAME.KEY", the name in small letters.
std::string option_key(std::string ep_name, const std::string& key) {
  std::transform(ep_name.begin(), ep_name.end(), ep_name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return "ep." + ep_name + "." + key;
}

void add_defaults(const OrtEpDevice& device, SessionOptions& options) {
  for (const auto& [key, value] : device.options.entries) {
    options.entries.emplace(option_key(device.ep_name, key), value);
  }
}

Status add_options(const std::string& ep_name, const char* const* keys, const char* const* values,
                   size_t count, SessionOptions& options) {
  for (size_t i = 0; i < count; ++i) {
    SDX_TRY(require(keys[i], "an option key"));
    SDX_TRY(require(values[i], "an option value"));
    options.entries[option_key(ep_name, keys[i])] = values[i];
  }
  return {};
}

/// Operators that a plugin defines itself, for models that use them.
/// Errors   those of the plugin.
Status add_custom_domains(const Library& library, OrtEpFactory& factory,
                          OrtSessionOptions& options) {
  const auto get_count = plugin_host::callback(factory, &OrtEpFactory::GetNumCustomOpDomains, 24);
  const auto get = plugin_host::callback(factory, &OrtEpFactory::GetCustomOpDomains, 24);
  if (get_count == nullptr || get == nullptr) return {};
  constexpr std::size_t kDomainsMax = 256;
  std::size_t count = 0;
  SDX_TRY(plugin_host::guarded_call(library.name(), "GetNumCustomOpDomains",
                                    [&] { return get_count(&factory, &count); }));
  if (count > kDomainsMax) {
    return failure(Code::InvalidArgument,
                   "plugin library '{}': GetNumCustomOpDomains says {}, expected at most {}",
                   library.name(), count, kDomainsMax);
  }
  std::vector<OrtCustomOpDomain*> domains(count);
  if (count == 0) return {};
  SDX_TRY(plugin_host::guarded_call(library.name(), "GetCustomOpDomains",
                                    [&] { return get(&factory, domains.data(), count); }));
  auto& known = options.custom_domains;
  for (const OrtCustomOpDomain* domain : domains) {
    if (domain == nullptr) {
      return failure(Code::InvalidArgument,
                     "plugin library '{}': GetCustomOpDomains left a domain a null pointer",
                     library.name());
    }
    if (std::find(known.begin(), known.end(), domain->state) == known.end()) {
      known.push_back(domain->state);
    }
  }
  return {};
}

/// The devices of each provider that is made.
std::vector<std::vector<const OrtEpDevice*>> instances_of(
    const std::vector<const OrtEpDevice*>& devices, DeviceSplit split) {
  if (split == DeviceSplit::None) return {devices};
  std::vector<std::vector<const OrtEpDevice*>> instances;
  for (const OrtEpDevice* device : devices) {
    const auto same = std::find_if(instances.begin(), instances.end(), [&](const auto& others) {
      return split == DeviceSplit::ByType &&
             others.front()->device->type == device->device->type;
    });
    if (same == instances.end()) {
      instances.push_back({device});
    } else {
      same->push_back(device);
    }
  }
  return instances;
}

/// The maker of the provider, which sees all options of the session.
ProviderMaker maker_of(Chosen chosen, std::shared_ptr<const OrtSessionOptions> options) {
  return [chosen = std::move(chosen),
          options = std::move(options)](const CompileOptions& compiling) -> Result<Providers> {
    Providers providers;
    for (const auto& devices : instances_of(chosen.devices, compiling.device_split)) {
      SDX_ASSIGN(auto provider, PluginProvider::create(devices, *options,
                                                       compiling.weightless_request,
                                                       providers.size()));
      providers.push_back(std::move(provider));
    }
    return providers;
  };
}

std::shared_ptr<const OrtSessionOptions> snapshot(const OrtSessionOptions& options) {
  auto copy = std::make_shared<OrtSessionOptions>(options);
  copy->at_creation.clear();
  return copy;
}

}  // namespace

OrtStatus* SessionOptionsAppendExecutionProvider_V2(OrtSessionOptions* session_options, OrtEnv* env,
                                                    const OrtEpDevice* const* ep_devices,
                                                    size_t ep_device_count,
                                                    const char* const* ep_option_keys,
                                                    const char* const* ep_option_vals,
                                                    size_t num_ep_options) noexcept {
  return guarded("SessionOptionsAppendExecutionProvider_V2", [&]() -> Status {
    SDX_TRY(require(session_options, "session_options"));
    SDX_TRY(require(env, "env"));
    SDX_ASSIGN(Chosen chosen, check_devices(*env, ep_devices, ep_device_count));
    const std::string& name = chosen.devices.front()->ep_name;
    if (!session_options->first_choice) {
      session_options->first_choice = ProviderChoice{name, chosen.devices};
    }
    if (chosen.devices.front()->factory == nullptr) {
      session_options->options.providers.push_back(name);
      return {};
    }
    for (const OrtEpDevice* device : chosen.devices) {
      add_defaults(*device, session_options->options);
    }
    SDX_TRY(add_options(name, ep_option_keys, ep_option_vals, num_ep_options,
                        session_options->options));
    if (chosen.library != nullptr) {
      SDX_TRY(add_custom_domains(*chosen.library, *chosen.devices.front()->factory,
                                 *session_options));
    }
    session_options->at_creation.push_back(
        [chosen = std::move(chosen)](const OrtSessionOptions& given,
                                     SessionOptions& made) -> Status {
          made.own_providers.push_back(maker_of(chosen, snapshot(given)));
          return {};
        });
    return {};
  });
}

namespace {

/// Devices that a policy or a delegate chose, by provider in the order of the choice.
Result<Providers> make_selected(const std::vector<const OrtEpDevice*>& selected,
                                OrtSessionOptions options, const WeightlessRequest& request) {
  std::vector<std::vector<const OrtEpDevice*>> by_provider;
  for (const OrtEpDevice* device : selected) {
    if (device->factory == nullptr) continue;
    const auto same = std::find_if(by_provider.begin(), by_provider.end(), [&](const auto& group) {
      return group.front()->factory == device->factory;
    });
    if (same == by_provider.end()) {
      by_provider.push_back({device});
    } else {
      same->push_back(device);
    }
    add_defaults(*device, options.options);
  }
  Providers providers;
  for (const auto& devices : by_provider) {
    SDX_ASSIGN(auto provider, PluginProvider::create(devices, options, request));
    providers.push_back(std::move(provider));
  }
  return providers;
}

using Select = std::function<Result<std::vector<const OrtEpDevice*>>(
    const std::vector<const OrtEpDevice*>& devices, const Model* model)>;

Status set_selection(OrtSessionOptions& options, Select select) {
  options.choose_devices = [select]() -> Result<std::vector<const OrtEpDevice*>> {
    const auto registry = Registry::current();
    if (registry == nullptr) return std::vector<const OrtEpDevice*>();
    return select(registry->ep_devices(), nullptr);
  };
  options.at_creation.push_back(
      [select = std::move(select)](const OrtSessionOptions& given, SessionOptions& made) -> Status {
        auto registry = Registry::current();
        if (registry == nullptr || !made.own_providers.empty()) return {};
        made.own_providers.push_back(
            [=, options = snapshot(given)](const CompileOptions& compiling) -> Result<Providers> {
              SDX_ASSIGN(const auto selected, select(registry->ep_devices(), compiling.model));
              return make_selected(selected, *options, compiling.weightless_request);
            });
        return {};
      });
  return {};
}

}  // namespace

OrtStatus* SessionOptionsSetEpSelectionPolicy(OrtSessionOptions* session_options,
                                              OrtExecutionProviderDevicePolicy policy) noexcept {
  return guarded("SessionOptionsSetEpSelectionPolicy", [&]() -> Status {
    SDX_TRY(require(session_options, "session_options"));
    if (policy < OrtExecutionProviderDevicePolicy_DEFAULT ||
        policy > OrtExecutionProviderDevicePolicy_MIN_OVERALL_POWER) {
      return failure(Code::InvalidArgument, "a selection policy is 0 to 6, found {}",
                     static_cast<int>(policy));
    }
    return set_selection(*session_options,
                         [policy](const std::vector<const OrtEpDevice*>& devices, const Model*) {
                           return plugin_host::select_by_policy(devices, policy);
                         });
  });
}

OrtStatus* SessionOptionsSetEpSelectionPolicyDelegate(OrtSessionOptions* session_options,
                                                      EpSelectionDelegate delegate,
                                                      void* delegate_state) noexcept {
  return guarded("SessionOptionsSetEpSelectionPolicyDelegate", [&]() -> Status {
    SDX_TRY(require(session_options, "session_options"));
    SDX_TRY(require(reinterpret_cast<const void*>(delegate), "delegate"));
    return set_selection(
        *session_options, [=](const std::vector<const OrtEpDevice*>& devices, const Model* model) {
          return plugin_host::select_by_delegate(devices, model, delegate, delegate_state);
        });
  });
}

OrtStatus* SessionReleaseCapturedGraph(OrtSession* session, int graph_annotation_id) noexcept {
  return guarded("SessionReleaseCapturedGraph", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    for (const auto& provider : session->session->own_providers()) {
      const auto* plugin = dynamic_cast<const PluginProvider*>(provider.get());
      if (plugin != nullptr) SDX_TRY(plugin->release_captured(graph_annotation_id));
    }
    return {};
  });
}

OrtStatus* SetEpDynamicOptions(OrtSession* sess, const char* const* keys, const char* const* values,
                               size_t kv_count) noexcept {
  return guarded("SetEpDynamicOptions", [&]() -> Status {
    SDX_TRY(require(sess, "sess"));
    if (kv_count == 0) return failure(Code::InvalidArgument, "no options were given");
    SDX_TRY(require(keys, "keys"));
    SDX_TRY(require(values, "values"));
    std::vector<std::pair<std::string, std::string>> entries;
    for (size_t i = 0; i < kv_count; ++i) {
      SDX_TRY(require(keys[i], "an option key"));
      SDX_TRY(require(values[i], "an option value"));
      if (*keys[i] == '\0') return failure(Code::InvalidArgument, "an option has an empty key");
      entries.emplace_back(keys[i], values[i]);
    }
    for (const auto& provider : sess->session->own_providers()) {
      const Status status = provider->change_options(entries);
      if (!status.ok() && status.code() != Code::Unsupported) {
        return Status(status.code(), status.message());
      }
    }
    return {};
  });
}

}  // namespace sardonyx::capi
