#include "session/context_model.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/atomic_file.h"
#include "base/mapped_file.h"
#include "base/text.h"
#include "context/source.h"
#include "session/compiled_model.h"
#include "session/load.h"

namespace sardonyx {

namespace {

namespace fs = std::filesystem;

constexpr const char* kContextDomain = "com.microsoft";
constexpr int kFullOptimization = 99;
constexpr const char* kContextOp = "EPContext";
/// A protobuf message, and so a model with the data inside, has to stay below 2 GiB.
constexpr std::size_t kEmbeddedBytesMax = (std::size_t{1} << 31) - (std::size_t{1} << 20);

void add_origins(const Graph& graph, std::set<std::string>& files) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const auto& origin = graph.value(id).origin;
    if (origin != nullptr) files.insert(origin->file);
  }
  for (NodeId id = 0; id < graph.node_count(); ++id) {
    for (const Graph* subgraph : subgraphs(graph.node(id))) add_origins(*subgraph, files);
  }
}

/// A part that becomes a node of the compiled model.
struct KeptPart {
  const PlannedPart* part;
  Node node;
};

std::size_t constant_bytes(const Graph& graph) {
  std::size_t total = 0;
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    const auto& constant = graph.value(id).constant;
    if (constant) total += constant->byte_size();
  }
  return total;
}

/// Tells who listens how much of a model's weights is written, and stops when it says so.
class ReportedWriter final : public ArtifactWriter {
 public:
  ReportedWriter(const SessionOptions& options, std::size_t total_bytes)
      : options_(options), total_bytes_(std::max(1.0, static_cast<double>(total_bytes))) {}

  ArtifactWriter& onto(ArtifactWriter& writer) {
    writer_ = &writer;
    return *this;
  }

  Result<std::uint32_t> add_blob(const BlobKey& key, std::size_t size_bytes,
                                 FunctionRef<Status(std::span<std::byte>)> fill) override {
    SDX_ASSIGN(const std::uint32_t number, writer_->add_blob(key, size_bytes, fill));
    SDX_TRY(count(key.source_bytes));
    return number;
  }
  Result<std::uint32_t> add_bytes(const BlobKey& key, std::span<const std::byte> bytes) override {
    SDX_ASSIGN(const std::uint32_t number, writer_->add_bytes(key, bytes));
    SDX_TRY(count(key.source_bytes));
    return number;
  }
  Result<std::uint32_t> add_source(const Tensor& weight, const WeightOrigin& origin,
                                   std::string_view name) override {
    SDX_ASSIGN(const std::uint32_t number, writer_->add_source(weight, origin, name));
    SDX_TRY(count(weight.byte_size()));
    return number;
  }
  void set_program(std::vector<std::byte> program) override {
    writer_->set_program(std::move(program));
  }

 private:
  /// A weight may be kept twice, packed and as it is: what comes after all is not told.
  Status count(std::uint64_t bytes) {
    done_bytes_ += static_cast<double>(bytes);
    const double share = done_bytes_ / total_bytes_;
    if (share > 1 || share < told_ + kStep) return {};
    told_ = share;
    return report_compiling(options_, share);
  }

  static constexpr double kStep = 0.005;
  const SessionOptions& options_;
  const double total_bytes_;
  double done_bytes_ = 0;
  double told_ = 0;
  ArtifactWriter* writer_ = nullptr;
};

/// One model on its way to a compiled one.
class ContextModel {
 public:
  ContextModel(const PlacedModel& placed, std::span<const CompiledPart> parts,
               std::span<const std::string> sources, const ContextOptions& options,
               ContainerOpener open)
      : placed_(placed),
        parts_(parts),
        sources_(sources),
        options_(options),
        open_(open),
        reported_(placed.options, constant_bytes(placed.model.graph)) {}

  Status write();

 private:
  Status keep_parts();
  Status keep_made(const PlannedPart& plan, const CompiledPart& part, const ContextNode& made);
  Status keep_stored(const PlannedPart& plan, const CompiledPart& part);
  Result<std::string> store(const PlannedPart& plan, ContainerWriter& store);
  Result<ContainerWriter*> file_store();
  Status find_data_file();
  Status check_distinct() const;
  /// A model that goes to no file, and has no place for its data, has it inside.
  bool is_embedded() const {
    const bool has_place = !options_.model_path.empty() || !options_.data_name.empty();
    return options_.embeds || (!has_place && !options_.write_data);
  }
  Status describe_sources();
  Status check_unchanged() const;
  Result<Model> build();
  Status add_metadata(Model& model) const;
  Status publish(const Model& model);

  const Graph& graph() const { return placed_.model.graph; }

  const PlacedModel& placed_;
  std::span<const CompiledPart> parts_;
  std::span<const std::string> sources_;
  const ContextOptions& options_;
  ContainerOpener open_;
  ReportedWriter reported_;
  std::vector<KeptPart> kept_;
  /// The file of compiled data, and what the nodes call it.
  fs::path data_path_;
  std::string data_reference_;
  std::unique_ptr<ContainerWriter> store_;
  std::optional<std::vector<SourceFile>> described_;
};

/// Absolute and without links, as far as it exists.
fs::path real_path(const fs::path& path) {
  std::error_code error;
  const fs::path real = fs::weakly_canonical(fs::absolute(path, error), error);
  return real.empty() ? path : real;
}

fs::path folder_of(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

/// How the file is found from the folder; a file that is a link keeps its name.
std::string relative_to(const fs::path& folder, const std::string& file) {
  const fs::path real = real_path(folder_of(file)) / fs::path(file).filename();
  const fs::path relative = real.lexically_relative(real_path(folder));
  return relative.empty() ? file : relative.string();
}

Status ContextModel::find_data_file() {
  const fs::path model_folder =
      options_.model_path.empty() ? fs::path() : folder_of(options_.model_path);
  if (options_.data_name.empty()) {
    data_path_ = model_folder / kContainerName;
    data_reference_ = kContainerName;
    return {};
  }
  fs::path name(options_.data_name);
  if (name.extension() == ".onnx") name.replace_extension();
  data_path_ = fs::path(options_.data_folder) / (name.string() + "_sardonyx.bin");
  data_reference_ = data_path_.filename().string();
  if (model_folder.empty()) return {};
  const fs::path relative = relative_to(model_folder, data_path_.string());
  if (relative.is_absolute() || *relative.begin() == "..") {
    return failure(Code::InvalidArgument,
                   "the compiled data should stand in the folder of the compiled model '{}' or "
                   "below, but its folder is set to '{}'",
                   options_.model_path, options_.data_folder);
  }
  data_reference_ = relative.string();
  return {};
}

/// Model, compiled data and weights go to three files.
Status ContextModel::check_distinct() const {
  std::vector<std::pair<const char*, fs::path>> files;
  if (!options_.model_path.empty()) files.emplace_back("the compiled model", options_.model_path);
  if (!is_embedded() && !options_.write_data) files.emplace_back("the compiled data", data_path_);
  if (!options_.write.external_data_file.empty() && options_.write.external_sink == nullptr) {
    const fs::path folder = options_.model_path.empty()
                                ? fs::path(options_.write.external_data_folder)
                                : folder_of(options_.model_path);
    files.emplace_back("the weights that stay", folder / options_.write.external_data_file);
  }
  std::map<fs::path, const char*> places;
  for (const auto& [what, path] : files) {
    const fs::path place = real_path(folder_of(path.string())) / path.filename();
    const auto [other, is_new] = places.emplace(place, what);
    if (is_new) continue;
    return failure(Code::InvalidArgument,
                   "{} and {} would both go to '{}': give them names of their own", other->second,
                   what, path.string());
  }
  return {};
}

Result<ContainerWriter*> ContextModel::file_store() {
  if (store_ == nullptr) {
    SDX_TRY(check_not_source(data_path_.string(), sources_));
    SDX_ASSIGN(store_, open_(data_path_.string()));
  }
  return store_.get();
}

Status ContextModel::describe_sources() {
  if (described_) return {};
  std::vector<SourceFile> described;
  const std::string model_file =
      placed_.model.path.empty() ? "" : real_path(placed_.model.path).string();
  for (const std::string& source : sources_) {
    SDX_ASSIGN(SourceFile file, describe_source(source, real_path(source).string() == model_file));
    described.push_back(std::move(file));
  }
  described_ = std::move(described);
  return check_unchanged();
}

/// What was read, what was described and what stands there now is one state of each source: else
/// the compiled model would pass for one of weights that it does not have.
Status ContextModel::check_unchanged() const {
  if (!described_) return {};
  const auto mapped = MappedFile::among(placed_.model.keep_alive);
  for (const SourceFile& source : *described_) {
    const auto now = identify_file(source.path);
    bool has_changed = now.ok() && *now != source.identity;
    for (const auto& file : mapped) {
      has_changed |= file->path() == source.path &&
                     (file->identity() != source.identity || file->is_damaged());
    }
    if (!has_changed) continue;
    return failure(Code::InvalidModel,
                   "'{}' was changed while it was being compiled: compile the model again",
                   source.path);
  }
  return {};
}

/// The key of the part in the store.
Result<std::string> ContextModel::store(const PlannedPart& plan, ContainerWriter& store) {
  const Provider& provider = *placed_.providers[plan.provider];
  SDX_TRY(describe_sources());
  ArtifactWriter& writer =
      store.begin_graph(fs::path(options_.model_path).filename().string(), *described_);
  Part part = extract_part(graph(), plan.nodes);
  if (options_.optimizes_parts) {
    SDX_TRY(optimize_graph(part.graph, placed_.options, kFullOptimization));
  }
  SDX_TRY(as_artifact(provider)
              ->save(std::move(part.graph), placed_.compile_options, reported_.onto(writer))
              .with("compiling for " + std::string(provider.name())));
  return store.finish_graph();
}

Status ContextModel::keep_stored(const PlannedPart& plan, const CompiledPart& part) {
  std::unique_ptr<ContainerWriter> own;
  ContainerWriter* store_used = nullptr;
  const bool embeds = is_embedded();
  if (embeds || options_.write_data) {
    if (options_.embeds && options_.write_data) {
      return Status(Code::InvalidArgument,
                    "a function that takes the compiled data was set, but the data is to be "
                    "embedded in the model: do one of the two");
    }
    SDX_ASSIGN(own, open_(""));
    store_used = own.get();
  } else {
    SDX_ASSIGN(store_used, file_store());
  }
  SDX_ASSIGN(const std::string key, store(plan, *store_used));
  std::string data = data_reference_;
  if (own != nullptr) {
    SDX_TRY(own->commit());
    std::string bytes = own->take_bytes();
    if (embeds) {
      if (bytes.size() > kEmbeddedBytesMax) {
        return failure(Code::InvalidArgument,
                       "the compiled data has {} bytes, but a model can hold less than 2 GiB: use "
                       "separate files (embed mode 0)",
                       bytes.size());
      }
      data = std::move(bytes);
    } else {
      // Each part is a container of its own, which needs a name of its own.
      if (!kept_.empty()) data += fmt::format(".{}", kept_.size());
      SDX_TRY(options_.write_data(data, std::as_bytes(std::span(bytes))));
    }
  }
  const std::string name = options_.name_prefix + key;
  Node node;
  node.domain = kContextDomain;
  node.op_type = kContextOp;
  node.name = name;
  node.inputs = part.inputs;
  node.outputs = part.outputs;
  const std::string& source = placed_.model.path;
  StoredNode stored;
  stored.partition_name = name;
  stored.data = std::move(data);
  stored.is_embedded = embeds;
  stored.source = as_artifact(*placed_.providers[plan.provider])->context_source();
  stored.model_name = source.empty() || options_.model_path.empty()
                          ? fs::path(source).filename().string()
                          : relative_to(folder_of(options_.model_path), source);
  node.attributes = attributes_of(std::move(stored));
  kept_.push_back({&plan, std::move(node)});
  return {};
}

/// Values of the whole graph by the names that a part has for them.
std::unordered_map<std::string_view, ValueId> values_by_name(const Graph& graph,
                                                             const CompiledPart& part) {
  std::unordered_map<std::string_view, ValueId> values;
  for (const ValueId id : part.inputs) values.emplace(graph.value(id).name, id);
  for (const ValueId id : part.outputs) values.emplace(graph.value(id).name, id);
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).constant) values.emplace(graph.value(id).name, id);
  }
  return values;
}

Status ContextModel::keep_made(const PlannedPart& plan, const CompiledPart& part,
                               const ContextNode& made) {
  Node node;
  node.domain = made.domain;
  node.op_type = made.op_type;
  node.name = made.name;
  node.attributes = made.attributes;
  const auto known = values_by_name(graph(), part);
  const auto find_all = [&](const std::vector<std::string>& names, std::vector<ValueId>& values) {
    for (const std::string& name : names) {
      const auto found = known.find(name);
      values.push_back(name.empty() || found == known.end() ? kNoValue : found->second);
      if (name.empty() || found != known.end()) continue;
      return failure(Code::InvalidModel,
                     "the provider '{}' made the node '{}' of a value '{}', which its part of the "
                     "model does not have",
                     part.provider->name(), made.name, name);
    }
    return Status();
  };
  SDX_TRY(find_all(made.inputs, node.inputs));
  SDX_TRY(find_all(made.outputs, node.outputs));
  for (const ValueId output : part.outputs) {
    if (std::count(node.outputs.begin(), node.outputs.end(), output) == 1) continue;
    return failure(Code::InvalidModel,
                   "the node '{}' that the provider '{}' made should have the output '{}' once",
                   made.name, part.provider->name(), graph().value(output).name);
  }
  kept_.push_back({&plan, std::move(node)});
  return {};
}

Status ContextModel::keep_parts() {
  for (std::size_t i = 0; i < placed_.parts.size(); ++i) {
    const PlannedPart& plan = placed_.parts[i];
    const CompiledPart& part = parts_[i];
    if (placed_.options.cancel != nullptr && placed_.options.cancel->load()) {
      return failure(Code::Cancelled, "compiling was cancelled");
    }
    // A node without outputs would be none.
    if (part.outputs.empty()) continue;
    const ContextNode* made = part.compiled == nullptr ? nullptr : part.compiled->context_node();
    if (made != nullptr) {
      SDX_TRY(keep_made(plan, part, *made));
    } else if (is_stored_part(placed_, plan)) {
      SDX_TRY(keep_stored(plan, part));
    }
  }
  return {};
}

Status ContextModel::add_metadata(Model& model) const {
  const auto set = [&](const std::string& key, const std::string& value) {
    for (auto& [known, present] : model.metadata) {
      if (known != key) continue;
      present = value;
      return;
    }
    model.metadata.emplace_back(key, value);
  };
  for (std::uint32_t i = 0; i < placed_.providers.size(); ++i) {
    const bool has_part = std::any_of(
        kept_.begin(), kept_.end(), [&](const KeptPart& kept) { return kept.part->provider == i; });
    if (!has_part) continue;
    const Provider& provider = *placed_.providers[i];
    SDX_ASSIGN(const std::string info, provider.compatibility_info(placed_.model));
    if (!info.empty()) set("ep_compatibility_info." + std::string(provider.name()), info);
  }
  const Weightless weightless = placed_.compile_options.weightless;
  if (!kept_.empty() && weightless != Weightless::None) {
    set("weightless_mode", std::to_string(static_cast<int>(weightless)));
  }
  return {};
}

Result<Model> ContextModel::build() {
  Model model = placed_.model;
  for (KeptPart& kept : kept_) {
    for (const NodeId id : kept.part->nodes) model.graph.remove_node(id);
    const std::string& domain = kept.node.domain;
    if (model.opset(domain) == 0) model.opset_imports.emplace_back(domain, 1);
    kept.node.opset = 1;
    // The node may hold the data.
    model.graph.add_node(std::move(kept.node));
  }
  for (NodeId id = 0; id < model.graph.node_count(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.is_removed || node.domain != "com.ms.internal.nhwc") continue;
    return failure(Code::Unsupported,
                   "{} was rewritten with channels last for a provider that makes no compiled node "
                   "of it: the model cannot be written",
                   node.describe(model.graph));
  }
  SDX_TRY(add_metadata(model));
  return model;
}

/// Nothing appears before everything is written.
Status ContextModel::publish(const Model& model) {
  // Who has the container has its folder.
  const bool is_alone = store_ != nullptr && !options_.model_path.empty() &&
                        real_path(folder_of(options_.model_path)) ==
                            real_path(folder_of(data_path_.string()));
  if (is_alone) remove_unfinished(options_.model_path);
  SDX_TRY(check_unchanged());
  SDX_ASSIGN(StagedModel staged, stage_model(model, options_.model_path, options_.write));
  if (options_.model_path.empty()) SDX_TRY(options_.take(staged));
  if (options_.before_commit) SDX_TRY(options_.before_commit());
  SDX_TRY(report_writing(placed_.options));
  if (store_ != nullptr) SDX_TRY(store_->commit());
  return staged.commit();
}

Status ContextModel::write() {
  SDX_TRY(check_not_source(options_.model_path, sources_));
  if (!options_.write.external_data_file.empty() && options_.write.external_sink == nullptr) {
    const fs::path folder = options_.model_path.empty()
                                ? fs::path(options_.write.external_data_folder)
                                : fs::path(options_.model_path).parent_path();
    SDX_TRY(check_not_source((folder / options_.write.external_data_file).string(), sources_));
  }
  SDX_TRY(find_data_file());
  SDX_TRY(check_distinct());
  SDX_TRY(keep_parts());
  if (kept_.empty() && options_.skips_plain_copy) return {};
  if (kept_.empty() && options_.needs_compiled_nodes) {
    return Status(Code::Internal,
                  "Unable to compile any nodes. Check that the session EPs support compilation and "
                  "can execute at least one subgraph in the model.");
  }
  SDX_ASSIGN(const Model model, build());
  return publish(model);
}

}  // namespace

Result<std::unique_ptr<ContainerWriter>> ContainerFiles::operator()(const std::string& path) const {
  if (path.empty()) return ContainerWriter::in_memory();
  return ContainerWriter::extend(path, cancel_);
}

std::vector<std::string> source_files(const Model& model) {
  std::set<std::string> files;
  add_origins(model.graph, files);
  if (!model.path.empty()) files.insert(real_path(model.path).string());
  return {files.begin(), files.end()};
}

Status check_not_compiled(const Model& model) {
  for (NodeId id = 0; id < model.graph.node_count(); ++id) {
    const Node& node = model.graph.node(id);
    if (node.is_removed || !is_context_node(node)) continue;
    return failure(Code::InvalidModel,
                   "{} is a compiled part already. Please ensure the input model is not already "
                   "compiled.",
                   node.describe(model.graph));
  }
  return {};
}

bool is_stored_part(const PlacedModel& placed, const PlannedPart& part) {
  if (as_artifact(*placed.providers[part.provider]) == nullptr) return false;
  return placed.own_providers.empty() ||
         placed.compile_options.entry("sardonyx.compile_cpu_parts", "0") == "1";
}

void name_borders(Graph& graph) {
  for (ValueId id = 0; id < graph.value_count(); ++id) {
    if (graph.value(id).name.empty()) graph.value(id).name = graph.unique_name("value");
  }
}

Status write_context_model(const PlacedModel& placed, std::span<const CompiledPart> parts,
                           std::span<const std::string> sources, const ContextOptions& options,
                           ContainerOpener open) {
  return ContextModel(placed, parts, sources, options, open).write();
}

}  // namespace sardonyx
