#include <algorithm>
#include <array>

#include "base/text.h"
#include "capi/api_declarations.h"
#include "capi/custom_operator.h"
#include "capi/handles.h"
#include "capi/lora.h"
#include "capi/places.h"
#include "capi/session_creation.h"
#include "capi/status.h"
#include "session/per_value.h"

namespace sardonyx::capi {

namespace {

Status value_at(const std::vector<SessionValue>& values, size_t index, const SessionValue** out) {
  if (index >= values.size()) {
    return failure(kPlainFailure, "index {} is outside the {} there are", index,
                   values.size());
  }
  *out = &values[index];
  return {};
}

Status name_at(const std::vector<SessionValue>& values, size_t index, OrtAllocator* allocator,
               char** out) {
  const SessionValue* value = nullptr;
  SDX_TRY(value_at(values, index, &value));
  return copy_text(allocator, value->name, out);
}

Status type_at(const std::vector<SessionValue>& values, size_t index, OrtTypeInfo** out) {
  const SessionValue* value = nullptr;
  SDX_TRY(require(out, "type_info"));
  SDX_TRY(value_at(values, index, &value));
  *out = new_type_info(value->type, value->symbols);
  return {};
}

}  // namespace

OrtStatus* of_cancelled_load(const OrtSessionOptions* options, OrtStatus* status) {
  const bool is_cancelled = status != nullptr && options != nullptr &&
                            options->load_cancelled->load() && GetErrorCode(status) == ORT_FAIL;
  if (!is_cancelled) return status;
  OrtStatus* named = make_status(ORT_MODEL_LOAD_CANCELED, GetErrorMessage(status));
  ReleaseStatus(status);
  return named;
}

SessionOptions session_options(const OrtSessionOptions* options) {
  if (options == nullptr) return {};
  SessionOptions chosen = options->options;
  chosen.cancel = options->load_cancelled;
  return chosen;
}

SessionOptions for_model_bytes(SessionOptions options) {
  const auto entry = [&](const char* key) {
    const auto found = options.entries.find(key);
    return found == options.entries.end() ? std::string() : found->second;
  };
  options.read.external_data_folder = entry("session.model_external_initializers_file_folder_path");
  options.read.borrow_bytes = entry("session.use_ort_model_bytes_directly") == "1";
  return options;
}

Result<std::optional<Severity>> severity_of(const OrtSessionOptions& options) {
  if (options.log_level == -1) return std::optional<Severity>();
  if (options.log_level < -1 || options.log_level > 4) {
    return failure(kPlainFailure, "session_log_severity_level is {}, expected 0 to 4",
                   options.log_level);
  }
  return std::optional<Severity>(static_cast<Severity>(options.log_level));
}

namespace {

/// What the program's function has under that name.
Result<std::vector<std::byte>> read_named(const EpContextData& data, const std::string& name) {
  OrtAllocator* allocator = default_allocator();
  void* buffer = nullptr;
  size_t size_bytes = 0;
  Status status = take_status(
      data.read(data.read_state, name.c_str(), allocator, &buffer, &size_bytes));
  std::vector<std::byte> bytes;
  if (status.ok() && buffer != nullptr) {
    const auto* begin = static_cast<const std::byte*>(buffer);
    bytes.assign(begin, begin + size_bytes);
  }
  if (buffer != nullptr) allocator->Free(allocator, buffer);
  if (!status.ok()) return std::move(status).with("reading the compiled data '" + name + "'");
  if (buffer != nullptr || size_bytes == 0) return bytes;
  return failure(Code::InvalidArgument,
                 "the function that reads compiled data says that '{}' has {} bytes, but gave none",
                 name, size_bytes);
}

}  // namespace

Result<SessionOptions> complete_options(const OrtEnv& env, const OrtSessionOptions& options) {
  SessionOptions chosen = session_options(&options);
  SDX_ASSIGN(chosen.thread_functions, options.threads.functions());
  auto session = std::make_shared<KernelSession>();
  *session = {env.environment, chosen.entries};
  SDX_ASSIGN(chosen.custom_operators,
             make_custom_operators(options.custom_domains, std::move(session)));
  if (const EpContextData data = options.ep_context_data; data.read != nullptr) {
    chosen.read_context_data = [data](const std::string& name) { return read_named(data, name); };
  }
  for (const auto& add : options.at_creation) SDX_TRY(add(options, chosen));
  return chosen;
}

Status create_session(const OrtEnv* env, const OrtSessionOptions* options, OrtSession** out,
                      SessionMaker make) {
  SDX_TRY(require(env, "env"));
  SDX_TRY(require(out, "out"));
  auto made = std::make_unique<OrtSession>();
  made->environment = env->environment;
  made->process = env->process;
  if (options != nullptr) {
    SDX_ASSIGN(made->log_level, severity_of(*options));
    made->log_sink = options->log_sink;
  }
  const SessionLog scope(made->log_sink, made->log_level);
  SessionOptions chosen;
  if (options != nullptr) {
    SDX_ASSIGN(chosen, complete_options(*env, *options));
  }
  SDX_ASSIGN(made->session, make(std::move(chosen)));
  log(Severity::Info, "a session with {} inputs and {} outputs is ready",
      made->session->inputs().size(), made->session->outputs().size());
  *out = made.release();
  return {};
}

OrtStatus* CreateSession(const OrtEnv* env, const ORTCHAR_T* model_path,
                         const OrtSessionOptions* options, OrtSession** out) noexcept {
  OrtStatus* status = guarded("CreateSession", [&]() -> Status {
    SDX_TRY(require(model_path, "model_path"));
    return create_session(env, options, out, [&](SessionOptions chosen) {
      return Session::load(env->environment, model_path, std::move(chosen));
    });
  });
  return of_cancelled_load(options, status);
}

OrtStatus* CreateSessionFromArray(const OrtEnv* env, const void* model_data,
                                  size_t model_data_length, const OrtSessionOptions* options,
                                  OrtSession** out) noexcept {
  OrtStatus* status = guarded("CreateSessionFromArray", [&]() -> Status {
    SDX_TRY(require(model_data, "model_data"));
    if (model_data_length == 0) return failure(Code::InvalidArgument, "the model has no bytes");
    return create_session(env, options, out, [&](SessionOptions chosen) {
      const auto* bytes = static_cast<const std::byte*>(model_data);
      return Session::load_bytes(env->environment, {bytes, model_data_length},
                                 for_model_bytes(std::move(chosen)));
    });
  });
  return of_cancelled_load(options, status);
}

OrtStatus* CreateSessionWithPrepackedWeightsContainer(const OrtEnv* env,
                                                      const ORTCHAR_T* model_path,
                                                      const OrtSessionOptions* options,
                                                      OrtPrepackedWeightsContainer*,
                                                      OrtSession** out) noexcept {
  return CreateSession(env, model_path, options, out);
}

OrtStatus* CreateSessionFromArrayWithPrepackedWeightsContainer(
    const OrtEnv* env, const void* model_data, size_t model_data_length,
    const OrtSessionOptions* options, OrtPrepackedWeightsContainer*, OrtSession** out) noexcept {
  return CreateSessionFromArray(env, model_data, model_data_length, options, out);
}

void ReleaseSession(OrtSession* object) noexcept { delete object; }

OrtStatus* SessionGetInputCount(const OrtSession* session, size_t* out) noexcept {
  return guarded("SessionGetInputCount", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(out, "out"));
    *out = session->session->inputs().size();
    return {};
  });
}

OrtStatus* SessionGetOutputCount(const OrtSession* session, size_t* out) noexcept {
  return guarded("SessionGetOutputCount", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(out, "out"));
    *out = session->session->outputs().size();
    return {};
  });
}

OrtStatus* SessionGetOverridableInitializerCount(const OrtSession* session, size_t* out) noexcept {
  return guarded("SessionGetOverridableInitializerCount", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(out, "out"));
    *out = session->session->overridable_initializers().size();
    return {};
  });
}

OrtStatus* SessionGetInputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                               char** value) noexcept {
  return guarded("SessionGetInputName", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return name_at(session->session->inputs(), index, allocator, value);
  });
}

OrtStatus* SessionGetOutputName(const OrtSession* session, size_t index, OrtAllocator* allocator,
                                char** value) noexcept {
  return guarded("SessionGetOutputName", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return name_at(session->session->outputs(), index, allocator, value);
  });
}

OrtStatus* SessionGetOverridableInitializerName(const OrtSession* session, size_t index,
                                                OrtAllocator* allocator, char** value) noexcept {
  return guarded("SessionGetOverridableInitializerName", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return name_at(session->session->overridable_initializers(), index, allocator, value);
  });
}

OrtStatus* SessionGetInputTypeInfo(const OrtSession* session, size_t index,
                                   OrtTypeInfo** type_info) noexcept {
  return guarded("SessionGetInputTypeInfo", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return type_at(session->session->inputs(), index, type_info);
  });
}

OrtStatus* SessionGetOutputTypeInfo(const OrtSession* session, size_t index,
                                    OrtTypeInfo** type_info) noexcept {
  return guarded("SessionGetOutputTypeInfo", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return type_at(session->session->outputs(), index, type_info);
  });
}

OrtStatus* SessionGetOverridableInitializerTypeInfo(const OrtSession* session, size_t index,
                                                    OrtTypeInfo** type_info) noexcept {
  return guarded("SessionGetOverridableInitializerTypeInfo", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    return type_at(session->session->overridable_initializers(), index, type_info);
  });
}

OrtStatus* SessionEndProfiling(OrtSession* session, OrtAllocator* allocator, char** out) noexcept {
  return guarded("SessionEndProfiling", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_ASSIGN(const std::string path, session->session->end_profiling());
    return copy_text(allocator, path, out);
  });
}

OrtStatus* SessionGetProfilingStartTimeNs(const OrtSession* session, uint64_t* out) noexcept {
  return guarded("SessionGetProfilingStartTimeNs", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(require(out, "out"));
    *out = session->session->profiling_start_ns();
    return {};
  });
}

OrtStatus* SessionGetMemoryInfoForInputs(const OrtSession* session, const OrtMemoryInfo** infos,
                                         size_t input_count) noexcept {
  return guarded("SessionGetMemoryInfoForInputs", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    if (input_count != 0) SDX_TRY(require(infos, "infos"));
    const Session& own = *session->session;
    for (size_t i = 0; i < input_count; ++i) {
      infos[i] = &memory_at(i < own.inputs().size() ? own.input_place(i) : nullptr);
    }
    return {};
  });
}

OrtStatus* SessionGetMemoryInfoForOutputs(const OrtSession* session, const OrtMemoryInfo** infos,
                                          size_t output_count) noexcept {
  return guarded("SessionGetMemoryInfoForOutputs", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    if (output_count != 0) SDX_TRY(require(infos, "infos"));
    const Session& own = *session->session;
    for (size_t i = 0; i < output_count; ++i) {
      infos[i] = &memory_at(i < own.outputs().size() ? own.output_place(i) : nullptr);
    }
    return {};
  });
}

namespace {

/// How many inputs the active adapters of a run bring.
size_t parameter_count(const OrtRunOptions* options) {
  if (options == nullptr) return 0;
  size_t count = 0;
  for (const auto& adapter : options->adapters) count += adapter->tensors.size();
  return count;
}

void add_parameters(const OrtRunOptions& options, std::span<std::string_view> names,
                    std::span<Datum> feeds) {
  size_t next = 0;
  for (const auto& adapter : options.adapters) {
    for (const auto& [name, tensor] : adapter->tensors) {
      names[next] = name;
      feeds[next++] = tensor;
    }
  }
}

/// Whether an output that the caller gave took the result.
Status check_given(const Datum& given, const Datum& result, std::string_view name) {
  const Tensor* expected = given.tensor();
  const Tensor* actual = result.tensor();
  if (expected == nullptr) return {};
  if (actual != nullptr && expected->data() == actual->data()) return {};
  return failure(
      Code::InvalidArgument, "output '{}' is {} of shape {}, but the given one is {} of shape {}",
      name, result.type().to_string(), actual != nullptr ? actual->shape().to_string() : "none",
      given.type().to_string(), expected->shape().to_string());
}

/// "cpu:0", which may be listed several times: no other device has an arena here.
Status check_shrink_list(std::string_view list) {
  for (std::string_view rest = list;;) {
    const std::string_view item = rest.substr(0, rest.find(';'));
    const std::string_view device = item.substr(0, item.find(':'));
    if (device != "cpu" && device != "gpu") {
      return failure(Code::InvalidArgument,
                     "Unsupported device specified in the memory arena shrink list: {}", device);
    }
    if (item != "cpu" && item != "cpu:0") {
      return failure(Code::InvalidArgument,
                     "there is no arena of device '{}', which the memory arena shrink list names",
                     item);
    }
    if (item.size() == rest.size()) return {};
    rest.remove_prefix(item.size() + 1);
  }
}

}  // namespace

Status run_session(OrtSession& session, const OrtRunOptions* options,
                   std::span<const std::string_view> input_names, std::span<const Datum> inputs,
                   std::span<const std::string_view> output_names, std::span<Datum> outputs) {
  const int own_level = options != nullptr ? std::min(options->log_severity_level, 4) : -1;
  const SessionLog scope(session.log_sink,
                         own_level >= 0 ? static_cast<Severity>(own_level) : session.log_level);
  RunOptions run_options;
  if (options != nullptr) {
    if (options->terminate.load()) {
      return failure(Code::Cancelled,
                     "nothing was run: the terminate flag of the run options is set");
    }
    run_options.terminate = &options->terminate;
    run_options.caller_options = options;
    run_options.profile_prefix = options->profile_prefix;
    const auto shrink = options->entries.find("memory.enable_memory_arena_shrinkage");
    if (shrink != options->entries.end() && !shrink->second.empty()) {
      SDX_TRY(check_shrink_list(shrink->second));
      run_options.shrink = true;
    }
  }
  return session.session->run(input_names, inputs, output_names, outputs, run_options);
}

namespace {

Status check_arrays(const void* input_names, const void* inputs, size_t input_count,
                    const void* output_names, const void* outputs, size_t output_count) {
  if (input_count != 0) {
    SDX_TRY(require(input_names, "input_names"));
    SDX_TRY(require(inputs, "inputs"));
  }
  if (output_count == 0) {
    return failure(Code::InvalidArgument, "at least one output should be requested");
  }
  SDX_TRY(require(output_names, "output_names"));
  return require(outputs, "outputs");
}

}  // namespace

OrtStatus* Run(OrtSession* session, const OrtRunOptions* run_options,
               const char* const* input_names, const OrtValue* const* inputs, size_t input_count,
               const char* const* output_names, size_t output_count, OrtValue** outputs) noexcept {
  return guarded("Run", [&]() -> Status {
    SDX_TRY(require(session, "session"));
    SDX_TRY(check_arrays(input_names, inputs, input_count, output_names, outputs, output_count));
    const size_t extra_count = parameter_count(run_options);
    PerValue<std::string_view> names(input_count + extra_count);
    PerValue<Datum> feeds(input_count + extra_count);
    for (size_t i = 0; i < input_count; ++i) {
      SDX_TRY(require(input_names[i], "an input name"));
      SDX_TRY(require(inputs[i], "an input"));
      names.data()[i] = input_names[i];
      feeds.data()[i] = inputs[i]->datum;
    }
    if (extra_count != 0) {
      add_parameters(*run_options, names.data().subspan(input_count),
                     feeds.data().subspan(input_count));
    }
    PerValue<std::string_view> wanted(output_count);
    PerValue<Datum> results(output_count);
    for (size_t i = 0; i < output_count; ++i) {
      SDX_TRY(require(output_names[i], "an output name"));
      wanted.data()[i] = output_names[i];
      if (outputs[i] != nullptr) results.data()[i] = outputs[i]->datum;
    }
    SDX_TRY(run_session(*session, run_options, names.data(), feeds.data(), wanted.data(),
                        results.data()));
    for (size_t i = 0; i < output_count; ++i) {
      if (outputs[i] == nullptr) {
        outputs[i] = new_value(std::move(results.data()[i]));
        continue;
      }
      SDX_TRY(check_given(outputs[i]->datum, results.data()[i], output_names[i]));
      outputs[i]->datum = std::move(results.data()[i]);
    }
    return {};
  });
}

}  // namespace sardonyx::capi
