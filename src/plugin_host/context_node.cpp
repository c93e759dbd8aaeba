#include "plugin_host/context_node.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <set>
#include <utility>

#include "base/log.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "capi/model_editor.h"
#include "capi/status.h"

namespace sardonyx::plugin_host {

namespace {

namespace fs = std::filesystem;

std::string entry_of(const OrtSessionOptions& options, const char* key) {
  const auto found = options.options.entries.find(key);
  return found == options.options.entries.end() ? "" : found->second;
}

/// The file that has a node's data; "" when the node has them itself or leaves them to another.
fs::path data_file(const Attributes& attributes, const fs::path& folder) {
  const std::string name = attributes.get_string("ep_cache_context", "");
  if (attributes.get_int("embed_mode", 1) != 0 || name.empty()) return {};
  return (folder / name).lexically_normal();
}

bool is_there(const fs::path& file) {
  std::error_code error;
  return fs::exists(file, error);
}

/// As ONNX Runtime does: plugins leave out what the operator's description says anyway, and look
/// for it when they load.
void add_defaults(Attributes& attributes) {
  const std::pair<const char*, std::int64_t> kDefaults[] = {
      {"main_context", 1}, {"embed_mode", 1}, {"max_size", 0}};
  for (const auto& [name, value] : kDefaults) {
    if (!attributes.has(name)) attributes.set(name, value);
  }
}

bool names_all(const Graph& part, const std::vector<ValueId>& values,
               const std::vector<std::string>& names) {
  return std::all_of(values.begin(), values.end(), [&](ValueId id) {
    return std::find(names.begin(), names.end(), part.value(id).name) != names.end();
  });
}

}  // namespace

ContextEntries context_entries(const OrtSessionOptions& options) {
  ContextEntries result;
  result.makes_context = entry_of(options, "ep.context_enable") == "1";
  result.embeds = entry_of(options, "ep.context_embed_mode") == "1";
  result.shares = entry_of(options, "ep.share_ep_contexts") == "1";
  result.stops_sharing = entry_of(options, "ep.stop_share_ep_contexts") == "1";
  result.writes_by_callback = options.ep_context_data.write != nullptr;
  result.reads_by_callback = options.ep_context_data.read != nullptr;
  result.file_path = entry_of(options, "ep.context_file_path");
  return result;
}

Status check_context_entries(const ContextEntries& options) {
  if (!options.makes_context || !options.embeds || !options.shares) return {};
  return failure(Code::InvalidArgument,
                 "ep.share_ep_contexts=1 puts the data of several models into one file, which "
                 "cannot be embedded in each of them: set ep.context_embed_mode to 0");
}

Result<ContextNode> context_node_of(std::string_view ep_name, const OrtNode* made,
                                    const Graph& part) {
  if (made == nullptr) {
    return failure(capi::kPlainFailure, "{}: OrtEp::Compile() returned a NULL EPContext node.",
                   ep_name);
  }
  if (made->is_view || capi::editor_of(made).is_owned) {
    return failure(capi::kPlainFailure,
                   "{}: OrtEp::Compile() returned OrtNode objects that were not created with "
                   "OrtModelEditorApi.",
                   ep_name);
  }
  const capi::EditorNode& edited = capi::editor_of(made);
  Node bare = capi::bare_node(edited);
  ContextNode node{std::move(bare.name),       std::move(bare.domain), std::move(bare.op_type),
                   std::move(bare.attributes), edited.input_names,     edited.output_names};
  if (node.op_type == "EPContext") add_defaults(node.attributes);
  const bool is_whole = names_all(part, part.outputs(), node.outputs);
  std::set<std::string_view> known;
  for (ValueId id = 0; id < part.value_count(); ++id) known.insert(part.value(id).name);
  const auto stranger = std::find_if(node.inputs.begin(), node.inputs.end(), [&](const auto& name) {
    return !name.empty() && known.count(name) == 0;
  });
  if (is_whole && stranger == node.inputs.end()) return node;
  return failure(Code::InvalidModel,
                 "{}: OrtEp::Compile() returned EPContext node '{}', which {}: it has to have the "
                 "inputs and outputs of the part that it stands for",
                 ep_name, node.name,
                 is_whole ? fmt::format("takes '{}', which the part does not know", *stranger)
                          : "does not make all outputs of the part");
}

Status PromisedFiles::check(std::string_view ep_name, const ContextNode& node,
                            const ContextEntries& options, const std::string& model_path,
                            Time start, End end) {
  if (options.writes_by_callback) return {};
  const std::string& output = options.file_path.empty() ? model_path : options.file_path;
  const fs::path file = data_file(node.attributes, fs::path(output).parent_path());
  if (options.shares && !options.stops_sharing) {
    const Promise promise{std::string(ep_name), output, file.string(), start};
    if (file.empty() || is_kept(promise)) return {};
    const std::lock_guard lock(mutex_);
    promises_.push_back(promise);
    end_ = std::move(end);
    return {};
  }
  if (options.shares) report(take(nullptr));
  if (file.empty() || is_there(file)) return {};
  return failure(capi::kProviderFailed,
                 "{}: EPContext node '{}' names its data as '{}', but the provider wrote no such "
                 "file{}",
                 ep_name, node.name, file.string(),
                 options.shares ? ": an earlier model of the group may have ended it "
                                  "(ep.stop_share_ep_contexts is for the last one alone)"
                                : "");
}

bool PromisedFiles::is_kept(const Promise& promise) {
  // Systems note the time of a change less exactly than they tell the time.
  constexpr std::chrono::seconds kSlack{1};
  std::error_code error;
  const Time written = fs::last_write_time(promise.file, error);
  return !error && written >= promise.start - kSlack;
}

std::vector<PromisedFiles::Promise> PromisedFiles::take(End* end) {
  const std::lock_guard lock(mutex_);
  if (end != nullptr) *end = std::move(end_);
  end_ = nullptr;
  return std::exchange(promises_, {});
}

void PromisedFiles::begin(const ContextEntries& options, const std::string& model_path) {
  if (!options.makes_context || !options.shares) return;
  const fs::path output = options.file_path.empty() ? model_path : options.file_path;
  bool is_other = false;
  {
    const std::lock_guard lock(mutex_);
    is_other = !promises_.empty() &&
               fs::path(promises_.back().model).parent_path() != output.parent_path();
  }
  if (is_other) finish();
}

void PromisedFiles::finish() {
  End end;
  const std::vector<Promise> promises = take(&end);
  const bool is_open = !std::all_of(promises.begin(), promises.end(), is_kept);
  if (is_open && end != nullptr) {
    const Status status = end();
    if (!status.ok()) log(Severity::Warning, "{}", status.message());
    if (status.ok() && is_kept(promises.front())) {
      log(Severity::Warning,
          "{}: '{}' is written now, for models that were compiled with ep.share_ep_contexts=1 and "
          "none of them with ep.stop_share_ep_contexts=1",
          promises.front().ep_name, promises.front().file);
    }
  }
  report(promises);
}

void PromisedFiles::report(const std::vector<Promise>& promises) {
  for (const Promise& promise : promises) {
    if (is_kept(promise)) continue;
    log(Severity::Error,
        "{}: the model that was compiled for '{}' cannot be loaded: its data were to go into '{}', "
        "which was never written. With ep.share_ep_contexts=1 the provider writes it when the last "
        "model of the group is compiled with ep.stop_share_ep_contexts=1, and only then",
        promise.ep_name, promise.model, promise.file);
  }
}

namespace {

/// The names of graphs in the data: those that begin as `name` does and end in other numbers. Names
/// are numbered by the runtime that made them: NAME_hash_group_part.
std::set<std::string_view> sibling_graphs(std::string_view data, std::string_view name) {
  constexpr std::string_view kNumber = "0123456789_";
  const std::size_t stem_end = name.find_last_not_of(kNumber);
  std::set<std::string_view> names;
  if (stem_end == std::string_view::npos || stem_end + 1 == name.size()) return names;
  const std::string_view stem = name.substr(0, stem_end + 1);
  for (std::size_t at = data.find(stem); at != std::string_view::npos;
       at = data.find(stem, at + stem.size())) {
    std::size_t end = at + stem.size();
    while (end < data.size() && kNumber.find(data[end]) != std::string_view::npos) ++end;
    if (end > at + stem.size()) names.insert(data.substr(at, end - at));
  }
  return names;
}

#if defined(__x86_64__)
constexpr bool kSimulatesQnn = true;
#else
constexpr bool kSimulatesQnn = false;
#endif

/// On processors of the x86 kind QNN simulates its accelerator, and the simulation crashes the
/// process on data that hold graphs of several models.
Status check_simulated_qnn(const Node& node, const Graph& model, std::string_view data,
                           const std::string& where) {
  std::set<std::string_view> siblings =
      sibling_graphs(data, node.attributes.get_string("partition_name", ""));
  for (NodeId id = 0; id < model.node_count(); ++id) {
    siblings.erase(model.node(id).attributes.get_string("partition_name", ""));
  }
  if (!kSimulatesQnn || siblings.empty()) return {};
  return failure(Code::InvalidModel,
                 "EPContext node '{}': {} holds the graphs of several models (also '{}'), which "
                 "QNN cannot load on this processor: its simulated accelerator crashes on them. "
                 "Load the model on a Qualcomm device, or compile it without ep.share_ep_contexts",
                 node.name, where, *siblings.begin());
}

bool is_qnn(const std::string& source) { return source.starts_with("QNN") || source == "Qnn"; }

}  // namespace

bool has_context_node(const Graph& part) {
  for (NodeId id = 0; id < part.node_count(); ++id) {
    if (!part.node(id).is_removed && part.node(id).op_type == "EPContext") return true;
  }
  return false;
}

Status check_loadable(std::string_view ep_name, const Graph& part, const Model& model,
                      const ContextEntries& options) {
  if (options.reads_by_callback) return {};
  const fs::path folder =
      fs::path(model.path.empty() ? options.file_path : model.path).parent_path();
  for (NodeId id = 0; id < part.node_count(); ++id) {
    const Node& node = part.node(id);
    if (node.is_removed || node.op_type != "EPContext") continue;
    const Attributes& attributes = node.attributes;
    const fs::path file = data_file(attributes, folder);
    if (!file.empty() && !is_there(file)) {
      return failure(
          Code::InvalidModel,
          "{}: EPContext node '{}' has its data in '{}', which does not exist. Either it "
          "did not move with the model, or the model was compiled with "
          "ep.share_ep_contexts=1 and no later one with ep.stop_share_ep_contexts=1",
          ep_name, node.name, file.string());
    }
    if (!is_qnn(attributes.get_string("source", ""))) continue;
    if (!file.empty()) {
      SDX_ASSIGN(const auto mapped, MappedFile::open(file.string()));
      const auto bytes = mapped->bytes();
      SDX_TRY(check_simulated_qnn(node, model.graph,
                                  {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                                  fmt::format("'{}'", file.string())));
    } else if (const auto* data = attributes.get_if<std::string>("ep_cache_context")) {
      SDX_TRY(check_simulated_qnn(node, model.graph, *data, "its data"));
    }
  }
  return {};
}

}  // namespace sardonyx::plugin_host
