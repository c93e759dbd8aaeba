#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ep/device.h"
#include "ir/custom_operator.h"
#include "ir/datum.h"
#include "onnx/reader.h"
#include "placement/placement.h"
#include "session/environment.h"

namespace sardonyx {

/// Hears of the stages of loading, "read", "check", "optimize" and "compile", each when it begins,
/// with the number of stages done and of all; then "ready".
struct LoadProgress {
  /// Anything but 0 stops the load with Cancelled; null: nobody listens.
  int (*report)(void* state, const char* stage, double done, double total) = nullptr;
  void* state = nullptr;
};

/// How a session is made. Defaults are those of ONNX Runtime.
struct SessionOptions {
  /// Threads of one run, the caller included; 0: as many as this process may use.
  int thread_count = 0;
  /// Run on the environment's pool instead of an own one.
  bool use_shared_pool = false;
  /// Who makes the threads of an own pool; empty: the library.
  ThreadFunctions thread_functions;
  /// 0 none, 1 basic, 2 extended, 3 layout, 99 all.
  int optimization_level = 99;
  /// Where to write the graph after the common passes; "" = nowhere.
  std::string optimized_model_path;
  /// Chrome traces go to PREFIX_date.json when it is on.
  bool is_profiling = false;
  std::string profile_prefix = "onnxruntime_profile_";
  std::string log_id;
  /// Sizes for symbolic dimensions, by name or by denotation.
  std::vector<std::pair<std::string, std::int64_t>> dimensions_by_name;
  std::vector<std::pair<std::string, std::int64_t>> dimensions_by_denotation;
  /// Initializers and external data that the caller supplies (see ReadOptions).
  ReadOptions read;
  /// Names of providers in order of preference; empty: all of the environment.
  std::vector<std::string> providers;
  /// Providers of this session alone, asked before those of the environment.
  std::vector<ProviderMaker> own_providers;
  /// Operators that the library does not have, or that replace its own.
  std::vector<CustomOperatorEntry> custom_operators;
  /// Lives as long as the session: libraries with the code of custom operators.
  std::vector<std::shared_ptr<const void>> keep_alive;
  /// Reads the data that a compiled model keeps outside itself, by name; empty: files do.
  std::function<Result<std::vector<std::byte>>(const std::string& name)> read_context_data;
  /// Bytes of the model that a weightless compiled one belongs to; the caller keeps them while the
  /// session lives.
  std::span<const std::byte> weightless_source;
  /// Session configuration entries by key.
  std::unordered_map<std::string, std::string> entries;
  /// One of them; "" when it is not set.
  std::string entry(const std::string& key) const {
    const auto found = entries.find(key);
    return found == entries.end() ? std::string() : found->second;
  }
  /// Loading stops when it becomes true; may be null.
  std::shared_ptr<const std::atomic<bool>> cancel;
  LoadProgress progress;
};

/// How one run is done.
struct RunOptions {
  /// Set from any thread to stop the run.
  const std::atomic<bool>* terminate = nullptr;
  /// Gives memory back that only speeds up the next run.
  bool shrink = false;
  /// Chrome trace of this run alone goes to PREFIX_date.json; "" = nowhere.
  std::string_view profile_prefix;
  /// What the C interface was given, for providers that speak it; may be null.
  const void* caller_options = nullptr;
};

/// One input or output as callers see it.
struct SessionValue {
  std::string name;
  Type type;
  /// Names of symbolic dimensions, "" where a dimension is a number or nameless.
  std::vector<std::string> symbols;
};

/// Nodes that a provider took: the nodes of one group, or a single one.
struct AssignedPart {
  struct Node {
    std::string name;
    std::string domain;
    std::string op_type;
  };
  std::string provider;
  std::vector<Node> nodes;
};

/// What the model says about itself.
struct ModelMetadata {
  std::string producer_name;
  std::string graph_name;
  std::string graph_description;
  std::string domain;
  std::string description;
  std::int64_t version = 0;
  std::vector<std::pair<std::string, std::string>> custom;
};

/// A model that is loaded and ready to run. run() may be called from several threads at once.
class Session {
 public:
  /// Errors   those of reading, checking and compiling, naming the file and the node.
  static Result<std::unique_ptr<Session>> load(std::shared_ptr<Environment> environment,
                                               const std::string& path, SessionOptions options);
  static Result<std::unique_ptr<Session>> load_bytes(std::shared_ptr<Environment> environment,
                                                     std::span<const std::byte> bytes,
                                                     SessionOptions options);
  /// The same for a model that was built in memory.
  static Result<std::unique_ptr<Session>> load_model(std::shared_ptr<Environment> environment,
                                                     Model model, SessionOptions options);

  /// A session whose model is read and still open to changes: it tells its inputs and outputs, but
  /// runs only after finish().
  static Result<std::unique_ptr<Session>> open(std::shared_ptr<Environment> environment,
                                               const std::string& path, SessionOptions options);
  static Result<std::unique_ptr<Session>> open_bytes(std::shared_ptr<Environment> environment,
                                                     std::span<const std::byte> bytes,
                                                     SessionOptions options);
  /// The model of a session that open() made; null once it is finished.
  const Model* open_model() const;
  /// Puts a changed model in the place of the open one.
  void replace_open_model(Model model);
  /// Checks, optimizes and compiles the open model.
  /// Errors   InvalidArgument when the session is not open; those of load(). After one the session
  ///          can only be destroyed.
  Status finish(SessionOptions options);

  ~Session();

  const std::vector<SessionValue>& inputs() const;
  const std::vector<SessionValue>& outputs() const;
  /// Initializers that a feed may replace.
  const std::vector<SessionValue>& overridable_initializers() const;
  const ModelMetadata& metadata() const;
  /// Versions of the operator sets by domain ("" = ai.onnx).
  const std::vector<std::pair<std::string, std::int64_t>>& opset_imports() const;
  const SessionOptions& options() const;
  /// Names of the session's providers, in order of preference.
  const std::vector<std::string>& provider_names() const;
  /// Those that run a part of the model.
  const std::vector<std::string>& used_provider_names() const;
  /// Providers of this session alone.
  const Providers& own_providers() const;
  /// Whether a provider of the session moves tensors to that memory and back.
  bool reaches(const Place& place) const;
  /// Where the run wants inputs() and makes outputs().
  const Place* input_place(std::size_t index) const;
  const Place* output_place(std::size_t index) const;
  CompiledMemory memory() const;
  /// Who took which nodes, in order of the providers; empty unless the session was made with
  /// session.record_ep_graph_assignment_info = 1.
  const std::vector<AssignedPart>& assigned_parts() const;
  /// Who runs which nodes, and why.
  const Placement& placement() const;
  /// The graph that runs.
  const Graph* optimized_graph() const;

  /// Runs the model on named inputs. `outputs[i]` belongs to `output_names[i]`; one that holds a
  /// tensor of the right type and shape is written into, others are filled.
  /// Errors   InvalidArgument for a name, type or shape that does not fit, saying what was
  /// expected;
  ///          what the nodes refuse, naming the node; Cancelled.
  Status run(std::span<const std::string_view> input_names, std::span<const Datum> inputs,
             std::span<const std::string_view> output_names, std::span<Datum> outputs,
             const RunOptions& run_options = {});

  /// Gives initializers other elements, of the same types and shapes. Runs that have begun end with
  /// the old ones; other sessions that share these are not touched. Weights that stay are not
  /// packed again. What optimized_graph() told goes.
  /// Errors   InvalidArgument for a name, type or shape that does not fit, and for a session that
  ///          was not made from a file or has providers of its own; those of load(). The session is
  ///          as before then.
  /// Cost     that of loading without packing, and a pass over all weights.
  Status refit(std::span<const std::pair<std::string, Tensor>> weights);

  /// Ends profiling and writes the trace; "" when profiling was off.
  Result<std::string> end_profiling();
  /// Nanoseconds of the steady clock when profiling began; 0 when it is off.
  std::uint64_t profiling_start_ns() const;

  struct Impl;

 private:
  Session();
  std::unique_ptr<Impl> impl_;
};

}  // namespace sardonyx
