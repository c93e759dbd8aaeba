#include "session/session.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/memory.h"
#include "base/text.h"
#include "session/borders.h"
#include "session/compile.h"
#include "session/compiled_cache.h"
#include "session/context_model.h"
#include "session/context_options.h"
#include "session/load.h"
#include "session/mapped_files.h"
#include "session/memory_collector.h"
#include "session/per_value.h"
#include "session/pool.h"
#include "session/profile.h"
#include "session/random_seed.h"

namespace sardonyx {

namespace {

/// What runs use, which refit() replaces as a whole.
struct Running {
  std::shared_ptr<Compiled> compiled;
  std::vector<std::shared_ptr<const void>> keep_alive;
  /// Those of keep_alive that are files.
  MappedFiles files;
};

/// Takes the compiled part out of `made`.
Result<std::shared_ptr<const Running>> make_running(CompiledModel& made,
                                                    std::vector<std::shared_ptr<const void>> kept) {
  auto running = std::make_shared<Running>();
  running->compiled = std::move(made.compiled);
  running->keep_alive = std::move(kept);
  running->keep_alive.insert(running->keep_alive.end(), made.files.begin(), made.files.end());
  SDX_ASSIGN(running->files, whole_files(running->keep_alive));
  return std::shared_ptr<const Running>(std::move(running));
}

}  // namespace

struct Session::Impl {
  std::shared_ptr<Environment> environment;
  SessionOptions options;
  ModelMetadata metadata;
  std::vector<std::pair<std::string, std::int64_t>> opset_imports;
  std::vector<SessionValue> inputs;
  std::vector<SessionValue> overridable;
  std::vector<SessionValue> outputs;
  /// All inputs of the compiled part in order, overridable ones included: name, type, default.
  std::vector<SessionValue> all_inputs;
  std::vector<std::shared_ptr<const Tensor>> defaults;
  std::unordered_map<std::string_view, std::size_t> input_index;
  std::unordered_map<std::string_view, std::size_t> output_index;
  /// Set until the session is finished.
  std::unique_ptr<Model> open;
  std::vector<DimDenotation> open_denotations;
  std::shared_ptr<ThreadPool> pool;
  CompiledModel compiled;
  std::unique_ptr<TraceProfiler> profiler;
  /// Null unless the options ask for memory statistics.
  std::unique_ptr<MemoryCollector> collector;
  std::atomic<std::shared_ptr<const Running>> running;
  /// The file that the model was read from, and its state then; "" for none.
  std::string path;
  FileIdentity path_identity;
  /// One refit at a time; what all of them have set.
  std::mutex refit_mutex;
  std::map<std::string, Tensor> refitted;
  std::atomic<std::uint64_t> run_count{0};

  void describe(const Model& model);
  Status check_feed(const SessionValue& expected, const Datum& fed) const;
  Status check_place(const Datum& given, std::string_view what, std::string_view name) const;
};

namespace {

SessionValue describe_value(const Value& value, const SymbolTable& symbols) {
  SessionValue described{value.name, value.type, {}};
  if (value.type.shape) {
    for (const Dim dim : *value.type.shape) described.symbols.push_back(symbols.name(dim));
  }
  return described;
}

std::vector<std::string> names_of(const std::vector<SessionValue>& values) {
  std::vector<std::string> names;
  for (const SessionValue& value : values) names.push_back(value.name);
  return names;
}

std::string hint(std::string_view name, const std::vector<SessionValue>& values) {
  const std::string guess = nearest(name, names_of(values));
  return guess.empty() ? "" : fmt::format(" (did you mean '{}'?)", guess);
}

/// "[batch,3,224,224]": sizes, names of symbols, ? for the rest.
std::string declared_shape(const SessionValue& value) {
  std::vector<std::string> parts;
  for (int axis = 0; axis < value.type.shape->rank(); ++axis) {
    const Dim dim = (*value.type.shape)[axis];
    const std::string& symbol = value.symbols[static_cast<std::size_t>(axis)];
    parts.push_back(is_known(dim) ? fmt::format("{}", dim) : symbol.empty() ? "?" : symbol);
  }
  return "[" + join(parts, ",") + "]";
}

}  // namespace

ModelMetadata metadata_of(const Model& model) {
  ModelMetadata metadata;
  metadata.producer_name = model.producer_name;
  metadata.graph_name = model.graph.name;
  metadata.graph_description = model.graph.doc_string;
  metadata.domain = model.domain;
  metadata.description = model.doc_string;
  metadata.version = model.model_version;
  metadata.custom = model.metadata;
  return metadata;
}

void Session::Impl::describe(const Model& model) {
  metadata = metadata_of(model);
  opset_imports = model.opset_imports;
  for (auto* values : {&inputs, &overridable, &outputs, &all_inputs}) values->clear();
  defaults.clear();
  input_index.clear();
  output_index.clear();
  for (const ValueId id : model.graph.inputs()) {
    const Value& value = model.graph.value(id);
    SessionValue described = describe_value(value, model.symbols);
    (value.default_value != nullptr ? overridable : inputs).push_back(described);
    all_inputs.push_back(std::move(described));
    defaults.push_back(value.default_value);
  }
  for (const ValueId id : model.graph.outputs()) {
    outputs.push_back(describe_value(model.graph.value(id), model.symbols));
  }
  for (std::size_t i = 0; i < all_inputs.size(); ++i) input_index.emplace(all_inputs[i].name, i);
  for (std::size_t i = 0; i < outputs.size(); ++i) output_index.emplace(outputs[i].name, i);
}

namespace {

/// Is the datum of the type, the items of sequences included? Shapes are not compared.
bool is_of(const Type& type, const Datum& datum) {
  if (type.kind == Type::Kind::Unknown) return true;
  if (type.kind == Type::Kind::Optional) {
    return !datum.has_value() || type.element == nullptr || is_of(*type.element, datum);
  }
  if (const Tensor* tensor = datum.tensor()) {
    return type.is_tensor() && tensor->dtype() == type.dtype &&
           tensor->dtype() != DType::Undefined;
  }
  if (const Sequence* sequence = datum.sequence()) {
    if (type.kind != Type::Kind::Sequence) return false;
    if (type.element == nullptr) return true;
    for (const Datum& item : sequence->items) {
      if (!is_of(*type.element, item)) return false;
    }
    return true;
  }
  if (const Map* map = datum.map()) {
    if (type.kind != Type::Kind::Map || map->keys.dtype() != type.dtype) return false;
    return type.element == nullptr || map->values.dtype() == type.element->dtype;
  }
  const SparseTensor* sparse = datum.sparse();
  return sparse != nullptr && type.kind == Type::Kind::SparseTensor &&
         sparse->values.dtype() == type.dtype;
}

/// The datum; a sequence without items takes the type that is declared for it.
Datum typed(const Type& type, const Datum& datum) {
  const Sequence* sequence = datum.sequence();
  if (sequence == nullptr || !sequence->items.empty()) return datum;
  const Type& wanted =
      type.kind == Type::Kind::Optional && type.element != nullptr ? *type.element : type;
  if (wanted.kind != Type::Kind::Sequence || wanted.element == nullptr) return datum;
  auto made = std::make_shared<Sequence>();
  made->element = *wanted.element;
  return Datum(std::shared_ptr<const Sequence>(std::move(made)));
}

}  // namespace

Status Session::Impl::check_feed(const SessionValue& expected, const Datum& fed) const {
  const Tensor* tensor = fed.tensor();
  if (!expected.type.is_tensor()) {
    if (is_of(expected.type, fed)) return {};
    return failure(Code::InvalidArgument, "input '{}' should be {}, but a {} was fed",
                   expected.name, expected.type.to_string(), fed.type().to_string());
  }
  if (tensor == nullptr || tensor->dtype() != expected.type.dtype ||
      tensor->dtype() == DType::Undefined) {
    return failure(Code::InvalidArgument, "input '{}' should be {}, but {} was fed", expected.name,
                   expected.type.to_string(), fed.has_value() ? fed.type().to_string() : "nothing");
  }
  if (!expected.type.shape) return {};
  const Shape& declared = *expected.type.shape;
  if (tensor->rank() != declared.rank()) {
    return failure(Code::InvalidArgument,
                   "input '{}' should have rank {} (shape {}), but an array of rank {} (shape {}) "
                   "was fed",
                   expected.name, declared.rank(), declared_shape(expected), tensor->rank(),
                   tensor->shape().to_string());
  }
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (is_known(declared[axis]) && declared[axis] != tensor->dim(axis)) {
      return failure(Code::InvalidArgument,
                     "input '{}' should have shape {}, but {} was fed: dimension {} should be {}, "
                     "found {}",
                     expected.name, declared_shape(expected), tensor->shape().to_string(), axis,
                     declared[axis], tensor->dim(axis));
    }
  }
  return {};
}

/// The built-in provider alone reaches the processor's memory only.
Status Session::Impl::check_place(const Datum& given, std::string_view what,
                                  std::string_view name) const {
  const Tensor* tensor = given.tensor();
  const bool is_near = tensor == nullptr || place_of(*tensor) == nullptr;
  if (is_near || !compiled.own_providers.empty()) return {};
  return failure(Code::InvalidArgument,
                 "{} '{}' lies in '{}' memory, which no provider of this session reaches", what,
                 name, place_of(*tensor)->name());
}

Session::Session() : impl_(std::make_unique<Impl>()) {}

Session::~Session() {
  // A program that never ends profiling finds the trace all the same; there is no one to tell of an
  // error.
  if (impl_ != nullptr) (void)end_profiling();
}

namespace {

void begin_profiling(const Session::Impl& session) {
  if (session.profiler == nullptr) return;
  for (const auto& provider : session.compiled.own_providers) {
    const ProfiledProvider* profiled = as_profiled(*provider);
    if (profiled != nullptr) profiled->begin_profiling(session.profiler->start());
  }
}

Status compile_session(Model model, std::span<const DimDenotation> denotations,
                       Session::Impl& session) {
  const auto start = Profiler::Clock::now();
  if (session.options.is_profiling) session.profiler = std::make_unique<TraceProfiler>();
  SDX_ASSIGN(const auto context, context_options_of(session.options, model.path));
  std::vector<std::string> sources;
  if (context) {
    SDX_TRY(check_context_output(*context));
    SDX_TRY(check_not_compiled(model));
    sources = source_files(model);
  }
  SDX_TRY(prepare_model(model, session.options, denotations));
  session.describe(model);
  SDX_ASSIGN(session.collector, MemoryCollector::make(session.options, model));
  SDX_ASSIGN(session.pool, make_pool(*session.environment, session.options));
  if (!model.path.empty()) {
    session.path = model.path;
    SDX_ASSIGN(session.path_identity, identify_file(model.path));
  }
  const auto kept = model.keep_alive;
  SDX_ASSIGN(session.compiled, compile_model(std::move(model), *session.environment,
                                             session.options, *session.pool,
                                             context ? &*context : nullptr, sources));
  begin_profiling(session);
  SDX_TRY(report_progress(session.options, LoadStage::Ready));
  SDX_ASSIGN(auto running, make_running(session.compiled, kept));
  session.running.store(std::move(running));
  if (session.profiler != nullptr) {
    session.profiler->record_session("session_initialization", start, Profiler::Clock::now());
  }
  return {};
}

/// Runs the model as it is compiled in the session's cache; false: there is none, or it cannot be
/// used.
Result<bool> load_from_cache(const Model& model, std::span<const std::byte> bytes,
                             Session::Impl& session) {
  SDX_ASSIGN(const auto cache, CompiledCache::of(model, bytes, session.options));
  if (!cache) return false;
  const SessionOptions given = session.options;
  for (const bool rebuilds : {false, true}) {
    auto compiled = cache->open(*session.environment, model, given, rebuilds);
    Status status = std::move(compiled).take_status();
    if (status.ok()) {
      cache->adapt(session.options);
      status = compile_session(std::move(compiled).value(), {}, session);
      if (status.ok()) return true;
      session.options = given;
    }
    if (status.code() == Code::Cancelled) return status;
    log(rebuilds ? Severity::Warning : Severity::Info,
        "the compiled model '{}' in the cache {}: {}", cache->path(),
        rebuilds ? "cannot be made" : "is made again", status.to_string());
  }
  return false;
}

/// `bytes` are those of a model that was read from memory.
Status finish_loading(Model model, std::span<const DimDenotation> denotations,
                      Session::Impl& session, std::span<const std::byte> bytes = {}) {
  SDX_ASSIGN(const bool is_loaded, load_from_cache(model, bytes, session));
  return is_loaded ? Status() : compile_session(std::move(model), denotations, session);
}

}  // namespace

Result<std::unique_ptr<Session>> Session::load_model(std::shared_ptr<Environment> environment,
                                                     Model model, SessionOptions options) {
  const FreedMemoryScope freed_memory;
  std::unique_ptr<Session> session(new Session);
  session->impl_->environment = std::move(environment);
  session->impl_->options = std::move(options);
  SDX_TRY(finish_loading(std::move(model), {}, *session->impl_));
  return session;
}

Result<std::unique_ptr<Session>> Session::open(std::shared_ptr<Environment> environment,
                                               const std::string& path, SessionOptions options) {
  std::unique_ptr<Session> session(new Session);
  session->impl_->environment = std::move(environment);
  session->impl_->options = std::move(options);
  SDX_TRY(report_progress(session->impl_->options, LoadStage::Read));
  SDX_ASSIGN(Model model,
             read_model(path, session->impl_->options.read, &session->impl_->open_denotations));
  session->replace_open_model(std::move(model));
  return session;
}

Result<std::unique_ptr<Session>> Session::open_bytes(std::shared_ptr<Environment> environment,
                                                     std::span<const std::byte> bytes,
                                                     SessionOptions options) {
  std::unique_ptr<Session> session(new Session);
  session->impl_->environment = std::move(environment);
  session->impl_->options = std::move(options);
  SDX_TRY(report_progress(session->impl_->options, LoadStage::Read));
  SDX_ASSIGN(Model model, read_model_from_bytes(bytes, session->impl_->options.read,
                                                &session->impl_->open_denotations));
  session->replace_open_model(std::move(model));
  return session;
}

Result<std::unique_ptr<Session>> Session::load(std::shared_ptr<Environment> environment,
                                               const std::string& path, SessionOptions options) {
  const FreedMemoryScope freed_memory;
  SDX_ASSIGN(auto session, open(std::move(environment), path, std::move(options)));
  Status status = finish_loading(std::move(*session->impl_->open), session->impl_->open_denotations,
                                 *session->impl_);
  if (!status.ok()) return std::move(status).with("loading '" + path + "'");
  session->impl_->open.reset();
  return session;
}

Result<std::unique_ptr<Session>> Session::load_bytes(std::shared_ptr<Environment> environment,
                                                     std::span<const std::byte> bytes,
                                                     SessionOptions options) {
  const FreedMemoryScope freed_memory;
  SDX_ASSIGN(auto session, open_bytes(std::move(environment), bytes, std::move(options)));
  Status status = finish_loading(std::move(*session->impl_->open), session->impl_->open_denotations,
                                 *session->impl_, bytes);
  if (!status.ok()) return std::move(status).with("loading a model from memory");
  session->impl_->open.reset();
  return session;
}

const Model* Session::open_model() const { return impl_->open.get(); }

void Session::replace_open_model(Model model) {
  impl_->describe(model);
  impl_->open = std::make_unique<Model>(std::move(model));
}

Status Session::finish(SessionOptions options) {
  const FreedMemoryScope freed_memory;
  if (impl_->open == nullptr) {
    return failure(Code::InvalidArgument, "the session is not open to changes");
  }
  impl_->options = std::move(options);
  const std::unique_ptr<Model> model = std::move(impl_->open);
  return finish_loading(std::move(*model), impl_->open_denotations, *impl_);
}

const std::vector<SessionValue>& Session::inputs() const { return impl_->inputs; }
const std::vector<SessionValue>& Session::outputs() const { return impl_->outputs; }
const std::vector<SessionValue>& Session::overridable_initializers() const {
  return impl_->overridable;
}
const ModelMetadata& Session::metadata() const { return impl_->metadata; }
const std::vector<std::pair<std::string, std::int64_t>>& Session::opset_imports() const {
  return impl_->opset_imports;
}
const SessionOptions& Session::options() const { return impl_->options; }
const std::vector<std::string>& Session::provider_names() const {
  return impl_->compiled.providers;
}
const std::vector<std::string>& Session::used_provider_names() const {
  return impl_->compiled.used_providers;
}
const Providers& Session::own_providers() const { return impl_->compiled.own_providers; }
bool Session::reaches(const Place& place) const {
  const auto moves = [&](const auto& provider) {
    const DeviceProvider* device = as_device(*provider);
    return device != nullptr && device->can_copy(&place, nullptr) &&
           device->can_copy(nullptr, &place);
  };
  const Providers& own = impl_->compiled.own_providers;
  return std::any_of(own.begin(), own.end(), moves);
}
const Place* Session::input_place(std::size_t index) const {
  const auto running = impl_->running.load();
  const auto* device = dynamic_cast<const DeviceCompiled*>(running->compiled.get());
  const auto found = impl_->input_index.find(impl_->inputs[index].name);
  return device == nullptr || found == impl_->input_index.end()
             ? nullptr
             : device->input_place(found->second);
}
const Place* Session::output_place(std::size_t index) const {
  const auto running = impl_->running.load();
  const auto* device = dynamic_cast<const DeviceCompiled*>(running->compiled.get());
  return device == nullptr ? nullptr : device->output_place(index);
}
const std::vector<AssignedPart>& Session::assigned_parts() const {
  return impl_->compiled.assigned_parts;
}
CompiledMemory Session::memory() const {
  const auto running = impl_->running.load();
  return running != nullptr ? running->compiled->memory() : CompiledMemory{};
}
const Placement& Session::placement() const { return impl_->compiled.placement; }

const Graph* Session::optimized_graph() const {
  const auto running = impl_->running.load();
  return running != nullptr ? running->compiled->optimized_graph() : nullptr;
}

namespace {

/// Whether an output was asked for: the first who does gets what the run made.
enum class Asked : std::uint8_t { Never, Waiting, Served };

/// Gives a result to one who asked for it. The run wrote into the buffer of the first alone; others
/// get a copy, since each may write into what it gets.
Status hand_out(const Providers& providers, const Datum& result, Asked& state, Datum& wanted) {
  const Tensor* made = result.tensor();
  Tensor* given = wanted.tensor();
  const bool is_first = std::exchange(state, Asked::Served) == Asked::Waiting;
  if (is_first || made == nullptr || (given != nullptr && given->data() == made->data())) {
    wanted = result;
  } else if (given != nullptr && given->dtype() == made->dtype() &&
             given->shape() == made->shape()) {
    return copy_across(providers, *made, *given);
  } else {
    SDX_ASSIGN(Tensor copy, moved(providers, *made, given != nullptr ? place_of(*given) : nullptr));
    wanted = std::move(copy);
  }
  return {};
}

/// The session's profiler and that of one run, as far as they are.
class RunProfiler final : public Profiler {
 public:
  RunProfiler(TraceProfiler* session, std::string_view prefix) : session_(session) {
    if (!prefix.empty()) run_.emplace();
  }

  /// Null when nobody asks for timings.
  Profiler* get() { return run_ ? this : static_cast<Profiler*>(session_); }

  void record(std::string_view node_name, std::string_view op_type, Clock::time_point start,
              Clock::time_point end) override {
    if (session_ != nullptr) session_->record(node_name, op_type, start, end);
    run_->record(node_name, op_type, start, end);
  }

  /// The whole run; writes what belongs to it alone.
  Status finish(std::string_view prefix, Clock::time_point start) {
    if (get() == nullptr) return {};
    const auto end = Clock::now();
    if (session_ != nullptr) session_->record_session("model_run", start, end);
    if (!run_) return {};
    run_->record_session("model_run", start, end);
    auto path = run_->end(std::string(prefix));
    return std::move(path).take_status();
  }

 private:
  TraceProfiler* session_;
  std::optional<TraceProfiler> run_;
};

/// The begin and the end that the session's own providers hear of. Ends what has begun, also when
/// memory runs out in between: a provider may hold a lock for the time of a run.
class ToldRun {
 public:
  ToldRun(const Providers& providers, const void* caller_options)
      : providers_(providers), caller_options_(caller_options) {}
  ~ToldRun() { static_cast<void>(end()); }
  ToldRun(const ToldRun&) = delete;
  ToldRun& operator=(const ToldRun&) = delete;

  Status begin() {
    for (const auto& provider : providers_) {
      SDX_TRY(provider->begin_run(caller_options_));
      ++begun_;
    }
    return {};
  }
  Status end() {
    Status status;
    while (begun_ > 0) {
      Status ended = providers_[--begun_]->end_run(caller_options_);
      if (status.ok()) status = std::move(ended);
    }
    return status;
  }

 private:
  const Providers& providers_;
  const void* caller_options_;
  std::size_t begun_ = 0;
};

template <typename Run>
Status run_told(const Providers& providers, const RunOptions& options, Run&& run) {
  if (providers.empty()) return run();
  ToldRun told(providers, options.caller_options);
  Status status = told.begin();
  if (status.ok()) status = run();
  Status ended = told.end();
  if (status.ok()) status = std::move(ended);
  return status;
}

/// A provider that captured such a run does it again by itself.
Result<bool> replayed(const Providers& providers, const RunOptions& options) {
  for (const auto& provider : providers) {
    const DeviceProvider* device = as_device(*provider);
    if (device == nullptr) continue;
    SDX_ASSIGN(const bool is_done, device->replay(options.caller_options));
    if (is_done) return true;
  }
  return false;
}

/// A run that is done again writes where the captured one wrote: only who gave that memory can
/// read what it made.
Status check_all_given(std::span<const std::string_view> names,
                       const std::unordered_map<std::string_view, std::size_t>& index,
                       std::span<const Datum> results) {
  for (const std::string_view name : names) {
    const Tensor* given = results[index.find(name)->second].tensor();
    if (given != nullptr && given->dtype() != DType::Undefined) continue;
    return failure(Code::InvalidArgument,
                   "the run was captured and is done again in the memory that it was captured "
                   "with: output '{}' should be bound to it, but no tensor is given",
                   name);
  }
  return {};
}

/// Captures may take several runs; a provider that never ends stops here.
constexpr int kCaptureRuns_max = 8;

bool want_another_run(const Providers& providers, const RunOptions& options) {
  return std::any_of(providers.begin(), providers.end(), [&](const auto& provider) {
    const DeviceProvider* device = as_device(*provider);
    return device != nullptr && device->wants_another_run(options.caller_options);
  });
}

}  // namespace

Status Session::run(std::span<const std::string_view> input_names, std::span<const Datum> inputs,
                    std::span<const std::string_view> output_names, std::span<Datum> outputs,
                    const RunOptions& run_options) {
  Impl& impl = *impl_;
  const auto running = impl.running.load();
  if (running == nullptr) {
    return failure(Code::InvalidArgument,
                   "the session is still open to changes: it runs when it is finished");
  }
  PerValue<Datum> feeds(impl.all_inputs.size());
  for (std::size_t i = 0; i < input_names.size(); ++i) {
    const auto found = impl.input_index.find(input_names[i]);
    if (found == impl.input_index.end()) {
      return failure(Code::InvalidArgument, "the model has no input '{}'{}; its inputs are: {}",
                     input_names[i], hint(input_names[i], impl.all_inputs),
                     join(names_of(impl.inputs), ", "));
    }
    SDX_TRY(impl.check_feed(impl.all_inputs[found->second], inputs[i]));
    SDX_TRY(impl.check_place(inputs[i], "input", input_names[i]));
    feeds.data()[found->second] = typed(impl.all_inputs[found->second].type, inputs[i]);
  }
  for (std::size_t i = 0; i < impl.all_inputs.size(); ++i) {
    if (feeds.data()[i].has_value()) continue;
    if (impl.defaults[i] != nullptr) {
      feeds.data()[i] = *impl.defaults[i];
    } else if (impl.all_inputs[i].type.kind != Type::Kind::Optional) {
      return failure(Code::InvalidArgument, "input '{}' ({}) was not fed", impl.all_inputs[i].name,
                     impl.all_inputs[i].type.to_string());
    }
  }
  PerValue<Datum> results(impl.outputs.size());
  PerValue<Asked> asked(impl.outputs.size());
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    const auto found = impl.output_index.find(output_names[i]);
    if (found == impl.output_index.end()) {
      return failure(Code::InvalidArgument, "the model has no output '{}'{}; its outputs are: {}",
                     output_names[i], hint(output_names[i], impl.outputs),
                     join(names_of(impl.outputs), ", "));
    }
    SDX_TRY(impl.check_place(outputs[i], "output", output_names[i]));
    Asked& state = asked.data()[found->second];
    if (state == Asked::Never) results.data()[found->second] = outputs[i];
    state = Asked::Waiting;
  }
  RunProfiler profiler(impl.profiler.get(), run_options.profile_prefix);
  RunState state{*impl.pool, run_options.terminate, profiler.get(), &random_generator()};
  std::optional<RunMemory> run_memory;
  if (impl.collector != nullptr) state.memory = &run_memory.emplace(impl.collector->start());
  Profiler::Clock::time_point start;
  if (profiler.get() != nullptr) start = Profiler::Clock::now();
  {
    const ThreadPool::RunScope scope(*impl.pool);
    const Providers& own = impl.compiled.own_providers;
    for (int i = 0; i < kCaptureRuns_max; ++i) {
      SDX_ASSIGN(const bool is_done, replayed(own, run_options));
      if (is_done) {
        SDX_TRY(check_all_given(output_names, impl.output_index, results.data()));
        break;
      }
      SDX_TRY(run_told(own, run_options, [&] {
        return running->compiled->run(feeds.data(), results.data(), state);
      }));
      if (!want_another_run(own, run_options)) break;
    }
  }
  SDX_TRY(profiler.finish(run_options.profile_prefix, start));
  if (run_memory) SDX_TRY(impl.collector->finish(feeds.data(), *run_memory));
  SDX_TRY(check_undamaged(running->files, feeds.data()));
  for (std::size_t i = 0; i < output_names.size(); ++i) {
    const std::size_t index = impl.output_index.find(output_names[i])->second;
    SDX_TRY(hand_out(impl.compiled.own_providers, results.data()[index], asked.data()[index],
                     outputs[i]));
  }
  if (run_options.shrink) running->compiled->shrink();
  return {};
}

namespace {

/// Puts other elements in the place of an initializer's.
Status set_initializer(Graph& graph, const std::string& name, const Tensor& tensor) {
  std::vector<std::string> names;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    Value& value = graph.value(id);
    if (!value.constant) continue;
    names.push_back(value.name);
    if (value.name != name) continue;
    if (value.constant->dtype() != tensor.dtype() || value.constant->shape() != tensor.shape()) {
      return failure(Code::InvalidArgument, "initializer '{}' is {} of shape {}, found {} of {}",
                     name, dtype_name(value.constant->dtype()), value.constant->shape().to_string(),
                     dtype_name(tensor.dtype()), tensor.shape().to_string());
    }
    graph.set_constant(id, tensor);
    value.origin = nullptr;
    return {};
  }
  const std::string guess = nearest(name, names);
  return failure(Code::InvalidArgument, "the model has no initializer '{}'{}", name,
                 guess.empty() ? "" : fmt::format(" (did you mean '{}'?)", guess));
}

/// The model of a session, as it was when the session was made.
Result<Model> read_again(const Session::Impl& session) {
  if (session.path.empty() || !session.compiled.own_providers.empty()) {
    return failure(Code::InvalidArgument,
                   "weights can be changed in sessions of models from a file, on the processor "
                   "alone");
  }
  SDX_ASSIGN(const FileIdentity identity, identify_file(session.path));
  if (identity != session.path_identity) {
    return failure(Code::InvalidArgument, "'{}' has changed since the session was made",
                   session.path);
  }
  return read_model(session.path, session.options.read);
}

}  // namespace

Status Session::refit(std::span<const std::pair<std::string, Tensor>> weights) {
  Impl& impl = *impl_;
  const FreedMemoryScope freed_memory;
  const std::lock_guard lock(impl.refit_mutex);
  if (impl.running.load() == nullptr) {
    return failure(Code::InvalidArgument, "the session is still open to changes");
  }
  SDX_ASSIGN(Model model, read_again(impl));
  std::map<std::string, Tensor> refitted = impl.refitted;
  for (const auto& [name, tensor] : weights) refitted.insert_or_assign(name, tensor);
  for (const auto& [name, tensor] : refitted) {
    SDX_TRY(set_initializer(model.graph, name, tensor));
  }
  SDX_TRY(prepare_model(model, impl.options, {}));
  const auto kept = model.keep_alive;
  SDX_ASSIGN(CompiledModel made, compile_model(std::move(model), *impl.environment, impl.options,
                                               *impl.pool, nullptr, {}));
  SDX_ASSIGN(auto running, make_running(made, kept));
  impl.running.store(std::move(running));
  impl.refitted = std::move(refitted);
  return {};
}

Result<std::string> Session::end_profiling() {
  if (impl_->profiler == nullptr) return std::string();
  for (const auto& provider : impl_->compiled.own_providers) {
    const ProfiledProvider* profiled = as_profiled(*provider);
    if (profiled == nullptr) continue;
    for (const auto& event : profiled->end_profiling()) impl_->profiler->record_event(event);
  }
  return impl_->profiler->end(impl_->options.profile_prefix);
}

std::uint64_t Session::profiling_start_ns() const {
  return impl_->profiler == nullptr ? 0 : impl_->profiler->start_ns();
}

}  // namespace sardonyx
